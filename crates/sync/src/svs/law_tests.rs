//! Laws of whole groups, in virtual time.

use super::*;
use std::collections::BTreeMap;

const UNIX_MS: u64 = 1_795_444_162_000;

/// A group on one multicast medium that delays each copy by 10 to 60 ms and loses some.
struct Group {
    nodes: Vec<Svs>,
    now: Tick,
    rng: Rng,
    loss_percent: u64,
    /// Copies under way: when, to whom.
    air: BTreeMap<(Tick, u64), (usize, Vec<u8>)>,
    copies: u64,
    sent: u64,
}

impl Group {
    fn new(n: usize, loss_percent: u64, seed: u64) -> Self {
        println!("{n} nodes, {loss_percent} % loss, seed {seed}");
        let mut rng = Rng::new(seed);
        let node = |i: usize| format!("/node/{i}").parse::<Name>().ok();
        let group: Name = "/group".parse().expect("a name");
        let nodes = (0..n)
            .map(|i| {
                let boot = UNIX_MS / 1000 + i as u64;
                let config = SvsConfig::new(group.clone(), node(i), boot, Signer::digest());
                let config = SvsConfig { check: Check::Nothing, ..config };
                Svs::new(Tick(0), UNIX_MS, config, rng.next_u64())
            })
            .collect();
        let air = BTreeMap::new();
        Self { nodes, now: Tick(0), rng, loss_percent, air, copies: 0, sent: 0 }
    }

    fn drain(&mut self) {
        for from in 0..self.nodes.len() {
            while self.nodes[from].poll_event().is_some() {}
            let Some(packet) = self.nodes[from].poll_transmit(self.now) else { continue };
            self.sent += 1;
            for to in (0..self.nodes.len()).filter(|to| *to != from) {
                if self.rng.below(100) < self.loss_percent {
                    continue;
                }
                self.copies += 1;
                let at = self.now.plus_ms(10 + self.rng.below(50));
                self.air.insert((at, self.copies), (to, packet.clone()));
            }
        }
    }

    /// Runs until `end`, or until all vectors are equal when `until_equal`.
    fn run(&mut self, end: Tick, until_equal: bool) {
        loop {
            self.drain();
            if until_equal && self.is_equal() {
                return;
            }
            let arrival = self.air.keys().next().map_or(Tick::NEVER, |(at, _)| *at);
            let timer = self.nodes.iter().map(Svs::poll_timeout).min().unwrap_or(Tick::NEVER);
            let next = arrival.min(timer);
            if next > end {
                self.now = end;
                return;
            }
            self.now = self.now.max(next);
            while let Some(entry) = self.air.first_entry().filter(|e| e.key().0 <= self.now) {
                let (to, packet) = entry.remove();
                self.nodes[to].receive(self.now, &packet);
            }
            for node in &mut self.nodes {
                node.handle_timeout(self.now);
            }
        }
    }

    fn is_equal(&self) -> bool {
        let first = self.nodes[0].vector();
        self.nodes.iter().all(|node| node.vector() == first)
    }
}

#[test]
fn all_vectors_are_equal_within_three_periods_at_any_loss_to_30_percent() {
    for (n, loss) in [(2, 0), (2, 30), (10, 0), (10, 10), (10, 30), (40, 1), (40, 30)] {
        for seed in 0..5 {
            let mut group = Group::new(n, loss, 1000 * seed + n as u64);
            for i in 0..n {
                let now = group.now;
                group.nodes[i].publish(now);
                group.nodes[i].publish(now);
                let wait = group.rng.below(300);
                group.run(now.plus_ms(wait), false);
            }
            let from = group.now;
            group.run(from.plus_ms(99_000), true);
            assert!(group.is_equal(), "{n} nodes, {loss} % loss, seed {seed}");
            assert_eq!(group.nodes[0].vector().len(), n);
            println!("equal after {} ms", group.now.since(from).as_millis());
        }
    }
}

#[test]
fn suppression_bounds_the_messages_after_a_publication() {
    for (n, loss) in [(50, 0), (50, 10), (50, 30)] {
        let mut total = 0;
        for seed in 0..5 {
            let mut group = Group::new(n, loss, seed);
            group.run(Tick::from_ms(120_000), true);
            let start = group.now.plus_ms(5000);
            group.run(start, false);
            let before = group.sent;
            group.nodes[0].publish(start);
            group.run(start.plus_ms(60_000), false);
            assert!(group.is_equal());
            total += group.sent - before;
        }
        let each = total / 5;
        println!("{n} nodes, {loss} % loss: {each} messages in 60 s after a publication");
        // Without suppression everybody answers everybody who lacks it: n messages and more.
        assert!(each <= n as u64 / 2, "{each}");
    }
}

#[test]
fn a_quiet_group_sends_a_few_messages_a_period_whatever_its_size() {
    for n in [5, 50] {
        let mut group = Group::new(n, 0, 3);
        group.run(Tick::from_ms(60_000), false);
        let before = group.sent;
        group.run(Tick::from_ms(360_000), false);
        let each = (group.sent - before) / 10;
        println!("{n} nodes: {each} messages in 30 s");
        assert!(each <= 6, "{each}");
    }
}

#[test]
fn two_halves_that_were_apart_are_equal_within_a_period_and_a_second() {
    let mut group = Group::new(20, 0, 9);
    group.run(Tick::from_ms(60_000), true);
    // Apart: what crosses is lost.
    for minute in 0..10 {
        let now = group.now;
        group.nodes[minute].publish(now);
        group.nodes[10 + minute].publish(now);
        for from in 0..20 {
            let Some(packet) = group.nodes[from].poll_transmit(now) else { continue };
            for to in (0..20).filter(|to| to / 10 == from / 10 && *to != from) {
                group.nodes[to].receive(now, &packet);
            }
        }
        group.now = now.plus_ms(100);
    }
    assert!(!group.is_equal());
    let from = group.now;
    group.run(from.plus_ms(34_000), true);
    assert!(group.is_equal(), "one period is at most 33 s");
}
