//! NDN directly on Ethernet (EtherType 0x8624). Needs `CAP_NET_RAW`.

use crate::datagram::{Burst, Layout, receive_error};
use crate::face::{Counters, Face, Flush, Ready, Transport};
use crate::listen::{Incoming, Listener, Peer};
use crate::{FaceError, FaceUri, uri};
use arrayvec::ArrayVec;
use onym_frame::{BufPool, RxFrame, TxPlace, TxQueue};
use onym_sys::mmsg::{self, BATCH_MAX, Message, Source};
use onym_sys::netdev::Interface;
use onym_sys::packet::{HEADER_LEN, PacketSocket, Want};
use onym_wire::PACKET_LEN_MAX;
use onym_wire::mgmt::LinkType;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::collections::HashSet;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, PoisonError};

/// EtherType of NDN.
pub const ETHERTYPE: u16 = 0x8624;
/// The group of all NDN nodes.
pub const GROUP: [u8; 6] = [0x01, 0x00, 0x5E, 0x00, 0x17, 0xAA];

/// Shortest payload of an Ethernet frame; shorter ones are padded with zeroes.
const PAYLOAD_MIN: usize = 46;
const PADDING: [u8; PAYLOAD_MIN] = [0; PAYLOAD_MIN];

/// Stations that have a face of their own, so that the listener leaves their frames to it.
type Known = Arc<Mutex<HashSet<[u8; 6]>>>;

/// A face to one station, or to a group.
#[derive(Debug)]
pub struct EtherFace {
    socket: PacketSocket,
    local: FaceUri,
    remote: FaceUri,
    header: [u8; HEADER_LEN],
    is_group: bool,
    mtu: usize,
    counters: Counters,
    known: Option<(Known, [u8; 6])>,
}

fn own_address(interface: &Interface) -> Result<[u8; 6], FaceError> {
    interface.mac.ok_or_else(|| FaceError::Address {
        what: interface.name.clone(),
        why: "the interface is not an Ethernet".into(),
    })
}

fn open(interface: &Interface, want: Want, octets: usize) -> Result<PacketSocket, FaceError> {
    let socket = PacketSocket::open(interface.index, ETHERTYPE, want)
        .map_err(|e| FaceError::io("opening a packet socket (this needs CAP_NET_RAW)", e))?;
    onym_sys::socket::set_recv_buffer(&socket, octets)
        .map_err(|e| FaceError::io("setting the size of a socket buffer", e))?;
    Ok(socket)
}

impl EtherFace {
    /// A face to `remote`, a station or a group, on `interface`, asking for a receive buffer of
    /// `recv_buffer` octets.
    ///
    /// # Errors
    /// [`FaceError::Address`] when the interface is not an Ethernet; [`FaceError::Io`], for instance
    /// without `CAP_NET_RAW`.
    pub fn open(
        interface: &Interface,
        remote: [u8; 6],
        recv_buffer: usize,
    ) -> Result<Self, FaceError> {
        let own = own_address(interface)?;
        let is_group = remote[0] & 1 == 1;
        let want = if is_group { Want::Group(remote) } else { Want::From(remote) };
        let mut header = [0; HEADER_LEN];
        header[..6].copy_from_slice(&remote);
        header[6..12].copy_from_slice(&own);
        header[12..].copy_from_slice(&ETHERTYPE.to_be_bytes());
        Ok(Self {
            socket: open(interface, want, recv_buffer)?,
            local: uri::dev(&interface.name),
            remote: FaceUri::Ether(remote),
            header,
            is_group,
            mtu: interface.mtu.min(PACKET_LEN_MAX),
            counters: Counters::default(),
            known: None,
        })
    }

    /// Sends one batch; how many frames were taken.
    fn burst(&self, queue: &TxQueue) -> io::Result<usize> {
        let nothing = IoSlice::new(&[]);
        let mut pieces = [[IoSlice::new(&self.header), nothing, nothing, nothing]; BATCH_MAX];
        let mut messages: ArrayVec<Message<'_>, BATCH_MAX> = ArrayVec::new();
        let mut at = TxPlace::default();
        for parts in pieces.iter_mut().take(queue.len()) {
            let gathered = queue.gather(at, 1, &mut parts[1..3]);
            at = gathered.next;
            // Drivers pad, but virtual links do not, and not every receiver takes less.
            let missing = PAYLOAD_MIN.saturating_sub(gathered.octets);
            parts[gathered.slices + 1] = IoSlice::new(&PADDING[..missing]);
            messages.push(Message { parts: &parts[..gathered.slices + 2], segment_len: 0 });
        }
        mmsg::send(&self.socket, &messages)
    }
}

impl Drop for EtherFace {
    fn drop(&mut self) {
        if let Some((known, mac)) = &self.known {
            known.lock().unwrap_or_else(PoisonError::into_inner).remove(mac);
        }
    }
}

/// The number of a sender: its address. Never 0.
fn endpoint(mac: [u8; 6]) -> u64 {
    mac.iter().fold(0, |n, &octet| n << 8 | u64::from(octet)).max(1)
}

impl Face for EtherFace {
    fn local_uri(&self) -> &FaceUri {
        &self.local
    }

    fn remote_uri(&self) -> &FaceUri {
        &self.remote
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        let (enough, is_group) = (out.len() + budget, self.is_group);
        while out.len() < enough {
            let mut burst = Burst {
                fd: self.socket.as_fd(),
                layout: Layout::Ethernet,
                counters: &mut self.counters,
            };
            let more = burst.receive(pool, |source, bytes, counters| match source {
                Source::Link { mac, .. } => {
                    out.push(RxFrame { endpoint: if is_group { endpoint(mac) } else { 0 }, bytes });
                }
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
        while !queue.is_empty() {
            let error = match self.burst(queue) {
                Ok(frames) => {
                    queue.pop(frames);
                    continue;
                }
                Err(e) => e,
            };
            match Errno::from_io_error(&error) {
                Some(Errno::AGAIN) => return Ok(Flush::Blocked),
                Some(Errno::MSGSIZE) => self.counters.out_too_long += 1,
                Some(Errno::NOBUFS) => self.counters.out_refused += 1,
                Some(Errno::NETDOWN) => {
                    self.counters.out_refused += 1;
                    queue.pop(1);
                    return Err(FaceError::Unreachable(error));
                }
                _ => return Err(FaceError::io("sending an Ethernet frame", error)),
            }
            queue.pop(1);
        }
        Ok(Flush::Done)
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn transport(&self) -> Transport {
        if self.is_group { Transport::EtherMulticast } else { Transport::Ether }
    }

    fn link(&self) -> LinkType {
        if self.is_group { LinkType::MultiAccess } else { LinkType::PointToPoint }
    }

    fn queue_octets(&self) -> usize {
        onym_sys::socket::send_queue_octets(&self.socket)
    }

    fn counters(&self) -> Counters {
        self.counters.with_overflow_of(&self.socket)
    }
}

/// Listens for stations that send to us without having a face.
#[derive(Debug)]
pub struct EtherListener {
    socket: PacketSocket,
    interface: Interface,
    uri: FaceUri,
    recv_buffer: usize,
    known: Known,
    counters: Counters,
}

impl EtherListener {
    /// Listens on `interface`. Faces to single stations on this interface should be made by
    /// [`face_for`](Listener::face_for), so that their frames do not come twice.
    ///
    /// # Errors
    /// As [`EtherFace::open`].
    pub fn open(interface: &Interface, recv_buffer: usize) -> Result<Self, FaceError> {
        own_address(interface)?;
        Ok(Self {
            socket: open(interface, Want::Unicast, recv_buffer)?,
            interface: interface.clone(),
            uri: uri::dev(&interface.name),
            recv_buffer,
            known: Known::default(),
            counters: Counters::default(),
        })
    }
}

impl Listener for EtherListener {
    fn local_uri(&self) -> &FaceUri {
        &self.uri
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn accept(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<Incoming>,
    ) -> Result<Ready, FaceError> {
        let enough = out.len() + budget;
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        while out.len() < enough {
            let mut burst = Burst {
                fd: self.socket.as_fd(),
                layout: Layout::Ethernet,
                counters: &mut self.counters,
            };
            let more = burst.receive(pool, |source, bytes, counters| match source {
                Source::Link { mac, .. } if !known.contains(&mac) => {
                    let frame = RxFrame { endpoint: 0, bytes };
                    out.push(Incoming::Frame { peer: Peer::Ether(mac), frame });
                }
                Source::Link { .. } => {}
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

    fn face_for(&mut self, peer: Peer) -> Result<Box<dyn Face>, FaceError> {
        let Peer::Ether(mac) = peer else {
            return Err(FaceError::Address {
                what: format!("{peer:?}"),
                why: "not an Ethernet address".into(),
            });
        };
        let mut face = EtherFace::open(&self.interface, mac, self.recv_buffer)?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(mac);
        face.known = Some((Arc::clone(&self.known), mac));
        Ok(Box::new(face))
    }
}
