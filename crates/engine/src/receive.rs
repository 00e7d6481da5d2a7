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
            Received::Held | Received::Idle => None,
        }
    }

    /// Does what is due of link services and listeners.
    pub(crate) fn timers<D: Driver<P, Face = F>>(&mut self, driver: &mut D) {
        self.listener_timers();
        let now = self.now;
        let mut i = 0;
        while let Some(&slot) = self.timed.get(i) {
            let Some(face) = self.faces.get(slot) else {
                self.timed.swap_remove(i);
                continue;
            };
            if face.link.poll_timeout() <= now {
                face.link.handle_timeout(now, &mut face.queue);
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
            if face.link.poll_timeout() == Tick::NEVER {
                face.is_timed = false;
                self.timed.swap_remove(i);
                continue;
            }
            i += 1;
        }
    }
}
