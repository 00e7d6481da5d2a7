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
}
