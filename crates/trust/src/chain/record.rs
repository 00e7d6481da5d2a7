//! Asking whether a certificate is revoked, where the policy asks for it: first its issuer's
//! record, then its owner's.

use super::event::Failure;
use super::refusal::Refusal;
use super::revocation::{Answer, Revoker, read, reason_words, record_name};
use super::validator::Validator;
use super::waiting::{State, Want};
use onym_crypto::Certificate;
use onym_wire::Name;

impl Validator {
    /// Whether what is under way for `want` is a record.
    pub(super) fn is_record(&self, want: &Want) -> bool {
        let state = self.waiting.wanted.get(want).map(|wanted| &wanted.state);
        matches!(state, Some(State::Record { .. }))
    }

    /// Asks for the record of `revoker` about the certificate that came for `want`.
    pub(super) fn ask_record(
        &mut self,
        want: &Want,
        certificate: Certificate,
        issuer: Name,
        revoker: Revoker,
        now_ms: u64,
    ) {
        let Some(name) = record_name(certificate.name(), revoker) else { return };
        let id = self.fetch_newest(want, name.clone());
        let state = State::Record { certificate, issuer, revoker };
        self.asks(want, id, name, state, now_ms);
    }

    /// What is under way for `want` is this now.
    pub(super) fn asks(&mut self, want: &Want, id: u64, name: Name, state: State, now_ms: u64) {
        let Some(wanted) = self.waiting.wanted.get_mut(want) else { return };
        self.waiting.by_id.remove(&wanted.id);
        self.waiting.octets += state.octets();
        self.waiting.octets -= wanted.state.octets();
        wanted.id = id;
        wanted.asked_ms = now_ms;
        wanted.asked = name;
        wanted.state = state;
    }

    /// Takes what came for a record, or why nothing came.
    pub(super) fn take_record(&mut self, want: Want, got: Result<&[u8], String>, now_ms: u64) {
        let state = self.waiting.wanted.get(&want).map(|wanted| wanted.state.clone());
        let Some(State::Record { certificate, issuer, revoker }) = state else { return };
        let name = || certificate.name().to_name();
        let answer =
            got.and_then(|wire| self.read_record(wire, &certificate, &issuer, revoker, now_ms));
        let result = match (answer, revoker) {
            (Ok(Answer::Revoked { reason }), by) => {
                Err(Refusal::RevokedByRecord { name: name(), by, reason: reason_words(reason) })
            }
            (Err(why), Revoker::Issuer) if self.records.needed => {
                Err(Refusal::NoRecord { name: name(), why })
            }
            (_, Revoker::Issuer) => {
                self.ask_record(&want, certificate, issuer, Revoker::Owner, now_ms);
                return;
            }
            (_, Revoker::Owner) => self.keep(certificate, issuer.as_ref(), now_ms),
        };
        self.settle(want, result, now_ms);
    }

    fn read_record(
        &self,
        wire: &[u8],
        certificate: &Certificate,
        issuer: &Name,
        revoker: Revoker,
        now_ms: u64,
    ) -> Result<Answer, String> {
        if wire.len() > onym_wire::PACKET_LEN_MAX {
            return Err(Failure::TooLong.words());
        }
        let keep_ms = self.records.keep_ms;
        match revoker {
            Revoker::Owner => {
                read(wire, certificate, revoker, certificate.public_key(), now_ms, keep_ms)
            }
            Revoker::Issuer => {
                let found = self.find(issuer.as_ref(), now_ms);
                let (by, ..) = found.ok_or("the issuer's certificate was forgotten")?;
                read(wire, certificate, revoker, by.public_key(), now_ms, keep_ms)
            }
        }
    }
}
