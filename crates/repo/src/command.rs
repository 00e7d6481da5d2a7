//! The commands of ndn-python-repo 0.4, as TLV.

use onym_crypto::sha256;
use onym_wire::name::{Name, NameRef};
use onym_wire::tlv::{self, Element, Malformed, Reader};
use onym_wire::types;

const NOTIFY_NONCE: u32 = 128;
const START: u32 = 204;
const END: u32 = 205;
const REQUEST_NO: u32 = 206;
const STATUS: u32 = 208;
const INSERTED: u32 = 209;
const DELETED: u32 = 210;
const HINT: u32 = 211;
const REGISTER: u32 = 212;
const OBJECT: u32 = 301;
const OBJECT_RESULT: u32 = 302;

/// Objects in one command, at most.
pub const OBJECTS_MAX: usize = 64;

/// Status: waits.
pub const QUEUED: u64 = 100;
/// Status: done.
pub const DONE: u64 = 200;
/// Status: runs.
pub const RUNNING: u64 = 300;
/// Status: failed.
pub const FAILED: u64 = 400;
/// Status: malformed or not allowed.
pub const REFUSED: u64 = 403;
/// Status: no such command.
pub const UNKNOWN: u64 = 404;
/// Status: the store takes no more of it, as it is full, its owner has what one may have, or its disk
/// cannot be written.
pub const NO_ROOM: u64 = 507;

/// One object of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectParam {
    /// Its name, without the segment.
    pub name: Name,
    /// Where Interests for it can be forwarded to.
    pub hint: Vec<Name>,
    /// First segment.
    pub start: Option<u64>,
    /// Last segment.
    pub end: Option<u64>,
    /// A prefix that the repository is to register.
    pub register: Option<Name>,
}

fn name_in(value: &[u8]) -> Result<Name, Malformed> {
    Ok(NameRef::parse(value)?.to_name())
}

fn put_name(out: &mut Vec<u8>, typ: u32, name: &Name) {
    tlv::put_nested(out, typ, |out| name.as_ref().write_tlv(out));
}

/// All names that `value` concatenates.
fn names_in(value: &[u8]) -> Result<Vec<Name>, Malformed> {
    Reader::new(value).map(|e| name_in(e?.wire)).collect()
}

/// Reads a command: its objects.
///
/// # Errors
/// [`Malformed`], also for more than [`OBJECTS_MAX`] objects and for what is not an object.
pub fn parse_objects(content: &[u8]) -> Result<Vec<ObjectParam>, Malformed> {
    let mut objects = Vec::new();
    for element in Reader::new(content) {
        let element = element?;
        if element.typ != OBJECT {
            return Err(Malformed::Unexpected(element.typ));
        }
        if objects.len() >= OBJECTS_MAX {
            return Err(Malformed::TooLong);
        }
        let mut reader = Reader::new(element.value);
        let name = NameRef::parse_value(reader.expect(types::NAME)?.value)?.to_name();
        let mut object = ObjectParam { name, ..ObjectParam::default() };
        if let Some(hint) = reader.optional(HINT)? {
            object.hint = names_in(hint.value)?;
        }
        object.start = reader.optional(START)?.map(|e| e.nni()).transpose()?;
        object.end = reader.optional(END)?.map(|e| e.nni()).transpose()?;
        object.register = reader.optional(REGISTER)?.map(|e| name_in(e.value)).transpose()?;
        if let Some(rest) = reader.next() {
            return Err(Malformed::Unexpected(rest?.typ));
        }
        if matches!((object.start, object.end), (Some(start), Some(end)) if start > end) {
            return Err(Malformed::OutOfOrder(END));
        }
        objects.push(object);
    }
    if objects.is_empty() { Err(Malformed::Missing(OBJECT)) } else { Ok(objects) }
}

/// Writes a command.
#[must_use]
pub fn write_objects(objects: &[ObjectParam]) -> Vec<u8> {
    let mut out = Vec::new();
    for object in objects {
        tlv::put_nested(&mut out, OBJECT, |out| {
            object.name.as_ref().write_tlv(out);
            if !object.hint.is_empty() {
                tlv::put_nested(out, HINT, |out| {
                    object.hint.iter().for_each(|name| name.as_ref().write_tlv(out));
                });
            }
            for (typ, number) in [(START, object.start), (END, object.end)] {
                if let Some(number) = number {
                    tlv::put_nni_tlv(out, typ, number);
                }
            }
            if let Some(register) = &object.register {
                put_name(out, REGISTER, register);
            }
        });
    }
    out
}

/// The number of a command.
#[must_use]
pub fn request_no(command: &[u8]) -> [u8; 32] {
    sha256(&[command])
}

/// Reads the question how far a command is.
///
/// # Errors
/// [`Malformed`].
pub fn parse_query(parameters: &[u8]) -> Result<[u8; 32], Malformed> {
    let element = Element::parse_as(parameters, REQUEST_NO)?;
    element.value.try_into().map_err(|_| Malformed::NniLength)
}

/// Writes that question.
#[must_use]
pub fn write_query(number: &[u8; 32]) -> Vec<u8> {
    let mut out = Vec::new();
    tlv::put_tlv(&mut out, REQUEST_NO, number);
    out
}

/// How far one object is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectResult {
    /// Its name.
    pub name: Name,
    /// Its status.
    pub status: u64,
    /// Packets inserted.
    pub inserted: Option<u64>,
    /// Packets deleted.
    pub deleted: Option<u64>,
}

/// Writes how far a command is.
#[must_use]
pub fn write_result(status: u64, objects: &[ObjectResult]) -> Vec<u8> {
    let mut out = Vec::new();
    tlv::put_nni_tlv(&mut out, STATUS, status);
    for object in objects {
        tlv::put_nested(&mut out, OBJECT_RESULT, |out| {
            object.name.as_ref().write_tlv(out);
            tlv::put_nni_tlv(out, STATUS, object.status);
            for (typ, number) in [(INSERTED, object.inserted), (DELETED, object.deleted)] {
                if let Some(number) = number {
                    tlv::put_nni_tlv(out, typ, number);
                }
            }
        });
    }
    out
}

/// Reads how far a command is.
///
/// # Errors
/// [`Malformed`].
pub fn parse_result(content: &[u8]) -> Result<(u64, Vec<ObjectResult>), Malformed> {
    let mut reader = Reader::new(content);
    let status = reader.expect(STATUS)?.nni()?;
    let mut objects = Vec::new();
    for element in reader {
        let element = element?;
        if element.typ != OBJECT_RESULT {
            continue;
        }
        let mut inner = Reader::new(element.value);
        objects.push(ObjectResult {
            name: NameRef::parse_value(inner.expect(types::NAME)?.value)?.to_name(),
            status: inner.expect(STATUS)?.nni()?,
            inserted: inner.optional(INSERTED)?.map(|e| e.nni()).transpose()?,
            deleted: inner.optional(DELETED)?.map(|e| e.nni()).transpose()?,
        });
    }
    Ok((status, objects))
}

/// That a command can be fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notify {
    /// Under which prefix.
    pub publisher: Name,
    /// What tells it from others.
    pub nonce: Vec<u8>,
    /// Where Interests for it can be forwarded to.
    pub hint: Vec<Name>,
}

impl Notify {
    /// Reads the parameters of a notification.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(parameters: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(parameters);
        let publisher = NameRef::parse_value(reader.expect(types::NAME)?.value)?.to_name();
        let nonce = reader.expect(NOTIFY_NONCE)?.value.to_vec();
        let hint = reader.optional(HINT)?.map(|e| names_in(e.value)).transpose()?;
        Ok(Self { publisher, nonce, hint: hint.unwrap_or_default() })
    }

    /// Writes them.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.publisher.as_ref().write_tlv(&mut out);
        tlv::put_tlv(&mut out, NOTIFY_NONCE, &self.nonce);
        if !self.hint.is_empty() {
            tlv::put_nested(&mut out, HINT, |out| {
                self.hint.iter().for_each(|name| name.as_ref().write_tlv(out));
            });
        }
        out
    }

    /// Where the command is, for a topic such as `/testrepo/insert`.
    #[must_use]
    pub fn message_name(&self, topic: NameRef<'_>) -> Name {
        let mut name = self.publisher.clone();
        name.append_generic("msg").append(topic).append_generic(&self.nonce);
        name
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use onym_crypto::digest::hex;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    fn insert() -> ObjectParam {
        ObjectParam {
            name: name("/data/f/v=1"),
            hint: vec![name("/edge")],
            start: Some(0),
            end: Some(299),
            register: Some(name("/data")),
        }
    }

    #[test]
    fn commands_are_written_as_ndn_python_repo_writes_them() {
        let command = write_objects(&[insert()]);
        assert_eq!(
            hex(&command),
            "fd012d29070c080464617461080166360101d3080706080465646765cc0100cd02012bd4080706080464617461"
        );
        assert_eq!(parse_objects(&command).unwrap(), [insert()]);
        let number = request_no(&command);
        let expected = "701de294e1402c5bd42f1294a107ad9c08273bdc2c0f357919f2905fff4fa6e5";
        assert_eq!(hex(&number), expected);
        assert_eq!(hex(&write_query(&number)), format!("ce20{expected}"));
        assert_eq!(parse_query(&write_query(&number)).unwrap(), number);
        let result = ObjectResult {
            name: name("/data/f/v=1"),
            status: DONE,
            inserted: Some(300),
            deleted: None,
        };
        let wire = write_result(DONE, std::slice::from_ref(&result));
        assert_eq!(hex(&wire), "d001c8fd012e15070c080464617461080166360101d001c8d102012c");
        assert_eq!(parse_result(&wire).unwrap(), (DONE, vec![result]));
    }

    #[test]
    fn a_notification_names_where_its_command_is() {
        let notify =
            Notify { publisher: name("/pub"), nonce: vec![1, 2, 3, 4], hint: vec![name("/edge")] };
        let wire = notify.write();
        assert_eq!(hex(&wire), "07050803707562800401020304d3080706080465646765");
        assert_eq!(Notify::parse(&wire).unwrap(), notify);
        let at = notify.message_name(name("/testrepo/insert").as_ref()).to_string();
        assert_eq!(at, "/pub/msg/testrepo/insert/%01%02%03%04");
    }

    #[test]
    fn hostile_commands_are_malformed() {
        let mut range = insert();
        range.start = Some(300);
        assert!(parse_objects(&write_objects(&[range])).is_err(), "ends before it starts");
        assert!(parse_objects(&write_objects(&vec![insert(); 65])).is_err(), "too many");
        assert!(parse_objects(&[]).is_err());
        let wire = write_objects(&[insert()]);
        for len in 0..wire.len() {
            assert!(parse_objects(&wire[..len]).is_err(), "{len} octets");
        }
    }
}
