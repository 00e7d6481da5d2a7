//! Records of a capture as octets: the content of `/localhost/onym/dump` (spec/registry.md).

use crate::Seen;
use onym_link::PacketKind;
use onym_tables::FaceId;
use onym_wire::tlv::{self, Malformed, Reader};

/// A record; what is in it has odd numbers of its own.
const RECORD: u32 = 246;
/// How many found no room since the batch before.
const MISSED: u32 = 247;
const TIME: u32 = 129;
const FACE: u32 = 131;
const DIRECTION: u32 = 133;
const KIND: u32 = 135;
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

/// What a packet is.
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
    /// When, in nanoseconds: of the shell's clock in a shard, of Unix time in a batch.
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
    /// Appends its octets to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        tlv::put_nested(out, RECORD, |out| {
            tlv::put_nni_tlv(out, TIME, self.time_ns);
            tlv::put_nni_tlv(out, FACE, self.face.0.into());
            tlv::put_nni_tlv(out, DIRECTION, u64::from(self.direction == Direction::Out));
            let number = Kind::ALL.iter().position(|kind| *kind == self.kind).unwrap_or_default();
            tlv::put_nni_tlv(out, KIND, number as u64);
            tlv::put_tlv(out, OUTCOME, self.outcome.as_bytes());
            if self.left_out > 0 {
                tlv::put_nni_tlv(out, LEFT_OUT, self.left_out);
            }
            tlv::put_tlv(out, FRAME, &self.frame);
        });
    }

    fn parse(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let time_ns = reader.expect(TIME)?.nni()?;
        let face = reader.expect(FACE)?;
        let face = u32::try_from(face.nni()?).map_err(|_| malformed())?;
        let direction = match reader.expect(DIRECTION)?.nni()? {
            0 => Direction::In,
            _ => Direction::Out,
        };
        let number = usize::try_from(reader.expect(KIND)?.nni()?).unwrap_or(usize::MAX);
        let kind = *Kind::ALL.get(number).ok_or(malformed())?;
        let outcome = String::from_utf8_lossy(reader.expect(OUTCOME)?.value).into_owned();
        let left_out = reader.optional(LEFT_OUT)?.map_or(Ok(0), |e| e.nni())?;
        let frame = reader.expect(FRAME)?.value.to_vec();
        Ok(Self { time_ns, face: FaceId(face), direction, kind, outcome, left_out, frame })
    }

    /// What `seen` is as a record of at most `snap` octets; its moment is the shell's.
    pub(crate) fn of(seen: &Seen<'_>, snap: usize) -> Self {
        let header = seen.fields.header(seen.kind);
        let len = header.encoded_len(seen.octets.len()) + seen.octets.len();
        let mut frame = Vec::with_capacity(len.min(snap));
        header.write(&mut frame, seen.octets.len());
        let room = snap.saturating_sub(frame.len()).min(seen.octets.len());
        frame.extend_from_slice(seen.octets.get(..room).unwrap_or_default());
        frame.truncate(snap);
        Self {
            time_ns: seen.at.0,
            face: seen.face,
            direction: seen.direction,
            kind: seen.kind,
            outcome: seen.outcome.word.to_owned(),
            left_out: (len - frame.len()) as u64,
            frame,
        }
    }
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
