//! Local back-pressure: an application that asks faster than it reads.
//!
//! ```text
//! its queue      what its face does
//! below half     reads everything, as long as the answers fit below half
//! half full      reads nothing until half is free; further Interests wait in the socket
//! meanwhile      answers to earlier Interests may fill four times its queue (for [`WIDE_MAX`] faces
//!                of a shard); beyond three quarters of one queue they are marked
//! after hold_ms  without progress it reads again; Data is marked, then dropped as `queue_full`,
//!                until the queue is below half
//! ```
//!
//! On the way in only what may be an Interest counts: Data and the push half's frames are not answered,
//! and have bounds of their own. On the way out only Data counts, because the application asked for it:
//! a flood of Interests towards it does not stop its answers from being read. There is no such
//! back-pressure between nodes, except while two nodes on one machine take each other for applications:
//! two ends that both stop reading wait for each other for at most `faces.hold_ms`.

use super::{Hold, Io, LocalFace, Shard};
use onym_engine::Slot;
use onym_frame::RxFrame;
use onym_tables::Tick;
use onym_wire::PACKET_LEN_MAX;
use onym_wire::types::PacketType;
use std::time::Duration;

/// Frames that are read from an application whatever waits for it, while it is not waited for.
const FRAMES_MIN: usize = 32;
/// How many times its bound the queue of an application may hold that is waited for.
const WIDE: usize = 4;
/// Applications of a shard whose queues are so long at a time.
const WIDE_MAX: usize = 8;

/// The applications from which nothing is read.
#[derive(Debug)]
pub(super) struct Paused {
    slots: Vec<Slot>,
    /// When the first of them may have waited long enough.
    until: Tick,
    /// How long they do without anything that leaves to them; none: they never do.
    hold: Duration,
}

impl Paused {
    pub(super) fn new(hold: Duration) -> Self {
        Self { slots: Vec::new(), until: Tick::NEVER, hold }
    }

    /// When [`Shard::end_pauses`] wants to be called.
    pub(super) fn poll_timeout(&self) -> Tick {
        self.until
    }
}

/// Whether nothing is read from the face.
fn is_paused(face: &LocalFace) -> bool {
    matches!(face.state.pull, Hold::Since(..))
}

/// Octets of the pull half that wait for it.
fn waiting(face: &LocalFace) -> usize {
    face.queue.bytes() - face.queue.push_bytes()
}

fn is_long(face: &LocalFace) -> bool {
    face.io.is_some() && waiting(face) > face.state.queue_bytes_max / 2
}

/// Whether this is for the face: a stream to an application of this machine.
fn is_waited_for(face: &LocalFace) -> bool {
    face.state.is_local && face.is_stream
}

/// Data was put into the queue of a face: whether it is waited for from now on.
#[inline]
pub(super) fn is_to_pause(face: &LocalFace) -> bool {
    is_waited_for(face) && face.state.pull == Hold::Free && is_long(face)
}

/// The bound of its queue, and from where on its packets are marked.
fn bound(face: &mut LocalFace, times: usize, mark_from: usize) {
    face.queue.set_bytes_max(face.state.queue_bytes_max.saturating_mul(times));
    face.link.set_mark_from(mark_from);
}

/// Nothing waits for it, and it does not wait.
pub(super) fn set_free(face: &mut LocalFace) {
    face.state.pull = Hold::Free;
    let from = if is_waited_for(face) { face.state.queue_bytes_max / 4 * 3 } else { usize::MAX };
    bound(face, 1, from);
}

/// How many of `frames` come before the one that asks for more than `room` packets: Data and what is of
/// the push half ask for none.
#[inline]
pub(super) fn before_ask(frames: &[RxFrame], mut room: usize) -> usize {
    if frames.len() <= room {
        return frames.len();
    }
    let is_one_too_many = |frame: &RxFrame| {
        let asks = PacketType::of(&frame.bytes)
            .is_none_or(|typ| typ != PacketType::Data && !typ.is_push());
        let is_over = asks && room == 0;
        room -= usize::from(asks && !is_over);
        is_over
    };
    frames.iter().position(is_one_too_many).unwrap_or(frames.len())
}

impl Shard {
    /// Data was put into the queue of a face that is to be waited for ([`is_to_pause`]).
    #[cold]
    pub(super) fn pause(&mut self, io: &mut Io, slot: Slot) {
        let (now, paused) = (io.now, &mut self.paused);
        let Some(face) = io.faces.get(slot) else { return };
        if paused.hold.is_zero() {
            return;
        }
        face.state.pull = Hold::Since(now, face.traffic.out_bytes);
        face.tell_flushed();
        if paused.slots.len() < WIDE_MAX {
            bound(face, WIDE, face.state.queue_bytes_max / 4 * 3);
        }
        paused.until = paused.until.min(now + paused.hold);
        paused.slots.push(slot);
    }

    /// How many of `frames` of a face may be read now, for its own sake.
    #[inline]
    pub(super) fn may_ask(&self, io: &Io, slot: Slot, frames: &[RxFrame]) -> usize {
        let Some(face) = io.faces.peek(slot).filter(|face| is_waited_for(face)) else {
            return frames.len();
        };
        match face.state.pull {
            Hold::Since(..) => 0,
            Hold::Slow => frames.len(),
            Hold::Free => {
                let half = face.state.queue_bytes_max / 2;
                let least = FRAMES_MIN.min(half / 2 / PACKET_LEN_MAX).max(1);
                let room = half.saturating_sub(waiting(face)) / PACKET_LEN_MAX;
                before_ask(frames, room.max(least))
            }
        }
    }

    /// Whether nothing is read from a face because it does not read.
    pub(super) fn is_paused(&self, io: &Io, slot: Slot) -> bool {
        io.faces.peek(slot).is_some_and(is_paused)
    }

    /// Something left to a face, or nothing could.
    pub(super) fn note_flushed(&mut self, io: &mut Io, slot: Slot) {
        let now = io.now;
        let Some(face) = io.faces.get(slot) else { return };
        match face.state.pull {
            Hold::Free => return,
            _ if !is_long(face) => {
                set_free(face);
                return self.resume(io, slot);
            }
            Hold::Since(_, left) if left != face.traffic.out_bytes => {
                face.state.pull = Hold::Since(now, face.traffic.out_bytes);
            }
            Hold::Since(..) | Hold::Slow => {}
        }
        face.tell_flushed();
    }

    /// Reads from a face again.
    fn resume(&mut self, io: &mut Io, slot: Slot) {
        self.forget_paused(slot);
        io.take_up(slot);
    }

    /// The face is not waited for any more.
    pub(super) fn forget_paused(&mut self, slot: Slot) {
        self.paused.slots.retain(|other| *other != slot);
        if self.paused.slots.is_empty() {
            self.paused.until = Tick::NEVER;
        }
    }

    /// Reads again from the faces that took nothing for too long.
    pub(super) fn end_pauses(&mut self, io: &mut Io) {
        if io.now < self.paused.until {
            return;
        }
        let hold = self.paused.hold;
        let slots = std::mem::take(&mut self.paused.slots);
        self.paused.until = Tick::NEVER;
        for slot in slots {
            let Some(face) = io.faces.get(slot) else { continue };
            let Hold::Since(at, left) = &mut face.state.pull else { continue };
            if *left != face.traffic.out_bytes {
                (*at, *left) = (io.now, face.traffic.out_bytes);
            }
            let end = *at + hold;
            if io.now < end {
                self.paused.until = self.paused.until.min(end);
                self.paused.slots.push(slot);
                continue;
            }
            face.state.pull = Hold::Slow;
            bound(face, 1, face.state.queue_bytes_max / 2);
            face.tell_flushed();
            io.take_up(slot);
        }
    }
}
