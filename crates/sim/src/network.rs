//! The network in virtual time: nodes, links, applications, and the queue of events.

mod check;
mod event;

use crate::app::{App, Frames};
use crate::channel::{Channel, ChannelConfig, Fate};
use crate::node::{Node, Sent, face_of};
use crate::processor::{Processor, ProcessorConfig};
use crate::routing::{Edge, Routing, hops};
use event::{Event, Happening};
use onym_forward::choice::ChoiceError;
use onym_forward::{Config, FaceInfo};
use onym_frame::Buf;
use onym_link::LinkConfig;
use onym_tables::cs::CsConfig;
use onym_tables::fib::NextHop;
use onym_tables::{Rng, Tick};
use onym_wire::name::{Name, NameRef};
use std::collections::BinaryHeap;
use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

/// Limits of a simulated node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeConfig {
    /// Most packets in the content store.
    pub cs_packets_max: usize,
    /// Most pending Interests.
    pub pit_entries_max: usize,
    /// How fast it works; `None`: packets take no time.
    pub processor: Option<ProcessorConfig>,
    /// Whether a contended PIT or upstream refuses what goes beyond a face's share.
    pub fairness: bool,
}

impl Default for NodeConfig {
    fn default() -> Self {
        Self { cs_packets_max: 1024, pit_entries_max: 65_536, processor: None, fairness: true }
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Nothing is left to happen.
    Quiet,
    /// The time was over.
    Time,
    /// The bound on events was reached.
    Events,
}

/// Where a port leads.
#[derive(Debug)]
enum Line {
    /// To a port of another node.
    Node { node: usize, port: usize, channel: Box<Channel> },
    /// To an application.
    App(usize),
}

#[derive(Debug)]
struct Attached {
    app: Box<dyn App>,
    node: usize,
    port: usize,
    /// When its next timer event is planned for.
    planned: Tick,
}

/// A frame that is put on a link.
#[derive(Debug, Clone, Copy)]
pub struct Crossing<'a> {
    /// When.
    pub now: Tick,
    /// The node that sends.
    pub node: usize,
    /// Its port.
    pub port: usize,
    /// The frame.
    pub frame: &'a [u8],
}

/// Sees every frame that a node puts on a link, before the link loses or delays it.
struct Tap(Box<dyn FnMut(&Crossing<'_>)>);

impl Debug for Tap {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Tap")
    }
}

/// A network in virtual time. The same calls with the same seed give the same run.
#[derive(Debug)]
pub struct Network {
    now: Tick,
    rng: Rng,
    nodes: Vec<Node>,
    /// By node.
    processors: Vec<Option<Processor>>,
    /// Frames that found no room at a processor, by node and port.
    shed: Vec<Vec<u64>>,
    /// By node and port.
    lines: Vec<Vec<Line>>,
    /// Both ends of each link: node and port.
    links: Vec<[(usize, usize); 2]>,
    /// When the next timer event of each node is planned for.
    planned: Vec<Tick>,
    apps: Vec<Attached>,
    events: BinaryHeap<Event>,
    order: u64,
    happened: u64,
    in_flight: u64,
    last_frame: Tick,
    tap: Option<Tap>,
}

impl Network {
    /// An empty network.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            now: Tick::default(),
            rng: Rng::new(seed),
            nodes: Vec::new(),
            processors: Vec::new(),
            shed: Vec::new(),
            lines: Vec::new(),
            links: Vec::new(),
            planned: Vec::new(),
            apps: Vec::new(),
            events: BinaryHeap::new(),
            order: 0,
            happened: 0,
            in_flight: 0,
            last_frame: Tick::default(),
            tap: None,
        }
    }

    /// Adds a node; returns its number.
    pub fn node_add(&mut self, name: &str, config: NodeConfig) -> usize {
        self.processors.push(config.processor.map(Processor::new));
        self.shed.push(Vec::new());
        let config = Config {
            seed: self.rng.next_u64(),
            pit_entries_max: config.pit_entries_max,
            fairness: config.fairness,
            cs: CsConfig { packets_max: config.cs_packets_max, ..CsConfig::default() },
            ..Config::default()
        };
        self.nodes.push(Node::new(name.to_owned(), config));
        self.lines.push(Vec::new());
        self.planned.push(Tick::NEVER);
        self.nodes.len() - 1
    }

    /// Joins two nodes by a link with the same behaviour in both directions; returns its number.
    pub fn link_add(&mut self, a: usize, b: usize, config: ChannelConfig) -> usize {
        let service = config.mtu.map_or_else(LinkConfig::stream, LinkConfig::datagram);
        let a_port = self.nodes[a].port_add(FaceInfo::point_to_point(), service.clone());
        let b_port = self.nodes[b].port_add(FaceInfo::point_to_point(), service);
        let line = |node, port| Line::Node { node, port, channel: Box::new(Channel::new(config)) };
        self.lines[a].push(line(b, b_port));
        self.lines[b].push(line(a, a_port));
        self.links.push([(a, a_port), (b, b_port)]);
        self.links.len() - 1
    }

    /// Takes a link down between two moments of virtual time. The nodes are not told: they see
    /// only that nothing comes.
    pub fn link_down(&mut self, link: usize, from: Duration, until: Duration) {
        for (at, is_up) in [(from, false), (until, true)] {
            let at = (Tick::default() + at).max(self.now);
            self.plan(at, Happening::LinkState { link, is_up });
        }
    }

    /// Attaches an application to a node; returns its number.
    pub fn app_add(&mut self, node: usize, app: Box<dyn App>) -> usize {
        let port = self.nodes[node].port_add(FaceInfo::local(), LinkConfig::stream());
        let number = self.apps.len();
        self.lines[node].push(Line::App(number));
        self.apps.push(Attached { app, node, port, planned: Tick::NEVER });
        self.plan_app(number);
        number
    }

    /// Makes routes for `prefix` from everywhere to the application `producer`.
    pub fn route_to(&mut self, prefix: NameRef<'_>, producer: usize, routing: Routing) {
        let (target, port) = (self.apps[producer].node, self.apps[producer].port);
        self.route_add(prefix, target, port, 0);
        for hop in hops(&self.graph(), target, routing) {
            self.route_add(prefix, hop.node, hop.port, hop.cost);
        }
    }

    /// The port of `node` that leads to its neighbour `peer`.
    #[must_use]
    pub fn port_to(&self, node: usize, peer: usize) -> Option<usize> {
        self.lines[node]
            .iter()
            .position(|line| matches!(line, Line::Node { node, .. } if *node == peer))
    }

    /// Adds one next hop.
    ///
    /// # Panics
    /// When `prefix` has more than 32 components or the FIB is full.
    pub fn route_add(&mut self, prefix: NameRef<'_>, node: usize, port: usize, cost: u64) {
        let (now, hop) = (self.now, NextHop { face: face_of(port), cost });
        self.nodes[node]
            .change(|forwarder, out| forwarder.fib_add(now, prefix, hop, out))
            .expect("invariant: a simulated route is short and its face exists");
        self.after_node(node);
    }

    /// Chooses a strategy for `prefix` at every node, by the end of its name, such as `multicast`.
    ///
    /// # Errors
    /// What the forwarder says of the strategy.
    pub fn strategy_set(&mut self, prefix: NameRef<'_>, strategy: &str) -> Result<(), ChoiceError> {
        let mut instance: Name =
            "/localhost/nfd/strategy".parse().expect("invariant: a valid name");
        for part in strategy.split('/') {
            match part.strip_prefix("v=").and_then(|version| version.parse().ok()) {
                Some(version) => instance.append_version(version),
                None => instance.append_generic(part),
            };
        }
        for node in &mut self.nodes {
            node.change(|forwarder, _| forwarder.strategy_set(prefix, instance.as_ref()))?;
        }
        Ok(())
    }

    /// Shows every frame that is put on a link to `see`.
    pub fn tap(&mut self, see: impl FnMut(&Crossing<'_>) + 'static) {
        self.tap = Some(Tap(Box::new(see)));
    }

    /// The graph of the nodes, delays as costs.
    fn graph(&self) -> Vec<Vec<Edge>> {
        let edge = |(port, line): (usize, &Line)| match line {
            Line::App(_) => None,
            Line::Node { node, channel, .. } => {
                let us = channel.config().delay.as_micros();
                let cost = u64::try_from(us).unwrap_or(u64::MAX - 1).saturating_add(1);
                Some(Edge { to: *node, port, cost })
            }
        };
        self.lines.iter().map(|lines| lines.iter().enumerate().filter_map(edge).collect()).collect()
    }

    /// Runs until nothing is left to happen, or virtual time `until`, or `events_max` events.
    pub fn run(&mut self, until: Duration, events_max: u64) -> Ended {
        let end = Tick::default() + until;
        let last = self.happened.saturating_add(events_max);
        loop {
            match self.events.peek() {
                None => return Ended::Quiet,
                Some(event) if event.at > end => {
                    self.now = end;
                    return Ended::Time;
                }
                Some(_) if self.happened >= last => return Ended::Events,
                Some(_) => self.step(),
            }
        }
    }

    fn step(&mut self) {
        let Some(event) = self.events.pop() else { return };
        self.now = event.at;
        self.happened += 1;
        match event.what {
            Happening::Frame { node, port, bytes } => self.arrive(node, port, bytes),
            Happening::Worked { node, port, bytes } => {
                if let Some(processor) = &mut self.processors[node] {
                    processor.complete();
                }
                self.receive(node, port, bytes);
            }
            Happening::NodeTimeout(node) => {
                if self.planned[node] == event.at {
                    self.planned[node] = Tick::NEVER;
                }
                self.nodes[node].handle_timeout(self.now);
                self.after_node(node);
            }
            Happening::AppFrame { app, bytes } => {
                self.in_flight -= 1;
                self.run_app(app, |app, now, out| app.receive(now, &bytes, out));
            }
            Happening::AppTimeout(app) => {
                if self.apps[app].planned == event.at {
                    self.apps[app].planned = Tick::NEVER;
                }
                self.run_app(app, |app, now, out| app.handle_timeout(now, out));
            }
            Happening::LinkState { link, is_up } => {
                for (node, port) in self.links[link] {
                    if let Line::Node { channel, .. } = &mut self.lines[node][port] {
                        channel.set_up(is_up);
                    }
                }
            }
        }
    }

    /// A frame reaches a node: it waits for the processor, where there is one.
    fn arrive(&mut self, node: usize, port: usize, bytes: Buf) {
        let Some(processor) = &mut self.processors[node] else {
            return self.receive(node, port, bytes);
        };
        if let Some(done) = processor.admit(self.now) {
            return self.plan(done, Happening::Worked { node, port, bytes });
        }
        self.in_flight -= 1;
        let shed = &mut self.shed[node];
        shed.resize(shed.len().max(port + 1), 0);
        shed[port] += 1;
    }

    fn receive(&mut self, node: usize, port: usize, bytes: Buf) {
        self.in_flight -= 1;
        self.last_frame = self.now;
        self.nodes[node].receive(self.now, port, bytes);
        self.after_node(node);
    }

    fn run_app(&mut self, number: usize, run: impl FnOnce(&mut dyn App, Tick, &mut Frames)) {
        let mut out = Frames::new();
        let attached = &mut self.apps[number];
        run(attached.app.as_mut(), self.now, &mut out);
        let (node, port) = (attached.node, attached.port);
        for frame in out {
            let bytes = Buf::copy_from(&frame);
            self.in_flight += 1;
            self.plan(self.now, Happening::Frame { node, port, bytes });
        }
        self.plan_app(number);
    }

    /// Puts what a node sends on its lines, and plans its next timer.
    fn after_node(&mut self, number: usize) {
        let now = self.now;
        let mut sent = Vec::new();
        let lines = &mut self.lines[number];
        let backlog = |port: usize| match &mut lines[port] {
            Line::Node { channel, .. } => channel.backlog(now),
            Line::App(_) => 0,
        };
        self.nodes[number].flush(now, backlog, |frame| sent.push(frame));
        for frame in sent {
            self.carry(number, frame);
        }
        let due = self.nodes[number].poll_timeout().max(now);
        if due < self.planned[number] {
            self.planned[number] = due;
            self.plan(due, Happening::NodeTimeout(number));
        }
    }

    /// Puts a frame that `node` sends on its line.
    fn carry(&mut self, node: usize, frame: Sent) {
        let (node, port, fate) = match &mut self.lines[node][frame.port] {
            Line::App(app) => {
                let app = *app;
                self.in_flight += 1;
                return self.plan(self.now, Happening::AppFrame { app, bytes: frame.bytes });
            }
            Line::Node { node: peer, port, channel } => {
                if let Some(Tap(tap)) = &mut self.tap {
                    tap(&Crossing { now: self.now, node, port: frame.port, frame: &frame.bytes });
                }
                (*peer, *port, channel.send(self.now, frame.bytes.len(), &mut self.rng))
            }
        };
        let arrivals = match fate {
            Fate::Arrives(at) => [Some(at), None],
            Fate::Twice(first, second) => [Some(first), Some(second)],
            Fate::Lost | Fate::Dropped | Fate::Down => return,
        };
        for at in arrivals.into_iter().flatten() {
            self.in_flight += 1;
            self.plan(at, Happening::Frame { node, port, bytes: frame.bytes.clone() });
        }
    }

    fn plan_app(&mut self, number: usize) {
        let due = self.apps[number].app.poll_timeout().max(self.now);
        if due < self.apps[number].planned {
            self.apps[number].planned = due;
            self.plan(due, Happening::AppTimeout(number));
        }
    }

    fn plan(&mut self, at: Tick, what: Happening) {
        self.order += 1;
        self.events.push(Event { at, order: self.order, what });
    }

    /// The virtual time that has passed.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.now.since(Tick::default())
    }

    /// The virtual time at which a node last received a frame; timers may run on after it.
    #[must_use]
    pub fn active(&self) -> Duration {
        self.last_frame.since(Tick::default())
    }

    /// Events that happened.
    #[must_use]
    pub fn happened(&self) -> u64 {
        self.happened
    }

    /// The nodes, by their number.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The processor of a node, where it has one.
    #[must_use]
    pub fn processor(&self, node: usize) -> Option<&Processor> {
        self.processors.get(node)?.as_ref()
    }

    /// The applications, each with its node.
    pub fn apps(&self) -> impl Iterator<Item = (usize, &dyn App)> {
        self.apps.iter().map(|attached| (attached.node, attached.app.as_ref()))
    }

    /// Whether every application has done its part.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.apps.iter().all(|attached| attached.app.is_done())
    }

    /// Both ends of each link: node and port.
    #[must_use]
    pub fn links(&self) -> &[[(usize, usize); 2]] {
        &self.links
    }

    /// Each direction of each link: from, to, the channel.
    pub fn channels(&self) -> impl Iterator<Item = (usize, usize, &Channel)> {
        self.lines.iter().enumerate().flat_map(|(from, lines)| {
            lines.iter().filter_map(move |line| match line {
                Line::Node { node, channel, .. } => Some((from, *node, channel.as_ref())),
                Line::App(_) => None,
            })
        })
    }
}
