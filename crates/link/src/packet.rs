//! Packets into the data path (`Packet`) and out of it (`Outbox`).

use onym_frame::Buf;
use onym_tables::FaceId;
use onym_tables::pit::Token;
use onym_wire::lp::NackReason;
use onym_wire::types::PacketType;
use std::num::NonZeroU64;
use std::ops::Range;

/// Link-layer fields that came with a packet and matter to forwarding (NDNLPv2).
#[derive(Debug, Clone, Default)]
pub struct LpIn {
    /// PIT token to be returned with the answer.
    pub pit_token: Token,
    /// Congestion mark, 0 when none.
    pub congestion_mark: u8,
    /// The Nack reason when the packet is a Nack.
    pub nack: Option<NackReason>,
    /// Face chosen by a local application; only where local fields are enabled. Between services
    /// of one chain: where the packet entered it, in the words of who took it in.
    pub next_hop_face: Option<NonZeroU64>,
    /// Data must not be cached.
    pub no_cache: bool,
    /// Interest must not be treated as a discovery.
    pub non_discovery: bool,
    /// A prefix announcement (one Data TLV) that came with a Data. On an Interest between services
    /// of one chain: its next hops; on another one the context of its trace, where the face takes it.
    pub prefix_announcement: Option<Buf>,
}

/// One network-layer packet as the link service hands it to the forwarder.
#[derive(Debug, Clone)]
pub struct Packet {
    /// The face it came from.
    pub face: FaceId,
    /// The Interest or Data TLV, whole, without link header. Not yet parsed.
    pub bytes: Buf,
    /// Its link-layer fields.
    pub lp: LpIn,
}

impl Packet {
    /// What it counts as, by its first octet and link-layer fields: what is no Data and no Nack is
    /// taken for an Interest.
    #[inline]
    #[must_use]
    pub fn kind(&self) -> PacketKind {
        self.kind_as(PacketType::of(&self.bytes))
    }

    /// The same for who has looked at its first octet.
    #[inline]
    #[must_use]
    pub const fn kind_as(&self, typ: Option<PacketType>) -> PacketKind {
        match (typ, self.lp.nack) {
            (Some(PacketType::Data), _) => PacketKind::Data,
            (_, Some(_)) => PacketKind::Nack,
            (_, None) => PacketKind::Interest,
        }
    }
}

/// Kinds of packets of the pull half: those that are counted, by face and by verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketKind {
    /// Interest.
    Interest,
    /// Data.
    Data,
    /// Nack: the Interest with a reason.
    Nack,
}

impl PacketKind {
    /// All kinds, in the order of counters.
    pub const ALL: [Self; 3] = [Self::Interest, Self::Data, Self::Nack];

    /// The label of metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Interest => "interest",
            Self::Data => "data",
            Self::Nack => "nack",
        }
    }
}

/// Link-layer fields to send with a packet.
#[derive(Debug, Clone, Default)]
pub struct LpOut {
    /// The downstream's own token on Data and Nack; ours (6 octets) on Interests.
    pub pit_token: Token,
    /// Congestion mark, 0 when none.
    pub congestion_mark: u8,
    /// Nack reason, for [`PacketKind::Nack`].
    pub nack: Option<NackReason>,
    /// Face the packet came from; written only where local fields are enabled. Between services of
    /// one chain: where it entered the chain.
    pub incoming_face: Option<NonZeroU64>,
    /// Data must not be cached downstream.
    pub no_cache: bool,
    /// Interest is not a discovery.
    pub non_discovery: bool,
    /// Prefix announcement to attach to a Data; between services, the next hops of an Interest;
    /// elsewhere the context of the trace of an Interest, which not every face sends.
    pub prefix_announcement: Option<Buf>,
}

/// What leaves by a face, beside its octets.
#[derive(Debug, Clone)]
// The pull packet is the common case; boxing its fields would allocate.
#[allow(clippy::large_enum_variant)]
pub enum Outgoing {
    /// A packet of the pull half, with its link-layer fields.
    Pull(PacketKind, LpOut),
    /// A frame of the push half for a link.
    PushFrame,
    /// A message of the push half for an application.
    App(AppMessage),
}

/// What an application is told; what finds no room in its queue ends differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppMessage {
    /// A publication: queued whole, or missed and counted as such.
    Data,
    /// Anything else, which must arrive: the face of an application that has no room for it ends.
    Control,
}

/// What to send on one face.
#[derive(Debug)]
pub struct Transmit {
    /// Where it goes.
    pub face: FaceId,
    /// What it is.
    pub what: Outgoing,
    /// Where its bytes are.
    pub bytes: Payload,
}

impl Transmit {
    /// Takes it; what stays has no octets and is for no face.
    #[inline]
    #[must_use]
    pub const fn take(&mut self) -> Self {
        let nothing =
            Self { face: FaceId::INVALID, what: Outgoing::PushFrame, bytes: Payload::Arena(0..0) };
        std::mem::replace(self, nothing)
    }

    /// Kind and link-layer fields of a packet of the pull half; `None` for anything else.
    #[inline]
    #[must_use]
    pub const fn as_pull(&self) -> Option<(PacketKind, &LpOut)> {
        match &self.what {
            Outgoing::Pull(kind, lp) => Some((*kind, lp)),
            Outgoing::PushFrame | Outgoing::App(_) => None,
        }
    }
}

/// The bytes of what is to be sent.
#[derive(Debug, Clone)]
pub enum Payload {
    /// In the arena of the [`Outbox`]: what is small or was changed.
    Arena(Range<u32>),
    /// Shared, unchanged: Data.
    Shared(Buf),
}

impl Payload {
    /// The bytes, where `arena` is that of the packet's [`Outbox`].
    #[inline]
    #[must_use]
    pub fn octets<'a>(&'a self, arena: &'a [u8]) -> &'a [u8] {
        match self {
            Self::Arena(range) => &arena[range.start as usize..range.end as usize],
            Self::Shared(buf) => buf,
        }
    }
}

/// What one burst wants sent, in order. Cleared, not freed, after each burst.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Bytes of changed packets.
    pub arena: Vec<u8>,
    /// What to send.
    pub items: Vec<Transmit>,
}

impl Outbox {
    /// The bytes of `item`.
    #[must_use]
    pub fn bytes<'a>(&'a self, item: &'a Transmit) -> &'a [u8] {
        item.bytes.octets(&self.arena)
    }

    /// The octets that `write` appends to the arena.
    #[inline]
    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Range<u32> {
        let start = self.arena.len();
        write(&mut self.arena);
        // A burst that holds 4 GiB would have exhausted the memory before.
        #[allow(clippy::cast_possible_truncation)]
        {
            start as u32..self.arena.len() as u32
        }
    }

    /// A copy of `bytes` in the arena.
    #[inline]
    pub fn copy(&mut self, bytes: &[u8]) -> Payload {
        Payload::Arena(self.write(|arena| arena.extend_from_slice(bytes)))
    }

    /// Appends what `make` returns, which is made where it stays.
    #[inline(always)]
    pub fn push_with(&mut self, make: impl FnOnce() -> Transmit) {
        if self.items.len() == self.items.capacity() {
            return self.grow_with(make);
        }
        self.items.push(make());
    }

    #[cold]
    fn grow_with(&mut self, make: impl FnOnce() -> Transmit) {
        self.items.push(make());
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.items.clear();
    }
}
