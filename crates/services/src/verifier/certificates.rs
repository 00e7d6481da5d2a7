//! Certificates fetched by name over the network: asked for on the face that the Data came from,
//! and believed when a known key signed them.

use super::trust::Trust;
use crate::cx::Cx;
use crate::keys::{Key, KeySet};
use crate::verify::Secret;
use onym_crypto::Certificate;
use onym_crypto::cert::key_of_locator;
use onym_crypto::verify::Signed;
use onym_link::{LpOut, PacketKind, Payload};
use onym_tables::{FaceId, Tick};
use onym_wire::data::Data;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::NameRef;
use std::collections::BTreeMap;

/// Certificates asked for at once; a further one is asked for when its key is met again.
const ASKED_MAX: usize = 64;
/// How long one is waited for, and not asked for again, in milliseconds.
const PATIENCE_MS: u64 = 4000;

/// What was asked for.
#[derive(Debug, Default)]
pub(super) struct Certificates {
    /// By the value of the key's name.
    asked: BTreeMap<Vec<u8>, Tick>,
    fetched: u64,
}

impl Certificates {
    pub(super) fn fetched(&self) -> u64 {
        self.fetched
    }

    /// Asks for the certificate that a KeyLocator names.
    pub(super) fn ask(&mut self, cx: &mut Cx<'_>, face: FaceId, locator: NameRef<'_>) {
        let Some(key) = key_of_locator(locator) else { return };
        if self.asked.len() >= ASKED_MAX || self.asked.contains_key(key.value()) {
            return;
        }
        self.asked.insert(key.value().to_vec(), cx.now.plus_ms(PATIENCE_MS));
        let interest = InterestBuilder {
            can_be_prefix: true,
            must_be_fresh: true,
            nonce: Some(cx.rng.next_u32().to_be_bytes()),
            lifetime_ms: Some(PATIENCE_MS),
            ..InterestBuilder::new(locator)
        };
        let bytes = Payload::Arena(cx.out.write(|arena| interest.write(arena)));
        cx.emit(face, PacketKind::Interest, bytes, LpOut::default());
    }

    /// Whether `data` is a certificate that was asked for; its key is added when it is good.
    pub(super) fn take(
        &mut self,
        cx: &Cx<'_>,
        data: &Data<'_>,
        keys: &mut KeySet,
        trust: &Trust,
    ) -> bool {
        let Some(key) = key_of_locator(data.name) else { return false };
        if self.asked.remove(key.value()).is_none() {
            return false;
        }
        let Ok(certificate) = Certificate::from_data(data) else { return true };
        if certificate.check_valid_at(cx.unix_ms).is_err() {
            return true;
        }
        let signed = Signed::data(data);
        let issuer = signed.signer().and_then(|name| keys.of_locator(name));
        // By a key whose own word counts for this name: by the schema, or of an identity above it.
        let may = |i: &&Key| match trust.is_schema() {
            true => trust.allows(data.name, signed.signature_type, i),
            false => i.may_sign(data.name),
        };
        let is_now = |i: &&Key| i.is_valid_at(cx.unix_ms);
        let good = issuer.filter(may).filter(is_now).is_some_and(|i| match &*i.secret {
            Secret::Public(key) => signed.verify_key(key).is_ok(),
            Secret::Hmac(secret) => signed.verify_hmac(secret).is_ok(),
        });
        if good && keys.add_certificate(&certificate) {
            self.fetched += 1;
        }
        true
    }

    pub(super) fn expire(&mut self, now: Tick) {
        self.asked.retain(|_, until| *until > now);
    }

    pub(super) fn next_end(&self) -> Option<Tick> {
        self.asked.values().min().copied()
    }
}
