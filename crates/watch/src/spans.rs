//! Interests that are recorded on their way over nodes: a span for each one that is sampled, here or
//! at a node before.
//!
//! A span begins when the Interest comes. It ends with the decision about it, or, where the Interest
//! waits for its answer, when nobody waits for it any more.

use crate::Outcome;
use crate::sampler::Sampler;
use onym_link::{LpIn, Packet, PacketKind};
use onym_tables::pit::TOKEN_LEN;
use onym_tables::{FaceId, Rng, Tick};
use onym_wire::lp::{NackReason, TraceContext};
use std::ops::Deref;
use std::time::Duration;

/// Spans that are open or wait to be taken.
pub const SPANS_MAX: usize = 2048;
/// Of those, the open ones.
pub const OPEN_MAX: usize = 256;
/// Faces of a span that are told.
const FACES_MAX: usize = 8;
/// How far the spans of a moment may be ahead of their rate.
const AHEAD: Duration = Duration::from_secs(1);
/// Marks of tokens; a power of two.
const MARKS: usize = 1024;

/// Which Interests are recorded.
#[derive(Debug, Clone, Copy)]
pub struct SpanSettings {
    /// One of so many that come without a trace begins one, on the average; 0: none does.
    pub sample: u32,
    /// Spans a second, those of the traces of others included.
    pub rate_max: u32,
    /// For the numbers of traces and spans.
    pub seed: u64,
}

/// How a span ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With the decision: nothing was waited for.
    Decided,
    /// With Data of this face.
    Data(FaceId),
    /// With a Nack of this face.
    Nack(FaceId, NackReason),
    /// Its lifetime was over, and no answer was seen.
    Unanswered,
    /// Nobody waits any more, and no answer was seen: it gave way, or a face went.
    Ended,
}

/// One Interest at this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// Its trace and its own number.
    pub context: TraceContext,
    /// The span of who sent it; none where the trace begins here.
    pub parent: Option<u64>,
    /// VALUE of the name.
    pub name: Vec<u8>,
    /// The face that it came from.
    pub from: FaceId,
    /// Faces that it was sent to.
    pub to: Faces,
    /// When it came.
    pub began: Tick,
    /// When it ended.
    pub ended: Tick,
    /// What was decided.
    pub outcome: Outcome,
    /// How it ended.
    pub end: End,
}

/// The first eight faces of those that an Interest was sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Faces {
    faces: [FaceId; FACES_MAX],
    count: usize,
}

impl Default for Faces {
    fn default() -> Self {
        Self { faces: [FaceId::INVALID; FACES_MAX], count: 0 }
    }
}

impl Faces {
    /// One more, where it is one of the first.
    pub fn push(&mut self, face: FaceId) {
        if let Some(place) = self.faces.get_mut(self.count) {
            *place = face;
            self.count += 1;
        }
    }
}

impl Deref for Faces {
    type Target = [FaceId];
    fn deref(&self) -> &[FaceId] {
        self.faces.get(..self.count).unwrap_or_default()
    }
}

/// What an open span waits for.
#[derive(Debug, Clone, Copy)]
pub struct Wait {
    /// The pending Interest, by its token.
    pub token: [u8; TOKEN_LEN],
    /// When its lifetime is over.
    pub due: Tick,
    /// Whether Data of longer names, which may come with another token, answer it.
    pub can_be_prefix: bool,
}

/// How many there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Begun.
    pub begun: u64,
    /// Not recorded, for want of room or because of the rate.
    pub left_out: u64,
}

/// The spans of one thread.
#[derive(Debug)]
pub struct Spans {
    settings: SpanSettings,
    /// What one of them takes of the rate.
    each: Duration,
    rng: Rng,
    sampler: Sampler,
    /// When what was begun is paid for by the rate.
    paid: Tick,
    open: Vec<(Span, Wait)>,
    /// A bit for each token that an open span waits by; all while one is open that Data with any token
    /// may end.
    marks: [u64; MARKS / 64],
    done: Vec<Span>,
    counts: SpanCounts,
}

/// Word and bit of a token.
#[inline]
const fn mark(token: &[u8; TOKEN_LEN]) -> (usize, u64) {
    let [_, _, octets @ ..] = token;
    // Slots and generations count up: what differs between tokens is in their last octets.
    let octets = u32::from_le_bytes(*octets);
    let at = (octets >> 8 ^ octets >> 23) as usize % MARKS;
    (at / 64, 1 << (at % 64))
}

impl Spans {
    /// Spans by these settings.
    #[must_use]
    pub fn new(settings: SpanSettings) -> Self {
        Self {
            settings,
            each: Duration::from_secs(1) / settings.rate_max.max(1),
            rng: Rng::new(settings.seed),
            sampler: Sampler::new(!settings.seed, settings.sample.into(), 0),
            paid: Tick::default(),
            open: Vec::with_capacity(OPEN_MAX),
            marks: [0; MARKS / 64],
            done: Vec::with_capacity(SPANS_MAX),
            counts: SpanCounts::default(),
        }
    }

    /// What was counted.
    #[must_use]
    pub const fn counts(&self) -> SpanCounts {
        self.counts
    }

    /// The number of the next packet that begins a trace, where it is an Interest.
    pub(crate) const fn next(&self) -> u64 {
        self.sampler.next()
    }

    /// Whether the packet with the number `came` begins one: an Interest in so many does, since a packet
    /// in so many is drawn.
    pub(crate) fn samples(&mut self, came: u64) -> bool {
        self.sampler.takes(came) > 0
    }

    /// Begins a span for an Interest that was chosen: in the trace that it came with,
    /// else in a new one. `None`: there is no room for it, or it is beyond the rate.
    pub fn begin(&mut self, now: Tick, came: Option<TraceContext>) -> Option<TraceContext> {
        if self.open.len() >= OPEN_MAX {
            self.end_overdue(now);
        }
        let is_full = self.open.len() >= OPEN_MAX || self.open.len() + self.done.len() >= SPANS_MAX;
        let paid = self.paid.max(now) + self.each;
        if is_full || self.settings.rate_max == 0 || paid.since(now) > AHEAD {
            self.counts.left_out += 1;
            return None;
        }
        self.paid = paid;
        self.counts.begun += 1;
        let trace = came.map_or_else(|| self.number(), |context| context.trace);
        Some(TraceContext { trace, span: self.rng.next_u64().max(1) })
    }

    fn number(&mut self) -> u128 {
        let high = u128::from(self.rng.next_u64()) << 64;
        high | u128::from(self.rng.next_u64().max(1))
    }

    /// The decision about the Interest of a span: it ends, or waits.
    pub fn decided(&mut self, span: Span, wait: Option<Wait>) {
        let Some(wait) = wait else { return self.done.push(span) };
        self.mark(wait);
        self.open.push((span, wait));
    }

    fn mark(&mut self, wait: Wait) {
        if wait.can_be_prefix {
            self.marks = [u64::MAX; MARKS / 64];
        } else {
            let (word, bit) = mark(&wait.token);
            self.marks[word] |= bit;
        }
    }

    /// Whether a packet that was just taken in may have ended an open span.
    #[inline]
    #[must_use]
    pub fn may_end(&self, packet: &Packet) -> bool {
        packet.kind() != PacketKind::Interest && self.may_be_waited_for(&packet.lp)
    }

    /// Whether an open span may wait for this Data or Nack.
    fn may_be_waited_for(&self, lp: &LpIn) -> bool {
        match lp.pit_token.as_ours() {
            Some(token) => {
                let (word, bit) = mark(token);
                self.marks[word] & bit != 0
            }
            None => !self.open.is_empty(),
        }
    }

    /// A packet was taken in that may have ended some: those end for which nobody `waits` any more.
    pub fn answered(&mut self, now: Tick, packet: &Packet, waits: impl Fn(&[u8]) -> bool) {
        let end = match packet.lp.nack {
            Some(reason) => End::Nack(packet.face, reason),
            None => End::Data(packet.face),
        };
        self.end_those(|_, wait| (!waits(&wait.token)).then_some((now, end)));
    }

    /// Takes what has ended.
    pub fn take(&mut self, now: Tick, waits: impl Fn(&[u8]) -> bool) -> Vec<Span> {
        self.end_overdue(now);
        self.end_those(|_, wait| (!waits(&wait.token)).then_some((now, End::Ended)));
        // There is room for all: to make it later moves what is there.
        std::mem::replace(&mut self.done, Vec::with_capacity(SPANS_MAX))
    }

    fn end_overdue(&mut self, now: Tick) {
        self.end_those(|_, wait| (wait.due <= now).then_some((wait.due, End::Unanswered)));
    }

    fn end_those(&mut self, how: impl Fn(&Span, &Wait) -> Option<(Tick, End)>) {
        let before = self.open.len();
        let mut at = 0;
        while let Some((span, wait)) = self.open.get(at) {
            let Some((ended, end)) = how(span, wait) else {
                at += 1;
                continue;
            };
            let (span, _) = self.open.swap_remove(at);
            self.done.push(Span { ended, end, ..span });
        }
        if self.open.len() < before {
            self.marks = [0; MARKS / 64];
            for at in 0..self.open.len() {
                self.mark(self.open[at].1);
            }
        }
    }
}

#[cfg(test)]
mod tests;
