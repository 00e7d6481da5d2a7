//! The commands of ndnd's repository, as TLV: joining and leaving a sync group, and blobs, which members
//! of the group publish in it.

use onym_wire::name::{Component, Name, NameRef};
use onym_wire::tlv::{self, Element, Malformed, Reader};
use onym_wire::types;

const SYNC_JOIN: u32 = 7600;
const SYNC_LEAVE: u32 = 7601;
const BLOB_FETCH: u32 = 7602;
const SECURITY: u32 = 7604;
const STATUS: u32 = 657;
const MESSAGE: u32 = 658;
const PROTOCOL: u32 = 401;
const GROUP: u32 = 403;
const MULTICAST: u32 = 404;
const HISTORY: u32 = 420;
const THRESHOLD: u32 = 421;
const BLOB_NAME: u32 = 440;
const BLOB_DATA: u32 = 442;

/// Data in one command, at most.
const DATA_MAX: usize = 64;
/// The least number of publications between two snapshots.
const THRESHOLD_MIN: u64 = 10;

/// Done.
pub const DONE: u64 = 200;
/// The protocol of the group is not known here, or the command is not well formed.
pub const WRONG: u64 = 400;
/// Not admitted.
pub const REFUSED: u64 = 403;
/// It did not work.
pub const FAILED: u64 = 500;

/// A group that is to be joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Join {
    /// Its name.
    pub group: Name,
    /// What Sync Interests begin with, before the name of the group.
    pub multicast: Option<Name>,
    /// Publications between two bundles of a member's history, where there are such.
    pub history: Option<u64>,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// The repository takes part in a group.
    Join(Join),
    /// And does so no longer.
    Leave(Name),
    /// An object is to be fetched.
    Fetch(Name),
    /// These packets are to be kept.
    Keep(Vec<Vec<u8>>),
    /// The group has a protocol that is not known here.
    OtherProtocol,
}

/// A Name element in an element of its own.
fn name_in(element: &Element<'_>) -> Result<Name, Malformed> {
    Ok(NameRef::parse(element.value)?.to_name())
}

/// `/32=ndn/32=svs/v=3`.
fn is_svs3(name: &Name) -> bool {
    let is_word = |at, word: &[u8]| name.as_ref().get(at).is_some_and(|c| c.is_keyword(word));
    let version = name.as_ref().get(2).and_then(Component::as_version);
    name.len() == 3 && is_word(0, b"ndn") && is_word(1, b"svs") && version == Some(3)
}

/// Reads a command.
///
/// # Errors
/// [`Malformed`], also for what is none: publications of applications are told apart by it.
pub fn parse(content: &[u8]) -> Result<Command, Malformed> {
    let (element, rest) = Element::split(content)?;
    if !rest.is_empty() {
        return Err(Malformed::TooLong);
    }
    let mut reader = Reader::new(element.value);
    match element.typ {
        SYNC_JOIN | SYNC_LEAVE => {
            let protocol = reader.optional(PROTOCOL)?.map(|e| name_in(&e)).transpose()?;
            let group = name_in(&reader.expect(GROUP)?)?;
            if group.is_empty() {
                return Err(Malformed::Missing(GROUP));
            }
            if !protocol.is_some_and(|protocol| is_svs3(&protocol)) {
                return Ok(Command::OtherProtocol);
            }
            if element.typ == SYNC_LEAVE {
                return Ok(Command::Leave(group));
            }
            let multicast = reader.optional(MULTICAST)?.map(|e| name_in(&e)).transpose()?;
            let mut history = None;
            if let Some(found) = reader.optional(HISTORY)? {
                let threshold = Reader::new(found.value).expect(THRESHOLD)?.nni()?;
                if threshold < THRESHOLD_MIN {
                    return Err(Malformed::Unexpected(THRESHOLD));
                }
                history = Some(threshold);
            }
            reader.optional(SECURITY)?;
            Ok(Command::Join(Join { group, multicast, history }))
        }
        BLOB_FETCH => {
            if let Some(name) = reader.optional(BLOB_NAME)? {
                return Ok(Command::Fetch(name_in(&name)?));
            }
            let mut packets = Vec::new();
            while let Some(data) = reader.optional(BLOB_DATA)? {
                if packets.len() >= DATA_MAX {
                    return Err(Malformed::TooLong);
                }
                packets.push(data.value.to_vec());
            }
            Ok(Command::Keep(packets))
        }
        other => Err(Malformed::Unexpected(other)),
    }
}

/// Writes the answer to a command.
#[must_use]
pub fn write_answer(status: u64, message: &str) -> Vec<u8> {
    let mut out = Vec::new();
    tlv::put_nni_tlv(&mut out, STATUS, status);
    tlv::put_tlv(&mut out, MESSAGE, message.as_bytes());
    out
}

/// What an Interest with a command carries: one Data, whose content is the command.
#[must_use]
pub fn carrier(parameters: &[u8]) -> Option<&[u8]> {
    Element::parse_as(parameters, types::DATA).ok().map(|element| element.wire)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn octets(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    }

    /// Law: the octets that ndnd's encoder writes are read.
    #[test]
    fn recorded_commands_are_read() {
        let join = octets(
            "fd1db027fd01910f070d20036e646e2003737673360103fd01930707050803677270fd01a405fd01a50164",
        );
        let join = parse(&join);
        let group: Name = "/grp".parse().unwrap();
        let expected = Join { group, multicast: None, history: Some(100) };
        assert_eq!(join, Ok(Command::Join(expected)));
        let fetch = octets("fd1db218fd01b814071208036772700805616c696365080166360101");
        assert_eq!(parse(&fetch), Ok(Command::Fetch("/grp/alice/f/v=1".parse().unwrap())));
        assert_eq!(write_answer(200, ""), octets("fd029101c8fd029200"));
    }

    /// Law: whatever comes is read or refused, and a line of a chat is no command.
    #[test]
    fn what_is_no_command_is_none() {
        for text in ["hello", "", "\u{1}", "fd1db0"] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
        let join = octets(
            "fd1db027fd01910f070d20036e646e2003737673360103fd01930707050803677270fd01a405fd01a50164",
        );
        for len in 0..join.len() {
            assert!(parse(&join[..len]).is_err(), "{len}");
        }
        for (at, octet) in [(21, 4), (14, 1)] {
            let mut other = join.clone();
            other[at] = octet;
            let _ = parse(&other);
        }
        let mut other = join.clone();
        let last = other.len() - 1;
        other[last] = 9;
        assert!(parse(&other).is_err(), "a threshold of nine");
    }
}
