//! The control thread as its engine sees it: requests, reports of shards, arrivals, timers, and
//! packets of management.

use super::host::ManagementHost;
use super::plane::News;
use super::request::Request;
use super::{Control, Io, NoFace};
use crate::mgmt::Output;
use crate::shard::{Order, Report};
use onym_engine::{AttemptId, Driver, FaceEvent, Idle, ListenerId, Slot, Turn};
use onym_face::{Face, Incoming};
use onym_forward::Event;
use onym_frame::Buf;
use onym_link::{LpIn, Packet};
use onym_tables::{FaceId, Tick};
use onym_wire::NackReason;
use onym_wire::types::PacketType;

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
                self.report(io, report);
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
            self.management.handle_timeout(now);
        }
    }

    /// Tells management what happened to faces, and sends what it wants sent, by shard 0, which
    /// passes it to where it belongs.
    fn dispatch(&mut self, io: &mut Io) {
        self.tell_news(io);
        let mut packets = Vec::new();
        while let Some(output) = self.management.poll_output() {
            packets.push(packet(output));
        }
        if !packets.is_empty() {
            self.plane.shards.tell_first(Order::Inject(packets));
        }
    }
}

fn packet(output: Output) -> Packet {
    let mut lp = LpIn::default();
    let wire = match output {
        Output::Data { wire, no_cache } => {
            lp.no_cache = no_cache;
            wire
        }
        Output::Interest { wire, next_hop } => {
            lp.next_hop_face = next_hop.told();
            wire
        }
        Output::NoRoute { interest } => {
            lp.nack = Some(NackReason::NO_ROUTE);
            interest
        }
    };
    Packet { face: FaceId::INTERNAL, bytes: Buf::copy_from(&wire), lp }
}

impl Control {
    fn report(&mut self, io: &mut Io, report: Report) {
        let plane = &mut self.plane;
        match report {
            Report::Management { bytes, incoming } => {
                self.manage(io, &bytes, incoming.unwrap_or(FaceId::INVALID));
            }
            Report::FaceFailed { id, reason, fatal: true } => plane.face_ended(id, &reason),
            Report::FaceFailed { id, reason, fatal: false } => plane.face_erred(id, &reason),
            Report::Malformed { id, word } => plane.face_malformed(id, word),
            Report::FaceChanged { id, transport, local, remote } => {
                plane.faces.carried_by(id, transport, local, remote);
            }
            Report::FaceConnected { id } => tracing::debug!(face = id.0, "connected"),
            Report::Forwarder(Event::Learn { face, announcement }) => {
                plane.routes.learn(&plane.shards, &plane.faces, io.now, &announcement, face);
            }
            Report::Forwarder(Event::Unlearn { face, name }) => {
                plane.routes.unlearn(&plane.shards, &plane.faces, name.as_ref(), face);
            }
        }
    }

    /// A packet that the forwarder delivered to management.
    fn manage(&mut self, io: &mut Io, bytes: &Buf, incoming: FaceId) {
        let now = io.now;
        let mut host = ManagementHost { plane: &mut self.plane, io, log: self.log.as_deref() };
        if PacketType::of(bytes) == Some(PacketType::Data) {
            self.management.data(bytes, now, &mut host);
        } else {
            self.management.interest(bytes, incoming, now, &mut host);
        }
        // The next packet finds management as this one left it; answers leave together.
        self.tell_news(io);
    }

    /// Tells management what happened to faces.
    fn tell_news(&mut self, io: &Io) {
        for news in self.plane.news.drain(..) {
            match news {
                News::Face(event, view) => self.management.face_event(event, &view, io.now),
                News::Created(ticket, result) => self.management.face_created(ticket, result),
            }
        }
    }
}
