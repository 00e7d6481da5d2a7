//! Rules, anchors, revocations and the table of what was verified, as they are set and changed.

use super::anchors::{AnchorError, Anchors, GroupChange};
use super::cache::Cache;
use super::event::{Event, Failure};
use super::failures::Failures;
use super::listed::Newest;
use super::refusal::Refusal;
use super::revocation::{Records, Revoked};
use super::waiting::Waiting;
use crate::policy::Policy;
use onym_crypto::Certificate;
use onym_wire::{Name, NameRef};
use std::collections::VecDeque;
use std::sync::Arc;

/// What happens to a packet whose chain is not valid now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OldData {
    /// It is refused.
    #[default]
    Refuse,
    /// It is accepted when its chain was valid at a moment at which a witness saw it
    /// ([`super::Context::witness_ms`]), and it says that it was signed before that. The signature's own
    /// time alone proves nothing: who stole a key writes any time.
    AtWitnessedTime,
}

/// Bounds and choices of a [`Validator`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Whether an invitation that comes with Data lets in what the rules refuse: when it is signed
    /// by a key that may sign that Data itself.
    pub invitations: bool,
    /// Whether a certificate by its own key counts when its owner's list names another one of the
    /// same public key that has a chain to an anchor. Each unknown one costs a fetch more.
    pub certificate_lists: bool,
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
            invitations: true,
            certificate_lists: false,
        }
    }
}

/// What was judged so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets believed.
    pub accepted: u64,
    /// Packets refused.
    pub refused: u64,
    /// Of these, packets that a bound refused: nothing is said about them.
    pub busy: u64,
    /// Certificates and records asked for.
    pub fetches: u64,
    /// Of these, how many did not come in time or were of no use.
    pub failed: u64,
}

/// Believes packets by rules, anchors and the certificates between them.
#[derive(Debug, Clone)]
pub struct Validator {
    pub(super) policy: Arc<dyn Policy>,
    pub(super) anchors: Anchors,
    pub(super) limits: Limits,
    pub(super) cache: Cache,
    pub(super) waiting: Waiting,
    pub(super) failures: Failures,
    pub(super) revoked: Revoked,
    pub(super) records: Records,
    pub(super) newest: Newest,
    pub(super) counts: Counts,
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
            failures: Failures::new(limits.failure_ms),
            revoked: Revoked::default(),
            records: Records::default(),
            newest: Newest::default(),
            counts: Counts::default(),
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

    /// The list of what is believed no longer.
    #[must_use]
    pub const fn revoked(&self) -> &Revoked {
        &self.revoked
    }

    /// Verified certificates that are kept.
    #[must_use]
    pub fn cached(&self) -> usize {
        self.cache.len()
    }

    /// What was judged so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
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

    /// Judges by other rules from now on. Anchors that they have no root for are believed no longer,
    /// nor what any certificate vouched for: it is verified again.
    ///
    /// # Errors
    /// [`AnchorError::Denied`] when the rules have a root for none of the anchors; then nothing
    /// changes.
    pub fn set_policy(&mut self, policy: Arc<dyn Policy>) -> Result<(), AnchorError> {
        self.anchors.retain(&*policy)?;
        self.policy = policy;
        self.forget();
        Ok(())
    }

    /// Takes a whole list of what is believed no longer, in place of the one before. Whether it is
    /// another one.
    pub fn set_revoked(&mut self, revoked: Revoked) -> bool {
        let is_new = revoked != self.revoked;
        if is_new {
            self.revoked = revoked;
            self.forget();
        }
        is_new
    }

    /// Whose records of revocation are asked for.
    pub fn set_records(&mut self, records: Records) {
        self.records = records;
        self.forget();
    }

    /// Puts a certificate, or a key with all its certificates, on the list of what is believed no
    /// longer.
    pub fn revoke(&mut self, name: NameRef<'_>) {
        self.revoked.add(name);
        self.forget();
    }

    /// As [`Validator::revoke`], by the SHA-256 of the public key.
    pub fn revoke_key(&mut self, digest: [u8; 32]) {
        self.revoked.add_key(digest);
        self.forget();
    }

    /// Every chain is verified again, with the next packet.
    fn forget(&mut self) {
        self.cache.clear();
        self.failures.clear();
    }

    /// The certificate or record that must come next for what waits under `locator`, asked for at
    /// `via`.
    #[must_use]
    pub fn waits_for(&self, via: Option<u64>, locator: NameRef<'_>) -> Option<&Name> {
        self.waiting.top(&(via, locator.to_name()))
    }

    /// The next thing to do or to know.
    pub fn poll(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// A fetch that failed.
    pub fn failed(&mut self, id: u64, failure: Failure, now_ms: u64) {
        let Some(want) = self.waiting.of_fetch(id) else { return };
        self.counts.failed += 1;
        if self.is_record(&want) {
            return self.take_record(want, Err(failure.words()), now_ms);
        }
        if self.is_list(&want) {
            return self.take_list(want, Err(failure.words()), now_ms);
        }
        let refusal = Refusal::NotFetched { name: want.1.clone(), why: failure.words() };
        self.settle(want, Err(refusal), now_ms);
    }

    /// Asks again for what could not be had after this time, in place of [`Limits::failure_ms`].
    pub const fn ask_again_after(&mut self, failure_ms: u64) {
        self.limits.failure_ms = failure_ms;
        self.failures.keep_for(failure_ms);
    }

    /// Gives up what was asked for too long ago and forgets old failures. Call it now and then.
    pub fn advance(&mut self, now_ms: u64) {
        self.failures.forget_old(now_ms);
        for id in self.waiting.overdue(now_ms, self.limits.fetch_ms) {
            self.failed(id, Failure::TimedOut, now_ms);
        }
    }
}
