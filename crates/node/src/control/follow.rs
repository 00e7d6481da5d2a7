//! Which of our listeners a UDP face speaks from, where nobody said.
//!
//! A face that is asked for speaks from the listener that has the address which the system would
//! take. The peer may know us by another one: then it makes a face to a stranger of our frames, and
//! none of them counts as the link that it knows. So a face moves to the listener at which its
//! peer's frames arrive, unless some come to where it is. A `local` of its own holds it where it is.
//!
//! Who sends in the peer's name can move it, once a second at most and only while the peer itself
//! is silent.

use super::Io;
use super::faces::Origin;
use super::plane::Plane;
use crate::config::Framing;
use onym_tables::FaceId;

impl Plane {
    /// A frame of the peer that the face `id` was made for came by a listener.
    pub(super) fn follow(&mut self, io: &mut Io, origin: Origin, id: FaceId) {
        let now = self.clock.now();
        // One for all addresses does not tell at which of them the frame came.
        let address = self.listeners.address(origin.listener);
        if address.is_none_or(|address| address.ip().is_unspecified()) {
            return;
        }
        let Some(listener) = io.listener(origin.listener) else { return };
        let here = listener.local_uri().to_string();
        let Some(record) = self.faces.get_mut(id) else { return };
        let is_free = record
            .target
            .as_ref()
            .is_some_and(|target| target.local.is_none() && target.framing == Framing::Packets);
        if !is_free || !record.up || record.local == here || !record.heard.may_look(now) {
            return;
        }
        // Asked of the shard behind the frames that it was given.
        let all = self.shards.owner_counters().get(&id).map_or(0, |c| c.traffic.in_frames);
        let Some(record) = self.faces.get_mut(id) else { return };
        if record.heard.came_to_itself(all) {
            return;
        }
        let Some(target) = record.target.clone() else { return };
        let made = listener.face_for(origin.peer).map_err(|e| e.to_string());
        match made.and_then(|face| target.dress(face)) {
            Ok(face) => {
                tracing::info!(face = id.0, from = here, "speaks from where its peer speaks to");
                self.face_reopen(id, face);
            }
            Err(reason) => tracing::debug!(face = id.0, reason, "cannot follow its peer"),
        }
    }
}
