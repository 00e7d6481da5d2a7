//! Certificates by their own key that are no anchor: their owner may publish a list of others of the
//! same key, and one of those may have a chain to an anchor.

use super::cache::Verified;
use super::listed::Listed;
use super::refusal::{Element, Refusal};
use super::validator::Validator;
use super::waiting::{State, Want};
use super::window::Window;
use crate::invite::certificate_list;
use onym_crypto::Certificate;
use onym_crypto::verify::Signed;
use onym_wire::Name;
use onym_wire::data::Data;

/// Most certificates of a list that are tried.
const TRIED_MAX: usize = 4;

impl Validator {
    /// Whether what is under way for `want` is a list.
    pub(super) fn is_list(&self, want: &Want) -> bool {
        let state = self.waiting.wanted.get(want).map(|wanted| &wanted.state);
        matches!(state, Some(State::List { .. }))
    }

    /// Asks for the list of certificates of the key of `certificate`, which came for `want`.
    pub(super) fn ask_list(&mut self, want: &Want, certificate: Certificate, now_ms: u64) {
        let mut name = certificate.key_name().to_name();
        name.append_keyword("auth");
        let id = self.fetch_newest(want, name.clone());
        self.asks(want, id, name, State::List { certificate }, now_ms);
    }

    /// Takes what came for a list, or why nothing came.
    pub(super) fn take_list(&mut self, want: Want, got: Result<&[u8], String>, now_ms: u64) {
        let state = self.waiting.wanted.get(&want).map(|wanted| wanted.state.clone());
        let Some(State::List { certificate }) = state else { return };
        let key = certificate.public_key().key_digest();
        let listed = got.and_then(|wire| read(wire, &certificate)).ok();
        let listed = listed.filter(|listed| self.newest.takes(&key, listed.version));
        let result = match listed {
            Some(listed) => self.next_listed(&want, certificate, listed, now_ms),
            None => Err(Refusal::NotAnAnchor(certificate.name().to_name())),
        };
        if let Some(result) = result.transpose() {
            self.settle(want, result, now_ms);
        }
    }

    /// Lets `certificate` wait for the next certificate of its list.
    fn next_listed(
        &mut self,
        want: &Want,
        certificate: Certificate,
        mut listed: Listed,
        now_ms: u64,
    ) -> Result<Option<()>, Refusal> {
        while let Some(name) = listed.left.pop_front() {
            if self.find(name.as_ref(), now_ms).is_some() {
                return self.listed(want, certificate, &name, listed, now_ms);
            }
            // It waits as for an issuer's.
            self.asks(want, 0, name.clone(), State::Fetching, now_ms);
            if self.link(want, certificate.clone(), name, now_ms).is_ok() {
                if let Some(wanted) = self.waiting.wanted.get_mut(want)
                    && let State::Issuer { listed: waits, .. } = &mut wanted.state
                {
                    *waits = Some(listed);
                }
                return Ok(None);
            }
        }
        Err(Refusal::NotAnAnchor(certificate.name().to_name()))
    }

    /// A certificate of the list is known: with the same public key it vouches for `certificate`.
    pub(super) fn listed(
        &mut self,
        want: &Want,
        certificate: Certificate,
        name: &Name,
        listed: Listed,
        now_ms: u64,
    ) -> Result<Option<()>, Refusal> {
        let found = self.find(name.as_ref(), now_ms);
        let same = found
            .filter(|(other, ..)| other.public_key().spki() == certificate.public_key().spki());
        let Some((_, window, depth, anchor)) = same else {
            return self.next_listed(want, certificate, listed, now_ms);
        };
        let depth = depth + 1;
        if depth > self.limits.depth {
            return Err(Refusal::TooDeep(self.limits.depth));
        }
        let window = Window::of(&certificate, Element::Chain).within(&window);
        let anchor = anchor.to_name();
        self.newest.remember(certificate.public_key().key_digest(), listed.version);
        let has_records = self.records.are_about(&certificate);
        let recorded = has_records.then_some((now_ms, self.records.keep_ms));
        self.cache.insert(Verified { certificate, window, depth, anchor, recorded });
        Ok(Some(()))
    }

    /// What waits for an issuer's certificate that does not come, or does not count.
    pub(super) fn without_issuer(
        &mut self,
        want: &Want,
        refusal: &Refusal,
        now_ms: u64,
    ) -> Result<Option<()>, Refusal> {
        let state = self.waiting.wanted.get(want).map(|wanted| wanted.state.clone());
        match state {
            Some(State::Issuer { certificate, listed: Some(listed), .. }) => {
                self.next_listed(want, certificate, listed, now_ms)
            }
            _ => Err(refusal.clone()),
        }
    }
}

/// What a list says, if it is one of the key of `certificate`, signed by it.
fn read(wire: &[u8], certificate: &Certificate) -> Result<Listed, String> {
    let data = Data::parse(wire).map_err(|e| e.to_string())?;
    Signed::data(&data).verify_key(certificate.public_key()).map_err(|e| e.to_string())?;
    let mut names = certificate_list(&data, certificate.key_name()).map_err(|e| e.to_string())?;
    names.retain(|name| certificate.name() != *name);
    names.truncate(TRIED_MAX);
    let version = data.name.get(certificate.key_name().len() + 1);
    Ok(Listed { version: version.and_then(|c| c.as_version()), left: names.into() })
}
