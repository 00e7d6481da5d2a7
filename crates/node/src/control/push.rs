//! The control thread's part of the push half: faces, links, datasets.

use super::faces::{Faces, Record};
use super::links::Links;
use super::shards::Shards;
use crate::config::{Push, PushLink, PushScheme};
use crate::counts::PushCounts;
use crate::push::{NewLink, PushOrder, PushPort, Question};
use onym_face::Transport;
use onym_pubsub::Verdict;
use onym_tables::{FaceId, Tick};
use std::collections::HashMap;
use std::time::Duration;

/// The push thread as the control thread orders it.
#[derive(Debug)]
pub(super) struct PushHalf {
    pub(super) port: PushPort,
    /// Those of the configuration.
    pub(super) links: Links,
    /// What routing said last of the costs of faces.
    costs: HashMap<FaceId, u16>,
    /// When the push thread is told what is sent over links.
    measure_due: Tick,
    /// What it counted when it was asked last.
    counted: PushCounts,
}

/// Time between two looks at what is sent over links.
const MEASURE: Duration = Duration::from_secs(1);

impl PushHalf {
    pub(super) fn new(port: PushPort) -> Self {
        let (links, costs) = (Links::default(), HashMap::new());
        Self { port, links, costs, measure_due: Tick::default(), counted: PushCounts::default() }
    }

    /// A face is there; a link, where the configuration says so.
    pub(super) fn face_added(&self, record: &Record) {
        self.port.tell(PushOrder::FaceAdd { face: record.id, shard: record.owner });
        self.link(record);
    }

    pub(super) fn face_removed(&mut self, id: FaceId) {
        self.costs.remove(&id);
        self.port.tell(PushOrder::FaceRemove(id));
    }

    pub(super) fn face_down(&self, id: FaceId) {
        self.port.tell(PushOrder::FaceDown(id));
    }

    pub(super) fn face_refused(&self, id: FaceId) {
        self.port.tell(PushOrder::FaceRefused(id));
    }

    fn link(&self, record: &Record) {
        let Some(link) = self.links.over(&record.remote) else { return };
        let mut link = link.clone();
        if link.cost == 0 {
            link.cost = self.costs.get(&record.id).copied().unwrap_or(1);
        }
        self.link_as(record, link);
    }

    /// A face is this link; one that is it already costs what `link` says from now on.
    fn link_as(&self, record: &Record, link: PushLink) {
        let is_connected = matches!(record.transport, Transport::Unix | Transport::Tcp);
        let link = Box::new(link);
        self.port.tell(PushOrder::LinkAdd(NewLink { face: record.id, link, is_connected }));
    }

    /// Makes the faces that are there links, where the configuration says so.
    pub(super) fn link_all(&self, faces: &Faces) {
        #[cfg(test)]
        super::work::LOOKED_AT.with(|count| count.set(count.get() + faces.iter().count()));
        faces.iter().for_each(|record| self.link(record));
    }

    /// A neighbour of routing is behind `face`, at `cost`, or is not any more. A link of the
    /// configuration that has no cost of its own has the one that routing said last, and is a link
    /// whatever routing hears; for others numbers have to be drawn.
    pub(super) fn found(&mut self, faces: &Faces, config: &Push, face: FaceId, cost: Option<u16>) {
        let Some(record) = faces.get(face) else { return };
        if let Some(cost) = cost {
            self.costs.insert(face, cost);
        }
        if let Some(link) = self.links.over(&record.remote) {
            if link.cost == 0 && cost.is_some() {
                self.link(record);
            }
            return;
        }
        let is_drawn = config.scheme == PushScheme::K;
        if !config.routing_links || !is_drawn {
            return;
        }
        let Some(cost) = cost else {
            self.port.tell(PushOrder::LinkRemove(face));
            return;
        };
        let (uri, domain) = (record.remote.clone(), String::new());
        let link = PushLink { face: uri, number: 0, cost, capacity_mbit: 0, domain };
        self.link_as(record, link);
    }

    /// The links are these from now on: faces that were others are no links. What one costs that
    /// stays is said when it is made a link again.
    pub(super) fn relink(&mut self, faces: &Faces, links: &[PushLink]) {
        let old = std::mem::replace(&mut self.links, Links::of(links));
        #[cfg(test)]
        super::work::LOOKED_AT.with(|count| count.set(count.get() + faces.iter().count()));
        for record in faces.iter() {
            let Some(was) = old.over(&record.remote) else { continue };
            if !self.links.over(&record.remote).is_some_and(|link| was.goes_on_as(link)) {
                self.port.tell(PushOrder::LinkRemove(record.id));
            }
        }
    }

    pub(super) const fn poll_timeout(&self) -> Tick {
        if self.links.have_capacities() { self.measure_due } else { Tick::NEVER }
    }

    /// Tells the push thread what was sent over links that have a capacity, once a second while there
    /// are any.
    pub(super) fn measure(&mut self, now: Tick, shards: &Shards, faces: &Faces) {
        if self.poll_timeout() > now {
            return;
        }
        self.measure_due = now + MEASURE;
        let is_measured = |face: &FaceId| {
            let link = faces.get(*face).and_then(|record| self.links.over(&record.remote));
            link.is_some_and(|link| link.capacity_mbit > 0)
        };
        let counters = shards.owner_counters().into_iter();
        let of_links = counters.filter(|(face, _)| is_measured(face));
        let sent = of_links.map(|(face, owner)| (face, owner.traffic.out_bytes)).collect();
        self.port.tell(PushOrder::LinksSent(sent));
    }

    /// What the push half counted: now, or when it was asked last if its thread is at something for
    /// longer than `patience`, such as a publication of many megabytes.
    pub(super) fn counts(&mut self, shards: &Shards, patience: Duration) -> PushCounts {
        if let Some(now) = self.port.ask_for(patience, |reply| PushOrder::Counts { reply }) {
            self.counted = now;
        }
        let mut counts = self.counted.clone();
        for state in shards.push_states() {
            for (sum, verdict) in counts.verdicts.iter_mut().zip(Verdict::ALL) {
                *sum += state.counters.of(*verdict);
            }
            counts.copies += state.counters.copies;
            counts.dropped.not_local += state.dropped.not_local;
            counts.dropped.backlog += state.dropped.backlog;
            counts.dropped.missed += state.dropped.missed;
            counts.app_malformed += state.malformed;
            counts.messages += state.messages;
            let of = [state.fib.sent, state.fib.delivered, state.fib.missing];
            counts.publications.iter_mut().zip(of).for_each(|(sum, of)| *sum += of);
        }
        counts
    }
}

/// The dataset `what` of the push half as JSON; none when there is no such one.
pub(super) fn dataset(
    push: Option<&PushHalf>,
    shards: &Shards,
    faces: &Faces,
    what: &str,
    argument: &[u8],
) -> Option<String> {
    let Some(push) = push else {
        let off = "the push half is off: set push.enabled";
        return matches!(what, "status" | "graph" | "topology" | "explain")
            .then(|| serde_json::json!({ "enabled": false, "sentence": off }).to_string());
    };
    let question = Box::new(Question {
        what: what.to_owned(),
        argument: argument.to_vec(),
        shards: shards.push_states(),
        faces: faces.iter().map(|record| (record.id, record.remote.clone())).collect(),
    });
    push.port.ask(|reply| PushOrder::Show { question, reply }).flatten()
}
