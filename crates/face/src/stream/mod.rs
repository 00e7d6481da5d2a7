//! Stream faces: TLVs back to back on a connected socket.

pub(crate) mod framing;
pub mod tcp;
pub mod unix;

use crate::face::{Face, Flush, Ready, Transport};
use crate::{FaceError, FaceUri};
use onym_frame::{BufPool, RxFrame, TxPlace, TxQueue};
use onym_sys::peer::{self, Credentials};
use onym_wire::PACKET_LEN_MAX;
use onym_wire::mgmt::Scope;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags};
use std::io::IoSlice;

/// Pieces per `sendmsg`: 128 packets of two pieces, or any number of small ones.
const PIECES_MAX: usize = 256;

/// Octets that are read at once, about: what is read is still in the cache when it is looked at.
const READ_MAX: usize = 256 << 10;

/// Frames per `sendmsg`: more than a socket takes of small ones only costs looking at them again.
const FRAMES_MAX: usize = 2048;

/// A face on a connected stream socket, Unix or TCP.
#[derive(Debug)]
pub struct StreamFace {
    fd: OwnedFd,
    local: FaceUri,
    remote: FaceUri,
    transport: Transport,
    scope: Scope,
    connecting: bool,
    /// The start of a packet whose rest has not come yet: shorter than a packet may be.
    tail: Vec<u8>,
    /// Octets of the first queued frame that were sent already.
    sent: usize,
}

/// The two ends of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Uris {
    pub(crate) local: FaceUri,
    pub(crate) remote: FaceUri,
}

impl StreamFace {
    /// A face over a connection that is there.
    pub(crate) fn new(fd: OwnedFd, uris: Uris, transport: Transport, scope: Scope) -> Self {
        let Uris { local, remote } = uris;
        let connecting = false;
        Self { fd, local, remote, transport, scope, connecting, tail: Vec::new(), sent: 0 }
    }

    /// Cuts what is in the first `filled` octets of `chunk`.
    fn take_frames(
        &mut self,
        pool: &mut BufPool,
        chunk: onym_frame::ChunkMut,
        filled: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<(), FaceError> {
        self.tail.clear();
        match framing::has_whole(&chunk[..filled]) {
            Ok(true) => {
                let bytes = pool.freeze(chunk).slice(0..filled);
                let cut = framing::cut(&bytes, out)?;
                self.tail.extend_from_slice(&bytes[cut..]);
                Ok(())
            }
            Ok(false) => {
                self.tail.extend_from_slice(&chunk[..filled]);
                pool.put_back(chunk);
                Ok(())
            }
            Err(malformed) => {
                pool.put_back(chunk);
                Err(malformed.into())
            }
        }
    }

    /// Asks how the connection attempt went; true when it is made.
    fn finish_connecting(&mut self) -> Result<bool, FaceError> {
        if let Err(e) = rustix::net::sockopt::socket_error(&self.fd)
            .map_err(|e| FaceError::io("asking for the state of a connection", e))?
        {
            return Err(FaceError::io("connecting", e));
        }
        // Without an error the attempt still goes on until there is a peer.
        self.connecting = rustix::net::getpeername(&self.fd).is_err();
        Ok(!self.connecting)
    }
}

impl Face for StreamFace {
    fn local_uri(&self) -> &FaceUri {
        &self.local
    }

    fn remote_uri(&self) -> &FaceUri {
        &self.remote
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    fn receive(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        if self.connecting && !self.finish_connecting()? {
            return Ok(Ready::Idle);
        }
        let enough = out.len() + budget;
        let mut read = 0;
        while out.len() < enough && read < READ_MAX {
            let mut chunk = pool.take();
            let held = self.tail.len();
            chunk[..held].copy_from_slice(&self.tail);
            let room = &mut chunk[held..];
            let asked = room.len();
            match rustix::net::recv(&self.fd, room, RecvFlags::DONTWAIT) {
                Ok((0, _)) => {
                    pool.put_back(chunk);
                    let inside = held > 0;
                    return Err(if inside { FaceError::ClosedInPacket } else { FaceError::Closed });
                }
                Ok((got, _)) => {
                    read += got;
                    self.take_frames(pool, chunk, held + got, out)?;
                    if got < asked {
                        return Ok(Ready::Idle);
                    }
                }
                Err(Errno::AGAIN) => {
                    pool.put_back(chunk);
                    return Ok(Ready::Idle);
                }
                Err(Errno::INTR) => pool.put_back(chunk),
                Err(Errno::CONNRESET) => {
                    pool.put_back(chunk);
                    return Err(FaceError::Closed);
                }
                Err(e) => {
                    pool.put_back(chunk);
                    return Err(FaceError::io("reading", e));
                }
            }
        }
        Ok(Ready::More)
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        if self.connecting && !self.finish_connecting()? {
            return Ok(Flush::Blocked);
        }
        while !queue.is_empty() {
            let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
            let gathered = queue.gather(TxPlace::default(), FRAMES_MAX, &mut pieces);
            let mut rest = &mut pieces[..gathered.slices];
            IoSlice::advance_slices(&mut rest, self.sent);
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let mut nothing = SendAncillaryBuffer::default();
            match rustix::net::sendmsg(&self.fd, rest, &mut nothing, flags) {
                Ok(sent) => {
                    let partial = self.sent + sent < gathered.octets;
                    self.sent = queue.advance(self.sent + sent);
                    if partial {
                        return Ok(Flush::Blocked);
                    }
                }
                Err(Errno::AGAIN) => return Ok(Flush::Blocked),
                Err(Errno::INTR) => {}
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(FaceError::Closed),
                Err(e) => return Err(FaceError::io("writing", e)),
            }
        }
        Ok(Flush::Done)
    }

    fn mtu(&self) -> usize {
        PACKET_LEN_MAX
    }

    fn transport(&self) -> Transport {
        self.transport
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    fn credentials(&self) -> Option<Credentials> {
        (self.transport == Transport::Unix).then(|| peer::credentials(&self.fd).ok()).flatten()
    }

    fn is_connecting(&self) -> bool {
        self.connecting
    }

    fn queue_octets(&self) -> usize {
        onym_sys::socket::send_queue_octets(&self.fd)
    }
}
