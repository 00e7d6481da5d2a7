//! Records of a capture as octets: the content of `/localhost/onym/dump` (spec/registry.md).

use crate::Seen;
use onym_link::PacketKind;
use onym_tables::FaceId;
use onym_tables::pit::Token;
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

/// What a record has before its packet: it is put into the batch at once.
struct Head {
    octets: [u8; Self::ROOM],
    len: usize,
}

impl Head {
    /// Type and length of the record are written last.
    const START: usize = 4;
    /// There is room for all that is put in: four numbers, a word, three heads, and a token.
    const ROOM: usize = 192;

    const fn new() -> Self {
        Self { octets: [0; Self::ROOM], len: Self::START }
    }

    /// Tells of a packet of `len` octets with its link-layer header, of which so many are kept.
    #[inline(always)]
    fn tell(&mut self, seen: &Seen<'_>, unix_offset: u64, len: usize, kept: usize) {
        // Numbers as wide as they can be, so that each has its place.
        let [a, b, c, d, e, f, g, h] = seen.at.0.saturating_add(unix_offset).to_be_bytes();
        self.put([TIME, 8, a, b, c, d, e, f, g, h]);
        let [a, b, c, d] = seen.face.0.to_be_bytes();
        let is_out = (seen.direction == Direction::Out).into();
        self.put([FACE, 4, a, b, c, d, DIRECTION, 1, is_out, KIND, 1, seen.kind as u8]);
        self.begin(OUTCOME, seen.outcome.word.len());
        self.put_slice(seen.outcome.word.as_bytes());
        if kept < len {
            self.number(LEFT_OUT, (len - kept) as u64);
        }
        self.begin(FRAME, kept);
    }

    #[inline]
    fn put<const N: usize>(&mut self, octets: [u8; N]) {
        let place = self.octets.get_mut(self.len..).and_then(<[u8]>::first_chunk_mut);
        if let Some(place) = place {
            *place = octets;
            self.len += N;
        }
    }

    #[inline]
    fn put_slice(&mut self, octets: &[u8]) {
        if let Some(place) = self.octets.get_mut(self.len..self.len + octets.len()) {
            place.copy_from_slice(octets);
            self.len += octets.len();
        }
    }

    /// A number as an element.
    #[inline]
    fn number(&mut self, typ: u8, number: u64) {
        let (len, bits) = match number {
            0..=0xff => return self.put([typ, 1, number.to_le_bytes()[0]]),
            0x100..=0xffff => (2, 48),
            0x1_0000..=0xffff_ffff => (4, 32),
            _ => (8, 0),
        };
        let end = self.len + 2 + usize::from(len);
        self.put([typ, len]);
        // What is beyond its length is written over by what comes next.
        self.put((number << bits).to_be_bytes());
        self.len = end;
    }

    /// Type and length of an element.
    #[inline]
    fn begin(&mut self, typ: u8, len: usize) {
        self.put_start(&Start::of(typ, len));
    }

    #[inline]
    fn put_start(&mut self, start: &Start) {
        let end = self.len + start.len;
        self.put(start.octets);
        self.len = end;
    }

    /// Octets of the link-layer header of a packet of `len` octets with a token, or none, and nothing
    /// else.
    #[inline]
    fn link_len(token: &Token, len: usize) -> usize {
        match token.len() {
            0 => 0,
            token => {
                let fragment = Start::of(types::LP_FRAGMENT as u8, len).len;
                let fields = 2 + token + fragment;
                Start::of(types::LP_PACKET as u8, fields + len).len + fields
            }
        }
    }

    /// That header.
    #[inline]
    fn link(&mut self, token: &Token, len: usize) {
        if token.is_empty() {
            return;
        }
        let fragment = Start::of(types::LP_FRAGMENT as u8, len);
        self.begin(types::LP_PACKET as u8, 2 + token.len() + fragment.len + len);
        match token.as_ours() {
            Some(token) => {
                self.put([types::LP_PIT_TOKEN as u8, 6]);
                self.put(*token);
            }
            None => {
                self.begin(types::LP_PIT_TOKEN as u8, token.len());
                self.put_slice(token);
            }
        }
        self.put_start(&fragment);
    }

    /// Appends a record that begins so, and goes on with these octets.
    #[inline]
    fn append_to(&mut self, out: &mut Vec<u8>, octets: &[u8], more: &[u8]) {
        let len = self.len - Self::START + octets.len() + more.len();
        let start = Start::of(RECORD as u8, len);
        let [a, b, c, d, ..] = &mut self.octets;
        if start.len == 2 {
            [*c, *d, ..] = start.octets;
        } else {
            [*a, *b, *c, *d] = start.octets;
        }
        out.reserve(start.len + len);
        out.extend_from_slice(
            self.octets.get(Self::START - start.len..self.len).unwrap_or_default(),
        );
        out.extend_from_slice(octets);
        out.extend_from_slice(more);
    }
}

/// Type and length of an element of up to 65,535 octets.
struct Start {
    octets: [u8; 4],
    /// How many of these there are.
    len: usize,
}

impl Start {
    #[inline]
    const fn of(typ: u8, len: usize) -> Self {
        let [.., high, low] = len.to_be_bytes();
        match len {
            0..=252 => Self { octets: [typ, low, 0, 0], len: 2 },
            _ => Self { octets: [typ, 253, high, low], len: 4 },
        }
    }
}

/// Appends what is kept of a packet as a record: at most `snap` octets of it. `unix_offset` is what is
/// between the shell's clock and Unix time, in nanoseconds.
///
/// Not inlined: what a viewer keeps would else be made ready for each of them before the first is asked.
#[inline(never)]
pub(crate) fn append(out: &mut Vec<u8>, seen: &Seen<'_>, snap: usize, unix_offset: u64) {
    let mut head = Head::new();
    // A length beyond has more octets than a head of this kind has room for.
    match seen.fields.only_token().filter(|_| seen.octets.len() <= PACKET_LEN_MAX) {
        Some(token) => {
            let len = Head::link_len(token, seen.octets.len()) + seen.octets.len();
            let kept = len.min(snap);
            head.tell(seen, unix_offset, len, kept);
            let end = head.len + kept;
            head.link(token, seen.octets.len());
            head.len = head.len.min(end);
            head.append_to(out, seen.octets.get(..end - head.len).unwrap_or_default(), &[]);
        }
        None => {
            let mut link = Vec::new();
            seen.fields.header(seen.kind).write(&mut link, seen.octets.len());
            let len = link.len() + seen.octets.len();
            let kept = len.min(snap);
            link.truncate(kept);
            let octets = seen.octets.get(..kept - link.len()).unwrap_or_default();
            head.tell(seen, unix_offset, len, kept);
            head.append_to(out, &link, octets);
        }
    }
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
