//! Readiness of many descriptors with one call, wake-ups and timers that are descriptors too.

use rustix::event::{EventfdFlags, Timespec, epoll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

/// What to be told about a descriptor. Errors and hang-ups are always told, as both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interest {
    /// Errors and hang-ups only.
    Nothing,
    /// Ready to read.
    Read,
    /// Ready to write.
    Write,
    /// Ready to read or to write.
    ReadWrite,
}

/// A descriptor is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ready {
    /// The token given to [`Epoll::add`].
    pub token: u64,
    /// Reading makes progress (or fails at once).
    pub readable: bool,
    /// Writing makes progress (or fails at once).
    pub writable: bool,
}

/// A level-triggered epoll instance.
#[derive(Debug)]
pub struct Epoll {
    fd: OwnedFd,
}

/// Events taken per [`Epoll::wait`]; more stay in the kernel for the next call.
const EVENTS_MAX: usize = 128;

impl Epoll {
    /// A new instance.
    ///
    /// # Errors
    /// As `epoll_create1` (out of descriptors).
    pub fn new() -> io::Result<Self> {
        Ok(Self { fd: epoll::create(epoll::CreateFlags::CLOEXEC)? })
    }

    /// Watches `fd` and reports it as `token`.
    ///
    /// # Errors
    /// As `epoll_ctl`: watched already, or not a kind that can be watched.
    pub fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.fd, fd, epoll::EventData::new_u64(token), flags(interest))?)
    }

    /// Changes what is told about `fd`.
    ///
    /// # Errors
    /// As `epoll_ctl`: not watched.
    pub fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.fd, fd, epoll::EventData::new_u64(token), flags(interest))?)
    }

    /// Stops watching `fd`.
    ///
    /// # Errors
    /// As `epoll_ctl`: not watched.
    pub fn delete(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.fd, fd)?)
    }

    /// Waits at most `timeout` (`None`: for ever) and appends what is ready to `out`.
    /// An interruption by a signal counts as nothing ready.
    ///
    /// # Errors
    /// As `epoll_wait`, `EINTR` excepted.
    pub fn wait(&self, timeout: Option<Duration>, out: &mut Vec<Ready>) -> io::Result<usize> {
        let timeout = timeout.map(timespec);
        let mut events = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        let events = match epoll::wait(&self.fd, &mut events[..], timeout.as_ref()) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(0),
            Err(e) => return Err(e.into()),
        };
        out.extend(events.iter().map(|event| {
            let (flags, data) = (event.flags, event.data);
            let broken = flags.intersects(epoll::EventFlags::ERR | epoll::EventFlags::HUP);
            Ready {
                token: data.u64(),
                readable: broken || flags.contains(epoll::EventFlags::IN),
                writable: broken || flags.contains(epoll::EventFlags::OUT),
            }
        }));
        Ok(events.len())
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn flags(interest: Interest) -> epoll::EventFlags {
    match interest {
        Interest::Nothing => epoll::EventFlags::empty(),
        Interest::Read => epoll::EventFlags::IN,
        Interest::Write => epoll::EventFlags::OUT,
        Interest::ReadWrite => epoll::EventFlags::IN | epoll::EventFlags::OUT,
    }
}

fn timespec(d: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(d.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(d.subsec_nanos()),
    }
}

/// A descriptor that becomes readable when another thread calls [`Waker::wake`].
#[derive(Debug)]
pub struct Waker {
    fd: OwnedFd,
}

impl Waker {
    /// A waker that is not woken.
    ///
    /// # Errors
    /// As `eventfd` (out of descriptors).
    pub fn new() -> io::Result<Self> {
        Ok(Self { fd: rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// A second handle to the same waker.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()? })
    }

    /// Makes the descriptor readable until [`Waker::clear`].
    pub fn wake(&self) {
        // A full counter (EAGAIN) means it is woken already.
        let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
    }

    /// Forgets all wake-ups so far.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.fd, &mut [0_u8; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A descriptor that becomes readable at a time.
#[derive(Debug)]
pub struct Timer {
    fd: OwnedFd,
}

impl Timer {
    /// A timer that is not set.
    ///
    /// # Errors
    /// As `timerfd_create` (out of descriptors).
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Self { fd: timerfd_create(TimerfdClockId::Monotonic, flags)? })
    }

    /// Becomes readable `after` from now (at least one nanosecond), replacing an earlier setting.
    ///
    /// # Errors
    /// As `timerfd_settime`.
    pub fn set(&self, after: Duration) -> io::Result<()> {
        let value = timespec(after.max(Duration::from_nanos(1)));
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let new = Itimerspec { it_interval: zero, it_value: value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &new)?;
        Ok(())
    }

    /// Forgets that the time has come.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.fd, &mut [0_u8; 8]);
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_is_told_until_cleared_and_a_timer_fires() {
        let epoll = Epoll::new().unwrap();
        let (waker, timer) = (Waker::new().unwrap(), Timer::new().unwrap());
        epoll.add(&waker, 7, Interest::Read).unwrap();
        let mut out = Vec::new();
        waker.wake();
        waker.wake();
        assert_eq!(epoll.wait(Some(Duration::ZERO), &mut out).unwrap(), 1);
        assert_eq!(out, [Ready { token: 7, readable: true, writable: false }]);
        waker.clear();
        assert_eq!(epoll.wait(Some(Duration::ZERO), &mut out).unwrap(), 0);
        epoll.add(&timer, 8, Interest::Read).unwrap();
        timer.set(Duration::from_millis(1)).unwrap();
        assert_eq!(epoll.wait(Some(Duration::from_secs(5)), &mut out).unwrap(), 1);
        assert_eq!(out[1].token, 8);
    }
}
