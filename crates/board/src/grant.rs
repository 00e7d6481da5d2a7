//! The one message by which a publisher admits a subscriber (spec/blackboard.md, "Admission").

use crate::BoardError;
use crate::layout::Layout;
use onym_wire::tlv::{self, Element, Malformed, Reader};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// TYPE of the message.
const TYPE: u32 = 0xF4;
const VERSION_TYPE: u32 = 0x81;
const ENTRIES_TYPE: u32 = 0x83;
const SLOTS_TYPE: u32 = 0x85;
const SLOT_WORDS_TYPE: u32 = 0x87;
const FIRST_TYPE: u32 = 0x89;
const REFUSAL_TYPE: u32 = 0x8B;

/// The version that is spoken here.
const VERSION: u64 = 1;
const MESSAGE_MAX: usize = 512;

/// What a publisher says to a subscriber.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// Memory of this shape and a seat, as descriptors; the first publication that it gets.
    Grant { layout: Layout, first: u64 },
    /// Why not.
    Refusal(String),
}

impl Message {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        tlv::put_nested(&mut out, TYPE, |out| {
            tlv::put_nni_tlv(out, VERSION_TYPE, VERSION);
            match self {
                Self::Grant { layout, first } => {
                    tlv::put_nni_tlv(out, ENTRIES_TYPE, layout.entries as u64);
                    tlv::put_nni_tlv(out, SLOTS_TYPE, layout.slots as u64);
                    tlv::put_nni_tlv(out, SLOT_WORDS_TYPE, layout.slot_words as u64);
                    tlv::put_nni_tlv(out, FIRST_TYPE, *first);
                }
                Self::Refusal(why) => tlv::put_tlv(out, REFUSAL_TYPE, why.as_bytes()),
            }
        });
        out
    }

    pub(crate) fn decode(octets: &[u8]) -> Result<Self, Malformed> {
        let outer = Element::parse_as(octets, TYPE)?;
        let mut fields = Reader::new(outer.value);
        if fields.expect(VERSION_TYPE)?.nni()? != VERSION {
            return Err(Malformed::Value(VERSION_TYPE));
        }
        if let Some(why) = fields.optional(REFUSAL_TYPE)? {
            return Ok(Self::Refusal(String::from_utf8_lossy(why.value).into_owned()));
        }
        let mut size = |typ| {
            let number = fields.expect(typ)?.nni()?;
            usize::try_from(number).map_err(|_| Malformed::Value(typ))
        };
        let layout = Layout {
            entries: size(ENTRIES_TYPE)?,
            slots: size(SLOTS_TYPE)?,
            slot_words: size(SLOT_WORDS_TYPE)?,
        };
        let first = fields.expect(FIRST_TYPE)?.nni()?;
        layout.check().ok_or(Malformed::Value(SLOT_WORDS_TYPE))?;
        Ok(Self::Grant { layout, first })
    }
}

/// Sends `message` with descriptors.
pub(crate) fn send(
    socket: impl AsFd,
    message: &Message,
    fds: &[BorrowedFd<'_>],
) -> Result<(), BoardError> {
    let octets = message.encode();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(fds));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    match sendmsg(socket, &[IoSlice::new(&octets)], &mut control, flags) {
        Ok(sent) if sent == octets.len() => Ok(()),
        Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => Err(BoardError::Ended),
        Err(e) => Err(BoardError::io("admitting a subscriber", e)),
    }
}

/// What a subscriber is granted: the shape, the first number, the memory and its seat.
pub(crate) type Granted = (Layout, u64, OwnedFd, OwnedFd);

/// Takes the publisher's answer off the socket; `None` while it is not there.
pub(crate) fn hear(socket: impl AsFd) -> Result<Option<Granted>, BoardError> {
    let mut octets = [0; MESSAGE_MAX];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    // The length of a short message is known before: wake-ups may follow it on the stream.
    let head = match rustix::net::recv(&socket, &mut octets[..2], flags | RecvFlags::PEEK) {
        Ok((2, _)) => usize::from(octets[1]) + 2,
        Ok((0, _)) | Err(Errno::CONNRESET) => return Err(BoardError::Ended),
        Ok(_) | Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
        Err(e) => return Err(BoardError::io("waiting to be admitted", e)),
    };
    let mut pieces = [IoSliceMut::new(&mut octets[..head])];
    let got = recvmsg(&socket, &mut pieces, &mut control, flags)
        .map_err(|e| BoardError::io("being admitted", e))?
        .bytes;
    let mut fds = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    match Message::decode(octets.get(..got).ok_or(Malformed::Truncated)?)? {
        Message::Refusal(why) => Err(BoardError::Refused(why)),
        Message::Grant { layout, first } => match (fds.next(), fds.next()) {
            (Some(memory), Some(seat)) => Ok(Some((layout, first, memory, seat))),
            _ => Err(BoardError::Refused("memory was promised and did not come".to_owned())),
        },
    }
}
