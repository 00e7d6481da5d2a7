use super::*;
use crate::svs::Check;
use onym_crypto::Signer;
use onym_endpoint::Inbound;
use onym_tables::{Rng, Tick};
use onym_wire::Name;
use std::collections::BTreeMap;

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

#[test]
fn keys_and_rows_are_those_of_psync() {
    // Computed by its rules, the first one also by NDNts.
    assert_eq!(murmur3(11, &0xF6A7_7ABA_u32.to_le_bytes()), 0x6BA3_4D63);
    assert_eq!(name_key(&name("/p/n"), 1), 0xEBA9_C35F);
    assert_eq!(murmur3(11, &0xEBA9_C35F_u32.to_le_bytes()), 0x6820_4002);
    for (expected, key, check, rows) in [
        (10, 0xF6A7_7ABA_u32, 0x6BA3_4D63_u32, [0, 6, 12]),
        (80, 0xEBA9_C35F, 0x6820_4002, [21, 56, 102]),
    ] {
        let mut table = Iblt::new(expected);
        table.insert(key);
        let octets = table.encode(Form::Plain);
        assert_eq!(octets.len(), expected * 3 / 2 * 12);
        let one = [&1i32.to_be_bytes()[..], &key.to_be_bytes(), &check.to_be_bytes()].concat();
        for (at, row) in octets.chunks(12).enumerate() {
            let wanted = if rows.contains(&at) { &one[..] } else { &[0; 12][..] };
            assert_eq!(row, wanted, "{at}");
        }
        for form in [Form::Plain, Form::Zlib] {
            let again = Iblt::new(expected).decode_alike(&table.encode(form), form);
            assert_eq!(again, Ok(table.clone()));
        }
    }
}

#[test]
fn a_small_difference_is_read_and_a_large_one_is_not() {
    let mut rng = Rng::new(3);
    let mut read = 0;
    for round in 0..200 {
        let (mut a, mut b) = (Iblt::new(80), Iblt::new(80));
        for _ in 0..500 {
            let key = rng.next_u32();
            a.insert(key);
            b.insert(key);
        }
        let mut ours: Vec<u32> = (0..20).map(|_| rng.next_u32()).collect();
        let mut theirs: Vec<u32> = (0..round % 25).map(|_| rng.next_u32()).collect();
        ours.iter().for_each(|key| a.insert(*key));
        theirs.iter().for_each(|key| b.insert(*key));
        if let Some(mut difference) = a.difference(&b) {
            read += 1;
            [&mut difference.ours, &mut difference.theirs, &mut ours, &mut theirs]
                .into_iter()
                .for_each(|side| side.sort_unstable());
            assert_eq!((difference.ours, difference.theirs), (ours, theirs));
        }
    }
    println!("{read} of 200 differences read");
    assert!(read >= 195, "{read}");
    let mut many = Iblt::new(80);
    (0..1000).for_each(|_| many.insert(rng.next_u32()));
    assert_eq!(many.difference(&Iblt::new(80)), None);
}

#[test]
fn a_table_that_was_made_up_ends_the_reading() {
    let mut rng = Rng::new(5);
    for _ in 0..500 {
        let octets: Vec<u8> = (0..1440).map(|_| rng.next_u64().to_be_bytes()[0] & 1).collect();
        let made_up = Iblt::new(80).decode_alike(&octets, Form::Plain).expect("the right length");
        let _ = Iblt::new(80).difference(&made_up);
    }
    // A short packet that unpacks to much is refused.
    let bomb = miniz_oxide::deflate::compress_to_vec_zlib(&vec![0; 50_000_000], 9);
    assert!(Iblt::new(80).decode_alike(&bomb, Form::Zlib).is_err());
    assert!(full::read_content(&bomb, Form::Zlib).is_err());
}

/// Members on one medium; an Interest reaches all others, a Data, too.
struct Group {
    nodes: Vec<Full>,
    now: Tick,
    rng: Rng,
    loss_percent: u64,
    air: BTreeMap<(Tick, u64), (usize, Vec<u8>)>,
    copies: u64,
}

impl Group {
    fn new(n: usize, loss_percent: u64, seed: u64) -> Self {
        println!("{n} members, {loss_percent} % loss, seed {seed}");
        let mut rng = Rng::new(seed);
        let config = FullConfig {
            check: Check::Nothing,
            ..FullConfig::new(name("/psync"), Signer::digest())
        };
        let nodes = (0..n).map(|_| Full::new(Tick(0), 1, config.clone(), rng.next_u64())).collect();
        Self { nodes, now: Tick(0), rng, loss_percent, air: BTreeMap::new(), copies: 0 }
    }

    fn drain(&mut self) {
        for from in 0..self.nodes.len() {
            while self.nodes[from].poll_event().is_some() {}
            while let Some(transmit) = self.nodes[from].poll_transmit() {
                for to in (0..self.nodes.len()).filter(|to| *to != from) {
                    if self.rng.below(100) >= self.loss_percent {
                        self.copies += 1;
                        let at = self.now.plus_ms(1 + self.rng.below(20));
                        self.air.insert((at, self.copies), (to, transmit.to_frame()));
                    }
                }
            }
        }
    }

    fn run(&mut self, ms: u64) {
        let end = self.now.plus_ms(ms);
        loop {
            self.drain();
            let arrival = self.air.keys().next().map_or(Tick::NEVER, |(at, _)| *at);
            let timer = self.nodes.iter().map(Full::poll_timeout).min().unwrap_or(Tick::NEVER);
            if arrival.min(timer) > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(arrival.min(timer));
            while let Some(entry) = self.air.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to, frame) = entry.remove();
                let inbound = Inbound::from_frame(&frame).expect("a frame");
                self.nodes[to].receive(self.now, &inbound);
            }
            self.nodes.iter_mut().for_each(|node| node.handle_timeout(self.now));
        }
    }

    fn is_equal(&self) -> bool {
        let known = |node: &Full| node.known().map(|(n, s)| (n.clone(), s)).collect::<Vec<_>>();
        self.nodes.iter().all(|node| known(node) == known(&self.nodes[0]))
    }
}

#[test]
fn all_members_know_the_same_within_10_s_at_any_loss_to_30_percent() {
    for (n, loss, seed) in [(2, 0, 1), (5, 0, 2), (5, 10, 3), (10, 30, 4)] {
        let mut group = Group::new(n, loss, seed);
        for round in 0..10 {
            for at in 0..n {
                let (now, prefix) = (group.now, name(&format!("/member/{at}")));
                assert_eq!(group.nodes[at].publish(now, &prefix), round + 1);
            }
            group.run(200);
        }
        group.run(10_000);
        assert!(group.is_equal());
        assert!(group.nodes[0].known().all(|(_, seq)| seq == 10));
        assert_eq!(group.nodes[0].known().count(), n);
    }
}

#[test]
fn a_newcomer_who_lacks_more_than_a_table_tells_is_told_everything() {
    let mut group = Group::new(3, 0, 6);
    for i in 0..1000 {
        let now = group.now;
        group.nodes[0].publish(now, &name(&format!("/a/long/prefix/of/member/{i}")));
    }
    group.run(10_000);
    assert!(group.is_equal());
    assert_eq!(group.nodes[2].known().count(), 1000);
}

#[test]
fn content_is_read_as_it_is_written_and_whole_or_not_at_all() {
    let names = [(name("/a"), 1), (name("/b/c"), 300)];
    for form in [Form::Plain, Form::Zlib] {
        let wire = full::write_content(&names, form);
        assert_eq!(full::read_content(&wire, form).expect("well formed"), names);
        for cut in 0..wire.len() {
            assert!(full::read_content(&wire[..cut], form).is_err(), "{cut}");
        }
    }
}

#[test]
fn what_others_hold_here_is_bounded() {
    let mut group = Group::new(1, 0, 7);
    let mut other = Full::new(
        Tick(0),
        1,
        FullConfig { check: Check::Nothing, ..FullConfig::new(name("/psync"), Signer::digest()) },
        9,
    );
    for i in 0..2000u64 {
        other.publish(Tick(0), &name(&format!("/x/{i}")));
        other.handle_timeout(Tick::from_ms(i * 2000));
        while let Some(transmit) = other.poll_transmit() {
            let frame = transmit.to_frame();
            let inbound = Inbound::from_frame(&frame).expect("a frame");
            group.nodes[0].receive(Tick(0), &inbound);
        }
    }
    assert!(group.nodes[0].held_len() <= 256);
    // All of them in one moment: the rest was not looked at.
    let flooded = group.nodes[0].counters().flooded;
    assert!(flooded >= 2000 - 1024 - 1, "{flooded}");
}

#[test]
fn the_filter_has_the_size_and_hashes_of_psync_and_mistakes_are_rare() {
    // Six elements, a thousandth: 10 hashes, 86.3 bits in whole octets.
    let mut bloom = Bloom::new(6, 1).expect("small");
    let mut components = Name::new();
    bloom.append_to(&mut components);
    assert_eq!(components.as_ref().get(2).expect("its bits").value.len(), 11);
    let names: Vec<Name> = (0..6).map(|i| name(&format!("/in/{i}"))).collect();
    names.iter().for_each(|name| bloom.insert(name));
    assert!(names.iter().all(|name| bloom.contains(name)));
    let mistaken = (0..10_000).filter(|i| bloom.contains(&name(&format!("/out/{i}")))).count();
    println!("{mistaken} of 10,000 mistaken");
    assert!(mistaken <= 30, "{mistaken}");
    let mut written = Name::new();
    bloom.append_to(&mut written);
    let bits = written.as_ref().get(2).expect("its bits").value;
    assert_eq!(Bloom::read(6, 1, bits), Ok(bloom));
    assert!(Bloom::read(6, 1, &[0; 12]).is_err() && Bloom::read(6, 0, &[0; 11]).is_err());
    assert!(Bloom::read(u64::MAX, 1, &[]).is_err() && Bloom::read(6, 1000, &[]).is_err());
}

/// A producer and consumers on links that lose packets.
struct Partial {
    producer: Producer,
    consumers: Vec<Consumer>,
    heard: Vec<Vec<PartialEvent>>,
    now: Tick,
    rng: Rng,
    loss_percent: u64,
    air: BTreeMap<(Tick, u64), (usize, Vec<u8>)>,
    copies: u64,
}

impl Partial {
    fn new(consumers: usize, loss_percent: u64, seed: u64) -> Self {
        println!("{consumers} consumers, {loss_percent} % loss, seed {seed}");
        let mut rng = Rng::new(seed);
        let config =
            ConsumerConfig { check: Check::Nothing, ..ConsumerConfig::new(name("/psync")) };
        let consumer = |_| Consumer::new(Tick(0), config.clone(), rng.next_u64());
        let consumers: Vec<Consumer> = (0..consumers).map(consumer).collect();
        let producer = ProducerConfig::new(name("/psync"), Signer::digest());
        Self {
            producer: Producer::new(1, producer, seed),
            heard: consumers.iter().map(|_| Vec::new()).collect(),
            consumers,
            now: Tick(0),
            rng: Rng::new(seed),
            loss_percent,
            air: BTreeMap::new(),
            copies: 0,
        }
    }

    /// Node 0 is the producer; a Data goes to every consumer.
    fn send(&mut self, to: usize, frame: Vec<u8>) {
        if self.rng.below(100) >= self.loss_percent {
            self.copies += 1;
            self.air.insert((self.now.plus_ms(1 + self.rng.below(20)), self.copies), (to, frame));
        }
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.producer.poll_transmit() {
            (1..=self.consumers.len()).for_each(|to| self.send(to, transmit.to_frame()));
        }
        for at in 0..self.consumers.len() {
            while let Some(event) = self.consumers[at].poll_event() {
                self.heard[at].push(event);
            }
            while let Some(transmit) = self.consumers[at].poll_transmit() {
                self.send(0, transmit.to_frame());
            }
        }
    }

    fn run(&mut self, ms: u64) {
        let end = self.now.plus_ms(ms);
        loop {
            self.drain();
            let arrival = self.air.keys().next().map_or(Tick::NEVER, |(at, _)| *at);
            let timer = self.consumers.iter().map(Consumer::poll_timeout).min().unwrap();
            if arrival.min(timer) > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(arrival.min(timer));
            while let Some(entry) = self.air.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to, frame) = entry.remove();
                let inbound = Inbound::from_frame(&frame).expect("a frame");
                match to {
                    0 => self.producer.receive(self.now, &inbound),
                    to => self.consumers[to - 1].receive(self.now, &inbound),
                };
            }
            self.consumers.iter_mut().for_each(|consumer| consumer.handle_timeout(self.now));
        }
    }

    /// What consumer `at` heard of each prefix: the last number, each told once and without gaps.
    fn last(&self, at: usize) -> BTreeMap<Name, u64> {
        let mut last = BTreeMap::new();
        for event in &self.heard[at] {
            let PartialEvent::Updates(updates) = event else { continue };
            for update in updates {
                let known = last.insert(update.prefix.clone(), update.high).unwrap_or(0);
                assert_eq!(update.low, known + 1, "{update:?}");
            }
        }
        last
    }
}

#[test]
fn consumers_hear_of_what_they_subscribed_to_at_any_loss_to_30_percent() {
    for (loss, seed) in [(0, 21), (10, 22), (30, 23)] {
        let mut net = Partial::new(2, loss, seed);
        let prefixes: Vec<Name> = (0..30).map(|i| name(&format!("/p/{i}"))).collect();
        let now = net.now;
        prefixes.iter().for_each(|p| assert_eq!(net.producer.publish(now, p), Some(1)));
        net.consumers[0].subscribe(now, prefixes[3].clone(), 0);
        net.consumers[1].subscribe(now, prefixes[7].clone(), 0);
        net.consumers[1].subscribe(now, prefixes[8].clone(), 1);
        for round in 0..40usize {
            net.run(100);
            let now = net.now;
            net.producer.publish(now, &prefixes[round % 30]);
        }
        net.run(30_000);
        let expected = |i: usize| (prefixes[i].clone(), 2 + u64::from(i < 10));
        assert_eq!(net.last(0), BTreeMap::from([expected(3)]));
        let both = net.heard[1].iter().filter_map(|event| match event {
            PartialEvent::Updates(updates) => Some(updates.clone()),
            _ => None,
        });
        let mut highest = BTreeMap::new();
        highest.extend(both.flatten().map(|u| (u.prefix, u.high)));
        assert_eq!(highest, BTreeMap::from([expected(7), expected(8)]));
        let offered = net.heard[0].iter().find_map(|event| match event {
            PartialEvent::Offered(names) => Some(names.len()),
            _ => None,
        });
        assert_eq!(offered, Some(30));
    }
}

#[test]
fn a_consumer_too_far_behind_to_be_told_the_difference_says_hello() {
    let mut net = Partial::new(1, 0, 24);
    let wanted = name("/p/5");
    let now = net.now;
    net.producer.publish(now, &wanted);
    net.consumers[0].subscribe(now, wanted.clone(), 0);
    net.run(1000);
    // It sleeps: nothing reaches it, while the producer publishes more than a table can tell.
    net.loss_percent = 100;
    for i in 0..500 {
        let now = net.now;
        net.producer.publish(now, &name(&format!("/p/{i}")));
    }
    net.run(5_000);
    net.loss_percent = 0;
    net.run(5_000);
    assert_eq!(net.last(0), BTreeMap::from([(wanted, 2)]));
}

#[test]
fn what_strangers_ask_a_producer_is_bounded() {
    let mut producer = Producer::new(1, ProducerConfig::new(name("/psync"), Signer::digest()), 25);
    producer.publish(Tick(0), &name("/p"));
    let mut asked = Consumer::new(Tick(0), ConsumerConfig::new(name("/psync")), 26);
    asked.handle_timeout(Tick(0));
    let hello = asked.poll_transmit().expect("a hello").to_frame();
    // Names that are cut short or hold nonsense are counted and not answered.
    for uri in ["/psync", "/psync/sync", "/psync/sync/1/2/3/4", "/psync/hello/more/of/it"] {
        let mut endpoint = onym_endpoint::Endpoint::new(1, onym_endpoint::Limits::default());
        endpoint.express(Tick(0), &onym_endpoint::Request::new(name(uri))).expect("room");
        let frame = endpoint.poll_transmit().expect("an Interest").to_frame();
        producer.receive(Tick(0), &Inbound::from_frame(&frame).expect("a frame"));
    }
    assert_eq!(producer.malformed(), 4);
    assert_eq!(producer.poll_transmit(), None);
    producer.receive(Tick(0), &Inbound::from_frame(&hello).expect("a frame"));
    assert!(producer.poll_transmit().is_some());
}
