//! NEW: a request for a certificate, and what it must be like.

use super::refusal::{Refusal, check_signature, internal, refuse};
use super::table::Request;
use super::{Authority, dates};
use crate::error::ErrorCode;
use crate::message::{NewReply, NewRequest};
use crate::number::SALT_LEN;
use crate::{Error, KeyExchange, Now, RequestId, names};
use onym_crypto::Entropy;
use onym_wire::NameRef;
use onym_wire::cert::KEY;
use onym_wire::interest::Interest;

impl Authority {
    pub(super) fn new_request(
        &mut self,
        now: Now,
        interest: &Interest<'_>,
        entropy: &mut dyn Entropy,
    ) -> Result<Vec<u8>, Refusal> {
        let asked = NewRequest::read(interest.app_parameters.unwrap_or_default())
            .map_err(|e| (ErrorCode::BAD_FORMAT, e.to_string()))?;
        let certificate = asked.certificate;
        let key = certificate.public_key();
        if certificate.verify(key).is_err() {
            return refuse(ErrorCode::BAD_SIGNATURE, "the request is not signed with its own key");
        }
        check_signature(interest, key)?;
        self.check_name(certificate.identity())?;
        dates::check(certificate.validity(), self.settings.max_validity_s, now)?;
        if dates::granted(certificate.validity(), &self.certificate).is_none() {
            return refuse(ErrorCode::VALIDITY, "the authority's own certificate is over by then");
        }
        let (mut salt, mut id) = ([0; SALT_LEN], RequestId([0; 8]));
        entropy.fill(&mut salt);
        entropy.fill(&mut id.0);
        let exchange = KeyExchange::generate().map_err(internal)?;
        let session = exchange.session(&asked.point, &salt, id, entropy).map_err(|e| match e {
            Error::Point => (ErrorCode::INVALID, e.to_string()),
            other => internal(other),
        })?;
        // Who asks again with another Interest starts again.
        self.requests.retain(|_, r| r.certificate.public_key().spki() != key.spki());
        self.make_room(now);
        let request =
            Request { certificate, session, began_ms: now.tick_ms, running: None, waiting: None };
        self.requests.insert(id, request);
        let challenges = self.settings.challenges.iter().map(|k| k.word().to_owned()).collect();
        Ok(NewReply { point: exchange.public().to_vec(), salt, id, challenges }.write())
    }

    /// Refuses identities that this authority does not give to anybody.
    fn check_name(&self, identity: NameRef<'_>) -> Result<(), Refusal> {
        let prefix = self.prefix.as_ref();
        let Some(own) = identity.strip_prefix(prefix).filter(|own| !own.is_empty()) else {
            return refuse(ErrorCode::NAME, format!("it must be under {prefix}, and longer"));
        };
        if own.len() > self.settings.max_suffix {
            let why = format!("at most {} components behind {prefix}", self.settings.max_suffix);
            return refuse(ErrorCode::NAME, why);
        }
        // A key of `/<prefix>/CA` would speak for the authority; KEY in an identity would let one
        // name be read in two ways.
        if own.get(0) == Some(names::CA) || own.components().any(|c| c == KEY) {
            return refuse(ErrorCode::NAME, "it holds a component with a meaning of its own");
        }
        Ok(())
    }

    /// The oldest give way at the bound, those without a challenge first.
    fn make_room(&mut self, now: Now) {
        self.requests.retain(|_, request| now.tick_ms <= request.until_ms());
        while self.requests.len() >= self.settings.limits.requests_max.max(1) {
            let oldest =
                self.requests.iter().min_by_key(|(_, r)| (r.running.is_some(), r.began_ms));
            let Some(id) = oldest.map(|(id, _)| *id) else { return };
            self.requests.remove(&id);
            self.counters.displaced += 1;
        }
    }
}
