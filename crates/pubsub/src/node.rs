//! A whole node in memory, for the simulator and tests: the control plane and the push FIBs of its
//! shards. With several shards everything crosses as between threads, in a drawn order (`shards`).

mod shards;
#[cfg(test)]
mod tests;

pub use crate::control::{Config, ControlPlane, Dropped, Faces, Frames, Output};

use crate::data::{Data, Handout, Refusal, Sent, is_of_item};
use crate::dispatcher::{Counters, Origin, Request};
use crate::fib::{Effects, Fib, LOOKS_MAX, Received};
use crate::forwarder::{Copies, Source};
use crate::publication::{AppId, Event, Notice, To};
use crate::verdict::Verdict;
use onym_tables::{FaceId, Tick};
use onym_wire::push::{Flags, Id};
use shards::Shards;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// The shard of the one push FIB.
const SHARD: u16 = 0;

/// The control plane and the push FIBs of one node.
#[derive(Debug)]
pub struct Node {
    plane: ControlPlane,
    /// That of the only shard.
    fib: Fib,
    effects: Effects,
    copies: Copies,
    /// Those of several shards.
    shards: Option<Box<Shards>>,
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
        let shards = Shards::of(&plane).map(Box::new);
        Self { plane, fib, effects: Effects::default(), copies: Copies::default(), shards }
    }

    /// What its dispatcher and its push FIBs counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut sum = self.plane.dispatcher.counters;
        sum += &self.fib.counters;
        self.shards.iter().flat_map(|shards| shards.counters()).for_each(|fib| sum += fib);
        sum
    }

    /// A link costs this from now on; it stays up.
    pub fn link_cost(&mut self, now: Tick, face: FaceId, cost: u16) {
        self.plane.link_cost(now, face, cost);
    }

    /// A link is known to be down.
    pub fn link_down(&mut self, now: Tick, face: FaceId, output: &mut Output) {
        self.plane.link_down(now, face, output);
        self.obey(now, output);
    }

    /// Removes a link; whether there was one.
    pub fn link_remove(&mut self, now: Tick, face: FaceId, output: &mut Output) -> bool {
        let was_there = self.plane.link_remove(now, face, output);
        self.obey(now, output);
        was_there
    }

    /// Ends a round of [`ControlPlane::hold`].
    pub fn release(&mut self, now: Tick, output: &mut Output) {
        self.plane.release(now, output);
        self.obey(now, output);
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
        } else if Flags::of(octets).may_keep() {
            self.plane.pass_by(now, face, octets);
        }
        if !copies.faces.is_empty() {
            let octets = std::mem::take(octets);
            let faces = Faces::from_slice(&copies.faces);
            output.frames.push(Frames { faces, octets, by: None });
        }
        self.copies = copies;
        verdict
    }

    /// A frame that a forwarder found to be for this node.
    fn deliver_frame(&mut self, now: Tick, face: FaceId, octets: &[u8], output: &mut Output) {
        if let Some(shards) = &mut self.shards {
            shards.came(face, octets);
            return self.obey(now, output);
        }
        match self.take(face, std::iter::once(octets)) {
            Some(Received::Here { payload_at, .. }) => self.tell(&octets[payload_at..], output),
            Some(Received::Pass(number)) => {
                let from = (face, Origin { shard: SHARD, number });
                self.plane.deliver_frame(now, from, octets, output);
                self.obey(now, output);
            }
            None => {}
        }
    }

    /// Frames for this node, as the only shard takes them: who gets the first of them, and those
    /// that continue it, is in [`Node::effects`].
    #[inline]
    pub fn take<'a>(
        &mut self,
        face: FaceId,
        frames: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Option<Received> {
        let is_external = self.plane.forwarder.is_external(face);
        self.fib.receive(frames, is_external, &mut self.effects)
    }

    /// What [`Node::take`] found.
    #[must_use]
    pub const fn effects(&self) -> &Effects {
        &self.effects
    }

    /// Publishes for an application. With several shards what the control plane does of it follows,
    /// and is not in what is returned.
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
        if self.shards.is_some() {
            return self.publish_by_shard(now, app, data, output);
        }
        let sent = self.publish_here(now, app, data)?;
        if !self.effects.head.is_empty() {
            // The buffers go round.
            let mut octets = std::mem::replace(&mut self.effects.head, output.buffer());
            octets.extend_from_slice(data.payload);
            self.plane.send_own(octets, Some(SHARD), output);
        }
        let sent = self.pass(now, app, data, sent, output)?;
        self.tell(data.payload, output);
        Ok(sent)
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
        let done = self.plane.publish(now, app, data, &pass, SHARD, output)?;
        sent.frames = done.frames;
        if pass.is_retained {
            sent.local = done.local;
            self.obey(now, output);
        }
        if let Some(handout) = done.handout {
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
        self.obey(now, output);
    }

    /// An application has the last publications of an item of its own retained; its status is an
    /// event with `tag`.
    pub fn retain(
        &mut self,
        now: Tick,
        app: AppId,
        tag: u64,
        id: &Id,
        keep: crate::data::Keep,
        output: &mut Output,
    ) {
        self.plane.retain(now, app, tag, id, keep, output);
        self.obey(now, output);
    }

    /// An application has taken everything that it was told before [`Event::Mark`].
    pub fn took(&mut self, now: Tick, app: AppId, output: &mut Output) {
        self.plane.took(now, app, output);
        self.obey(now, output);
    }

    /// An application is gone.
    pub fn disconnect(&mut self, now: Tick, app: AppId, output: &mut Output) {
        self.plane.disconnect(now, app, output);
        self.obey(now, output);
    }

    /// Timers.
    pub fn handle_timeout(&mut self, now: Tick, output: &mut Output) {
        self.plane.handle_timeout(now, output);
        self.reached_by_shards(now, output);
        self.obey(now, output);
        let mut left = LOOKS_MAX;
        while self.fib.next_reached(now, &mut left, &mut self.effects) {
            if let Some(pass) = self.effects.pass.take() {
                self.plane.reached(now, &pass, SHARD, output);
            } else {
                let mut octets = output.buffer();
                octets.extend_from_slice(&self.effects.head);
                self.plane.send_own(octets, Some(SHARD), output);
            }
        }
        self.obey(now, output);
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Tick {
        let fibs = [self.fib.next_timeout(), self.shards.as_ref().and_then(|s| s.next_timeout())];
        fibs.into_iter().flatten().fold(self.plane.next_timeout(), Tick::min)
    }

    /// Obeys what the control plane says.
    #[inline]
    fn obey(&mut self, now: Tick, output: &mut Output) {
        if self.shards.is_some() {
            return self.obey_by_shards(now, output);
        }
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
        Self::tell_of(&mut self.effects, payload, output);
    }

    #[inline]
    fn tell_of(effects: &mut Effects, payload: &[u8], output: &mut Output) {
        let missed = effects.missed.drain(..);
        output.events.extend(missed.map(|(app, count)| (To::One(app), Event::Missed(count))));
        if effects.is_nobodys() {
            return;
        }
        let payload: Arc<[u8]> = payload.into();
        let came_by = effects.came_by;
        let data = |id: Id| Event::Data { id, payload: Arc::clone(&payload), came_by };
        output.events.extend(effects.drain().map(|(to, id)| (to, data(id))));
    }
}
