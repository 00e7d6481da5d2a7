//! The forwarder allocates nothing for a frame, whatever its form; the node of a publisher nothing
//! for a publication, and neither does that of a subscriber.

mod pair;

use onym_pubsub::dispatcher::Data;
use onym_pubsub::forwarder::{Config, Copies, Forwarder, LinkEntry, Source};
use onym_pubsub::verdict::Verdict;
use onym_sys::alloc_count::{CountingAlloc, counts};
use onym_tables::FaceId;
use onym_tables::bloom::{KeyedTags, Scheme, build_stage};
use onym_wire::push::{Filter, FrameBuilder, Id, Route, RouteBuf, Strategy};
use pair::Pair;
use std::alloc::System;

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc(System);

fn frame(route: &RouteBuf, ids: &[Id]) -> Vec<u8> {
    let (hop_limit, strategy, payload) = (9, Strategy::DOMAIN_LOCAL, &[7; 1000][..]);
    let mut out = Vec::new();
    FrameBuilder { hop_limit, strategy, route, ids, options: &[], payload }.write(&mut out);
    out
}

#[test]
fn no_frame_allocates() {
    let scheme = Scheme::default();
    let mut fw = Forwarder::new(Config::default(), 99);
    for number in 0..16 {
        let link = LinkEntry { face: FaceId(256 + number), number, is_external: false };
        fw.link_add(link).unwrap();
    }
    let keys = KeyedTags::new([1, 2], 5);
    fw.epoch_start(1, keys);
    let mut filter = Filter::EMPTY;
    (0..8).for_each(|n| filter.add(&scheme.tag(n, 0)));
    let flow = 5;
    let mut keyed = Filter::EMPTY;
    (1..4).for_each(|to| keyed.add(&keys.tag(flow, 0, to, 0)));
    let stage = build_stage(0, &[scheme.stage_tag(3)], &[scheme.stage_tag(99)]).unwrap();
    let ids: [Id; 1] = ["/1/2".parse().unwrap()];
    let frames = [
        frame(&RouteBuf::flat(0, &filter), &ids),
        frame(&RouteBuf::flat(0, &Filter::ALL), &ids),
        frame(&RouteBuf::from(Route::Keyed { table: 0, epoch: 1, flow, filter: keyed }), &ids),
        frame(&RouteBuf::stages(&[stage.as_stage()]).unwrap(), &ids),
        frame(&RouteBuf::from(Route::Link), &ids),
        vec![0xf0, 2, 1, 1],
    ];
    let mut copies = Copies { faces: Vec::with_capacity(16), is_delivered: false };
    let mut buffers = frames.clone();
    let before = counts().allocations;
    let mut forwarded = 0;
    for _ in 0..1000 {
        for (buffer, frame) in buffers.iter_mut().zip(&frames) {
            buffer.copy_from_slice(frame);
            let verdict = fw.receive(Source::Face(FaceId(256)), buffer, &mut copies);
            forwarded += u32::from(verdict == Verdict::Forwarded);
        }
    }
    assert_eq!(counts().allocations - before, 0);
    assert_eq!(forwarded, 3000);
}

#[test]
fn a_publication_allocates_nothing_at_its_node_and_nothing_at_the_next_one() {
    let mut pair = Pair::matched();
    let data = Data::new("/1/2".parse().unwrap(), Strategy::DOMAIN_LOCAL, &[7; 1000]);
    let mut publish = |count: u64| {
        let (mut sending, mut receiving, mut got) = (0, 0, 0);
        for _ in 0..count {
            let (start, mut sent) = (counts().allocations, 0);
            got += pair.publish(&data, || sent = counts().allocations);
            (sending, receiving) =
                (sending + sent - start, receiving + counts().allocations - sent);
        }
        (sending, receiving, got)
    };
    publish(10);
    assert_eq!(publish(1000), (0, 0, 1000));
}
