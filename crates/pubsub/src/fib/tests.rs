//! A push FIB beside a dispatcher, whose messages the tests write.

use super::*;
use crate::data::{Data, Place};
use crate::dispatcher::{self, Came, Dispatcher, Origin, Request};
use crate::publication::{Event, Notice, Outbox, Said};
use onym_tables::FaceId;
use onym_wire::push::{
    Control, Filter, Flags, Frame, FrameBuilder, Home, Kind, Role, Route, Sequence, Status, option,
};
use onym_wire::tlv;

const NOW: Tick = Tick(1);
const APP: AppId = AppId(1);
const STRATEGY: Strategy = Strategy::DOMAIN_LOCAL;

fn label(n: u64) -> Label {
    Label::from_u64(n)
}

fn id(text: &str) -> Id {
    text.parse().unwrap()
}

/// Both halves of a node, and what its applications heard.
struct Halves {
    dispatcher: Dispatcher,
    fib: Fib,
    out: Outbox,
    effects: Effects,
    heard: Vec<Event>,
}

impl Halves {
    fn new() -> Self {
        let config = dispatcher::Config::new(label(1), 1);
        let own = Config {
            node: config.node,
            boot: config.boot,
            shard: 0,
            shards: 1,
            frame_max: config.frame_max,
            reserve: 0,
            spare_hops: config.spare_hops,
            is_checked: false,
            octets_max: 1 << 20,
        };
        let dispatcher = Dispatcher::new(config);
        let fib = Fib::new(own, dispatcher.hashing());
        let (out, effects, heard) = Default::default();
        Self { dispatcher, fib, out, effects, heard }
    }

    /// Obeys what the dispatcher says.
    fn obey(&mut self) {
        for notice in std::mem::take(&mut self.out.notices) {
            match notice {
                Notice::Tell(_, event) => self.heard.push(event),
                Notice::Delta(delta) => {
                    for (ids, payload) in self.fib.apply(delta) {
                        self.hand_out(&Handout::kept(&ids, &payload));
                    }
                }
                Notice::Data(handout) => self.hand_out(&handout),
            }
        }
        self.fib.done(self.dispatcher.done(0));
    }

    fn hand_out(&mut self, handout: &Handout) {
        self.fib.hand_out(handout, &mut self.effects);
        self.note(handout.payload.as_deref().unwrap_or_default());
    }

    fn note(&mut self, payload: &[u8]) {
        let missed = self.effects.missed.drain(..).map(|(_, count)| Event::Missed(count));
        self.heard.extend(missed);
        let data = |(_, id)| Event::Data { id, payload: payload.into(), came_by: None };
        self.heard.extend(self.effects.drain().map(data));
    }

    /// A message of the rendezvous and topology manager, the `number`th.
    fn told(&mut self, number: u32, message: Control) {
        let sequence = Sequence { session: 9, number };
        self.dispatcher.control(NOW, &Control { sequence, ..message }, false, &mut self.out);
        self.obey();
    }

    /// The application asks the rendezvous for /1/2, which has not answered yet; its request's place.
    fn ask(&mut self) -> Sequence {
        let route = RouteBuf::flat(0, &Filter::EMPTY);
        let role = Role::RENDEZVOUS.and(Role::TOPOLOGY);
        let homes = vec![Home { role, node: label(5), route }];
        self.told(1, Control { homes, ..Control::new(Kind::HOMES, label(5)) });
        let (id, prefix) = (Id::root(label(2)), Id::root(label(1)));
        let request = Request { kind: Kind::SUBSCRIBE_ITEM, id, prefix, strategy: STRATEGY };
        self.dispatcher.request(NOW, APP, 7, &request, &mut self.out);
        self.obey();
        let Some(Said::Publication(sent)) = self.out.said.back() else { panic!("a request") };
        Control::parse(&sent.payload).expect("a message").sequence
    }

    fn answer(&mut self, request: Sequence, status: Status) {
        let response = Control {
            request,
            status: Some(status),
            epoch: Some(1),
            ..Control::new(Kind::RESPONSE, label(5))
        };
        let relay = Control { body: response.octets(), ..Control::new(Kind::RELAY, label(5)) };
        self.told(2, relay);
    }

    /// The application has the subscription, however it came to it.
    fn subscribed(&mut self) {
        let key = self.dispatcher.hashing().key(id("/1/2"));
        self.fib.apply(Delta::Joined(key, APP));
    }

    /// A frame came; whether it is for the control plane, which got it.
    fn came(&mut self, ids: &[Id], strategy: Strategy, place: Option<u32>, payload: &[u8]) -> bool {
        let mut octets = Vec::new();
        let (route, mut options) = (&RouteBuf::flat(0, &Filter::EMPTY), Vec::new());
        if let Some(number) = place {
            tlv::put_head(&mut options, option::NUMBER, OPTION_LEN - 2);
            options.extend_from_slice(&3_u64.to_be_bytes());
            options.extend_from_slice(&number.to_be_bytes());
        }
        let options = &options[..];
        FrameBuilder { hop_limit: 9, strategy, route, ids, options, payload }.write(&mut octets);
        let frame = Frame::parse(&octets).unwrap();
        let frames = std::iter::once(&octets[..]);
        match self.fib.receive(frames, false, &mut self.effects).unwrap() {
            Received::Here { .. } => {
                self.note(payload);
                false
            }
            Received::Pass(number) => {
                let origin = Origin { shard: 0, number };
                self.dispatcher.take(origin);
                let came = Came { face: FaceId(256), flags: Flags::of(&octets), origin };
                self.dispatcher.receive(NOW, &frame, came, &mut self.out);
                true
            }
        }
    }

    /// Fragment `index` of two of publication `number`.
    fn fragment(&mut self, number: u32, index: u64) -> bool {
        let own = id(&format!("/1/f/{number:x}")).child(label(2 << 32 | index));
        self.came(&[own, id("/1/2")], Strategy::ALGORITHMIC_DOMAIN, Some(number), &[7])
    }

    fn short(&mut self, number: u32) -> bool {
        self.came(&[id("/1/2")], STRATEGY, Some(number), &number.to_be_bytes())
    }

    /// Lengths of what was heard; a loss is 0.
    fn lengths(&mut self) -> Vec<usize> {
        let len = |event| match event {
            Event::Data { payload, .. } => payload.len(),
            _ => 0,
        };
        self.heard.drain(..).map(len).collect()
    }
}

#[test]
fn what_comes_before_the_answer_is_told_behind_it() {
    let mut halves = Halves::new();
    let request = halves.ask();
    assert!(!halves.came(&[id("/1/2")], STRATEGY, None, b"early"));
    assert!(halves.heard.is_empty(), "{:?}", halves.heard);
    halves.answer(request, Status::OK);
    let data = Event::Data { id: id("/1/2"), payload: b"early"[..].into(), came_by: None };
    assert_eq!(halves.heard, [Event::Status { tag: 7, status: Status::OK }, data]);
    assert_eq!((halves.fib.counters.delivered, halves.fib.counters.unwanted), (1, 0));
}

#[test]
fn what_comes_before_a_refusal_is_nobodys() {
    let mut halves = Halves::new();
    let request = halves.ask();
    halves.came(&[id("/1/2")], STRATEGY, None, b"early");
    halves.answer(request, Status::NO_ITEM);
    assert_eq!(halves.heard.len(), 1, "{:?}", halves.heard);
    assert_eq!((halves.fib.counters.delivered, halves.fib.counters.unwanted), (0, 1));
}

#[test]
fn what_waits_for_an_answer_is_bounded() {
    let mut halves = Halves::new();
    let request = halves.ask();
    for n in 0..266_u64 {
        halves.came(&[id("/1/2")], STRATEGY, None, &n.to_be_bytes());
    }
    assert_eq!(halves.fib.counters.unwanted, 10);
    halves.answer(request, Status::OK);
    assert_eq!(halves.fib.counters.delivered, 256);
}

#[test]
fn what_is_behind_a_fragment_in_its_stream_waits_until_that_is_whole() {
    let mut halves = Halves::new();
    // The dispatcher wants what it has subscriptions to.
    let request = Request {
        kind: Kind::SUBSCRIBE_ITEM,
        id: id("/2"),
        prefix: id("/1"),
        strategy: Strategy::IMPLICIT,
    };
    halves.dispatcher.request(NOW, APP, 1, &request, &mut halves.out);
    halves.obey();
    halves.heard.clear();
    assert!(!halves.short(5) && halves.fragment(6, 0) && halves.short(7));
    halves.obey();
    // Another stream does not wait.
    assert!(!halves.came(&[id("/1/2")], STRATEGY, None, &[1]));
    assert_eq!(halves.lengths(), [4, 1]);
    assert!(halves.fragment(6, 1));
    halves.obey();
    assert_eq!(halves.lengths(), [2, 4], "the long one, then what was behind it");
    assert!(!halves.short(8), "nothing is under way any more");
    // One that will not be whole is told as missed in its place, once.
    assert!(halves.fragment(9, 0) && halves.short(10));
    let mut now = NOW;
    for _ in 0..10 {
        now = now.plus_ms(1000);
        halves.dispatcher.handle_timeout(now, &mut halves.out);
    }
    halves.obey();
    assert_eq!(halves.lengths(), [4, 0, 4], "8, 9 missed, 10");
    assert_eq!(halves.fib.counters.missing, 1);
}

#[test]
fn what_is_behind_a_passed_publication_is_passed_until_the_control_plane_is_done() {
    let mut halves = Halves::new();
    let key = halves.dispatcher.hashing().key(id("/1/2"));
    let route = Some(RouteBuf::from(Route::Link));
    let way = Way { aliases: SmallVec::from_iter([id("/1/2")]), route, hops: 1 };
    let started = |app| Delta::Started { key: key.clone(), app, way: Some(Box::new(way.clone())) };
    halves.fib.apply(started(APP));
    halves.subscribed();
    let mut publish = |fib: &mut Fib, len: usize| {
        let payload = vec![7; len];
        let data = Data::new(id("/1/2"), STRATEGY, &payload);
        let sent = fib.publish(NOW, APP, &data, &mut halves.effects).unwrap();
        let number = match &halves.effects.pass {
            Some(Pass { number, place: Place::Number(_, at), .. }) => Some((*number, *at)),
            _ => None,
        };
        assert_eq!(number.is_none(), !halves.effects.head.is_empty(), "one way or the other");
        (sent.frames, number)
    };
    let fib = &mut halves.fib;
    assert_eq!(publish(fib, 10), (1, None));
    assert_eq!(publish(fib, 5000), (0, Some((1, 1))));
    assert_eq!(publish(fib, 10), (0, Some((2, 2))), "behind the long one");
    fib.done(1);
    assert_eq!(publish(fib, 10), (0, Some((3, 3))), "the short one is not done");
    fib.done(3);
    assert_eq!(publish(fib, 10), (1, None));
    // A new way, and a stop between, leave the numbers as they are.
    fib.apply(Delta::Stopped(key.clone(), APP));
    fib.apply(started(AppId(2)));
    fib.apply(Delta::Withdrawn(key.clone(), APP));
    fib.apply(started(APP));
    assert_eq!(publish(fib, 5000), (0, Some((4, 5))));
}

#[test]
fn what_only_this_node_wants_is_passed_where_a_cache_may_keep_it_and_else_never() {
    let mut halves = Halves::new();
    let key = halves.dispatcher.hashing().key(id("/1/2"));
    halves.fib.apply(Delta::Started { key, app: APP, way: None });
    halves.subscribed();
    let mut publish = |name: &str, strategy, len: usize, lifetime_ms| {
        let payload = vec![7; len];
        let data = Data { lifetime_ms, ..Data::new(id(name), strategy, &payload) };
        halves.fib.publish(NOW, APP, &data, &mut halves.effects).unwrap();
        halves.effects.pass.is_some()
    };
    for name in ["/1/2", "/1/2/7"] {
        assert!(publish(name, STRATEGY, 5000, 1000));
        assert!(publish(name, Strategy::INTER_DOMAIN, 5000, 1000));
        assert!(!publish(name, STRATEGY, 5000, 0), "it has no lifetime");
        assert!(!publish(name, STRATEGY, 500, 1000), "it fits a frame");
        assert!(!publish(name, Strategy::NODE_LOCAL, 5000, 1000), "it is for nobody else");
        assert!(!publish(name, STRATEGY, (1 << 20) + 1, 1000), "no publication is so long");
    }
}
