//! What the control thread does for the push half: faces, links, what is shown.

use super::Control;
use super::connect::resolve;
use super::status::PushCounts;
use crate::config::StaticFace;
use crate::push::{NewLink, PushOrder, Question};
use crate::shard::{Order, ask_all};
use onym_face::{FaceUri, Transport};
use onym_pubsub::Verdict;
use onym_tables::FaceId;
use std::time::Duration;

/// Whether a link is a connection that the neighbour makes: it comes from any port.
fn is_awaited(uri: &FaceUri) -> bool {
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

impl Control {
    /// A face is there: the push thread is told before the first frame.
    pub(super) fn push_face_added(&self, id: FaceId) {
        let (Some(push), Some(record)) = (&self.push, self.faces.get(&id)) else { return };
        push.tell(PushOrder::FaceAdd { face: id, shard: record.owner });
        let remote = record.remote.clone();
        self.push_link(id, &remote);
    }

    pub(super) fn push_face_removed(&self, id: FaceId) {
        if let Some(push) = &self.push {
            push.tell(PushOrder::FaceRemove(id));
        }
    }

    pub(super) fn push_face_down(&self, id: FaceId) {
        if let Some(push) = &self.push {
            push.tell(PushOrder::FaceDown(id));
        }
    }

    /// Makes the face to `remote` a link, when the configuration says so.
    fn push_link(&self, face: FaceId, remote: &str) {
        let Some(push) = &self.push else { return };
        let links = &self.config.push.link;
        let leads_there =
            |uri: &str| resolve(uri).is_ok_and(|resolved| resolved.to_string() == remote);
        let link = links.iter().find(|l| leads_there(&l.face));
        let Some(link) = link.or_else(|| links.iter().find(|l| comes_from(&l.face, remote))) else {
            return;
        };
        let transport = self.faces.get(&face).map(|record| record.transport);
        let is_connected = matches!(transport, Some(Transport::Unix | Transport::Tcp));
        let link = Box::new(link.clone());
        push.tell(PushOrder::LinkAdd(NewLink { face, link, is_connected }));
    }

    /// Makes the faces of the links of the configuration that are not there yet.
    ///
    /// # Errors
    /// A sentence with the key and what is wrong.
    pub(crate) fn apply_push_links(&mut self) -> Result<(), String> {
        if self.push.is_none() {
            return Ok(());
        }
        for link in self.config.push.link.clone() {
            let wrong = |e: String| format!("push.link: {}: {e}", link.face);
            let uri = resolve(&link.face).map_err(wrong)?;
            if is_awaited(&uri) {
                let here: Vec<(FaceId, String)> = self
                    .faces
                    .iter()
                    .filter(|(_, record)| comes_from(&link.face, &record.remote))
                    .map(|(id, record)| (*id, record.remote.clone()))
                    .collect();
                here.iter().for_each(|(id, remote)| self.push_link(*id, remote));
                continue;
            }
            let uri = uri.to_string();
            // One that the neighbour made by sending first is kept, too.
            self.apply_face(&StaticFace::permanent(&link.face)).map_err(wrong)?;
            if let Some(id) = self.face_by_remote(&uri) {
                self.push_link(id, &uri);
            }
        }
        Ok(())
    }

    /// Links that the configuration does not name any more, or names with another number or cost,
    /// are no links.
    pub(super) fn reload_push_links(&self, old: &crate::config::Config) {
        let Some(push) = &self.push else { return };
        let kept = &self.config.push.link;
        for link in old.push.link.iter().filter(|link| !kept.contains(link)) {
            let uri = resolve(&link.face).map(|uri| uri.to_string());
            if let Some(id) = uri.ok().and_then(|uri| self.face_by_remote(&uri)) {
                push.tell(PushOrder::LinkRemove(id));
            }
        }
    }

    /// What the push half counted: now, or when it was asked last if its thread is at something for
    /// longer than `patience`, such as a publication of many megabytes.
    pub(super) fn push_counts(&mut self, patience: Duration) -> Option<PushCounts> {
        let push = self.push.as_ref()?;
        if let Some(now) = push.ask_for(patience, |reply| PushOrder::Counts { reply }) {
            self.push_counted = now;
        }
        let mut counts = self.push_counted.clone();
        for state in ask_all(&self.ports, |reply| Order::PushState { reply }) {
            for (sum, verdict) in counts.verdicts.iter_mut().zip(Verdict::ALL) {
                *sum += state.counters.of(*verdict);
            }
            counts.copies += state.counters.copies;
            counts.dropped.not_local += state.dropped.not_local;
            counts.dropped.backlog += state.dropped.backlog;
            counts.dropped.missed += state.dropped.missed;
        }
        Some(counts)
    }

    /// The dataset `what` of the push half; none when there is no such one.
    pub(crate) fn push_dataset(&self, what: &str, argument: &[u8]) -> Option<String> {
        let Some(push) = &self.push else {
            let off = "the push half is off: set push.enabled";
            return matches!(what, "status" | "graph" | "topology" | "explain")
                .then(|| serde_json::json!({ "enabled": false, "sentence": off }).to_string());
        };
        let question = Box::new(Question {
            what: what.to_owned(),
            argument: argument.to_vec(),
            shards: ask_all(&self.ports, |reply| Order::PushState { reply }),
            faces: self.faces.iter().map(|(id, record)| (*id, record.remote.clone())).collect(),
        });
        push.ask(|reply| PushOrder::Show { question, reply }).flatten()
    }
}
