//! What is due: the function, link services, connections to be made again, silent peers.

use super::Worker;
use onym_tables::Tick;

impl Worker {
    pub(super) fn timers(&mut self) {
        let now = self.now;
        if self.function.poll_timeout() <= now.tick {
            self.with(|function, now, out| function.handle_timeout(now, out));
        }
        self.link_timers();
        if self.faces_due <= now.tick {
            self.face_timers();
        }
    }

    fn face_timers(&mut self) {
        let now = self.now;
        for at in 0..self.slots.len() {
            let Some(slot) = &self.slots[at] else { continue };
            if slot.due() > now.tick {
                continue;
            }
            if slot.io.is_none() {
                self.connect_again(at);
            } else {
                self.close_silent(at);
            }
        }
        let due = self.slots.iter().flatten().map(|slot| slot.due());
        self.faces_due = due.min().unwrap_or(Tick::NEVER);
    }

    fn link_timers(&mut self) {
        let now = self.now.tick;
        let mut i = 0;
        while let Some(&at) = self.timed.get(i) {
            let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else {
                self.timed.swap_remove(i);
                continue;
            };
            if slot.link.poll_timeout() <= now {
                slot.link.handle_timeout(now, &mut slot.queue);
                if !slot.dirty && !slot.blocked && !slot.queue.is_empty() {
                    slot.dirty = true;
                    self.dirty.push(at);
                }
            }
            if slot.link.poll_timeout() == Tick::NEVER {
                slot.timed = false;
                self.timed.swap_remove(i);
                continue;
            }
            i += 1;
        }
    }
}
