//! The worker as a driver of its engine: packets in and out, verifications, timers.

use super::{FaceState, Io, Order, Worker};
use onym_engine::{Driver, FaceEvent, Idle, ListenerId, Slot, Turn, clock::unix_ms};
use onym_face::Incoming;
use onym_link::{LinkUnsent, Packet, Transmit};
use onym_services::Verdict;
use onym_services::verdict::Unsent;
use onym_tables::{FaceId, Tick};

/// Frames that a transport is asked for in one turn of its face; all that its system call brings
/// are handled.
const TURN: usize = 64;

impl Driver for Worker {
    type Face = FaceState;
    type Order = Order;

    #[inline]
    fn receive(&mut self, io: &mut Io, _: Slot, packet: Packet) -> Option<&'static str> {
        let now = self.now(io);
        let verdict = self.function.receive(now, packet, &mut self.out)?;
        (verdict == Verdict::Malformed).then_some(verdict.label())
    }

    fn poll_timeout(&self) -> Tick {
        self.function.poll_timeout().min(self.faces_due)
    }

    fn handle_timeout(&mut self, io: &mut Io) {
        if self.function.poll_timeout() <= io.now {
            self.with(io, |function, now, out| function.handle_timeout(now, out));
        }
        if self.faces_due <= io.now {
            self.face_timers(io);
        }
    }

    fn dispatch(&mut self, io: &mut Io) {
        self.after(io);
    }

    fn order(&mut self, io: &mut Io, order: Order) {
        self.unix_ms = unix_ms();
        self.obey(io, order);
    }

    fn face_event(&mut self, io: &mut Io, slot: Slot, _: FaceId, event: FaceEvent) {
        match event {
            FaceEvent::Connected => self.face_is_up(io, slot),
            FaceEvent::Failed { reason, is_fatal: true } => self.failed(io, slot, &reason),
            FaceEvent::Failed { reason, is_fatal: false } => {
                if let Some(face) = io.faces.get(slot) {
                    face.state.last_error = Some(reason);
                }
            }
            FaceEvent::Changed | FaceEvent::Flushed => {}
        }
    }

    fn turn(&mut self, _: &mut Io, _: Slot) -> Turn {
        Turn { receive: TURN, handle: usize::MAX }
    }

    fn begin_round(&mut self, _: &mut Io) {
        self.unix_ms = unix_ms();
    }

    fn after_turns(&mut self, io: &mut Io) {
        let mut jobs = std::mem::take(&mut self.verified);
        self.jobs.finished(&mut jobs);
        if !jobs.is_empty() {
            let now = self.now(io);
            for job in jobs.drain(..) {
                self.function.verified(now, job, &mut self.out);
            }
            self.after(io);
        }
        self.verified = jobs;
    }

    fn idle(&mut self, _: &mut Io) -> Idle {
        if self.jobs.has_work() { Idle::Work } else { Idle::Sleep }
    }

    /// Nothing more is read while as much waits for verification as may.
    fn may_receive(&mut self) -> bool {
        self.jobs.under_way() < self.function.jobs_max()
    }

    fn accepted(&mut self, io: &mut Io, at: ListenerId, incoming: Incoming) {
        self.arrived(io, at, incoming);
    }
}

impl Worker {
    /// Sends what the function produced and does what it asked for.
    pub(super) fn after(&mut self, io: &mut Io) {
        loop {
            let jobs = self.function.jobs();
            if !jobs.is_empty() {
                self.jobs.submit(jobs);
            }
            self.send_out(io);
            for event in self.function.take_events() {
                self.tell(&event);
            }
            let effects = self.function.take_effects();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                self.perform(io, effect);
            }
        }
    }

    fn send_out(&mut self, io: &mut Io) {
        if self.out.items.is_empty() {
            return;
        }
        let mut out = std::mem::take(&mut self.out);
        for item in out.items.drain(..) {
            self.transmit(io, &out.arena, &item);
        }
        out.clear();
        self.out = out;
    }

    fn transmit(&mut self, io: &mut Io, arena: &[u8], item: &Transmit) {
        let now = io.now;
        let Some((slot, face)) = io.faces.by_id(item.face) else {
            self.function.count_unsent(Unsent::FaceGone);
            return;
        };
        if face.io.is_none() {
            face.state.dropped_down += 1;
            self.function.count_unsent(Unsent::FaceGone);
            return;
        }
        if let Err(reason) = face.link.send(now, item, arena, &mut face.queue) {
            let reason = match reason {
                LinkUnsent::QueueFull => Unsent::QueueFull,
                LinkUnsent::OverMtu => Unsent::OverMtu,
            };
            self.function.count_unsent(reason);
            return;
        }
        io.queued(slot);
    }
}
