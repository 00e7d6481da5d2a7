//! A face that loses, delays and throttles frames on purpose, from a seed.

use super::delegate;
pub use super::impairment::Impairment;
use super::lane::Lane;
use crate::FaceError;
use crate::face::{Counters, Face, Flush, Ready};
use onym_frame::{Buf, BufPool, RxFrame, TxQueue};
use onym_sys::epoll::{Epoll, Interest, Timer};
use rustix::fd::{AsFd, BorrowedFd};
use std::time::Instant;

/// What a fault wrapper does.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    /// Where the random numbers start.
    pub seed: u64,
    /// To what is sent.
    pub outgoing: Impairment,
    /// To what is received.
    pub incoming: Impairment,
}

/// A face with faults.
#[derive(Debug)]
pub struct FaultFace {
    inner: Box<dyn Face>,
    outgoing: Lane,
    incoming: Lane,
    passes_incoming: bool,
    timer: Timer,
    /// Holds the descriptor of the inner face and the timer; is itself a descriptor.
    epoll: Epoll,
    wants_write: bool,
    /// Frames that have crossed the outgoing lane and wait for the inner face.
    due: TxQueue,
    /// Kept for its capacity.
    received: Vec<RxFrame>,
    lost: u64,
}

/// Octets that wait for a blocked inner face.
const DUE_OCTETS_MAX: usize = 4 << 20;

impl FaultFace {
    /// Wraps `inner`.
    ///
    /// # Errors
    /// [`FaceError::Io`] when descriptors run out.
    pub fn new(inner: Box<dyn Face>, faults: &Faults) -> Result<Self, FaceError> {
        let timer = Timer::new().map_err(|e| FaceError::io("making a timer", e))?;
        let epoll = Epoll::new().map_err(|e| FaceError::io("making an epoll", e))?;
        epoll
            .add(&timer, 0, Interest::Read)
            .and_then(|()| epoll.add(inner.fd(), 1, Interest::Read))
            .map_err(|e| FaceError::io("watching the wrapped face", e))?;
        Ok(Self {
            inner,
            outgoing: Lane::new(faults.outgoing, faults.seed),
            incoming: Lane::new(faults.incoming, !faults.seed),
            passes_incoming: faults.incoming.is_none(),
            timer,
            epoll,
            wants_write: false,
            due: TxQueue::new(DUE_OCTETS_MAX),
            received: Vec::new(),
            lost: 0,
        })
    }

    /// Hands to the inner face what has crossed the link.
    fn send_due(&mut self, now: Instant) -> Result<(), FaceError> {
        while let Some(frame) = self.outgoing.pop_due(now) {
            if self.due.push(&[], Some(&frame.bytes)).is_err() {
                self.lost += 1;
            }
        }
        let blocked =
            self.inner.flush(&mut self.due)? == Flush::Blocked && self.inner.room_is_writable();
        if blocked != self.wants_write {
            self.wants_write = blocked;
            let interest = if blocked { Interest::ReadWrite } else { Interest::Read };
            self.epoll
                .modify(self.inner.fd(), 1, interest)
                .map_err(|e| FaceError::io("watching the wrapped face", e))?;
        }
        Ok(())
    }

    fn set_timer(&self, now: Instant) -> Result<(), FaceError> {
        let dues = [self.outgoing.next_due(), self.incoming.next_due()];
        let Some(due) = dues.into_iter().flatten().min() else { return Ok(()) };
        self.timer
            .set(due.saturating_duration_since(now))
            .map_err(|e| FaceError::io("setting a timer", e))
    }
}

impl Face for FaultFace {
    delegate!(inner);

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn receive(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        self.timer.clear();
        let (now, enough) = (Instant::now(), out.len() + budget);
        let into = if self.passes_incoming { &mut *out } else { &mut self.received };
        let mut ready = self.inner.receive(pool, budget, into)?;
        for frame in self.received.drain(..) {
            self.lost += u64::from(!self.incoming.offer(now, frame));
        }
        while out.len() < enough {
            let Some(frame) = self.incoming.pop_due(now) else { break };
            out.push(frame);
        }
        if self.incoming.next_due().is_some_and(|due| due <= now) {
            ready = Ready::More;
        }
        self.send_due(now)?;
        self.set_timer(now)?;
        Ok(ready)
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        let now = Instant::now();
        for (head, body) in queue.iter() {
            let frame = RxFrame { endpoint: 0, bytes: Buf::joined(head, body) };
            self.lost += u64::from(!self.outgoing.offer(now, frame));
        }
        queue.pop(queue.len());
        self.send_due(now)?;
        self.set_timer(now)?;
        Ok(Flush::Done)
    }

    fn queue_octets(&self) -> usize {
        let waiting = self.outgoing.backlog_octets(Instant::now()) + self.due.bytes();
        waiting + self.inner.queue_octets()
    }

    fn is_pressed(&self) -> bool {
        self.inner.is_pressed()
    }

    fn counters(&self) -> Counters {
        let mut counters = self.inner.counters();
        counters.faults += self.lost;
        counters
    }
}
