//! A node of several shards with its push thread, and applications of it.

use crate::mailbox::mailbox;
use crate::model::{Hub, Peer, pipe};
use crate::push::{self, PushEngine, PushOrder, PushThread, Settings};
use crate::shard::{Chooser, FaceOrder, Opening, Order, POLICY, Parts, Shard, ShardEngine, Wanted};
use crate::sides::sides;
use crate::sync::thread::{self, JoinHandle};
use crate::{Bell, Clock, Driver as _, Port, Reply, reply};
use onym_face::Face as _;
use onym_forward::{FaceInfo, Forwarder};
use onym_link::LinkConfig;
use onym_node::config::Config;
use onym_pubsub::ControlPlane;
use onym_tables::{FaceId, HashKey};
use onym_wire::push::app::{Message, kind};
use onym_wire::push::{Id, Kind, Status, Strategy};
use onym_wire::tlv::frame_len;
use rtrb::RingBuffer;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A node whose threads run.
#[derive(Debug)]
pub struct Node {
    shards: Vec<Port<Order>>,
    push: Port<PushOrder>,
    threads: Vec<JoinHandle<()>>,
}

/// An application at a face of a node.
#[derive(Debug)]
pub struct App {
    peer: Peer,
    /// What came and was not asked for yet: publications, and *start publish*.
    came: VecDeque<Said>,
    tag: u32,
}

/// What an application hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    Start(Id),
    Stop(Id),
    Data(Id, Vec<u8>),
    Missed(u64),
}

/// Starts a node of so many shards, with an application at each of these.
pub fn start(shards: usize, apps: &[usize]) -> (Node, Vec<App>) {
    let hub = Hub::new();
    let config = Config::load(None, &["push.enabled=true".into(), "push.node=a".into()]);
    let config = config.expect("the configuration is right");
    let bells: Vec<_> = (0..shards).map(|_| Bell::new().expect("an eventfd")).collect();
    let bell = Bell::new().expect("an eventfd");
    let mut settings = Settings::of(&config.push, 1);
    settings.node.shards = u16::try_from(shards).expect("few shards");
    let plane = ControlPlane::new(settings.node.clone());
    let (sides, lanes, held_until) = sides(&settings, &plane, &bells, &bell);
    let (clock, keeper, recalled) = (Clock::start(), None, Vec::new());
    let parts = push::Parts { clock, settings, plane, keeper, recalled, lanes, held_until };
    let (push, inbox) = mailbox(&bell, push::ORDERS_MAX);
    let thread = PushEngine::new(PushThread::new(parts), inbox, clock, push::POLICY);
    let mut thread = thread.expect("a poller");
    let (mut ports, mut engines) = (Vec::new(), Vec::new());
    for (index, side) in sides.into_iter().enumerate() {
        let (port, engine) = shard(index, &bells, side);
        ports.push(port);
        engines.push(engine);
    }
    let mut made = Vec::new();
    for (n, owner) in apps.iter().copied().enumerate() {
        let id = FaceId(256 + u32::try_from(n).expect("few applications"));
        let (face, peer) = pipe(&hub);
        thread.driver.order(&mut thread.io, PushOrder::FaceAdd { face: id, shard: owner });
        for engine in &mut engines {
            let (reply, _) = reply();
            let info = FaceInfo::local();
            order(engine, FaceOrder::Add { id, info, owner, reply });
        }
        let link = LinkConfig { push: true, ..LinkConfig::stream() };
        let (io, first, is_local) = (Box::new(face), Vec::new(), true);
        let opening = Opening { id, io, link, queue_bytes_max: 1 << 20, first, is_local };
        let (reply, _) = reply();
        order(&mut engines[owner], FaceOrder::Open { opening: Box::new(opening), reply });
        made.push(App { peer, came: VecDeque::new(), tag: 0 });
    }
    let mut threads = vec![thread::spawn(move || thread.run())];
    threads.extend(engines.into_iter().map(|engine| thread::spawn(move || engine.run())));
    for app in &mut made {
        app.register();
    }
    (Node { shards: ports, push, threads }, made)
}

fn order(engine: &mut ShardEngine, order: FaceOrder) {
    engine.driver.order(&mut engine.io, Order::Face(order));
}

/// A shard, without its thread. Nothing of the pull half crosses, so that has no lanes here.
fn shard(
    index: usize,
    bells: &[Arc<Bell>],
    side: crate::shard::PushSide,
) -> (Port<Order>, ShardEngine) {
    let (port, mailbox) = mailbox(&bells[index], 16);
    let (reports, _) = RingBuffer::new(16);
    let key = HashKey::new(1, 2);
    let config = onym_forward::Config {
        shard: u8::try_from(index).expect("few shards"),
        hash_key: key,
        ..onym_forward::Config::default()
    };
    let shard = Shard::new(Parts {
        index,
        fw: Forwarder::new(config),
        chooser: Chooser::new(&key, bells.len()),
        to: bells.iter().map(|_| None).collect(),
        from: bells.iter().map(|_| None).collect(),
        wanted: Arc::new(Wanted::new(key)),
        reports,
        control: Bell::new().expect("an eventfd"),
        push: Some(side),
        hold: Duration::ZERO,
        spans: None,
    });
    (port, ShardEngine::new(shard, mailbox, Clock::start(), POLICY).expect("a poller"))
}

impl Node {
    /// Ends all threads.
    pub fn stop(self) {
        for port in &self.shards {
            port.send(Order::Stop).expect("it runs");
        }
        self.push.send(PushOrder::Stop).expect("it runs");
        for thread in self.threads {
            thread.join().expect("no thread panics");
        }
    }
}

impl App {
    fn register(&mut self) {
        self.peer.send(&Message::new(kind::REGISTER, 1).octets());
        let answer = self.peer.receive();
        let answer = Message::parse(&answer).expect("a message");
        assert_eq!(answer.kind, kind::REGISTERED, "{answer:?}");
    }

    /// Asks for something about `child` under `parent`, and waits until it is done.
    pub fn ask(&mut self, kind: Kind, child: &Id, parent: &Id) {
        self.tag += 1;
        let (id, prefix, strategy) = (child.octets(), parent.octets(), Strategy::NODE_LOCAL);
        let request = Message { id, prefix, strategy, ..Message::new(kind, self.tag) };
        self.peer.send(&request.octets());
        self.wait();
    }

    /// Has the last publications of an item retained.
    pub fn retain(&mut self, id: &Id, count: u64) {
        self.tag += 1;
        let retain =
            Message { id: id.octets(), number: count, ..Message::new(kind::RETAIN, self.tag) };
        self.peer.send(&retain.octets());
        self.wait();
    }

    fn wait(&mut self) {
        loop {
            let octets = self.peer.receive();
            let mut is_answered = false;
            for message in messages(&octets) {
                if message.kind == kind::STATUS {
                    assert_eq!((message.tag, message.status), (self.tag, Some(Status::OK)));
                    is_answered = true;
                } else {
                    self.came.push_back(said(&message));
                }
            }
            if is_answered {
                return;
            }
        }
    }

    /// Publishes, without waiting.
    pub fn publish(&self, id: &Id, payload: &[u8]) {
        let strategy = Strategy::NODE_LOCAL;
        let message =
            Message { id: id.octets(), payload, strategy, ..Message::new(kind::PUBLISH, 0) };
        self.peer.send(&message.octets());
    }

    /// What comes next.
    pub fn next(&mut self) -> Said {
        loop {
            if let Some(said) = self.came.pop_front() {
                return said;
            }
            let octets = self.peer.receive();
            self.came.extend(messages(&octets).iter().map(said));
        }
    }
}

/// The messages of a frame: a stream has several in one piece.
fn messages(mut octets: &[u8]) -> Vec<Message<'_>> {
    let mut messages = Vec::new();
    while !octets.is_empty() {
        let len = frame_len(octets).expect("a message").expect("all of it");
        let (message, rest) = octets.split_at(len);
        messages.push(Message::parse(message).expect("a message"));
        octets = rest;
    }
    messages
}

fn said(message: &Message<'_>) -> Said {
    match message.kind {
        Kind::START => Said::Start(message.id()),
        Kind::STOP => Said::Stop(message.id()),
        kind::DATA => Said::Data(message.id(), message.payload.to_vec()),
        kind::MISSED => Said::Missed(message.number),
        other => panic!("{other:?}: {message:?}"),
    }
}
