//! Reliability over links that lose, repeat and reorder.

use super::*;

struct Rng(u64);

impl Rng {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// Two links and what is on its way between them, by arrival.
struct Pair {
    links: [Link; 2],
    queues: [TxQueue; 2],
    on_way: BTreeMap<(Tick, u64), (usize, Vec<u8>)>,
    rng: Rng,
    /// Frames lost and repeated, of 100.
    lost: u64,
    repeated: u64,
    /// Least and greatest delay, in milliseconds.
    delay: (u64, u64),
    serial: u64,
    now: Tick,
    /// What each end received.
    got: [Vec<Vec<u8>>; 2],
    given_up: Vec<Vec<u8>>,
}

impl Pair {
    fn new(seed: u64, lost: u64, repeated: u64) -> Self {
        let config = || LinkConfig { reliability: true, ..LinkConfig::datagram(600) };
        Self {
            links: [Link::new(config()), Link::new(config())],
            queues: [TxQueue::new(1 << 22), TxQueue::new(1 << 22)],
            on_way: BTreeMap::new(),
            rng: Rng(seed),
            lost,
            repeated,
            delay: (5, 8),
            serial: 0,
            now: Tick::default(),
            got: [Vec::new(), Vec::new()],
            given_up: Vec::new(),
        }
    }

    fn send(&mut self, from: usize, kind: PacketKind, bytes: &[u8]) {
        let item = transmit(kind, bytes, LpOut { pit_token: token(&[1]), ..LpOut::default() });
        self.links[from].send(self.now, &item, &[], &mut self.queues[from]).unwrap();
    }

    /// Puts what waits in the queues on its way.
    fn flush(&mut self) {
        for from in 0..2 {
            for frame in frames(&mut self.queues[from]) {
                assert!(frame.len() <= 600);
                let copies = match self.rng.below(100) {
                    n if n < self.lost => 0,
                    n if n < self.lost + self.repeated => 2,
                    _ => 1,
                };
                for _ in 0..copies {
                    let ms = self.delay.0 + self.rng.below(self.delay.1 - self.delay.0 + 1);
                    self.serial += 1;
                    let at = (self.now.plus_ms(ms), self.serial);
                    self.on_way.insert(at, (1 - from, frame.clone()));
                }
            }
        }
    }

    /// Runs until nothing happens any more, or until `limit`.
    fn run(&mut self, limit: Tick) {
        self.flush();
        loop {
            let arrival = self.on_way.first_key_value().map_or(Tick::NEVER, |((at, _), _)| *at);
            let timer = self.links.iter().map(Link::poll_timeout).min().unwrap();
            let at = arrival.min(timer).max(self.now);
            if at > limit {
                self.now = limit;
                return;
            }
            self.now = at;
            if arrival <= at {
                let (_, (to, frame)) = self.on_way.pop_first().unwrap();
                if let Received::Packet(p) = receive_at(&mut self.links[to], at, 0, &frame) {
                    self.got[to].push(p.bytes.to_vec());
                }
            }
            for end in 0..2 {
                self.links[end].handle_timeout(at, &mut self.queues[end]);
                while let Some(interest) = self.links[end].next_given_up() {
                    self.given_up.push(interest.to_vec());
                }
            }
            self.flush();
        }
    }
}

/// A packet that can be told from the others.
fn numbered(kind: PacketKind, number: u32, len: usize) -> Vec<u8> {
    let mut bytes = data(len, 0);
    if kind == PacketKind::Interest {
        bytes[0] = 5;
    }
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&number.to_be_bytes());
    bytes
}

#[test]
fn over_a_lossy_link_each_packet_arrives_exactly_once_or_is_given_up() {
    for seed in [1, 2, 3, 0xabcdef] {
        let mut pair = Pair::new(seed, 15, 5);
        let mut sent = BTreeSet::new();
        for number in 0..600 {
            let kind = if number % 2 == 0 { PacketKind::Interest } else { PacketKind::Data };
            let len = 30 + usize::try_from(number % 7).unwrap() * 300;
            let bytes = numbered(kind, number, len);
            pair.send(usize::try_from(number % 3 % 2).unwrap(), kind, &bytes);
            sent.insert(bytes);
            let until = pair.now.plus_ms(3);
            pair.run(until);
        }
        pair.run(Tick::from_ms(400_000));
        let all: Vec<_> = pair.got.concat();
        let once: BTreeSet<_> = all.iter().cloned().collect();
        assert_eq!(all.len(), once.len(), "seed {seed}: at most once");
        assert!(once.is_subset(&sent), "seed {seed}: unchanged");
        let counters = pair.links.each_ref().map(|l| l.counters().reliability);
        let given_up = counters[0].given_up + counters[1].given_up;
        let missing = sent.len() - once.len();
        assert!(missing as u64 <= given_up, "seed {seed}: {missing} missing, {given_up} given up");
        assert!(given_up < 30, "seed {seed}: {given_up} given up");
        assert!(counters[0].retransmitted > 50, "seed {seed}");
        // An Interest that did not arrive was reported.
        for lost in sent.difference(&once).filter(|bytes| bytes[0] == 5) {
            assert!(pair.given_up.contains(lost), "seed {seed}");
        }
        assert_eq!(pair.links[0].poll_timeout(), Tick::NEVER, "seed {seed}: nothing is left");
    }
}

#[test]
fn without_loss_nothing_is_sent_again_and_acknowledgements_ride_on_packets() {
    let mut pair = Pair::new(7, 0, 0);
    pair.delay = (10, 10);
    for number in 0..100 {
        pair.send(0, PacketKind::Interest, &numbered(PacketKind::Interest, number, 60));
        pair.send(1, PacketKind::Data, &numbered(PacketKind::Data, number, 500));
        let until = pair.now.plus_ms(2);
        pair.run(until);
    }
    pair.run(Tick::from_ms(100_000));
    for link in &pair.links {
        let counters = link.counters();
        assert_eq!(counters.reliability.retransmitted, 0);
        assert_eq!(counters.reliability.acknowledged, 100);
        assert!(counters.of(FrameVerdict::Idle) <= 10, "{counters:?}");
    }
}

#[test]
fn an_interest_that_never_arrives_is_reported_after_three_retransmissions() {
    let mut pair = Pair::new(9, 100, 0);
    let interest = numbered(PacketKind::Interest, 1, 60);
    pair.send(0, PacketKind::Interest, &interest);
    pair.send(0, PacketKind::Data, &numbered(PacketKind::Data, 2, 60));
    pair.run(Tick::from_ms(200_000));
    let counters = pair.links[0].counters().reliability;
    assert_eq!((counters.retransmitted, counters.given_up), (6, 2));
    assert_eq!(pair.given_up, [interest]);
}

#[test]
fn three_later_acknowledgements_resend_before_the_timeout() {
    let mut pair = Pair::new(11, 0, 0);
    pair.delay = (10, 10);
    for number in 0..4 {
        pair.send(0, PacketKind::Data, &numbered(PacketKind::Data, number, 60));
    }
    let mut waiting = frames(&mut pair.queues[0]);
    waiting.remove(0);
    for frame in waiting {
        pair.serial += 1;
        pair.on_way.insert((Tick::from_ms(10), pair.serial), (1, frame));
    }
    pair.run(Tick::from_ms(50));
    assert_eq!(pair.links[0].counters().reliability.retransmitted, 1);
    assert_eq!(pair.got[1].len(), 4);
}

#[test]
fn at_the_bound_packets_leave_without_a_promise() {
    let reliability_limits = ReliabilityLimits { unacked_max: 8, ..ReliabilityLimits::default() };
    let config = LinkConfig { reliability: true, reliability_limits, ..LinkConfig::datagram(600) };
    let mut link = Link::new(config);
    let mut queue = TxQueue::new(1 << 20);
    for number in 0..20 {
        let item =
            transmit(PacketKind::Data, &numbered(PacketKind::Data, number, 60), LpOut::default());
        link.send(Tick::default(), &item, &[], &mut queue).unwrap();
    }
    let promised = frames(&mut queue)
        .iter()
        .filter(|f| onym_wire::LpPacket::parse(f).is_ok_and(|p| p.tx_sequence.is_some()))
        .count();
    assert_eq!((promised, link.counters().reliability.unpromised), (8, 12));
}
