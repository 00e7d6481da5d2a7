//! Datagrams into frames: joined ones are shared where they are, small ones are packed together.

use crate::Counters;
use arrayvec::ArrayVec;
use onym_sys::mmsg::{self, Received, Source};
use onym_wire::tlv::frame_len;
use onym_wire::{Buf, BufPool, ChunkMut};
use rustix::fd::BorrowedFd;
use std::io;

/// Messages per system call; each may hold up to 64 KiB of joined datagrams.
const MESSAGES_MAX: usize = 16;

/// One system call's worth of datagrams, cut into frames; `accept` says what to do with each.
///
/// Messages that fill a good part of their chunk stay in it. Others are copied one behind the other
/// into a common chunk, so that a lone small packet does not keep 64 KiB for itself.
pub(super) struct Burst<'a> {
    pub(super) fd: BorrowedFd<'a>,
    pub(super) counters: &'a mut Counters,
}

impl Burst<'_> {
    /// Receives once. Returns the number of messages, and whether more may wait.
    pub(super) fn receive(
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
        let mut start = at;
        while start < end {
            let stop = (start + step).min(end);
            match frame_len(&bytes[start..stop]) {
                Ok(Some(len)) if len == stop - start && !message.truncated => {
                    accept(message.source, bytes.slice(start..stop), self.counters);
                }
                Ok(Some(len)) if len < stop - start => self.counters.in_trailing += 1,
                _ => self.counters.in_malformed += 1,
            }
            start = stop;
        }
        if message.len == 0 {
            self.counters.in_malformed += 1;
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
