//! The store in user space: Data that leaves the kernel's memory comes here, and Interests that it may
//! answer are asked.

use crate::KernelError;
use crate::generated::{attr, cmd};
use crate::netlink::{Netlink, Request, events};
use onym_wire::NameRef;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_recv_buffer_size_force;
use rustix::net::{RecvFlags, SendFlags};
use std::time::Duration;

/// Octets that wait in the socket, at most. What finds no room is not offered, and not asked.
const QUEUE: usize = 8 << 20;
/// Messages that are read at once.
const TOGETHER: usize = 64;
/// Octets of a message: a packet, and what is around it.
const MESSAGE: usize = 16 << 10;

/// What the kernel says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A Data that leaves its memory.
    Offer {
        /// The packet.
        packet: Vec<u8>,
        /// For how much longer it is fresh, in milliseconds.
        fresh_ms: u64,
    },
    /// An Interest that the store may answer. It waits for [`StoreSocket::answer`] or
    /// [`StoreSocket::miss`].
    Ask(Vec<u8>),
}

/// The kernel's end of the store. The kernel forgets the store when it is dropped.
#[derive(Debug)]
pub struct StoreSocket {
    fd: OwnedFd,
    family: u16,
}

impl StoreSocket {
    /// Makes this process the store of the network namespace.
    ///
    /// # Errors
    /// [`KernelError::Absent`] without the module; [`KernelError::Refused`] where another store is
    /// attached, and without `CAP_NET_ADMIN`.
    pub fn attach() -> Result<Self, KernelError> {
        let mut netlink = Netlink::open()?;
        netlink.call(Request::new(cmd::STORE_ATTACH))?;
        let (fd, family) = netlink.into_parts();
        set_socket_recv_buffer_size_force(&fd, QUEUE)?;
        Ok(Self { fd, family })
    }

    /// The same over a socket whose other end is the family `family` already.
    #[must_use]
    pub fn over(fd: OwnedFd, family: u16) -> Self {
        Self { fd, family }
    }

    /// Waits at most `patience` for what the kernel says, and gives what is there.
    ///
    /// # Errors
    /// As `recv`. What came too fast is lost, which is none.
    pub fn receive(
        &self,
        patience: Duration,
        mut each: impl FnMut(Event),
    ) -> Result<(), KernelError> {
        let time = Timespec::try_from(patience).ok();
        match poll(&mut [PollFd::new(&self.fd, PollFlags::IN)], time.as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            other => drop(other?),
        }
        let mut room = vec![0_u8; MESSAGE];
        for _ in 0..TOGETHER {
            match rustix::net::recv(&self.fd, room.as_mut_slice(), RecvFlags::DONTWAIT) {
                Ok((len, _)) => {
                    let came = events(room.get(..len).unwrap_or_default(), self.family);
                    came.filter_map(|(command, said)| {
                        let packet = said.bytes(attr::PACKET)?.to_vec();
                        match command {
                            cmd::STORE_OFFER => {
                                Some(Event::Offer { packet, fresh_ms: said.number(attr::LIFETIME) })
                            }
                            cmd::STORE_ASK => Some(Event::Ask(packet)),
                            _ => None,
                        }
                    })
                    .for_each(&mut each);
                }
                Err(Errno::NOBUFS | Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn send(&self, request: Request) -> Result<(), KernelError> {
        rustix::net::send(&self.fd, &request.unanswered(self.family), SendFlags::empty())?;
        Ok(())
    }

    /// Answers an Interest by a Data.
    ///
    /// # Errors
    /// As `send`.
    pub fn answer(&self, data: &[u8]) -> Result<(), KernelError> {
        self.send(Request::new(cmd::STORE_DATA).put(attr::PACKET, data))
    }

    /// There is no answer to this Interest.
    ///
    /// # Errors
    /// As `send`.
    pub fn miss(&self, interest: &[u8]) -> Result<(), KernelError> {
        self.send(Request::new(cmd::STORE_MISS).put(attr::PACKET, interest))
    }

    /// Has Interests for this name asked: there is a packet of it from before.
    ///
    /// # Errors
    /// As `send`.
    pub fn have(&self, name: NameRef<'_>) -> Result<(), KernelError> {
        self.send(Request::new(cmd::STORE_HAVE).put(attr::NAME, name.value()))
    }
}
