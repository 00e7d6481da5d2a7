//! UDP faces: one TLV per datagram, many datagrams per system call.

mod face;
mod listener;
mod multicast;
mod send;

pub use face::UdpFace;
pub use listener::UdpListener;
pub use multicast::{Loopback, UdpMulticastFace};

use crate::FaceError;
use onym_sys::socket::BufferSize;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::SocketAddr;

/// How UDP sockets are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpOptions {
    /// Longest frame sent, in octets; 64 to 8800.
    pub mtu: usize,
    /// Receive buffer asked for, in octets. The kernel grants at most `net.core.rmem_max` without
    /// privilege.
    pub recv_buffer: usize,
    /// Send buffer asked for, in octets.
    pub send_buffer: usize,
    /// Whether the kernel may join and split datagrams for us (GRO and GSO).
    pub offload: bool,
}

impl Default for UdpOptions {
    fn default() -> Self {
        let octets = 4 << 20;
        Self {
            mtu: onym_wire::PACKET_LEN_MAX,
            recv_buffer: octets,
            send_buffer: octets,
            offload: true,
        }
    }
}

/// A non-blocking socket with `options`, bound to `local` with others on the same port allowed.
fn open(local: SocketAddr, options: &UdpOptions) -> Result<(Socket, Buffers), FaceError> {
    let make = || -> io::Result<Socket> {
        let socket = new_socket(local)?;
        socket.set_reuse_address(true)?;
        socket.bind(&local.into())?;
        if options.offload {
            // An old kernel lacks it; datagrams then come one by one.
            let _ = onym_sys::mmsg::enable_gro(&socket);
        }
        fragmentable(&socket)?;
        Ok(socket)
    };
    let socket = make().map_err(|e| FaceError::io("opening a UDP socket", e))?;
    let buffers = set_buffers(&socket, options)?;
    Ok((socket, buffers))
}

/// Datagrams longer than the path takes are cut here rather than refused or lost on the way.
fn fragmentable(socket: &Socket) -> io::Result<()> {
    onym_sys::socket::allow_ip_fragments(socket)
}

fn set_buffers(socket: &Socket, options: &UdpOptions) -> Result<Buffers, FaceError> {
    let recv = onym_sys::socket::set_recv_buffer(socket, options.recv_buffer);
    let send = onym_sys::socket::set_send_buffer(socket, options.send_buffer);
    let failed = |e| FaceError::io("setting the size of a socket buffer", e);
    Ok(Buffers { recv: recv.map_err(failed)?, send: send.map_err(failed)? })
}

fn new_socket(local: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if local.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

/// What was asked for the buffers of a socket and what was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// Receive buffer.
    pub recv: BufferSize,
    /// Send buffer.
    pub send: BufferSize,
}
