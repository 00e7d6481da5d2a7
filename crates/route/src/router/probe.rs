//! Probes of links to Onym neighbours.
//!
//! A probe asks for a Data whose name nobody can have, so no cache answers.

use super::check::Subject;
use super::measure::{Echo, Measure, Probe};
use super::{Router, Why};
use crate::names;
use onym_endpoint::{Incoming, Packet, Request, RequestId};
use onym_tables::Tick;
use onym_wire::{DataBuilder, Name};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Octets of the answer to a probe of full size: those of a segment of an advertisement.
const FULL_LEN: usize = 8000;
/// One of so many probes is of full size, where links are measured.
const FULL_EVERY: u32 = 16;
/// Where they are not, a probe leaves after so many intervals, of either size in turn.
const SELDOM: u32 = 24;
const LIFETIME: Duration = Duration::from_secs(1);
const PING: &[u8] = b"PING";
const FULL: &[u8] = b"FULL";

#[derive(Debug, Default)]
pub(super) struct Probes {
    open: BTreeMap<RequestId, Probe>,
}

impl Router {
    /// Probes that are due.
    pub(super) fn probe(&mut self, now: Tick) {
        let (interval, is_on) = (self.config.advertise_interval, self.config.cost_by.is_on());
        let mut due = Vec::new();
        for neighbour in self.neighbours.iter_mut().filter(|n| n.ours) {
            for face in &mut neighbour.faces {
                let measure = &mut face.measure;
                if measure.next > now {
                    continue;
                }
                let every = if is_on { FULL_EVERY } else { 2 };
                let is_full = measure.sent % every == 1;
                measure.sent = measure.sent.wrapping_add(1);
                measure.next = if is_on {
                    now + interval / 5
                } else if measure.is_open() {
                    now + interval
                } else {
                    now + interval * SELDOM
                };
                let probe = Probe { peer: neighbour.id, face: face.face, is_full };
                due.push((probe, Arc::clone(&neighbour.name)));
            }
        }
        for (probe, name) in due {
            self.send_probe(now, probe, &name);
        }
    }

    pub(super) fn send_probe(&mut self, now: Tick, probe: Probe, router: &Name) {
        let mut name = names::advert_prefix(router.as_ref());
        name.append_keyword(if probe.is_full { FULL } else { PING });
        name.append_generic(self.rng.next_u64().to_be_bytes());
        let request = Request {
            must_be_fresh: true,
            lifetime: LIFETIME,
            next_hop_face: Some(probe.face),
            ..Request::new(name)
        };
        if let Ok(id) = self.endpoint.express(now, &request) {
            self.probes.open.insert(id, probe);
            self.counters.probes += 1;
        }
    }

    /// Whether `name` asks for the echo of a probe; it is answered then.
    pub(super) fn serve_probe(&mut self, now: Tick, incoming: &Incoming) -> bool {
        let name = incoming.interest().name;
        let rest = name.suffix(self.names.advert.len());
        let kind = rest.get(0).filter(|_| rest.len() == 2);
        let len = match kind {
            Some(kind) if kind.is_keyword(PING) => 0,
            Some(kind) if kind.is_keyword(FULL) => FULL_LEN,
            _ => return false,
        };
        let content = vec![0; len];
        let builder = DataBuilder { freshness_ms: 1, ..DataBuilder::new(name, &content) };
        // Each costs a signature: who asks too often on a link hears nothing.
        if incoming.face.is_some_and(|face| !self.checks.allow(now, face, 0)) {
            self.counters.flooded += 1;
        } else if let Some(data) = self.sign(now, &builder) {
            self.endpoint.reply(incoming, data);
        }
        true
    }

    /// Whether `id` was a probe; its signature is checked then, so that nobody else shortens a way.
    pub(super) fn on_echo(
        &mut self,
        id: RequestId,
        packet: &Packet,
        rtt: Option<Duration>,
    ) -> bool {
        let Some(probe) = self.probes.open.remove(&id) else { return false };
        let echo = Echo { probe, rtt };
        self.verify(Subject::Echo(echo), packet.clone(), Some(probe.face));
        true
    }

    /// Whether `id` was a probe; it was lost then.
    pub(super) fn on_no_echo(&mut self, now: Tick, id: RequestId) -> bool {
        let Some(probe) = self.probes.open.remove(&id) else { return false };
        self.counters.probes_lost += 1;
        let again = now + self.config.advertise_interval;
        self.measured(now, probe, |measure| {
            if probe.is_full {
                measure.full(None)
            } else {
                measure.unanswered()
            }
            if measure.is_open() {
                measure.next = measure.next.min(again);
            }
        });
        true
    }

    pub(super) fn echoed(&mut self, now: Tick, echo: Echo) {
        self.settle_doubt(echo.probe.peer, echo.probe.face);
        self.measured(now, echo.probe, |measure| {
            if echo.probe.is_full { measure.full(Some(())) } else { measure.answered(echo.rtt) }
        });
    }

    fn measured(&mut self, now: Tick, probe: Probe, note: impl FnOnce(&mut Measure)) {
        let (by, settle) = (self.config.cost_by, self.config.advertise_interval);
        let Some(neighbour) = self.neighbours.get_mut(probe.peer) else { return };
        let Some(face) = neighbour.faces.iter_mut().find(|f| f.face == probe.face) else { return };
        note(&mut face.measure);
        if by.is_on() && face.measure.adopt(now, by, settle) {
            neighbour.sort_faces();
            self.counters.cost_changes += 1;
            self.control_routes();
            self.neighbour_faces_changed(now, probe.peer, Why::FaceDown);
        }
    }
}
