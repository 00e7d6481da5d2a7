//! The two messages that make a ring (spec/shm.md, "Negotiation").

use super::ring::Place;
use crate::FaceError;
use onym_sys::shm::SharedMemory;
use onym_wire::tlv::{self, Element, Malformed, Reader};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// TYPE of both messages; no network-layer packet begins with it.
pub(super) const TYPE: u8 = 0xF3;
const VERSION_TYPE: u32 = 0x81;
const LENGTH_TYPE: u32 = 0x83;
const REFUSAL_TYPE: u32 = 0x85;

/// The version that this crate speaks.
const VERSION: u64 = 1;
/// Shortest and longest data area of one direction, in octets.
pub(super) const LENGTH_MIN: usize = 64 << 10;
pub(super) const LENGTH_MAX: usize = 64 << 20;
/// Longest message.
const MESSAGE_MAX: usize = 512;

/// What one side asks for or answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) version: u64,
    /// Octets of each data area; in a request the length asked for, 0 without.
    pub(super) length: u64,
    /// Why there is no ring.
    pub(super) refusal: Option<String>,
}

impl Message {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::put_nested(&mut out, TYPE.into(), |out| {
            tlv::put_nni_tlv(out, VERSION_TYPE, self.version);
            tlv::put_nni_tlv(out, LENGTH_TYPE, self.length);
            if let Some(why) = &self.refusal {
                tlv::put_tlv(out, REFUSAL_TYPE, why.as_bytes());
            }
        });
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let outer = Element::parse_as(bytes, TYPE.into())?;
        let mut fields = Reader::new(outer.value);
        let version = fields.expect(VERSION_TYPE)?.nni()?;
        let length = fields.expect(LENGTH_TYPE)?.nni()?;
        let refusal = fields.optional(REFUSAL_TYPE)?;
        let refusal = refusal.map(|e| String::from_utf8_lossy(e.value).into_owned());
        Ok(Self { version, length, refusal })
    }
}

/// Sends the request for a ring of `length` octets each way (0: as the node likes).
pub(super) fn ask(socket: impl AsFd, length: usize) -> Result<(), FaceError> {
    let message = Message { version: VERSION, length: length as u64, refusal: None };
    send(socket, &message, None)
}

/// Takes the request that the peer began with; the length it gets.
///
/// # Errors
/// [`FaceError::RingRefused`] with what the peer is to be told; others when it is gone or the
/// request cannot be read.
pub(super) fn hear_request(socket: impl AsFd, length_max: usize) -> Result<usize, FaceError> {
    let mut octets = [0; MESSAGE_MAX];
    let got = match rustix::net::recv(&socket, &mut octets[..], RecvFlags::DONTWAIT) {
        Ok((0, _)) | Err(Errno::CONNRESET) => return Err(FaceError::Closed),
        Ok((got, _)) => got,
        Err(e) => return Err(FaceError::io("reading a request for a ring", e)),
    };
    // Sent by one call, so it comes whole; what would follow belongs into the ring.
    let message = octets.get(..got).ok_or(Malformed::Truncated).and_then(Message::decode)?;
    if message.version != VERSION {
        return Err(FaceError::RingRefused(format!(
            "version {} was asked for, {VERSION} is spoken here",
            message.version
        )));
    }
    let wanted = match usize::try_from(message.length) {
        Ok(0) | Err(_) => length_max,
        Ok(wanted) => wanted.clamp(LENGTH_MIN, length_max),
    };
    // The largest power of two that is not above what was asked for.
    Ok(1 << wanted.ilog2())
}

/// Grants the ring behind `memory`.
pub(super) fn grant(socket: impl AsFd, length: usize, memory: &OwnedFd) -> Result<(), FaceError> {
    let message = Message { version: VERSION, length: length as u64, refusal: None };
    send(socket, &message, Some(memory))
}

/// Says why there is no ring; that it cannot be said does not matter.
pub(super) fn refuse(socket: impl AsFd, why: &str) {
    let message = Message { version: VERSION, length: 0, refusal: Some(why.to_owned()) };
    let _ = send(socket, &message, None);
}

fn send(socket: impl AsFd, message: &Message, fd: Option<&OwnedFd>) -> Result<(), FaceError> {
    let bytes = message.encode();
    let fds: Vec<_> = fd.iter().map(|fd| fd.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let sent = rustix::net::sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, flags);
    match sent {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err(FaceError::RingRefused("the socket is full".into())),
        Err(Errno::PIPE | Errno::CONNRESET) => Err(FaceError::Closed),
        Err(e) => Err(FaceError::io("negotiating a ring", e)),
    }
}

/// Takes the node's answer, when it is there: the length of each data area and the memory.
///
/// # Errors
/// [`FaceError::RingRefused`] when the peer does not give one, or gives one that cannot be.
pub(super) fn hear_answer(socket: impl AsFd) -> Result<Option<(usize, SharedMemory)>, FaceError> {
    let refused = |why: String| FaceError::RingRefused(why);
    let mut octets = [0; MESSAGE_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut pieces = [IoSliceMut::new(&mut octets)];
    let got = match rustix::net::recvmsg(socket, &mut pieces, &mut control, flags) {
        Ok(message) => message.bytes,
        Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        Err(Errno::CONNRESET) => 0,
        Err(e) => return Err(FaceError::io("reading the answer to a request for a ring", e)),
    };
    if got == 0 {
        return Err(refused("the forwarder there does not know what that is".into()));
    }
    let memory = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    let message = octets.get(..got).ok_or(Malformed::Truncated).and_then(Message::decode);
    let message = message.map_err(|e| refused(format!("what was answered is no answer: {e}")))?;
    if let Some(why) = message.refusal {
        return Err(refused(why));
    }
    let length = usize::try_from(message.length).unwrap_or(0);
    if message.version != VERSION
        || !length.is_power_of_two()
        || !(LENGTH_MIN..=LENGTH_MAX).contains(&length)
    {
        return Err(refused(format!("the node offers a ring that cannot be: {message:?}")));
    }
    let memory = memory.ok_or_else(|| refused("the node sent no memory".into()))?;
    let memory = SharedMemory::map(&memory, Place::memory(length))
        .map_err(|e| FaceError::io("mapping the memory of a ring", e))?;
    Ok(Some((length, memory)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_written_is_read_back_and_further_elements_are_ignored_when_they_may_be() {
        for refusal in [None, Some("no".to_owned())] {
            let message = Message { version: 1, length: 1 << 20, refusal };
            assert_eq!(Message::decode(&message.encode()), Ok(message));
        }
        let newer = [0xF3, 11, 0x81, 1, 2, 0x83, 1, 0, 0x88, 3, 1, 2, 3];
        let message = Message { version: 2, length: 0, refusal: None };
        assert_eq!(Message::decode(&newer), Ok(message));
        assert!(Message::decode(&newer[..5]).is_err());
    }
}
