//! Messages between an application and its node (section 8).

use super::{Id, Label, Role, Route, RouteBuf, Status, Strategy, VERSION, field};
use crate::tlv::{self, Element, Malformed, Reader};
use crate::types;

/// Most octets of payload that the node puts into one message.
pub const PIECE_MAX: usize = 8192;

/// Kinds of messages beside the requests 0 to 7.
pub mod kind {
    use super::super::Kind;

    /// Data of an application.
    pub const PUBLISH: Kind = Kind(8);
    /// The application makes itself known.
    pub const REGISTER: Kind = Kind(9);
    /// The node retains the last publications of an item for who subscribes later.
    pub const RETAIN: Kind = Kind(10);
    /// The application takes everything back.
    pub const LEAVE: Kind = Kind(13);
    /// Data for an application.
    pub const DATA: Kind = Kind(104);
    /// The answer to a request.
    pub const STATUS: Kind = Kind(106);
    /// Publications were not delivered.
    pub const MISSED: Kind = Kind(109);
    /// The application is known.
    pub const REGISTERED: Kind = Kind(110);
    /// Nothing came of an item within its deadline.
    pub const OVERDUE: Kind = Kind(111);
}

/// The part of a publication that a message carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Octets of the whole.
    pub length: u64,
    /// Where this part begins.
    pub offset: u64,
}

/// A message, parsed; fields that are absent are empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message<'a> {
    /// What it is: a request, or one of [`kind`].
    pub kind: super::Kind,
    /// The application's number of its request.
    pub tag: u32,
    /// Octets of the identifier: whole labels.
    pub id: &'a [u8],
    /// Octets of the parent's identifier.
    pub prefix: &'a [u8],
    /// How it is disseminated.
    pub strategy: Strategy,
    /// Of a publication that is told: the strategy that it came by, one without rendezvous; none:
    /// that of the scope that is subscribed (P-74).
    pub came_by: Option<Strategy>,
    /// The answer.
    pub status: Option<Status>,
    /// Octets of a forwarding part, checked.
    pub route: Option<&'a [u8]>,
    /// A node.
    pub node: Option<Label>,
    /// Number of this life of the node.
    pub epoch: u64,
    /// Of the application, or of publications that were missed.
    pub number: u64,
    /// What the node does for its domain.
    pub role: Role,
    /// Most octets of a publication, or octets of this one.
    pub length: Option<u64>,
    /// Where the piece begins.
    pub offset: Option<u64>,
    /// Octets of the identifier of the item whose subscribers are meant.
    pub about: &'a [u8],
    /// For people.
    pub text: &'a [u8],
    /// Applications of the node that got the publication.
    pub local: u64,
    /// Frames for the network.
    pub frames: u64,
    /// Milliseconds for which caches may answer with the publication.
    pub lifetime_ms: u64,
    /// Of an item that is retained: milliseconds within which the next publication follows; 0: there
    /// is no such promise (P-82).
    pub deadline_ms: u32,
    /// Of an item that is retained: what comes first where several wait (P-83).
    pub priority: u8,
    /// Of an item that is retained: its publisher waits for who is behind (P-93).
    pub waits: bool,
    /// What is published.
    pub payload: &'a [u8],
}

/// Octets of the fixed part.
const FIXED: usize = 6;

impl<'a> Message<'a> {
    /// A message of this kind.
    #[must_use]
    pub fn new(kind: super::Kind, tag: u32) -> Self {
        Self { kind, tag, ..Self::default() }
    }

    /// Reads a message, the whole element.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(octets: &'a [u8]) -> Result<Self, Malformed> {
        let value = Element::parse_as(octets, types::PUSH_APP)?.value;
        let (fixed, fields) = value.split_first_chunk::<FIXED>().ok_or(Malformed::Truncated)?;
        let [version, kind, a, b, c, d] = *fixed;
        if version != VERSION {
            return Err(Malformed::Value(types::PUSH_APP));
        }
        let mut message = Self::new(super::Kind(kind), u32::from_be_bytes([a, b, c, d]));
        for element in Reader::new(fields) {
            message.read(element?)?;
        }
        Ok(message)
    }

    fn read(&mut self, element: Element<'a>) -> Result<(), Malformed> {
        let value = element.value;
        match element.typ {
            field::ID => self.id = labels(element)?,
            field::PREFIX => self.prefix = labels(element)?,
            field::ABOUT => self.about = labels(element)?,
            field::STRATEGY if self.kind == kind::DATA => {
                self.came_by = Some(Strategy(octet(element)?));
            }
            field::STRATEGY => self.strategy = Strategy(octet(element)?),
            field::STATUS => self.status = Some(Status(octet(element)?)),
            field::ROLE => self.role = Role(octet(element)?),
            field::ROUTE => {
                let (form, rest) = value.split_first().ok_or(Malformed::Length(element.typ))?;
                if !Route::split(*form, rest)?.1.is_empty() {
                    return Err(Malformed::Trailing);
                }
                self.route = Some(value);
            }
            field::NODE => {
                let label = value.try_into().map_err(|_| Malformed::Length(element.typ))?;
                self.node = Some(Label(label));
            }
            field::EPOCH => self.epoch = element.nni()?,
            field::NUMBER => self.number = element.nni()?,
            field::LENGTH => self.length = Some(element.nni()?),
            field::OFFSET => self.offset = Some(element.nni()?),
            field::PAYLOAD => self.payload = value,
            field::TEXT => self.text = value,
            field::LOCAL => self.local = element.nni()?,
            field::FRAMES => self.frames = element.nni()?,
            field::LIFETIME => self.lifetime_ms = element.nni()?,
            // More than there is room for is more than there may be.
            field::DEADLINE => self.deadline_ms = element.nni()?.try_into().unwrap_or(u32::MAX),
            field::PRIORITY => self.priority = octet(element)?,
            field::WAIT => self.waits = octet(element)? != 0,
            other if tlv::is_critical(other) => return Err(Malformed::UnknownCritical(other)),
            _ => {}
        }
        Ok(())
    }

    /// Which piece of a publication it is; `None` when it is the whole of one.
    ///
    /// # Errors
    /// [`Malformed`] when the piece passes the end.
    pub fn piece(&self) -> Result<Option<Piece>, Malformed> {
        let (Some(length), Some(offset)) = (self.length, self.offset) else {
            return Ok(None);
        };
        let end = offset.checked_add(self.payload.len() as u64);
        match end {
            Some(end) if end <= length => Ok(Some(Piece { length, offset })),
            _ => Err(Malformed::Length(field::OFFSET)),
        }
    }

    /// Its text; what is no UTF-8 is replaced.
    #[must_use]
    pub fn text(&self) -> std::borrow::Cow<'a, str> {
        String::from_utf8_lossy(self.text)
    }

    /// The word of the last label of a request; what is no word is as if it were not there.
    #[must_use]
    pub fn word(&self) -> Option<&'a str> {
        std::str::from_utf8(self.text).ok().filter(|text| super::is_word(text))
    }

    /// Appends the message.
    pub fn write(&self, out: &mut Vec<u8>) {
        tlv::put_nested(out, types::PUSH_APP, |out| self.write_value(out));
    }

    /// The message as octets.
    #[must_use]
    pub fn octets(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64 + self.id.len() + self.payload.len());
        self.write(&mut out);
        out
    }

    fn write_value(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[VERSION, self.kind.0]);
        out.extend_from_slice(&self.tag.to_be_bytes());
        for (typ, octets) in
            [(field::ID, self.id), (field::PREFIX, self.prefix), (field::ABOUT, self.about)]
        {
            if !octets.is_empty() {
                tlv::put_tlv(out, typ, octets);
            }
        }
        if self.kind.is_request() || self.kind == kind::PUBLISH {
            tlv::put_tlv(out, field::STRATEGY, &[self.strategy.0]);
        }
        if let Some(strategy) = self.came_by {
            tlv::put_tlv(out, field::STRATEGY, &[strategy.0]);
        }
        if let Some(status) = self.status {
            tlv::put_tlv(out, field::STATUS, &[status.0]);
        }
        if let Some(route) = self.route {
            tlv::put_tlv(out, field::ROUTE, route);
        }
        if let Some(node) = self.node {
            tlv::put_tlv(out, field::NODE, &node.0);
        }
        if self.role != Role::default() {
            tlv::put_tlv(out, field::ROLE, &[self.role.0]);
        }
        for (typ, number) in [
            (field::EPOCH, self.epoch),
            (field::NUMBER, self.number),
            (field::LOCAL, self.local),
            (field::FRAMES, self.frames),
            (field::LIFETIME, self.lifetime_ms),
        ] {
            if number != 0 {
                tlv::put_nni_tlv(out, typ, number);
            }
        }
        for (typ, number) in [(field::LENGTH, self.length), (field::OFFSET, self.offset)] {
            if let Some(number) = number {
                tlv::put_nni_tlv(out, typ, number);
            }
        }
        if !self.text.is_empty() {
            tlv::put_tlv(out, field::TEXT, self.text);
        }
        if matches!(self.kind, kind::RETAIN | kind::OVERDUE) {
            tlv::put_nni_tlv(out, field::DEADLINE, self.deadline_ms.into());
            tlv::put_tlv(out, field::PRIORITY, &[self.priority]);
        }
        if self.waits {
            tlv::put_tlv(out, field::WAIT, &[1]);
        }
        if matches!(self.kind, kind::PUBLISH | kind::DATA) {
            tlv::put_tlv(out, field::PAYLOAD, self.payload);
        }
    }

    /// Writes `message`, in pieces when its payload is longer than `piece_max`; calls `each` with
    /// every whole message in a buffer that is used again.
    pub fn write_pieces(&self, piece_max: usize, mut each: impl FnMut(&[u8])) {
        let mut out = Vec::with_capacity(64 + self.id.len() + self.payload.len().min(piece_max));
        if self.payload.len() <= piece_max {
            self.write(&mut out);
            return each(&out);
        }
        let length = Some(self.payload.len() as u64);
        let mut offset = 0;
        for payload in self.payload.chunks(piece_max) {
            out.clear();
            let first = if offset == 0 { self.clone() } else { Self::new(self.kind, self.tag) };
            Self { length, offset: Some(offset), payload, ..first }.write(&mut out);
            each(&out);
            offset += payload.len() as u64;
        }
    }

    /// Appends what comes before a payload of `len` octets, in place of the message's own.
    pub fn write_head(&self, len: usize, out: &mut Vec<u8>) {
        let start = out.len();
        Self { payload: &[], ..self.clone() }.write_value(out);
        // The empty payload at the end gives way to one of that length.
        out.truncate(out.len() - 2);
        tlv::put_head(out, field::PAYLOAD, len);
        let value = out.len() - start;
        tlv::put_head(out, types::PUSH_APP, value + len);
        if let Some(message) = out.get_mut(start..) {
            message.rotate_left(value);
        }
    }

    /// What comes before a piece of `len` octets at `offset` of a payload of `total` octets, in a
    /// message of its own.
    #[must_use]
    pub fn piece_head(&self, total: usize, offset: usize, len: usize) -> Vec<u8> {
        let first = if offset == 0 { self.clone() } else { Self::new(self.kind, self.tag) };
        let (length, offset) = (Some(total as u64), Some(offset as u64));
        let mut head = Vec::with_capacity(64 + first.id.len());
        Self { length, offset, ..first }.write_head(len, &mut head);
        head
    }

    /// The identifier; empty when there is none.
    #[must_use]
    pub fn id(&self) -> Id {
        Id::from_octets(self.id).unwrap_or_default()
    }

    /// The parent's identifier.
    #[must_use]
    pub fn prefix(&self) -> Id {
        Id::from_octets(self.prefix).unwrap_or_default()
    }

    /// The item whose subscribers are meant.
    #[must_use]
    pub fn about(&self) -> Option<Id> {
        Id::from_octets(self.about).filter(|id| !id.is_empty())
    }

    /// The forwarding part.
    #[must_use]
    pub fn route(&self) -> Option<RouteBuf> {
        RouteBuf::parse(self.route?).ok()
    }
}

fn labels(element: Element<'_>) -> Result<&[u8], Malformed> {
    let is_whole =
        element.value.len().is_multiple_of(8) && element.value.len() / 8 <= super::DEPTH_MAX;
    if is_whole { Ok(element.value) } else { Err(Malformed::Length(element.typ)) }
}

fn octet(element: Element<'_>) -> Result<u8, Malformed> {
    match element.value {
        [octet] => Ok(*octet),
        _ => Err(Malformed::Length(element.typ)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_reads_as_it_was_written() {
        let id = "/1/2".parse::<Id>().unwrap();
        let message = Message {
            id: id.octets(),
            strategy: Strategy::DOMAIN_LOCAL,
            payload: b"x",
            ..Message::new(kind::PUBLISH, 7)
        };
        let octets = message.octets();
        let read = Message::parse(&octets).unwrap();
        assert_eq!((&read, read.id(), read.piece()), (&message, id.clone(), Ok(None)));
    }

    #[test]
    fn terms_of_what_is_retained_read_as_they_were_written() {
        let (number, lifetime_ms, deadline_ms, priority) = (9, 1000, 250, 7);
        let retain = Message::new(kind::RETAIN, 3);
        let retain = Message { number, lifetime_ms, deadline_ms, priority, ..retain };
        for waits in [false, true] {
            let retain = Message { waits, ..retain.clone() };
            assert_eq!(Message::parse(&retain.octets()), Ok(retain));
        }
    }

    #[test]
    fn who_does_not_know_of_waiting_takes_the_rest_and_sends_none() {
        let retain = Message { number: 9, waits: true, ..Message::new(kind::RETAIN, 3) };
        // Not critical: an earlier node skips it, and the oldest goes.
        assert!(!tlv::is_critical(field::WAIT));
        let known = Message { waits: false, ..retain.clone() }.octets();
        assert_eq!(Message::parse(&known).map(|message| message.waits), Ok(false));
        assert_eq!(retain.octets().len(), known.len() + 3);
    }

    #[test]
    fn pieces_join_to_the_payload() {
        let payload: Vec<u8> = (0..20_000_u32).map(|n| n.to_le_bytes()[0]).collect();
        let id = "/1".parse::<Id>().unwrap();
        let whole = Message { id: id.octets(), payload: &payload, ..Message::new(kind::DATA, 0) };
        let mut joined = Vec::new();
        whole.write_pieces(PIECE_MAX, |octets| {
            assert!(octets.len() <= crate::PACKET_LEN_MAX);
            let message = Message::parse(octets).unwrap();
            let piece = message.piece().unwrap().unwrap();
            assert_eq!((piece.length, piece.offset), (20_000, joined.len() as u64));
            assert_eq!(message.id.is_empty(), piece.offset > 0);
            let (length, len) = (payload.len(), message.payload.len());
            let head = whole.piece_head(length, joined.len(), len);
            assert_eq!([&head[..], message.payload].concat(), octets);
            joined.extend_from_slice(message.payload);
        });
        assert_eq!(joined, payload);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let good = Message::new(kind::REGISTER, 0).octets();
        assert!(Message::parse(&good[..good.len() - 1]).is_err());
        for (field, wrong) in [(1, &[1, 2][..]), (5, &[]), (9, &[9]), (33, &[]), (17, &[1])] {
            let mut value = vec![VERSION, 9, 0, 0, 0, 0];
            tlv::put_tlv(&mut value, field, wrong);
            let mut octets = Vec::new();
            tlv::put_tlv(&mut octets, types::PUSH_APP, &value);
            assert!(Message::parse(&octets).is_err(), "field {field}");
        }
    }
}
