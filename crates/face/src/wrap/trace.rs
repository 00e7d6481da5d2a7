//! A face that writes one of every N frames to the log, at level trace, target `onym_face::frames`.

use super::delegate;
use crate::FaceError;
use crate::face::{Counters, Face, Flush, Ready};
use onym_frame::{BufPool, RxFrame, TxQueue};
use rustix::fd::BorrowedFd;
use std::fmt;

/// A face whose frames are logged, sampled.
#[derive(Debug)]
pub struct TraceFace {
    inner: Box<dyn Face>,
    /// One frame of this many is logged.
    every: u64,
    seen: u64,
}

/// The first octets of a frame, as hexadecimal digits.
struct Start<'a>(&'a [u8]);

/// Octets shown of a frame.
const SHOWN: usize = 32;

impl fmt::Display for Start<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().take(SHOWN).try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl TraceFace {
    /// Wraps `inner` and logs one of `every` frames, counted over both directions.
    #[must_use]
    pub fn new(inner: Box<dyn Face>, every: u64) -> Self {
        Self { inner, every: every.max(1), seen: 0 }
    }

    fn note(&mut self, direction: &'static str, head: &[u8], body: &[u8]) {
        self.seen += 1;
        if self.seen.is_multiple_of(self.every) {
            let (len, remote) = (head.len() + body.len(), self.inner.remote_uri());
            let (start, more) = (Start(head), Start(body));
            tracing::trace!(target: "onym_face::frames", %remote, direction, len, "{start}{more}");
        }
    }
}

impl Face for TraceFace {
    delegate!(inner);

    fn fd(&self) -> BorrowedFd<'_> {
        self.inner.fd()
    }

    fn receive(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        let before = out.len();
        let result = self.inner.receive(pool, budget, out);
        for frame in &out[before..] {
            self.note("in", &frame.bytes, &[]);
        }
        result
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        // Logged when tried first; what is tried again after the transport was full is logged again.
        for (head, body) in queue.iter() {
            self.note("out", head, body);
        }
        self.inner.flush(queue)
    }

    fn queue_octets(&self) -> usize {
        self.inner.queue_octets()
    }

    fn is_pressed(&self) -> bool {
        self.inner.is_pressed()
    }

    fn counters(&self) -> Counters {
        self.inner.counters()
    }
}
