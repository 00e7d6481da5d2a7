//! A network of routers in virtual time: links with delay and loss, and a forwarder of a few lines in
//! each node. The routers are the crate's own, bytes and signatures included.

use super::shape::Shape;
use onym_crypto::Signer;
use onym_endpoint::Inbound;
use onym_route::router::{CommandError, Counters};
use onym_route::{Command, Config, CostBy, Link, Notice, Output, Router, Verdict};
use onym_tables::{Rng, Tick};
use onym_wire::{Interest, Name};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};

/// The first face of a node; the face of its link `i` is this and `i`.
const FACE: u64 = 256;
const BOOT: u64 = 1_700_000_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkState {
    pub(crate) ends: (usize, usize),
    pub(crate) up: bool,
    /// Delay and loss beyond those of all links, in ms and of a thousand.
    pub(crate) slower_ms: u64,
    pub(crate) loss: u64,
}

struct Node {
    router: Option<Router>,
    routes: BTreeMap<Name, Vec<(u64, u64)>>,
    notices: Vec<Notice>,
    boot: u64,
    woken: Tick,
    /// Interests passed on: our token, then face and token of who asked.
    pending: BTreeMap<u64, (u64, u64)>,
    /// Nonces of sync Interests.
    seen: BTreeSet<[u8; 4]>,
}

/// What is under way.
enum Parcel {
    Packet { to: usize, face: u64, link: usize, wire: Vec<u8>, token: u64 },
    Wake(usize),
}

pub(crate) struct Net {
    pub(crate) now: Tick,
    pub(crate) links: Vec<LinkState>,
    pub(crate) delay_ms: u64,
    /// Packets lost, of a thousand.
    pub(crate) loss: u64,
    pub(crate) cost_by: CostBy,
    nodes: Vec<Node>,
    queue: BinaryHeap<Reverse<(Tick, u64, usize)>>,
    parcels: BTreeMap<usize, Parcel>,
    parcel_next: usize,
    rng: Rng,
    seed: u64,
    pub(crate) packets: u64,
    pub(crate) octets: u64,
    /// Routers to which routes changed since this was looked at.
    pub(crate) changed: BTreeSet<usize>,
    /// Routes to a router, by their prefix.
    groups: BTreeMap<Name, usize>,
    group_of: Vec<Name>,
    /// Prefixes of the prefix group and of its sync.
    prefixes: Name,
    sync: Name,
    token_next: u64,
}

pub(crate) fn name_of(node: usize) -> Name {
    format!("/net/r{node}").parse().unwrap()
}

impl Net {
    pub(crate) fn new(shape: &Shape, delay_ms: u64, seed: u64) -> Self {
        let link =
            |ends: &(usize, usize)| LinkState { ends: *ends, up: true, slower_ms: 0, loss: 0 };
        let node = || Node {
            router: None,
            routes: BTreeMap::new(),
            notices: Vec::new(),
            boot: BOOT,
            woken: Tick::NEVER,
            pending: BTreeMap::new(),
            seen: BTreeSet::new(),
        };
        let mut net = Self {
            now: Tick(0),
            links: shape.links.iter().map(link).collect(),
            delay_ms,
            loss: 0,
            cost_by: CostBy::default(),
            nodes: (0..shape.nodes).map(|_| node()).collect(),
            queue: BinaryHeap::new(),
            parcels: BTreeMap::new(),
            parcel_next: 0,
            rng: Rng::new(seed),
            seed,
            packets: 0,
            octets: 0,
            changed: BTreeSet::new(),
            group_of: (0..shape.nodes).map(Self::group).collect(),
            prefixes: "/net/32=DV/32=PFS".parse().unwrap(),
            sync: "/net/32=DV/32=PFS/32=svs".parse().unwrap(),
            token_next: 0,
            groups: (0..shape.nodes).map(|node| (Self::group(node), node)).collect(),
        };
        (0..shape.nodes).for_each(|node| net.start(node));
        net
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn notices(&self, node: usize) -> &[Notice] {
        &self.nodes[node].notices
    }

    /// Starts a node, or starts it again with the next bootstrap time.
    pub(crate) fn start(&mut self, node: usize) {
        self.nodes[node].boot += 1;
        let boot = self.nodes[node].boot;
        let seed = self.seed ^ (node as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ boot;
        let mut config = Config::new("/net".parse().unwrap(), name_of(node), boot, seed);
        config.cost_by = self.cost_by;
        config.links = self
            .links_of(node)
            .map(|link| Link { uri: format!("sim://{link}"), mtu: None, cost: 1 })
            .collect();
        let unix_ms = BOOT * 1000 + self.now.0 / 1_000_000;
        let router = Router::new(self.now, config, Signer::digest(), unix_ms).unwrap();
        self.nodes[node].router = Some(router);
        self.nodes[node].routes.clear();
        self.changed.extend(0..self.nodes.len());
        self.serve(node);
    }

    /// A node dies without a word. With `signal` its neighbours see their faces go down.
    pub(crate) fn kill(&mut self, node: usize, signal: bool) {
        self.nodes[node].router = None;
        self.nodes[node].routes.clear();
        self.changed.extend(0..self.nodes.len());
        let ends: Vec<_> = self.links_of(node).collect();
        for link in ends {
            let (a, b) = self.links[link].ends;
            let other = if a == node { b } else { a };
            if signal && self.links[link].up {
                self.face_down(other, link);
            }
        }
    }

    /// A link stops, or works again. With `signal` both ends see it.
    pub(crate) fn set_link(&mut self, link: usize, up: bool, signal: bool) {
        self.links[link].up = up;
        let (a, b) = self.links[link].ends;
        for node in [a, b].into_iter().filter(|_| signal) {
            if up {
                let now = self.now;
                if let Some(router) = &mut self.nodes[node].router {
                    router.retry_links(now);
                }
                self.serve(node);
            } else {
                self.face_down(node, link);
            }
        }
    }

    /// Every node tries its links again at once.
    pub(crate) fn retry_all(&mut self) {
        let now = self.now;
        for node in 0..self.len() {
            if let Some(router) = &mut self.nodes[node].router {
                router.retry_links(now);
            }
            self.serve(node);
        }
    }

    fn face_down(&mut self, node: usize, link: usize) {
        let face = FACE + link as u64;
        for hops in self.nodes[node].routes.values_mut() {
            hops.retain(|(hop, _)| *hop != face);
        }
        self.changed.extend(0..self.nodes.len());
        let now = self.now;
        if let Some(router) = &mut self.nodes[node].router {
            router.face_down(now, face);
        }
        self.serve(node);
    }

    pub(crate) fn stop(&mut self, node: usize) {
        let now = self.now;
        if let Some(router) = &mut self.nodes[node].router {
            router.stop(now);
        }
        self.serve(node);
        self.nodes[node].router = None;
        self.nodes[node].routes.clear();
        self.changed.extend(0..self.nodes.len());
    }

    fn links_of(&self, node: usize) -> impl Iterator<Item = usize> + use<'_> {
        let ours = move |link: &LinkState| link.ends.0 == node || link.ends.1 == node;
        (0..self.links.len()).filter(move |i| ours(&self.links[*i]))
    }

    fn alive(&self, node: usize) -> bool {
        self.nodes[node].router.is_some()
    }

    // --- running

    /// Runs until `until`; `look` is called after each event that changed a route.
    pub(crate) fn run(&mut self, until: Tick, look: &mut dyn FnMut(&Self)) {
        while let Some(Reverse((at, _, id))) = self.queue.peek().copied() {
            if at > until {
                break;
            }
            self.queue.pop();
            self.now = self.now.max(at);
            if let Some(parcel) = self.parcels.remove(&id) {
                self.deliver(parcel);
            }
            if !self.changed.is_empty() {
                look(self);
                self.changed.clear();
            }
        }
        self.now = until;
    }

    fn deliver(&mut self, parcel: Parcel) {
        let now = self.now;
        match parcel {
            Parcel::Wake(node) => {
                if self.nodes[node].woken > now {
                    return;
                }
                self.nodes[node].woken = Tick::NEVER;
                if let Some(router) = &mut self.nodes[node].router {
                    router.handle_timeout(now);
                }
                self.serve(node);
            }
            Parcel::Packet { to, face, link, wire, token } => {
                if self.links[link].up && self.alive(to) {
                    self.arrive(to, face, wire, token);
                }
            }
        }
    }

    /// What a forwarder does with a packet: to the router, or on.
    fn arrive(&mut self, to: usize, face: u64, wire: Vec<u8>, token: u64) {
        let Ok(interest) = Interest::parse(&wire) else {
            return match self.nodes[to].pending.remove(&token) {
                Some((face, token)) => self.send(to, face, wire, token),
                None => self.hand(to, face, &wire, &[]),
            };
        };
        let mut back = face.to_be_bytes().to_vec();
        back.extend(token.to_be_bytes());
        let name = interest.name;
        if self.sync.as_ref().is_prefix_of(name) {
            let nonce = interest.nonce.unwrap_or_default();
            if !self.nodes[to].seen.insert(nonce) {
                return;
            }
            let on = self.multicast(to, &wire);
            self.hand(to, face, &wire, &back);
            for next in on.into_iter().filter(|next| *next != face) {
                self.send(to, next, wire.clone(), 0);
            }
        } else if self.prefixes.as_ref().is_prefix_of(name)
            && !self.own_group(to).as_ref().is_prefix_of(name)
        {
            let Some(next) = self.multicast(to, &wire).first().copied() else { return };
            self.token_next += 1;
            let ours = self.token_next;
            self.nodes[to].pending.insert(ours, (face, token));
            self.send(to, next, wire, ours);
        } else {
            self.hand(to, face, &wire, &back);
        }
    }

    fn own_group(&self, node: usize) -> &Name {
        &self.group_of[node]
    }

    fn hand(&mut self, to: usize, face: u64, wire: &[u8], pit_token: &[u8]) {
        let now = self.now;
        let packet = Inbound { wire, pit_token, nack: None, incoming_face: Some(face) };
        if let Some(router) = &mut self.nodes[to].router {
            router.receive(now, &packet);
        }
        self.serve(to);
    }

    /// Gives a router to `act` and does what follows.
    pub(crate) fn with(&mut self, node: usize, act: impl FnOnce(&mut Router, Tick)) {
        let now = self.now;
        if let Some(router) = &mut self.nodes[node].router {
            act(router, now);
        }
        self.serve(node);
    }

    /// Takes everything that a router has for its shell.
    fn serve(&mut self, node: usize) {
        let now = self.now;
        loop {
            let Some(router) = &mut self.nodes[node].router else { return };
            // Packets first: what stops takes its routes away behind its goodbye.
            if let Some(transmit) = router.poll_transmit(now) {
                let token = transmit.pit_token;
                self.forward(node, transmit.wire, &token, transmit.next_hop_face);
            } else if let Some(output) = router.poll_output() {
                self.obey(node, output);
            } else {
                let due = router.poll_timeout().max(Tick(now.0 + 1));
                if due < self.nodes[node].woken {
                    self.nodes[node].woken = due;
                    self.post(due, Parcel::Wake(node));
                }
                return;
            }
        }
    }

    fn obey(&mut self, node: usize, output: Output) {
        let now = self.now;
        let (id, command) = match output {
            Output::Command { id, command } => (id, command),
            Output::Verify { id, .. } => {
                if let Some(router) = &mut self.nodes[node].router {
                    router.verified(now, id, Verdict::Good);
                }
                return;
            }
            Output::Notice(notice) => return self.nodes[node].notices.push(notice),
        };
        let routes = &mut self.nodes[node].routes;
        let answer = match command {
            Command::CreateFace { uri, .. } => {
                let link: usize = uri.trim_start_matches("sim://").parse().unwrap();
                if self.links[link].up {
                    Ok(Some(FACE + link as u64))
                } else {
                    Err(CommandError::Refused(504))
                }
            }
            Command::Register { prefix, face, cost } => {
                self.changed.extend(self.groups.get(&prefix));
                let hops = routes.entry(prefix).or_default();
                hops.retain(|(hop, _)| *hop != face);
                hops.push((face, cost));
                hops.sort_by_key(|(_, cost)| *cost);
                Ok(None)
            }
            Command::Unregister { prefix, face } => {
                self.changed.extend(self.groups.get(&prefix));
                routes.entry(prefix).or_default().retain(|(hop, _)| *hop != face);
                Ok(None)
            }
            _ => Ok(None),
        };
        if let Some(router) = &mut self.nodes[node].router {
            router.completed(now, id, answer);
        }
    }

    fn forward(&mut self, node: usize, wire: Vec<u8>, token: &[u8], face: Option<u64>) {
        // A reply goes back where its Interest came from: the token says it.
        if let Some((face, token)) = token.split_first_chunk::<8>() {
            let (face, token) = (u64::from_be_bytes(*face), token.try_into().unwrap());
            return self.send(node, face, wire, u64::from_be_bytes(token));
        }
        let multicast = face.is_none();
        let faces = match face {
            Some(face) => vec![face],
            None => self.multicast(node, &wire),
        };
        let exact = multicast && {
            let name = Interest::parse(&wire).unwrap().name;
            self.prefixes.as_ref().is_prefix_of(name) && !self.sync.as_ref().is_prefix_of(name)
        };
        for face in faces.into_iter().take(if exact { 1 } else { usize::MAX }) {
            self.token_next += 1;
            self.send(node, face, wire.clone(), self.token_next);
        }
    }

    fn multicast(&self, node: usize, wire: &[u8]) -> Vec<u64> {
        let name = Interest::parse(wire).unwrap().name;
        let lengths = (0..=name.len()).rev();
        let found = lengths
            .map(|len| name.prefix(len))
            .find_map(|prefix| self.nodes[node].routes.get(prefix.value()));
        found.map_or_else(Vec::new, |hops| hops.iter().map(|(face, _)| *face).collect())
    }

    fn send(&mut self, node: usize, face: u64, wire: Vec<u8>, token: u64) {
        let link = usize::try_from(face - FACE).unwrap();
        let (a, b) = self.links[link].ends;
        let to = if a == node { b } else { a };
        self.packets += 1;
        self.octets += wire.len() as u64;
        if !self.links[link].up || self.rng.next_u64() % 1000 < self.loss + self.links[link].loss {
            return;
        }
        let at = self.now.plus_ms(self.delay_ms + self.links[link].slower_ms);
        self.post(at, Parcel::Packet { to, face, link, wire, token });
    }

    fn post(&mut self, at: Tick, parcel: Parcel) {
        self.parcel_next += 1;
        self.parcels.insert(self.parcel_next, parcel);
        self.queue.push(Reverse((at, self.parcel_next as u64, self.parcel_next)));
    }

    // --- looking

    fn neighbour_by(&self, node: usize, face: u64) -> usize {
        let (a, b) = self.links[usize::try_from(face - FACE).unwrap()].ends;
        if a == node { b } else { a }
    }

    /// Next hops of `node` towards `destination` as its forwarder has them, best first.
    pub(crate) fn hops(&self, node: usize, group: &Name) -> Vec<(usize, u64)> {
        let hops = self.nodes[node].routes.get(group).map_or(&[][..], Vec::as_slice);
        hops.iter().map(|(face, cost)| (self.neighbour_by(node, *face), *cost)).collect()
    }

    pub(crate) fn group(destination: usize) -> Name {
        let names = onym_route::Names::new("/net".parse().unwrap(), name_of(0)).unwrap();
        names.prefixes_of(name_of(destination).as_ref())
    }

    /// Whether best next hops lead from `node` towards `name` to `exit`.
    pub(crate) fn leads(&self, node: usize, name: &Name, exit: usize) -> bool {
        let mut at = node;
        for _ in 0..self.len() {
            if at == exit {
                return true;
            }
            let Some((next, _)) = self.hops(at, name).first().copied() else { return false };
            at = next;
        }
        false
    }

    /// Prefixes of others that `node` knows.
    pub(crate) fn remote(&self, node: usize) -> usize {
        self.nodes[node].router.as_ref().map_or(0, |router| router.prefixes().remote().count())
    }

    /// Distance of every living node to `destination` by links that are up.
    pub(crate) fn distances(&self, destination: usize) -> Vec<Option<u64>> {
        let mut distance = vec![None; self.len()];
        if !self.alive(destination) {
            return distance;
        }
        distance[destination] = Some(0);
        let mut queue = VecDeque::from([destination]);
        while let Some(at) = queue.pop_front() {
            for link in self.links.iter().filter(|link| link.up) {
                let next = match link.ends {
                    (a, b) if a == at => b,
                    (a, b) if b == at => a,
                    _ => continue,
                };
                if self.alive(next) && distance[next].is_none() {
                    distance[next] = distance[at].map(|d| d + 1);
                    queue.push_back(next);
                }
            }
        }
        distance
    }

    /// Living nodes whose best way to some destination is not the shortest, or leads nowhere.
    pub(crate) fn wrong(&self) -> usize {
        (0..self.len()).map(|destination| self.wrong_to(destination)).sum()
    }

    fn wrong_to(&self, destination: usize) -> usize {
        let group = Self::group(destination);
        let distance = self.distances(destination);
        let wrong = |node: &usize| {
            if *node == destination || !self.alive(*node) {
                return false;
            }
            let best = self.hops(*node, &group).first().copied();
            match (best, distance[*node]) {
                (None, None) => false,
                (Some((next, cost)), Some(d)) => cost != d || distance[next] != Some(d - 1),
                _ => true,
            }
        };
        (0..self.len()).filter(wrong).count()
    }

    /// A destination whose ways changed and, backups included, close a loop.
    pub(crate) fn looped(&self) -> Option<(usize, Vec<usize>)> {
        self.changed.iter().copied().find_map(|destination| {
            let group = Self::group(destination);
            let next: Vec<Vec<usize>> = (0..self.len())
                .map(|node| self.hops(node, &group).iter().map(|(next, _)| *next).collect())
                .collect();
            cycle(&next, destination).map(|cycle| (destination, cycle))
        })
    }

    pub(crate) fn counters(&self) -> Vec<Counters> {
        self.nodes.iter().filter_map(|n| n.router.as_ref()).map(Router::counters).collect()
    }
}

/// A cycle in the graph `next` that does not pass `end`.
fn cycle(next: &[Vec<usize>], end: usize) -> Option<Vec<usize>> {
    let mut state = vec![0_u8; next.len()];
    state[end] = 2;
    for start in 0..next.len() {
        let mut path: Vec<(usize, usize)> = Vec::new();
        if state[start] == 0 {
            state[start] = 1;
            path.push((start, 0));
        }
        while let Some((node, at)) = path.pop() {
            let Some(to) = next[node].get(at).copied() else {
                state[node] = 2;
                continue;
            };
            path.push((node, at + 1));
            match state[to] {
                0 => {
                    state[to] = 1;
                    path.push((to, 0));
                }
                1 => return Some(path.iter().map(|(node, _)| *node).collect()),
                _ => {}
            }
        }
    }
    None
}
