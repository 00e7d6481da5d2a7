//! Records of a capture as octets: the content of `/localhost/onym/dump` (spec/registry.md).

use crate::Seen;
use onym_link::PacketKind;
use onym_tables::FaceId;
use onym_wire::tlv::{self, Malformed, Reader};

/// A record; what is in it has odd numbers of its own.
const RECORD: u32 = 246;
/// How many found no room since the batch before.
const MISSED: u32 = 247;
const TIME: u8 = 129;
const FACE: u8 = 131;
const DIRECTION: u8 = 133;
const KIND: u8 = 135;
const OUTCOME: u32 = 137;
const LEFT_OUT: u32 = 139;
const FRAME: u32 = 141;

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
        let outcome = String::from_utf8_lossy(reader.expect(OUTCOME)?.value).into_owned();
        let left_out = reader.optional(LEFT_OUT)?.map_or(Ok(0), |e| e.nni())?;
        let frame = reader.expect(FRAME)?.value.to_vec();
        Ok(Self { time_ns, face: FaceId(face), direction, kind, outcome, left_out, frame })
    }
}

/// The numbers with which a record begins, as elements: they are put into the record at once.
#[derive(Default)]
struct Numbers {
    octets: [[u8; 10]; 4],
    len: usize,
}

impl Numbers {
    #[inline]
    fn put(&mut self, typ: u8, number: u64) {
        let octets = self.octets.as_flattened_mut();
        let (len, bits) = match number {
            0..=0xff => (1, 56),
            0x100..=0xffff => (2, 48),
            0x1_0000..=0xffff_ffff => (4, 32),
            _ => (8, 0),
        };
        // Each finds room: no number has more than ten octets.
        let Some(place) = octets.get_mut(self.len..).and_then(|rest| rest.first_chunk_mut()) else {
            return;
        };
        let [first, second, rest @ ..]: &mut [u8; 10] = place;
        (*first, *second) = (typ, len);
        // What is beyond its length is written over by the next one.
        *rest = (number << bits).to_be_bytes();
        self.len += 2 + usize::from(len);
    }

    #[inline]
    fn octets(&self) -> &[u8] {
        self.octets.as_flattened().get(..self.len).unwrap_or_default()
    }
}

/// Appends what is kept of a packet as a record: at most `snap` octets of it. `unix_offset` is what is
/// between the shell's clock and Unix time, in nanoseconds.
pub(crate) fn append(out: &mut Vec<u8>, seen: &Seen<'_>, snap: usize, unix_offset: u64) {
    let header = seen.fields.header(seen.kind);
    let header_len = header.encoded_len(seen.octets.len());
    let len = header_len + seen.octets.len();
    let kept = len.min(snap);
    let time = seen.at.0.saturating_add(unix_offset);
    let face = u64::from(seen.face.0);
    let direction = u64::from(seen.direction == Direction::Out);
    let (kind, word) = (seen.kind as u64, seen.outcome.word.as_bytes());
    let left_out = (len - kept) as u64;
    let left_out_len = if left_out > 0 { tlv::nni_tlv_len(LEFT_OUT, left_out) } else { 0 };
    let mut numbers = Numbers::default();
    numbers.put(TIME, time);
    numbers.put(FACE, face);
    numbers.put(DIRECTION, direction);
    numbers.put(KIND, kind);
    let value_len = numbers.octets().len()
        + tlv::tlv_len(OUTCOME, word.len())
        + left_out_len
        + tlv::tlv_len(FRAME, kept);
    out.reserve(tlv::tlv_len(RECORD, value_len));
    tlv::put_head(out, RECORD, value_len);
    out.extend_from_slice(numbers.octets());
    tlv::put_tlv(out, OUTCOME, word);
    if left_out > 0 {
        tlv::put_nni_tlv(out, LEFT_OUT, left_out);
    }
    tlv::put_head(out, FRAME, kept);
    let end = out.len() + kept;
    header.write(out, seen.octets.len());
    let room = end.saturating_sub(out.len()).min(seen.octets.len());
    out.extend_from_slice(&seen.octets[..room]);
    out.truncate(end);
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
