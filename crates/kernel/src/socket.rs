//! A RAW socket of `AF_NNET`: whole packets in and out.

use crate::{KernelError, family};
use onym_sys::nnet;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::{RecvFlags, SendFlags};
use std::time::Duration;

/// A socket with its face; the face comes with the first packet or binding.
#[derive(Debug)]
pub struct RawSocket {
    fd: OwnedFd,
    family: u16,
}

impl RawSocket {
    /// Opens a socket. With `link` packets carry `NDNLPv2` headers.
    ///
    /// # Errors
    /// [`KernelError::Absent`] without the module; as `socket`.
    pub fn open(link: bool) -> Result<Self, KernelError> {
        let family = family()?;
        let fd = nnet::open_raw(family)?;
        nnet::set_option(&fd, nnet::MULTIBIND, &1_u32.to_ne_bytes())?;
        if link {
            nnet::set_option(&fd, nnet::LP, &1_u32.to_ne_bytes())?;
        }
        Ok(Self { fd, family })
    }

    /// Serves a prefix: the value of its Name TLV.
    ///
    /// # Errors
    /// As `bind`.
    pub fn bind(&self, prefix: &[u8]) -> Result<(), KernelError> {
        Ok(nnet::bind(&self.fd, self.family, prefix)?)
    }

    /// Gives a prefix back.
    ///
    /// # Errors
    /// `NotFound` when it was not bound.
    pub fn unbind(&self, prefix: &[u8]) -> Result<(), KernelError> {
        Ok(nnet::set_option(&self.fd, nnet::UNBIND, prefix)?)
    }

    /// The number of its face, 0 before it has one.
    ///
    /// # Errors
    /// As `getsockopt`.
    pub fn face(&self) -> Result<u32, KernelError> {
        Ok(nnet::option(&self.fd, nnet::FACE)?)
    }

    /// Sends a packet.
    ///
    /// # Errors
    /// `InvalidInput` when it is no packet.
    pub fn send(&self, packet: &[u8]) -> Result<(), KernelError> {
        rustix::net::send(&self.fd, packet, SendFlags::empty())?;
        Ok(())
    }

    /// Receives a packet into `room`, waiting at most `patience`; `None` when none came.
    ///
    /// # Errors
    /// As `recv`.
    pub fn receive(
        &self,
        room: &mut [u8],
        patience: Duration,
    ) -> Result<Option<usize>, KernelError> {
        let time = Timespec::try_from(patience).ok();
        let mut ready = [PollFd::new(&self.fd, PollFlags::IN)];
        if poll(&mut ready, time.as_ref())? == 0 {
            return Ok(None);
        }
        match rustix::net::recv(&self.fd, room, RecvFlags::empty()) {
            Ok((len, _)) => Ok(Some(len)),
            Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for RawSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
