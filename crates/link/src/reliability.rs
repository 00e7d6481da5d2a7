//! Acknowledgement and retransmission of frames on one link.
//!
//! The sending half keeps what it sent until the neighbour acknowledges its TxSequence; the
//! receiving half queues acknowledgements and remembers which Sequences it has seen. Neither
//! sends: what has to be sent again waits in `lost` until the link service fetches it.

use super::config::ReliabilityLimits;
use crate::{LpOut, PacketKind};
use onym_frame::Buf;
use onym_tables::Tick;
use onym_tables::rtt::RttEstimator;
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;

/// Acknowledgements of later frames after which a frame is taken for lost.
const LATER_ACKS_MAX: u8 = 3;
/// Retransmissions of one frame before its packet is given up.
const RETRIES_MAX: u8 = 3;
/// How long an acknowledgement waits for a frame that carries it.
const IDLE_DELAY: Duration = Duration::from_millis(5);
/// A received Sequence is remembered this many timeouts: as long as the neighbour may repeat it.
const REMEMBER_RTOS: u32 = 8;
/// Least and greatest time that a received Sequence is remembered.
const REMEMBER_MIN: Duration = Duration::from_secs(1);
const REMEMBER_MAX: Duration = Duration::from_secs(60);

/// One frame's worth of a packet, enough to send it again.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    /// The whole network-layer packet.
    pub(crate) packet: Buf,
    /// The kind, of a packet of the pull half.
    pub(crate) kind: Option<PacketKind>,
    /// The part of the packet in this frame.
    pub(crate) range: Range<usize>,
    pub(crate) sequence: u64,
    pub(crate) index: u64,
    pub(crate) count: u64,
    /// Link-layer fields, on the first frame of a packet that has any.
    pub(crate) lp: Option<Box<LpOut>>,
    retries: u8,
}

impl Piece {
    pub(crate) fn new(packet: Buf, kind: Option<PacketKind>, sequence: u64) -> Self {
        let range = 0..packet.len();
        Self { packet, kind, range, sequence, index: 0, count: 1, lp: None, retries: 0 }
    }

    /// The Sequence of the first piece of the same packet.
    fn message(&self) -> u64 {
        self.sequence.wrapping_sub(self.index)
    }
}

#[derive(Debug)]
struct Sent {
    piece: Piece,
    at: Tick,
    later_acks: u8,
}

/// What reliability did, in frames (and packets given up).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReliabilityCounters {
    /// Frames acknowledged by the neighbour.
    pub acknowledged: u64,
    /// Frames sent again.
    pub retransmitted: u64,
    /// Packets given up after the last retransmission.
    pub given_up: u64,
    /// Frames sent without a promise, because too many were not acknowledged.
    pub unpromised: u64,
}

/// Reliability of one face.
#[derive(Debug)]
pub(crate) struct Reliability {
    limits: ReliabilityLimits,
    rtt: RttEstimator,
    /// Frames by TxSequence, from `first` on; `None` once acknowledged.
    sent: VecDeque<Option<Sent>>,
    first: u64,
    /// Pieces to be sent again.
    lost: VecDeque<Piece>,
    /// Interests given up, for the strategy.
    given_up: VecDeque<Buf>,
    acks: VecDeque<u64>,
    /// When acknowledgements leave without a packet.
    idle_at: Tick,
    recent: BTreeSet<u64>,
    recent_order: VecDeque<(Tick, u64)>,
    pub(crate) counters: ReliabilityCounters,
}

impl Reliability {
    pub(crate) fn new(limits: ReliabilityLimits) -> Self {
        Self {
            limits,
            rtt: RttEstimator::default(),
            sent: VecDeque::new(),
            first: 0,
            lost: VecDeque::new(),
            given_up: VecDeque::new(),
            acks: VecDeque::new(),
            idle_at: Tick::NEVER,
            recent: BTreeSet::new(),
            recent_order: VecDeque::new(),
            counters: ReliabilityCounters::default(),
        }
    }

    // === sending

    /// Whether `frames` more frames can be promised.
    pub(crate) fn has_room(&mut self, frames: usize) -> bool {
        let waiting = self.sent.len() + self.lost.len();
        let room = self.limits.unacked_max.saturating_sub(waiting) >= frames;
        if !room {
            self.counters.unpromised += frames as u64;
        }
        room
    }

    /// Keeps a piece that leaves now; gives its TxSequence.
    pub(crate) fn keep(&mut self, now: Tick, piece: Piece) -> u64 {
        self.sent.push_back(Some(Sent { piece, at: now, later_acks: 0 }));
        self.first + self.sent.len() as u64 - 1
    }

    /// The neighbour has the frame `tx_sequence`.
    pub(crate) fn acknowledge(&mut self, now: Tick, tx_sequence: u64) {
        let Some(at) = tx_sequence.checked_sub(self.first) else { return };
        let Ok(at) = usize::try_from(at) else { return };
        let Some(sent) = self.sent.get_mut(at).and_then(Option::take) else { return };
        self.counters.acknowledged += 1;
        if sent.piece.retries == 0 {
            self.rtt.sample(now.since(sent.at));
        }
        for earlier in 0..at {
            let Some(Some(sent)) = self.sent.get_mut(earlier) else { continue };
            sent.later_acks += 1;
            if sent.later_acks >= LATER_ACKS_MAX {
                self.lose(earlier);
            }
        }
        self.trim();
    }

    /// The frame at `at` did not arrive: send it again, or give its packet up.
    fn lose(&mut self, at: usize) {
        let Some(mut sent) = self.sent.get_mut(at).and_then(Option::take) else { return };
        if sent.piece.retries < RETRIES_MAX {
            sent.piece.retries += 1;
            self.lost.push_back(sent.piece);
            return;
        }
        self.forget_message(sent.piece.message());
        self.counters.given_up += 1;
        if sent.piece.kind == Some(PacketKind::Interest)
            && self.given_up.len() < self.limits.unacked_max
        {
            self.given_up.push_back(sent.piece.packet);
        }
    }

    /// Gives the other frames of a packet up as well.
    fn forget_message(&mut self, message: u64) {
        self.lost.retain(|piece| piece.message() != message);
        for slot in &mut self.sent {
            if slot.as_ref().is_some_and(|sent| sent.piece.message() == message) {
                *slot = None;
            }
        }
    }

    fn trim(&mut self) {
        while let Some(None) = self.sent.front() {
            self.sent.pop_front();
            self.first += 1;
        }
    }

    /// The next piece to send again.
    pub(crate) fn next_lost(&mut self) -> Option<Piece> {
        let piece = self.lost.pop_front()?;
        self.counters.retransmitted += 1;
        Some(piece)
    }

    /// The next Interest that was given up.
    pub(crate) fn next_given_up(&mut self) -> Option<Buf> {
        self.given_up.pop_front()
    }

    // === receiving

    /// Queues an acknowledgement.
    pub(crate) fn received_tx(&mut self, now: Tick, tx_sequence: u64) {
        if self.acks.is_empty() {
            self.idle_at = now + IDLE_DELAY;
        } else if self.acks.len() >= self.limits.acks_max {
            self.acks.pop_front();
        }
        self.acks.push_back(tx_sequence);
    }

    /// How long the neighbour may send a frame again.
    pub(crate) fn patience(&self) -> Duration {
        (self.rtt.rto() * REMEMBER_RTOS).clamp(REMEMBER_MIN, REMEMBER_MAX)
    }

    /// Whether `sequence` is new; remembers it.
    pub(crate) fn is_new(&mut self, now: Tick, sequence: u64) -> bool {
        let remember = self.patience();
        while let Some((at, oldest)) = self.recent_order.front() {
            if *at + remember > now && self.recent_order.len() < self.limits.recent_max {
                break;
            }
            self.recent.remove(oldest);
            self.recent_order.pop_front();
        }
        let new = self.recent.insert(sequence);
        if new {
            self.recent_order.push_back((now, sequence));
        }
        new
    }

    /// Takes as many acknowledgements as `room` octets of a frame hold.
    pub(crate) fn take_acks(&mut self, room: usize, into: &mut Vec<u64>) {
        let count = (room / ACK_LEN).min(self.acks.len());
        into.clear();
        into.extend(self.acks.drain(..count));
        if self.acks.is_empty() {
            self.idle_at = Tick::NEVER;
        }
    }

    /// Whether acknowledgements are due that no frame has carried.
    pub(crate) fn is_idle_due(&self, now: Tick) -> bool {
        self.idle_at <= now
    }

    // === time

    /// When [`Self::handle_timeout`] wants to be called.
    pub(crate) fn poll_timeout(&self) -> Tick {
        if !self.lost.is_empty() {
            return Tick::default();
        }
        // Frames are in the order of sending, so the first one times out first.
        let resend = match self.sent.front() {
            Some(Some(sent)) => sent.at + self.rtt.rto(),
            _ => Tick::NEVER,
        };
        resend.min(self.idle_at)
    }

    /// Takes frames for lost whose acknowledgement did not come in time.
    pub(crate) fn handle_timeout(&mut self, now: Tick) {
        let rto = self.rtt.rto();
        let mut expired = false;
        for at in 0..self.sent.len() {
            match &self.sent[at] {
                Some(sent) if sent.at + rto <= now => self.lose(at),
                Some(_) => break,
                None => continue,
            }
            expired = true;
        }
        if expired {
            self.rtt.back_off();
            self.trim();
        }
    }
}

/// An Ack field: type (3), length (1), TxSequence (8).
pub(crate) const ACK_LEN: usize = 12;
