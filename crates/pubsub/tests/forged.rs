//! What forged link states cost a node without a key.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::cast_possible_truncation)]

use onym_pubsub::forwarder::LinkEntry;
use onym_pubsub::node::{Config, Node, Output};
use onym_sys::alloc_count::{CountingAlloc, counts};
use onym_tables::{FaceId, Tick};
use onym_wire::push::{
    Control, FrameBuilder, Kind, Label, Link, Role, Route, RouteBuf, Strategy, reserved,
};
use std::alloc::System;

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc(System);

const FACE: FaceId = FaceId(256);

fn frame(root: Label, message: &Control) -> Vec<u8> {
    let mut octets = Vec::new();
    FrameBuilder {
        hop_limit: 8,
        strategy: Strategy::LINK_LOCAL,
        route: &RouteBuf::from(Route::Link),
        ids: &[reserved::of(root, message.sender)],
        options: &[],
        payload: &message.octets(),
    }
    .write(&mut octets);
    octets
}

#[test]
fn forged_link_states_cost_little() {
    const NODES: u64 = 1000;
    let label = Label::from_u64;
    let mut node = Node::new(Config::new(label(1), 0, Role(3), 1));
    let link = LinkEntry { face: FACE, number: 10, is_external: false };
    node.link_add(Tick(0), link, 1).unwrap();
    let mut output = Output::default();
    let mut now = Tick::from_ms(1);
    let hello = Control::new(Kind::HELLO, label(2));
    node.receive(now, FACE, &mut frame(reserved::HELLO, &hello), &mut output);
    let before = counts();
    let mut sent = 0;
    for n in 2..2 + NODES {
        // A chain of nodes that all serve the domain, with some more that nobody asked for.
        let near = [n - 1, n + 1].map(|other| Link {
            neighbour: label(other),
            number: (20 + 2 * n + u64::from(other > n)) as u32,
            cost: 1,
        });
        let message = Control {
            number: 1,
            epoch: Some(1),
            item: Some(100_000 + n),
            role: Role(3),
            links: near.to_vec(),
            body: vec![7; 400],
            ..Control::new(Kind::LINK_STATE, label(n))
        };
        let mut octets = frame(reserved::LINK_STATE, &message);
        sent += octets.len() as i64;
        node.receive(now, FACE, &mut octets, &mut output);
        output.frames.clear();
        output.events.clear();
    }
    for _ in 0..40 {
        now = now.plus_ms(50);
        node.handle_timeout(now, &mut output);
        output.frames.clear();
        output.events.clear();
    }
    let held = (counts() - before).held();
    eprintln!("{sent} octets sent, {held} held");
    assert!(held < 16 * sent, "{sent} octets sent, {held} held");
}
