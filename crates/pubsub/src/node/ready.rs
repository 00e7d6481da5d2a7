//! Data that needs no more than a look at tables, and so no long time: what a shell may have done
//! wherever it is.

use super::{Faces, Node, Output};
use crate::dispatcher::{Data, Row, Sent};
use crate::forwarder::{START, Source, has_short_head};
use crate::publication::AppId;
use onym_tables::{FaceId, Tick};
use onym_wire::push::app::PIECE_MAX;
use onym_wire::push::{Frame, Label, Strategy, reserved};

/// What became of data that came.
#[derive(Debug)]
pub enum Handed {
    /// Nothing is left to do for this frame.
    Done,
    /// Applications of this node get the payloads of these frames from the caller, behind what is
    /// in the output.
    To(Row),
}

impl Node {
    /// Publishes what needs nothing but the head that its item's frames have, which takes no long
    /// time. `None`: anything else, and nothing was done.
    pub fn publish_ready(
        &mut self,
        now: Tick,
        app: AppId,
        data: &Data<'_>,
        output: &mut Output,
    ) -> Option<Sent> {
        let mut octets = output.buffer();
        let sent = self.dispatcher.publish_ready(now, app, data, &mut octets, &mut self.outbox);
        if octets.is_empty() {
            output.give_back(octets);
        } else {
            octets.extend_from_slice(data.payload);
            self.send_own(octets, output);
        }
        output.events.append(&mut self.outbox.events);
        sent
    }

    /// As [`Node::publish_ready`], for who sends the payload itself: the frame is `head` and then
    /// the payload, for the faces that are returned, and not in `output`.
    pub fn publish_ready_apart(
        &mut self,
        now: Tick,
        app: AppId,
        data: &Data<'_>,
        head: &mut Vec<u8>,
        output: &mut Output,
    ) -> Option<(Sent, Faces)> {
        head.clear();
        let sent = self.dispatcher.publish_ready(now, app, data, head, &mut self.outbox)?;
        output.events.append(&mut self.outbox.events);
        if !has_short_head(head) {
            if !head.is_empty() {
                let mut octets = output.buffer();
                octets.extend_from_slice(head);
                octets.extend_from_slice(data.payload);
                self.send_own(octets, output);
            }
            return Some((sent, Faces::new()));
        }
        let len = head.len() + data.payload.len();
        let start = (&mut head[..START], len);
        self.forwarder.receive_start(Source::Own, start, &mut self.copies);
        Some((sent, Faces::from_slice(&self.copies.faces)))
    }

    /// As [`Node::deliver_frame`] of the first of `frames`, for data that needs no more than to be
    /// handed out, and of as many of those behind it as may be handed out with it. `None`: it is
    /// something else, and nothing was done.
    pub fn deliver_ready<'a>(
        &mut self,
        face: FaceId,
        frames: impl Iterator<Item = &'a [u8]> + Clone,
        output: &mut Output,
    ) -> Option<Handed> {
        if self.forwarder.is_external(face) {
            return None;
        }
        // What the last one was asked is not asked again.
        let octets = frames.clone().next()?;
        if let Some(row) = self.dispatcher.receive_alike(frames) {
            return Some(Handed::To(row));
        }
        let frame = Frame::parse(octets).ok()?;
        let root = frame.ids.into_iter().next().and_then(|labels| labels.first().copied());
        let is_ready = frame.strategy == Strategy::DOMAIN_LOCAL
            && !root.is_none_or(|root| reserved::is_reserved(Label(root)))
            && frame.payload.len() <= PIECE_MAX
            && self.config.trusted.is_none();
        if !is_ready {
            return None;
        }
        let row = self.dispatcher.receive_ready(octets, &frame, &mut self.outbox);
        output.events.append(&mut self.outbox.events);
        Some(row.map_or(Handed::Done, Handed::To))
    }
}
