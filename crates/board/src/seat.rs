//! The page that a subscriber shares with its publisher, and the socket between them.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

/// Slot that the subscriber reads, plus one; 0 when it reads none.
pub(crate) const PIN: usize = 0;
/// Number of the next publication that it wants.
pub(crate) const HEAD: usize = 1;
/// The subscriber sleeps until woken.
pub(crate) const SLEEPS: usize = 2;

/// Sends a wake-up; whether the other side is still there. A full socket has woken it already.
pub(crate) fn wake(socket: impl AsFd) -> bool {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    !matches!(
        rustix::net::send(socket, &[0], flags),
        Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN)
    )
}

/// Takes wake-ups off the socket; whether the other side is still there.
pub(crate) fn hear(socket: &OwnedFd) -> bool {
    // As many as a socket holds: nobody reads them one by one.
    let mut octets = [0; 512];
    match rustix::net::recv(socket, &mut octets[..], RecvFlags::DONTWAIT) {
        Ok((0, _)) => false,
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => true,
        Err(_) => false,
    }
}
