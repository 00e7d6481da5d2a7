//! Repair of fragments lost where there is no way back to their publisher: who is asked for them
//! (spec/push.md, P-64 and P-65).
//!
//! A node asks the topology managers of its domain, which know from the match who serves it. A
//! domain asks the next domain towards the serving one, in its own name, so that nothing about its
//! inside is revealed; what several nodes or domains miss is requested once.

use super::TopologyManager;
use super::domains::PATH_MAX;
use super::matched::{Match, Server};
use crate::dispatcher::HOLES;
use crate::missing::{FRAGMENTS_MAX, Ranges, fragments};
use crate::publication::{Outbox, algorithmic_scope, responsible};
use onym_tables::{KeyedMap, Tick};
use onym_wire::push::{Control, Id, Kind, Label, Role, reserved};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time within which requests for the same fragment are one.
const SAME: Duration = Duration::from_millis(50);
/// Fragments that one neighbour may ask for in a second, and at once.
const RATE: u64 = 4096;
/// How often what was asked for long ago is looked for.
const SWEEP: Duration = Duration::from_secs(1);
/// Most fragments of which it is remembered when they were asked for.
pub const NOTED_MAX: usize = 65_536;

/// What was asked for, and how much each neighbour may ask for.
#[derive(Debug, Default)]
pub(super) struct Repairs {
    /// When fragments were asked for last, by the ids of their publications.
    asked: KeyedMap<Id, KeyedMap<u32, Tick>>,
    noted: usize,
    swept: Tick,
    /// By neighbour: thousandths of fragments that it may still ask for, as of then.
    room: BTreeMap<Label, (u64, Tick)>,
}

impl Repairs {
    /// Of what is missing, what was not asked for just now; notes it.
    fn fresh(&mut self, now: Tick, publication: &Id, missing: &[(u32, u32)]) -> Ranges {
        if now.since(self.swept) >= SWEEP {
            self.expire(now);
        }
        if self.noted + FRAGMENTS_MAX > NOTED_MAX {
            // Forgotten, they are asked for once more than needed.
            (self.asked, self.noted) = (KeyedMap::default(), 0);
        }
        let known = self.asked.entry(publication.clone()).or_default();
        let before = known.len();
        let mut ranges = Ranges::default();
        for index in fragments(missing, u32::MAX).take(FRAGMENTS_MAX) {
            let is_same = known.get(&index).is_some_and(|at| now.since(*at) < SAME);
            if !is_same && ranges.add(index) {
                known.insert(index, now);
            }
        }
        self.noted += known.len() - before;
        if known.is_empty() {
            self.asked.remove(publication);
        }
        ranges
    }

    fn expire(&mut self, now: Tick) {
        self.swept = now;
        for fragments in self.asked.values_mut() {
            fragments.retain(|_, at| now.since(*at) < SAME);
        }
        self.asked.retain(|_, fragments| !fragments.is_empty());
        self.noted = self.asked.values().map(KeyedMap::len).sum();
    }

    pub(super) fn neighbour_gone(&mut self, neighbour: Label) {
        self.room.remove(&neighbour);
    }

    /// Whether a neighbour may ask for so much now.
    fn is_within(&mut self, now: Tick, neighbour: Label, missing: &[(u32, u32)]) -> bool {
        let full = RATE * 1000;
        let (room, at) = self.room.get(&neighbour).copied().unwrap_or((full, now));
        let passed = u64::try_from(now.since(at).as_millis()).unwrap_or(u64::MAX);
        let room = room.saturating_add(passed.saturating_mul(RATE)).min(full);
        let named = fragments(missing, u32::MAX).take(FRAGMENTS_MAX).count().max(1);
        let left = room.checked_sub(1000 * named as u64);
        self.room.insert(neighbour, (left.unwrap_or(room), now));
        left.is_some()
    }
}

/// Whether a request names a publication, an item that it is of, and fragments.
fn is_sound(message: &Control) -> bool {
    let Control { ids, missing, .. } = message;
    let [publication, item, ..] = &ids[..] else { return false };
    let is_fit = |id: &Id| id.first().is_some_and(|root| !reserved::is_reserved(root));
    ids.len() <= 3
        && !missing.is_empty()
        && ids.iter().all(is_fit)
        && publication.parent() == algorithmic_scope(item).labels()
}

impl TopologyManager {
    /// The match of an item whose fragments have no way back, by one of its names, or of one that
    /// it is beneath.
    fn match_for(&self, message: &Control) -> Option<&Match> {
        let known =
            |id: &Id| self.one_way.get(id).or_else(|| self.one_way.get(id.parent().as_flattened()));
        let key = message.ids.iter().skip(1).find_map(known)?;
        self.matches.get(key)
    }

    /// Whether the rendezvous of the item works with this topology manager: what is to be refused
    /// is refused once.
    fn is_ours(&mut self, message: &Control) -> bool {
        let root = message.ids.get(1).and_then(Id::first).unwrap_or_default();
        let rendezvous = responsible(root, self.homes_of(Role::RENDEZVOUS)).unwrap_or_default();
        responsible(rendezvous, self.homes_of(Role::TOPOLOGY)) == Some(self.config.node)
    }

    /// A node of this domain misses fragments.
    pub(super) fn node_asks(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let is_node = self.map.nodes().contains_key(&message.sender);
        if message.item == Some(HOLES) {
            if is_node && is_sound(message) && message.publishers.len() <= 1 {
                self.ask_holder(now, message, out);
            } else {
                self.refused += 1;
            }
            return;
        }
        if message.item == Some(1) {
            let is_fit = is_node && is_sound(message);
            if !(is_fit && self.ask_cache(now, message, out)) {
                self.refused += u64::from(self.is_ours(message));
            }
            return;
        }
        let found = self.match_for(message).filter(|_| is_node && is_sound(message));
        match found.and_then(|m| m.server_of(message.sender)) {
            Some(Server::Publishers(nodes)) => self.ask_nodes(now, message, nodes, out),
            Some(Server::Domain(domain)) => self.ask_domain(now, message, domain, None, out),
            None => self.refused += u64::from(self.is_ours(message)),
        }
    }

    /// A neighbour domain misses fragments, or passes on that another one does.
    pub(super) fn domain_asks(
        &mut self,
        now: Tick,
        from: Label,
        message: &Control,
        out: &mut Outbox,
    ) {
        let is_taken = message.sender == from
            && (1..=PATH_MAX as u64).contains(&message.hops)
            && self.repairs.is_within(now, from, &message.missing)
            && is_sound(message);
        let to = match message.nodes[..] {
            [to] if is_taken => to,
            _ => return self.refuse_domain(true),
        };
        let Some(federation) = &self.federation else { return };
        if to != federation.own() {
            if self.is_ours(message) {
                self.ask_domain(now, message, to, Some(from), out);
            }
            return;
        }
        let is_beyond = |domain| federation.domains.is_beyond(from, domain);
        let found = self.match_for(message).filter(|m| m.subscribers().any(is_beyond));
        match found.map(Match::one_way_publishers).filter(|nodes| !nodes.is_empty()) {
            Some(nodes) => self.ask_nodes(now, message, nodes, out),
            None => {
                let is_ours = self.is_ours(message);
                self.refuse_domain(is_ours);
            }
        }
    }

    fn refuse_domain(&mut self, is_ours: bool) {
        if let Some(federation) = self.federation.as_mut().filter(|_| is_ours) {
            federation.refused += 1;
        }
    }

    /// Of what is missing, what was not asked for just now.
    fn fresh(&mut self, now: Tick, message: &Control) -> Option<Vec<(u32, u32)>> {
        let ranges = self.repairs.fresh(now, message.ids.first()?, &message.missing);
        (!ranges.is_empty()).then(|| ranges.into_inner())
    }

    /// Asks publishers of this domain.
    fn ask_nodes(&mut self, now: Tick, message: &Control, nodes: Vec<Label>, out: &mut Outbox) {
        let Some(missing) = self.fresh(now, message) else { return };
        let ids = message.ids.iter().take(1).cloned().collect();
        let asked = Control { ids, missing, ..self.message(Kind::REPAIR) };
        for node in nodes {
            if let Some(target) = self.way(node) {
                out.control(target, reserved::REPAIR, node, asked.clone());
            }
        }
    }

    /// Asks the next domain on the way to `domain`.
    fn ask_domain(
        &mut self,
        now: Tick,
        message: &Control,
        domain: Label,
        from: Option<Label>,
        out: &mut Outbox,
    ) {
        let Some(federation) = &self.federation else { return };
        let hops = if from.is_some() { message.hops + 1 } else { 1 };
        let next = federation.domains.onward(domain, from);
        let Some(next) = next.filter(|_| hops <= PATH_MAX as u64) else {
            return self.refuse_domain(true);
        };
        let own = federation.own();
        let Some(missing) = self.fresh(now, message) else { return };
        let (ids, nodes) = (message.ids.clone(), vec![domain]);
        let like = Control::new(Kind::DOMAIN_REPAIR, own);
        self.tell_domain(next, &Control { ids, nodes, hops, missing, ..like }, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fragment_is_asked_for_once_in_a_while() {
        let mut repairs = Repairs::default();
        let of: Id = "/1/2/3".parse().unwrap();
        let mut fresh = |ms, missing: &[(u32, u32)]| {
            repairs.fresh(Tick::from_ms(ms), &of, missing).into_inner()
        };
        assert_eq!(fresh(100, &[(1, 4), (9, 9)]), [(1, 4), (9, 9)]);
        assert_eq!(fresh(120, &[(0, 5), (9, 9)]), [(0, 0), (5, 5)]);
        assert!(fresh(149, &[(1, 4)]).is_empty());
        assert_eq!(fresh(150, &[(0, 5)]), [(1, 4)]);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_forgotten() {
        let mut repairs = Repairs::default();
        for n in 0..2000 {
            let of = Id::root(Label::from_u64(n));
            let asked = repairs.fresh(Tick::from_ms(1), &of, &[(0, u32::MAX)]).into_inner();
            assert_eq!(asked, [(0, 255)]);
            let noted = repairs.asked.values().map(KeyedMap::len).sum::<usize>();
            assert!(noted <= NOTED_MAX && noted == repairs.noted);
        }
        // A range that is upside down asks for nothing, and nothing is kept for it.
        assert!(repairs.fresh(Tick::from_ms(1), &Id::root(Label::default()), &[(9, 3)]).is_empty());
        assert!(repairs.asked.len() <= NOTED_MAX / FRAGMENTS_MAX);
        repairs.fresh(Tick::from_ms(2000), &Id::root(Label::default()), &[(0, 0)]);
        assert_eq!((repairs.noted, repairs.asked.len()), (1, 1));
    }
}
