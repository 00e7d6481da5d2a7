//! Which ways are taken.

use super::{Destination, Entry, Feasible, Hop, METRIC_MAX, Peer, PeerId, Route};
use crate::codec::INFINITY;
use onym_wire::Name;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// What choosing gave.
pub(super) struct Choice {
    pub(super) route: Option<Route>,
    /// What a newer number of the destination would give.
    pub(super) ask: Option<Ask>,
}

/// Why the destination's router should count on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ask {
    pub(super) seq: u64,
    /// The neighbour with the better way; every one when there is no way at all.
    pub(super) to: Option<PeerId>,
}

/// A way that could be taken.
struct Way<'a> {
    hop: Hop,
    /// What the neighbour says.
    entry: Entry,
    name: &'a Name,
}

pub(super) fn is_feasible(bound: Option<Feasible>, entry: Entry) -> bool {
    match (entry.seq, bound) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(seq), Some((newest, metric))) => {
            seq > newest || (seq == newest && entry.metric < metric)
        }
    }
}

pub(super) fn choose(
    destination: &Destination,
    peers: &BTreeMap<PeerId, Peer>,
    ways_max: usize,
) -> Choice {
    let (mut feasible, mut plain) = (Vec::new(), Vec::new());
    let mut blocked: Option<Hop> = None;
    for (id, entry) in &destination.entries {
        let Some(peer) = peers.get(id) else { continue };
        let hop = Hop { peer: *id, metric: entry.metric + peer.cost };
        let way = Way { hop, entry: *entry, name: &peer.name };
        match entry.seq {
            None if hop.metric < INFINITY => plain.push(way),
            Some(_) if hop.metric >= METRIC_MAX => {}
            Some(_) if is_feasible(destination.feasible, *entry) => feasible.push(way),
            Some(_) if blocked.is_none_or(|best| hop.metric < best.metric) => blocked = Some(hop),
            _ => {}
        }
    }
    let route = by_number(feasible, destination.feasible, ways_max).or_else(|| by_cost(&plain));
    let ask = ask(destination, route.as_ref(), blocked);
    Choice { route, ask }
}

/// Feasible ways: the best first, then equal ones and backups.
fn by_number(mut ways: Vec<Way<'_>>, bound: Option<Feasible>, ways_max: usize) -> Option<Route> {
    // Equal costs: the newer number, then the smaller name, so that everybody chooses alike.
    ways.sort_by_key(|way| (way.hop.metric, Reverse(way.entry.seq), way.name));
    let best = ways.first()?;
    let (seq, metric) = (best.entry.seq?, best.hop.metric);
    // Once this is advertised, only ways that are nearer than it stay feasible.
    let bound = match bound {
        Some((newest, least)) if newest == seq => (seq, least.min(metric)),
        _ => (seq, metric),
    };
    let stays = |way: &&Way<'_>| is_feasible(Some(bound), way.entry);
    let hops = ways.iter().filter(stays).take(ways_max).map(|way| way.hop).collect();
    Some(Route { seq: Some(seq), hops })
}

/// Without numbers only the best way is taken: a second one may lead back.
fn by_cost(ways: &[Way<'_>]) -> Option<Route> {
    let best = ways.iter().min_by_key(|way| (way.hop.metric, way.name))?;
    Some(Route { seq: None, hops: vec![best.hop] })
}

fn ask(destination: &Destination, route: Option<&Route>, blocked: Option<Hop>) -> Option<Ask> {
    let (newest, _) = destination.feasible?;
    let (seq, blocked) = (newest.saturating_add(1), blocked?);
    match route {
        None => Some(Ask { seq, to: None }),
        Some(route) if route.seq.is_none() || blocked.metric < route.metric() => {
            Some(Ask { seq, to: Some(blocked.peer) })
        }
        Some(_) => None,
    }
}
