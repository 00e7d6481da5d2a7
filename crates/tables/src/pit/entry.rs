//! One PIT entry: its in-records and out-records.

use super::Token;
use crate::{FaceId, Tick};
use smallvec::SmallVec;

/// A downstream: a face that waits for the Data.
#[derive(Debug, Clone)]
pub struct InRecord {
    /// The face.
    pub face: FaceId,
    /// Nonce of its latest Interest.
    pub nonce: u32,
    /// When its latest Interest ends.
    pub expiry: Tick,
    /// Its PIT token, to be returned with the answer.
    pub token: Token,
    /// Whether its latest Interest said NonDiscovery.
    pub non_discovery: bool,
    /// Whether it asked before its latest Interest.
    pub repeats: bool,
}

/// An upstream: a face to which the Interest was sent.
#[derive(Debug, Clone)]
pub struct OutRecord {
    /// The face.
    pub face: FaceId,
    /// Nonce of the Interest sent last.
    pub nonce: u32,
    /// When it was sent.
    pub sent: Tick,
    /// When it ends.
    pub expiry: Tick,
    /// The reason of a Nack that answered it (number on the wire).
    pub nack: Option<u8>,
    /// Suppression interval of a strategy that keeps it per upstream, in microseconds; 0 before
    /// the first retransmission.
    pub interval_us: u32,
    /// When the strategy gives the upstream up; [`Tick::NEVER`] when it does not.
    pub deadline: Tick,
    /// Marks of the strategy.
    pub marks: u8,
}

impl OutRecord {
    /// Whether an answer may still come: not expired and not answered by a Nack.
    #[must_use]
    pub fn is_pending(&self, now: Tick) -> bool {
        self.nack.is_none() && self.expiry > now
    }
}

/// What else is to be done when an entry ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Noted {
    /// The face that its octets are charged to, where they are many.
    pub charged: Option<FaceId>,
    /// Somebody looks at what answers it.
    pub is_looked_at: bool,
}

/// A pending Interest. `I` is what the strategy keeps with it.
#[derive(Debug, Clone, Default)]
pub struct Entry<I> {
    /// Downstreams, in order of arrival.
    pub ins: SmallVec<[InRecord; 1]>,
    /// Upstreams, in order of first use.
    pub outs: SmallVec<[OutRecord; 1]>,
    /// When it was made; what repeats its Interest does not make it younger.
    pub since: Tick,
    /// Nearly always there is nothing.
    pub noted: Option<Noted>,
    /// Information of the strategy; reset when the entry is made.
    pub info: I,
    /// Whether Data satisfied it.
    pub satisfied: bool,
    /// FreshnessPeriod of the Data that did, in milliseconds, at most `u32::MAX`.
    pub freshness_ms: u32,
}

impl<I> Entry<I> {
    /// The record of downstream `face`.
    #[must_use]
    pub fn in_record(&self, face: FaceId) -> Option<&InRecord> {
        self.ins.iter().find(|r| r.face == face)
    }

    /// The record of upstream `face`.
    #[must_use]
    pub fn out_record(&self, face: FaceId) -> Option<&OutRecord> {
        self.outs.iter().find(|r| r.face == face)
    }

    /// The record of upstream `face`, to change.
    pub fn out_record_mut(&mut self, face: FaceId) -> Option<&mut OutRecord> {
        self.outs.iter_mut().find(|r| r.face == face)
    }

    /// Whether some upstream may still answer.
    #[must_use]
    pub fn is_pending(&self, now: Tick) -> bool {
        self.outs.iter().any(|r| r.is_pending(now))
    }

    /// Empties the entry for its next use. The room of a few records is kept.
    pub(super) fn reset(&mut self)
    where
        I: Default,
    {
        if self.ins.spilled() || self.outs.spilled() {
            self.give_room_back();
        } else {
            self.ins.clear();
            self.outs.clear();
        }
        self.noted = None;
        self.info = I::default();
        self.satisfied = false;
        self.freshness_ms = 0;
    }
    #[cold]
    fn give_room_back(&mut self) {
        const KEPT: usize = 8;
        if self.ins.capacity() > KEPT {
            self.ins = SmallVec::new();
        } else {
            self.ins.clear();
        }
        if self.outs.capacity() > KEPT {
            self.outs = SmallVec::new();
        } else {
            self.outs.clear();
        }
    }
}
