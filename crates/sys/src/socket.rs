//! Buffer sizes and queue lengths of sockets.

use rustix::fd::{AsFd, AsRawFd};
use rustix::net::sockopt;
use std::io;

/// What was asked for a socket buffer and what the kernel gave, in octets of payload accounting
/// (the kernel reports twice the value because it counts its own overhead; this is the half).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferSize {
    /// Octets asked for.
    pub asked: usize,
    /// Octets granted.
    pub got: usize,
}

/// Asks for a receive buffer of `octets`, by privilege where there is some.
///
/// # Errors
/// As `setsockopt`; being granted less than asked is not an error.
pub fn set_recv_buffer(fd: impl AsFd, octets: usize) -> io::Result<BufferSize> {
    let fd = fd.as_fd();
    if sockopt::set_socket_recv_buffer_size_force(fd, octets).is_err() {
        sockopt::set_socket_recv_buffer_size(fd, octets)?;
    }
    Ok(BufferSize { asked: octets, got: sockopt::socket_recv_buffer_size(fd)? / 2 })
}

/// Asks for a send buffer of `octets`, by privilege where there is some.
///
/// # Errors
/// As `setsockopt`; being granted less than asked is not an error.
pub fn set_send_buffer(fd: impl AsFd, octets: usize) -> io::Result<BufferSize> {
    let fd = fd.as_fd();
    if sockopt::set_socket_send_buffer_size_force(fd, octets).is_err() {
        sockopt::set_socket_send_buffer_size(fd, octets)?;
    }
    Ok(BufferSize { asked: octets, got: sockopt::socket_send_buffer_size(fd)? / 2 })
}

/// Octets in the send queue of a socket that were not sent or acknowledged yet (`SIOCOUTQ`);
/// 0 where the kind of socket does not tell.
#[must_use]
pub fn send_queue_octets(fd: impl AsFd) -> usize {
    let mut octets: libc::c_int = 0;
    // SAFETY: the descriptor is open for the call, and SIOCOUTQ (the number of TIOCOUTQ) writes one int.
    let rc = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut octets) };
    if rc < 0 { 0 } else { usize::try_from(octets).unwrap_or(0) }
}

/// How full the receive buffer of a socket is, in octets as the kernel counts them (with its own
/// overhead for each datagram).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReceiveFill {
    /// Octets in use.
    pub used: usize,
    /// Octets above which datagrams are dropped.
    pub limit: usize,
    /// Datagrams that the kernel dropped since the socket was made, mostly for want of room.
    pub dropped: u64,
}

/// Asks how full the receive buffer is (`SO_MEMINFO`); zeros where the kernel does not tell.
#[must_use]
pub fn receive_fill(fd: impl AsFd) -> ReceiveFill {
    // SK_MEMINFO_RMEM_ALLOC and SK_MEMINFO_RCVBUF are the first two of the values, and
    // SK_MEMINFO_DROPS is the ninth.
    let mut values = [0_u32; 16];
    let mut len = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the descriptor is open for the call; the kernel writes at most `len` octets of the
    // array, which is ours alone, and the length.
    let rc = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    if rc < 0 {
        return ReceiveFill::default();
    }
    let at = |i: usize| usize::try_from(values[i]).unwrap_or(usize::MAX);
    ReceiveFill { used: at(0), limit: at(1), dropped: values[8].into() }
}

/// Lets datagrams longer than the path's MTU leave as IP fragments instead of being refused.
///
/// # Errors
/// As `setsockopt`.
pub fn allow_ip_fragments(fd: impl AsFd) -> io::Result<()> {
    set_path_discovery(fd, libc::IP_PMTUDISC_DONT, libc::IPV6_PMTUDISC_DONT)
}

/// Lets no datagram leave in IP fragments, whatever the kernel takes for the path's MTU: who sends finds
/// out itself what arrives.
///
/// # Errors
/// As `setsockopt`.
pub fn refuse_ip_fragments(fd: impl AsFd) -> io::Result<()> {
    set_path_discovery(fd, libc::IP_PMTUDISC_PROBE, libc::IPV6_PMTUDISC_PROBE)
}

fn set_path_discovery(fd: impl AsFd, v4: libc::c_int, v6: libc::c_int) -> io::Result<()> {
    let fd = fd.as_fd().as_raw_fd();
    let set = |level, name, value: libc::c_int| {
        // SAFETY: the descriptor is open for the call; the value is one int that outlives it.
        unsafe { libc::setsockopt(fd, level, name, (&raw const value).cast(), 4) }
    };
    let v4 = set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, v4);
    let v6 = set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, v6);
    // A socket is of one family, so one of the two is refused.
    if v4 < 0 && v6 < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What the kernel takes for the MTU of the route of a connected socket, in octets with headers.
///
/// # Errors
/// As `getsockopt`: the socket is not connected.
pub fn route_mtu(fd: impl AsFd) -> io::Result<usize> {
    let fd = fd.as_fd().as_raw_fd();
    let get = |level, name| {
        let mut value: libc::c_int = 0;
        let mut len: libc::socklen_t = 4;
        // SAFETY: the descriptor is open for the call; the value is one int, its length is told, and
        // both outlive the call.
        let rc =
            unsafe { libc::getsockopt(fd, level, name, (&raw mut value).cast(), &raw mut len) };
        if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
    };
    // A socket is of one family, so one of the two is refused.
    let mtu =
        get(libc::IPPROTO_IP, libc::IP_MTU).or_else(|_| get(libc::IPPROTO_IPV6, libc::IPV6_MTU))?;
    usize::try_from(mtu).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn octets_nobody_read_are_in_the_send_queue() {
        let (mut a, mut b) = UnixStream::pair().unwrap();
        assert_eq!(send_queue_octets(&a), 0);
        a.write_all(&[0; 1000]).unwrap();
        assert!(send_queue_octets(&a) >= 1000);
        b.read_exact(&mut [0; 1000]).unwrap();
        assert_eq!(send_queue_octets(&a), 0);
    }

    #[test]
    fn the_receive_buffer_tells_how_full_it_is() {
        let a = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let b = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let empty = receive_fill(&a);
        assert_eq!(empty.used, 0);
        b.send_to(&[0; 5000], a.local_addr().unwrap()).unwrap();
        let one = receive_fill(&a);
        assert!(one.used >= 5000 && one.limit == empty.limit && one.limit > one.used, "{one:?}");
    }

    #[test]
    fn a_small_buffer_is_granted_exactly() {
        let (a, _b) = UnixStream::pair().unwrap();
        let size = set_send_buffer(&a, 64 << 10).unwrap();
        assert_eq!(size.got, 64 << 10);
    }
}
