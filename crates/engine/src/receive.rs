//! What the I/O of a thread brings to its driver.

use crate::driver::Driver;
use crate::face::Slot;
use crate::io::Io;
use crate::poller::Poller;
use onym_frame::RxFrame;
use onym_link::Received;
use onym_tables::Tick;
use onym_wire::types::PacketType;

impl<F, P: Poller> Io<F, P> {
    /// Takes one frame of a face, which may have come another way than over its transport; a reason
    /// to end the face if it is a stream.
    #[inline]
    pub fn frame<D>(&mut self, driver: &mut D, slot: Slot, frame: RxFrame) -> Option<&'static str>
    where
        D: Driver<P, Face = F>,
    {
        let now = self.now;
        let face = self.faces.get(slot)?;
        face.traffic.in_bytes += frame.bytes.len() as u64;
        face.traffic.in_frames += 1;
        face.heard = now;
        let mut received = face.link.receive(now, face.id, frame);
        if face.is_pressed
            && let Received::Packet(packet) = &mut received
            && PacketType::of(&packet.bytes) == Some(PacketType::Data)
        {
            face.mark(packet);
        }
        match received {
            Received::Packet(packet) => driver.receive(self, slot, packet),
            Received::Dropped(verdict) => {
                self.counters.frames_dropped += 1;
                verdict.closes_stream().then_some(verdict.label())
            }
            Received::Idle => {
                self.note_timer(slot);
                None
            }
            Received::Held => None,
        }
    }

    /// Has the transport do what the link service knows of the path: send no frame in IP fragments, or
    /// send such again. What was queued before leaves as it would have, as far as the socket takes it.
    fn settle_path(&mut self, slot: Slot) {
        let Some(face) = self.faces.get(slot) else { return };
        let is_whole = face.link.sends_whole();
        if is_whole == face.is_whole && !face.link.wants_first_hop() {
            return;
        }
        face.is_whole = is_whole;
        self.flush(slot);
        let Some(face) = self.faces.get(slot) else { return };
        let first_hop = face.io.as_mut().and_then(|io| io.send_whole(is_whole));
        face.link.set_first_hop(first_hop.unwrap_or(usize::MAX));
    }

    /// Does what is due of link services and listeners.
    pub(crate) fn timers<D: Driver<P, Face = F>>(&mut self, driver: &mut D) {
        self.listener_timers();
        let now = self.now;
        if self.timed_due > now {
            return;
        }
        self.timed_due = Tick::NEVER;
        let mut i = 0;
        while let Some(&slot) = self.timed.get(i) {
            let Some(face) = self.faces.get(slot) else {
                self.timed.swap_remove(i);
                continue;
            };
            if face.link.poll_timeout() <= now {
                // What came may have changed the path as well as what did not come in time.
                self.settle_path(slot);
                let Some(face) = self.faces.get(slot) else { continue };
                face.link.handle_timeout(now, &mut face.queue);
                self.settle_path(slot);
                let Some(face) = self.faces.get(slot) else { continue };
                let id = face.id;
                if !face.is_dirty && !face.is_blocked && !face.queue.is_empty() {
                    face.is_dirty = true;
                    self.dirty.push(slot);
                }
                let given_up = |io: &mut Self| io.faces.get(slot)?.link.next_given_up();
                while let Some(interest) = given_up(self) {
                    driver.given_up(self, id, &interest);
                }
            }
            let Some(face) = self.faces.get(slot) else { continue };
            let due = face.link.poll_timeout();
            if due == Tick::NEVER {
                face.is_timed = false;
                self.timed.swap_remove(i);
                continue;
            }
            self.timed_due = self.timed_due.min(due);
            i += 1;
        }
    }
}
