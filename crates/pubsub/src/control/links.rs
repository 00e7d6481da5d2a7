//! Links of a node come and go.

use super::{ControlPlane, Output};
use crate::forwarder::{LinkEntry, LinkError};
use onym_tables::{FaceId, Tick};
use onym_wire::push::{Label, Link};

impl ControlPlane {
    /// Adds a link with its number in the domain.
    ///
    /// # Errors
    /// [`LinkError`].
    pub fn link_add(&mut self, now: Tick, link: LinkEntry, cost: u16) -> Result<(), LinkError> {
        self.forwarder.link_add(link)?;
        self.note_link(link.number);
        if !link.is_external {
            self.link_state.link_add(now, link.face, link.number, cost);
        }
        Ok(())
    }

    /// Adds a link to another domain.
    ///
    /// # Errors
    /// [`LinkError`].
    pub fn exit_add(&mut self, now: Tick, link: LinkEntry, domain: Label) -> Result<(), LinkError> {
        self.forwarder.link_add(LinkEntry { is_external: true, ..link })?;
        let exit = Link { neighbour: domain, number: link.number, cost: 1 };
        self.link_state.exit_add(now, link.face, exit);
        Ok(())
    }

    /// A link costs this from now on; it stays up.
    pub fn link_cost(&mut self, now: Tick, face: FaceId, cost: u16) {
        self.link_state.link_cost(now, face, cost);
    }

    /// A link carries so many kilobits per second; 0: that is not known.
    pub fn link_capacity(&mut self, now: Tick, face: FaceId, capacity: u32) {
        self.link_state.link_capacity(now, face, capacity);
    }

    /// So many octets were sent over a link since it is there (P-90).
    pub fn link_sent(&mut self, now: Tick, face: FaceId, octets: u64) {
        self.link_state.link_sent(now, face, octets);
    }

    /// A link is known to be down.
    pub fn link_down(&mut self, now: Tick, face: FaceId, output: &mut Output) {
        self.link_state.link_down(now, face, &mut self.outbox);
        self.settle(now, output);
    }

    /// The network refused what was sent over a link (P-86).
    pub fn link_refused(&mut self, now: Tick, face: FaceId, output: &mut Output) {
        self.link_state.link_refused(now, face, &mut self.outbox);
        self.settle(now, output);
    }

    /// Removes a link; whether there was one.
    pub fn link_remove(&mut self, now: Tick, face: FaceId, output: &mut Output) -> bool {
        self.link_state.link_remove(now, face, &mut self.outbox);
        let was_there = self.forwarder.link_remove(face);
        self.are_detours_old = true;
        self.settle(now, output);
        was_there
    }
}
