//! Faces whose protocol runs on a control thread (tokio): frames cross by two bounded queues.
//!
//! This is not the fast path: each frame is copied.

mod arrivals;
mod link;
mod listener;
mod unfinished;

pub(crate) use arrivals::Arrivals;
pub(crate) use link::Link;
pub use listener::BridgedListener;
pub(crate) use unfinished::{Handshakes, Place};

use crate::face::{Counters, Face, Flush, Ready, Transport};
use crate::{FaceError, FaceUri};
use onym_frame::{Buf, BufPool, RxFrame, TxQueue};
use onym_wire::mgmt::Scope;
use rustix::fd::{AsFd, BorrowedFd};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Handle};

/// How long a handshake may take.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Handshakes of a listener at the same time; beyond, one gives way to the newcomer ([`Handshakes`]).
pub(crate) const HANDSHAKES_MAX: usize = 64;

/// A control thread called `name`, which lives as long as the process.
pub(crate) fn start(name: &str) -> Result<Handle, String> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let handle = runtime.handle().clone();
    std::thread::Builder::new()
        .name(name.into())
        .spawn(move || runtime.block_on(std::future::pending::<()>()))
        .map_err(|e| e.to_string())?;
    Ok(handle)
}

/// The two ends of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ends {
    pub(crate) local: SocketAddr,
    pub(crate) remote: SocketAddr,
}

impl Ends {
    /// Those of a connection that is about to be made to `remote`: our address is not known yet, the
    /// family's any stands for it.
    pub(crate) fn towards(remote: SocketAddr) -> Self {
        let local = match remote {
            SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
        };
        Self { local, remote }
    }

    pub(crate) fn are_loopback(self) -> bool {
        is_loopback(self.local.ip()) && is_loopback(self.remote.ip())
    }
}

pub(crate) fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

/// A face to one peer of such a protocol.
#[derive(Debug)]
pub struct BridgedFace {
    pub(crate) link: Arc<Link>,
    pub(crate) local: FaceUri,
    pub(crate) remote: FaceUri,
    pub(crate) transport: Transport,
    pub(crate) scope: Scope,
    /// Longest frame.
    pub(crate) mtu: usize,
}

impl Face for BridgedFace {
    fn local_uri(&self) -> &FaceUri {
        &self.local
    }

    fn remote_uri(&self) -> &FaceUri {
        &self.remote
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.link.wake.as_fd()
    }

    fn receive(
        &mut self,
        _pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        let mut state = self.link.state();
        let n = state.inbound.frames.len().min(budget);
        for _ in 0..n {
            let Some(bytes) = state.inbound.pop() else { break };
            out.push(RxFrame { endpoint: 0, bytes });
        }
        if n > 0 {
            self.link.drained.notify_one();
        }
        if !state.inbound.frames.is_empty() {
            return Ok(Ready::More);
        }
        if state.is_over {
            // What came before the end comes first.
            if n > 0 {
                return Ok(Ready::More);
            }
            return Err(state.closed.take().unwrap_or(FaceError::Closed));
        }
        // Cleared under the lock, so a frame that comes later wakes again.
        self.link.wake.clear();
        Ok(Ready::Idle)
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        let mut state = self.link.state();
        // Before the queue is looked at: who waits for the connection sends nothing to find out.
        if state.is_over {
            return Err(state.closed.take().unwrap_or(FaceError::Closed));
        }
        if queue.is_empty() {
            return Ok(Flush::Done);
        }
        let mut taken = 0;
        for (head, body) in queue.iter() {
            if !state.outbound.has_room(head.len() + body.len()) {
                break;
            }
            state.outbound.push(Buf::joined(head, body));
            taken += 1;
        }
        queue.pop(taken);
        state.sender_waits = !queue.is_empty();
        self.link.queued.notify_one();
        Ok(if queue.is_empty() { Flush::Done } else { Flush::Blocked })
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn room_is_writable(&self) -> bool {
        false
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    fn is_connecting(&self) -> bool {
        self.link.state().connecting
    }

    fn queue_octets(&self) -> usize {
        self.link.state().outbound.octets
    }

    fn counters(&self) -> Counters {
        self.link.state().counters
    }
}

impl Drop for BridgedFace {
    fn drop(&mut self) {
        self.link.state().is_over = true;
        self.link.queued.notify_one();
        self.link.drained.notify_one();
    }
}
