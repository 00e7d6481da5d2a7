//! Listeners: faces that peers open.

use crate::face::{Counters, Face, Ready};
use crate::{FaceError, FaceUri};
use onym_frame::{BufPool, RxFrame};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fmt;
use std::net::SocketAddr;

/// The address of a peer on a transport without connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Peer {
    /// A UDP address.
    Udp(SocketAddr),
    /// A station on the Ethernet of the listener.
    Ether([u8; 6]),
}

/// What arrived at a listener.
#[derive(Debug)]
pub enum Incoming {
    /// A connection.
    Face(Box<dyn Face>),
    /// A frame from a peer that has no socket of its own yet; [`Listener::face_for`] makes one.
    /// Frames of a peer that just got its face may still come this way and belong to that face.
    Frame {
        /// Who sent it.
        peer: Peer,
        /// The frame.
        frame: RxFrame,
    },
}

/// A descriptor in reserve. With none left a connection cannot be accepted, and would make its
/// listener readable for ever; the reserve lets it be accepted in order to be closed.
#[derive(Debug)]
pub(crate) struct Reserve(Option<OwnedFd>);

impl Reserve {
    pub(crate) fn new() -> Self {
        let mode = rustix::fs::Mode::empty();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Self(rustix::fs::open("/dev/null", flags, mode).ok())
    }

    /// Whether `error` says that descriptors ran out, here or in the whole system.
    pub(crate) fn is_for(error: Errno) -> bool {
        matches!(error, Errno::MFILE | Errno::NFILE)
    }

    /// Frees the reserve, lets `accept` take one connection and close it, and reserves again.
    pub(crate) fn turn_away(&mut self, accept: impl FnOnce()) {
        if self.0.take().is_some() {
            accept();
        }
        *self = Self::new();
    }
}

/// Accepts connections, or the first frames of unknown peers.
pub trait Listener: Send + fmt::Debug {
    /// Where it listens.
    fn local_uri(&self) -> &FaceUri;

    /// What to wait on; level-triggered.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Takes about `budget` arrivals into `out`.
    ///
    /// # Errors
    /// Those of the operating system, such as no more descriptors; the listener can still be used.
    /// Connections for which there is no descriptor are closed.
    fn accept(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<Incoming>,
    ) -> Result<Ready, FaceError>;

    /// What this listener refused itself.
    fn counters(&self) -> Counters {
        Counters::default()
    }

    /// A face of its own for `peer`, sharing our address.
    ///
    /// # Errors
    /// [`FaceError::Address`] when this listener has no such peers; those of the operating system.
    fn face_for(&mut self, peer: Peer) -> Result<Box<dyn Face>, FaceError> {
        Err(FaceError::Address {
            what: format!("{peer:?}"),
            why: format!("not a peer of {}", self.local_uri()),
        })
    }
}
