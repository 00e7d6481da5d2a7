//! Turns of faces that have frames.

use super::{Report, Shard};
use crate::cross::ToPeer;
use onym_face::{FaceError, Flush, Ready as More};
use onym_frame::RxFrame;

/// Frames of one turn of a face, for each unit of its weight (1 to 16).
const TURN_UNIT: usize = 32;
/// Frames of one round; the faces that had no turn then come first in the next one.
const ROUND: usize = 512;

impl Shard {
    /// One turn of each face that is ready now, as far as the round goes.
    ///
    /// Nothing is received while another shard is far behind: what waits in the sockets is then
    /// lost by those who send too much, and not by whoever is next.
    pub(super) fn turns(&mut self) {
        if !self.peers_have_room() {
            return;
        }
        let mut left = ROUND;
        for _ in 0..self.ready.len() {
            if left == 0 {
                return;
            }
            let Some(slot) = self.ready.pop_front() else { return };
            left = left.saturating_sub(self.turn(slot));
        }
    }

    /// Whether every other shard can take what one more round sends it.
    pub(super) fn peers_have_room(&self) -> bool {
        self.to.iter().flatten().all(ToPeer::has_room)
    }

    /// A turn of the face in `slot`; how many frames it had.
    ///
    /// One system call may bring more frames than a turn has: the rest waits for the next turn, so
    /// that a face whose turns are small cannot take large ones by filling its socket.
    fn turn(&mut self, slot: u32) -> usize {
        let Some(face) = self.faces.get(slot) else { return 0 };
        face.listed = false;
        // A program of this machine that writes one packet wrongly keeps its face and its routes.
        let (id, stream) = (face.id, face.stream && !face.is_local);
        let budget = TURN_UNIT * self.fw.turn_weight(id) as usize;
        let Some((mut frames, result)) = self.take_frames(slot, budget) else { return 0 };
        // Nothing more comes after a fatal error, so what came before it is not left waiting.
        let budget =
            if result.as_ref().is_err_and(FaceError::is_fatal) { usize::MAX } else { budget };
        let (mut count, mut broken) = (0, None);
        let turn = budget.min(frames.len());
        let taken = self.not_held(slot, &frames[..turn]);
        let mut rest = frames.drain(..taken);
        while broken.is_none() {
            let row = self.push_row(slot, rest.as_slice());
            if row > 0 {
                count += row;
                rest.by_ref().take(row).for_each(drop);
                continue;
            }
            let Some(frame) = rest.next() else { break };
            count += 1;
            broken = self.frame(slot, frame).filter(|_| stream);
        }
        drop(rest);
        let waits = !frames.is_empty() || matches!(result, Ok(More::More | More::Changed));
        if waits && self.list(slot) {
            if taken < turn && !self.push_is_free() {
                self.hold(slot);
            } else {
                self.ready.push_back(slot);
            }
        }
        self.keep_frames(slot, frames);
        self.take_in_place();
        self.dispatch();
        self.note_timer(slot);
        if let Some(reason) = broken {
            let reason = format!("the peer sent a malformed packet: {reason}");
            self.fail(slot, id, reason, true);
        } else if let Err(error) = &result {
            // What waits is taken first; then the transport says again that it ended.
            if taken == turn {
                self.face_error(slot, id, error);
            }
        } else if let Ok(More::Changed) = result {
            self.changed(slot);
        }
        count
    }

    /// Notes that a face has a place among those that have frames; false when it has one.
    pub(super) fn list(&mut self, slot: u32) -> bool {
        self.faces.get(slot).is_some_and(|face| !std::mem::replace(&mut face.listed, true))
    }

    /// The transport of a face has become one of another kind.
    fn changed(&mut self, slot: u32) {
        let Some(face) = self.faces.get(slot) else { return };
        let Some(io) = &face.io else { return };
        let (local, remote) = (io.local_uri().to_string(), io.remote_uri().to_string());
        let report = Report::FaceChanged { id: face.id, transport: io.transport(), local, remote };
        // How it waits for room is another now.
        self.watch(slot, Flush::Done);
        self.report(report);
    }

    /// What is left of a turn waits with its face; an empty buffer is used again.
    fn keep_frames(&mut self, slot: u32, frames: Vec<RxFrame>) {
        if frames.is_empty() {
            if frames.capacity() > self.frames.capacity() {
                self.frames = frames;
            }
        } else if let Some(face) = self.faces.get(slot) {
            face.backlog = frames;
        }
    }

    /// The frames for a turn: what was left of the last one, else what the transport gives.
    fn take_frames(
        &mut self,
        slot: u32,
        budget: usize,
    ) -> Option<(Vec<RxFrame>, Result<More, FaceError>)> {
        let face = self.faces.get(slot)?;
        let io = face.io.as_mut()?;
        if !face.backlog.is_empty() {
            // The transport was not asked again, so it may have more.
            return Some((std::mem::take(&mut face.backlog), Ok(More::More)));
        }
        let mut frames = std::mem::take(&mut self.frames);
        let result = io.receive(&mut self.pool, budget, &mut frames);
        // Such a face tells by being readable that there is room again.
        if face.blocked && !face.dirty && !io.room_is_writable() {
            face.dirty = true;
            self.dirty.push(slot);
        }
        face.pressed = io.is_pressed();
        Some((frames, result))
    }
}
