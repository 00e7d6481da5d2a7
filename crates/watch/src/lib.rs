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
pub use spans::{End, FACES_MAX, OPEN_MAX, SPANS_MAX, Span, SpanCounts, SpanSettings, Spans, Wait};
pub use traffic::{PrefixRow, RoundTrip, Sample, Traffic};

use onym_link::{LpIn, LpOut, Packet, PacketKind};
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
    /// A packet that came, with its verdict.
    #[must_use]
    #[inline]
    pub fn received(at: Tick, packet: &'a Packet, outcome: Outcome) -> Self {
        Self {
            at,
            face: packet.face,
            direction: Direction::In,
            kind: packet.kind().into(),
            outcome,
            fields: Fields::In(&packet.lp),
            octets: &packet.bytes,
            name: name_of(&packet.bytes),
        }
    }
}

/// The VALUE of the name with which an Interest or Data begins.
#[must_use]
#[inline]
pub fn name_of(octets: &[u8]) -> Option<&[u8]> {
    name_and_rest(octets).map(|(name, _)| name)
}

/// The same, and what follows it.
#[inline]
fn name_and_rest(octets: &[u8]) -> Option<(&[u8], &[u8])> {
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
    octets.get(start..)?.split_at_checked(len)
}

/// Why a packet that came is looked at, beside captures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    /// It is an Interest that is to be recorded.
    pub is_recorded: bool,
    /// For how many packets it stands as a sample of the traffic; 0 when it is none.
    pub stands_for: u64,
}

/// Draws among the packets of a kind.
#[derive(Debug, Clone, Copy)]
struct Draw {
    /// Packets until the next one that is drawn, and with it.
    left: u64,
    /// Its number, of those that came.
    next: u64,
}

impl Draw {
    /// Packets that came.
    const fn came(self) -> u64 {
        self.next - self.left
    }

    /// The next one that is drawn is that of this number.
    const fn set(&mut self, next: u64) {
        *self = Self { left: next - self.came(), next };
    }
}

/// What one thread watches. One without viewers is to be dropped ([`Watch::is_idle`]).
#[derive(Debug)]
pub struct Watch {
    /// Samples and what is recorded, of each kind of packets.
    draws: [Draw; KINDS],
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
        let draws = [Draw { left: u64::MAX, next: u64::MAX }; KINDS];
        let (tail, copies, captures) = (Tail::NONE, Copies::default(), Vec::new());
        Self { draws, tail, captures, copies, traffic: None, spans: None }
    }
}

/// Kinds of packets.
pub(crate) const KINDS: usize = PacketKind::ALL.len();

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

    /// Counts a packet that came, before anything is decided about it; whether it is to be looked at
    /// before that ([`Self::look`]). Most are not, and this is all that they cost: what captures want the
    /// forwarder knows, by names of Interests ([`Self::tail`]) and by what they wait for.
    #[inline(always)]
    #[must_use]
    pub fn wants(&mut self, kind: PacketKind, packet: &Packet) -> bool {
        let draw = &mut self.draws[kind as usize];
        draw.left -= 1;
        draw.left == 0 || packet.lp.prefix_announcement.is_some() && kind == PacketKind::Interest
    }

    /// Names that captures want: where it changes, others are wanted than were.
    #[must_use]
    pub const fn tail(&self) -> Tail {
        self.tail
    }

    /// Whether a capture may want a packet, or what an Interest with its name finds in the content store;
    /// it errs to yes.
    #[inline]
    #[must_use]
    pub fn may_show(&self, octets: &[u8]) -> bool {
        // CanBePrefix comes next to the name.
        let asks_below =
            |rest: &[u8]| rest.first().map(|o| u32::from(*o)) == Some(types::CAN_BE_PREFIX);
        self.tail == Tail::ANY
            || name_and_rest(octets).is_some_and(|(name, rest)| {
                self.tail.may_cover(name) || asks_below(rest) && self.tail.is_longer(name)
            })
    }

    /// Why the packet is looked at that was counted last.
    pub fn look(&mut self, kind: PacketKind, packet: &Packet) -> Look {
        let place = kind as usize;
        let came = self.draws[place].came();
        let spans = self.spans.as_deref_mut().filter(|_| kind == PacketKind::Interest);
        let is_recorded = spans.is_some_and(|spans| spans.samples(came, packet));
        let traffic = self.traffic.as_mut();
        let stands_for = traffic.map_or(0, |traffic| traffic.samples(place, came));
        if self.draws[place].left == 0 {
            self.choose_next(place);
        }
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
        let came = self.draws.map(Draw::came);
        let traffic = self.traffic.get_or_insert_with(|| Traffic::new(now, seed, depth, came));
        traffic.renew(now);
        for (draw, next) in self.draws.iter_mut().zip(traffic.next()) {
            draw.set(draw.next.min(next));
        }
        traffic
    }

    /// What is asked of each packet, of what is watched.
    fn settle(&mut self) {
        (0..self.draws.len()).for_each(|place| self.choose_next(place));
        self.tail = match &self.captures[..] {
            [] => Tail::NONE,
            [one] => one.tail(),
            _ => Tail::ANY,
        };
    }

    /// The next packet of a kind that is drawn.
    fn choose_next(&mut self, place: usize) {
        let is_interest = place == PacketKind::Interest as usize;
        let spans =
            self.spans.as_ref().filter(|_| is_interest).map_or(u64::MAX, |spans| spans.next());
        let traffic = self.traffic.as_ref().map_or(u64::MAX, |traffic| traffic.next()[place]);
        self.draws[place].set(traffic.min(spans));
    }
}

#[cfg(test)]
mod tests;
