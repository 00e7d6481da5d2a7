//! Fragments back into packets: the only place of the data path that copies Data.
//!
//! Fragments that come in order are appended to one chunk; those before their turn wait beside it.
//! Bounds: packets and octets per face. At a bound the packet that was touched least recently, of
//! the neighbour that holds most, gives way: a neighbour that sends halves of packets hurts itself.

use super::config::ReassemblyLimits;
use super::verdict::FrameVerdict;
use crate::LpIn;
use onym_frame::{Buf, BufPool, ChunkMut};
use onym_tables::Tick;
use onym_wire::PACKET_LEN_MAX;
use onym_wire::lp::FRAGMENTS_MAX;
use std::collections::BTreeMap;
use std::time::Duration;

/// What a packet in reassembly is charged beside its octets.
const MESSAGE_CHARGE: usize = 256;

/// One fragment, its numbers as they came.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fragment<'a> {
    /// Which neighbour sent it.
    pub(crate) endpoint: u64,
    pub(crate) sequence: Option<u64>,
    pub(crate) index: u64,
    pub(crate) count: u64,
    pub(crate) bytes: &'a [u8],
}

/// What became of a fragment.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The packet is whole; its link-layer fields are those of its first fragment.
    Complete(Buf, LpIn),
    Held,
    Refused(FrameVerdict),
}

/// One packet in reassembly.
#[derive(Debug)]
struct Message {
    endpoint: u64,
    id: u64,
    count: u16,
    /// The fragment that is appended next; all before it are in the chunk.
    next: u16,
    chunk: ChunkMut,
    len: usize,
    /// Fragments that came before their turn.
    early: Vec<(u16, Vec<u8>)>,
    early_octets: usize,
    lp: LpIn,
    touched: Tick,
}

impl Message {
    fn charge(&self) -> usize {
        MESSAGE_CHARGE + self.len + self.early_octets
    }

    fn frames(&self) -> u64 {
        u64::from(self.next) + self.early.len() as u64
    }

    fn has(&self, index: u16) -> bool {
        index < self.next || self.early.iter().any(|(i, _)| *i == index)
    }

    fn append(&mut self, bytes: &[u8]) {
        self.chunk[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        self.next += 1;
    }

    fn insert(&mut self, index: u16, bytes: &[u8]) {
        if index != self.next {
            self.early_octets += bytes.len();
            self.early.push((index, bytes.to_vec()));
            return;
        }
        self.append(bytes);
        while let Some(at) = self.early.iter().position(|(i, _)| *i == self.next) {
            let (_, bytes) = self.early.swap_remove(at);
            self.early_octets -= bytes.len();
            self.append(&bytes);
        }
    }
}

/// Reassembly of one face.
#[derive(Debug)]
pub(crate) struct Reassembler {
    limits: ReassemblyLimits,
    /// How long an incomplete packet waits: the limit, longer where the neighbour sends again.
    patience: Duration,
    /// In the order of their first fragment; searched from the back, where the next one belongs.
    messages: Vec<Message>,
    /// Charge of each neighbour that has packets in reassembly.
    charges: BTreeMap<u64, usize>,
    charge: usize,
    pool: BufPool,
    /// Not later than the first timeout.
    timeout: Tick,
    /// Frames lost after they were held, because of the timer.
    pub(crate) frag_timeout: u64,
    /// Frames lost after they were held, because of a bound or a contradiction.
    pub(crate) frag_evicted: u64,
}

impl Reassembler {
    pub(crate) fn new(limits: ReassemblyLimits) -> Self {
        Self {
            limits,
            patience: limits.timeout,
            messages: Vec::new(),
            charges: BTreeMap::new(),
            charge: 0,
            pool: BufPool::new(PACKET_LEN_MAX, limits.messages_max),
            timeout: Tick::NEVER,
            frag_timeout: 0,
            frag_evicted: 0,
        }
    }

    /// Takes one fragment; `lp` gives its link-layer fields and is asked for the first one only.
    pub(crate) fn insert(
        &mut self,
        now: Tick,
        fragment: Fragment<'_>,
        lp: impl FnOnce() -> LpIn,
    ) -> Outcome {
        let Fragment { endpoint, sequence: Some(sequence), index, count, bytes } = fragment else {
            return Outcome::Refused(FrameVerdict::FragInvalid);
        };
        if index >= count || count > FRAGMENTS_MAX || bytes.len() > PACKET_LEN_MAX {
            return Outcome::Refused(FrameVerdict::FragInvalid);
        }
        let id = sequence.wrapping_sub(index);
        // No truncation: both are at most 400.
        #[allow(clippy::cast_possible_truncation)]
        let (index, count) = (index as u16, count as u16);
        let found = self.messages.iter().rposition(|m| m.id == id && m.endpoint == endpoint);
        if let Some(at) = found
            && let Some(refused) = self.contradiction(at, index, count, bytes.len())
        {
            return Outcome::Refused(refused);
        }
        let Some(at) = self.make_room(found, endpoint, bytes.len()) else {
            return Outcome::Refused(FrameVerdict::ReassemblyFull);
        };
        let at = at.unwrap_or_else(|| self.begin(endpoint, id, count));
        self.add(now, at, index, bytes, lp)
    }

    fn add(
        &mut self,
        now: Tick,
        at: usize,
        index: u16,
        bytes: &[u8],
        lp: impl FnOnce() -> LpIn,
    ) -> Outcome {
        let message = &mut self.messages[at];
        if index == 0 {
            message.lp = lp();
        }
        message.insert(index, bytes);
        message.touched = now;
        self.charge += bytes.len();
        *self.charges.entry(message.endpoint).or_default() += bytes.len();
        if message.next < message.count {
            self.timeout = self.timeout.min(now + self.patience);
            return Outcome::Held;
        }
        let message = self.remove(at);
        let whole = self.pool.freeze(message.chunk);
        Outcome::Complete(whole.slice(0..message.len), message.lp)
    }

    /// Why the fragment does not fit the message that it belongs to.
    fn contradiction(
        &mut self,
        at: usize,
        index: u16,
        count: u16,
        len: usize,
    ) -> Option<FrameVerdict> {
        let message = &self.messages[at];
        if message.count != count {
            return Some(FrameVerdict::FragInvalid);
        }
        if message.has(index) {
            return Some(FrameVerdict::DuplicateSequence);
        }
        if message.len + message.early_octets + len > PACKET_LEN_MAX {
            self.evict(at);
            return Some(FrameVerdict::FragInvalid);
        }
        None
    }

    /// Makes others give way until `len` more octets, and a new message where `found` is none, are
    /// within the bounds. Gives where the message is then, or `None` when that cannot be.
    fn make_room(
        &mut self,
        mut found: Option<usize>,
        endpoint: u64,
        len: usize,
    ) -> Option<Option<usize>> {
        let more = len + if found.is_none() { MESSAGE_CHARGE } else { 0 };
        loop {
            let crowded = found.is_none() && self.messages.len() >= self.limits.messages_max;
            if !crowded && self.charge + more <= self.limits.octets_max {
                return Some(found);
            }
            let victim = self.victim(found, endpoint)?;
            self.evict(victim);
            found = found.map(|at| if victim < at { at - 1 } else { at });
        }
    }

    /// The message that gives way: of the neighbour with the greatest charge, the one touched
    /// least recently, never the one at `keep`.
    fn victim(&self, keep: Option<usize>, endpoint: u64) -> Option<usize> {
        let most = self.charges.iter().max_by_key(|(_, charge)| **charge).map(|(e, _)| *e)?;
        let oldest_of = |endpoint: u64| {
            let of_it = self
                .messages
                .iter()
                .enumerate()
                .filter(|(at, m)| m.endpoint == endpoint && Some(*at) != keep);
            of_it.min_by_key(|(_, m)| m.touched).map(|(at, _)| at)
        };
        oldest_of(most).or_else(|| oldest_of(endpoint))
    }

    fn begin(&mut self, endpoint: u64, id: u64, count: u16) -> usize {
        self.charge += MESSAGE_CHARGE;
        *self.charges.entry(endpoint).or_default() += MESSAGE_CHARGE;
        self.messages.push(Message {
            endpoint,
            id,
            count,
            next: 0,
            chunk: self.pool.take(),
            len: 0,
            early: Vec::new(),
            early_octets: 0,
            lp: LpIn::default(),
            touched: Tick::default(),
        });
        self.messages.len() - 1
    }

    fn evict(&mut self, at: usize) {
        let message = self.remove(at);
        self.frag_evicted += message.frames();
        self.pool.put_back(message.chunk);
    }

    fn remove(&mut self, at: usize) -> Message {
        let message = self.messages.remove(at);
        self.charge -= message.charge();
        if let Some(charge) = self.charges.get_mut(&message.endpoint) {
            *charge -= message.charge();
            if *charge == 0 {
                self.charges.remove(&message.endpoint);
            }
        }
        message
    }

    /// Waits at least so long for the fragments of a packet, because they are sent again.
    pub(crate) fn set_patience(&mut self, patience: Duration) {
        self.patience = patience.max(self.limits.timeout);
    }

    /// When [`Self::handle_timeout`] wants to be called.
    pub(crate) fn poll_timeout(&self) -> Tick {
        self.timeout
    }

    /// Drops the packets whose next fragment did not come in time.
    pub(crate) fn handle_timeout(&mut self, now: Tick) {
        let limit = self.patience;
        while let Some(at) = self.messages.iter().position(|m| m.touched + limit <= now) {
            let message = self.remove(at);
            self.frag_timeout += message.frames();
            self.pool.put_back(message.chunk);
        }
        let first = self.messages.iter().map(|m| m.touched + limit).min();
        self.timeout = first.unwrap_or(Tick::NEVER);
    }

    /// Frames held now.
    pub(crate) fn frames(&self) -> u64 {
        self.messages.iter().map(Message::frames).sum()
    }

    /// Packets in reassembly.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }

    /// What all packets in reassembly are charged.
    #[cfg(test)]
    pub(crate) fn charge(&self) -> usize {
        self.charge
    }
}
