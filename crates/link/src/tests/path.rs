//! The path's MTU is found, lost and found again.

use super::*;
use crate::PathMtu;
use crate::path::BASE;

/// Two links over a path that carries frames of at most `mtu` octets whole. Longer ones arrive only where
/// their end lets them leave in IP fragments.
struct Pair {
    ends: [Link; 2],
    queues: [TxQueue; 2],
    /// Whether an end lets no frame leave in IP fragments.
    are_whole: [bool; 2],
    mtu: usize,
    first_hop: usize,
    now: Tick,
    /// Whether the second end listens at all.
    is_heard: bool,
    /// Octets of what the first end sent, and of that which was lost.
    sent: Vec<usize>,
    lost: Vec<usize>,
    arrived: u64,
}

impl Pair {
    fn new(mtu: usize) -> Self {
        let config =
            LinkConfig { path: PathMtu::Find, first_sequence: 77, ..LinkConfig::datagram(8800) };
        let other = LinkConfig { first_sequence: 99, ..LinkConfig::datagram(8800) };
        Self {
            ends: [Link::new(config), Link::new(other)],
            queues: [TxQueue::new(1 << 20), TxQueue::new(1 << 20)],
            are_whole: [false; 2],
            mtu,
            first_hop: 8952,
            now: Tick::from_ms(1),
            is_heard: true,
            sent: Vec::new(),
            lost: Vec::new(),
            arrived: 0,
        }
    }

    /// One millisecond: what is due is done, what is queued arrives.
    fn turn(&mut self) {
        self.now = self.now.plus_ms(1);
        for end in [0, 1] {
            if self.ends[end].poll_timeout() <= self.now {
                self.settle(end);
                self.ends[end].handle_timeout(self.now, &mut self.queues[end]);
                self.settle(end);
            }
            let is_whole = self.are_whole[end];
            for frame in frames(&mut self.queues[end]) {
                if end == 0 {
                    self.sent.push(frame.len());
                }
                if is_whole && frame.len() > self.mtu || end == 0 && !self.is_heard {
                    self.lost.push(frame.len());
                    continue;
                }
                let other = &mut self.ends[1 - end];
                if let Received::Packet(_) = receive_at(other, self.now, 0, &frame) {
                    self.arrived += u64::from(end == 0);
                }
            }
        }
    }

    /// What the owner of a face does.
    fn settle(&mut self, end: usize) {
        let link = &mut self.ends[end];
        if link.sends_whole() != self.are_whole[end] || link.wants_first_hop() {
            self.are_whole[end] = link.sends_whole();
            link.set_first_hop(self.first_hop);
        }
    }

    /// So much time passes while a short packet leaves now and then.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds.div_ceil(2) {
            self.send(100, 10);
            self.now = self.now.plus_ms(1990);
        }
    }

    /// The first end sends a packet of `len` octets every ten milliseconds for so long.
    fn send(&mut self, len: usize, ms: u64) -> u64 {
        let before = self.arrived;
        for turn in 0..ms {
            if turn % 10 == 0 {
                let item = transmit(PacketKind::Data, &data(len, 1), LpOut::default());
                let (link, queue) = (&mut self.ends[0], &mut self.queues[0]);
                link.send(self.now, &item, &[], queue).unwrap();
            }
            self.turn();
        }
        self.arrived - before
    }

    fn found(&self) -> usize {
        self.ends[0].counters().path_mtu
    }
}

#[test]
fn the_longest_frame_that_arrives_is_found_and_used() {
    for mtu in [1232, 1240, 1372, 1444, 1452, 1472, 4000, 8800] {
        let mut pair = Pair::new(mtu);
        pair.send(8000, 15_000);
        let found = pair.found();
        assert!(found <= mtu && found + 16 > mtu, "{mtu}: {found}");
        pair.lost.clear();
        assert_eq!(pair.send(8000, 1000), 100, "{mtu}");
        assert!(pair.lost.is_empty(), "{mtu}: {:?}", pair.lost);
    }
}

#[test]
fn what_the_first_hop_takes_is_tried_first() {
    let mut pair = Pair::new(1472);
    pair.first_hop = 1472;
    pair.send(8000, 100);
    assert_eq!(pair.found(), 1472);
}

#[test]
fn a_path_that_narrows_without_a_word_is_no_black_hole() {
    let mut pair = Pair::new(1472);
    pair.send(8000, 15_000);
    pair.mtu = 1372;
    pair.send(8000, 4000);
    assert_eq!(pair.send(8000, 1000), 100, "packets arrive again within four seconds");
    pair.send(8000, 10_000);
    assert!((1357..=1372).contains(&pair.found()), "{}", pair.found());
    // Where it becomes as wide as before, that is seen, too.
    pair.mtu = 1472;
    pair.pass(620);
    pair.send(8000, 10_000);
    assert!(pair.found() > 1456, "{}", pair.found());
}

#[test]
fn a_first_hop_that_takes_more_is_noticed_and_one_that_is_forged_is_not_believed() {
    let mut pair = Pair::new(1472);
    // As after an ICMP message of somebody: 552 octets less headers.
    pair.first_hop = 524;
    pair.send(8000, 15_000);
    assert_eq!(pair.found(), BASE);
    pair.first_hop = 1472;
    pair.pass(620);
    assert_eq!(pair.found(), 1472);
}

#[test]
fn what_found_no_room_to_be_asked_says_nothing_of_the_path() {
    let mut pair = Pair::new(1472);
    pair.send(8000, 15_000);
    let found = pair.found();
    for _ in 0..100 {
        // Somebody else filled the queue each time that something was due.
        let mut full = TxQueue::new(1);
        full.push(&[6, 0], None).unwrap();
        pair.ends[0].counters.frames_out += 1;
        pair.now = pair.now.plus_ms(2000);
        pair.ends[0].handle_timeout(pair.now, &mut full);
    }
    assert_eq!(pair.found(), found);
}

#[test]
fn a_path_that_carries_less_than_ipv6_asks_for_gets_ip_fragments() {
    let mut pair = Pair::new(900);
    pair.send(8000, 5000);
    assert_eq!((pair.found(), pair.ends[0].sends_whole()), (0, false));
    assert_eq!(pair.send(8000, 1000), 100);
}

#[test]
fn short_packets_and_silence_cause_no_probes() {
    let mut pair = Pair::new(1472);
    pair.send(BASE, 5000);
    assert!(pair.sent.iter().all(|len| *len == BASE), "{:?}", pair.sent);
    pair.send(8000, 15_000);
    pair.sent.clear();
    (0..5000).for_each(|_| pair.turn());
    assert!(pair.sent.len() <= 2, "{:?}", pair.sent);
    assert_eq!(pair.ends[0].poll_timeout(), Tick::NEVER);
    // What was found is still known, and asked again with the next long packet.
    assert_eq!(pair.send(8000, 10), 1);
    pair.turn();
    assert!(pair.sent.contains(&pair.found()), "{:?}", pair.sent);
}

#[test]
fn a_peer_that_does_not_answer_gets_what_it_got_before() {
    let mut pair = Pair::new(1472);
    pair.ends[1] = Link::new(LinkConfig { path: PathMtu::Off, ..LinkConfig::datagram(8800) });
    assert_eq!(pair.send(8000, 20_000), 2000);
    assert_eq!(pair.ends[1].counters().of(FrameVerdict::LpEmpty), 3);
    pair.pass(1200);
    assert_eq!(pair.send(8000, 10_000), 1000);
    assert_eq!(pair.ends[1].counters().of(FrameVerdict::LpEmpty), 6, "asked again, once");
    // It is replaced by one that asks itself.
    let asks = LinkConfig { path: PathMtu::Find, ..LinkConfig::datagram(8800) };
    pair.ends[1] = Link::new(asks);
    let item = transmit(PacketKind::Data, &data(8000, 2), LpOut::default());
    pair.ends[1].send(pair.now, &item, &[], &mut pair.queues[1]).unwrap();
    pair.send(8000, 15_000);
    assert!(pair.found() > 1456, "{}", pair.found());
}

#[test]
fn answers_that_nobody_asked_for_change_nothing_and_probes_wait_in_a_bound() {
    use onym_wire::lp::PathField;
    let mut pair = Pair::new(1472);
    pair.send(8000, 15_000);
    let found = pair.found();
    for nonce in 0..1000 {
        let mut answer = Vec::new();
        PathField::put_answer(&mut answer, nonce, 8800);
        assert!(matches!(receive_at(&mut pair.ends[0], pair.now, 0, &answer), Received::Idle));
        let mut short = Vec::new();
        PathField::put_probe(&mut short, nonce, 63);
        receive_at(&mut pair.ends[1], pair.now, 0, &short);
    }
    assert_eq!(pair.found(), found);
    pair.ends[1].handle_timeout(pair.now, &mut pair.queues[1]);
    assert!(pair.queues[1].is_empty(), "an answer is never longer than its probe");
    for nonce in 0..1000 {
        let mut probe = Vec::new();
        PathField::put_probe(&mut probe, nonce, 64);
        assert!(matches!(receive_at(&mut pair.ends[1], pair.now, 0, &probe), Received::Idle));
    }
    pair.ends[1].handle_timeout(pair.now, &mut pair.queues[1]);
    assert_eq!(frames(&mut pair.queues[1]).len(), 4);
}

#[test]
fn a_face_that_is_told_its_mtu_looks_for_no_other() {
    let mut pair = Pair::new(1472);
    pair.send(8000, 15_000);
    pair.ends[0].configure(LinkConfig::datagram(1000));
    assert!(!pair.ends[0].sends_whole());
    pair.sent.clear();
    assert_eq!(pair.send(8000, 1000), 100);
    assert!(pair.sent.iter().all(|len| *len <= 1000));
}

#[test]
fn a_peer_that_falls_silent_loses_nothing_that_would_have_arrived() {
    let mut pair = Pair::new(1472);
    pair.send(8000, 15_000);
    pair.is_heard = false;
    pair.send(8000, 20_000);
    assert_eq!((pair.found(), pair.ends[0].sends_whole()), (0, false));
    pair.is_heard = true;
    assert_eq!(pair.send(8000, 1000), 100);
    // It is asked again by itself, as a peer that was started again must be.
    pair.pass(600);
    pair.send(8000, 15_000);
    assert!(pair.found() > 1456, "{}", pair.found());
}
