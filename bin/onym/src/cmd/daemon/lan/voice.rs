//! Where hellos are said and heard: by IPv4, and by IPv6 to who has nothing else (spec/push.md, P-85).
//!
//! On an interface with addresses of both kinds hello is said by IPv4, so two nodes that have both hear
//! each other once. Who says it by IPv6 there has no IPv4, and is answered alone.

use onym_sys::netdev::Interface;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::time::Duration;

/// Where hellos go.
const PORT: u16 = 56_384;
const GROUP_V4: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(239, 255, 80, 84), PORT);
/// Of the link, and not one that is assigned for good.
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff12, 0, 0, 0, 0, 0, 0, 0x5054);

/// One kind of addresses, and the port where the node takes faces by it.
pub(super) struct Voice {
    port: u16,
    hears: UdpSocket,
    kind: Kind,
}

enum Kind {
    /// What says hello, by the address of the interface.
    V4(BTreeMap<Ipv4Addr, UdpSocket>),
    V6 {
        /// Interfaces whose group is heard.
        joined: BTreeSet<u32>,
        /// Those of them where hello is said to all.
        says: BTreeSet<u32>,
        /// Hello is said by IPv4 where there is such an address.
        is_second: bool,
    },
}

impl Voice {
    /// For the first listener of each kind.
    pub(super) fn of(listeners: &[SocketAddr]) -> io::Result<Vec<Self>> {
        let port = |is_it: fn(&SocketAddr) -> bool| {
            listeners.iter().find(|address| is_it(address)).map(SocketAddr::port)
        };
        let (v4, v6) = (port(SocketAddr::is_ipv4), port(SocketAddr::is_ipv6));
        let mut voices = Vec::new();
        if let Some(port) = v4 {
            // Bound to the group: what somebody beyond the LAN sends to this machine alone does not come.
            let hears = bind(GROUP_V4.into())?;
            voices.push(Self { port, hears, kind: Kind::V4(BTreeMap::new()) });
        }
        if let Some(port) = v6 {
            // A group of the link has an interface; what comes from beyond is told apart by its address.
            let hears = bind(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, PORT, 0, 0).into())?;
            let (joined, says) = Default::default();
            let kind = Kind::V6 { joined, says, is_second: v4.is_some() };
            voices.push(Self { port, hears, kind });
        }
        Ok(voices)
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    /// A datagram of the LAN, if there is one.
    pub(super) fn hear(&self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        let (len, from) = self.hears.recv_from(buffer).ok()?;
        is_of_lan(from).then_some((len, from))
    }

    /// Says hello on every interface where this kind does; those come and go.
    pub(super) fn say(&mut self, interfaces: &[Interface], hello: &[u8]) {
        let useful = interfaces.iter().filter(|i| i.is_up && i.is_multicast && !i.is_loopback);
        let hears = &self.hears;
        match &mut self.kind {
            Kind::V4(says) => {
                let own: BTreeSet<Ipv4Addr> = useful.flat_map(v4).collect();
                says.retain(|address, _| own.contains(address));
                own.into_iter().for_each(|address| begin_v4(says, hears, address));
                says.values().for_each(|socket| _ = socket.send_to(hello, GROUP_V4));
            }
            Kind::V6 { joined, says, is_second } => {
                let able = useful.filter(|interface| interface.addresses.iter().any(is_of_link));
                let able: BTreeMap<u32, &Interface> = able.map(|i| (i.index, i)).collect();
                joined.retain(|index| able.contains_key(index));
                for index in
                    able.keys().filter(|index| !joined.contains(index)).copied().collect::<Vec<_>>()
                {
                    // One that was here before may be in the group still.
                    let _ = hears.leave_multicast_v6(&GROUP_V6, index);
                    match hears.join_multicast_v6(&GROUP_V6, index) {
                        Ok(()) => _ = joined.insert(index),
                        Err(error) => tracing::debug!(index, %error, "no hello is heard here"),
                    }
                }
                let is_first = |i: &&Interface| !*is_second || v4(i).next().is_none();
                *says = able.into_values().filter(is_first).map(|i| i.index).collect();
                for index in &*says {
                    let _ = hears.send_to(hello, SocketAddrV6::new(GROUP_V6, PORT, 0, *index));
                }
            }
        }
    }

    /// Says hello to who says it where this node says it to nobody by this kind.
    pub(super) fn answer(&self, to: SocketAddr, hello: &[u8]) {
        if let (Kind::V6 { says, .. }, SocketAddr::V6(to)) = (&self.kind, to)
            && !says.contains(&to.scope_id())
        {
            let to = SocketAddrV6::new(*to.ip(), PORT, 0, to.scope_id());
            let _ = self.hears.send_to(hello, to);
        }
    }
}

/// Waits until something may be heard.
pub(super) fn wait(voices: &[Voice], patience: Duration) {
    let fds = voices.iter().map(|voice| PollFd::new(&voice.hears, PollFlags::IN));
    let mut fds: Vec<PollFd<'_>> = fds.collect();
    let patience = Timespec { tv_sec: 0, tv_nsec: patience.subsec_nanos().into() };
    let _ = poll(&mut fds, Some(&patience));
}

/// A socket for hellos; other nodes of the host may have one too.
fn bind(at: SocketAddr) -> io::Result<UdpSocket> {
    let family = if at.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    if at.is_ipv6() {
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    rustix::net::bind(&socket, &at)?;
    Ok(UdpSocket::from(socket))
}

/// What is bound to the address of an interface goes to groups by that interface.
fn begin_v4(says: &mut BTreeMap<Ipv4Addr, UdpSocket>, hears: &UdpSocket, address: Ipv4Addr) {
    if says.contains_key(&address) {
        return;
    }
    let socket = UdpSocket::bind((address, 0)).and_then(|socket| {
        let _ = hears.join_multicast_v4(GROUP_V4.ip(), &address);
        socket.set_multicast_loop_v4(true).map(|()| socket)
    });
    match socket {
        Ok(socket) => _ = says.insert(address, socket),
        Err(error) => tracing::debug!(%address, %error, "no hello from here"),
    }
}

fn v4(interface: &Interface) -> impl Iterator<Item = Ipv4Addr> {
    let of = |ip: &IpAddr| if let IpAddr::V4(ip) = ip { Some(*ip) } else { None };
    interface.addresses.iter().filter_map(of)
}

fn is_of_link(ip: &IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// Whether a datagram comes from the LAN: no router lets an address of the link through.
fn is_of_lan(from: SocketAddr) -> bool {
    match from {
        SocketAddr::V4(_) => true,
        SocketAddr::V6(from) => from.ip().is_unicast_link_local() && from.scope_id() != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_ipv6_only_the_link_is_heard() {
        let of = |text: &str, scope| {
            is_of_lan(SocketAddrV6::new(text.parse().unwrap(), 1, 0, scope).into())
        };
        assert!(of("fe80::1", 3));
        assert!(!of("fe80::1", 0) && !of("2001:db8::1", 3) && !of("::1", 1) && !of("ff12::1", 3));
        assert!(is_of_lan("192.0.2.1:1".parse().unwrap()));
    }

    #[test]
    fn a_voice_is_for_a_listener_of_its_kind() {
        assert!(Voice::of(&[]).unwrap().is_empty());
        let voices = Voice::of(&["0.0.0.0:6363".parse().unwrap()]).unwrap();
        assert!(voices.len() == 1 && voices[0].port() == 6363);
    }
}
