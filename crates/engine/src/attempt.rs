//! Connections in progress, before they are the transport of a face.

use crate::poller::Poller;
use onym_face::Face;
use onym_frame::TxQueue;
use onym_sys::epoll::Interest;
use onym_tables::Tick;

/// Tokens of attempts in the poller begin here.
pub(crate) const ATTEMPTS: u64 = 1 << 61;

/// The number of an attempt in its thread; no two have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId(u64);

#[derive(Debug)]
struct Attempt {
    id: AttemptId,
    io: Box<dyn Face>,
    /// When it is given up.
    until: Tick,
    /// Its descriptor has something to tell.
    is_ready: bool,
}

/// How an attempt ended.
pub(crate) type Ended = (AttemptId, Result<Box<dyn Face>, String>);

/// The connections that a thread is making.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    list: Vec<Attempt>,
    last: u64,
}

impl Attempts {
    pub(crate) fn note_ready(&mut self, token: u64) {
        let id = AttemptId(token - ATTEMPTS);
        self.list.iter_mut().filter(|a| a.id == id).for_each(|a| a.is_ready = true);
    }

    pub(crate) fn poll_timeout(&self) -> Tick {
        self.list.iter().map(|a| a.until).min().unwrap_or(Tick::NEVER)
    }

    /// Watches `io` until its connection is made, until `until` at most.
    pub(crate) fn begin<P: Poller>(
        &mut self,
        poller: &P,
        io: Box<dyn Face>,
        until: Tick,
    ) -> std::io::Result<AttemptId> {
        let id = AttemptId(self.last + 1);
        let interest = if io.room_is_writable() { Interest::ReadWrite } else { Interest::Read };
        poller.add(io.fd(), ATTEMPTS + id.0, interest)?;
        self.last = id.0;
        self.list.push(Attempt { id, io, until, is_ready: false });
        Ok(id)
    }

    pub(crate) fn abandon<P: Poller>(&mut self, poller: &P) {
        for attempt in self.list.drain(..) {
            let _ = poller.delete(attempt.io.fd());
        }
    }

    /// The next attempt that ended at `now`: with the transport, or the reason why there is none.
    pub(crate) fn end<P: Poller>(&mut self, poller: &P, now: Tick) -> Option<Ended> {
        for at in 0..self.list.len() {
            let attempt = &mut self.list[at];
            let is_late = attempt.until <= now;
            let result = match std::mem::take(&mut attempt.is_ready) {
                // Sending nothing is how a transport finds out.
                true => match attempt.io.flush(&mut TxQueue::new(0)) {
                    Ok(_) if !attempt.io.is_connecting() => Ok(()),
                    Ok(_) if !is_late => continue,
                    Ok(_) => Err("connection timed out".to_owned()),
                    Err(error) => Err(error.to_string()),
                },
                false if is_late => Err("connection timed out".to_owned()),
                false => continue,
            };
            let Attempt { id, io, .. } = self.list.remove(at);
            let _ = poller.delete(io.fd());
            return Some((id, result.map(|()| io)));
        }
        None
    }
}
