//! What this node would do with a publication, for who traces it: decided by the forwarder itself, with
//! a frame that has no payload and goes nowhere.

use super::{PushThread, Traced};
use onym_pubsub::Verdict;
use onym_pubsub::dispatcher::SPARE_HOPS;
use onym_pubsub::forwarder::{Copies, Source};
use onym_tables::FaceId;
use onym_wire::push::{Frame, FrameBuilder, Id};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Names of a frame that are looked at.
const NAMES_MAX: usize = 16;

/// What there is to say without a frame.
enum NoFrame {
    /// No application here publishes it.
    NotHere,
    /// It goes to no other node.
    Local,
}

impl PushThread {
    /// What would be done; none: that is no identifier.
    pub(super) fn trace(&mut self, asked: &Traced) -> Option<Value> {
        let id = Id::from_octets(&asked.item).filter(|id| !id.is_empty())?;
        let (source, mut frame) = match &asked.frame {
            Some(frame) => (Source::Face(asked.from), frame.clone()),
            None => match self.own_frame(&id) {
                Ok(frame) => (Source::Own, frame),
                Err(why) => return Some(self.without_frame(&id, &why)),
            },
        };
        let mut copies = Copies::default();
        let verdict = self.plane.forwarder.would(source, &mut frame, &mut copies);
        // The publisher's own node does not get its frames; its applications get what is published.
        let is_here = copies.is_delivered || source == Source::Own;
        let subscribers = if is_here { self.subscribers(&frame) } else { 0 };
        let next_hops: Vec<Value> =
            copies.faces.iter().map(|face| self.link(*face, &asked.faces)).collect();
        let mut hex = String::with_capacity(2 * frame.len());
        for octet in &frame {
            let _ = write!(hex, "{octet:02x}");
        }
        Some(json!({
            "verdict": verdict.label(),
            "decides": "push",
            "sentence": sentence(verdict, copies.faces.len(), subscribers),
            "label": self.plane.label().to_string(),
            "chosen": copies.faces.iter().map(|face| face.0).collect::<Vec<_>>(),
            "next_hops": next_hops,
            "subscribers": subscribers,
            "frame": hex,
        }))
    }

    /// The frame that a publication of an application here leaves in.
    fn own_frame(&self, id: &Id) -> Result<Vec<u8>, NoFrame> {
        let view = self.plane.dispatcher.view(id).filter(|view| !view.publishers.is_empty());
        let view = view.ok_or(NoFrame::NotHere)?;
        let route = view.route.as_ref().ok_or(NoFrame::Local)?;
        let (ids, own) = (&view.aliases[..], [id.clone()]);
        let ids = if ids.is_empty() { &own } else { ids };
        let mut frame = Vec::new();
        FrameBuilder {
            hop_limit: view.hops.saturating_add(SPARE_HOPS),
            strategy: view.strategy,
            route,
            ids,
            options: &[],
            payload: &[],
        }
        .write(&mut frame);
        Ok(frame)
    }

    fn without_frame(&self, id: &Id, why: &NoFrame) -> Value {
        let view = self.plane.dispatcher.view(id).filter(|_| matches!(why, NoFrame::Local));
        let subscribers = view.map_or(0, |view| view.subscribers.len());
        let sentence = match why {
            NoFrame::NotHere => {
                "no application of this node publishes it: trace it at the node of its publisher"
            }
            NoFrame::Local => "it goes to no other node: nobody there subscribed to it",
        };
        let verdict = match why {
            NoFrame::Local if subscribers > 0 => Verdict::Delivered,
            _ => Verdict::NoMatch,
        };
        json!({
            "verdict": verdict.label(), "decides": "push", "sentence": sentence,
            "label": self.plane.label().to_string(), "chosen": [], "next_hops": [],
            "subscribers": subscribers,
        })
    }

    /// Applications here that subscribed to what is in the frame.
    fn subscribers(&self, frame: &[u8]) -> usize {
        let Ok(frame) = Frame::parse(frame) else { return 0 };
        let ids = frame.ids.take(NAMES_MAX).map(Id::from_labels);
        let views = ids.filter_map(|id| self.plane.dispatcher.view(&id));
        let mut apps: Vec<_> = views.flat_map(|view| view.subscribers).collect();
        apps.sort_unstable();
        apps.dedup();
        apps.len()
    }

    fn link(&self, face: FaceId, faces: &[(FaceId, String, bool)]) -> Value {
        let link = self.links.iter().find(|link| link.face == face);
        let known = faces.iter().find(|(id, ..)| *id == face);
        json!({
            "face": face.0,
            "uri": known.map(|(_, uri, _)| uri.as_str()),
            "up": known.is_some_and(|(_, _, up)| *up),
            "scope": "non-local",
            "number": link.map(|link| link.number),
            "cost": link.map(|link| link.cost),
            "neighbour": self.plane.link_state.neighbour(face).map(|label| label.to_string()),
        })
    }
}

fn sentence(verdict: Verdict, links: usize, subscribers: usize) -> String {
    let apps = match subscribers {
        0 => "no application here subscribed to it".to_owned(),
        1 => "one application here gets it".to_owned(),
        n => format!("{n} applications here get it"),
    };
    match (verdict, links) {
        (Verdict::NoMatch, _) => format!("its filter has no link of this node; {apps}"),
        (Verdict::Delivered, _) => format!("its filter has this node and no link of it; {apps}"),
        (_, 1) => format!("its filter has one link of this node; {apps}"),
        (_, n @ 2..) => format!("its filter has {n} links of this node; {apps}"),
        (verdict, 0) => format!("it ends here: {}", verdict.label()),
    }
}
