//! What the network says about a neighbour: that nobody takes packets at its address.

use super::measure::Probe;
use super::{Router, Why};
use crate::table::PeerId;
use onym_tables::Tick;
use onym_tables::doubt::Step;
use std::sync::Arc;

impl Router {
    /// The network refused what was sent by `face`: neighbours there that answer probes are asked, and
    /// dropped when they do not answer.
    pub fn face_refused(&mut self, now: Tick, face: u64) {
        for neighbour in self.neighbours.iter_mut().filter(|n| n.ours) {
            for heard in neighbour.faces.iter_mut().filter(|f| f.face == face) {
                let rtt = heard.measure.rtt;
                self.counters.doubts += u64::from(heard.doubt.begin(now, rtt));
            }
        }
        self.inquire(now);
        self.progress(now);
    }

    /// Probes of doubted faces that are due; faces without an answer go.
    pub(super) fn inquire(&mut self, now: Tick) {
        let (mut probes, mut ended) = (Vec::new(), Vec::new());
        for neighbour in self.neighbours.iter_mut() {
            let (peer, name) = (neighbour.id, Arc::clone(&neighbour.name));
            for heard in &mut neighbour.faces {
                let probe = Probe { peer, face: heard.face, is_full: false };
                match heard.doubt.step(now) {
                    Some(Step::Ask) => probes.push((probe, Arc::clone(&name))),
                    Some(Step::End) => ended.push((peer, heard.face)),
                    None => {}
                }
            }
        }
        for (probe, name) in probes {
            self.send_probe(now, probe, &name);
        }
        for (peer, face) in &ended {
            if let Some(neighbour) = self.neighbours.get_mut(*peer) {
                neighbour.faces.retain(|f| f.face != *face);
            }
            self.neighbour_faces_changed(now, *peer, Why::Refused);
        }
        if !ended.is_empty() {
            self.control_routes();
        }
    }

    /// The neighbour answered by `face`.
    pub(super) fn settle_doubt(&mut self, peer: PeerId, face: u64) {
        if let Some(neighbour) = self.neighbours.get_mut(peer) {
            let heard = neighbour.faces.iter_mut().filter(|f| f.face == face);
            heard.for_each(|f| f.doubt.settle());
        }
    }
}
