//! What an operator sees.

use super::measure::Measure;
use super::{Counters, Router};
use onym_tables::Tick;
use onym_wire::Name;
use serde::Serialize;

/// Prefixes in a view, at most: it is read as a whole.
const PREFIXES_SHOWN: usize = 10_000;

/// A router as a whole.
#[derive(Debug, Clone, Serialize)]
pub struct View {
    /// The network.
    pub network: String,
    /// All networks of this host, the one that serves its programs first.
    pub networks: Vec<String>,
    /// The router.
    pub router: String,
    /// Its bootstrap time, seconds since the Unix epoch.
    pub boot: u64,
    /// Its newest advertisement.
    pub seq: u64,
    /// Its neighbours.
    pub neighbours: Vec<NeighbourView>,
    /// Links that are configured, then those that were met.
    pub links: Vec<LinkView>,
    /// Routers that are reached.
    pub destinations: Vec<DestinationView>,
    /// Prefixes that programs here announce, with their cost.
    pub local_prefixes: Vec<(String, u64)>,
    /// Prefixes that this host has in other networks.
    pub outside_prefixes: Vec<OutsideView>,
    /// Prefixes of other routers.
    pub prefixes: Vec<PrefixView>,
    /// Neighbours that are held down.
    pub held: Vec<String>,
    /// Where the router keeps them and its keys.
    pub folder: Option<String>,
    /// What was said and not taken, newest last, one for each router.
    pub refused: Vec<RefusalView>,
    /// What was counted.
    pub counters: Counters,
}

/// A neighbour.
#[derive(Debug, Clone, Serialize)]
pub struct NeighbourView {
    /// Its name.
    pub router: String,
    /// Faces by which it is heard, the one in use first.
    pub faces: Vec<u64>,
    /// Cost of the link.
    pub cost: u64,
    /// Seconds since it came.
    pub up_s: u64,
    /// Seconds since it was heard.
    pub heard_s: u64,
    /// Its newest advertisement.
    pub seq: u64,
    /// Whether that was taken.
    pub in_step: bool,
    /// Whether it tells what deployed routers do not.
    pub extended: bool,
    /// Whether its ways are used: it hears this router, as far as it tells.
    pub usable: bool,
    /// Round-trip time in milliseconds, once measured.
    pub rtt_ms: Option<f64>,
    /// Of a hundred probes, those lost; none while too few were sent.
    pub loss_percent: Option<u32>,
    /// Whether packets of 8000 octets pass; none while nobody knows.
    pub full_size: Option<bool>,
    /// Its clock less this one's, in milliseconds, the delay of the link included.
    pub clock_ahead_ms: Option<i64>,
    /// Fetches of its advertisement that failed in a row.
    pub fetches_failed: u32,
}

/// A link that is configured, or was met.
#[derive(Debug, Clone, Serialize)]
pub struct LinkView {
    /// FaceUri of the other end.
    pub uri: String,
    /// Its face; none while it cannot be made.
    pub face: Option<u64>,
    /// Its cost.
    pub cost: u64,
    /// Whether a router is heard there.
    pub is_heard: bool,
    /// Whether the router found it by itself, or by a host name.
    pub is_met: bool,
}

/// Something that was not taken.
#[derive(Debug, Clone, Serialize)]
pub struct RefusalView {
    /// The router that it names.
    pub router: String,
    /// The key that it names.
    pub key: Option<String>,
    /// Why, with the name that was expected.
    pub why: String,
    /// Seconds since then.
    pub ago_s: u64,
}

/// A prefix of other routers.
#[derive(Debug, Clone, Serialize)]
pub struct PrefixView {
    /// The prefix.
    pub prefix: String,
    /// Who announces it, at what cost.
    pub exits: Vec<(String, u64)>,
    /// Faces by which it is reached, best first, with the cost by each.
    pub ways: Vec<(u64, u64)>,
}

/// A prefix that this host has in another network.
#[derive(Debug, Clone, Serialize)]
pub struct OutsideView {
    /// The prefix.
    pub prefix: String,
    /// Cost at which this host reaches it there, or of its summary.
    pub cost: u64,
    /// Cost at which it is announced in this network; none where no export says so.
    pub announced: Option<u64>,
    /// The networks that it came through, the first one first, as far as it is announced.
    pub through: Vec<String>,
    /// Whether it stands for all under it.
    pub is_summary: bool,
}

/// A router that is reached.
#[derive(Debug, Clone, Serialize)]
pub struct DestinationView {
    /// Its name.
    pub router: String,
    /// Cost of the best way.
    pub cost: u64,
    /// Neighbours by which it is reached, best first, with the cost by each.
    pub hops: Vec<(String, u64)>,
    /// Its number; none when it comes by a peer that does not tell.
    pub seq: Option<u64>,
}

/// What a neighbour offers, and why it is taken or not.
#[derive(Debug, Clone, Serialize)]
pub struct OfferView {
    /// The neighbour.
    pub by: String,
    /// Cost by it.
    pub cost: u64,
    /// Whether it is in use.
    pub used: bool,
    /// Why, or why not.
    pub why: String,
}

/// Why a router or prefix is reached as it is.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// What was asked about.
    pub name: String,
    /// The announced prefix that it is under; none when it is a router or nobody announces any.
    pub prefix: Option<String>,
    /// Cost at which programs here announce it.
    pub local: Option<u64>,
    /// What this host has of it in another network.
    pub outside: Option<OutsideView>,
    /// In a sentence.
    pub summary: String,
    /// Faces in use, best first, with the cost by each.
    pub ways: Vec<(u64, u64)>,
    /// The routers that announce it, or that are asked about.
    pub routers: Vec<RouterExplanation>,
}

/// Why a router is reached as it is.
#[derive(Debug, Clone, Serialize)]
pub struct RouterExplanation {
    /// The router.
    pub router: String,
    /// Cost at which it announces the prefix.
    pub announced: u64,
    /// Cost at which it is reached.
    pub reached: Option<u64>,
    /// What neighbours offer.
    pub offers: Vec<OfferView>,
}

impl Router {
    /// Everything at `now`.
    #[must_use]
    pub fn view(&self, now: Tick) -> View {
        let neighbours = self.neighbours.iter().map(|n| NeighbourView {
            router: n.name.to_string(),
            faces: n.faces.iter().map(|f| f.face).collect(),
            cost: n.cost(),
            up_s: now.since(n.up_since).as_secs(),
            heard_s: n.faces.iter().map(|f| now.since(f.heard).as_secs()).min().unwrap_or(0),
            seq: n.words.said.seq,
            in_step: n.taken == Some(n.words.said),
            extended: n.ours,
            usable: n.usable,
            rtt_ms: n.measure().and_then(|m| m.rtt).or(n.rtt).map(|rtt| rtt.as_secs_f64() * 1000.0),
            loss_percent: n.measure().and_then(Measure::loss_percent),
            full_size: n.measure().and_then(Measure::full_size),
            clock_ahead_ms: n.clock_ahead_ms,
            fetches_failed: n.fetches_failed,
        });
        let link = |is_met, (link, face): (&super::Link, Option<u64>)| LinkView {
            uri: link.uri.clone(),
            face,
            cost: link.cost,
            is_heard: face.is_some_and(|face| self.is_heard(face)),
            is_met,
        };
        let configured = self.links.iter().map(|l| link(false, l));
        let links = configured.chain(self.links.met().map(|l| link(true, l)));
        let destinations = self.table.routes().map(|(name, route)| DestinationView {
            router: name.to_string(),
            cost: route.metric(),
            hops: route.hops.iter().map(|hop| (self.label(hop.peer), hop.metric)).collect(),
            seq: route.seq,
        });
        let prefix = |name: &std::sync::Arc<Name>| PrefixView {
            prefix: name.to_string(),
            exits: self.prefixes.exits(name).map(|(r, cost)| (r.to_string(), cost)).collect(),
            ways: self.prefix_ways(name),
        };
        let outside = self.prefixes.outsides().map(|(name, outside)| outside_view(name, outside));
        let refused = |refusal: &super::Refusal| RefusalView {
            router: refusal.router.to_string(),
            key: refusal.key.as_ref().map(Name::to_string),
            why: refusal.why.clone(),
            ago_s: now.since(refusal.at).as_secs(),
        };
        View {
            network: self.names.network.to_string(),
            networks: self.networks.iter().map(Name::to_string).collect(),
            router: self.own.to_string(),
            boot: self.config.boot,
            seq: self.publisher.seq,
            neighbours: neighbours.collect(),
            links: links.collect(),
            destinations: destinations.collect(),
            local_prefixes: self.prefixes.local().map(|(n, cost)| (n.to_string(), cost)).collect(),
            outside_prefixes: outside.take(PREFIXES_SHOWN).collect(),
            prefixes: self.prefixes.remote().take(PREFIXES_SHOWN).map(prefix).collect(),
            held: self.links.held().map(Name::to_string).collect(),
            folder: self.config.folder.clone(),
            refused: self.refusals.iter().map(refused).collect(),
            counters: self.counters,
        }
    }

    /// Why `name`, a router or something under an announced prefix, is reached as it is.
    #[must_use]
    pub fn explain(&self, name: &Name) -> Explanation {
        if self.names.is_router(name.as_ref()) {
            let router = self.explain_router(name, 0);
            let summary = match router.reached {
                Some(cost) => format!("a router at cost {cost}"),
                None if router.offers.is_empty() => "no neighbour knows this router".to_owned(),
                None => "a router without a safe way now".to_owned(),
            };
            let (ways, routers) = (self.face_hops(name), vec![router]);
            let name = name.to_string();
            let (prefix, local, outside) = (None, None, None);
            return Explanation { name, prefix, local, outside, summary, ways, routers };
        }
        let prefixes = (0..=name.len()).rev().map(|len| name.as_ref().prefix(len).to_name());
        let announced = |prefix: &Name| {
            self.prefixes.host_cost(prefix).is_some()
                || self.prefixes.exits(prefix).next().is_some()
        };
        let Some(prefix) = prefixes.into_iter().find(announced) else {
            return Explanation {
                name: name.to_string(),
                prefix: None,
                local: None,
                outside: None,
                summary: "nobody announces it: routes are announced only where an application or \
                          operator says so (origin client)"
                    .to_owned(),
                ways: Vec::new(),
                routers: Vec::new(),
            };
        };
        let exits = self.prefixes.exits(&prefix);
        let routers: Vec<_> = exits.map(|(r, cost)| self.explain_router(r, cost)).collect();
        let ways = self.prefix_ways(&prefix);
        let local = self.prefixes.local_cost(&prefix);
        let outside = self.prefixes.outside(&prefix).map(|found| outside_view(&prefix, found));
        let summary = match (ways.first(), local, &outside) {
            (Some((face, cost)), ..) => format!("by face {face} at cost {cost}"),
            (None, Some(_), _) => "announced here, and nobody is nearer".to_owned(),
            (None, None, Some(_)) => "another network of this host is nearest".to_owned(),
            (None, None, None) => "its routers are not reached".to_owned(),
        };
        let (name, prefix) = (name.to_string(), Some(prefix.to_string()));
        Explanation { name, prefix, local, outside, summary, ways, routers }
    }

    /// Neighbours, and those of them that do not hear this router.
    #[must_use]
    pub fn neighbour_counts(&self) -> (u64, u64) {
        let deaf = self.neighbours.iter().filter(|n| !n.usable).count();
        (self.neighbours.len() as u64, deaf as u64)
    }

    fn is_heard(&self, face: u64) -> bool {
        let mut faces = self.neighbours.iter().flat_map(|n| n.faces.iter());
        self.links.is_shut(face) || faces.any(|f| f.face == face)
    }

    fn explain_router(&self, router: &Name, announced: u64) -> RouterExplanation {
        let route = self.table.route(router);
        let best = route.map(crate::Route::metric);
        let offers = self.table.offers(router).into_iter().map(|(peer, cost, feasible)| {
            let used = route.is_some_and(|r| r.hops.iter().any(|hop| hop.peer == peer));
            let why = match (used, feasible) {
                (true, _) if best == Some(cost) => "the shortest way",
                (true, _) => "a backup: the neighbour is nearer to it than this router is",
                (false, true) => "the neighbour is not nearer to it than this router is",
                (false, false) => "may lead back here",
            };
            OfferView { by: self.label(peer), cost, used, why: why.to_owned() }
        });
        let (offers, router) = (offers.collect(), router.to_string());
        RouterExplanation { router, announced, reached: best, offers }
    }

    fn label(&self, peer: crate::PeerId) -> String {
        self.neighbour_name(peer).map_or_else(|| "gone".to_owned(), Name::to_string)
    }
}

fn outside_view(prefix: &Name, outside: &crate::prefixes::Outside) -> OutsideView {
    let through = outside.told.iter().flat_map(|told| &told.through);
    OutsideView {
        prefix: prefix.to_string(),
        cost: outside.cost,
        announced: outside.told.as_ref().map(|told| told.cost),
        through: through.map(Name::to_string).collect(),
        is_summary: outside.is_summary,
    }
}
