//! The control thread as its engine sees it: requests, reports of shards, arrivals, timers, and
//! packets of management.

use super::host::ManagementHost;
use super::plane::News;
use super::request::Request;
use super::{Control, Io, NoFace};
use crate::mgmt::Output;
use crate::shard::{Order, Report, TableOrder};
use onym_engine::{AttemptId, Driver, FaceEvent, Idle, ListenerId, Slot, Turn};
use onym_face::{Face, Incoming};
use onym_forward::Event;
use onym_forward::stage::Held;
use onym_frame::Buf;
use onym_link::{LpIn, Packet};
use onym_tables::{FaceId, Tick};
use onym_wire::cert::PrefixAnnouncement;
use onym_wire::types::PacketType;
use onym_wire::{Data, NackReason};
use std::collections::BTreeMap;

/// Reports of a shard after which answers leave: to send each by itself costs a lock, an order and
/// mostly a wake-up, and one may be long.
const ANSWERS_TOGETHER: usize = 16;

impl Driver for Control {
    type Face = NoFace;
    type Order = Request;

    fn receive(&mut self, _: &mut Io, _: Slot, _: Packet) -> Option<&'static str> {
        None
    }

    fn face_event(&mut self, _: &mut Io, _: Slot, _: FaceId, _: FaceEvent) {}

    fn turn(&mut self, _: &mut Io, _: Slot) -> Turn {
        Turn { receive: 0, handle: 0 }
    }

    fn order(&mut self, io: &mut Io, request: Request) {
        self.carry_out(io, request);
    }

    fn begin_round(&mut self, io: &mut Io) {
        for shard in 0..self.reports.len() {
            // At most as many as there are now, so that one shard cannot hold the thread.
            for taken in 1..=self.reports[shard].slots() {
                let Ok(report) = self.reports[shard].pop() else { break };
                self.report(io, shard, report);
                if taken % ANSWERS_TOGETHER == 0 {
                    self.dispatch(io);
                }
            }
        }
        self.dispatch(io);
    }

    fn idle(&mut self, _: &mut Io) -> Idle {
        match self.reports.iter().all(rtrb::Consumer::is_empty) {
            true => Idle::Sleep,
            false => Idle::Work,
        }
    }

    fn accepted(&mut self, io: &mut Io, at: ListenerId, incoming: Incoming) {
        self.plane.arrived(io, at, incoming);
    }

    fn connected(&mut self, _: &mut Io, id: AttemptId, result: Result<Box<dyn Face>, String>) {
        self.plane.dialed(id, result);
    }

    fn poll_timeout(&self) -> Tick {
        self.management.poll_timeout().unwrap_or(Tick::NEVER).min(self.plane.poll_timeout())
    }

    fn handle_timeout(&mut self, io: &mut Io) {
        let now = io.now;
        self.plane.handle_timeout(io);
        if self.management.poll_timeout().is_some_and(|at| at <= now) {
            let plane = &mut self.plane;
            let mut host = ManagementHost { plane, io, log: self.log.as_deref() };
            self.management.handle_timeout(now, &mut host);
        }
        if self.plane.routes.changes() != self.rib_changes {
            // Routes ended: who waits for it is told now, not with the next request.
            self.dispatch(io);
        }
    }

    /// Tells management what happened to faces and routes, and sends what it wants sent, by shard 0, which
    /// passes it to where it belongs.
    fn dispatch(&mut self, io: &mut Io) {
        self.tell_news(io);
        let mut packets = Vec::new();
        let mut judged: BTreeMap<usize, Vec<(Box<Held>, bool)>> = BTreeMap::new();
        while let Some(output) = self.management.poll_output() {
            let Output::Verified { ticket, is_good } = output else {
                packets.extend(packet(output));
                continue;
            };
            self.plane.verified[usize::from(!is_good)] += 1;
            if let Some((shard, held)) = self.verifying.remove(&ticket) {
                judged.entry(shard).or_default().push((held, is_good));
            }
        }
        for (shard, judged) in judged {
            self.plane.shards.tell(shard, TableOrder::Verified(judged).into());
        }
        if !packets.is_empty() {
            self.plane.shards.tell_first(Order::Inject(packets));
        }
    }
}

fn packet(output: Output) -> Option<Packet> {
    let mut lp = LpIn::default();
    let wire = match output {
        Output::Data { wire, no_cache } => {
            lp.no_cache = no_cache;
            wire
        }
        Output::Interest { wire, next_hop } => {
            lp.next_hop_face = next_hop.told().filter(|_| next_hop != FaceId::INVALID);
            wire
        }
        Output::NoRoute { interest } => {
            lp.nack = Some(NackReason::NO_ROUTE);
            interest
        }
        Output::Verified { .. } => return None,
    };
    Some(Packet { face: FaceId::INTERNAL, bytes: Buf::copy_from(&wire), lp })
}

impl Control {
    fn report(&mut self, io: &mut Io, shard: usize, report: Report) {
        let plane = &mut self.plane;
        match report {
            Report::Management { bytes, incoming } => {
                self.manage(io, &bytes, incoming.unwrap_or(FaceId::INVALID));
            }
            Report::Verify(held) => self.verify(io, shard, held),
            Report::FaceFailed { id, reason, fatal: true } => plane.face_ended(id, &reason),
            Report::FaceFailed { id, reason, fatal: false } => plane.face_erred(id, &reason),
            Report::Malformed { id, word } => plane.face_malformed(id, word),
            Report::FaceChanged { id, transport, local, remote } => {
                plane.faces.carried_by(id, transport, local, remote);
            }
            Report::FaceConnected { id } => tracing::debug!(face = id.0, "connected"),
            Report::Forwarder(Event::Learn { face, announcement }) => {
                self.learn(io, &announcement, face);
            }
            Report::Forwarder(Event::Unlearn { face, name }) => {
                plane.routes.unlearn(&plane.shards, &plane.faces, name.as_ref(), face);
            }
        }
    }

    /// A Data that shard `shard` keeps when it is good.
    fn verify(&mut self, io: &mut Io, shard: usize, held: Box<Held>) {
        let now = io.now;
        let guard = self.verify_by.get(usize::from(held.rule)).cloned().unwrap_or_default();
        let mut host = ManagementHost { plane: &mut self.plane, io, log: self.log.as_deref() };
        let ticket = self.management.verify(&guard, &held.bytes, now, &mut host);
        self.verifying.insert(ticket, (shard, held));
    }

    /// A packet that the forwarder delivered to management.
    fn manage(&mut self, io: &mut Io, bytes: &Buf, incoming: FaceId) {
        let now = io.now;
        let mut host = ManagementHost { plane: &mut self.plane, io, log: self.log.as_deref() };
        if PacketType::of(bytes) == Some(PacketType::Data) {
            self.management.data(bytes, incoming, now, &mut host);
        } else {
            self.management.interest(bytes, incoming, now, &mut host);
        }
        // The next packet finds management as this one left it; answers leave together.
        self.tell_news(io);
    }

    /// An announcement came with Data on `face`: management says whether its signer counts.
    fn learn(&mut self, io: &mut Io, announcement: &Buf, face: FaceId) {
        if !self.plane.faces.is_local(face) && !self.believes(io, announcement, face) {
            return;
        }
        let plane = &mut self.plane;
        plane.routes.learn(&plane.shards, &plane.faces, io.now, announcement, face);
    }

    fn believes(&mut self, io: &mut Io, announcement: &Buf, face: FaceId) -> bool {
        let Ok(data) = Data::parse(announcement) else { return false };
        let Ok(parsed) = PrefixAnnouncement::parse(&data) else { return false };
        let now = io.now;
        let mut host = ManagementHost { plane: &mut self.plane, io, log: self.log.as_deref() };
        self.management.announced(&data, &parsed, face, now, &mut host)
    }

    /// Tells management what happened to faces and routes.
    fn tell_news(&mut self, io: &Io) {
        let changes = self.plane.routes.changes();
        if changes != self.rib_changes {
            self.rib_changes = changes;
            self.management.rib_changed(changes, io.now);
        }
        for news in self.plane.news.drain(..) {
            match news {
                News::Face(event, view) => self.management.face_event(event, &view, io.now),
                News::Created(ticket, result) => self.management.face_created(ticket, result),
            }
        }
    }
}
