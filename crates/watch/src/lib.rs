#![doc = include_str!("../README.md")]

mod ailing;
mod capture;
mod copies;
mod filter;
mod hidden;
pub mod record;
mod sampler;
mod spans;
mod traffic;

pub use ailing::{AILING_MAX, Ailing, Ailment, Condition, ailing};
pub use capture::{CAPTURES_MAX, Capture, LEASE, RING_OCTETS, Taken};
pub use copies::Copies;
pub use filter::{Filter, FilterError};
pub use hidden::hide;
pub use record::{Direction, Kind, Record};
pub use spans::{End, Faces, OPEN_MAX, SPANS_MAX, Span, SpanCounts, SpanSettings, Spans, Wait};
pub use traffic::{PrefixRow, RoundTrip, Sample, Traffic};

use onym_link::{LpIn, LpOut, Packet};
use onym_tables::pit::Token;
use onym_tables::{FaceId, Tick};
use onym_wire::lp::LpHeader;
use onym_wire::name::Tail;
use onym_wire::types;

/// What became of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// In a word of the registry; `sent` for a copy in a send queue.
    pub word: &'static str,
    /// Whether that is a drop.
    pub is_drop: bool,
}

/// The link-layer fields that a packet came or goes with; a header is made of them for what is kept.
#[derive(Debug, Clone, Copy)]
pub enum Fields<'a> {
    /// None.
    Bare,
    /// Those of a packet received.
    In(&'a LpIn),
    /// Those of a packet sent.
    Out(&'a LpOut),
}

impl Fields<'_> {
    /// The token, where there is nothing else.
    fn only_token(&self) -> Option<&Token> {
        let (token, is_alone) = match self {
            Self::Bare => return None,
            Self::In(lp) => {
                let is_plain = !lp.no_cache && !lp.non_discovery && lp.congestion_mark == 0;
                let is_alone = lp.nack.is_none()
                    && lp.next_hop_face.is_none()
                    && lp.prefix_announcement.is_none();
                (&lp.pit_token, is_plain && is_alone)
            }
            Self::Out(lp) => {
                let is_plain = !lp.no_cache && !lp.non_discovery && lp.congestion_mark == 0;
                (&lp.pit_token, is_plain && lp.nack.is_none() && lp.prefix_announcement.is_none())
            }
        };
        is_alone.then_some(token)
    }

    /// What goes with an Interest in the place of an announcement is the context of its trace.
    fn header(&self, kind: Kind) -> LpHeader<'_> {
        let header = self.written();
        match kind {
            Kind::Interest => LpHeader {
                trace_context: header.prefix_announcement,
                prefix_announcement: None,
                ..header
            },
            _ => header,
        }
    }

    fn written(&self) -> LpHeader<'_> {
        match self {
            Self::Bare => LpHeader::default(),
            Self::In(lp) => LpHeader {
                pit_token: &lp.pit_token,
                nack: lp.nack,
                next_hop_face: lp.next_hop_face.map(Into::into),
                no_cache: lp.no_cache,
                congestion_mark: lp.congestion_mark.into(),
                non_discovery: lp.non_discovery,
                prefix_announcement: lp.prefix_announcement.as_deref(),
                ..LpHeader::default()
            },
            Self::Out(lp) => LpHeader {
                pit_token: &lp.pit_token,
                nack: lp.nack,
                no_cache: lp.no_cache,
                congestion_mark: lp.congestion_mark.into(),
                non_discovery: lp.non_discovery,
                prefix_announcement: lp.prefix_announcement.as_deref(),
                ..LpHeader::default()
            },
        }
    }
}

/// A packet as the shell tells it.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// When.
    pub at: Tick,
    /// The face that it came from or goes to.
    pub face: FaceId,
    /// Whether it comes or goes.
    pub direction: Direction,
    /// What it is.
    pub kind: Kind,
    /// What became of it.
    pub outcome: Outcome,
    /// Its link-layer fields.
    pub fields: Fields<'a>,
    /// The packet without them.
    pub octets: &'a [u8],
    /// The VALUE of the name of an Interest, Data or Nack ([`name_of`]).
    pub name: Option<&'a [u8]>,
}

impl<'a> Seen<'a> {
    /// A packet that came, with its name and verdict.
    #[must_use]
    #[inline]
    pub fn received(
        at: Tick,
        packet: &'a Packet,
        name: Option<&'a [u8]>,
        outcome: Outcome,
    ) -> Self {
        Self {
            at,
            face: packet.face,
            direction: Direction::In,
            kind: packet.kind().into(),
            outcome,
            fields: Fields::In(&packet.lp),
            octets: &packet.bytes,
            name,
        }
    }
}

/// The VALUE of the name with which an Interest or Data begins.
#[must_use]
#[inline]
pub fn name_of(octets: &[u8]) -> Option<&[u8]> {
    Named::of(octets).map(|named| named.name)
}

/// The name with which an Interest or Data begins.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// Its VALUE.
    pub name: &'a [u8],
    /// What follows it.
    rest: &'a [u8],
}

impl<'a> Named<'a> {
    /// That of a packet; none where it is neither, or does not begin as such.
    #[must_use]
    #[inline]
    pub fn of(octets: &'a [u8]) -> Option<Self> {
        // Where the VALUE of an element with a type of one octet begins, and its length.
        fn value(octets: &[u8], start: usize) -> Option<(usize, usize)> {
            match *octets.get(start + 1)? {
                len @ 0..=252 => Some((start + 2, len.into())),
                253 => {
                    let len = octets.get(start + 2..start + 4)?;
                    Some((start + 4, u16::from_be_bytes([len[0], len[1]]).into()))
                }
                // No packet is so long.
                _ => None,
            }
        }
        let typ = |at: usize| octets.get(at).copied().map(u32::from);
        if !matches!(typ(0)?, types::INTEREST | types::DATA) {
            return None;
        }
        let (start, _) = value(octets, 0)?;
        if typ(start)? != types::NAME {
            return None;
        }
        let (start, len) = value(octets, start)?;
        let (name, rest) = octets.get(start..)?.split_at_checked(len)?;
        Some(Self { name, rest })
    }

    /// Whether it is an Interest that longer names answer, too: CanBePrefix comes next to the name.
    fn asks_below(&self) -> bool {
        self.rest.first().map(|octet| u32::from(*octet)) == Some(types::CAN_BE_PREFIX)
    }
}

/// Why a packet that came is looked at, beside captures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// It is to be recorded, where it is an Interest.
    pub is_recorded: bool,
    /// For how many packets it stands as a sample of the traffic; 0 when it is none.
    pub stands_for: u64,
}

/// What one thread watches. One without viewers is to be dropped ([`Watch::is_idle`]).
#[derive(Debug)]
pub struct Watch {
    /// Packets that came.
    came: u64,
    /// The number of the next one that is drawn, as a sample or to be recorded.
    next: u64,
    /// Names that captures want.
    tail: Tail,
    captures: Vec<Capture>,
    /// Copies that captures may want.
    pub copies: Copies,
    traffic: Option<Traffic>,
    /// Where Interests are recorded on their way; not a viewer.
    spans: Option<Box<Spans>>,
}

impl Default for Watch {
    fn default() -> Self {
        let (tail, copies, captures) = (Tail::NONE, Copies::default(), Vec::new());
        Self { came: 0, next: u64::MAX, tail, captures, copies, traffic: None, spans: None }
    }
}

impl Watch {
    /// One that records Interests on their way, viewers or not.
    #[must_use]
    pub fn recording(settings: SpanSettings) -> Self {
        let mut watch = Self { spans: Some(Box::new(Spans::new(settings))), ..Self::default() };
        watch.settle();
        watch
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.has_captures() && self.traffic.is_none() && self.spans.is_none()
    }

    /// Whether somebody looks at packets.
    #[inline]
    #[must_use]
    pub fn has_captures(&self) -> bool {
        !self.captures.is_empty()
    }

    /// Interests that are recorded, where any are.
    #[inline]
    #[must_use]
    pub fn spans(&self) -> Option<&Spans> {
        self.spans.as_deref()
    }

    /// The same, to change.
    #[inline]
    pub fn spans_mut(&mut self) -> Option<&mut Spans> {
        self.spans.as_deref_mut()
    }

    /// Packets until the next one that is drawn, which is to be looked at before anything is decided about
    /// it ([`Self::look`]). The others are only counted: what captures want the forwarder knows, by names
    /// of Interests ([`Self::tail`]) and by what they wait for.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.next - self.came - 1
    }

    /// So many came that were not drawn.
    pub const fn pass(&mut self, packets: u64) {
        self.came += packets;
    }

    /// Names that captures want: where it changes, others are wanted than were.
    #[must_use]
    pub const fn tail(&self) -> Tail {
        self.tail
    }

    /// Whether a capture may want a packet with this name, or what an Interest with it finds in the content
    /// store; it errs to yes.
    #[inline]
    #[must_use]
    pub fn may_show(&self, named: Option<Named<'_>>) -> bool {
        self.tail == Tail::ANY
            || named.is_some_and(|named| match named.asks_below() {
                true => self.tail.may_cover_or_be_above(named.name),
                false => self.tail.may_cover(named.name),
            })
    }

    /// The next one that is drawn came: why.
    pub fn look(&mut self) -> Look {
        self.came += 1;
        let came = self.came;
        let is_recorded = self.spans.as_deref_mut().is_some_and(|spans| spans.samples(came));
        let stands_for = self.traffic.as_mut().map_or(0, |traffic| traffic.samples(came));
        self.choose_next();
        Look { is_recorded, stands_for }
    }

    /// Shows a packet to those who want it.
    pub fn show(&mut self, seen: &Seen<'_>) {
        let mut is_over = false;
        for capture in &mut self.captures {
            capture.note(seen);
            is_over |= capture.is_over(seen.at);
        }
        if is_over {
            self.end_leases(seen.at);
        }
    }

    /// Counts a packet that came and was chosen as a sample.
    pub fn count(&mut self, sample: &Sample<'_>) {
        let Some(traffic) = &mut self.traffic else { return };
        traffic.count(sample);
        if traffic.is_over(sample.at) {
            self.end_leases(sample.at);
        }
    }

    /// Ends what nobody asked about for [`LEASE`].
    pub fn end_leases(&mut self, now: Tick) {
        self.captures.retain(|capture| !capture.is_over(now));
        self.traffic.take_if(|traffic| traffic.is_over(now));
        self.settle();
    }

    /// What the capture of `viewer` kept since it was asked last; begins it when there is none, or
    /// when it asked for something else before. `None`: there are [`CAPTURES_MAX`] of others.
    /// `unix_offset` is what is between `now` and Unix time, in nanoseconds.
    pub fn take(
        &mut self,
        now: Tick,
        viewer: u64,
        filter: &Filter,
        unix_offset: u64,
    ) -> Option<Taken> {
        self.end_leases(now);
        let count = self.captures.len();
        let taken = match self.captures.iter_mut().find(|capture| capture.viewer() == viewer) {
            Some(capture) => capture.take(now, filter),
            None if count >= CAPTURES_MAX => return None,
            None => {
                self.captures.push(Capture::new(now, viewer, filter.clone(), unix_offset));
                Taken::default()
            }
        };
        self.settle();
        Some(taken)
    }

    /// Ends the capture of `viewer`.
    pub fn end(&mut self, viewer: u64) {
        self.captures.retain(|capture| capture.viewer() != viewer);
        self.settle();
    }

    /// What was counted of prefixes and round trips since this began; begins it when it has not.
    /// Prefixes have at most `depth` components; another depth begins anew.
    pub fn traffic(&mut self, now: Tick, seed: u64, depth: usize) -> &mut Traffic {
        self.end_leases(now);
        self.traffic.take_if(|traffic| traffic.depth() != depth);
        let came = self.came;
        let traffic = self.traffic.get_or_insert_with(|| Traffic::new(now, seed, depth, came));
        traffic.renew(now);
        self.next = self.next.min(traffic.next());
        traffic
    }

    /// What is asked of each packet, of what is watched.
    fn settle(&mut self) {
        self.choose_next();
        self.tail = match &self.captures[..] {
            [] => Tail::NONE,
            [one] => one.tail(),
            _ => Tail::ANY,
        };
    }

    /// The next packet that is drawn.
    fn choose_next(&mut self) {
        let spans = self.spans.as_ref().map_or(u64::MAX, |spans| spans.next());
        let traffic = self.traffic.as_ref().map_or(u64::MAX, Traffic::next);
        self.next = traffic.min(spans);
    }
}

#[cfg(test)]
mod tests;
