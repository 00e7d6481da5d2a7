//! A face that speaks the old framing of Blackadder nodes (spec/push.md, section 7).
//!
//! What comes becomes a frame of ours; of ours leaves what the old framing has fields for.

use onym_face::{Counters, Face, FaceError, Flush, Ready, Transport};
use onym_frame::{Buf, BufPool, RxFrame, TxQueue};
use onym_sys::netdev::Interface;
use onym_sys::packet::{PacketSocket, Want};
use onym_wire::PACKET_LEN_MAX;
use onym_wire::faceuri::{Endpoint, FaceUri};
use onym_wire::push::{
    Filter, Frame, FrameBuilder, Id, OLD_ETHERTYPE, OldFrame, Route, RouteBuf, Strategy, reserved,
};
use onym_wire::tlv::{Malformed, Reader, is_critical};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// Hop limit of a frame that enters: the old one has none.
const HOP_LIMIT: u8 = 16;
/// Octets of an Ethernet header.
const ETHER: usize = 14;
/// Longest old frame over UDP: what an Ethernet carries.
const UDP_LEN_MAX: usize = 1472;

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket),
    /// With the header of what is sent.
    Ether(PacketSocket, [u8; ETHER]),
}

/// A face to an old node.
#[derive(Debug)]
pub(crate) struct OldFace {
    socket: Socket,
    local: FaceUri,
    remote: FaceUri,
    mtu: usize,
    counters: Counters,
    /// Kept for its capacity.
    buffer: Vec<u8>,
}

impl OldFace {
    /// Over UDP, from the address `source`. Old nodes send from the port that they are sent to, and so does this one.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn udp(source: IpAddr, peer: SocketAddr) -> io::Result<Self> {
        let family = if peer.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let fd: OwnedFd = rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?;
        // Each old neighbour has a socket at the same port; the connected one gets what is its.
        rustix::net::sockopt::set_socket_reuseaddr(&fd, true)?;
        rustix::net::bind(&fd, &SocketAddr::new(source, peer.port()))?;
        let socket = UdpSocket::from(fd);
        socket.connect(peer)?;
        let local = FaceUri::Udp(Endpoint::of(socket.local_addr()?));
        let (socket, remote) = (Socket::Udp(socket), FaceUri::Udp(Endpoint::of(peer)));
        Ok(Self::of(socket, local, remote, UDP_LEN_MAX))
    }

    /// Over Ethernet, from a station on `interface`.
    ///
    /// # Errors
    /// Those of the system, for instance without `CAP_NET_RAW`.
    pub(crate) fn ether(interface: &Interface, peer: [u8; 6]) -> io::Result<Self> {
        let own = interface.mac.ok_or(io::ErrorKind::Unsupported)?;
        let socket = PacketSocket::open(interface.index, OLD_ETHERTYPE, Want::From(peer))?;
        let mut header = [0; ETHER];
        header[..6].copy_from_slice(&peer);
        header[6..12].copy_from_slice(&own);
        header[12..].copy_from_slice(&OLD_ETHERTYPE.to_be_bytes());
        let local = FaceUri::Dev(interface.name.clone());
        let mtu = interface.mtu.min(PACKET_LEN_MAX);
        Ok(Self::of(Socket::Ether(socket, header), local, FaceUri::Ether(peer), mtu))
    }

    fn of(socket: Socket, local: FaceUri, remote: FaceUri, mtu: usize) -> Self {
        let (counters, buffer) = (Counters::default(), vec![0; ETHER + PACKET_LEN_MAX]);
        Self { socket, local, remote, mtu, counters, buffer }
    }

    /// Octets before an old frame.
    const fn head_len(&self) -> usize {
        if matches!(self.socket, Socket::Ether(..)) { ETHER } else { 0 }
    }

    /// Puts the first frame of the queue into `buffer`, as it leaves; whether it fits the framing.
    fn lay_out(&mut self, queue: &TxQueue) -> bool {
        self.buffer.clear();
        if let Socket::Ether(_, header) = &self.socket {
            self.buffer.extend_from_slice(header);
        }
        match queue.iter().next() {
            Some((first, [])) => old(first, &mut self.buffer),
            Some((first, second)) => old(&[first, second].concat(), &mut self.buffer),
            None => false,
        }
    }

    /// Sends what `buffer` holds.
    fn send(&self) -> Result<(), Errno> {
        rustix::io::write(self.fd(), &self.buffer).map(|_| ())
    }
}

/// An old frame as one of ours.
fn modern(octets: &[u8]) -> Result<Vec<u8>, Malformed> {
    let old = OldFrame::parse(octets)?;
    let ids: Vec<Id> = old.ids.map(Id::from_labels).collect();
    let is_for_neighbours = old.filter.ones() == 256;
    let (route, strategy) = if is_for_neighbours {
        (RouteBuf::from(Route::Link), Strategy::BROADCAST)
    } else {
        (RouteBuf::flat(0, &old.filter), Strategy::IMPLICIT)
    };
    let mut out = Vec::new();
    FrameBuilder {
        hop_limit: HOP_LIMIT,
        strategy,
        route: &route,
        ids: &ids,
        options: &[],
        payload: old.payload,
    }
    .write(&mut out);
    if out.len() > PACKET_LEN_MAX { Err(Malformed::TooLong) } else { Ok(out) }
}

/// Appends one of our frames in the old framing; whether it has fields for everything.
fn old(octets: &[u8], out: &mut Vec<u8>) -> bool {
    let Ok(frame) = Frame::parse(octets) else { return false };
    let filter = match frame.route {
        Route::Link => {
            let mut all = Filter::EMPTY;
            (0..=255).for_each(|bit| all.set(bit));
            all
        }
        Route::Flat { table: 0, filter } => filter,
        _ => return false,
    };
    let ids: Vec<Id> = frame.ids.map(Id::from_labels).collect();
    // Control messages are others than those of old nodes.
    let is_control = ids.iter().filter_map(Id::first).any(reserved::is_reserved);
    let mut options = Reader::new(frame.options.octets()).flatten();
    if is_control || ids.len() > 255 || options.any(|option| is_critical(option.typ)) {
        return false;
    }
    OldFrame::write(out, &filter, &ids, frame.payload);
    true
}

impl Face for OldFace {
    fn local_uri(&self) -> &FaceUri {
        &self.local
    }

    fn remote_uri(&self) -> &FaceUri {
        &self.remote
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Udp(socket) => socket.as_fd(),
            Socket::Ether(socket, _) => socket.as_fd(),
        }
    }

    fn receive(
        &mut self,
        _pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        let head = self.head_len();
        for _ in 0..budget.max(1) {
            self.buffer.resize(ETHER + PACKET_LEN_MAX, 0);
            let mut buffer = std::mem::take(&mut self.buffer);
            let read = rustix::io::read(self.fd(), &mut buffer[..]);
            self.buffer = buffer;
            let len = match read {
                Ok(len) => len,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(Ready::Idle),
                Err(errno @ (Errno::CONNREFUSED | Errno::NETDOWN | Errno::HOSTUNREACH)) => {
                    return Err(FaceError::Unreachable(errno.into()));
                }
                Err(errno) => {
                    return Err(FaceError::Io { doing: "receiving", source: errno.into() });
                }
            };
            let frame = self.buffer.get(head..len).map(modern);
            match frame {
                Some(Ok(frame)) => out.push(RxFrame { endpoint: 0, bytes: Buf::copy_from(&frame) }),
                _ => self.counters.in_malformed += 1,
            }
        }
        Ok(Ready::More)
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        while !queue.is_empty() {
            let is_fit = self.lay_out(queue);
            let head = self.head_len();
            if !is_fit {
                self.counters.out_refused += 1;
            } else if self.buffer.len() - head > self.mtu {
                self.counters.out_too_long += 1;
            } else {
                match self.send() {
                    Ok(()) => {}
                    Err(Errno::AGAIN) => return Ok(Flush::Blocked),
                    Err(Errno::MSGSIZE) => self.counters.out_too_long += 1,
                    Err(Errno::NOBUFS | Errno::CONNREFUSED) => self.counters.out_refused += 1,
                    Err(errno) => {
                        self.counters.out_refused += 1;
                        queue.pop(1);
                        return Err(FaceError::Unreachable(errno.into()));
                    }
                }
            }
            queue.pop(1);
        }
        Ok(Flush::Done)
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn transport(&self) -> Transport {
        if matches!(self.socket, Socket::Udp(_)) { Transport::Udp } else { Transport::Ether }
    }

    fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_wire::push::{Label, option};
    use onym_wire::tlv;

    fn frame(route: &RouteBuf, id: &str, options: &[u8]) -> Vec<u8> {
        let ids = [id.parse().unwrap()];
        let (hop_limit, strategy, payload) = (9, Strategy::IMPLICIT, &b"hello"[..]);
        let mut octets = Vec::new();
        FrameBuilder { hop_limit, strategy, route, ids: &ids, options, payload }.write(&mut octets);
        octets
    }

    fn bits(bits: &[u8]) -> Filter {
        let mut filter = Filter::EMPTY;
        bits.iter().for_each(|bit| filter.set(*bit));
        filter
    }

    #[test]
    fn a_frame_is_the_same_after_the_way_there_and_back() {
        for route in [RouteBuf::from(Route::Link), RouteBuf::flat(0, &bits(&[1, 7, 255]))] {
            let mut octets = Vec::new();
            assert!(old(&frame(&route, "/1/2", &[]), &mut octets));
            let back = modern(&octets).unwrap();
            let back = Frame::parse(&back).unwrap();
            assert_eq!((back.route, back.payload), (route.as_ref(), &b"hello"[..]));
            assert_eq!(back.hop_limit, HOP_LIMIT);
            let ids: Vec<Id> = back.ids.map(Id::from_labels).collect();
            assert_eq!(ids, ["/1/2".parse().unwrap()]);
        }
    }

    #[test]
    fn what_the_old_framing_has_no_fields_for_does_not_leave() {
        let flat = RouteBuf::flat(0, &bits(&[1]));
        let mut signed = Vec::new();
        tlv::put_tlv(&mut signed, option::SIGNATURE, &[0; 40]);
        let mut origin = Vec::new();
        tlv::put_tlv(&mut origin, option::ORIGIN, &Label::default().0);
        let mut out = Vec::new();
        assert!(old(&frame(&flat, "/1", &origin), &mut out), "what may be skipped is left out");
        for refused in [
            frame(&RouteBuf::flat(3, &bits(&[1])), "/1", &[]),
            frame(&flat, "/1", &signed),
            frame(&flat, "/ffffffffffffffff/1", &[]),
            b"\x05\x00".to_vec(),
        ] {
            assert!(!old(&refused, &mut out), "{refused:02x?}");
        }
        for malformed in [&[][..], &[0; 32], &[0; 33], &[0xff; 40]] {
            assert!(modern(malformed).is_err());
        }
    }
}
