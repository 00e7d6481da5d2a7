//! A network of routers in virtual time: whole [`onym_route::Border`]s, bytes and signatures included,
//! and a forwarder of a few lines in each node.
//!
//! The same seed gives the same run, octet by octet.

mod event;
mod forwarder;
mod graph;
mod life;
mod look;
mod plain;

pub use graph::Graph;
pub use plain::Plain;

use event::{Parcel, Planned};
use forwarder::Forwarder;
use onym_endpoint::{Inbound, Packet, Transmit};
use onym_route::prefixes::PrefixLimits;
use onym_route::router::{CommandError, Counters};
use onym_route::{Border, Command, CostBy, Export, Names, Notice, Output, Router, Verdict, table};
use onym_tables::{Rng, Tick};
use onym_wire::Name;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

/// The first face of a node; the face of link `i` is this and `i`.
const FACE: u64 = 256;
/// Bootstrap time of the first start.
const BOOT: u64 = 1_700_000_000;
/// Notices of a node that are kept.
const NOTICES_MAX: usize = 1000;

/// A link, and what it does to packets.
#[derive(Debug, Clone, Copy)]
pub struct LinkState {
    /// The nodes at its ends.
    pub ends: (usize, usize),
    /// The network of routing that it is of.
    pub network: usize,
    /// Whether it carries packets.
    pub up: bool,
    /// Delay beyond that of all links.
    pub slower_ms: u64,
    /// Packets of a thousand that are lost, beyond those of all links.
    pub loss: u64,
}

/// How a network is built.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Delay of every link.
    pub delay_ms: u64,
    /// Of all randomness.
    pub seed: u64,
    /// Nodes that behave as deployed routers do: [`Plain`].
    pub plain: BTreeSet<usize>,
    /// Nodes without a key of the network: what they sign is refused.
    pub strangers: BTreeSet<usize>,
    /// What quality of a link adds to its cost.
    pub cost_by: CostBy,
    /// Bounds of the routers.
    pub table: table::Limits,
    /// As above.
    pub prefixes: PrefixLimits,
    /// What borders announce, by the numbers of networks: all prefixes when there is none.
    pub exports: Vec<Export>,
    /// Routes under this prefix are counted and not kept by forwarders: they are not looked at.
    pub uncounted: Option<Name>,
}

impl Setting {
    /// Routers of ours with their default bounds.
    #[must_use]
    pub fn new(delay_ms: u64, seed: u64) -> Self {
        Self {
            delay_ms,
            seed,
            plain: BTreeSet::new(),
            strangers: BTreeSet::new(),
            cost_by: CostBy::default(),
            table: table::Limits::default(),
            prefixes: PrefixLimits::default(),
            exports: Vec::new(),
            uncounted: None,
        }
    }
}

/// What a node runs.
#[derive(Debug)]
enum Kind {
    Ours(Box<Border>),
    Plain(Box<Plain>),
}

#[derive(Debug)]
struct Node {
    kind: Option<Kind>,
    forwarder: Forwarder,
    notices: Vec<Notice>,
    boot: u64,
    /// Its clock less the true time, in milliseconds.
    clock_ahead_ms: i64,
    woken: Tick,
}

/// The network.
#[derive(Debug)]
pub struct RouterNetwork {
    /// Virtual time.
    pub now: Tick,
    /// Links by their number.
    pub links: Vec<LinkState>,
    /// Packets of a thousand that are lost on every link.
    pub loss: u64,
    /// Packets sent on links, and their octets.
    pub packets: u64,
    /// As above.
    pub octets: u64,
    setting: Setting,
    nodes: Vec<Node>,
    /// Networks of routing that each node is in.
    networks: Vec<Vec<usize>>,
    links_of: Vec<Vec<usize>>,
    queue: BinaryHeap<Reverse<Planned>>,
    posted: u64,
    rng: Rng,
    /// Routers to which routes changed since this was looked at.
    changed: BTreeSet<usize>,
    /// The way to the prefixes of a router, by its name.
    groups: BTreeMap<Name, usize>,
}

impl RouterNetwork {
    /// All nodes of `graph`, just started.
    #[must_use]
    pub fn new(graph: &Graph, setting: Setting) -> Self {
        let mut net = Self::unstarted(graph, setting);
        (0..graph.len()).for_each(|node| net.start(node));
        net
    }

    /// All nodes of `graph`, none started.
    #[must_use]
    pub fn unstarted(graph: &Graph, setting: Setting) -> Self {
        let link = |(a, b, network): &(usize, usize, usize)| LinkState {
            ends: (*a, *b),
            network: *network,
            up: true,
            slower_ms: 0,
            loss: 0,
        };
        let mut links_of = vec![Vec::new(); graph.len()];
        for (i, (a, b, _)) in graph.links.iter().enumerate() {
            for end in [*a, *b] {
                if let Some(links) = links_of.get_mut(end) {
                    links.push(i);
                }
            }
        }
        let names = |node: usize| {
            let networks = graph.nodes.get(node).into_iter().flatten();
            networks.filter_map(move |network| router_names(*network, node)).collect::<Vec<_>>()
        };
        let node = |node: usize| Node {
            kind: None,
            forwarder: Forwarder::new(&names(node)),
            notices: Vec::new(),
            boot: BOOT,
            clock_ahead_ms: 0,
            woken: Tick::NEVER,
        };
        let groups = (0..graph.len()).flat_map(|node| {
            names(node).into_iter().map(move |n| (n.prefixes_of(n.router.as_ref()), node))
        });
        Self {
            now: Tick(0),
            links: graph.links.iter().map(link).collect(),
            loss: 0,
            packets: 0,
            octets: 0,
            nodes: (0..graph.len()).map(node).collect(),
            networks: graph.nodes.clone(),
            links_of,
            queue: BinaryHeap::new(),
            posted: 0,
            rng: Rng::new(setting.seed),
            changed: BTreeSet::new(),
            groups: groups.collect(),
            setting,
        }
    }

    /// How many nodes there are, dead ones too.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    // --- nodes

    fn alive(&self, node: usize) -> bool {
        self.nodes[node].kind.is_some()
    }

    fn other_end(&self, node: usize, link: usize) -> usize {
        let (a, b) = self.links[link].ends;
        if a == node { b } else { a }
    }

    /// Gives the first router of a node to `act`, and does what follows.
    pub fn with(&mut self, node: usize, act: impl FnOnce(&mut Router, Tick)) {
        let now = self.now;
        if let Some(Kind::Ours(border)) = &mut self.nodes[node].kind {
            border.with(now, 0, |router| act(router, now));
        }
        self.serve(node);
    }

    /// Gives every router of a node to `act`, and does what follows.
    fn each(&mut self, node: usize, act: impl FnMut(&mut Router)) {
        let now = self.now;
        if let Some(Kind::Ours(border)) = &mut self.nodes[node].kind {
            border.each(now, act);
        }
        self.serve(node);
    }

    /// Hands a packet to the routers of `node` as if it came by its `link`.
    pub fn inject(&mut self, node: usize, link: usize, wire: &[u8]) {
        self.hand(node, FACE + link as u64, wire, &[]);
    }

    // --- running

    /// Runs until `until`; `look` is called after each event that changed a route to a router.
    pub fn run(&mut self, until: Tick, look: &mut dyn FnMut(&Self)) {
        while self.queue.peek().is_some_and(|Reverse(next)| next.at <= until) {
            let Some(Reverse(planned)) = self.queue.pop() else { break };
            self.now = self.now.max(planned.at);
            self.deliver(planned.parcel);
            if !self.changed.is_empty() {
                look(self);
                self.changed.clear();
            }
        }
        self.now = until;
    }

    /// Runs for `ms`.
    pub fn pass(&mut self, ms: u64) {
        let until = self.now.plus_ms(ms);
        self.run(until, &mut |_| {});
    }

    fn deliver(&mut self, parcel: Parcel) {
        let now = self.now;
        match parcel {
            Parcel::Wake(node) => {
                if self.nodes[node].woken > now {
                    return;
                }
                self.nodes[node].woken = Tick::NEVER;
                match &mut self.nodes[node].kind {
                    Some(Kind::Ours(border)) => border.handle_timeout(now),
                    Some(Kind::Plain(plain)) => plain.handle_timeout(now),
                    None => {}
                }
                self.serve(node);
            }
            Parcel::Packet { to, link, wire, token } => {
                if self.links[link].up && self.alive(to) {
                    let sent = self.nodes[to].forwarder.arrive(FACE + link as u64, &wire, token);
                    for (face, token) in sent.on {
                        self.send(to, face, Arc::clone(&wire), token);
                    }
                    if let Some(token) = sent.own {
                        self.hand(to, FACE + link as u64, &wire, &token);
                    }
                }
            }
        }
    }

    fn hand(&mut self, to: usize, face: u64, wire: &[u8], pit_token: &[u8]) {
        let now = self.now;
        let packet = Inbound { wire, pit_token, nack: None, incoming_face: Some(face) };
        match &mut self.nodes[to].kind {
            Some(Kind::Ours(border)) => {
                border.receive(now, &packet);
            }
            Some(Kind::Plain(plain)) => plain.receive(now, &packet),
            None => {}
        }
        self.serve(to);
    }

    /// Takes everything that a node's routers have for their shell.
    fn serve(&mut self, node: usize) {
        let now = self.now;
        loop {
            // Packets first: what stops takes its routes away behind its goodbye.
            let (transmit, output, due) = match &mut self.nodes[node].kind {
                Some(Kind::Ours(border)) => match border.poll_transmit(now) {
                    Some(transmit) => (Some(transmit), None, Tick::NEVER),
                    None => (None, border.poll_output(), border.poll_timeout()),
                },
                Some(Kind::Plain(plain)) => match plain.poll_transmit() {
                    Some(transmit) => (Some(transmit), None, Tick::NEVER),
                    None => (None, plain.poll_output(), plain.poll_timeout()),
                },
                None => return,
            };
            match (transmit, output) {
                (Some(transmit), _) => self.forward(node, transmit),
                (None, Some(output)) => self.obey(node, output),
                (None, None) => {
                    let due = due.max(Tick(now.0 + 1));
                    if due < self.nodes[node].woken {
                        self.nodes[node].woken = due;
                        self.post(due, Parcel::Wake(node));
                    }
                    return;
                }
            }
        }
    }

    fn obey(&mut self, node: usize, output: Output) {
        let now = self.now;
        let (id, command) = match output {
            Output::Command { id, command } => (id, command),
            Output::Verify { id, packet, .. } => {
                let verdict = self.judge(&packet);
                if let Some(Kind::Ours(border)) = &mut self.nodes[node].kind {
                    border.verified(now, id, verdict);
                }
                return;
            }
            Output::Notice(notice) => {
                let notices = &mut self.nodes[node].notices;
                if notices.len() < NOTICES_MAX {
                    notices.push(notice);
                }
                return;
            }
        };
        let answer = self.command(node, command);
        match &mut self.nodes[node].kind {
            Some(Kind::Ours(border)) => border.completed(now, id, answer),
            Some(Kind::Plain(plain)) => plain.completed(now, id, answer),
            None => {}
        }
    }

    /// Whether the node that `packet` is of has a key: packets of routers name them.
    fn judge(&self, packet: &Packet) -> Verdict {
        let name = packet.data().name;
        let is_of = |node: &usize| {
            let router = router_name(self.networks[*node][0], *node);
            let own = router.as_ref().last();
            own.is_some_and(|own| name.components().any(|c| c.value == own.value))
        };
        match self.setting.strangers.iter().find(|node| is_of(node)) {
            Some(node) => Verdict::Bad(format!("node {node} has no key")),
            None => Verdict::Good,
        }
    }

    fn command(&mut self, node: usize, command: Command) -> Result<Option<u64>, CommandError> {
        let forwarder = &mut self.nodes[node].forwarder;
        let prefix = match command {
            Command::CreateFace { uri, .. } => {
                let link = uri.trim_start_matches("sim://").parse::<usize>();
                let link = link.map_err(|_| CommandError::Refused(400))?;
                let face = FACE + link as u64;
                let up = self.links[link].up;
                return if up { Ok(Some(face)) } else { Err(CommandError::Refused(504)) };
            }
            Command::Register { prefix, face, cost } => {
                if !self.setting.uncounted.as_ref().is_some_and(|u| is_under(&prefix, u)) {
                    forwarder.register(&prefix, face, Some(cost));
                }
                prefix
            }
            Command::Unregister { prefix, face } => {
                forwarder.register(&prefix, face, None);
                prefix
            }
            _ => return Ok(None),
        };
        self.changed.extend(self.groups.get(&prefix));
        Ok(None)
    }

    fn forward(&mut self, node: usize, transmit: Transmit) {
        let Transmit { wire, pit_token, next_hop_face, .. } = transmit;
        let wire: Arc<[u8]> = wire.into();
        for (face, token) in self.nodes[node].forwarder.originate(&wire, &pit_token, next_hop_face)
        {
            self.send(node, face, Arc::clone(&wire), token);
        }
    }

    fn send(&mut self, node: usize, face: u64, wire: Arc<[u8]>, token: u64) {
        let Some(link) = link_of(face) else { return };
        let to = self.other_end(node, link);
        self.packets += 1;
        self.octets += wire.len() as u64;
        let state = self.links[link];
        if !state.up || self.rng.below(1000) < self.loss + state.loss {
            return;
        }
        let at = self.now.plus_ms(self.setting.delay_ms + state.slower_ms);
        self.post(at, Parcel::Packet { to, link, wire, token });
    }

    fn post(&mut self, at: Tick, parcel: Parcel) {
        self.posted += 1;
        self.queue.push(Reverse(Planned { at, order: self.posted, parcel }));
    }

    // --- what there is

    /// The routers of a node of ours that lives.
    #[must_use]
    pub fn border(&self, node: usize) -> Option<&Border> {
        match self.nodes[node].kind.as_ref()? {
            Kind::Ours(border) => Some(border),
            Kind::Plain(_) => None,
        }
    }

    /// What a node told its log; the first thousand.
    #[must_use]
    pub fn notices(&self, node: usize) -> &[Notice] {
        &self.nodes[node].notices
    }

    /// What the routers of ours counted, node by node.
    #[must_use]
    pub fn counters(&self) -> Vec<Counters> {
        let borders = (0..self.len()).filter_map(|node| self.border(node));
        borders.flat_map(Border::routers).map(Router::counters).collect()
    }
}

/// The link of a face.
fn link_of(face: u64) -> Option<usize> {
    usize::try_from(face.checked_sub(FACE)?).ok()
}

fn is_under(name: &Name, prefix: &Name) -> bool {
    prefix.as_ref().is_prefix_of(name.as_ref())
}

/// The network of routing with this number.
#[must_use]
pub fn network_name(network: usize) -> Name {
    let mut name = Name::new();
    for part in ["net".to_owned(), format!("a{network}")].into_iter().take(1 + network.min(1)) {
        name = name.with(onym_wire::name::Component::generic(part.as_bytes()));
    }
    name
}

/// The router of `node` in `network`.
#[must_use]
pub fn router_name(network: usize, node: usize) -> Name {
    let own = format!("r{node}");
    network_name(network).with(onym_wire::name::Component::generic(own.as_bytes()))
}

fn router_names(network: usize, node: usize) -> Option<Names> {
    Names::new(network_name(network), router_name(network, node)).ok()
}
