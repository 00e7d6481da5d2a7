//! A whole node in memory: the control plane and one push FIB, as the simulator and tests use it.

#[cfg(test)]
mod tests;

pub use crate::control::{Config, ControlPlane, Dropped, Faces, Frames, Output};

use crate::data::{Data, Handout, Refusal, Row, Sent, is_of_item};
use crate::dispatcher::{Counters, Origin, Request};
use crate::fib::{Effects, Fib, LOOKS_MAX, Received};
use crate::forwarder::{Copies, START, Source, has_short_head};
use crate::publication::{AppId, Event, Notice, To};
use crate::verdict::Verdict;
use onym_tables::{FaceId, Tick};
use onym_wire::push::app::PIECE_MAX;
use onym_wire::push::{Frame, Id};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The shard of the one push FIB.
const SHARD: u16 = 0;

/// What became of data that came.
#[derive(Debug)]
pub enum Handed {
    /// Nothing is left to do for this frame.
    Done,
    /// Applications of this node get the payloads of these frames from the caller, behind what is
    /// in the output.
    To(Row),
}

/// The control plane and the push FIB of one node.
#[derive(Debug)]
pub struct Node {
    plane: ControlPlane,
    fib: Fib,
    effects: Effects,
    copies: Copies,
}

impl Deref for Node {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        &self.plane
    }
}

impl DerefMut for Node {
    fn deref_mut(&mut self) -> &mut ControlPlane {
        &mut self.plane
    }
}

impl Node {
    /// A node without links and applications.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let plane = ControlPlane::new(config);
        let fib = plane.fib(SHARD);
        Self { plane, fib, effects: Effects::default(), copies: Copies::default() }
    }

    /// What its dispatcher and its push FIB counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut sum = self.plane.dispatcher.counters;
        sum += &self.fib.counters;
        sum
    }

    /// A link is known to be down.
    pub fn link_down(&mut self, now: Tick, face: FaceId, output: &mut Output) {
        self.plane.link_down(now, face, output);
        self.obey(output);
    }

    /// Removes a link; whether there was one.
    pub fn link_remove(&mut self, now: Tick, face: FaceId, output: &mut Output) -> bool {
        let was_there = self.plane.link_remove(now, face, output);
        self.obey(output);
        was_there
    }

    /// Ends a round of [`ControlPlane::hold`].
    pub fn release(&mut self, now: Tick, output: &mut Output) {
        self.plane.release(now, output);
        self.obey(output);
    }

    /// A frame that came over a face; its hop limit is changed in place.
    pub fn receive(
        &mut self,
        now: Tick,
        face: FaceId,
        octets: &mut Vec<u8>,
        output: &mut Output,
    ) -> Verdict {
        let mut copies = std::mem::take(&mut self.copies);
        let verdict = self.plane.forwarder.receive(Source::Face(face), octets, &mut copies);
        if copies.is_delivered {
            self.deliver_frame(now, face, octets, output);
        }
        if !copies.faces.is_empty() {
            let octets = std::mem::take(octets);
            output.frames.push(Frames { faces: Faces::from_slice(&copies.faces), octets });
        }
        self.copies = copies;
        verdict
    }

    /// A frame that a forwarder of the shell found to be for this node.
    pub fn deliver_frame(&mut self, now: Tick, face: FaceId, octets: &[u8], output: &mut Output) {
        let Ok(frame) = Frame::parse(octets) else {
            self.fib.counters.malformed += 1;
            return;
        };
        let is_external = self.plane.forwarder.is_external(face);
        match self.fib.receive(octets, &frame, is_external, &mut self.effects) {
            Received::Here => self.tell(frame.payload, output),
            Received::Pass(number) => {
                let from = (face, Origin { shard: SHARD, number });
                self.plane.deliver_frame(now, from, octets, output);
                self.obey(output);
            }
        }
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
        if self.plane.forwarder.is_external(face) {
            return None;
        }
        // What the last one was asked is not asked again.
        let octets = frames.clone().next()?;
        if let Some(row) = self.fib.receive_alike(frames) {
            return Some(Handed::To(row));
        }
        let frame = Frame::parse(octets).ok()?;
        if frame.payload.len() > PIECE_MAX || !self.fib.is_ready(&frame) {
            return None;
        }
        let received = self.fib.receive(octets, &frame, false, &mut self.effects);
        debug_assert_eq!(received, Received::Here, "it is ready");
        if let [(To::All(apps), id)] = &self.effects.to[..] {
            let (frames, payload_at) = (1, octets.len() - frame.payload.len());
            let row = Row { frames, payload_at, to: (Arc::clone(apps), id.clone()) };
            self.effects.to.clear();
            self.tell(&[], output);
            return Some(Handed::To(row));
        }
        self.tell(frame.payload, output);
        Some(Handed::Done)
    }

    /// Publishes for an application.
    ///
    /// # Errors
    /// [`Refusal`].
    #[inline]
    pub fn publish(
        &mut self,
        now: Tick,
        app: AppId,
        data: &Data<'_>,
        output: &mut Output,
    ) -> Result<Sent, Refusal> {
        let sent = self.publish_here(now, app, data)?;
        if !self.effects.head.is_empty() {
            let mut octets = output.buffer();
            octets.extend_from_slice(&self.effects.head);
            octets.extend_from_slice(data.payload);
            self.plane.send_own(octets, output);
        }
        let sent = self.pass(now, app, data, sent, output)?;
        self.tell(data.payload, output);
        Ok(sent)
    }

    /// As [`Node::publish`], for who sends the payload itself: the frame is `head` and then the
    /// payload, for the faces that are returned, and not in `output`.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn publish_apart(
        &mut self,
        now: Tick,
        app: AppId,
        data: &Data<'_>,
        head: &mut Vec<u8>,
        output: &mut Output,
    ) -> Result<(Sent, Faces), Refusal> {
        let sent = self.publish_here(now, app, data)?;
        std::mem::swap(head, &mut self.effects.head);
        let mut faces = Faces::new();
        if has_short_head(head) {
            let len = head.len() + data.payload.len();
            let start = (&mut head[..START], len);
            self.plane.forwarder.receive_start(Source::Own, start, &mut self.copies);
            faces.extend_from_slice(&self.copies.faces);
        } else if !head.is_empty() {
            let mut octets = output.buffer();
            octets.extend_from_slice(head);
            octets.extend_from_slice(data.payload);
            self.plane.send_own(octets, output);
        }
        let sent = self.pass(now, app, data, sent, output)?;
        self.tell(data.payload, output);
        Ok((sent, faces))
    }

    #[inline]
    fn publish_here(&mut self, now: Tick, app: AppId, data: &Data<'_>) -> Result<Sent, Refusal> {
        let sent = self.fib.publish(now, app, data, &mut self.effects);
        sent.map_err(|refusal| match refusal {
            Refusal::NotPublisher => self.plane.refusal(app, &data.id),
            other => other,
        })
    }

    /// Has the control plane do what the push FIB passed of a publication, if it did.
    #[inline]
    fn pass(
        &mut self,
        now: Tick,
        app: AppId,
        data: &Data<'_>,
        mut sent: Sent,
        output: &mut Output,
    ) -> Result<Sent, Refusal> {
        let Some(pass) = self.effects.pass.take() else { return Ok(sent) };
        let (frames, handout) = self.plane.publish(now, app, (data, &pass), SHARD, output)?;
        sent.frames = frames;
        if let Some(handout) = handout {
            sent.local = self.fib.hand_out(&handout, &mut self.effects);
        } else if !is_of_item(data.strategy) {
            sent.local = 0;
        }
        self.fib.done(self.plane.dispatcher.done(SHARD));
        Ok(sent)
    }

    /// A request of an application; its status is an event with `tag`.
    pub fn request(
        &mut self,
        now: Tick,
        app: AppId,
        tag: u64,
        request: &Request,
        output: &mut Output,
    ) {
        self.plane.request(now, app, tag, request, output);
        self.obey(output);
    }

    /// An application is gone.
    pub fn disconnect(&mut self, now: Tick, app: AppId, output: &mut Output) {
        self.plane.disconnect(now, app, output);
        self.obey(output);
    }

    /// Timers.
    pub fn handle_timeout(&mut self, now: Tick, output: &mut Output) {
        self.plane.handle_timeout(now, output);
        self.obey(output);
        let mut left = LOOKS_MAX;
        while self.fib.next_reached(now, &mut left, &mut self.effects) {
            if let Some(pass) = self.effects.pass.take() {
                self.plane.reached(now, &pass, SHARD, output);
            } else {
                let mut octets = output.buffer();
                octets.extend_from_slice(&self.effects.head);
                self.plane.send_own(octets, output);
            }
        }
        self.obey(output);
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Tick {
        let plane = self.plane.next_timeout();
        self.fib.next_timeout().map_or(plane, |fib| fib.min(plane))
    }

    /// When something is to be done for publications; [`Node::next_timeout`] has everything.
    #[must_use]
    pub fn data_timeout(&self) -> Option<Tick> {
        let parts = [self.plane.dispatcher.next_timeout(), self.fib.next_timeout()];
        parts.into_iter().flatten().min()
    }

    /// Obeys what the control plane says.
    #[inline]
    fn obey(&mut self, output: &mut Output) {
        let mut notices = std::mem::take(&mut output.notices);
        for notice in notices.drain(..) {
            match notice {
                Notice::Tell(app, event) => output.events.push((To::One(app), event)),
                Notice::Delta(delta) => {
                    let kept = self.fib.apply(delta);
                    if !kept.is_empty() {
                        self.tell_kept(kept, output);
                    }
                }
                Notice::Data(handout) => self.hand_out(&handout, output),
            }
        }
        output.notices = notices;
        self.fib.done(self.plane.dispatcher.done(SHARD));
    }

    #[cold]
    fn tell_kept(&mut self, kept: Vec<crate::fib::Kept>, output: &mut Output) {
        for (ids, payload) in kept {
            let handout = Handout::kept(&ids, &payload);
            self.hand_out(&handout, output);
        }
    }

    fn hand_out(&mut self, handout: &Handout, output: &mut Output) {
        self.fib.hand_out(handout, &mut self.effects);
        self.tell(handout.payload.as_deref().unwrap_or_default(), output);
    }

    /// Tells applications of a publication what the effects say.
    #[inline]
    fn tell(&mut self, payload: &[u8], output: &mut Output) {
        let Effects { missed, to, .. } = &mut self.effects;
        let missed = missed.drain(..).map(|(app, count)| (To::One(app), Event::Missed(count)));
        output.events.extend(missed);
        if to.is_empty() {
            return;
        }
        let payload: Arc<[u8]> = payload.into();
        let data = |id: Id| Event::Data { id, payload: Arc::clone(&payload) };
        output.events.extend(to.drain(..).map(|(to, id)| (to, data(id))));
    }
}
