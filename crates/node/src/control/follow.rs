//! Which listener a UDP face sends from when the configuration does not say.
//!
//! A new face uses the listener with the address that the system would choose. The peer may know
//! this node by another address: it then creates a face to a stranger for our frames, and does not
//! count them for the link that it configured. So the face of a neighbour moves to the listener at
//! which that neighbour's frames arrive, unless some arrive at its present one. A configured
//! `local` prevents moves.
//!
//! Source addresses can be forged, and whoever could move a face would take the link away. A face
//! therefore moves only for a hello with the MAC of the domain (`push.key`). Without a key it
//! stays, and the log names the `local` that would move it.

use super::Io;
use super::faces::Origin;
use super::plane::Plane;
use crate::config::{Framing, Push};
use onym_pubsub::DomainKey;
use onym_tables::FaceId;
use onym_wire::push::{Frame, reserved};

impl Plane {
    /// A frame of the peer that the face `id` was made for came by a listener.
    pub(super) fn follow(&mut self, io: &mut Io, origin: Origin, id: FaceId, frame: &[u8]) {
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
        if !is_free || !record.up || record.local == here {
            return;
        }
        if !is_hello_of_domain(&self.settings.config.push, frame) {
            if record.heard.is_to_be_told() {
                tracing::info!(
                    face = id.0,
                    speaks_from = record.local,
                    arrive_at = here,
                    "frames of its peer arrive at another listener; `local` moves the link"
                );
            }
            return;
        }
        if !record.heard.may_look(now) {
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
                tracing::info!(
                    face = id.0,
                    from = here,
                    "the link moved to the address that its peer uses"
                );
                self.face_reopen(id, face);
            }
            Err(reason) => tracing::debug!(face = id.0, reason, "cannot follow its peer"),
        }
    }
}

/// Whether a frame is what only a node of the domain can say: a hello with the domain's MAC.
fn is_hello_of_domain(push: &Push, frame: &[u8]) -> bool {
    if !push.enabled || push.key.is_empty() {
        return false;
    }
    let Ok(frame) = Frame::parse(frame) else { return false };
    let mut ids = frame.ids;
    let is_hello = ids.next().and_then(|id| id.first().copied()) == Some(reserved::HELLO.0);
    is_hello && DomainKey::new(push.key.as_bytes()).fits(frame.payload)
}
