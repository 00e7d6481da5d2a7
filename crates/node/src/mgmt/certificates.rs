//! Commands that wait for the certificate of their signer.

use super::Requester;
use super::authorize::Begun;
use onym_tables::Tick;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::{Name, NameRef};

/// Most commands that wait.
const WAITING_MAX: usize = 64;

/// How long a certificate is waited for before it is asked for again, in milliseconds.
const PATIENCE_MS: u64 = 2000;

/// How often a certificate is asked for.
const TRIES_MAX: u32 = 2;

/// One command and the certificate it waits for.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) check: Begun,
    pub(super) wanted: Name,
    /// The whole Interest of the command.
    pub(super) command: Vec<u8>,
    pub(super) requester: Requester,
    due: Tick,
    tries: u32,
}

impl Wanted {
    pub(super) fn new(
        check: Begun,
        wanted: Name,
        command: Vec<u8>,
        requester: Requester,
        now: Tick,
    ) -> Self {
        Self { check, wanted, command, requester, due: now.plus_ms(PATIENCE_MS), tries: 1 }
    }

    /// The Interest for the certificate: by the name of the key any certificate of it will do.
    pub(super) fn interest(&self, nonce: [u8; 4]) -> Vec<u8> {
        let mut wire = Vec::new();
        InterestBuilder {
            can_be_prefix: true,
            must_be_fresh: true,
            nonce: Some(nonce),
            lifetime_ms: Some(PATIENCE_MS),
            ..InterestBuilder::new(self.wanted.as_ref())
        }
        .write(&mut wire);
        wire
    }

    pub(super) fn may_retry(&self) -> bool {
        self.tries < TRIES_MAX
    }

    pub(super) fn retried(self, now: Tick) -> Self {
        Self { due: now.plus_ms(PATIENCE_MS), tries: self.tries + 1, ..self }
    }

    /// The same command, one certificate further.
    pub(super) fn next(self, wanted: Name, now: Tick) -> Self {
        Self { wanted, due: now.plus_ms(PATIENCE_MS), tries: 1, ..self }
    }
}

/// The commands that wait, at most [`WAITING_MAX`].
#[derive(Debug, Default)]
pub(super) struct Certificates {
    waiting: Vec<Wanted>,
}

impl Certificates {
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= WAITING_MAX
    }

    pub(super) fn insert(&mut self, wanted: Wanted) {
        self.waiting.push(wanted);
    }

    pub(super) fn next_timeout(&self) -> Option<Tick> {
        self.waiting.iter().map(|w| w.due).min()
    }

    /// Takes out what was waited for long enough.
    pub(super) fn take_due(&mut self, now: Tick) -> Vec<Wanted> {
        self.waiting.extract_if(.., |w| w.due <= now).collect()
    }

    /// Takes out what waits for a Data of this name.
    pub(super) fn take_for(&mut self, name: NameRef<'_>) -> Vec<Wanted> {
        self.waiting.extract_if(.., |w| w.wanted.as_ref().is_prefix_of(name)).collect()
    }
}
