//! Order and retransmission of control messages between two parts (P-40).
//!
//! A sender repeats from the first unacknowledged message; a receiver accepts only the next one.
//! Messages arrive once and in order, whatever the network loses. Within a node nothing is lost:
//! parts number their messages and acknowledge nothing.

use onym_tables::{KeyedMap, Tick};
use onym_wire::push::{Control, Label, Sequence};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// Most messages to one peer that wait.
pub const QUEUE_MAX: usize = 65_536;
/// Most messages to one peer that are under way.
pub const WINDOW: u32 = 256;
/// Most repetitions without an acknowledgement.
pub const TRIES_MAX: u32 = 12;
const TIMEOUT_MIN: Duration = Duration::from_millis(100);
const TIMEOUT_MAX: Duration = Duration::from_secs(2);

/// What to do with a message that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// Obey it.
    InOrder,
    /// It was obeyed before, or an earlier one is missing.
    NotNow,
    /// The session is not known here: its sender shall start another.
    Unknown,
}

/// One peer.
#[derive(Debug, Default)]
struct Peer {
    session: u32,
    /// Number of the last message that was queued.
    last: u32,
    /// Number of the last message that was sent at least once.
    sent: u32,
    waiting: VecDeque<Control>,
    tries: u32,
    /// How often the timeout doubled. It takes one of these back when what was repeated is
    /// acknowledged, and all when something else is, which alone tells the time of a round trip
    /// (Karn and Partridge, 1987).
    doubled: u32,
    /// When something was repeated last, while that is not acknowledged.
    repeated: Option<Tick>,
    due: Option<Tick>,
    round_trip: Option<Duration>,
    /// When the newest message left, while none was repeated since.
    timed: Option<(u32, Tick)>,
    taken: Sequence,
    before: u32,
}

impl Peer {
    fn first(&self) -> u32 {
        self.last
            .wrapping_sub(u32::try_from(self.waiting.len()).unwrap_or(u32::MAX))
            .wrapping_add(1)
    }

    fn timeout(&self) -> Duration {
        let base = self.round_trip.map_or(TIMEOUT_MIN, |r| (r * 3).max(TIMEOUT_MIN));
        (base * (1 << self.doubled)).min(TIMEOUT_MAX)
    }

    /// Everything up to `number` is acknowledged.
    fn note_round_trip(&mut self, now: Tick, number: u32) {
        if let Some((_, left)) = self.timed.take_if(|(timed, _)| *timed <= number) {
            let sample = now.since(left);
            self.round_trip = Some(self.round_trip.map_or(sample, |r| (r * 7 + sample) / 8));
            self.doubled = 0;
        } else if let Some(at) = self.repeated.take() {
            // Which copy is acknowledged is not known: it took this long at least.
            self.round_trip = self.round_trip.max(Some(now.since(at)));
            self.doubled = self.doubled.saturating_sub(1);
        }
    }

    /// Messages that may leave now for the first time.
    fn ready(&mut self, now: Tick) -> Vec<Control> {
        let first = self.first();
        let from = self.sent.wrapping_add(1).wrapping_sub(first);
        let until = WINDOW.min(u32::try_from(self.waiting.len()).unwrap_or(WINDOW));
        let ready: Vec<Control> =
            (from..until).filter_map(|i| self.waiting.get(i as usize).cloned()).collect();
        if let Some(message) = ready.last() {
            self.sent = message.sequence.number;
            self.timed.get_or_insert((self.sent, now));
            if self.due.is_none() {
                self.due = Some(now + self.timeout());
            }
        }
        ready
    }
}

/// What an acknowledgement brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Acked {
    /// Messages that may leave now.
    pub ready: Vec<Control>,
    /// The peer forgot the session, which ended.
    pub is_lost: bool,
    /// What waited in a session that ended.
    pub lost: Vec<Control>,
}

/// Control messages of one part or of several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages queued since the start, repetitions not counted.
    pub queued: u64,
    /// Messages that no peer acknowledged yet.
    pub unacknowledged: u64,
}

impl std::iter::Sum for Traffic {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self {
            queued: a.queued + b.queued,
            unacknowledged: a.unacknowledged + b.unacknowledged,
        })
    }
}

/// The sessions of one part with its peers.
#[derive(Debug)]
pub struct Courier {
    own: Label,
    sessions: u32,
    queued: u64,
    peers: KeyedMap<Label, Peer>,
    /// Peers that wait for an acknowledgement, with the session of what they sent.
    owed: BTreeSet<(Label, u32)>,
}

impl Courier {
    /// The sessions of a part of the node `own`, numbered from `boot` on, which differs from start
    /// to start of the node.
    #[must_use]
    pub fn new(own: Label, boot: u32) -> Self {
        Self { own, sessions: boot, queued: 0, peers: KeyedMap::default(), owed: BTreeSet::new() }
    }

    /// Queues a message and returns those that may leave; `None` when the queue is full and the
    /// session ended by it.
    pub fn send(&mut self, now: Tick, to: Label, mut message: Control) -> Option<Vec<Control>> {
        let sessions = &mut self.sessions;
        let peer = self.peers.entry(to).or_default();
        if peer.session == 0 {
            *sessions = sessions.wrapping_add(1).max(1);
            peer.session = *sessions;
        }
        if peer.waiting.len() >= QUEUE_MAX {
            self.end(to);
            return None;
        }
        peer.last += 1;
        self.queued += 1;
        message.sequence = Sequence { session: peer.session, number: peer.last };
        if to == self.own {
            return Some(vec![message]);
        }
        peer.waiting.push_back(message);
        Some(peer.ready(now))
    }

    /// Place of the message that was queued last.
    #[must_use]
    pub fn last_sent(&self, to: Label) -> Sequence {
        self.peers
            .get(&to)
            .map(|p| Sequence { session: p.session, number: p.last })
            .unwrap_or_default()
    }

    /// Ends the session to a peer; returns what was not acknowledged.
    pub fn end(&mut self, to: Label) -> Vec<Control> {
        let Some(peer) = self.peers.get_mut(&to) else { return Vec::new() };
        let lost = peer.waiting.drain(..).collect();
        (peer.session, peer.last, peer.sent, peer.tries, peer.doubled) = (0, 0, 0, 0, 0);
        (peer.due, peer.timed, peer.repeated) = (None, None, None);
        lost
    }

    /// Forgets a peer.
    pub fn forget(&mut self, peer: Label) {
        self.peers.remove(&peer);
    }

    /// Whether everything sent to a peer was acknowledged.
    #[must_use]
    pub fn is_idle(&self, to: Label) -> bool {
        self.peers.get(&to).is_none_or(|p| p.waiting.is_empty())
    }

    /// Messages to a peer that are not acknowledged.
    #[must_use]
    pub fn waiting(&self, to: Label) -> usize {
        self.peers.get(&to).map_or(0, |p| p.waiting.len())
    }

    /// How much was sent, and how much of it is on its way.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let unacknowledged = self.peers.values().map(|p| p.waiting.len() as u64).sum();
        Traffic { queued: self.queued, unacknowledged }
    }

    /// Judges a message that came.
    pub fn take(&mut self, from: Label, sequence: Sequence) -> Taken {
        if sequence.number == 0 {
            return Taken::InOrder;
        }
        let peer = self.peers.entry(from).or_default();
        if sequence.session == peer.taken.session {
            if sequence.number != peer.taken.number.wrapping_add(1) {
                return Taken::NotNow;
            }
            peer.taken.number = sequence.number;
            return Taken::InOrder;
        }
        if sequence.session == peer.before {
            return Taken::NotNow;
        }
        if sequence.number != 1 {
            return Taken::Unknown;
        }
        peer.before = peer.taken.session;
        peer.taken = sequence;
        Taken::InOrder
    }

    /// Notes that a peer is to hear how far its messages of `session` came.
    pub fn owe(&mut self, to: Label, session: u32) {
        if to != self.own {
            self.owed.insert((to, session));
        }
    }

    /// Whether acknowledgements are owed.
    #[inline]
    #[must_use]
    pub fn owes(&self) -> bool {
        !self.owed.is_empty()
    }

    /// The acknowledgements that are owed: one for all that came of a session since the last.
    pub fn pay(&mut self) -> Vec<(Label, Sequence)> {
        let owed = std::mem::take(&mut self.owed);
        owed.into_iter().map(|(to, session)| (to, self.taken(to, session))).collect()
    }

    /// What to acknowledge to a peer after a message of `session`: number 0 tells an unknown one.
    #[must_use]
    pub fn taken(&self, from: Label, session: u32) -> Sequence {
        match self.peers.get(&from) {
            Some(peer) if peer.taken.session == session => peer.taken,
            _ => Sequence { session, number: 0 },
        }
    }

    /// A peer acknowledged everything up to `sequence`.
    pub fn acked(&mut self, now: Tick, from: Label, sequence: Sequence) -> Acked {
        let Some(peer) = self.peers.get_mut(&from) else { return Acked::default() };
        if sequence.session != peer.session || peer.session == 0 {
            return Acked::default();
        }
        if sequence.number == 0 {
            let is_lost = peer.first() > 1;
            let lost = if is_lost { self.end(from) } else { Vec::new() };
            return Acked { ready: Vec::new(), is_lost, lost };
        }
        let before = peer.waiting.len();
        while peer.waiting.front().is_some_and(|m| m.sequence.number <= sequence.number) {
            peer.waiting.pop_front();
        }
        if peer.waiting.len() == before {
            return Acked::default();
        }
        peer.note_round_trip(now, sequence.number);
        peer.tries = 0;
        peer.due = (!peer.waiting.is_empty()).then(|| now + peer.timeout());
        Acked { ready: peer.ready(now), ..Acked::default() }
    }

    /// Messages whose acknowledgement is overdue, and peers that were given up.
    pub fn repeat(&mut self, now: Tick) -> (Vec<(Label, Control)>, Vec<Label>) {
        let (mut again, mut lost) = (Vec::new(), Vec::new());
        for (label, peer) in &mut self.peers {
            if peer.due.is_none_or(|due| due > now) {
                continue;
            }
            if peer.tries >= TRIES_MAX {
                lost.push(*label);
                continue;
            }
            peer.tries += 1;
            peer.doubled = (peer.doubled + 1).min(5);
            (peer.timed, peer.repeated) = (None, Some(now));
            peer.due = Some(now + peer.timeout());
            let count = peer.sent.wrapping_sub(peer.first()).wrapping_add(1) as usize;
            again.extend(peer.waiting.iter().take(count).map(|m| (*label, m.clone())));
        }
        // The order of a hash table must not show.
        lost.sort_unstable();
        again.sort_by_key(|(label, message)| (*label, message.sequence));
        lost.iter().for_each(|label| drop(self.end(*label)));
        (again, lost)
    }

    /// When [`repeat`](Self::repeat) has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Tick> {
        self.peers.values().filter_map(|p| p.due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_tables::Rng;
    use onym_wire::push::Kind;

    const A: Label = Label([1; 8]);
    const OWN: Label = Label([2; 8]);

    fn message(n: u64) -> Control {
        Control { number: n, ..Control::new(Kind::MATCH, A) }
    }

    /// Sends `count` messages through a network that loses `loss` per cent; what arrived.
    fn through(loss: u64, count: u64, seed: u64) -> Vec<u64> {
        let (mut to, mut from) = (Courier::new(OWN, 5), Courier::new(OWN, 9));
        let mut rng = Rng::new(seed);
        let mut now = Tick(0);
        let mut got = Vec::new();
        let mut under_way: Vec<Control> = Vec::new();
        for n in 1..=count {
            under_way.extend(to.send(now, A, message(n)).unwrap());
        }
        while !to.is_idle(A) {
            for m in std::mem::take(&mut under_way) {
                if rng.below(100) < loss {
                    continue;
                }
                if from.take(A, m.sequence) == Taken::InOrder {
                    got.push(m.number);
                }
                let ack = from.taken(A, m.sequence.session);
                if rng.below(100) >= loss {
                    under_way.extend(to.acked(now, A, ack).ready);
                }
            }
            now = now.plus_ms(10);
            let (again, lost) = to.repeat(now);
            assert!(lost.is_empty(), "seed {seed}");
            under_way.extend(again.into_iter().map(|(_, m)| m));
        }
        got
    }

    #[test]
    fn messages_arrive_once_and_in_order_whatever_is_lost() {
        for (loss, count) in [(0, 1000), (10, 700), (40, 40)] {
            for seed in 0..5 {
                let want: Vec<u64> = (1..=count).collect();
                assert_eq!(through(loss, count, seed), want, "{loss}%, seed {seed}");
            }
        }
    }

    #[test]
    fn a_receiver_that_forgot_makes_the_sender_start_again() {
        let mut to = Courier::new(OWN, 5);
        let mut from = Courier::new(OWN, 9);
        let first = to.send(Tick(0), A, message(1)).unwrap();
        assert_eq!(from.take(A, first[0].sequence), Taken::InOrder);
        assert!(!to.acked(Tick(0), A, from.taken(A, first[0].sequence.session)).is_lost);
        let mut from = Courier::new(OWN, 10);
        let second = to.send(Tick(0), A, message(2)).unwrap();
        assert_eq!(from.take(A, second[0].sequence), Taken::Unknown);
        let ack = from.taken(A, second[0].sequence.session);
        assert_eq!(ack.number, 0);
        assert!(to.acked(Tick(0), A, ack).is_lost);
        let third = to.send(Tick(0), A, message(3)).unwrap();
        assert_eq!(third[0].sequence.number, 1);
        assert_eq!(from.take(A, third[0].sequence), Taken::InOrder);
    }

    #[test]
    fn a_silent_peer_is_given_up() {
        let mut to = Courier::new(OWN, 5);
        to.send(Tick(0), A, message(1)).unwrap();
        let mut repeated = 0;
        loop {
            let now = to.next_timeout().unwrap();
            let (again, lost) = to.repeat(now);
            repeated += again.len();
            if !lost.is_empty() {
                assert_eq!(lost, [A]);
                break;
            }
        }
        assert_eq!(repeated, TRIES_MAX as usize);
        assert_eq!(to.next_timeout(), None);
    }

    /// A peer that answers after half a second: how often each of `count` messages was repeated.
    fn repeated_to_a_slow_peer(count: u64) -> Vec<u64> {
        let late = Duration::from_millis(500);
        let (mut to, mut now) = (Courier::new(OWN, 5), Tick(0));
        let mut repeated = Vec::new();
        for n in 1..=count {
            let sent = to.send(now, A, message(n)).unwrap();
            let answered = now + late;
            let mut times = 0;
            while let Some(due) = to.next_timeout().filter(|due| *due < answered) {
                times += to.repeat(due).0.len() as u64;
            }
            now = answered;
            to.acked(now, A, sent[0].sequence);
            repeated.push(times);
        }
        repeated
    }

    #[test]
    fn what_a_slow_peer_has_is_not_repeated_for_ever() {
        let repeated = repeated_to_a_slow_peer(6);
        assert!(repeated[0] > 0, "its slowness is not known at first");
        assert_eq!(repeated[2..], [0; 4], "{repeated:?}");
    }

    #[test]
    fn a_node_acknowledges_nothing_to_itself() {
        let mut to = Courier::new(OWN, 5);
        let mut from = Courier::new(OWN, 9);
        for n in 1..=1000 {
            let sent = to.send(Tick(0), OWN, message(n)).unwrap();
            assert_eq!(from.take(OWN, sent[0].sequence), Taken::InOrder, "{n}");
            from.owe(OWN, sent[0].sequence.session);
        }
        assert_eq!((to.traffic().unacknowledged, to.next_timeout()), (0, None));
        assert_eq!(from.pay(), []);
    }

    #[test]
    fn what_came_together_is_acknowledged_together() {
        let mut to = Courier::new(OWN, 5);
        let mut from = Courier::new(OWN, 9);
        for n in 1..=3 {
            let sent = to.send(Tick(0), A, message(n)).unwrap();
            assert_eq!(from.take(A, sent[0].sequence), Taken::InOrder);
            from.owe(A, sent[0].sequence.session);
        }
        let owed = from.pay();
        assert_eq!(owed.iter().map(|(to, s)| (*to, s.number)).collect::<Vec<_>>(), [(A, 3)]);
        assert_eq!(from.pay(), []);
    }

    #[test]
    fn a_late_message_of_the_session_before_changes_nothing() {
        let mut from = Courier::new(OWN, 1);
        let of = |session, number| Sequence { session, number };
        assert_eq!(from.take(A, of(7, 1)), Taken::InOrder);
        assert_eq!(from.take(A, of(8, 1)), Taken::InOrder);
        assert_eq!(from.take(A, of(7, 1)), Taken::NotNow);
        assert_eq!(from.take(A, of(8, 3)), Taken::NotNow);
        assert_eq!(from.take(A, of(8, 2)), Taken::InOrder);
    }
}
