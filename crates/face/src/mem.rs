//! A pair of faces within the process, for tests and internal applications.

use crate::face::{Face, Flush, Ready, Transport};
use crate::wake::WakeFd;
use crate::{FaceError, FaceUri};
use onym_frame::{Buf, BufPool, RxFrame, TxQueue};
use onym_wire::PACKET_LEN_MAX;
use onym_wire::mgmt::Scope;
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Octets that one direction holds; beyond, the sender is blocked.
const OCTETS_MAX: usize = 1 << 20;

#[derive(Debug, Default)]
struct Direction {
    frames: VecDeque<Buf>,
    octets: usize,
    closed: bool,
    /// The sender found it full and wants to be woken when there is room.
    sender_waits: bool,
}

#[derive(Debug)]
struct End {
    /// What was sent to this end.
    inbox: Mutex<Direction>,
    waker: WakeFd,
}

impl End {
    fn inbox(&self) -> MutexGuard<'_, Direction> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One end of an in-memory pair.
///
/// Bounded: a direction holds 1 MiB (or one frame); a blocked sender's descriptor becomes readable
/// when there is room again.
#[derive(Debug)]
pub struct MemFace {
    uri: FaceUri,
    mine: Arc<End>,
    theirs: Arc<End>,
    scope: Scope,
}

/// Two faces; what one sends the other receives, whole frames in order.
///
/// # Errors
/// [`FaceError::Io`] when descriptors run out.
pub fn pair(scope: Scope) -> Result<(MemFace, MemFace), FaceError> {
    let end = || {
        let waker = WakeFd::new()?;
        Ok::<_, FaceError>(Arc::new(End { inbox: Mutex::default(), waker }))
    };
    let (a, b) = (end()?, end()?);
    let face = |mine: &Arc<End>, theirs: &Arc<End>| MemFace {
        uri: FaceUri::Internal,
        mine: Arc::clone(mine),
        theirs: Arc::clone(theirs),
        scope,
    };
    Ok((face(&a, &b), face(&b, &a)))
}

impl Face for MemFace {
    fn local_uri(&self) -> &FaceUri {
        &self.uri
    }

    fn remote_uri(&self) -> &FaceUri {
        &self.uri
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.mine.waker.as_fd()
    }

    fn receive(
        &mut self,
        _pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        let mut inbox = self.mine.inbox();
        let n = inbox.frames.len().min(budget);
        let before = out.len();
        out.extend(inbox.frames.drain(..n).map(|bytes| RxFrame { endpoint: 0, bytes }));
        inbox.octets -= out[before..].iter().map(|f| f.bytes.len()).sum::<usize>();
        if inbox.sender_waits && inbox.octets < OCTETS_MAX {
            inbox.sender_waits = false;
            self.theirs.waker.wake();
        }
        if !inbox.frames.is_empty() {
            return Ok(Ready::More);
        }
        if inbox.closed && n == 0 {
            return Err(FaceError::Closed);
        }
        if inbox.closed {
            return Ok(Ready::More);
        }
        // Cleared under the lock, so a frame that comes later wakes again.
        self.mine.waker.clear();
        Ok(Ready::Idle)
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        if queue.is_empty() {
            return Ok(Flush::Done);
        }
        let mut inbox = self.theirs.inbox();
        if inbox.closed {
            return Err(FaceError::Closed);
        }
        let mut taken = 0;
        for (head, body) in queue.iter() {
            if inbox.octets > 0 && inbox.octets + head.len() + body.len() > OCTETS_MAX {
                break;
            }
            let frame = Buf::joined(head, body);
            inbox.octets += frame.len();
            inbox.frames.push_back(frame);
            taken += 1;
        }
        queue.pop(taken);
        inbox.sender_waits = !queue.is_empty();
        self.theirs.waker.wake();
        Ok(if queue.is_empty() { Flush::Done } else { Flush::Blocked })
    }

    fn mtu(&self) -> usize {
        PACKET_LEN_MAX
    }

    fn room_is_writable(&self) -> bool {
        false
    }

    fn transport(&self) -> Transport {
        Transport::Mem
    }

    fn scope(&self) -> Scope {
        self.scope
    }
}

impl Drop for MemFace {
    fn drop(&mut self) {
        for end in [&self.mine, &self.theirs] {
            end.inbox().closed = true;
            end.waker.wake();
        }
    }
}
