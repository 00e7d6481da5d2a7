//! Unanswered Interests of each face: round-trip times, and faces that do not answer.

use super::state::State;
use onym_link::PacketKind;
use onym_tables::{FaceId, NameHashes, Tick};
use std::collections::{BTreeMap, VecDeque};

/// Interests watched at once; beyond, the oldest is forgotten.
pub(super) const PENDING_MAX: usize = 65_536;

/// All faces, and what they were asked.
#[derive(Debug, Default)]
pub(super) struct Watch {
    states: BTreeMap<FaceId, State>,
    /// By name hash and face: when it was asked, and until when it is waited for.
    pending: BTreeMap<(u64, FaceId), (Tick, Tick)>,
    order: VecDeque<(Tick, u64, FaceId)>,
}

impl Watch {
    pub(super) fn state(&self, face: FaceId) -> State {
        self.states.get(&face).copied().unwrap_or_default()
    }

    pub(super) fn state_mut(&mut self, face: FaceId) -> &mut State {
        self.states.entry(face).or_default()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn forget(&mut self, face: FaceId) {
        self.states.remove(&face);
        self.pending.retain(|(_, f), _| *f != face);
        self.order.retain(|(_, _, f)| *f != face);
    }

    pub(super) fn sent(&mut self, face: FaceId, kind: PacketKind) {
        let state = self.state_mut(face);
        match kind {
            PacketKind::Interest => state.interests += 1,
            _ => state.data += 1,
        }
    }

    /// Whether `face` was asked for this name and has not answered yet.
    pub(super) fn waits(&self, hash: u64, face: FaceId) -> bool {
        self.pending.contains_key(&(hash, face))
    }

    pub(super) fn asked(&mut self, now: Tick, hash: u64, face: FaceId, lifetime_ms: u64) {
        // Those that were answered leave the order late; a name may stand in it several times.
        while self.pending.len() >= PENDING_MAX || self.order.len() >= 2 * PENDING_MAX {
            let Some((_, hash, face)) = self.order.pop_front() else { break };
            if self.pending.remove(&(hash, face)).is_some() {
                let state = self.state_mut(face);
                state.outstanding = state.outstanding.saturating_sub(1);
            }
        }
        let until = now.plus_ms(lifetime_ms.min(4000));
        self.order.push_back((until, hash, face));
        if self.pending.insert((hash, face), (now, until)).is_none() {
            self.state_mut(face).outstanding += 1;
        }
    }

    /// Data came from `face`.
    pub(super) fn answered(&mut self, now: Tick, face: FaceId, name: &[u8], hashes: &NameHashes) {
        let mut sent = self.pending.remove(&(hashes.whole, face));
        // The Interest may have asked for a prefix.
        let mut lengths = if sent.is_none() { hashes.lengths() } else { 0 };
        while lengths != 0 && sent.is_none() {
            let len = 63 - lengths.leading_zeros();
            lengths &= !(1 << len);
            let prefix = hashes.prefix(name, len as usize);
            sent = prefix.and_then(|p| self.pending.remove(&(p.hash, face)));
        }
        let Some((sent, _)) = sent else { return };
        self.state_mut(face).answered(now.since(sent));
    }

    /// A Nack came from `face`.
    pub(super) fn refused(
        &mut self,
        face: FaceId,
        hash: u64,
        fail_after: u32,
        now: Tick,
        hold_ms: u64,
    ) {
        if self.pending.remove(&(hash, face)).is_some() {
            self.state_mut(face).failed(now, fail_after, hold_ms);
        }
    }

    /// Notes what was not answered in time.
    pub(super) fn expire(&mut self, now: Tick, fail_after: u32, hold_down_ms: u64) {
        while let Some((until, hash, face)) = self.order.front().copied() {
            let known = self.pending.get(&(hash, face));
            if until > now && known.is_some() {
                return;
            }
            self.order.pop_front();
            // Asked again since: the later time counts.
            if known.is_some_and(|(_, latest)| *latest <= now) {
                self.pending.remove(&(hash, face));
                self.state_mut(face).failed(now, fail_after, hold_down_ms);
            }
        }
    }

    pub(super) fn next_end(&self) -> Option<Tick> {
        self.order.front().map(|(until, ..)| *until)
    }
}
