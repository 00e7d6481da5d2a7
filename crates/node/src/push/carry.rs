//! Puts the output of the control plane into the lanes of the shards.
//!
//! A change that concerns several shards is in the told lanes of all of them before the event that
//! announces it is in any, and a shard reads its told lane before anything else. So whoever acts on
//! an announcement finds the change made at every shard (decision 0012).

use super::PushThread;
use super::lane::Down;
use onym_frame::Buf;
use onym_pubsub::{AppId, Delta, Event, Faces, Frames, Notice};

impl PushThread {
    /// Sends what the parts of the node want sent.
    pub(super) fn carry_out(&mut self) {
        if std::mem::take(&mut self.plane.is_forwarder_changed) {
            self.share_forwarder();
        }
        let count = self.plane.shards();
        let mut notices = std::mem::take(&mut self.output.notices);
        if count > 1 {
            self.put_first(&mut notices);
        }
        let mut frames = std::mem::take(&mut self.output.frames);
        frames.drain(..).for_each(|frames| self.frame(frames));
        self.output.frames = frames;
        for notice in notices.drain(..) {
            match notice {
                Notice::Delta(delta) => {
                    self.tell(delta.shard(count).into(), Down::Delta(delta), 0);
                }
                Notice::Tell(app, event) => {
                    let octets = match &event {
                        Event::Data { payload, .. } => payload.len(),
                        _ => 0,
                    };
                    self.tell(app.shard(count).into(), Down::Tell(app, event), octets);
                }
                Notice::Data(handout) => {
                    let octets = handout.payload.as_ref().map_or(0, |payload| payload.len());
                    self.data(handout.shard.into(), Down::Handout(handout, None), octets);
                }
            }
        }
        self.output.notices = notices;
        self.tell_done();
    }

    /// Puts the changes that must precede their announcements into the lanes, and takes them out of
    /// `notices`.
    fn put_first(&mut self, notices: &mut Vec<Notice>) {
        let mut changed = false;
        let mut rest = Vec::with_capacity(notices.len());
        for notice in notices.drain(..) {
            match notice {
                Notice::Delta(delta) if delta.is_first() => {
                    if let Delta::Retains(_, app, _) = delta {
                        *self.settling.entry(app).or_default() += self.lanes.len();
                    }
                    let shard = delta.shard(self.plane.shards());
                    changed = true;
                    if let Some(lanes) = self.lanes.get_mut(usize::from(shard)) {
                        lanes.told.batch().push(Down::Delta(delta), 0);
                    }
                }
                other => rest.push(other),
            }
        }
        *notices = rest;
        if changed && !self.flush_told() {
            self.is_late = true;
        }
    }

    /// Flushes the told lanes; whether nothing is left for want of room.
    fn flush_told(&mut self) -> bool {
        let mut is_all = true;
        for lanes in &mut self.lanes {
            is_all &= lanes.told.flush();
        }
        is_all
    }

    /// A frame leaves: data by the shard that passed it, a control message by those of its faces.
    fn frame(&mut self, Frames { faces, octets, by }: Frames) {
        let bytes = Buf::copy_from(&octets);
        self.output.give_back(octets);
        if let Some(shard) = by {
            let len = bytes.len();
            return self.data(shard.into(), Down::Leaves(faces, bytes), len);
        }
        let mut left = faces;
        while let Some(first) = left.first() {
            let shard = self.shard_of(*first);
            let (here, rest): (Faces, Faces) =
                left.iter().copied().partition(|face| self.shard_of(*face) == shard);
            if let Some(shard) = shard {
                self.tell(shard, Down::Frame(here, bytes.clone()), bytes.len());
            }
            left = rest;
        }
    }

    /// Tells a shard something that may announce a change: behind the changes of all shards.
    fn tell(&mut self, shard: usize, thing: Down, octets: usize) {
        if self.is_late {
            return self.late.push_back((shard, thing, octets));
        }
        if let Some(lanes) = self.lanes.get_mut(shard) {
            // Not handed over before all that belongs together is in it: an answer comes with the
            // change that it answers.
            lanes.told.batch().push(thing, octets);
        }
    }

    /// Puts into the lanes what waited until a change was in all of them.
    pub(super) fn late_again(&mut self) {
        if self.is_late && self.flush_told() {
            self.is_late = false;
            for (shard, thing, octets) in std::mem::take(&mut self.late) {
                self.tell(shard, thing, octets);
            }
            self.release_settled();
        }
    }

    /// A shard handed out, or passed, all that an application published before what it retains
    /// changed.
    pub(super) fn settled(&mut self, app: AppId) {
        let Some(left) = self.settling.get_mut(&app) else { return };
        *left -= 1;
        if *left % self.lanes.len() == 0 {
            self.settled.push(app);
        }
        if *left == 0 {
            self.settling.remove(&app);
        }
    }

    /// Applications all of whose publications are settled are read again, once what was told because
    /// of these is in the lanes of all shards.
    pub(super) fn release_settled(&mut self) {
        if self.settled.is_empty() || self.is_late {
            return;
        }
        if !self.flush_told() {
            self.is_late = true;
            return;
        }
        for app in std::mem::take(&mut self.settled) {
            self.tell(app.shard(self.plane.shards()).into(), Down::Release(app), 0);
        }
    }

    /// Gives a shard a publication, or what became of one.
    pub(super) fn data(&mut self, shard: usize, thing: Down, octets: usize) {
        if let Some(lanes) = self.lanes.get_mut(shard) {
            // It may exceed the room: `takes` looks at that before more is read.
            lanes.data.has_place();
            lanes.data.batch().push(thing, octets);
        }
    }

    /// Tells each shard how far the control plane is with what that passed, behind it.
    fn tell_done(&mut self) {
        for shard in 0..self.lanes.len() {
            let done = self.plane.dispatcher.done(u16::try_from(shard).unwrap_or(u16::MAX));
            if std::mem::replace(&mut self.done[shard], done) != done {
                self.data(shard, Down::Done(done), 0);
            }
        }
    }
}
