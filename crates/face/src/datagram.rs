//! Datagrams and Ethernet frames into frames: joined ones are shared where they are, small ones are
//! packed together.

use crate::face::Ready;
use crate::{Counters, FaceError};
use arrayvec::ArrayVec;
use onym_frame::{Buf, BufPool, ChunkMut};
use onym_sys::mmsg::{self, Received, Source};
use onym_sys::packet::HEADER_LEN;
use onym_wire::tlv::frame_len;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use std::io;

/// Messages per system call; each may hold up to 64 KiB of joined datagrams.
const MESSAGES_MAX: usize = 16;

/// Where in a message the TLV is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The message is the TLV.
    Datagram,
    /// An Ethernet header comes before it, padding may follow.
    Ethernet,
}

/// One system call's worth of messages, cut into frames; `accept` says what to do with each.
///
/// Messages that fill a good part of their chunk stay in it. Others are copied one behind the other
/// into a common chunk, so that a lone small packet does not keep 64 KiB for itself.
pub(crate) struct Burst<'a> {
    pub(crate) fd: BorrowedFd<'a>,
    pub(crate) layout: Layout,
    pub(crate) counters: &'a mut Counters,
}

impl Burst<'_> {
    /// Receives once. Returns whether more may wait.
    pub(crate) fn receive(
        &mut self,
        pool: &mut BufPool,
        mut accept: impl FnMut(Source, Buf, &mut Counters),
    ) -> io::Result<bool> {
        let mut chunks: ArrayVec<ChunkMut, MESSAGES_MAX> =
            (0..MESSAGES_MAX).map(|_| pool.take()).collect();
        let mut received = [Received::default(); MESSAGES_MAX];
        let got = match mmsg::receive(self.fd, &mut chunks, &mut received) {
            Ok(got) => got,
            Err(e) => {
                chunks.into_iter().for_each(|chunk| pool.put_back(chunk));
                return Err(e);
            }
        };
        let mut pack = Pack::default();
        for (i, chunk) in chunks.into_iter().enumerate() {
            let Some(message) = received[..got].get(i) else {
                pool.put_back(chunk);
                continue;
            };
            if message.len * 4 >= chunk.len() {
                self.close(&mut pack, &received, i, pool, &mut accept);
                let bytes = pool.freeze(chunk);
                self.frames(message, &bytes, 0, &mut accept);
                continue;
            }
            if !pack.has_room(message.len) {
                self.close(&mut pack, &received, i, pool, &mut accept);
            }
            pack.add(i, &chunk[..message.len], pool);
            pool.put_back(chunk);
        }
        self.close(&mut pack, &received, got, pool, &mut accept);
        Ok(got == MESSAGES_MAX)
    }

    /// Ends the common chunk, which holds the messages from `pack.first` to before `end`.
    fn close(
        &mut self,
        pack: &mut Pack,
        received: &[Received],
        end: usize,
        pool: &mut BufPool,
        accept: &mut impl FnMut(Source, Buf, &mut Counters),
    ) {
        let Some(chunk) = pack.chunk.take() else { return };
        let bytes = pool.freeze(chunk);
        let mut at = 0;
        for message in &received[pack.first..end] {
            self.frames(message, &bytes, at, accept);
            at += message.len;
        }
        pack.filled = 0;
    }

    /// The datagrams of one message, which starts at `at`.
    fn frames(
        &mut self,
        message: &Received,
        bytes: &Buf,
        at: usize,
        accept: &mut impl FnMut(Source, Buf, &mut Counters),
    ) {
        let end = at + message.len;
        let step = if message.segment_len == 0 { message.len } else { message.segment_len };
        let header = if self.layout == Layout::Ethernet { HEADER_LEN } else { 0 };
        let mut next = at;
        loop {
            let (start, stop) = (next + header, (next + step).min(end));
            let room = stop.saturating_sub(start);
            match frame_len(bytes.get(start..stop).unwrap_or(&[])) {
                Ok(Some(len)) if len > room || message.truncated => self.counters.in_malformed += 1,
                Ok(Some(len)) if len < room && header == 0 => self.counters.in_trailing += 1,
                Ok(Some(len)) => {
                    accept(message.source, bytes.slice(start..start + len), self.counters);
                }
                Ok(None) | Err(_) => self.counters.in_malformed += 1,
            }
            next = stop;
            if next >= end {
                return;
            }
        }
    }
}

/// The chunk into which small messages are copied.
#[derive(Default)]
struct Pack {
    chunk: Option<ChunkMut>,
    /// Index of the first message in it.
    first: usize,
    filled: usize,
}

impl Pack {
    fn has_room(&self, len: usize) -> bool {
        self.chunk.as_ref().is_none_or(|chunk| self.filled + len <= chunk.len())
    }

    fn add(&mut self, index: usize, message: &[u8], pool: &mut BufPool) {
        if self.chunk.is_none() {
            self.first = index;
        }
        let chunk = self.chunk.get_or_insert_with(|| pool.take());
        chunk[self.filled..self.filled + message.len()].copy_from_slice(message);
        self.filled += message.len();
    }
}

/// An error of a datagram socket: the network's answer to an earlier send, or a real one.
pub(crate) fn receive_error(e: io::Error) -> Result<Ready, FaceError> {
    match Errno::from_io_error(&e) {
        Some(Errno::AGAIN) => Ok(Ready::Idle),
        // A router, or who plays one, says that something was too long for it: nothing to receive.
        Some(Errno::MSGSIZE) => Ok(Ready::More),
        Some(
            Errno::CONNREFUSED
            | Errno::HOSTUNREACH
            | Errno::NETUNREACH
            | Errno::NETDOWN
            | Errno::PROTO,
        ) => Err(FaceError::Unreachable(e)),
        _ => Err(FaceError::io("receiving datagrams", e)),
    }
}
