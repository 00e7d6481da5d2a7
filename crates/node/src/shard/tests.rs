//! A shard stepped by hand, without its thread.

mod disk;
mod local;
mod watch;

use super::*;
use crate::cross::direction;
use crate::push::{Down, PushLanes, lanes};
use onym_engine::{Bell, Clock, Driver as _, FaceEvent, Port, mailbox};
use onym_face::Face as _;
use onym_face::mem::{MemFace, pair};
use onym_forward::{Config, FaceInfo};
use onym_frame::{Buf, BufPool, Lane, RxFrame, TxQueue};
use onym_link::LinkConfig;
use onym_pubsub::forwarder::LinkEntry;
use onym_pubsub::{AppId, ControlPlane, Copies, Delta, Source};
use onym_tables::bloom::Scheme;
use onym_tables::fib::NextHop;
use onym_tables::{HashKey, Rng};
use onym_wire::interest::InterestBuilder;
use onym_wire::mgmt::Scope;
use onym_wire::name::Name;
use onym_wire::push::app::{Message, PIECE_MAX, kind};
use onym_wire::push::{Filter, Frame, FrameBuilder, Id, Label, Role, RouteBuf, Strategy};
use rtrb::{Consumer, RingBuffer};
use std::time::Duration;

struct Bench {
    engine: ShardEngine,
    reports: Consumer<Report>,
    /// What crosses to a second shard, when there is one.
    peer: Option<FromPeer>,
    _back: Option<ToPeer>,
    _orders: Port<Order>,
    next: u32,
}

const REPORTS: usize = 8;

fn bench(shards: usize) -> Bench {
    bench_that_waits(shards, Duration::ZERO)
}

/// As [`bench`]; applications are waited for so long.
fn bench_that_waits(shards: usize, hold: Duration) -> Bench {
    let (reports_tx, reports) = RingBuffer::new(REPORTS);
    let (bell, other) = (Bell::new().unwrap(), Bell::new().unwrap());
    let (mut to, mut from) = (vec![None], vec![None]);
    let (mut peer, mut back) = (None, None);
    if shards == 2 {
        let (there, arrives) = direction(&bell, &other);
        let (returns, here) = direction(&other, &bell);
        (peer, back) = (Some(arrives), Some(returns));
        to.push(Some(there));
        from.push(Some(here));
    }
    let key = HashKey::new(1, 2);
    let (port, mailbox) = mailbox(&bell, ORDERS_MAX);
    let shard = Shard::new(Parts {
        index: 0,
        fw: Forwarder::new(Config { hash_key: key, ..Config::default() }),
        chooser: Chooser::new(&key, shards),
        to,
        from,
        wanted: Arc::new(Wanted::new(key)),
        reports: reports_tx,
        control: Bell::new().unwrap(),
        push: None,
        hold,
        spans: None,
    });
    let engine = ShardEngine::new(shard, mailbox, Clock::start(), POLICY).unwrap();
    Bench { engine, reports, peer, _back: back, _orders: port, next: 256 }
}

impl Bench {
    fn face(&mut self) -> (FaceId, MemFace) {
        let (ours, theirs) = pair(Scope::Local).unwrap();
        let id = FaceId(self.next);
        self.next += 1;
        self.engine.driver.fw.face_add(id, FaceInfo::local());
        let link = LinkConfig { push: true, ..LinkConfig::stream() };
        let io = Box::new(theirs);
        let opening =
            Opening { id, io, link, queue_bytes_max: 1 << 20, first: Vec::new(), is_local: false };
        self.open(opening);
        (id, ours)
    }

    fn route(&mut self, prefix: &str, face: FaceId) {
        let name: Name = prefix.parse().unwrap();
        let hop = NextHop { face, cost: 0 };
        assert!(self.engine.driver.fib_add(&mut self.engine.io, &name, hop));
    }

    fn open(&mut self, opening: Opening) {
        self.engine.driver.open(&mut self.engine.io, opening).unwrap();
    }

    fn round(&mut self) {
        self.engine.step();
    }

    /// A round that does not wait, whatever there is to do.
    fn ordered_round(&mut self) {
        self._orders.send(Order::Inject(Vec::new())).unwrap();
        self.round();
    }

    fn frames_of(&mut self, id: FaceId) -> u64 {
        self.engine.io.faces.by_id(id).unwrap().1.traffic.in_frames
    }
}

/// Sends Interests for `prefix`/n, n from `first` on.
fn send(io: &mut MemFace, prefix: &str, first: u32, count: u32) {
    let mut queue = TxQueue::new(1 << 22);
    for n in first..first + count {
        let name: Name = format!("{prefix}/{n}").parse().unwrap();
        let mut wire = Vec::new();
        InterestBuilder { nonce: Some(n.to_be_bytes()), ..InterestBuilder::new(name.as_ref()) }
            .write(&mut wire);
        queue.push(&wire, None).unwrap();
    }
    let _ = io.flush(&mut queue).unwrap();
}

#[test]
fn a_face_that_asks_for_more_than_it_uses_has_short_turns_and_the_others_are_served_at_once() {
    let mut b = bench(1);
    let ((flooder, mut flood), (victim, mut asks)) = (b.face(), b.face());
    let (silent, _producer) = b.face();
    b.route("/dead", silent);
    send(&mut flood, "/dead", 0, 5000);
    // It has shown by then what it asks for and does not use.
    while b.frames_of(flooder) < 2000 {
        b.round();
    }
    for turn in 0..50 {
        send(&mut asks, "/none", turn * 64, 64);
        let (before, served) = (b.frames_of(flooder), b.frames_of(victim));
        b.round();
        assert_eq!(b.frames_of(victim) - served, 64, "the victim is served whole");
        let took = b.frames_of(flooder) - before;
        assert!(took <= 64, "{took} frames of the flood in a round");
    }
    while b.frames_of(flooder) < 5000 {
        b.round();
    }
}

#[test]
fn frames_beyond_a_turn_wait_in_their_order() {
    let mut b = bench(1);
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let id = FaceId(300);
    b.engine.driver.fw.face_add(id, FaceInfo::local());
    let io = Box::new(onym_face::unix::from_stream(theirs).unwrap());
    let link = LinkConfig::stream();
    let queue_bytes_max = 1 << 20;
    b.open(Opening { id, io, link, queue_bytes_max, first: Vec::new(), is_local: false });
    let (silent, mut producer) = b.face();
    b.route("/a", silent);
    let mut consumer = onym_face::unix::from_stream(ours).unwrap();
    let mut queue = TxQueue::new(1 << 22);
    for n in 0..1000_u32 {
        let name: Name = format!("/a/{n}").parse().unwrap();
        let mut wire = Vec::new();
        InterestBuilder { nonce: Some(n.to_be_bytes()), ..InterestBuilder::new(name.as_ref()) }
            .write(&mut wire);
        queue.push(&wire, None).unwrap();
    }
    let (mut pool, mut got) = (BufPool::new(onym_face::CHUNK_LEN, 4), Vec::new());
    let mut longest = 0;
    while got.len() < 1000 {
        let _ = consumer.flush(&mut queue).unwrap();
        b.round();
        longest = longest.max(b.engine.io.faces.by_id(id).unwrap().1.backlog().len());
        let _ = producer.receive(&mut pool, 2000, &mut got).unwrap();
    }
    assert!(longest > 0, "one system call brings more than a turn");
    for (n, frame) in got.iter().enumerate() {
        let lp = onym_wire::lp::LpPacket::parse(&frame.bytes).unwrap();
        let interest = onym_wire::Interest::parse(lp.fragment.unwrap()).unwrap();
        assert_eq!(interest.name.to_string(), format!("/a/{n}"));
    }
}

#[test]
fn a_shard_reads_no_more_while_a_peer_is_behind_and_nothing_is_lost() {
    let mut b = bench(2);
    let (id, mut io) = b.face();
    let mut sent = 0;
    for _ in 0..200 {
        // About half of them belong to the other shard, which takes none.
        send(&mut io, "/a", sent, 500);
        sent += 500;
        b.ordered_round();
    }
    let read = b.frames_of(id);
    assert!(read < 50_000, "{read} frames were read");
    assert_eq!(b.engine.driver.counters.crossing_full, 0);
    b.ordered_round();
    assert_eq!(b.frames_of(id), read, "nothing more is read");
    assert!(!b.engine.has_work(), "it sleeps until its peer rings");
    let peer = b.peer.as_mut().unwrap();
    let mut crossed = 0;
    while let Some(batch) = peer.next() {
        crossed += batch.packets.len();
        peer.give_back(batch);
    }
    assert!(crossed >= 1000, "{crossed}");
    assert!(b.engine.has_work(), "there is room, and no timer is waited for");
    b.round();
    b.round();
    assert!(b.frames_of(id) > read, "and on it goes");
    assert_eq!(b.engine.driver.counters.crossing_full, 0);
}

#[test]
fn an_error_that_a_face_survives_is_told_once_a_second() {
    let mut b = bench(1);
    let (id, _io) = b.face();
    let (slot, _) = b.engine.io.faces.by_id(id).unwrap();
    for _ in 0..1000 {
        b.engine.io.note_error(slot, "refused".into());
    }
    b.engine.round();
    assert_eq!(b.reports.slots(), 1);
}

#[test]
fn the_end_of_a_face_is_told_even_when_the_control_thread_is_behind() {
    let mut b = bench(1);
    let (id, _io) = b.face();
    for _ in 0..REPORTS + 5 {
        b.engine.driver.report(Report::Malformed { id, word: "malformed" });
    }
    assert_eq!(b.engine.driver.counters.management_full, 5);
    let (slot, _) = b.engine.io.faces.by_id(id).unwrap();
    let ended = FaceEvent::Failed { reason: "ended".into(), is_fatal: true };
    b.engine.driver.face_event(&mut b.engine.io, slot, id, ended);
    while b.reports.pop().is_ok() {}
    b.round();
    assert!(matches!(b.reports.pop(), Ok(Report::FaceFailed { fatal: true, .. })));
}

/// The push half of the bench's shard, without its thread; what that would hold.
fn add_push(bench: &mut Bench, hold: Duration) -> (PushLanes, ControlPlane) {
    let bell = Bell::new().unwrap();
    let (lanes, theirs) = lanes(&bell, &bell);
    let node = Label::from_u64(1);
    let plane = ControlPlane::new(onym_pubsub::node::Config::new(node, 9, Role::default(), 1));
    let about = About {
        node,
        role: Role::default(),
        boot: 1,
        publication_bytes_max: 1 << 20,
        apps_max: 9,
        count: Arc::default(),
    };
    bench.engine.driver.push = Some(PushSide::new(PushParts {
        index: 0,
        forwarder: onym_pubsub::Forwarder::new(Default::default(), 9),
        fib: plane.fib(0),
        about,
        lanes,
        peers: vec![None],
        held_until: Arc::default(),
        is_caching: true,
        app_queue_bytes_max: 1 << 20,
        hold,
    }));
    (theirs, plane)
}

/// A face with an application, which has registered and got its answer.
fn registered(bench: &mut Bench) -> (FaceId, MemFace) {
    let (id, mut app) = bench.face();
    bench.ordered_round();
    let ShardEngine { io, driver, .. } = &mut bench.engine;
    let (slot, face) = io.faces.by_id(id).unwrap();
    (face.is_stream, face.state.is_local) = (true, true);
    let register = Message::new(kind::REGISTER, 1).octets();
    driver.app_message(io, slot, &Buf::copy_from(&register));
    let (mut pool, mut got) = (BufPool::new(onym_face::CHUNK_LEN, 4), Vec::new());
    while got.is_empty() {
        bench.ordered_round();
        app.receive(&mut pool, 8, &mut got).unwrap();
    }
    assert_eq!(Message::parse(&got[0].bytes).unwrap().kind, kind::REGISTERED);
    (id, app)
}

#[test]
fn a_face_that_was_put_aside_goes_on_at_once_when_nobody_holds_back() {
    let mut bench = bench(1);
    let _thread = add_push(&mut bench, Duration::from_secs(100));
    let (slow, _slow_io) = bench.face();
    let (waiting, _waiting_io) = bench.face();
    bench.round();
    let ShardEngine { io, driver, .. } = &mut bench.engine;
    let (waiting, _) = io.faces.by_id(waiting).unwrap();
    let (slow, face) = io.faces.by_id(slow).unwrap();
    face.is_stream = true;
    face.queue.set_lane(Lane::PushHeldBack);
    face.queue.push_over(&vec![0; 300 << 10], None);
    driver.note_hold(io, slow);
    assert!(driver.held(io, waiting));
    io.put_aside(waiting);
    assert!(!bench.engine.has_work());
    bench.engine.io.faces.get(slow).unwrap().queue = TxQueue::new(1 << 20);
    assert!(bench.engine.has_work(), "no timer and no event is waited for");
    bench.engine.round();
    assert!(!bench.engine.io.faces.get(waiting).unwrap().is_aside());
}

#[test]
fn a_neighbour_is_waited_for_while_anything_leaves_and_an_application_for_a_while() {
    let mut bench = bench(1);
    let _thread = add_push(&mut bench, Duration::from_millis(100));
    let (id, _theirs) = bench.face();
    let ShardEngine { io, driver, .. } = &mut bench.engine;
    let (slot, face) = io.faces.by_id(id).unwrap();
    face.is_stream = true;
    face.queue.set_lane(Lane::PushHeldBack);
    face.queue.push_over(&vec![0; 300 << 10], None);
    let start = io.now;
    let mut at = |ms: u64, left: u64| {
        io.now = start.plus_ms(ms);
        io.faces.get(slot).unwrap().traffic.out_bytes = left;
        driver.note_hold(io, slot);
        driver.is_held_back(io)
    };
    // Long after push.hold_ms, while an octet leaves now and then.
    for step in 0..10 {
        assert!(at(step * 390, step));
    }
    // It stands still, for four times push.hold_ms; then it is slow until it has caught up.
    assert!(at(9 * 390 + 399, 9));
    assert!(!at(9 * 390 + 401, 9) && !at(5000, 10));
    let state = &mut io.faces.get(slot).unwrap().state;
    assert_eq!(state.hold, Hold::Slow);
    // An application that takes something now and then is waited for no longer for it.
    (state.hold, state.app) = (Hold::Free, Some(Box::default()));
    let mut at = |ms: u64, left: u64| {
        io.now = start.plus_ms(ms);
        io.faces.get(slot).unwrap().traffic.out_bytes = left;
        driver.note_hold(io, slot);
        driver.is_held_back(io)
    };
    assert!(at(6000, 11) && at(6099, 12) && !at(6101, 13));
}

#[test]
fn publications_that_fill_the_queue_of_an_application_one_by_one_wait_for_it_and_none_is_lost() {
    let mut bench = bench(1);
    let (mut thread, _) = add_push(&mut bench, Duration::from_secs(100));
    let (_, mut app) = registered(&mut bench);
    // Each needs nearly all of the queue, or more than that.
    let lens = [900 << 10, 700 << 10, 1100 << 10, 900 << 10];
    let id: Id = "/1/2".parse().unwrap();
    for len in lens {
        let payload = vec![7; len].into();
        let event = onym_pubsub::Event::Data { id: id.clone(), payload, came_by: None };
        thread.told.batch().push(Down::Tell(AppId(1), event), len);
    }
    assert!(thread.told.flush());
    let wanted: usize = lens.iter().map(|len| len.div_ceil(PIECE_MAX)).sum();
    let (mut pool, mut got, mut pieces) = (BufPool::new(onym_face::CHUNK_LEN, 4), Vec::new(), 0);
    for round in 0.. {
        assert!(round < 10_000, "{pieces} pieces came");
        // It may have nothing to do.
        bench.ordered_round();
        got.clear();
        app.receive(&mut pool, 8, &mut got).unwrap();
        assert_eq!(bench.engine.driver.push_dropped.missed, 0);
        pieces += got.len();
        if pieces >= wanted && bench.engine.driver.push.as_ref().unwrap().is_free() {
            break;
        }
    }
    assert_eq!(pieces, wanted, "whole, and in their order");
}

/// Rows of up to 150 frames: to one neighbour, two, this node or nobody, some at their last link.
fn rows(rng: &mut Rng) -> Vec<Vec<u8>> {
    let (scheme, mut frames) = (Scheme::default(), Vec::new());
    while frames.len() < 8000 {
        let mut filter = Filter::EMPTY;
        let numbers = [1, 2, 9, 60];
        numbers.iter().filter(|_| rng.below(2) == 0).for_each(|n| filter.add(&scheme.tag(*n, 0)));
        let (hop_limit, len) = ([0, 1, 9][rng.below(3) as usize], rng.below(1400) as usize);
        let (route, ids) = (RouteBuf::flat(0, &filter), ["/1/2".parse().unwrap()]);
        for number in 0..1 + rng.below(150) {
            let mut payload = vec![0; len];
            payload.extend_from_slice(&number.to_be_bytes());
            let (route, ids, payload) = (&route, &ids[..], &payload[..]);
            let (strategy, options) = (Strategy::DOMAIN_LOCAL, &[][..]);
            let mut frame = Vec::new();
            FrameBuilder { hop_limit, strategy, route, ids, options, payload }.write(&mut frame);
            // Some are of another version.
            let value_at = if frame[1] < 253 { 2 } else { 4 };
            frame[value_at] ^= if rng.below(50) == 0 { 0x40 } else { 0 };
            frames.push(frame);
        }
    }
    frames
}

/// Frames as one system call brings them.
fn in_one_chunk(frames: &[Vec<u8>]) -> Vec<RxFrame> {
    let (chunk, mut at) = (Buf::copy_from(&frames.concat()), 0);
    let cut = frames.iter().map(|frame| {
        at += frame.len();
        RxFrame { endpoint: 0, bytes: chunk.slice(at - frame.len()..at) }
    });
    cut.collect()
}

#[test]
fn rows_of_frames_go_and_are_counted_as_each_of_them_alone() {
    let seed = 7;
    println!("seed {seed}");
    let (mut rng, mut bench) = (Rng::new(seed), bench(1));
    let (mut thread, plane) = add_push(&mut bench, Duration::from_secs(100));
    let frames = rows(&mut rng);
    let (_, mut app) = registered(&mut bench);
    let key = plane.dispatcher.hashing().key("/1/2".parse().unwrap());
    thread.told.batch().push(Down::Delta(Delta::Joined(key, AppId(1))), 0);
    let (mut neighbours, mut forwarder) =
        (Vec::new(), onym_pubsub::Forwarder::new(Default::default(), 9));
    for number in 0..3 {
        let (face, io) = bench.face();
        forwarder.link_add(LinkEntry { face, number, is_external: false }).unwrap();
        neighbours.push((face, io, Vec::new()));
    }
    thread.told.batch().push(Down::Forwarder(Box::new(forwarder.clone())), 0);
    assert!(thread.told.flush());
    let (mut pool, mut delivered) = (BufPool::new(onym_face::CHUNK_LEN, 4), Vec::new());
    let (slot, _) = bench.engine.io.faces.by_id(neighbours[0].0).unwrap();
    let mut sent = 0;
    for part in frames.chunks(150) {
        sent += part.len() as u64;
        bench.engine.io.give(slot, in_one_chunk(part));
        // A round without anything to do would wait.
        while bench.frames_of(neighbours[0].0) < sent
            || bench.engine.io.faces.iter().any(|face| !face.queue.is_empty())
        {
            bench.round();
            let mut told = Vec::new();
            let _ = app.receive(&mut pool, 1000, &mut told).unwrap();
            let payload = |frame: &RxFrame| Message::parse(&frame.bytes).unwrap().payload.to_vec();
            delivered.extend(told.iter().map(payload));
            for (_, io, got) in &mut neighbours {
                let _ = io.receive(&mut pool, 1000, got).unwrap();
            }
        }
    }
    let (mut copies, mut expected) = (Copies::default(), [(); 3].map(|()| Vec::new()));
    let mut for_here = Vec::new();
    for frame in &frames {
        let mut octets = frame.clone();
        forwarder.receive(Source::Face(neighbours[0].0), &mut octets, &mut copies);
        for ((face, ..), expected) in neighbours.iter().zip(&mut expected) {
            if copies.faces.contains(face) {
                expected.push(octets.clone());
            }
        }
        if copies.is_delivered {
            for_here.push(Frame::parse(frame).unwrap().payload.to_vec());
        }
    }
    for ((_, _, got), expected) in neighbours.iter().zip(&expected) {
        assert!(got.iter().map(|frame| &frame.bytes[..]).eq(expected.iter().map(|e| &e[..])));
    }
    assert!(expected[1].len() > 400 && expected[2].len() > 400 && for_here.len() > 400);
    assert_eq!(delivered, for_here);
    let counted = bench.engine.driver.push_state();
    assert_eq!(&counted.counters, forwarder.counters());
    assert!(counted.counters.balance() && counted.dropped == PushDropped::default());
}

#[test]
fn what_is_asked_of_management_is_charged_to_who_asks() {
    let mut b = bench(1);
    let ((asks, mut app), (other, mut other_app)) = (b.face(), b.face());
    b.engine.driver.fw.face_add(FaceId::INTERNAL, FaceInfo::local());
    b.route("/own", FaceId::INTERNAL);
    for (io, of) in [(&mut app, "/own/1"), (&mut other_app, "/nobody/1")] {
        let (name, mut wire) = (of.parse::<Name>().unwrap(), Vec::new());
        InterestBuilder { nonce: Some([1; 4]), ..InterestBuilder::new(name.as_ref()) }
            .write(&mut wire);
        let mut queue = TxQueue::new(1 << 20);
        queue.push(&wire, None).unwrap();
        io.flush(&mut queue).unwrap();
    }
    b.round();
    assert!(matches!(b.reports.pop(), Ok(Report::Management { .. })));
    let charged = |id| b.engine.driver.fw.faces().get(id).map(|face| face.load.charged());
    assert!(charged(asks) > Some(0), "{:?}", charged(asks));
    assert_eq!(charged(other), Some(0), "a refusal is what a packet costs");
}
