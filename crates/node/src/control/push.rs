//! The control thread's part of the push half: faces, links, datasets.

use super::faces::{Faces, Record};
use super::shards::Shards;
use super::target::resolve;
use crate::config::{Push, PushLink, PushScheme};
use crate::counts::PushCounts;
use crate::push::{NewLink, PushOrder, PushPort, Question};
use onym_face::{FaceUri, Transport};
use onym_pubsub::Verdict;
use onym_tables::FaceId;
use std::time::Duration;

/// Whether a link is a connection that the neighbour makes: it comes from any port.
pub(super) fn is_awaited(uri: &FaceUri) -> bool {
    matches!(uri, FaceUri::Tcp(end) if end.port == Some(0))
}

/// Whether the face to `remote` is a connection that the link `wanted` awaits.
fn comes_from(wanted: &str, remote: &str) -> bool {
    let (Ok(FaceUri::Tcp(wanted)), Ok(FaceUri::Tcp(end))) = (resolve(wanted), remote.parse())
    else {
        return false;
    };
    wanted.port == Some(0) && wanted.host == end.host
}

/// The push thread as the control thread orders it.
#[derive(Debug)]
pub(super) struct PushHalf {
    pub(super) port: PushPort,
    /// What it counted when it was asked last.
    counted: PushCounts,
}

impl PushHalf {
    pub(super) fn new(port: PushPort) -> Self {
        Self { port, counted: PushCounts::default() }
    }

    /// A face is there; a link, when one of `links` says so.
    pub(super) fn face_added(&self, record: &Record, links: &[PushLink]) {
        self.port.tell(PushOrder::FaceAdd { face: record.id, shard: record.owner });
        self.link(record, links);
    }

    pub(super) fn face_removed(&self, id: FaceId) {
        self.port.tell(PushOrder::FaceRemove(id));
    }

    pub(super) fn face_down(&self, id: FaceId) {
        self.port.tell(PushOrder::FaceDown(id));
    }

    pub(super) fn face_refused(&self, id: FaceId) {
        self.port.tell(PushOrder::FaceRefused(id));
    }

    /// Makes a face a link, when one of `links` says so.
    pub(super) fn link(&self, record: &Record, links: &[PushLink]) {
        let leads_there =
            |uri: &str| resolve(uri).is_ok_and(|resolved| resolved.to_string() == record.remote);
        let link = links.iter().find(|l| leads_there(&l.face));
        let awaits = |l: &&PushLink| comes_from(&l.face, &record.remote);
        let Some(link) = link.or_else(|| links.iter().find(awaits)) else { return };
        let is_connected = matches!(record.transport, Transport::Unix | Transport::Tcp);
        let link = Box::new(link.clone());
        self.port.tell(PushOrder::LinkAdd(NewLink { face: record.id, link, is_connected }));
    }

    /// Makes the faces links that come from where `link` awaits a connection.
    pub(super) fn link_awaited(&self, link: &PushLink, faces: &Faces, links: &[PushLink]) {
        let come = faces.iter().filter(|record| comes_from(&link.face, &record.remote));
        come.for_each(|record| self.link(record, links));
    }

    /// A neighbour of routing is behind `face`, at `cost`, or is not any more. What the configuration
    /// says of the link is not changed; numbers have to be drawn.
    pub(super) fn found(&self, faces: &Faces, config: &Push, face: FaceId, cost: Option<u16>) {
        let Some(record) = faces.get(face) else { return };
        let leads_there = |link: &PushLink| {
            let uri = resolve(&link.face).map(|uri| uri.to_string());
            uri.is_ok_and(|uri| uri == record.remote) || comes_from(&link.face, &record.remote)
        };
        let is_drawn = config.scheme == PushScheme::K;
        if !config.routing_links || !is_drawn || config.link.iter().any(leads_there) {
            return;
        }
        let Some(cost) = cost else {
            self.port.tell(PushOrder::LinkRemove(face));
            return;
        };
        let is_connected = matches!(record.transport, Transport::Unix | Transport::Tcp);
        let (uri, domain) = (record.remote.clone(), String::new());
        let link = Box::new(PushLink { face: uri, number: 0, cost, domain });
        self.port.tell(PushOrder::LinkAdd(NewLink { face, link, is_connected }));
    }

    /// Links of `old` that are not in `new`, or there with another number or cost, are no links.
    pub(super) fn unlink(&self, faces: &Faces, old: &[PushLink], new: &[PushLink]) {
        for link in old.iter().filter(|link| !new.contains(link)) {
            let uri = resolve(&link.face).map(|uri| uri.to_string());
            if let Some(id) = uri.ok().and_then(|uri| faces.to(&uri)) {
                self.port.tell(PushOrder::LinkRemove(id));
            }
        }
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
