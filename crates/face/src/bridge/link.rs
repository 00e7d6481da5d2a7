//! What a face and the task of its connection share.

use crate::wake::WakeFd;
use crate::{Counters, FaceError};
use onym_frame::Buf;
use onym_wire::tlv::frame_len;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Octets that one direction holds; beyond, its writer waits.
const OCTETS_MAX: usize = 1 << 20;

/// Frames of one direction.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    pub(crate) frames: VecDeque<Buf>,
    pub(crate) octets: usize,
}

impl Frames {
    pub(crate) fn has_room(&self, len: usize) -> bool {
        self.frames.is_empty() || self.octets + len <= OCTETS_MAX
    }

    pub(crate) fn is_full(&self) -> bool {
        self.octets >= OCTETS_MAX
    }

    pub(crate) fn push(&mut self, frame: Buf) {
        self.octets += frame.len();
        self.frames.push_back(frame);
    }

    pub(crate) fn pop(&mut self) -> Option<Buf> {
        let frame = self.frames.pop_front()?;
        self.octets -= frame.len();
        Some(frame)
    }
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) inbound: Frames,
    pub(crate) outbound: Frames,
    pub(crate) connecting: bool,
    /// The face found no room and waits to be woken.
    pub(crate) sender_waits: bool,
    /// The connection has ended, or the face is gone.
    pub(crate) is_over: bool,
    /// Why the connection ended, until the face has said so.
    pub(crate) closed: Option<FaceError>,
    pub(crate) counters: Counters,
}

#[derive(Debug)]
pub(crate) struct Link {
    state: Mutex<State>,
    /// Wakes the face.
    pub(crate) wake: WakeFd,
    /// Wakes the task: there is something to send, or the face is gone.
    pub(crate) queued: Notify,
    /// Wakes the task: there is room for what comes, or the face is gone.
    pub(crate) drained: Notify,
}

impl Link {
    pub(crate) fn new() -> Result<Arc<Self>, FaceError> {
        let (queued, drained) = (Notify::new(), Notify::new());
        Ok(Arc::new(Self { state: Mutex::default(), wake: WakeFd::new()?, queued, drained }))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection is made.
    pub(crate) fn connected(&self) {
        self.state().connecting = false;
        self.wake.wake();
    }

    /// What came in one message: a frame, or a counted drop.
    pub(crate) fn take_in(&self, message: &[u8]) {
        let mut state = self.state();
        match frame_len(message) {
            Ok(Some(len)) if len == message.len() => {
                state.inbound.push(Buf::copy_from(message));
                self.wake.wake();
            }
            Ok(Some(len)) if len < message.len() => state.counters.in_trailing += 1,
            _ => state.counters.in_malformed += 1,
        }
    }

    /// The next frame to send; a face that waits for room is woken.
    pub(crate) fn take_out(&self) -> Option<Buf> {
        let mut state = self.state();
        let frame = state.outbound.pop();
        if state.sender_waits && !state.outbound.is_full() {
            state.sender_waits = false;
            self.wake.wake();
        }
        frame
    }

    /// Ends the connection for the face.
    pub(crate) fn close(&self, why: FaceError) {
        let mut state = self.state();
        state.is_over = true;
        state.connecting = false;
        state.closed = Some(why);
        self.wake.wake();
    }
}
