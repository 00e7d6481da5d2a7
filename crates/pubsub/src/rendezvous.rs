//! The rendezvous: matches publishers with subscribers and reports what changed.
//!
//! One instance serves the node (strategy node-local), another one the domain.

mod going;
pub mod graph;
mod keep;
mod leave;

pub use going::GO_MAX;
pub use keep::Kept;

use crate::courier::{Courier, Taken, Traffic};
use crate::publication::{Outbox, Publication, Target, responsible};
use going::{Going, Part, Why};
use graph::request::Request;
use graph::{Changes, Graph, Held, ItemChange, Limits, Nodes};
use onym_tables::{KeyedMap, Tick};
use onym_wire::push::{Control, Home, Id, Kind, Label, Role, RouteBuf, Status, Strategy, reserved};
use std::collections::BTreeSet;
use std::collections::hash_map::Entry;
use std::time::Duration;

/// Settings of a rendezvous.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node that it runs on.
    pub node: Label,
    /// Serves this node only.
    pub is_node_local: bool,
    /// Bounds of the graph.
    pub limits: Limits,
    /// Time after which a silent node is forgotten.
    pub lease: Duration,
    /// Number of this life of the rendezvous; dispatchers assert again when it changes.
    pub epoch: u64,
    /// Start of session numbers.
    pub boot: u32,
}

/// What is known of a node that asserts something.
#[derive(Debug, Default)]
struct Lease {
    heard: Tick,
    /// Number of the last "assert again", and what was not asserted since.
    round: u64,
    asserting: Option<BTreeSet<Held>>,
}

/// A rendezvous.
#[derive(Debug)]
pub struct Rendezvous {
    config: Config,
    graph: Graph,
    nodes: KeyedMap<Label, Lease>,
    /// What is still to be taken back of nodes.
    going: Going,
    /// Sessions of dispatchers.
    dispatchers: Courier,
    /// The session to the topology manager.
    manager: Courier,
    /// The topology manager, and the way to it when it is on another node.
    home: Option<(Label, Option<RouteBuf>)>,
    /// Rendezvous nodes of the domain; empty: this one alone.
    peers: Vec<Label>,
    /// Messages for a topology manager that is not known yet.
    early: Vec<Control>,
    /// Items that the topology manager knows, with the version of their match.
    announced: KeyedMap<u64, u64>,
    /// Other domains, for which the topology manager speaks.
    foreign: BTreeSet<Label>,
    /// Something was ever published for other domains.
    has_shared: bool,
    /// When the topology manager is told what nodes publish for other domains.
    share_at: Option<Tick>,
    /// Other rendezvous nodes share the roots than before.
    is_recall_wanted: bool,
    /// Messages that were refused.
    pub refused: u64,
}

/// Most messages that wait for a topology manager to be known.
const EARLY_MAX: usize = 65_536;
/// Time from a change of what is published for other domains until the topology manager is told.
const SHARE: Duration = Duration::from_millis(50);
/// Octets of identifiers in one message about it.
const SHARED_OCTETS_MAX: usize = 800;

impl Rendezvous {
    /// An empty rendezvous.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            graph: Graph::new(config.limits),
            nodes: KeyedMap::default(),
            going: Going::default(),
            dispatchers: Courier::new(config.node, config.boot),
            manager: Courier::new(config.node, config.boot),
            home: None,
            peers: Vec::new(),
            early: Vec::new(),
            announced: KeyedMap::default(),
            foreign: BTreeSet::new(),
            has_shared: false,
            share_at: None,
            is_recall_wanted: false,
            refused: 0,
            config,
        }
    }

    /// The information graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Whether most of the graph has gone since this was asked last.
    pub fn take_emptied(&mut self) -> bool {
        self.graph.take_emptied()
    }

    /// Messages to dispatchers and the topology manager.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        [self.dispatchers.traffic(), self.manager.traffic()].into_iter().sum()
    }

    /// A message published under the rendezvous root.
    pub fn receive(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        match message.kind {
            kind if kind.is_request() => self.request(now, message, out),
            Kind::KEEP_ALIVE => self.keep_alive(now, message, out),
            Kind::ACK => self.acked(now, message, out),
            Kind::MATCH_WANTED => self.match_wanted(now, message, out),
            Kind::HOMES => self.homes(now, message, out),
            _ => self.refused += 1,
        }
    }

    fn request(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let node = message.sender;
        if !self.config.is_node_local {
            match self.dispatchers.take(node, message.sequence) {
                Taken::InOrder => {}
                Taken::NotNow => return,
                Taken::Unknown => {
                    let sequence = self.dispatchers.taken(node, message.sequence.session);
                    let ack = self.message(Kind::ACK);
                    let ack = Control { request: sequence, ..ack };
                    return self.relay(now, &[node], ack, out);
                }
            }
        } else if node != self.config.node {
            self.refused += 1;
            return;
        }
        let sequence = message.sequence;
        if !message.nodes.is_empty() {
            self.foreign.insert(node);
        }
        let request = Request {
            kind: message.kind,
            id: message.ids.first().cloned().unwrap_or_default(),
            prefix: message.prefix.clone(),
            strategy: message.strategy,
        };
        self.heard(now, node, &request);
        let (status, changes) = match self.judge_named(node, &request, message.word.as_deref()) {
            Ok(changes) => (Status::OK, changes),
            Err(status) => (status, Changes::default()),
        };
        let response = Control {
            request: sequence,
            status: Some(status),
            epoch: Some(self.config.epoch),
            ..self.message(Kind::RESPONSE)
        };
        self.relay(now, &[node], response, out);
        self.tell(now, &changes, out);
        let is_shared = request.strategy == Strategy::INTER_DOMAIN && status == Status::OK;
        if is_shared && request.kind.is_of_publisher() && !self.foreign.contains(&node) {
            self.has_shared = true;
            self.share_soon(now);
        }
    }

    fn share_soon(&mut self, now: Tick) {
        if self.has_shared && !self.config.is_node_local {
            self.share_at.get_or_insert(now + SHARE);
        }
    }

    /// Tells the topology manager all that nodes of this domain publish for other domains.
    fn share(&mut self, now: Tick, out: &mut Outbox) {
        let all = self.graph.published(Strategy::INTER_DOMAIN, &self.foreign);
        let mut is_full = true;
        for (class, is_scope) in [(0, true), (1, false)] {
            let ids: Vec<Id> =
                all.iter().filter(|(_, s)| *s == is_scope).map(|(id, _)| id.clone()).collect();
            let mut rest = &ids[..];
            while is_full || !rest.is_empty() {
                // As many as fit a frame.
                let mut octets = 0;
                let fits = rest.iter().take_while(|id| {
                    octets += id.octets().len() + 4;
                    octets <= SHARED_OCTETS_MAX
                });
                let count = fits.count().max(rest.len().min(1));
                let (now_ids, later) = rest.split_at(count);
                let ids = now_ids.to_vec();
                let message =
                    Control { item: Some(class), ids, is_full, ..self.message(Kind::SHARED) };
                self.tell_manager(now, message, out);
                (rest, is_full) = (later, false);
            }
        }
    }

    /// Notes that the node lives, and that it asserted this again.
    fn heard(&mut self, now: Tick, node: Label, request: &Request) {
        let is_full = self.nodes.len() >= self.config.limits.nodes_max;
        let lease = match self.nodes.entry(node) {
            Entry::Vacant(_) if is_full => return,
            entry => entry.or_default(),
        };
        lease.heard = now;
        let is_going = self.going.has(node);
        if is_going {
            self.going.is_back(node);
        }
        let Some(label) = request.id.last().filter(|_| is_going || lease.asserting.is_some())
        else {
            return;
        };
        let (kind, id) = (request.kind, request.prefix.child(label));
        let held = Held::new(kind.is_of_scope(), !kind.is_of_publisher(), id);
        if let Some(asserting) = &mut lease.asserting {
            asserting.remove(&held);
        }
        self.going.keep(node, &held);
    }

    /// Whether the root that `id` begins with belongs to this rendezvous.
    fn is_ours(&self, id: &Id) -> bool {
        let root = id.first().unwrap_or_default();
        let owner = responsible(root, self.peers.iter().copied());
        owner.is_none_or(|owner| owner == self.config.node)
    }

    /// As `judge`, of a request that has a word for the last label (P-72).
    #[inline]
    fn judge_named(
        &mut self,
        node: Label,
        request: &Request,
        word: Option<&str>,
    ) -> Result<Changes, Status> {
        let (Some(word), Some(label)) = (word, request.id.last()) else {
            return self.judge(node, request);
        };
        let full = request.prefix.child(label);
        if Label::of_word(word) != label {
            return Err(Status::WRONG_IDS);
        }
        if self.graph.has_other_word(&full, word) {
            return Err(Status::WORD);
        }
        let done = self.judge(node, request);
        if matches!(done, Ok(_) | Err(Status::EXISTS)) && !request.kind.is_withdrawal() {
            self.graph.name(&full, word);
        }
        done
    }

    fn judge(&mut self, node: Label, request: &Request) -> Result<Changes, Status> {
        let target = if request.prefix.is_empty() { &request.id } else { &request.prefix };
        let is_fit = match request.strategy {
            Strategy::NODE_LOCAL => self.config.is_node_local,
            Strategy::DOMAIN_LOCAL | Strategy::INTER_DOMAIN => !self.config.is_node_local,
            _ => false,
        };
        if !is_fit {
            return Err(Status::UNFIT);
        }
        if target.first().is_some_and(reserved::is_reserved) {
            return Err(Status::RESERVED);
        }
        if !self.is_ours(target) || (request.id.len() > 1 && !self.is_ours(&request.id)) {
            return Err(Status::ELSEWHERE);
        }
        self.graph.request(node, request)
    }

    fn keep_alive(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let node = message.sender;
        let lease = self.nodes.entry(node).or_default();
        lease.heard = now;
        // Only after the node obeyed: what it did not assert then is gone.
        let has_obeyed = message.number == lease.round;
        let stale = lease.asserting.take_if(|_| has_obeyed);
        self.going.is_back(node);
        if let Some(held) = stale {
            self.going.push(now, Part { node, why: Why::Stale, held });
            self.go_on(now, out);
        }
        if self.going.has(node) {
            // The next one is compared.
            return;
        }
        if message.digest == self.graph.digest(node) && message.epoch == Some(self.config.epoch) {
            return;
        }
        let all: BTreeSet<Held> = self.graph.held(node).cloned().collect();
        let mut number = 0;
        if let Some(lease) = self.nodes.get_mut(&node) {
            lease.asserting = Some(all);
            lease.round += 1;
            number = lease.round;
        }
        let epoch = Some(self.config.epoch);
        let again = Control { epoch, number, ..self.message(Kind::ASSERT) };
        self.relay(now, &[node], again, out);
    }

    /// Tells what changed: scopes to their subscribers, items to the topology manager (P-25).
    fn tell(&mut self, now: Tick, changes: &Changes, out: &mut Outbox) {
        for news in &changes.scopes {
            let kind =
                if news.is_published { Kind::SCOPE_PUBLISHED } else { Kind::SCOPE_UNPUBLISHED };
            let message = Control { ids: news.ids.clone(), ..self.message(kind) };
            self.relay(now, &news.nodes, message, out);
        }
        for (number, change) in changes.in_order() {
            self.announce(now, number, change, out);
        }
    }

    fn announce(&mut self, now: Tick, number: u64, change: &ItemChange, out: &mut Outbox) {
        let is_matched = change.vertex.is_some_and(|v| self.graph.is_matched(v));
        let version = match (self.announced.entry(number), is_matched) {
            (Entry::Vacant(_), false) => return,
            (Entry::Vacant(entry), true) => *entry.insert(1),
            (Entry::Occupied(mut entry), true) => {
                *entry.get_mut() += 1;
                *entry.get()
            }
            (Entry::Occupied(entry), false) => entry.remove() + 1,
        };
        let is_new = version == 1;
        if self.config.is_node_local {
            if is_new || !is_matched {
                let kind = if is_matched { Kind::START } else { Kind::STOP };
                let message = Control { ids: change.ids.clone(), ..self.message(kind) };
                self.relay(now, &[self.config.node], message, out);
            }
            return;
        }
        let is_full = is_new || !is_matched || change.is_renamed;
        let (publishers, subscribers) = match change.vertex {
            _ if !is_full => (change.publishers.clone(), change.subscribers.clone()),
            Some(v) if is_matched => {
                (self.graph.publishers(v), self.graph.effective_subscribers(v))
            }
            Some(v) => (self.graph.publishers(v), Nodes::default()),
            None => Default::default(),
        };
        let message = Control {
            item: Some(number),
            version,
            is_full,
            strategy: change.strategy,
            ids: change.ids.clone(),
            publishers: publishers.to_vec(),
            subscribers: subscribers.to_vec(),
            gone: if is_full { Vec::new() } else { change.subscribers_gone.to_vec() },
            nodes: if is_full { Vec::new() } else { change.publishers_gone.to_vec() },
            ..self.message(Kind::MATCH)
        };
        self.tell_manager(now, message, out);
    }

    /// A whole match once more, for a topology manager that does not know it.
    fn match_wanted(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let is_ours = self.home.as_ref().is_some_and(|(node, _)| *node == message.sender);
        if !is_ours && message.sender != self.config.node {
            return;
        }
        self.share_soon(now);
        let mut wanted: Vec<u64> = match message.item {
            Some(item) => self.announced.contains_key(&item).then_some(item).into_iter().collect(),
            None => self.announced.keys().copied().collect(),
        };
        wanted.sort_unstable();
        for number in wanted {
            let Some((change, _)) = self.graph.whole(number) else { continue };
            self.announced.remove(&number);
            self.announce(now, number, &change, out);
        }
    }

    fn homes(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let of = |role: Role| message.homes.iter().filter(move |h: &&Home| h.role.has(role));
        let peers: Vec<Label> = of(Role::RENDEZVOUS).map(|h| h.node).collect();
        self.is_recall_wanted |= peers != self.peers;
        self.peers = peers;
        let manager = responsible(self.config.node, of(Role::TOPOLOGY).map(|h| h.node));
        let route = manager
            .filter(|m| *m != self.config.node)
            .and_then(|m| of(Role::TOPOLOGY).find(|h| h.node == m))
            .map(|h| h.route.clone());
        let before = self.home.as_ref().map(|(node, _)| *node);
        self.home = manager.map(|node| (node, route));
        if manager == before {
            return;
        }
        let held = before.map(|node| self.manager.end(node)).unwrap_or_default();
        let early = std::mem::take(&mut self.early);
        // Matches are told whole below.
        for message in early.into_iter().chain(held).filter(|m| m.kind != Kind::MATCH) {
            self.tell_manager(now, message, out);
        }
        self.match_wanted(now, &self.message(Kind::MATCH_WANTED), out);
    }

    fn acked(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let acked = self.manager.acked(now, message.sender, message.request);
        for message in acked.ready {
            self.publish_to_manager(message, out);
        }
        if acked.is_lost {
            for message in acked.lost.into_iter().filter(|m| m.kind != Kind::MATCH) {
                self.tell_manager(now, message, out);
            }
            self.match_wanted(now, &self.message(Kind::MATCH_WANTED), out);
        }
    }

    fn message(&self, kind: Kind) -> Control {
        Control::new(kind, self.config.node)
    }

    /// Sends a message to the dispatchers of these nodes, by way of the topology manager.
    fn relay(&mut self, now: Tick, nodes: &[Label], message: Control, out: &mut Outbox) {
        if self.config.is_node_local {
            let node = self.config.node;
            let root = reserved::DISPATCHER;
            return out.control(Target::Here, root, node, message);
        }
        let relay =
            Control { nodes: nodes.to_vec(), body: message.octets(), ..self.message(Kind::RELAY) };
        self.tell_manager(now, relay, out);
    }

    fn tell_manager(&mut self, now: Tick, message: Control, out: &mut Outbox) {
        let Some((manager, _)) = self.home else {
            // Matches are told whole when the topology manager is known.
            if message.kind != Kind::MATCH && self.early.len() < EARLY_MAX {
                self.early.push(message);
            }
            return;
        };
        match self.manager.send(now, manager, message) {
            Some(ready) => ready.into_iter().for_each(|m| self.publish_to_manager(m, out)),
            None => self.refused += 1,
        }
    }

    fn publish_to_manager(&self, message: Control, out: &mut Outbox) {
        let Some((_, route)) = &self.home else { return };
        let target = Publication::toward(route.as_ref());
        out.control(target, reserved::TOPOLOGY, self.config.node, message);
    }

    /// Repeats what is not acknowledged and forgets nodes that are silent.
    pub fn handle_timeout(&mut self, now: Tick, out: &mut Outbox) {
        let (again, lost) = self.manager.repeat(now);
        again.into_iter().for_each(|(_, message)| self.publish_to_manager(message, out));
        if !lost.is_empty() {
            self.match_wanted(now, &self.message(Kind::MATCH_WANTED), out);
        }
        if self.config.is_node_local {
            return;
        }
        let is_over = |lease: &Lease| now.since(lease.heard) > self.config.lease;
        let mut silent: Vec<Label> =
            self.nodes.iter().filter(|(_, l)| is_over(l)).map(|(n, _)| *n).collect();
        silent.sort_unstable();
        for node in silent {
            self.nodes.remove(&node);
            self.dispatchers.forget(node);
            let held = self.graph.held(node).cloned().collect();
            self.going.push(now, Part { node, why: Why::Silent, held });
        }
        self.go_on(now, out);
        if self.share_at.is_some_and(|at| at <= now) {
            self.share_at = None;
            self.share(now, out);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Tick> {
        let leases = self.nodes.values().map(|l| l.heard + self.config.lease).min();
        let leases = leases.filter(|_| !self.config.is_node_local).map(|t| Tick(t.0 + 1));
        [leases, self.share_at, self.going.due(), self.manager.next_timeout()]
            .into_iter()
            .flatten()
            .min()
    }
}
