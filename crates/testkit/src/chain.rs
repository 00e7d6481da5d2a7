//! A chain of services in memory and virtual time: dispatcher, cache, backward router, name router,
//! strategy forwarder. Each script face is a client of the dispatcher. Between functions go the frames
//! that sockets would carry.

mod control;

pub use control::SETTINGS;

use crate::core::{link_config, to_name};
use crate::script::{CsSpec, Script};
use crate::subject::{Bench, Count, Received, Subject};
use crate::virtual_time::{self, InVirtualTime};
use crate::wire::name::Component;
use control::unsolicited;
use onym_frame::{Buf, RxFrame, TxQueue};
use onym_link::{Link, LinkConfig, Outbox, Packet, Received as FromLink};
use onym_services::chain::Origin;
use onym_services::config::{KindConfig, Order};
use onym_services::control::{RouteSpec, SetRequest};
use onym_services::effect::Effect;
use onym_services::{Answer, Function, Kind, Now, Port, Side};
use onym_tables::{FaceId, HashKey, Tick};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Needs of scripts that a chain in memory cannot meet, with the reason.
const WANTING: &[(&str, &str)] = &[
    ("mgmt", "services are managed by HTTP, not by the management protocol"),
    ("ethernet", "no sockets in memory"),
    ("stream", "no sockets in memory"),
    ("sockets", "no sockets in memory"),
    ("ws", "no sockets in memory"),
];
/// Keys of a node's configuration that services have too.
const KEYS: &[&str] = &["shards", "pit.entries_max", "forward.default_hop_limit"];
const START_MS: u64 = 1_000_000;
const UNIX_MS: u64 = 1_700_000_000_000;
const QUEUE_BYTES_MAX: usize = 16 << 20;

const PD: usize = 0;
const CS: usize = 1;
const BR: usize = 2;
const NR: usize = 3;
const SF: usize = 4;
const KEY: HashKey = HashKey::new(1, 2);

/// Runs scripts on the chain.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chain {
    /// The far ends of faces return the tokens of Interests.
    pub returned: bool,
}

impl Bench for Chain {
    fn name(&self) -> &str {
        "chain"
    }

    fn refuses(&self, script: &Script) -> Option<String> {
        let lacks = |need: &String| WANTING.iter().find(|(word, _)| word == need);
        if let Some((need, reason)) = script.needs.iter().find_map(lacks) {
            return Some(format!("needs {need}: {reason}"));
        }
        let key = script.config.iter().map(|(key, _)| key).find(|k| !KEYS.contains(&k.as_str()));
        key.map(|key| format!("config {key}: services are managed by HTTP"))
    }

    fn set_up(&self, script: &Script) -> Result<Box<dyn Subject>, String> {
        ChainSubject::new(script).map(|s| Box::new(s) as Box<dyn Subject>)
    }

    fn far_ends_return_tokens(&self) -> bool {
        self.returned
    }
}

/// One end of a link between two functions.
#[derive(Debug)]
struct Wire {
    link: Link,
    queue: TxQueue,
}

fn service_link() -> Wire {
    let config = LinkConfig { congestion_marking: None, ..LinkConfig::stream() };
    Wire { link: Link::new(config.between_services()), queue: TxQueue::new(QUEUE_BYTES_MAX) }
}

impl Wire {
    fn take_frames(&mut self) -> Vec<Vec<u8>> {
        let frames = self.queue.iter().map(|(head, body)| [head, body].concat()).collect();
        let count = self.queue.len();
        self.queue.pop(count);
        frames
    }
}

#[derive(Debug)]
struct Client {
    id: FaceId,
    link: Link,
    queue: TxQueue,
    out: VecDeque<Vec<u8>>,
    open: bool,
    /// How the chain calls it.
    origin: Option<Origin>,
}

#[derive(Debug)]
struct ChainSubject {
    now: Tick,
    functions: Vec<Function>,
    /// Where what one function sends on a face arrives.
    wires: BTreeMap<(usize, FaceId), (usize, FaceId)>,
    /// The link service of each of those, with the octets that sockets carry.
    links: BTreeMap<(usize, FaceId), Wire>,
    clients: Vec<Client>,
    next: u32,
    waiting: VecDeque<(usize, Packet)>,
    /// Strategies that the script chose, by prefix.
    strategies: BTreeMap<String, String>,
}

impl ChainSubject {
    fn new(script: &Script) -> Result<Self, String> {
        let kinds = [
            Kind::PacketDispatcher,
            Kind::ContentStore,
            Kind::BackwardRouter,
            Kind::NameRouter,
            Kind::StrategyForwarder,
        ];
        let functions = kinds.map(|k| Function::new(k, KEY, 3)).into();
        let mut chain = Self {
            now: Tick::from_ms(START_MS),
            functions,
            wires: BTreeMap::new(),
            links: BTreeMap::new(),
            clients: Vec::new(),
            next: 5000,
            waiting: VecDeque::new(),
            strategies: BTreeMap::new(),
        };
        chain.set_up(script)?;
        chain.wire(CS, "up", BR, "in");
        chain.wire(BR, "up", NR, "in");
        chain.wire(NR, "up", SF, "in");
        for (i, spec) in script.faces.iter().enumerate() {
            let id = FaceId(FaceId::FIRST.0 + u32::try_from(i).map_err(|e| e.to_string())?);
            chain.clients.push(Client {
                id,
                link: Link::new(link_config(spec)),
                queue: TxQueue::new(QUEUE_BYTES_MAX),
                out: VecDeque::new(),
                open: true,
                origin: None,
            });
            let mut port = Port::new(id, "client", Side::Consumer);
            (port.local, port.local_fields) = (spec.local, spec.local_fields);
            port.link = spec.link;
            if let Some(client) = chain.clients.last_mut() {
                client.origin = Some(port.entrance(&KEY));
            }
            chain.add(PD, port);
        }
        Ok(chain)
    }

    fn moment(&self) -> Now {
        Now { tick: self.now, unix_ms: self.now_ms() }
    }

    fn id(&mut self) -> FaceId {
        self.next += 1;
        FaceId(self.next)
    }

    /// A link from the producer side of one function to the consumer side of another.
    fn wire(&mut self, from: usize, up: &str, to: usize, down: &str) {
        let (a, b) = (self.id(), self.id());
        self.wires.insert((from, a), (to, b));
        self.wires.insert((to, b), (from, a));
        self.add(to, Port::new(b, down, Side::Consumer));
        self.add(from, Port::new(a, up, Side::Producer));
    }

    /// Gives a function a face, and what it asks for on that occasion.
    fn add(&mut self, at: usize, port: Port) {
        let (now, mut out) = (self.moment(), Outbox::default());
        self.functions[at].face_added(now, port, &mut out);
        self.carry(at, &mut out);
        for effect in self.functions[at].take_effects() {
            self.perform(at, effect);
        }
    }

    fn perform(&mut self, at: usize, effect: Effect) {
        match effect {
            Effect::Connect { label, uri, .. } => {
                let consumer_path = uri.ends_with(":1");
                let (to, side) =
                    if consumer_path { (CS, Side::Consumer) } else { (SF, Side::Producer) };
                let (a, b) = (self.id(), self.id());
                self.wires.insert((at, a), (to, b));
                self.wires.insert((to, b), (at, a));
                let origin = self.clients.last().and_then(|client| client.origin);
                let origin = origin.filter(|_| !consumer_path);
                let mut far = Port::new(b, format!("{label}.{}", b.0), side);
                far.origin = origin;
                self.add(to, far);
                self.add(at, Port::new(a, label, Side::Producer));
            }
            Effect::Close(id) => self.close_face(at, id),
            Effect::AddRules(_) => {}
        }
    }

    fn close_face(&mut self, at: usize, id: FaceId) {
        let now = self.moment();
        for (at, id) in self.wires.remove(&(at, id)).into_iter().chain([(at, id)]) {
            self.wires.remove(&(at, id));
            self.links.remove(&(at, id));
            let mut out = Outbox::default();
            self.functions[at].face_removed(now, id, &mut out);
            self.carry(at, &mut out);
            for effect in self.functions[at].take_effects() {
                self.perform(at, effect);
            }
        }
    }

    /// Takes what a function sent to where it arrives.
    fn carry(&mut self, at: usize, out: &mut Outbox) {
        for item in &out.items {
            if at == PD
                && let Some(client) = self.clients.iter_mut().find(|c| c.id == item.face && c.open)
            {
                let _ = client.link.send(self.now, item, &out.arena, &mut client.queue);
                client.take_frames();
                continue;
            }
            let Some((to, face)) = self.wires.get(&(at, item.face)).copied() else { continue };
            let near = self.links.entry((at, item.face)).or_insert_with(service_link);
            let _ = near.link.send(self.now, item, &out.arena, &mut near.queue);
            let frames = near.take_frames();
            let far = self.links.entry((to, face)).or_insert_with(service_link);
            for frame in frames {
                let frame = RxFrame { endpoint: 0, bytes: Buf::copy_from(&frame) };
                if let FromLink::Packet(packet) = far.link.receive(self.now, face, frame) {
                    self.waiting.push_back((to, packet));
                }
            }
        }
        out.clear();
    }

    fn settle_all(&mut self) {
        while let Some((at, packet)) = self.waiting.pop_front() {
            let (now, mut out) = (self.moment(), Outbox::default());
            self.functions[at].receive(now, packet, &mut out);
            self.carry(at, &mut out);
        }
    }

    fn next_timeout(&self) -> Tick {
        let links = self.clients.iter().filter(|c| c.open).map(|c| c.link.poll_timeout());
        links.chain(self.functions.iter().map(Function::poll_timeout)).min().unwrap_or(Tick::NEVER)
    }
}

impl Client {
    fn take_frames(&mut self) {
        for (head, body) in self.queue.iter() {
            self.out.push_back([head, body].concat());
        }
        let count = self.queue.len();
        self.queue.pop(count);
    }
}

impl InVirtualTime for ChainSubject {
    fn now(&self) -> Tick {
        self.now
    }

    fn advance(&mut self, end: Tick) -> bool {
        let due = self.next_timeout();
        if due > end {
            self.now = self.now.max(end);
            return false;
        }
        self.now = self.now.max(due);
        for at in 0..self.functions.len() {
            let (now, mut out) = (self.moment(), Outbox::default());
            self.functions[at].handle_timeout(now, &mut out);
            self.carry(at, &mut out);
        }
        for client in self.clients.iter_mut().filter(|c| c.open) {
            client.link.handle_timeout(self.now, &mut client.queue);
            client.take_frames();
        }
        self.settle_all();
        true
    }

    fn take(&mut self, face: usize) -> Option<Vec<u8>> {
        self.clients[face].out.pop_front()
    }

    fn is_open(&self, face: usize) -> bool {
        self.clients[face].open
    }
}

impl Subject for ChainSubject {
    fn face_id(&self, face: usize) -> u64 {
        self.clients[face].id.0.into()
    }

    fn send(&mut self, face: usize, frame: &[u8]) -> Result<(), String> {
        let (now, client) = (self.now, &mut self.clients[face]);
        let frame = RxFrame { endpoint: 0, bytes: Buf::copy_from(frame) };
        if let FromLink::Packet(packet) = client.link.receive(now, client.id, frame) {
            client.take_frames();
            self.waiting.push_back((PD, packet));
        }
        self.settle_all();
        Ok(())
    }

    fn receive(&mut self, face: usize, patience: Duration) -> Result<Received, String> {
        Ok(virtual_time::receive(self, face, patience))
    }

    fn wait(&mut self, time: Duration) {
        virtual_time::wait(self, time);
    }

    fn route(
        &mut self,
        prefix: &[Component],
        face: usize,
        cost: Option<u64>,
    ) -> Result<(), String> {
        let route = RouteSpec {
            prefix: to_name(prefix)?.to_string(),
            face: "up".to_owned(),
            via: self.clients[face].origin.map(Origin::to_hex),
            cost: cost.unwrap_or(0),
        };
        let (add, remove) = match cost {
            Some(_) => (vec![route], Vec::new()),
            None => (Vec::new(), vec![route]),
        };
        self.routes(SetRequest::Change { add, remove }).map(|_| ())
    }

    fn strategy(&mut self, prefix: &[Component], strategy: &str) -> Result<(), String> {
        self.strategies.insert(to_name(prefix)?.to_string(), strategy.to_owned());
        let strategies = self.strategies.clone();
        self.configure(SF, |own| {
            if let KindConfig::StrategyForwarder(own) = own {
                own.route_strategies = strategies;
            }
        })?;
        let silent = self.strategies.values().any(|s| s.starts_with("multicast"));
        self.backward_router(|own| own.nack = !silent)
    }

    fn cs(&mut self, spec: &CsSpec) -> Result<(), String> {
        if let Some(admit) = spec.admit {
            self.content_store(|own| own.admit = admit)?;
        }
        if let Some(serve) = spec.serve {
            self.content_store(|own| own.serve = serve)?;
        }
        if let Some(policy) = &spec.unsolicited {
            let policy = unsolicited(policy)?;
            self.backward_router(|own| own.unsolicited = policy)?;
        }
        if let Some(capacity) = spec.capacity {
            let capacity = usize::try_from(capacity).map_err(|e| format!("capacity: {e}"))?;
            self.content_store(|own| own.capacity = capacity)?;
        }
        match spec.policy.as_deref() {
            Some("lru") | None => Ok(()),
            Some(_) => self.content_store(|own| own.policy = Order::Fifo),
        }
    }

    fn close(&mut self, face: usize) -> Result<(), String> {
        self.clients[face].open = false;
        let id = self.clients[face].id;
        self.close_face(PD, id);
        // What the manager does when the face of a producer is gone.
        let Answer::Routes { routes } = self.routes(SetRequest::List)? else { return Ok(()) };
        let via = self.clients[face].origin.map(Origin::to_hex);
        let gone = routes.into_iter().filter(|route| route.via == via);
        let remove = gone.map(|route| RouteSpec {
            prefix: route.prefix,
            face: "up".to_owned(),
            via: route.via,
            cost: 0,
        });
        let remove = remove.collect();
        self.routes(SetRequest::Change { add: Vec::new(), remove }).map(|_| ())
    }

    fn verdicts(&mut self) -> Option<Vec<Count>> {
        None
    }

    fn now_ms(&self) -> u64 {
        UNIX_MS + self.now.0 / 1_000_000
    }
}
