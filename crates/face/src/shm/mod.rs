//! Shared memory: two rings of packets between an application and its node on the same machine.
//!
//! Made over a Unix stream socket that afterwards only wakes a sleeping side and shows by its end
//! that the other side is gone (spec/shm.md).

mod accept;
mod negotiate;
mod patience;
mod ring;

pub use accept::{AppFace, RingPolicy};

use crate::face::{Face, Flush, Ready, Transport};
use crate::stream::framing;
use crate::unix_socket::connect_socket;
use crate::{FaceError, FaceUri, uri};
use onym_frame::{BufPool, RxFrame, TxPlace, TxQueue};
use onym_sys::shm::SharedMemory;
use onym_wire::PACKET_LEN_MAX;
use onym_wire::mgmt::Scope;
use patience::Patience;
use ring::{Lie, Place, Reader, Writer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Octets written before they are shown to the reader, so that both sides work at the same time.
const PUBLISH_EVERY: usize = 16 << 10;
/// Pieces gathered at a time: 32 packets of two pieces, or any number of small ones.
const PIECES_MAX: usize = 64;

type Memory = Arc<SharedMemory>;

/// The two rings of a face.
#[derive(Debug)]
struct Rings {
    reader: Reader<Memory>,
    writer: Writer<Memory>,
    /// We said that we sleep.
    sleeps: bool,
    patience: Patience,
    /// The other side is gone; what it wrote before is still read.
    is_over: bool,
}

/// Which end we are.
#[derive(Debug, Clone, Copy)]
enum Side {
    Application,
    Node,
}

impl Rings {
    fn new(memory: SharedMemory, length: usize, side: Side) -> Self {
        let memory = Arc::new(memory);
        let (inward, outward) = match side {
            Side::Node => (0, 1),
            Side::Application => (1, 0),
        };
        Self {
            reader: Reader::new(Arc::clone(&memory), Place::new(inward, length)),
            writer: Writer::new(memory, Place::new(outward, length)),
            sleeps: false,
            patience: Patience::new(),
            is_over: false,
        }
    }
}

impl From<Lie> for FaceError {
    fn from(Lie(what): Lie) -> Self {
        Self::Ring(what)
    }
}

/// The application's end of a face over shared memory; the node's is [`AppFace`].
#[derive(Debug)]
pub struct ShmFace {
    socket: OwnedFd,
    local: FaceUri,
    remote: FaceUri,
    /// None while the node has not answered.
    rings: Option<Rings>,
}

/// Asks the node at the Unix socket `path` for rings of `length` octets each way (0: as long as the
/// node makes them). The face is connecting until the node answers.
///
/// # Errors
/// [`FaceError::Io`] when nobody answers there. That the node gives no ring is told by
/// [`Face::receive`] and [`Face::flush`].
pub fn connect(path: &Path, length: usize) -> Result<ShmFace, FaceError> {
    let socket = connect_socket(path)?;
    negotiate::ask(&socket, length)?;
    let local = uri::fd(socket.as_raw_fd());
    Ok(ShmFace { socket, local, remote: uri::shm(path), rings: None })
}

/// As [`connect`], and waits for the answer, so that a refusal is told here.
///
/// # Errors
/// [`FaceError::RingRefused`]; [`FaceError::Silent`] when there is no answer within `patience`.
pub fn connect_within(
    path: &Path,
    length: usize,
    patience: Duration,
) -> Result<ShmFace, FaceError> {
    let mut face = connect(path, length)?;
    let end = Instant::now() + patience;
    while !face.finish_connecting()? {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(FaceError::Silent(patience.as_secs()));
        }
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(&face.socket, PollFlags::IN)], timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(e) => return Err(FaceError::io("waiting for the answer about a ring", e)),
        }
    }
    Ok(face)
}

impl ShmFace {
    /// Looks for the node's answer; whether there are rings now.
    fn finish_connecting(&mut self) -> Result<bool, FaceError> {
        if self.rings.is_none()
            && let Some((length, memory)) = negotiate::hear_answer(&self.socket)?
        {
            self.rings = Some(Rings::new(memory, length, Side::Application));
        }
        Ok(self.rings.is_some())
    }
}

fn wake_peer(socket: BorrowedFd<'_>) {
    // A full socket has woken it already; that it is gone is seen when we read.
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let _ = rustix::net::send(socket, &[0], flags);
}

/// Takes the wake-ups of the peer off the socket; whether the peer is still there.
fn hear_wake_ups(socket: BorrowedFd<'_>) -> Result<bool, FaceError> {
    match rustix::net::recv(socket, &mut [0; 64][..], RecvFlags::DONTWAIT) {
        Ok((0, _)) | Err(Errno::CONNRESET) => Ok(false),
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => Ok(true),
        Err(e) => Err(FaceError::io("reading wake-ups", e)),
    }
}

impl Rings {
    fn receive(
        &mut self,
        socket: BorrowedFd<'_>,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        if self.sleeps {
            self.sleeps = false;
            self.reader.awake();
            self.is_over |= !hear_wake_ups(socket)?;
        }
        let (before, enough) = (out.len(), out.len() + budget);
        let mut is_wanted = false;
        while out.len() < enough {
            let available = self.reader.available()?;
            if available == 0 {
                break;
            }
            is_wanted |= self.take(pool, available, out)?;
        }
        if is_wanted {
            wake_peer(socket);
        }
        if out.len() > before {
            self.patience.found(Instant::now);
            return Ok(Ready::More);
        }
        if self.is_over {
            return Err(FaceError::Closed);
        }
        if self.patience.looks_again(Instant::now) || !self.reader.sleep() {
            return Ok(Ready::More);
        }
        self.sleeps = true;
        Ok(Ready::Idle)
    }

    /// Copies out a chunk's worth and cuts it; whether the writer waits for the room.
    fn take(
        &mut self,
        pool: &mut BufPool,
        available: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<bool, FaceError> {
        let mut chunk = pool.take();
        let len = available.min(chunk.len());
        self.reader.copy(&mut chunk[..len]);
        // From here on only the private copy is looked at.
        let bytes = pool.freeze(chunk).slice(0..len);
        let taken = framing::cut(&bytes, out)?;
        if taken == 0 || (taken < len && len == available) {
            return Err(FaceError::Ring("a packet was published in part"));
        }
        Ok(self.reader.take(taken))
    }

    fn flush(&mut self, socket: BorrowedFd<'_>, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        loop {
            if self.write(queue)? {
                if self.writer.publish() {
                    wake_peer(socket);
                }
                continue;
            }
            let Some((next, _)) = queue.lens(TxPlace::default()).next() else {
                return Ok(Flush::Done);
            };
            if self.writer.wait_for_room(next)? {
                return Ok(Flush::Blocked);
            }
        }
    }

    /// Writes whole packets from the front of `queue`, about as many as are to be published at a
    /// time; whether there were any and they had room.
    fn write(&mut self, queue: &mut TxQueue) -> Result<bool, FaceError> {
        let room = self.writer.room(queue.bytes().min(PUBLISH_EVERY))?;
        let (mut frames, mut octets) = (0, 0);
        'all: for (len, count) in queue.lens(TxPlace::default()) {
            for _ in 0..count {
                if octets + len > room || octets >= PUBLISH_EVERY {
                    break 'all;
                }
                octets += len;
                frames += 1;
            }
        }
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let gathered = queue.gather(TxPlace::default(), frames, &mut pieces);
        for piece in &pieces[..gathered.slices] {
            self.writer.write(piece);
        }
        queue.pop(gathered.frames);
        Ok(gathered.frames > 0)
    }
}

impl Face for ShmFace {
    fn local_uri(&self) -> &FaceUri {
        &self.local
    }

    fn remote_uri(&self) -> &FaceUri {
        &self.remote
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        self.finish_connecting()?;
        let Some(rings) = &mut self.rings else { return Ok(Ready::Idle) };
        rings.receive(self.socket.as_fd(), pool, budget, out)
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        self.finish_connecting()?;
        let Some(rings) = &mut self.rings else { return Ok(Flush::Blocked) };
        rings.flush(self.socket.as_fd(), queue)
    }

    fn mtu(&self) -> usize {
        PACKET_LEN_MAX
    }

    fn transport(&self) -> Transport {
        Transport::Shm
    }

    fn scope(&self) -> Scope {
        Scope::Local
    }

    fn is_connecting(&self) -> bool {
        self.rings.is_none()
    }

    fn room_is_writable(&self) -> bool {
        false
    }

    fn queue_octets(&self) -> usize {
        self.rings.as_ref().map_or(0, |rings| rings.writer.octets())
    }
}

#[cfg(test)]
mod tests;
