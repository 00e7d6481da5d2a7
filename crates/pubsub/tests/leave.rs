//! An application that leaves with very much: turns stay short, others are answered meanwhile, and
//! memory is free again.
#![allow(clippy::unwrap_used)]

use onym_pubsub::dispatcher::{LEAVE_MAX, Request};
use onym_pubsub::node::{Config, Node, Output};
use onym_pubsub::{AppId, Event, To};
use onym_sys::alloc_count::{CountingAlloc, counts};
use onym_tables::Tick;
use onym_wire::push::{Id, Kind, Label, Role, Status, Strategy};
use std::alloc::System;

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc(System);

const SCOPES: u64 = 20_000;
/// What one turn may take back.
const TURN_MAX: u64 = 512;
const LEAVES: AppId = AppId(1);
const STAYS: AppId = AppId(2);

struct Bench {
    node: Node,
    output: Output,
    now: Tick,
}

impl Bench {
    /// A node that is rendezvous and topology manager of its domain, and knows it.
    fn new() -> Self {
        let node = Node::new(Config::new(Label::from_u64(1), 0, Role(3), 1));
        let mut bench = Self { node, output: Output::default(), now: Tick::from_ms(1) };
        for _ in 0..40 {
            bench.now = bench.now.plus_ms(50);
            bench.turn();
        }
        bench
    }

    fn turn(&mut self) {
        self.node.handle_timeout(self.now, &mut self.output);
        self.output.frames.clear();
    }

    fn request(&mut self, app: AppId, kind: Kind, n: u64) {
        let (id, prefix) = (Id::root(Label::from_u64(n)), Id::default());
        let request = Request { kind, id, prefix, strategy: Strategy::DOMAIN_LOCAL };
        self.node.request(self.now, app, n, &request, &mut self.output);
        self.output.frames.clear();
    }

    /// The status of a request, which is there when it returns.
    fn status(&mut self, app: AppId, kind: Kind, n: u64) -> Option<Status> {
        self.output.events.clear();
        self.request(app, kind, n);
        self.output.events.drain(..).find_map(|(to, event)| match (to, event) {
            (To::One(to), Event::Status { tag, status }) if (to, tag) == (app, n) => Some(status),
            _ => None,
        })
    }

    /// Scopes that were taken back until now.
    fn withdrawn(&self) -> u64 {
        self.node.taken(Kind::UNPUBLISH_SCOPE)
    }
}

#[test]
fn an_application_that_leaves_with_very_much_holds_nobody_up_and_leaves_no_memory_behind() {
    let mut bench = Bench::new();
    assert_eq!(bench.status(STAYS, Kind::PUBLISH_SCOPE, 500_000), Some(Status::OK));
    let before = counts();
    for n in 1..=SCOPES {
        assert_eq!(bench.status(LEAVES, Kind::PUBLISH_SCOPE, n), Some(Status::OK), "{n}");
    }
    let most = (counts() - before).held();
    assert!(!bench.node.take_emptied());

    bench.node.disconnect(bench.now, LEAVES, &mut bench.output);
    let (mut turns, mut longest) = (1, bench.withdrawn());
    let mut peak = (counts() - before).held();
    while bench.node.dispatcher.leaving() > 0 {
        // It goes on at once, and in between another application is answered.
        assert_eq!(bench.node.next_timeout(), bench.now);
        let kind = [Kind::SUBSCRIBE_SCOPE, Kind::UNSUBSCRIBE_SCOPE][(turns + 1) % 2];
        assert_eq!(bench.status(STAYS, kind, 500_000), Some(Status::OK));
        let done = bench.withdrawn();
        bench.turn();
        longest = longest.max(bench.withdrawn() - done);
        peak = peak.max((counts() - before).held());
        turns += 1;
    }
    assert_eq!(bench.withdrawn(), SCOPES);
    assert!(longest <= TURN_MAX, "{longest} in one turn");
    assert_eq!(turns, SCOPES.div_ceil(LEAVE_MAX as u64) as usize);
    bench.output.events = Vec::new();
    let after = (counts() - before).held();
    eprintln!("{most} octets for {SCOPES} scopes, {peak} at most while they go, {after} after");
    assert!(peak < most + most / 8, "{most} before, {peak} while they go");
    assert!(after < most / 16, "{most} before, {after} after");
    let graph = bench.node.rendezvous.as_ref().unwrap().graph();
    assert!(graph.len() == 1 && graph.view(&Id::root(Label::from_u64(500_000))).is_some());
}

#[test]
fn two_that_leave_at_once_and_one_that_takes_their_place_do_not_meet() {
    let mut bench = Bench::new();
    let many = 3 * LEAVE_MAX as u64;
    for app in [LEAVES, AppId(3)] {
        for n in 1..=many {
            assert_eq!(bench.status(app, Kind::PUBLISH_SCOPE, n), Some(Status::OK));
        }
    }
    bench.node.disconnect(bench.now, LEAVES, &mut bench.output);
    bench.node.disconnect(bench.now, AppId(3), &mut bench.output);
    // What is not taken back yet is published by another one, and stays.
    let mut kept = Vec::new();
    for n in (1..=many).rev().take(LEAVE_MAX) {
        kept.push(n);
        let status = bench.status(STAYS, Kind::PUBLISH_SCOPE, n);
        assert_eq!(status, Some(Status::OK), "{n}");
    }
    while bench.node.dispatcher.leaving() > 0 {
        bench.turn();
    }
    let graph = bench.node.rendezvous.as_ref().unwrap().graph();
    assert_eq!(graph.len(), kept.len());
    assert!(kept.iter().all(|n| graph.view(&Id::root(Label::from_u64(*n))).is_some()));
}
