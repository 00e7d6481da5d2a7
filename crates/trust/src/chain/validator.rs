//! Judging packets, and saying which certificates are needed for it.

use super::anchors::{AnchorError, Anchors, GroupChange};
use super::cache::{Cache, Verified};
use super::claim::{Claim, Context, is_full};
use super::event::{Event, Failure, Judged, Trusted};
use super::refusal::{Element, Refusal};
use super::waiting::Waiting;
use super::window::Window;
use crate::policy::{KeyForm, Policy, Subject, Verdict};
use onym_crypto::Certificate;
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::{Name, NameRef, types};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What happens to a packet whose chain is not valid now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OldData {
    /// It is refused.
    #[default]
    Refuse,
    /// It is accepted when its chain was valid at a moment at which a witness saw it
    /// ([`Context::witness_ms`]), and it says that it was signed before that. The signature's own
    /// time alone proves nothing: who stole a key writes any time.
    AtWitnessedTime,
}

/// Bounds and choices of a [`Validator`].
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most certificates between a packet and its anchor.
    pub depth: usize,
    /// Most packets that wait for certificates.
    pub packets: usize,
    /// Most octets that waiting packets and certificates keep.
    pub octets: usize,
    /// Most certificates that are fetched at once.
    pub fetches: usize,
    /// Most verified certificates that are kept; the one added first is fetched again.
    pub cached: usize,
    /// How long a failure to get or verify a certificate is remembered, in milliseconds.
    pub failure_ms: u64,
    /// How long a certificate may take to come, in milliseconds.
    pub fetch_ms: u64,
    /// What happens to packets whose chain is over.
    pub old_data: OldData,
    /// Whether anchors count beyond their validity period, as ndn-cxx has it.
    pub expired_anchors: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 16,
            packets: 4096,
            octets: 16 << 20,
            fetches: 256,
            cached: 16_384,
            failure_ms: 10_000,
            fetch_ms: 30_000,
            old_data: OldData::Refuse,
            expired_anchors: false,
        }
    }
}

/// Believes packets by rules, anchors and the certificates between them.
#[derive(Debug)]
pub struct Validator {
    pub(super) policy: Arc<dyn Policy>,
    pub(super) anchors: Anchors,
    pub(super) limits: Limits,
    pub(super) cache: Cache,
    pub(super) waiting: Waiting,
    /// Failures by locator, until when.
    pub(super) failures: BTreeMap<Name, (u64, Refusal)>,
    pub(super) revoked: BTreeSet<Name>,
    pub(super) revoked_keys: BTreeSet<[u8; 32]>,
    pub(super) events: VecDeque<Event>,
}

impl Validator {
    /// Believes nothing yet: anchors come next.
    #[must_use]
    pub fn new(policy: Arc<dyn Policy>, limits: Limits) -> Self {
        Self {
            policy,
            anchors: Anchors::default(),
            limits,
            cache: Cache::new(limits.cached.max(1)),
            waiting: Waiting::default(),
            failures: BTreeMap::new(),
            revoked: BTreeSet::new(),
            revoked_keys: BTreeSet::new(),
            events: VecDeque::new(),
        }
    }

    /// The rules.
    #[must_use]
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// The anchors.
    #[must_use]
    pub const fn anchors(&self) -> &Anchors {
        &self.anchors
    }

    /// Verified certificates that are kept.
    #[must_use]
    pub fn cached(&self) -> usize {
        self.cache.len()
    }

    /// Packets that wait.
    #[must_use]
    pub const fn waiting(&self) -> usize {
        self.waiting.packets
    }

    /// Believes this certificate as it is.
    ///
    /// # Errors
    /// [`AnchorError`].
    pub fn add_anchor(&mut self, certificate: Certificate) -> Result<(), AnchorError> {
        self.failures.clear();
        self.anchors.add(certificate, &*self.policy)
    }

    /// Takes what a file or folder of anchors has now: what is new is added, what is gone or
    /// changed is believed no longer, nor what it vouched for.
    pub fn replace_anchors(&mut self, group: &str, certificates: Vec<Certificate>) -> GroupChange {
        let change = self.anchors.replace(group, certificates, &*self.policy);
        if change.removed > 0 {
            self.cache.clear();
        }
        if change != GroupChange::default() {
            self.failures.clear();
        }
        change
    }

    /// Puts a certificate, or a key with all its certificates, on the list of what is believed no
    /// longer. Chains over it are verified again.
    pub fn revoke(&mut self, name: NameRef<'_>) {
        self.revoked.insert(name.to_name());
        self.cache.clear();
    }

    /// As [`Validator::revoke`], by the SHA-256 of the public key.
    pub fn revoke_key(&mut self, digest: [u8; 32]) {
        self.revoked_keys.insert(digest);
        self.cache.clear();
    }

    /// Judges a Data. `None` says that it waits for certificates: [`Validator::poll`] has the
    /// answer later, under `ticket`.
    pub fn data(
        &mut self,
        wire: &[u8],
        ticket: u64,
        context: &Context,
    ) -> Option<Result<Trusted, Refusal>> {
        let data = match Data::parse(wire) {
            Ok(data) => data,
            Err(error) => return Some(Err(Refusal::Malformed(error.to_string()))),
        };
        let subject = Subject::data(data.name);
        let kind = data.signature_info().kind;
        if self.policy.allows_anything() {
            return Some(Ok(anything()));
        }
        if kind == types::SIGNATURE_DIGEST_SHA256 {
            if !self.policy.allows_digest(&subject.signed(kind)) {
                return Some(Err(Refusal::NoKey(kind)));
            }
            let integrity = onym_crypto::verify::integrity(&data);
            let malformed = |e: onym_crypto::Error| Refusal::Malformed(e.to_string());
            return Some(integrity.map(|()| anything()).map_err(malformed));
        }
        let claim = match Claim::data(&data) {
            Ok(claim) => claim,
            Err(refusal) => return Some(Err(refusal)),
        };
        if data.content_type == types::CONTENT_KEY
            && let Some(done) = self.own_certificate(&data, &claim, context)
        {
            return Some(done);
        }
        self.submit(&claim, ticket, context)
    }

    /// Judges a signed Interest of either form, as [`Validator::data`]. Replay is not judged here.
    pub fn interest(
        &mut self,
        wire: &[u8],
        ticket: u64,
        context: &Context,
    ) -> Option<Result<Trusted, Refusal>> {
        let interest = match Interest::parse(wire) {
            Ok(interest) => interest,
            Err(error) => return Some(Err(Refusal::Malformed(error.to_string()))),
        };
        if self.policy.allows_anything() {
            return Some(Ok(anything()));
        }
        match Claim::interest(&interest) {
            Ok(claim) => self.submit(&claim, ticket, context),
            Err(Refusal::NoKey(types::SIGNATURE_DIGEST_SHA256)) => {
                Some(self.digest_interest(&interest))
            }
            Err(refusal) => Some(Err(refusal)),
        }
    }

    fn digest_interest(&self, interest: &Interest<'_>) -> Result<Trusted, Refusal> {
        let malformed = |e: onym_crypto::Error| Refusal::Malformed(e.to_string());
        let signed = onym_crypto::verify::Signed::interest(interest).map_err(malformed)?;
        if !self.policy.allows_digest(&Subject::interest(signed.name)) {
            return Err(Refusal::NoKey(types::SIGNATURE_DIGEST_SHA256));
        }
        signed.verify_digest().map_err(malformed)?;
        Ok(anything())
    }

    /// A certificate that is judged as a packet: its own period counts, and an anchor needs no
    /// rule that says who signs it.
    fn own_certificate(
        &self,
        data: &Data<'_>,
        claim: &Claim<'_>,
        context: &Context,
    ) -> Option<Result<Trusted, Refusal>> {
        let certificate = Certificate::from_data(data).ok()?;
        if let Err(refusal) = self.check_revoked(&certificate) {
            return Some(Err(refusal));
        }
        let window = Window::of(&certificate, Element::Packet);
        if let Err(refusal) = self.check_time(&window, claim, context) {
            return Some(Err(refusal));
        }
        if !claim.is_by_itself() {
            return None;
        }
        let mut anchors = self.anchors.iter();
        let same = anchors.find(|a| a.public_key().spki() == certificate.public_key().spki());
        let Some(anchor) = same.filter(|a| a.key_name() == certificate.key_name()) else {
            return Some(Err(Refusal::NotAnAnchor(certificate.name().to_name())));
        };
        let anchor = anchor.name().to_name();
        Some(claim.verify(&certificate).map(|()| Trusted {
            rule: String::new(),
            key: anchor.clone(),
            anchor,
            depth: 0,
        }))
    }

    fn submit(
        &mut self,
        claim: &Claim<'_>,
        ticket: u64,
        context: &Context,
    ) -> Option<Result<Trusted, Refusal>> {
        match self.judge(claim, context.now_ms, Some(context)) {
            Judged::Done(Err(refusal)) => {
                self.note_end(claim, &refusal, context.now_ms);
                Some(Err(refusal))
            }
            Judged::Done(result) => Some(result),
            Judged::Unknown => self.wait_for(claim, ticket, context).err().map(Err),
        }
    }

    /// Forgets a chain that is over: what is renewed above it is found by the next fetch, which is
    /// made when the failure is forgotten and not for each packet.
    fn note_end(&mut self, claim: &Claim<'_>, refusal: &Refusal, now_ms: u64) {
        let is_over = matches!(refusal, Refusal::Expired { element: Element::Chain, .. });
        if !is_over || self.limits.old_data != OldData::Refuse {
            return;
        }
        self.cache.forget_expired(now_ms);
        self.remember_failure(&claim.locator.to_name(), refusal, now_ms);
    }

    /// Judges a claim with what is known. Without `context` it is a certificate's, whose period
    /// counts where it is used.
    pub(super) fn judge(
        &self,
        claim: &Claim<'_>,
        now_ms: u64,
        context: Option<&Context>,
    ) -> Judged {
        match self.try_judge(claim, now_ms, context) {
            Ok(Some(trusted)) => Judged::Done(Ok(trusted)),
            Ok(None) => Judged::Unknown,
            Err(refusal) => Judged::Done(Err(refusal)),
        }
    }

    fn try_judge(
        &self,
        claim: &Claim<'_>,
        now_ms: u64,
        context: Option<&Context>,
    ) -> Result<Option<Trusted>, Refusal> {
        let form = self.policy.key_form();
        let mut rule = None;
        if form == KeyForm::Locator || is_full(claim.locator) {
            // What the rules forbid is not worth a fetch.
            rule = Some(self.allow(claim, claim.locator)?);
        }
        let found = self.find(claim.locator, now_ms);
        let Some((certificate, window, depth, anchor)) = found else { return Ok(None) };
        if form == KeyForm::Certificate && certificate.name() != claim.locator {
            rule = Some(self.allow(claim, certificate.name())?);
        }
        self.check_revoked(certificate)?;
        if let Some(context) = context {
            self.check_time(&window, claim, context)?;
        }
        claim.verify(certificate)?;
        Ok(Some(Trusted {
            rule: rule.unwrap_or_default(),
            key: certificate.name().to_name(),
            anchor: anchor.to_name(),
            depth,
        }))
    }

    fn allow(&self, claim: &Claim<'_>, key: NameRef<'_>) -> Result<String, Refusal> {
        match self.policy.check(&claim.subject, key) {
            Verdict::Allowed { rule } => Ok(rule),
            Verdict::Denied(denial) => Err(Refusal::Denied(denial)),
        }
    }

    /// The trusted certificate that a locator means, with when its chain is valid.
    pub(super) fn find(
        &self,
        locator: NameRef<'_>,
        now_ms: u64,
    ) -> Option<(&Certificate, Window, usize, NameRef<'_>)> {
        if let Some(anchor) = self.anchors.find(locator, now_ms) {
            let window = if self.limits.expired_anchors {
                Window::always()
            } else {
                Window::of(anchor, Element::Anchor)
            };
            return Some((anchor, window, 0, anchor.name()));
        }
        let valid = self.cache.find(locator, now_ms);
        // Of old data the chain may be one that was valid once.
        let old = || match self.limits.old_data {
            OldData::AtWitnessedTime => self.cache.newest(locator),
            OldData::Refuse => None,
        };
        let found: &Verified = valid.or_else(old)?;
        Some((&found.certificate, found.window.clone(), found.depth, found.anchor.as_ref()))
    }

    pub(super) fn check_revoked(&self, certificate: &Certificate) -> Result<(), Refusal> {
        let names = [certificate.name(), certificate.key_name()];
        let by_name = names.iter().any(|name| self.revoked.contains(name.value()));
        let by_key = !self.revoked_keys.is_empty()
            && self.revoked_keys.contains(&certificate.public_key().key_digest());
        if by_name || by_key {
            return Err(Refusal::Revoked(certificate.name().to_name()));
        }
        Ok(())
    }

    /// Whether the chain is valid at the moment that counts.
    fn check_time(
        &self,
        window: &Window,
        claim: &Claim<'_>,
        context: &Context,
    ) -> Result<(), Refusal> {
        let Err(refusal) = window.check(context.now_ms) else { return Ok(()) };
        let is_over = matches!(refusal, Refusal::Expired { .. });
        if self.limits.old_data == OldData::Refuse || !is_over {
            return Err(refusal);
        }
        match (claim.time_ms, context.witness_ms) {
            (Some(signed), Some(seen)) if signed <= seen && seen <= context.now_ms => {
                window.check(signed)?;
                window.check(seen)
            }
            _ => Err(Refusal::NoWitness(claim.subject.name.to_name())),
        }
    }

    /// The next thing to do or to know.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// A fetch that failed.
    pub fn failed(&mut self, id: u64, failure: Failure, now_ms: u64) {
        let Some(name) = self.waiting.locator_of(id) else { return };
        let refusal = Refusal::NotFetched { name: name.clone(), why: failure.words() };
        self.settle(name, Err(refusal), now_ms);
    }

    /// Gives up what was asked for too long ago and forgets old failures. Call it now and then.
    pub fn advance(&mut self, now_ms: u64) {
        self.failures.retain(|_, (until, _)| *until > now_ms);
        let limit = self.limits.fetch_ms;
        for id in self.waiting.overdue(now_ms.saturating_sub(limit)) {
            self.failed(id, Failure::TimedOut, now_ms);
        }
    }
}

fn anything() -> Trusted {
    Trusted { rule: String::new(), key: Name::new(), anchor: Name::new(), depth: 0 }
}
