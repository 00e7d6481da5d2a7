//! Applications on the Unix socket, which may ask for rings instead of the stream.

use super::negotiate::{self, LENGTH_MAX, LENGTH_MIN};
use super::ring::Place;
use super::{Rings, Side};
use crate::face::{Face, Flush, Ready, Transport};
use crate::stream::{StreamFace, Uris};
use crate::{FaceError, FaceUri};
use onym_frame::{BufPool, RxFrame, TxQueue};
use onym_sys::peer::Credentials;
use onym_sys::shm::SharedMemory;
use onym_wire::mgmt::Scope;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Whether applications get rings, and how long ones.
///
/// Bound: rings cost twice their length in memory, and there are at most so many; further
/// applications are refused with that reason and may use the stream.
#[derive(Debug, Clone)]
pub struct RingPolicy {
    length: usize,
    count_max: usize,
    count: Arc<AtomicUsize>,
}

impl RingPolicy {
    /// Rings of at most `length` octets each way (rounded down to a power of two from 64 KiB to
    /// 64 MiB), for at most `count_max` applications at a time.
    #[must_use]
    pub fn new(length: usize, count_max: usize) -> Self {
        let length = 1 << length.clamp(LENGTH_MIN, LENGTH_MAX).ilog2();
        Self { length, count_max, count: Arc::default() }
    }

    /// No rings for anybody.
    #[must_use]
    pub fn none() -> Self {
        Self::new(LENGTH_MIN, 0)
    }

    /// Rings that exist now.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    fn seat(&self) -> Result<Seat, FaceError> {
        let taken = self.count.fetch_add(1, Ordering::Relaxed);
        let seat = Seat(Arc::clone(&self.count));
        let why = match self.count_max {
            0 => "shared memory is off here".to_owned(),
            max if taken >= max => format!("there are {max} rings already"),
            _ => return Ok(seat),
        };
        Err(FaceError::RingRefused(why))
    }
}

/// One of the rings that a policy allows, until dropped.
#[derive(Debug)]
pub(super) struct Seat(Arc<AtomicUsize>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An application on the Unix socket: a stream of packets, unless it begins with a request for a
/// ring. Then [`Face::receive`] says [`Ready::Changed`] once, and it is a face over shared memory.
#[derive(Debug)]
pub struct AppFace {
    stream: StreamFace,
    /// Until the first octet came.
    fresh: Option<RingPolicy>,
    ring: Option<Ring>,
}

/// What an application that asked for it has.
#[derive(Debug)]
struct Ring {
    rings: Rings,
    local: FaceUri,
    _seat: Seat,
}

impl AppFace {
    pub(crate) fn new(socket: OwnedFd, uris: Uris, rings: RingPolicy) -> Self {
        let stream = StreamFace::new(socket, uris, Transport::Unix, Scope::Local);
        Self { stream, fresh: Some(rings), ring: None }
    }

    /// Looks at the start of a connection.
    fn choose(&mut self, policy: RingPolicy) -> Result<Ready, FaceError> {
        let mut first = [0; 1];
        let flags = RecvFlags::DONTWAIT | RecvFlags::PEEK;
        match rustix::net::recv(self.stream.fd(), &mut first[..], flags) {
            Ok((1, _)) if first[0] == negotiate::TYPE => {}
            Err(Errno::AGAIN | Errno::INTR) => {
                self.fresh = Some(policy);
                return Ok(Ready::Idle);
            }
            // A packet, the end or an error: the stream tells.
            _ => return Ok(Ready::More),
        }
        let made = self.make(&policy);
        if let Err(error) = &made {
            let why = match error {
                FaceError::RingRefused(why) => why.clone(),
                other => other.to_string(),
            };
            negotiate::refuse(self.stream.fd(), &why);
        }
        self.ring = Some(made?);
        Ok(Ready::Changed)
    }

    /// Answers the request with a ring.
    fn make(&self, policy: &RingPolicy) -> Result<Ring, FaceError> {
        let length = negotiate::hear_request(self.stream.fd(), policy.length)?;
        let seat = policy.seat()?;
        let (memory, fd) = SharedMemory::create("onym-ring", Place::memory(length))
            .map_err(|e| FaceError::io("making the memory of a ring", e))?;
        negotiate::grant(self.stream.fd(), length, &fd)?;
        let local = match self.stream.local_uri() {
            FaceUri::Unix(path) => FaceUri::Shm(path.clone()),
            other => other.clone(),
        };
        Ok(Ring { rings: Rings::new(memory, length, Side::Node), local, _seat: seat })
    }
}

impl Face for AppFace {
    fn local_uri(&self) -> &FaceUri {
        self.ring.as_ref().map_or(self.stream.local_uri(), |ring| &ring.local)
    }

    fn remote_uri(&self) -> &FaceUri {
        self.stream.remote_uri()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.stream.fd()
    }

    fn receive(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        if let Some(ring) = &mut self.ring {
            return ring.rings.receive(self.stream.fd(), pool, budget, out);
        }
        if let Some(policy) = self.fresh.take() {
            match self.choose(policy)? {
                Ready::More => {}
                other => return Ok(other),
            }
        }
        self.stream.receive(pool, budget, out)
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        match &mut self.ring {
            Some(ring) => ring.rings.flush(self.stream.fd(), queue),
            None => self.stream.flush(queue),
        }
    }

    fn mtu(&self) -> usize {
        self.stream.mtu()
    }

    fn transport(&self) -> Transport {
        if self.ring.is_some() { Transport::Shm } else { Transport::Unix }
    }

    fn scope(&self) -> Scope {
        Scope::Local
    }

    fn credentials(&self) -> Option<Credentials> {
        self.stream.credentials()
    }

    fn room_is_writable(&self) -> bool {
        self.ring.is_none()
    }

    fn queue_octets(&self) -> usize {
        match &self.ring {
            Some(ring) => ring.rings.writer.octets(),
            None => self.stream.queue_octets(),
        }
    }
}
