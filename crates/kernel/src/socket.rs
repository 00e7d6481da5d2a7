//! A RAW socket of `AF_NNET`: whole packets in and out.

use crate::{KernelError, family};
use onym_sys::nnet::{self, Kind, Received};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::SendFlags;
use std::time::Duration;

/// A socket with its face; the face comes with the first packet or binding.
#[derive(Debug)]
pub struct RawSocket {
    fd: OwnedFd,
    family: u16,
}

impl RawSocket {
    /// Opens a socket whose packets carry no `NDNLPv2` headers.
    ///
    /// # Errors
    /// [`KernelError::Absent`] without the module; as `socket`.
    pub fn open() -> Result<Self, KernelError> {
        let family = family()?;
        let fd = nnet::open(family, Kind::Raw)?;
        nnet::set_option(&fd, nnet::MULTIBIND, &1_u32.to_ne_bytes())?;
        Ok(Self { fd, family })
    }

    /// Opens a socket whose packets carry `NDNLPv2` headers.
    ///
    /// # Errors
    /// As [`RawSocket::open`].
    pub fn open_lp() -> Result<Self, KernelError> {
        let socket = Self::open()?;
        nnet::set_option(&socket.fd, nnet::LP, &1_u32.to_ne_bytes())?;
        Ok(socket)
    }

    /// Serves a prefix: the value of its Name TLV.
    ///
    /// # Errors
    /// As `bind`.
    pub fn bind(&self, prefix: &[u8]) -> Result<(), KernelError> {
        Ok(nnet::bind(&self.fd, self.family, prefix)?)
    }

    /// Whether a route led to the prefix that was bound last, when it was.
    ///
    /// # Errors
    /// As `getsockopt`.
    pub fn has_route(&self) -> Result<bool, KernelError> {
        Ok(nnet::option(&self.fd, nnet::BIND_FLAGS)? & nnet::BIND_NOROUTE == 0)
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

    /// Sends a Data that the kernel keeps and answers with: until close, or for `life`.
    ///
    /// # Errors
    /// `InvalidInput` when it is no Data; `ENOBUFS` at the bound of SO_SNDBUF.
    pub fn publish(&self, data: &[u8], life: Option<Duration>) -> Result<(), KernelError> {
        let ms = life.map_or(0, |l| u32::try_from(l.as_millis().max(1)).unwrap_or(u32::MAX));
        Ok(nnet::send_with(&self.fd, data, nnet::CM_PUBLISH, ms)?)
    }

    /// Forgets what was published under a prefix.
    ///
    /// # Errors
    /// `NotFound` when there was nothing.
    pub fn unpublish(&self, prefix: &[u8]) -> Result<(), KernelError> {
        Ok(nnet::set_option(&self.fd, nnet::UNPUBLISH, prefix)?)
    }

    /// Lets Interests that were answered by what is published come too.
    ///
    /// # Errors
    /// As `setsockopt`.
    pub fn tell_answered(&self) -> Result<(), KernelError> {
        Ok(nnet::set_option(&self.fd, nnet::STATUS, &1_u32.to_ne_bytes())?)
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
        Ok(self.receive_marked(room, patience)?.map(|r| r.len))
    }

    /// As [`Self::receive`], with what the kernel says beside the packet.
    ///
    /// # Errors
    /// As `recvmsg`.
    pub fn receive_marked(
        &self,
        room: &mut [u8],
        patience: Duration,
    ) -> Result<Option<Received>, KernelError> {
        let time = Timespec::try_from(patience).ok();
        let mut ready = [PollFd::new(&self.fd, PollFlags::IN)];
        if poll(&mut ready, time.as_ref())? == 0 {
            return Ok(None);
        }
        match nnet::receive(&self.fd, room) {
            Ok(received) => Ok(Some(received)),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for RawSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
