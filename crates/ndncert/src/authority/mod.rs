//! The authority, as a state machine.

mod challenge;
mod dates;
mod profile;
mod refusal;
mod request;
mod settings;
mod table;

pub use settings::{Invitation, Kind, Limits, Order, Redirect, Reply, Settings, Silence};

use crate::message::write_error;
use crate::names::{self, Step};
use crate::{Error, Now, RequestId};
use onym_crypto::verify::check_parameters_digest;
use onym_crypto::{Certificate, Entropy, Signer, digest};
use onym_wire::data::DataBuilder;
use onym_wire::interest::Interest;
use onym_wire::{Data, Name, NameRef, data};
use profile::Published;
use std::collections::{BTreeMap, VecDeque};
use table::{Replies, Request, Throttle};

/// FreshnessPeriod of replies, in milliseconds.
const FRESHNESS_MS: u64 = 4000;

/// What an authority counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Certificates issued.
    pub issued: u64,
    /// Error replies.
    pub refused: u64,
    /// Interests answered by an earlier reply.
    pub repeated: u64,
    /// Interests not answered.
    pub silent: u64,
    /// Requests that gave way to a newer one.
    pub displaced: u64,
}

/// An authority for the names under the identity of its certificate.
#[derive(Debug)]
pub struct Authority {
    settings: Settings,
    certificate: Certificate,
    signer: Signer,
    prefix: Name,
    published: Published,
    requests: BTreeMap<RequestId, Request>,
    replies: Replies,
    throttle: Throttle,
    wrong_codes: Throttle,
    invitations: Vec<Invitation>,
    issued: VecDeque<Certificate>,
    orders: VecDeque<Order>,
    counters: Counters,
}

impl Authority {
    /// The authority of `certificate`, whose key is that of `signer`. The full name of the
    /// certificate should be the signer's locator.
    ///
    /// # Errors
    /// [`Error::Crypto`] when the profile cannot be signed.
    pub fn new(
        certificate: Certificate,
        signer: Signer,
        settings: Settings,
        now: Now,
    ) -> Result<Self, Error> {
        let prefix = certificate.identity().to_name();
        let published = Published::new(&prefix, &certificate, &signer, &settings, now)?;
        let limits = settings.limits;
        Ok(Self {
            prefix,
            published,
            certificate,
            signer,
            requests: BTreeMap::new(),
            replies: Replies::new(limits.replies_max, limits.reply_ms),
            throttle: Throttle::new(limits.replies_per_s, 1000),
            wrong_codes: Throttle::new(limits.wrong_codes_per_hour, 3_600_000),
            invitations: Vec::new(),
            issued: VecDeque::new(),
            orders: VecDeque::new(),
            counters: Counters::default(),
            settings,
        })
    }

    /// Whose names it gives: identities under this one.
    #[must_use]
    pub fn prefix(&self) -> NameRef<'_> {
        self.prefix.as_ref()
    }

    /// Its certificate.
    #[must_use]
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The invitations that count from now on.
    pub fn set_invitations(&mut self, invitations: Vec<Invitation>) {
        self.invitations = invitations;
    }

    /// What the shell is to do next.
    pub fn poll_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// What it counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Requests that are open.
    #[must_use]
    pub fn open_requests(&self) -> usize {
        self.requests.len()
    }

    /// Takes an Interest, whatever its name. The same Interest gets the same reply for a minute and
    /// changes nothing again.
    pub fn receive(&mut self, now: Now, interest: &[u8], entropy: &mut dyn Entropy) -> Reply {
        let reply = match Interest::parse(interest) {
            Ok(interest) => self.answer(now, &interest, entropy),
            Err(_) => Reply::Nothing(Silence::NotForUs),
        };
        self.counters.silent += u64::from(matches!(reply, Reply::Nothing(_)));
        reply
    }

    fn answer(&mut self, now: Now, interest: &Interest<'_>, entropy: &mut dyn Entropy) -> Reply {
        let step = names::step(self.prefix.as_ref(), interest.name);
        match step {
            Step::Other => return self.fetched(interest),
            Step::Metadata | Step::Info => return self.profile(now, interest),
            Step::Probe | Step::New | Step::Challenge(_) => {}
        }
        if check_parameters_digest(interest).is_err() {
            return Reply::Nothing(Silence::Damaged);
        }
        if let Some(earlier) = self.replies.find(now, interest.name) {
            self.counters.repeated += 1;
            return Reply::Data(earlier);
        }
        if let Step::Challenge(id) = step
            && self.requests.get(&id).is_some_and(|r| r.waits_for(interest.name))
        {
            self.counters.repeated += 1;
            return Reply::Later(id);
        }
        if !self.throttle.take(now) {
            return Reply::Nothing(Silence::Throttled);
        }
        let done = match step {
            Step::Probe => self.probe(interest).map(Some),
            Step::New => self.new_request(now, interest, entropy).map(Some),
            Step::Challenge(id) => self.challenge(now, id, interest, entropy),
            Step::Metadata | Step::Info | Step::Other => Ok(None),
        };
        match (done, step) {
            (Ok(Some(content)), _) => self.reply(now, interest.name, &content),
            (Ok(None), Step::Challenge(id)) => self.waits(id, interest.name),
            (Ok(None), _) => Reply::Nothing(Silence::NotForUs),
            (Err((code, info)), _) => {
                self.counters.refused += 1;
                self.reply(now, interest.name, &write_error(code, &info))
            }
        }
    }

    /// A certificate that was issued, or the authority's own.
    fn fetched(&mut self, interest: &Interest<'_>) -> Reply {
        let answers = |certificate: &&Certificate| {
            let wire = certificate.wire();
            let digest = || digest::implicit_digest(wire);
            Data::parse(wire).is_ok_and(|data| data::matches(interest, &data, digest))
        };
        let mut all = self.issued.iter().rev().chain([&self.certificate]);
        let found = all.find(answers).map(|certificate| certificate.wire().to_vec());
        found.map_or(Reply::Nothing(Silence::NotForUs), Reply::Data)
    }

    /// Signs a reply of this name, and keeps it for when the Interest comes again.
    fn reply(&mut self, now: Now, name: NameRef<'_>, content: &[u8]) -> Reply {
        let builder = DataBuilder { freshness_ms: FRESHNESS_MS, ..DataBuilder::new(name, content) };
        let mut wire = Vec::new();
        if self.signer.sign_data(&builder, &mut wire).is_err() {
            return Reply::Nothing(Silence::Failed);
        }
        self.replies.keep(now, name, &wire);
        Reply::Data(wire)
    }
}
