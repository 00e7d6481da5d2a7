//! Execution of the orders to a data thread.

use super::order::{
    Counted, FaceChange, FaceCounts, FaceOrder, Found, FreezeChange, Wanted, Which,
};
use super::{Io, Made, Order, Worker};
use crate::patch;
use onym_services::{Port, Refusal};
use onym_tables::FaceId;

impl Worker {
    pub(super) fn obey(&mut self, io: &mut Io, order: Order) {
        match order {
            Order::Health(reply) => reply.send(()),
            Order::NotReady(reply) => reply.send(self.not_ready(io)),
            Order::Listeners(reply) => reply.send(self.listeners_json()),
            Order::Freeze { side, change, reply } => {
                let is_changed = match change {
                    None => false,
                    Some(FreezeChange::End) => {
                        self.with(io, |f, now, out| f.unfreeze(now, side, out))
                    }
                    Some(FreezeChange::Start(limits)) => {
                        self.with(io, |f, now, _| f.start_freeze(now, side, limits))
                    }
                };
                let state = serde_json::to_value(self.function.freeze_state(side));
                let mut state = state.unwrap_or_default();
                state["changed"] = is_changed.into();
                reply.send(state);
            }
            Order::Drain { change, reply } => {
                let is_changed = change.map(|is_on| self.function.set_draining(is_on));
                let state = serde_json::to_value(self.function.drain_state());
                let mut state = state.unwrap_or_default();
                if let Some(is_changed) = is_changed {
                    state["changed"] = is_changed.into();
                }
                reply.send(state);
            }
            Order::Config(reply) => {
                reply.send(serde_json::to_value(self.function.config()).unwrap_or_default())
            }
            Order::Configure { patch, reply } => {
                reply.send(self.with(io, |f, now, out| patch::apply(f, now, &patch, out)));
            }
            Order::Stats(reply) => reply.send(self.stats(io)),
            Order::FaceCounts(reply) => reply.send(self.face_counts()),
            Order::Element { request, reply } => {
                reply.send(self.with(io, |f, now, out| f.control(now, request, out)));
            }
            Order::Stop => io.stop(),
            Order::Face(order) => self.obey_face(io, order),
        }
    }

    fn obey_face(&mut self, io: &mut Io, order: FaceOrder) {
        match order {
            FaceOrder::List(reply) => {
                let ids = self.function.ports().iter().map(|port| port.id);
                reply.send(ids.filter_map(|id| self.face_json(io, id)).collect());
            }
            FaceOrder::Show { which, reply } => {
                let id = match which {
                    Which::Label(label) => self.function.ports().find(&label).map(|port| port.id),
                    Which::Number(id) => Some(id),
                };
                reply.send(id.and_then(|id| self.face_json(io, id)));
            }
            FaceOrder::Accepted { io: transport, from } => {
                self.add_accepted(io, transport, &from);
            }
            FaceOrder::Make { wanted, reply } => reply.send(self.make(io, &wanted)),
            FaceOrder::Change { label, change, reply } => {
                let id = self.function.ports().find(&label).map(|port| port.id);
                reply.send(id.and_then(|id| {
                    let is_changed = self.change(id, &change);
                    self.face_json(io, id).map(|face| (is_changed, face))
                }));
            }
            FaceOrder::ChangeMany { changes, reply } => {
                let mut changed = 0;
                for (label, change) in &changes {
                    let id = self.function.ports().find(label).map(|port| port.id);
                    changed += u64::from(id.is_some_and(|id| self.change(id, change)));
                }
                reply.send(changed);
            }
            FaceOrder::Remove { label, reply } => {
                let id = self.function.ports().find(&label).map(|port| port.id);
                reply.send(id.and_then(|id| self.remove(io, id)));
            }
        }
    }

    /// Changes a face; whether that made a difference.
    fn change(&mut self, id: FaceId, change: &FaceChange) -> bool {
        let mut is_changed = false;
        self.function.change_face(id, |port| {
            let before = (port.weight, port.rank, port.draining);
            port.weight = change.weight.unwrap_or(port.weight);
            port.rank = change.rank.unwrap_or(port.rank);
            port.draining = change.draining.unwrap_or(port.draining);
            is_changed = before != (port.weight, port.rank, port.draining);
        });
        is_changed
    }

    /// Makes the face, or finds it.
    fn make(&mut self, io: &mut Io, wanted: &Wanted) -> Result<Found, Refusal> {
        let Wanted { label, uri, side, far_end, change } = wanted;
        let known = self.function.ports().iter().find(|port| port.label == *label);
        let is_alike = |port: &Port| (port.side, port.far_end) == (*side, *far_end);
        if let Some((id, is_alike_there)) = known.map(|port| (port.id, is_alike(port))) {
            let made = io.faces.peek_id(id).map(|face| (&face.state.uri, face.state.made));
            if !is_alike_there || !made.is_some_and(|(uri, made)| wanted.is(uri, made)) {
                let text =
                    format!("face {label} is another one; delete it first or choose a label");
                return Err(Refusal::conflict("face_differs", text));
            }
            return Ok(Found { id, is_new: false, is_changed: self.change(id, change) });
        }
        if !self.reserve_face() {
            let text = "the service has as many faces as it may have";
            return Err(Refusal::conflict("full", text));
        }
        let port = self.port(label, *side, *far_end);
        let id = self.create(io, Made::Created, uri, port);
        self.change(id, change);
        Ok(Found { id, is_new: true, is_changed: true })
    }

    fn stats(&mut self, io: &Io) -> Counted {
        let (received_bytes, sent_bytes) = self.octets(io);
        let stats = self.function.stats(self.now(io));
        let frames_dropped = io.counters.frames_dropped;
        Counted { stats, received_bytes, sent_bytes, frames_dropped }
    }

    fn face_counts(&self) -> Vec<FaceCounts> {
        let one = |port: &Port| FaceCounts {
            label: port.label.clone(),
            side: port.side,
            received: port.received,
            sent: port.sent,
        };
        self.function.ports().iter().map(one).collect()
    }

    /// Why the service is not ready.
    fn not_ready(&self, io: &Io) -> Option<String> {
        if self.function.drain_state().draining {
            return Some("draining".to_owned());
        }
        self.face_not_ready(io)
    }
}
