//! The information-centric calls over the sockets: publish, cast, pump, touch, request, watch,
//! status. Signing is done here, in user space.

use crate::socket::RawSocket;
use crate::{KernelError, family};
use onym_crypto::{Signer, sha256};
use onym_sys::nnet::{self, Kind};
use onym_wire::interest::InterestBuilder;
use onym_wire::{Data, DataBuilder, Name, NameRef};
use rustix::fd::OwnedFd;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::time::Duration;

const PACKET_MAX: usize = 8800;

/// Octets of an object's metadata.
const META_LEN: usize = 40;

/// How long an object's segments are fresh.
const FRESHNESS_MS: u64 = 10_000;

/// A socket that publishes below a prefix; the kernel answers while it is open.
///
/// # Errors
/// [`KernelError::Absent`]; as `bind`.
pub fn publisher(prefix: NameRef<'_>) -> Result<RawSocket, KernelError> {
    let socket = RawSocket::open()?;
    socket.bind(prefix.value())?;
    Ok(socket)
}

fn signed(data: &DataBuilder<'_>, signer: &Signer) -> Result<Vec<u8>, KernelError> {
    let mut packet = Vec::new();
    signer.sign_data(data, &mut packet)?;
    Ok(packet)
}

/// Publishes a Data until the socket closes.
///
/// # Errors
/// As [`RawSocket::publish`]; [`KernelError::Signing`].
pub fn publish(
    socket: &RawSocket,
    data: &DataBuilder<'_>,
    signer: &Signer,
) -> Result<(), KernelError> {
    socket.publish(&signed(data, signer)?, None)
}

/// Publishes a Data for a time.
///
/// # Errors
/// As [`publish`].
pub fn cast(
    socket: &RawSocket,
    data: &DataBuilder<'_>,
    signer: &Signer,
    life: Duration,
) -> Result<(), KernelError> {
    socket.publish(&signed(data, signer)?, Some(life))
}

fn touch_name(name: NameRef<'_>) -> Name {
    let mut touch = name.to_name();
    touch.append_generic("_TOUCH");
    touch
}

/// Publishes an object as segments of at most `segment` octets, with its metadata at
/// `<name>/_TOUCH`; how many segments.
///
/// # Errors
/// As [`publish`]; [`KernelError::Malformed`] for segments of no octets.
pub fn pump(
    socket: &RawSocket,
    name: NameRef<'_>,
    content: &[u8],
    segment: u32,
    signer: &Signer,
) -> Result<u64, KernelError> {
    let size = usize::try_from(segment).ok().filter(|&n| n > 0).ok_or(KernelError::Malformed)?;
    let count = content.len().div_ceil(size).max(1);
    let last = u64::try_from(count - 1).unwrap_or(u64::MAX);
    let mut last_name = Name::default();
    last_name.append_segment(last);
    for n in 0..count {
        let part = content.get(n * size..content.len().min((n + 1) * size)).unwrap_or_default();
        let mut at = name.to_name();
        at.append_segment(u64::try_from(n).unwrap_or(u64::MAX));
        let data = DataBuilder {
            freshness_ms: FRESHNESS_MS,
            final_block_id: last_name.as_ref().last(),
            ..DataBuilder::new(at.as_ref(), part)
        };
        publish(socket, &data, signer)?;
    }
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let name_len = number(name.value().len());
    let mut meta = Vec::with_capacity(META_LEN);
    meta.extend_from_slice(&name_len.to_be_bytes());
    meta.extend_from_slice(sha256(&[content]).get(..4).unwrap_or_default());
    meta.extend_from_slice(&0_u64.to_be_bytes());
    meta.extend_from_slice(&last.to_be_bytes());
    meta.extend_from_slice(&segment.to_be_bytes());
    meta.extend_from_slice(&segment.saturating_add(name_len).saturating_add(100).to_be_bytes());
    meta.extend_from_slice(&u64::try_from(content.len()).unwrap_or(u64::MAX).to_be_bytes());
    let touch = touch_name(name);
    let data = DataBuilder { freshness_ms: 1000, ..DataBuilder::new(touch.as_ref(), &meta) };
    publish(socket, &data, signer)?;
    Ok(last + 1)
}

/// An object, as [`touch`] finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// First octets of the digest of the content.
    pub pin: [u8; 4],
    /// The first segment.
    pub first: u64,
    /// The last segment.
    pub last: u64,
    /// Octets of content of a segment, but for the last.
    pub segment: u32,
    /// Octets of the object.
    pub size: u64,
}

impl Meta {
    fn read(content: &[u8]) -> Option<Self> {
        let content: &[u8; META_LEN] = content.try_into().ok()?;
        let wide = |at: usize| content.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes);
        Some(Self {
            pin: content.get(4..8)?.try_into().ok()?,
            first: wide(8)?,
            last: wide(16)?,
            segment: content.get(24..28)?.try_into().ok().map(u32::from_be_bytes)?,
            size: wide(32)?,
        })
    }
}

/// The metadata of an object; `None` when nobody answered in time, or with a Nack.
///
/// # Errors
/// [`KernelError::Malformed`] when the answer is no metadata; as the calls on sockets.
pub fn touch(name: NameRef<'_>, patience: Duration) -> Result<Option<Meta>, KernelError> {
    let socket = RawSocket::open()?;
    let touch = touch_name(name);
    let mut packet = Vec::new();
    let interest = InterestBuilder {
        must_be_fresh: true,
        lifetime_ms: u64::try_from(patience.as_millis()).ok(),
        ..InterestBuilder::new(touch.as_ref())
    };
    interest.write(&mut packet);
    socket.send(&packet)?;
    let mut room = vec![0; PACKET_MAX];
    let Some(len) = socket.receive(&mut room, patience)? else { return Ok(None) };
    let answer = room.get(..len).unwrap_or_default();
    // A Nack comes as the Interest that it refuses.
    if answer.first() == packet.first() {
        return Ok(None);
    }
    let data = Data::parse(answer).map_err(|_| KernelError::Malformed)?;
    Meta::read(data.content).map(Some).ok_or(KernelError::Malformed)
}

/// The segments of an object in order; the kernel keeps the window, asks again and sorts.
#[derive(Debug)]
pub struct Segments {
    fd: OwnedFd,
    ended: bool,
}

/// Asks for all segments of an object; each is waited for `patience` at most.
///
/// # Errors
/// [`KernelError::Absent`]; as `connect`.
pub fn request(name: NameRef<'_>, patience: Duration) -> Result<Segments, KernelError> {
    let family = family()?;
    let fd = nnet::open(family, Kind::SequencedPackets)?;
    set_socket_timeout(&fd, Timeout::Recv, Some(patience))?;
    nnet::connect(&fd, family, name.value())?;
    Ok(Segments { fd, ended: false })
}

impl Iterator for Segments {
    type Item = Result<Vec<u8>, KernelError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let mut room = vec![0; PACKET_MAX];
        match nnet::receive(&self.fd, &mut room) {
            Ok(received) => {
                self.ended = received.last;
                room.truncate(received.len);
                Some(Ok(room))
            }
            Err(error) => {
                self.ended = true;
                Some(Err(error.into()))
            }
        }
    }
}

/// A socket to which each Interest below a name comes; dropping it ends that.
///
/// # Errors
/// As [`publisher`].
pub fn watch(name: NameRef<'_>) -> Result<RawSocket, KernelError> {
    publisher(name)
}

/// An Interest that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The packet.
    pub interest: Vec<u8>,
    /// The kernel answered it by what is published; told after [`RawSocket::tell_answered`].
    pub satisfied: bool,
}

/// The next Interest of a socket that watches or publishes; `None` when none came in time.
///
/// # Errors
/// As [`RawSocket::receive`].
pub fn status(socket: &RawSocket, patience: Duration) -> Result<Option<Seen>, KernelError> {
    let mut room = vec![0; PACKET_MAX];
    let received = socket.receive_marked(&mut room, patience)?;
    Ok(received.map(|r| {
        room.truncate(r.len);
        Seen { interest: room, satisfied: r.satisfied }
    }))
}
