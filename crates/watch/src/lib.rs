#![doc = include_str!("../README.md")]

mod capture;
mod filter;
mod hidden;
pub mod record;
mod spans;
mod traffic;

pub use capture::{CAPTURES_MAX, Capture, LEASE, RING_OCTETS, Taken};
pub use filter::{Filter, FilterError};
pub use hidden::hide;
pub use record::{Direction, Kind, Record};
pub use spans::{End, FACES_MAX, OPEN_MAX, SPANS_MAX, Span, SpanCounts, SpanSettings, Spans, Wait};
pub use traffic::{PrefixRow, RoundTrip, Traffic};

use onym_link::{LpIn, LpOut, Packet};
use onym_tables::{FaceId, Tick};
use onym_wire::lp::LpHeader;
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

    /// The PIT token.
    fn token(&self) -> &[u8] {
        match self {
            Self::Bare => &[],
            Self::In(lp) => &lp.pit_token,
            Self::Out(lp) => &lp.pit_token,
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
    octets.get(start..start + len)
}

/// Who wants to see a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    by_captures: bool,
    by_traffic: bool,
}

/// What one thread watches. One without viewers is to be dropped ([`Watch::is_idle`]).
#[derive(Debug, Default)]
pub struct Watch {
    captures: Vec<Capture>,
    traffic: Option<Traffic>,
    /// Where Interests are recorded on their way; not a viewer.
    pub spans: Option<Box<Spans>>,
}

impl Watch {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.has_viewers() && self.spans.is_none()
    }

    /// Whether somebody looks.
    #[inline]
    #[must_use]
    pub fn has_viewers(&self) -> bool {
        !self.captures.is_empty() || self.traffic.is_some()
    }

    /// Counts a packet, by its kind, direction, token and octets; who wants to see it. Mostly nobody
    /// does, and it is not looked at further.
    #[inline]
    pub fn glance(
        &mut self,
        kind: Kind,
        direction: Direction,
        token: &[u8],
        octets: &[u8],
    ) -> Option<Wanted> {
        let by_captures = self.captures.iter().any(|capture| capture.may_want(octets));
        let traffic = self.traffic.as_mut();
        let by_traffic = traffic.is_some_and(|traffic| traffic.counts(kind, direction, token));
        (by_captures || by_traffic).then_some(Wanted { by_captures, by_traffic })
    }

    /// Takes note of a packet that [`Self::glance`] found wanted.
    pub fn keep(&mut self, wanted: Wanted, seen: &Seen<'_>) {
        let mut is_over = false;
        for capture in self.captures.iter_mut().filter(|_| wanted.by_captures) {
            capture.note(seen);
            is_over |= capture.is_over(seen.at);
        }
        if let Some(traffic) = self.traffic.as_mut().filter(|_| wanted.by_traffic) {
            traffic.look(seen);
            is_over |= traffic.is_over(seen.at);
        }
        if is_over {
            self.end_leases(seen.at);
        }
    }

    /// Takes note of a packet that is not of the pull half.
    pub fn note(&mut self, seen: &Seen<'_>) {
        if let Some(wanted) = self.glance(seen.kind, seen.direction, &[], seen.octets) {
            self.keep(wanted, seen);
        }
    }

    /// Ends what nobody asked about for [`LEASE`].
    pub fn end_leases(&mut self, now: Tick) {
        self.captures.retain(|capture| !capture.is_over(now));
        self.traffic.take_if(|traffic| traffic.is_over(now));
    }

    /// What the capture of `viewer` kept since it was asked last; begins it when there is none, or
    /// when it asked for something else before. `None`: there are [`CAPTURES_MAX`] of others.
    pub fn take(&mut self, now: Tick, viewer: u64, filter: &Filter) -> Option<Taken> {
        self.end_leases(now);
        if let Some(capture) = self.captures.iter_mut().find(|c| c.viewer() == viewer) {
            return Some(capture.take(now, filter));
        }
        if self.captures.len() >= CAPTURES_MAX {
            return None;
        }
        self.captures.push(Capture::new(now, viewer, filter.clone()));
        Some(Taken::default())
    }

    /// Ends the capture of `viewer`.
    pub fn end(&mut self, viewer: u64) {
        self.captures.retain(|capture| capture.viewer() != viewer);
    }

    /// What was counted of prefixes and round trips since this began; begins it when it has not.
    /// Prefixes have at most `depth` components; another depth begins anew.
    pub fn traffic(&mut self, now: Tick, key: u64, depth: usize) -> &mut Traffic {
        self.end_leases(now);
        self.traffic.take_if(|traffic| traffic.depth() != depth);
        let traffic = self.traffic.get_or_insert_with(|| Traffic::new(now, key, depth));
        traffic.renew(now);
        traffic
    }
}

#[cfg(test)]
mod tests;
