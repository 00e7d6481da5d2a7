//! Back-pressure of the push half: which faces are not read, and for how long.

use super::app::AppSide;
use super::push::PushSide;
use super::{Io, Shard};
use crate::push::Up;
use onym_engine::Slot;
use onym_frame::RxFrame;
use onym_pubsub::AppId;
use onym_tables::Tick;
use onym_wire::PACKET_LEN_MAX;
use onym_wire::types::PacketType;
use std::sync::atomic::Ordering;

/// Octets of the push half that one turn of a face brings, about.
const TURN_BYTES: usize = 1 << 20;

impl PushSide {
    /// From now on publications of the application go by the push thread and no longer by parcels,
    /// or the other way round. It is not read until all shards have delivered the earlier ones, so
    /// none is overtaken.
    pub(super) fn settle(&mut self, io: &mut Io, app: AppId) {
        if self.shards == 1 {
            return;
        }
        for peer in self.peers.iter_mut().flatten() {
            peer.parcels_to.batch().settled(app);
        }
        // Behind its publications that were passed to the push thread.
        self.send_up(Up::Settled(app), 0);
        self.pause(io, app);
    }

    /// The application is not read, for one reason more: such a change, or a history in which it waits
    /// for who is behind (P-93).
    pub(super) fn pause(&mut self, io: &mut Io, app: AppId) {
        if let Some(app) = self.app_mut(io, app) {
            app.pauses += 1;
        }
    }

    /// One of these reasons is none any more.
    pub(super) fn resume(&mut self, io: &mut Io, app: AppId) {
        if let Some(app) = self.app_mut(io, app) {
            app.pauses = app.pauses.saturating_sub(1);
        }
    }

    fn app_mut<'a>(&self, io: &'a mut Io, app: AppId) -> Option<&'a mut AppSide> {
        io.faces.by_id(self.apps.face(app)?)?.1.state.app.as_deref_mut()
    }
}

impl Shard {
    /// How many of `frames` come before one that the push half has no room for now: an application
    /// waits, and so does a neighbour on a stream, and neither loses anything.
    pub(super) fn not_held(&mut self, io: &mut Io, slot: Slot, frames: &[RxFrame]) -> usize {
        if self.push.as_ref().is_some_and(PushSide::is_told) {
            // A frame may have been sent because of an announcement: its change comes first.
            self.take_told(io);
            self.hand_out_own(io);
        }
        let is_blocked = self.is_blocked(io, slot);
        let Some(push) = &mut self.push else { return frames.len() };
        // What one turn brings has room in the queue of any face.
        let mut room = match (is_blocked, push.is_over()) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => TURN_BYTES,
        };
        if frames.len() * PACKET_LEN_MAX <= room {
            return frames.len();
        }
        let is_stream = io.faces.get(slot).is_some_and(|face| face.is_stream);
        let waits = |frame: &RxFrame| {
            let is_ours = match PacketType::of(&frame.bytes) {
                Some(PacketType::PushApp) => true,
                Some(PacketType::PushFrame) => is_stream,
                _ => false,
            };
            let fits = !is_ours || room > 0;
            room = room.saturating_sub(if is_ours { frame.bytes.len() } else { 0 });
            !fits
        };
        frames.iter().position(waits).unwrap_or(frames.len())
    }

    /// Whether what the face in `slot` brings has to wait: for a face that holds back, for room in
    /// the lanes that its last message took, or until nothing pauses its application.
    pub(super) fn is_blocked(&mut self, io: &mut Io, slot: Slot) -> bool {
        let Some(push) = &mut self.push else { return false };
        let Some(face) = io.faces.peek(slot) else { return !push.is_free() };
        let targets = face.state.targets;
        let is_paused = || face.state.app.as_ref().is_some_and(|app| app.pauses > 0);
        !push.is_free() || is_paused() || targets != 0 && push.full() & targets != 0
    }

    /// Notes that a face is put aside until the push half has room; whether there is one.
    pub(super) fn hold(&mut self, slot: Slot) -> bool {
        let Some(push) = &mut self.push else { return false };
        push.held.push(slot);
        push.held_until.store(Tick::NEVER.0, Ordering::Relaxed);
        true
    }

    /// Whether something of the push half can be done now.
    pub(super) fn push_waits(&mut self, io: &mut Io) -> bool {
        let Some(push) = &self.push else { return false };
        if push.is_told() || push.is_due() {
            return true;
        }
        let (has_rest, has_held) = (push.rest.is_some() || push.has_own(), !push.held.is_empty());
        let peers = || push.peers.iter().flatten();
        let has_parcel = peers().any(|peer| peer.parcels_from.waits());
        let has_data = push.lanes.data.waits();
        let has_rows = peers().any(|peer| peer.rows_from.waits());
        let has_any = has_rest || has_held || has_parcel || has_data || has_rows;
        if !has_any || self.is_held_back(io) {
            return false;
        }
        has_rest
            || has_parcel
            || has_data && self.may_make(io)
            || has_rows && self.may_follow(io)
            || self.next_unblocked(io).is_some()
    }

    /// A face that was put aside and need not wait any more, by its place in the list.
    fn next_unblocked(&mut self, io: &mut Io) -> Option<usize> {
        let count = self.push.as_ref().map_or(0, |push| push.held.len());
        (0..count).find(|at| {
            let slot = self.push.as_ref().and_then(|push| push.held.get(*at).copied());
            slot.is_none_or(|slot| !self.is_blocked(io, slot))
        })
    }

    /// Whether something waits for a face that holds back: nobody rings for that.
    pub(super) fn is_kept_waiting(&self) -> bool {
        let waits = |push: &PushSide| !push.holding.is_empty() || push.rest.is_some();
        self.push.as_ref().is_some_and(waits)
    }

    /// Faces that were put aside have turns again when there is room.
    pub(super) fn release_held(&mut self, io: &mut Io) {
        while let Some(at) = self.next_unblocked(io) {
            let Some(push) = &mut self.push else { return };
            let slot = push.held.swap_remove(at);
            if push.held.is_empty() {
                push.held_until.store(io.now.0, Ordering::Relaxed);
            }
            io.take_up(slot);
        }
    }

    pub(super) fn forget_held(&mut self, now: Tick, slot: Slot) {
        let Some(push) = &mut self.push else { return };
        let before = push.held.len();
        push.held.retain(|s| *s != slot);
        if push.held.is_empty() && before > 0 {
            push.held_until.store(now.0, Ordering::Relaxed);
        }
    }
}
