//! Generic netlink: one request, its answers, its acknowledgement.

use crate::KernelError;
use crate::generated::FAMILY;
use rustix::fd::OwnedFd;
use rustix::net::netlink::{GENERIC, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use std::io;

const ERROR: u16 = 2;
const DONE: u16 = 3;
const CONTROL: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;
const REQUEST: u16 = 1;
const ACK: u16 = 4;
const DUMP: u16 = 0x300;
const ACK_TLVS: u16 = 0x200;
const HEADER: usize = 16;
const GENERIC_HEADER: usize = 4;

/// One answer: its attributes in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer(Vec<(u16, Vec<u8>)>);

impl Answer {
    fn parse(mut octets: &[u8]) -> Self {
        let mut found = Vec::new();
        while let Some((head, _)) = octets.split_at_checked(4) {
            let len = usize::from(u16::from_ne_bytes([head[0], head[1]]));
            let kind = u16::from_ne_bytes([head[2], head[3]]) & 0x3fff;
            let Some(value) = octets.get(4..len) else { break };
            found.push((kind, value.to_vec()));
            octets = octets.get(aligned(len)..).unwrap_or_default();
        }
        Self(found)
    }

    /// The octets of an attribute.
    #[must_use]
    pub fn bytes(&self, kind: u16) -> Option<&[u8]> {
        self.0.iter().find(|(k, _)| *k == kind).map(|(_, v)| v.as_slice())
    }

    /// An attribute that is a number of any width; 0 without.
    #[must_use]
    pub fn number(&self, kind: u16) -> u64 {
        let bytes = self.bytes(kind).unwrap_or_default();
        let mut wide = [0_u8; 8];
        for (to, from) in wide.iter_mut().zip(bytes) {
            *to = *from;
        }
        // Numbers are in the machine's order; every machine the module runs on is little-endian.
        u64::from_le_bytes(wide)
    }

    /// An attribute that is text.
    #[must_use]
    pub fn text(&self, kind: u16) -> String {
        let bytes = self.bytes(kind).unwrap_or_default();
        String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
    }
}

fn aligned(len: usize) -> usize {
    (len + 3) & !3
}

/// A request that is put together.
#[derive(Debug)]
pub struct Request {
    octets: Vec<u8>,
}

impl Request {
    /// A request of a command without attributes.
    #[must_use]
    pub fn new(command: u8) -> Self {
        let mut octets = vec![0; HEADER];
        octets.extend([command, 1, 0, 0]);
        Self { octets }
    }

    /// Adds an attribute.
    #[must_use]
    pub fn put(mut self, kind: u16, value: &[u8]) -> Self {
        let len = u16::try_from(4 + value.len()).unwrap_or(u16::MAX);
        self.octets.extend(len.to_ne_bytes());
        self.octets.extend(kind.to_ne_bytes());
        self.octets.extend(value);
        self.octets.resize(aligned(self.octets.len()), 0);
        self
    }

    /// The request as octets, which is not answered unless it fails.
    #[must_use]
    pub fn unanswered(mut self, family: u16) -> Vec<u8> {
        self.finish(family, REQUEST, 0);
        self.octets
    }

    fn finish(&mut self, family: u16, flags: u16, sequence: u32) {
        let len = u32::try_from(self.octets.len()).unwrap_or(u32::MAX);
        self.octets[..4].copy_from_slice(&len.to_ne_bytes());
        self.octets[4..6].copy_from_slice(&family.to_ne_bytes());
        self.octets[6..8].copy_from_slice(&flags.to_ne_bytes());
        self.octets[8..12].copy_from_slice(&sequence.to_ne_bytes());
    }
}

/// A connection to the family.
#[derive(Debug)]
pub struct Netlink {
    fd: OwnedFd,
    family: u16,
    sequence: u32,
}

impl Netlink {
    /// Opens a connection.
    ///
    /// # Errors
    /// [`KernelError::Absent`] without the module.
    pub fn open() -> Result<Self, KernelError> {
        let fd = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(GENERIC),
        )?;
        rustix::net::bind(&fd, &SocketAddrNetlink::new(0, 0))?;
        onym_sys::nnet::explain_refusals(&fd)?;
        let mut netlink = Self { fd, family: CONTROL, sequence: 0 };
        let mut name = FAMILY.as_bytes().to_vec();
        name.push(0);
        let found = netlink.ask(Request::new(GET_FAMILY).put(FAMILY_NAME, &name), 0);
        let answers = found.map_err(|_| KernelError::Absent)?;
        let id = answers.first().map_or(0, |a| a.number(FAMILY_ID));
        netlink.family = u16::try_from(id).map_err(|_| KernelError::Malformed)?;
        if netlink.family == 0 { Err(KernelError::Absent) } else { Ok(netlink) }
    }

    /// Sends a request and returns its answers.
    ///
    /// # Errors
    /// [`KernelError::Refused`] with the kernel's words.
    pub fn call(&mut self, request: Request) -> Result<Vec<Answer>, KernelError> {
        self.ask(request, ACK)
    }

    /// Asks for a whole table.
    ///
    /// # Errors
    /// As [`Self::call`].
    pub fn dump(&mut self, command: u8) -> Result<Vec<Answer>, KernelError> {
        self.ask(Request::new(command), DUMP)
    }

    fn ask(&mut self, mut request: Request, flags: u16) -> Result<Vec<Answer>, KernelError> {
        self.sequence += 1;
        let flags = REQUEST | if flags == 0 { ACK } else { flags };
        request.finish(self.family, flags, self.sequence);
        rustix::net::send(&self.fd, &request.octets, SendFlags::empty())?;
        let mut answers = Vec::new();
        let mut room = vec![0_u8; 32768];
        loop {
            let (len, _) = rustix::net::recv(&self.fd, room.as_mut_slice(), RecvFlags::empty())?;
            if self.read(&room[..len], &mut answers)? {
                return Ok(answers);
            }
        }
    }

    /// Reads what came; true when it was the last of this request.
    fn read(&self, octets: &[u8], answers: &mut Vec<Answer>) -> Result<bool, KernelError> {
        for message in messages(octets) {
            let Message { kind, flags, sequence, body } = message?;
            if sequence == self.sequence {
                match kind {
                    ERROR => return verdict(body, flags).map(|()| true),
                    DONE => return Ok(true),
                    _ => answers.push(Answer::parse(body.get(GENERIC_HEADER..).unwrap_or(&[]))),
                }
            }
        }
        Ok(false)
    }

    /// The socket, and the number of the family; what was asked by it has been answered.
    pub(crate) fn into_parts(self) -> (OwnedFd, u16) {
        (self.fd, self.family)
    }
}

/// A message as it came.
struct Message<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    body: &'a [u8],
}

/// The messages of what came at once; one that claims too much ends them.
fn messages(mut octets: &[u8]) -> impl Iterator<Item = Result<Message<'_>, KernelError>> {
    std::iter::from_fn(move || {
        let (head, _) = octets.split_first_chunk::<HEADER>()?;
        let word = |at: usize| u32::from_ne_bytes(std::array::from_fn(|n| head[at + n]));
        let half = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
        let body = usize::try_from(word(0)).ok().and_then(|len| octets.get(HEADER..len));
        let Some(body) = body else {
            octets = &[];
            return Some(Err(KernelError::Malformed));
        };
        octets = octets.get(aligned(HEADER + body.len())..).unwrap_or_default();
        Some(Ok(Message { kind: half(4), flags: half(6), sequence: word(8), body }))
    })
}

/// The command and the attributes of each message of `family` that nobody asked for.
pub fn events(octets: &[u8], family: u16) -> impl Iterator<Item = (u8, Answer)> {
    messages(octets).map_while(Result::ok).filter_map(move |message| {
        let (head, attributes) = message.body.split_first_chunk::<GENERIC_HEADER>()?;
        (message.kind == family).then(|| (head[0], Answer::parse(attributes)))
    })
}

/// What an acknowledgement says.
fn verdict(body: &[u8], flags: u16) -> Result<(), KernelError> {
    let code = body.get(..4).ok_or(KernelError::Malformed)?;
    let code = i32::from_ne_bytes([code[0], code[1], code[2], code[3]]);
    if code == 0 {
        return Ok(());
    }
    // Behind the code: the header of the request, then attributes, of which 1 is text.
    let said = if flags & ACK_TLVS != 0 {
        Answer::parse(body.get(4 + HEADER..).unwrap_or(&[])).text(1)
    } else {
        String::new()
    };
    let text = if said.is_empty() { "the kernel refused".to_owned() } else { said };
    Err(KernelError::Refused { text, error: io::Error::from_raw_os_error(-code) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_put() {
        let request = Request::new(7).put(3, &[1, 2, 3]).put(5, &9_u32.to_ne_bytes());
        let answer = Answer::parse(&request.octets[HEADER + GENERIC_HEADER..]);
        assert_eq!(answer.bytes(3), Some(&[1, 2, 3][..]));
        assert_eq!(answer.number(5), 9);
        assert_eq!(answer.bytes(6), None);
    }

    #[test]
    fn a_message_that_claims_too_much_ends_the_list() {
        let whole = Request::new(7).put(3, b"abc").unanswered(30);
        let twice = [&whole[..], &whole[..]].concat();
        assert_eq!(events(&twice, 30).map(|(command, _)| command).collect::<Vec<_>>(), [7, 7]);
        assert_eq!(events(&twice, 31).count(), 0, "of another family");
        for len in 0..whole.len() {
            assert_eq!(events(&whole[..len], 30).count(), 0, "cut at {len}");
        }
        let mut wrong = whole;
        for len in 0..16 {
            wrong[0] = len;
            assert_eq!(events(&wrong, 30).count(), 0, "a length of {len}");
        }
    }

    #[test]
    fn an_attribute_that_claims_too_much_ends_the_list() {
        assert_eq!(Answer::parse(&[200, 0, 1, 0, 7]), Answer::default());
        assert_eq!(Answer::parse(&[0, 0, 1, 0]), Answer::default());
    }
}
