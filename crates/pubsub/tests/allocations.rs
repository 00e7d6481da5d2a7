//! The forwarder allocates nothing for a frame, whatever its form; the node of a publisher nothing
//! for a publication, and that of a subscriber only the payload, which all who get it share.

use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::forwarder::{Config, Copies, Forwarder, LinkEntry, Source};
use onym_pubsub::node::{Config as NodeConfig, Node, Output};
use onym_pubsub::verdict::Verdict;
use onym_pubsub::{AppId, Event};
use onym_sys::alloc_count::{CountingAlloc, counts};
use onym_tables::bloom::{KeyedTags, Scheme, build_stage};
use onym_tables::{FaceId, Tick};
use onym_wire::push::{
    Filter, FrameBuilder, Id, Kind, Label, Role, Route, RouteBuf, Status, Strategy,
};

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc;

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

const LINK: FaceId = FaceId(256);
const APP: AppId = AppId(1);

/// Two nodes with one link, the first one the rendezvous.
struct Pair {
    nodes: [Node; 2],
    outputs: [Output; 2],
    now: Tick,
}

impl Pair {
    fn new() -> Self {
        let node = |n: u32| {
            let role = if n == 0 { Role::RENDEZVOUS.and(Role::TOPOLOGY) } else { Role::default() };
            let config = NodeConfig::new(Label::from_u64(u64::from(n) + 1), n, role, 1);
            let mut node = Node::new(config);
            let link = LinkEntry { face: LINK, number: 10 + n, is_external: false };
            node.link_add(Tick(0), link, 1).expect("one link");
            node
        };
        let nodes = [node(0), node(1)];
        let mut pair = Self { nodes, outputs: <[Output; 2]>::default(), now: Tick(0) };
        pair.run(3000);
        pair
    }

    /// Carries frames until there are none.
    fn carry(&mut self) {
        while let Some(at) = self.outputs.iter().position(|out| !out.frames.is_empty()) {
            let mut octets = self.outputs[at].frames.remove(0).octets;
            let other = 1 - at;
            self.nodes[other].receive(self.now, LINK, &mut octets, &mut self.outputs[other]);
            self.outputs[at].give_back(octets);
        }
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now = self.now.plus_ms(1);
            for (node, output) in self.nodes.iter_mut().zip(&mut self.outputs) {
                node.handle_timeout(self.now, output);
            }
            self.carry();
        }
    }

    fn ask(&mut self, at: usize, kind: Kind, id: &str, prefix: &str) {
        let name = |text: &str| text.parse().expect("an identifier");
        let (id, prefix) = (name(id), name(prefix));
        let request = Request { kind, id, prefix, strategy: Strategy::DOMAIN_LOCAL };
        self.nodes[at].request(self.now, APP, 1, &request, &mut self.outputs[at]);
        self.run(100);
        let events = &mut self.outputs[at].events;
        let done = Event::Status { tag: 1, status: Status::OK };
        assert!(events.drain(..).any(|(_, event)| event == done), "{kind:?}");
    }
}

#[test]
fn a_publication_allocates_nothing_at_its_node_and_its_payload_at_the_next_one() {
    let mut pair = Pair::new();
    pair.ask(0, Kind::PUBLISH_SCOPE, "/1", "/");
    pair.ask(0, Kind::PUBLISH_ITEM, "/2", "/1");
    pair.ask(1, Kind::SUBSCRIBE_ITEM, "/2", "/1");
    let data = Data::new("/1/2".parse().unwrap(), Strategy::DOMAIN_LOCAL, &[7; 1000]);
    let mut publish = |count: u64| {
        let (mut sending, mut receiving, mut got) = (0, 0, 0);
        for _ in 0..count {
            let (now, start) = (pair.now, counts().allocations);
            let [first, second] = &mut pair.outputs;
            pair.nodes[0].publish(now, APP, &data, first).unwrap();
            let mut frames = std::mem::take(&mut first.frames);
            let sent = counts().allocations;
            for frame in frames.drain(..) {
                let mut octets = frame.octets;
                pair.nodes[1].receive(now, LINK, &mut octets, second);
                first.give_back(octets);
            }
            first.frames = frames;
            let is_data = |event: &Event| matches!(event, Event::Data { .. });
            got += second.events.drain(..).filter(|(_, event)| is_data(event)).count() as u64;
            (sending, receiving) =
                (sending + sent - start, receiving + counts().allocations - sent);
        }
        (sending, receiving, got)
    };
    publish(10);
    assert_eq!(publish(1000), (0, 1000, 1000));
}
