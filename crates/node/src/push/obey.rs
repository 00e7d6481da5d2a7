//! Execution of orders to the push thread, between two rounds, in the order in which they came.

use super::{Link, NewLink, PushOrder, PushThread};
use onym_engine::Io;

impl PushThread {
    /// Does what `order` says.
    pub(super) fn obey_order(&mut self, io: &mut Io<()>, order: PushOrder) {
        match order {
            PushOrder::FaceAdd { face, shard } => self.face_add(face, shard),
            PushOrder::FaceRemove(face) => self.face_remove(face),
            PushOrder::FaceDown(face) => self.face_down(face),
            PushOrder::FaceRefused(face) => self.face_refused(face),
            PushOrder::LinkAdd(NewLink { face, link, is_connected }) => {
                let (number, cost) = (self.link_number(&link), link.cost);
                let capacity = link.capacity_mbit.saturating_mul(1000);
                let domain = link.domain.parse().ok();
                self.link_add(Link { face, number, cost, capacity, is_connected, domain });
            }
            PushOrder::LinksSent(octets) => {
                octets.into_iter().for_each(|(face, sent)| self.link_sent(face, sent));
            }
            PushOrder::LinkRemove(face) => self.link_remove(face),
            PushOrder::Counts { reply } => reply.send(self.counts()),
            PushOrder::Show { question, reply } => reply.send(self.show(&question)),
            PushOrder::Trace { asked, reply } => reply.send(self.trace(&asked)),
            PushOrder::Roster(nodes) => self.roster(nodes),
            PushOrder::Recall(kept) => self.recall(kept),
            // The end of each round hands over what is to be kept.
            PushOrder::Stored => {}
            PushOrder::Stop => io.stop(),
            #[cfg(test)]
            PushOrder::Occupy(until) => _ = until.recv(),
        }
    }
}
