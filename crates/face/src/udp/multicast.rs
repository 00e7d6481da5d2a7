//! A UDP group on one interface.

use super::send::{self, Offload};
use super::{Buffers, UdpOptions, fragmentable, set_buffers};
use crate::datagram::{Burst, Layout, receive_error};
use crate::face::{Counters, Face, Flush, Ready, Transport};
use crate::{FaceError, FaceUri, uri};
use onym_frame::{BufPool, RxFrame, TxQueue};
use onym_sys::mmsg::Source;
use onym_sys::netdev::Interface;
use onym_wire::mgmt::LinkType;
use rustix::fd::{AsFd, BorrowedFd};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6};

/// Whether this machine receives what it sends to the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loopback {
    /// Other programs on it, and this one.
    On,
    /// Only other machines receive it.
    Off,
}

/// A face to everybody in a UDP group on one interface.
///
/// Two sockets: one joined to the group on that interface only, one connected to the group.
#[derive(Debug)]
pub struct UdpMulticastFace {
    receiver: Socket,
    sender: Socket,
    group: SocketAddr,
    is_connected: bool,
    local: FaceUri,
    remote: FaceUri,
    mtu: usize,
    offload: Offload,
    counters: Counters,
    buffers: Buffers,
}

impl UdpMulticastFace {
    /// Joins `group` on `interface`.
    ///
    /// # Errors
    /// [`FaceError::Address`] when the group is not a multicast address or the interface has no
    /// address of its family; [`FaceError::Io`].
    pub fn open(
        group: SocketAddr,
        interface: &Interface,
        options: &UdpOptions,
        loopback: Loopback,
    ) -> Result<Self, FaceError> {
        let unusable = |why: &str| FaceError::Address {
            what: format!("{group} on {}", interface.name),
            why: why.into(),
        };
        if !group.ip().is_multicast() {
            return Err(unusable("not a multicast address"));
        }
        let source = source(group, interface)
            .ok_or_else(|| unusable("the interface has no address of this family"))?;
        let group = scoped(group, interface.index);
        let receiver = receiver(group, interface)
            .map_err(|e| FaceError::io("joining a UDP multicast group", e))?;
        let (sender, address) = sender(group, source, interface, loopback == Loopback::On)
            .map_err(|e| FaceError::io("making the sender of a UDP multicast group", e))?;
        let mut buffers = set_buffers(&receiver, options)?;
        buffers.send = set_buffers(&sender, options)?.send;
        Ok(Self {
            receiver,
            sender,
            group,
            is_connected: false,
            local: uri::udp_dev(address, &interface.name),
            remote: uri::udp(group),
            mtu: options.mtu.min(onym_wire::PACKET_LEN_MAX),
            offload: Offload::new(options),
            counters: Counters::default(),
            buffers,
        })
    }

    fn give_up(&mut self, queue: &mut TxQueue) {
        self.counters.out_refused += queue.len() as u64;
        queue.pop(queue.len());
    }

    /// What the kernel granted for the sockets' buffers.
    #[must_use]
    pub fn buffers(&self) -> Buffers {
        self.buffers
    }
}

/// The address to send from: for IPv6 a link-local one, as the groups are of that scope.
fn source(group: SocketAddr, interface: &Interface) -> Option<IpAddr> {
    let of_family = || interface.addresses.iter().filter(|a| a.is_ipv4() == group.is_ipv4());
    let link_local = |a: &&IpAddr| matches!(a, IpAddr::V6(a) if a.is_unicast_link_local());
    of_family().find(link_local).or_else(|| of_family().next()).copied()
}

fn scoped(address: SocketAddr, scope: u32) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(a) => SocketAddrV6::new(*a.ip(), a.port(), 0, scope).into(),
    }
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    Ok(socket)
}

fn receiver(group: SocketAddr, interface: &Interface) -> io::Result<Socket> {
    let socket = socket(group)?;
    socket.bind(&group.into())?;
    match group.ip() {
        IpAddr::V4(ip) => {
            // Only what this socket joined, not what others on the machine joined elsewhere.
            socket.set_multicast_all_v4(false)?;
            let index = InterfaceIndexOrAddress::Index(interface.index);
            socket.join_multicast_v4_n(&ip, &index)?;
        }
        IpAddr::V6(ip) => {
            socket.set_multicast_all_v6(false)?;
            socket.join_multicast_v6(&ip, interface.index)?;
        }
    }
    let _ = onym_sys::mmsg::enable_gro(&socket);
    Ok(socket)
}

fn sender(
    group: SocketAddr,
    source: IpAddr,
    interface: &Interface,
    hears_itself: bool,
) -> io::Result<(Socket, SocketAddr)> {
    let socket = socket(group)?;
    match source {
        IpAddr::V4(ip) => {
            socket.set_multicast_if_v4(&ip)?;
            socket.set_multicast_loop_v4(hears_itself)?;
        }
        IpAddr::V6(_) => {
            socket.set_multicast_if_v6(interface.index)?;
            socket.set_multicast_loop_v6(hears_itself)?;
        }
    }
    // For IPv6 the kernel picks the source by the interface: a link-local address that is still
    // being probed for duplicates could not be bound yet.
    let local = match source {
        IpAddr::V4(_) => SocketAddr::new(source, group.port()),
        IpAddr::V6(_) => SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), group.port()),
    };
    socket.bind(&local.into())?;
    fragmentable(&socket)?;
    Ok((socket, local))
}

/// The number of a sender: its address itself for IPv4, a hash for IPv6. Never 0.
fn endpoint(from: SocketAddr) -> u64 {
    let number = match from.ip() {
        IpAddr::V4(ip) => u64::from(u32::from(ip)) << 16 | u64::from(from.port()),
        IpAddr::V6(ip) => {
            let mut hasher = DefaultHasher::new();
            Ipv6Addr::octets(&ip).hash(&mut hasher);
            from.port().hash(&mut hasher);
            hasher.finish()
        }
    };
    number.max(1)
}

impl Face for UdpMulticastFace {
    fn local_uri(&self) -> &FaceUri {
        &self.local
    }

    fn remote_uri(&self) -> &FaceUri {
        &self.remote
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    fn receive(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        let enough = out.len() + budget;
        while out.len() < enough {
            let mut burst = Burst {
                fd: self.receiver.as_fd(),
                layout: Layout::Datagram,
                counters: &mut self.counters,
            };
            let more = burst.receive(pool, |source, bytes, counters| match source {
                Source::Inet(from) => out.push(RxFrame { endpoint: endpoint(from), bytes }),
                _ => counters.in_foreign += 1,
            });
            match more {
                Ok(true) => {}
                Ok(false) => return Ok(Ready::Idle),
                Err(e) => return receive_error(e),
            }
        }
        Ok(Ready::More)
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        // The descriptor that is watched is the receiver's, so a full send buffer must not be
        // waited for: what does not fit is lost, as the group gives no guarantee anyway.
        if !self.is_connected {
            // Refused while the interface has no carrier or address yet, so it is tried again.
            self.is_connected = self.sender.connect(&self.group.into()).is_ok();
            if !self.is_connected {
                self.give_up(queue);
                return Ok(Flush::Done);
            }
        }
        let outcome =
            send::flush(self.sender.as_fd(), queue, &mut self.offload, &mut self.counters)?;
        if outcome == Flush::Blocked {
            self.give_up(queue);
        }
        Ok(Flush::Done)
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn transport(&self) -> Transport {
        Transport::UdpMulticast
    }

    fn link(&self) -> LinkType {
        LinkType::MultiAccess
    }

    fn queue_octets(&self) -> usize {
        onym_sys::socket::send_queue_octets(&self.sender)
    }

    fn counters(&self) -> Counters {
        self.counters.with_overflow_of(&self.receiver)
    }
}
