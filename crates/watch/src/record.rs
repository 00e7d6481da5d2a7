//! Records of a capture as octets: the content of `/localhost/onym/dump` (spec/registry.md).

use crate::Seen;
use onym_link::PacketKind;
use onym_tables::FaceId;
use onym_tables::pit::{TOKEN_LEN_MAX, Token};
use onym_wire::tlv::{self, Malformed, Reader};
use onym_wire::{PACKET_LEN_MAX, types};

/// A record; what is in it has odd numbers of its own.
const RECORD: u32 = 246;
/// How many found no room since the batch before.
const MISSED: u32 = 247;
const TIME: u8 = 129;
const FACE: u8 = 131;
const DIRECTION: u8 = 133;
const KIND: u8 = 135;
const OUTCOME: u8 = 137;
const LEFT_OUT: u8 = 139;
const FRAME: u8 = 141;

/// What a record or batch that cannot be read is.
const fn malformed() -> Malformed {
    Malformed::Unexpected(RECORD)
}

/// Which way a packet went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// It came.
    In,
    /// It went.
    Out,
}

impl Direction {
    /// `in` or `out`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
        }
    }
}

/// What a packet is; in the order of the numbers of the registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Interest.
    Interest,
    /// Data.
    Data,
    /// Nack.
    Nack,
    /// A frame of the push half.
    Push,
    /// A message between an application and the push half.
    PushApp,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Interest, Self::Data, Self::Nack, Self::Push, Self::PushApp];

    /// Its word in a filter.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Interest => "interest",
            Self::Data => "data",
            Self::Nack => "nack",
            Self::Push => "push",
            Self::PushApp => "push-app",
        }
    }

    /// The kind with this word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }
}

impl From<PacketKind> for Kind {
    fn from(kind: PacketKind) -> Self {
        match kind {
            PacketKind::Interest => Self::Interest,
            PacketKind::Data => Self::Data,
            PacketKind::Nack => Self::Nack,
        }
    }
}

/// A packet that was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// When, in nanoseconds of Unix time.
    pub time_ns: u64,
    /// The face.
    pub face: FaceId,
    /// Whether it came or went.
    pub direction: Direction,
    /// What it is.
    pub kind: Kind,
    /// What became of it.
    pub outcome: String,
    /// Octets at the end of the frame that were left out.
    pub left_out: u64,
    /// The packet, in an LpPacket where it has link-layer fields.
    pub frame: Vec<u8>,
}

impl Record {
    fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let time_ns = reader.expect(TIME.into())?.nni()?;
        let face = reader.expect(FACE.into())?;
        let face = u32::try_from(face.nni()?).map_err(|_| malformed())?;
        let direction = match reader.expect(DIRECTION.into())?.nni()? {
            0 => Direction::In,
            _ => Direction::Out,
        };
        let number = usize::try_from(reader.expect(KIND.into())?.nni()?).unwrap_or(usize::MAX);
        let kind = *Kind::ALL.get(number).ok_or(malformed())?;
        let outcome = String::from_utf8_lossy(reader.expect(OUTCOME.into())?.value).into_owned();
        let left_out = reader.optional(LEFT_OUT.into())?.map_or(Ok(0), |e| e.nni())?;
        let frame = reader.expect(FRAME.into())?.value.to_vec();
        Ok(Self { time_ns, face: FaceId(face), direction, kind, outcome, left_out, frame })
    }
}

/// What a record has before its packet, written from the end: what a length counts is there when it is told.
struct Head<'a> {
    /// What is free, before what there is.
    room: &'a mut [u8],
    /// Octets that follow the head.
    behind: usize,
}

impl<'a> Head<'a> {
    /// One before so many octets.
    const fn before(behind: usize, room: &'a mut [u8; ROOM]) -> Self {
        Self { room, behind }
    }

    /// Octets of the head.
    #[inline(always)]
    const fn len(&self) -> usize {
        ROOM - self.room.len()
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, octets: [u8; N]) {
        if let Some((rest, place)) = std::mem::take(&mut self.room).split_last_chunk_mut() {
            *place = octets;
            self.room = rest;
        }
    }

    #[inline(always)]
    fn put_slice(&mut self, octets: &[u8]) {
        let room = std::mem::take(&mut self.room);
        if let Some(at) = room.len().checked_sub(octets.len()) {
            let (rest, place) = room.split_at_mut(at);
            place.copy_from_slice(octets);
            self.room = rest;
        }
    }

    /// Makes all that there is the value of an element.
    #[inline(always)]
    fn wrap(&mut self, typ: u8) {
        let len = self.len() + self.behind;
        let [.., high, low] = len.to_be_bytes();
        if len <= 252 {
            self.put([typ, low]);
        } else {
            self.put([typ, 253, high, low]);
        }
    }

    /// The link-layer header of the packet behind, where it has a token and nothing else.
    #[inline(always)]
    fn link(&mut self, token: &Token) {
        self.wrap(types::LP_FRAGMENT as u8);
        match token.as_ours() {
            Some(token) => self.put(*token),
            None => self.put_slice(token),
        }
        let [.., len] = token.len().to_be_bytes();
        self.put([types::LP_PIT_TOKEN as u8, len]);
        self.wrap(types::LP_PACKET as u8);
    }

    /// Tells of a packet, of which what there is was kept and so many octets were not.
    #[inline(always)]
    fn tell(&mut self, seen: &Seen<'_>, unix_offset: u64, left_out: usize) {
        self.wrap(FRAME);
        if left_out > 0 {
            let [.., a, b, c, d] = left_out.to_be_bytes();
            self.put([LEFT_OUT, 4, a, b, c, d]);
        }
        let word = seen.outcome.word.as_bytes();
        let word = word.get(..WORD_MAX).unwrap_or(word);
        self.put_slice(word);
        let [.., len] = word.len().to_be_bytes();
        let is_out = (seen.direction == Direction::Out).into();
        self.put([DIRECTION, 1, is_out, KIND, 1, seen.kind as u8, OUTCOME, len]);
        // Numbers as wide as they can be, so that each has its place.
        self.put(seen.face.0.to_be_bytes());
        self.put([FACE, 4]);
        self.put(seen.at.0.saturating_add(unix_offset).to_be_bytes());
        self.put([TIME, 8]);
        self.wrap(RECORD as u8);
    }
}

/// There is room in a head for four numbers, a word of [`WORD_MAX`] octets, five heads, and a token.
const ROOM: usize = 128;
/// Octets of the word of an outcome that are told: more than any has.
const WORD_MAX: usize = 40;
/// Octets of a link-layer header with a token and nothing else.
const LINK_MAX: usize = 4 + 2 + TOKEN_LEN_MAX + 4;

/// Appends what is kept of a packet as a record: at most `snap` octets of it. `unix_offset` is what is
/// between the shell's clock and Unix time, in nanoseconds.
///
/// Not inlined: what a viewer keeps would else be made ready for each of them before the first is asked.
#[inline(never)]
pub(crate) fn append(out: &mut Vec<u8>, seen: &Seen<'_>, snap: usize, unix_offset: u64) {
    // A length beyond has more octets than there is room for.
    let is_whole = seen.octets.len() <= snap.saturating_sub(LINK_MAX).min(PACKET_LEN_MAX);
    match seen.fields.only_token().filter(|_| is_whole) {
        Some(token) => {
            let mut room = [0; ROOM];
            let mut head = Head::before(seen.octets.len(), &mut room);
            if !token.is_empty() {
                head.link(token);
            }
            head.tell(seen, unix_offset, 0);
            let start = head.room.len();
            out.reserve(ROOM + seen.octets.len());
            out.extend_from_slice(room.get(start..).unwrap_or_default());
            out.extend_from_slice(seen.octets);
        }
        None => append_cut(out, seen, snap, unix_offset),
    }
}

/// The same of a packet with other fields, or of which not all is kept.
#[cold]
fn append_cut(out: &mut Vec<u8>, seen: &Seen<'_>, snap: usize, unix_offset: u64) {
    let mut frame = Vec::new();
    seen.fields.header(seen.kind).write(&mut frame, seen.octets.len());
    let len = frame.len() + seen.octets.len();
    let octets = seen.octets.get(..snap.saturating_sub(frame.len())).unwrap_or(seen.octets);
    frame.truncate(snap);
    frame.extend_from_slice(octets);
    let mut room = [0; ROOM];
    let mut head = Head::before(frame.len(), &mut room);
    head.tell(seen, unix_offset, len - frame.len());
    let start = head.room.len();
    out.extend_from_slice(room.get(start..).unwrap_or_default());
    out.extend_from_slice(&frame);
}

/// The records of several threads as one batch, by their times; each thread's are in order.
#[must_use]
pub fn merge(mut batches: Vec<Vec<u8>>) -> Vec<u8> {
    batches.retain(|batch| !batch.is_empty());
    if batches.len() < 2 {
        return batches.pop().unwrap_or_default();
    }
    let mut records = Vec::new();
    for batch in &batches {
        let mut rest = &batch[..];
        while let Ok((element, after)) = tlv::Element::split(rest) {
            let time = Reader::new(element.value).expect(TIME.into()).and_then(|time| time.nni());
            records.push((time.unwrap_or_default(), element.wire));
            rest = after;
        }
    }
    records.sort_by_key(|(time, _)| *time);
    records.into_iter().map(|(_, wire)| wire).collect::<Vec<_>>().concat()
}

/// Appends how many records found no room; nothing for none.
pub fn write_missed(out: &mut Vec<u8>, missed: u64) {
    if missed > 0 {
        tlv::put_nni_tlv(out, MISSED, missed);
    }
}

/// The records of a batch, and how many found no room.
///
/// # Errors
/// The octets are no batch.
pub fn parse(mut batch: &[u8]) -> Result<(Vec<Record>, u64), Malformed> {
    let (mut records, mut missed) = (Vec::new(), 0_u64);
    while !batch.is_empty() {
        let (element, rest) = tlv::Element::split(batch)?;
        match element.typ {
            RECORD => records.push(Record::parse(element.value)?),
            MISSED => missed = missed.saturating_add(element.nni()?),
            _ => return Err(malformed()),
        }
        batch = rest;
    }
    Ok((records, missed))
}
