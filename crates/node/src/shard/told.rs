//! The told lane of the push thread, and publications that come from other threads.
//!
//! The told lane has the changes of the push FIB and the events of applications. It is read before
//! anything else, even while a face holds back: whoever acts on an announcement finds the change made
//! at every shard. Publications wait while a face holds back; those that may produce further ones
//! also wait until every shard that may receive these has room.

use super::fan::{Delivered, Reached};
use super::push::{Full, Rest};
use super::{Io, Shard};
use crate::cross::Load as _;
use crate::push::Down;
use onym_frame::{Buf, FrameRow};
use onym_link::{Outgoing, Payload, Transmit};
use onym_pubsub::{Above, Delta, LOOKS_MAX};

impl Shard {
    /// Obeys everything in the told lane.
    pub(super) fn take_told(&mut self, io: &mut Io) {
        while let Some(mut batch) = self.push.as_mut().and_then(|push| push.lanes.told.next()) {
            batch.drain().for_each(|thing| self.obey_told(io, thing));
            if let Some(push) = &mut self.push {
                push.lanes.told.give_back(batch);
            }
        }
    }

    fn obey_told(&mut self, io: &mut Io, thing: Down) {
        let Some(push) = &mut self.push else { return };
        match thing {
            Down::Delta(delta) => {
                if let Delta::Retains(_, app, _) = delta {
                    push.settle(io, app);
                }
                for (ids, payload) in push.fib.apply(delta) {
                    let who = push.fib.arrive(&ids, Above::Parent, &mut push.effects);
                    push.fib.delivered(who);
                    push.hand(&FrameRow::one(Buf::copy_from(&payload)), 0);
                }
            }
            Down::Tell(app, event) => self.tell_app(io, app, event),
            Down::Frame(faces, bytes) => {
                for face in faces {
                    let bytes = Payload::Shared(bytes.clone());
                    let mut item = Transmit { face, what: Outgoing::PushFrame, bytes };
                    self.transmit(io, &[], &mut item);
                }
            }
            Down::Forwarder(forwarder) => push.forwarder.take_over(*forwarder),
            Down::Leaves(faces, bytes) => {
                let row = FrameRow::one(bytes);
                for face in faces {
                    self.send_on(io, face, &[], &row, 0);
                }
            }
            Down::Handout(handout, sent) => {
                let local = push.fib.hand_out(&handout, &mut push.effects);
                let payload = Buf::copy_from(handout.payload.as_deref().unwrap_or_default());
                push.hand(&FrameRow::one(payload), 0);
                if let Some(sent) = sent {
                    self.tell_answer(io, crate::push::Answer { local, ..sent });
                }
            }
            Down::Answer(answer) => self.tell_answer(io, answer),
            Down::Done(done) => push.fib.done(done),
            Down::Release(app) => push.resume(io, app),
        }
    }

    /// Takes a batch from the push thread and from each other shard, unless it has to wait.
    pub(super) fn take_publications(&mut self, io: &mut Io) {
        self.take_told(io);
        self.hand_out_own(io);
        for shard in 0..self.push.as_ref().map_or(0, |push| push.peers.len()) {
            self.take_parcel(io, shard);
        }
        if self.may_make(io)
            && let Some(mut batch) = self.push.as_mut().and_then(|push| push.lanes.data.next())
        {
            self.take_told(io);
            batch.drain().for_each(|thing| self.obey_told(io, thing));
            if let Some(push) = &mut self.push {
                push.lanes.data.give_back(batch);
            }
            self.hand_out_own(io);
        }
        for shard in 0..self.push.as_ref().map_or(0, |push| push.peers.len()) {
            if self.may_follow(io) {
                self.take_rows(io, shard);
            }
        }
    }

    /// Whether publications may be handed out now: no face holds back, and none wait before them.
    fn may_deliver(&mut self, io: &mut Io) -> bool {
        !self.is_held_back(io) && self.push.as_ref().is_some_and(|push| push.is_free())
    }

    /// Whether publications may be taken that are for other shards, too.
    pub(super) fn may_make(&mut self, io: &mut Io) -> bool {
        self.may_deliver(io) && self.push.as_mut().is_some_and(|push| push.has_places())
    }

    /// Whether frames may be taken that may have to be passed to the push thread. That thread never
    /// waits for them.
    pub(super) fn may_follow(&mut self, io: &mut Io) -> bool {
        self.may_make(io) && self.push.as_mut().is_some_and(|push| push.lanes.up.has_place())
    }

    /// A parcel of another shard.
    fn take_parcel(&mut self, io: &mut Io, shard: usize) {
        if !self.may_deliver(io) {
            return;
        }
        let waits = |push: &super::push::PushSide| {
            push.peers[shard].as_ref().is_some_and(|peer| peer.parcels_from.waits())
        };
        if !self.push.as_ref().is_some_and(waits) {
            return;
        }
        // What was told before the parcel was sent is delivered before it, publications too.
        self.take_told(io);
        self.hand_out_own(io);
        if !self.may_deliver(io) {
            return;
        }
        let of = |push: &mut super::push::PushSide| push.peers[shard].as_mut()?.parcels_from.next();
        let Some(parcel) = self.push.as_mut().and_then(of) else { return };
        let mut rest = Rest { from: Some(shard), parcel, at: Reached::default() };
        let delivered = self.deliver(io, &mut rest.parcel, &mut rest.at);
        self.delivered(delivered, rest);
    }

    /// Frames of another shard's neighbours, whose streams this one follows.
    fn take_rows(&mut self, io: &mut Io, shard: usize) {
        let of = |push: &mut super::push::PushSide| push.peers[shard].as_mut()?.rows_from.next();
        let Some(mut batch) = self.push.as_mut().and_then(of) else { return };
        self.take_told(io);
        for (face, row) in batch.drain() {
            let mut rest = Some(row);
            while let Some(row) = rest {
                let (done, _) = self.take_row(face, &row, Full::Waits);
                rest = row.skip(done);
            }
        }
        if let Some(peer) = self.push.as_mut().and_then(|push| push.peers[shard].as_mut()) {
            peer.rows_from.give_back(batch);
        }
        self.hand_out_own(io);
    }

    /// Hands out what is for applications of this shard, behind what waits before it.
    pub(super) fn hand_out_own(&mut self, io: &mut Io) {
        let Some(push) = &mut self.push else { return };
        if push.rest.is_some() {
            self.deliver_on(io);
        }
        let Some(push) = &mut self.push else { return };
        if push.rest.is_some() || !push.has_own() {
            return;
        }
        let mut parcel = std::mem::replace(&mut push.own, push.spare.take().unwrap_or_default());
        let mut at = Reached::default();
        let delivered = self.deliver(io, &mut parcel, &mut at);
        self.delivered(delivered, Rest { from: None, parcel, at });
    }

    /// Goes on with a parcel that waits for an application.
    fn deliver_on(&mut self, io: &mut Io) {
        if self.is_held_back(io) {
            return;
        }
        if let Some(mut rest) = self.push.as_mut().and_then(|push| push.rest.take()) {
            let delivered = self.deliver(io, &mut rest.parcel, &mut rest.at);
            self.delivered(delivered, rest);
        }
    }

    /// Keeps what is left of a parcel, or gives it back.
    fn delivered(&mut self, delivered: Delivered, rest: Rest) {
        let Some(push) = &mut self.push else { return };
        if delivered == Delivered::InPart {
            push.rest = Some(rest);
            return;
        }
        let Rest { from, mut parcel, .. } = rest;
        match from.and_then(|shard| push.peers[shard].as_mut()) {
            Some(peer) => peer.parcels_from.give_back(parcel),
            None => {
                parcel.clear();
                push.spare = Some(parcel);
            }
        }
    }

    /// Items that were published and are quiet say how far they are.
    pub(super) fn say_reached(&mut self, io: &mut Io) {
        let mut left = LOOKS_MAX;
        while let Some(push) = &mut self.push
            && push.fib.next_reached(io.now, &mut left, &mut push.effects)
        {
            if let Some(pass) = push.effects.pass.take() {
                push.send_up(crate::push::Up::Reached(pass), 0);
            } else {
                let nothing = push.nothing.clone();
                self.leave(io, &nothing, 0);
            }
        }
    }
}
