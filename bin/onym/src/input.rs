//! Input that may never come: a pipe, a FIFO, a terminal. The signal to stop is obeyed while it is
//! waited for.

use crate::exit::{Exit, Failure};
use crate::stop::Stop;
use anyhow::Context as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A reader that ends with an error once the user wants the program to end.
pub(crate) struct Input {
    from: OwnedFd,
    stop: Stop,
}

/// How often the signal to stop is looked at, should its signal come between look and wait.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

impl Input {
    /// Opens `path`, or standard input without one or for `-`. A FIFO is open at once; its first
    /// writer is waited for by reading.
    pub(crate) fn open(path: Option<&Path>, stop: &Stop) -> anyhow::Result<Self> {
        let stop = stop.clone();
        let from = match path.filter(|path| *path != Path::new("-")) {
            None => {
                io::stdin().as_fd().try_clone_to_owned().context("cannot read standard input")?
            }
            Some(path) => {
                let nonblock = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
                let file = File::options().read(true).custom_flags(nonblock).open(path);
                file.with_context(|| format!("cannot read {}", path.display()))?.into()
            }
        };
        Ok(Self { from, stop })
    }

    /// All there is, at most `max` octets.
    pub(crate) fn whole(mut self, max: u64) -> anyhow::Result<Vec<u8>> {
        let mut octets = Vec::new();
        let read = (&mut self).take(max.saturating_add(1)).read_to_end(&mut octets);
        if self.stop.is_set() {
            return Err(stopped().into());
        }
        if read.context("cannot read the input")? as u64 > max {
            return Err(Failure::new(
                Exit::Failed,
                format!("the input is longer than {max} octets"),
            )
            .next("write it to a file and pass the file")
            .into());
        }
        Ok(octets)
    }
}

/// The user ended the program before the input did.
pub(crate) fn stopped() -> Failure {
    Failure::new(Exit::Stopped, "stopped before the end of the input")
}

impl Read for Input {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.stop.is_set() {
                return Err(io::Error::other("stopped"));
            }
            match poll(&mut [PollFd::new(&self.from, PollFlags::IN)], Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(errno.into()),
            }
            match rustix::io::read(&self.from, &mut *octets) {
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                read => return Ok(read?),
            }
        }
    }
}
