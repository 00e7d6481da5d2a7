//! What a WebSocket face and the task of its connection share.

use crate::wake::WakeFd;
use crate::{Counters, FaceError};
use onym_frame::Buf;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Octets that one direction holds; beyond, its writer waits.
const OCTETS_MAX: usize = 1 << 20;

/// Frames of one direction.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub(super) frames: VecDeque<Buf>,
    pub(super) octets: usize,
}

impl Frames {
    pub(super) fn has_room(&self, len: usize) -> bool {
        self.frames.is_empty() || self.octets + len <= OCTETS_MAX
    }

    pub(super) fn is_full(&self) -> bool {
        self.octets >= OCTETS_MAX
    }

    pub(super) fn push(&mut self, frame: Buf) {
        self.octets += frame.len();
        self.frames.push_back(frame);
    }

    pub(super) fn pop(&mut self) -> Option<Buf> {
        let frame = self.frames.pop_front()?;
        self.octets -= frame.len();
        Some(frame)
    }
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) inbound: Frames,
    pub(super) outbound: Frames,
    pub(super) connecting: bool,
    /// The face found no room and waits to be woken.
    pub(super) sender_waits: bool,
    /// The connection has ended, or the face is gone.
    pub(super) is_over: bool,
    /// Why the connection ended, until the face has said so.
    pub(super) closed: Option<FaceError>,
    pub(super) counters: Counters,
}

#[derive(Debug)]
pub(super) struct Link {
    state: Mutex<State>,
    /// Wakes the face.
    pub(super) wake: WakeFd,
    /// Wakes the task.
    pub(super) changed: Notify,
}

impl Link {
    pub(super) fn new() -> Result<Arc<Self>, FaceError> {
        let (wake, changed) = (WakeFd::new()?, Notify::new());
        Ok(Arc::new(Self { state: Mutex::default(), wake, changed }))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection for the face.
    pub(super) fn close(&self, why: FaceError) {
        let mut state = self.state();
        state.is_over = true;
        state.connecting = false;
        state.closed = Some(why);
        self.wake.wake();
    }
}
