//! What the parts of a node publish: to each other, and as frames to other nodes.

use super::{ControlPlane, Faces, Frames, Output};
use crate::forwarder::Source;
use crate::publication::{Publication, Said, Target};
use crate::topology::TopologyManager;
use onym_tables::Tick;
use onym_wire::push::{FrameBuilder, Route, RouteBuf};

impl ControlPlane {
    /// Begins a round: until [`release`](Self::release), control messages for other nodes wait, so
    /// that those to the same place share frames and acknowledgements (P-46).
    pub fn hold(&mut self) {
        self.is_held = true;
    }

    /// Ends a round.
    pub fn release(&mut self, now: Tick, output: &mut Output) {
        self.is_held = false;
        self.settle(now, output);
    }

    /// Carries out what the parts published, and outside of a round sends what waits.
    #[inline]
    pub(super) fn settle(&mut self, now: Tick, output: &mut Output) {
        if !self.outbox.said.is_empty() {
            self.drain(now, output);
        }
        if !self.is_held && self.has_waiting() {
            self.say(now, output);
        }
        self.look_for_detours(now);
        output.notices.append(&mut self.outbox.notices);
    }

    #[inline]
    fn has_waiting(&self) -> bool {
        !self.bundles.is_empty()
            || self.dispatcher.owes()
            || self.topology.as_ref().is_some_and(TopologyManager::owes)
    }

    /// Sends what waits for the end of the round.
    fn say(&mut self, now: Tick, output: &mut Output) {
        self.dispatcher.acknowledge(&mut self.outbox);
        if let Some(topology) = &mut self.topology {
            topology.acknowledge(&mut self.outbox);
        }
        self.drain(now, output);
        for publication in self.bundles.take() {
            self.send(publication, output);
        }
    }

    /// Until nothing is left. Each message has effects of its own only, so this ends: what goes
    /// round goes through the network.
    fn drain(&mut self, now: Tick, output: &mut Output) {
        while let Some(said) = self.outbox.said.pop_front() {
            match said {
                Said::Here { root, node, mut message } => {
                    self.obey(now, (root, node), &mut message, None);
                }
                Said::Publication(publication) => self.carry_out(publication, output),
            }
        }
    }

    fn carry_out(&mut self, publication: Publication, output: &mut Output) {
        let is_data = publication.by.is_some();
        let ready = if is_data { Some(publication) } else { self.bundles.add(publication) };
        if let Some(publication) = ready {
            self.send(publication, output);
        }
    }

    /// Sends a publication to other nodes: data by a shard, or a control message.
    fn send(&mut self, mut publication: Publication, output: &mut Output) {
        let by = publication.by;
        let is_abroad =
            matches!(publication.target, Target::Face(f) if self.forwarder.is_external(f));
        let key = if is_abroad { &self.config.federation_key } else { &self.config.key };
        if let (None, Some(key)) = (by, key) {
            key.seal(&mut publication.payload);
        }
        // What another node published is its own business.
        let is_signed = match by {
            Some(_) => !publication.mark.is_foreign,
            None => self.config.control.is_some(),
        };
        if let (true, Some(signing)) = (is_signed, &self.config.signing) {
            signing.sign(&mut publication);
        }
        let link = RouteBuf::from(Route::Link);
        let route = match &publication.target {
            Target::Route(route) => route,
            _ => &link,
        };
        let mut octets = output.buffer();
        FrameBuilder {
            hop_limit: publication.hop_limit,
            strategy: publication.strategy,
            route,
            ids: &publication.ids,
            options: &publication.options,
            payload: &publication.payload,
        }
        .write(&mut octets);
        publication.mark.flags.put(&mut octets);
        let faces = match publication.target {
            Target::Face(face) => Faces::from_slice(&[face]),
            Target::Neighbours(except) => {
                let faces = self.forwarder.links().iter().filter(|l| !l.is_external);
                faces.map(|l| l.face).filter(|f| Some(*f) != except).collect()
            }
            _ => return self.send_own(octets, by, output),
        };
        if !faces.is_empty() {
            output.frames.push(Frames { faces, octets, by });
        }
    }

    /// Sends a frame of this node where its filter says.
    pub(crate) fn send_own(&mut self, mut octets: Vec<u8>, by: Option<u16>, output: &mut Output) {
        let copies = &mut self.copies;
        self.forwarder.receive(Source::Own, &mut octets, copies);
        if copies.faces.is_empty() {
            output.give_back(octets);
        } else {
            let faces = Faces::from_slice(&copies.faces);
            output.frames.push(Frames { faces, octets, by });
        }
    }
}
