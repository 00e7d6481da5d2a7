//! Unix sockets before they are faces.

use crate::FaceError;
use rustix::fd::OwnedFd;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::path::Path;

pub(crate) fn connect_socket(path: &Path) -> Result<OwnedFd, FaceError> {
    let socket = new_socket()?;
    let address = address(path)?;
    // Connecting to a Unix socket never waits: it succeeds, is refused, or the backlog is full.
    rustix::net::connect(&socket, &address).map_err(|e| FaceError::io("connecting", e))?;
    Ok(socket)
}

pub(crate) fn new_socket() -> Result<OwnedFd, FaceError> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(|e| FaceError::io("making a Unix socket", e))
}

pub(crate) fn address(path: &Path) -> Result<SocketAddrUnix, FaceError> {
    SocketAddrUnix::new(path).map_err(|_| FaceError::Address {
        what: path.display().to_string(),
        why: "a Unix socket path has at most 107 octets".into(),
    })
}
