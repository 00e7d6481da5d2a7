//! Which segment to ask for next, which one is lost, which one is next in order: the pipeline of a
//! segmented fetch, without packets and names.
//!
//! Segments `base..next` have a slot. A slot leaves when its segment is handed out in order, so the
//! slots are at once the reorder buffer and the table of what is in flight; their number is bounded
//! by [`PipelineOptions::reorder_max`].

mod options;
mod order;
mod round;

pub use options::{PipelineCounters, PipelineOptions};

use crate::rtt::RttEstimator;
use crate::window::Window;
use onym_tables::id::Tick;
use round::Round;
use std::collections::VecDeque;
use std::time::Duration;

#[derive(Debug)]
enum State<P> {
    InFlight,
    /// Refused by a Nack that may pass; asked again at the deadline.
    Waiting,
    /// In the retransmission queue.
    Lost,
    Received(P),
}

#[derive(Debug)]
struct Slot<P> {
    state: State<P>,
    sent: Tick,
    deadline: Tick,
    /// Interests sent for this segment.
    tries: u32,
    /// Nacks for this segment other than congestion.
    refusals: u32,
    /// Nacks for congestion.
    congested: u32,
}

/// Whether a router marked a Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    None,
    /// It met a long queue on its way.
    Congested,
}

/// What became of a segment that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It was waited for.
    New,
    /// It had arrived before, or was never asked for.
    Duplicate,
}

/// A segment was asked for as often as allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted(pub(crate) u64);

/// The object ends before a segment that was already handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndsBefore(pub(crate) u64);

/// Least time between two looks at the timeouts.
const CHECK: Duration = Duration::from_millis(10);
/// A segment that is lost again and again waits longer each time, at most 2^this times the timeout.
const BACKOFF_SHIFT_MAX: u32 = 6;
/// How long a segment waits after its second Nack for congestion; doubled with each further one, at
/// most 2^CONGESTION_SHIFT_MAX times as long.
const CONGESTION_WAIT: Duration = Duration::from_millis(10);
const CONGESTION_SHIFT_MAX: u32 = 7;

/// The pipeline; `P` is what a received segment is kept as until its turn.
#[derive(Debug)]
pub(crate) struct Pipeline<P> {
    options: PipelineOptions,
    window: Window,
    rtt: RttEstimator,
    slots: VecDeque<Slot<P>>,
    base: u64,
    /// One more than the highest segment that came when first asked for.
    reached: u64,
    last: Option<u64>,
    lost: VecDeque<u64>,
    in_flight: usize,
    /// Highest segment sent at the last cut; signals of segments up to it do not cut again.
    recovery: Option<u64>,
    check_at: Tick,
    paused: bool,
    round: Round,
    counters: PipelineCounters,
}

impl<P> Pipeline<P> {
    pub(crate) fn new(options: PipelineOptions, first: u64) -> Self {
        Self {
            window: Window::new(options.law),
            rtt: RttEstimator::new(options.rtt),
            options,
            slots: VecDeque::new(),
            base: first,
            reached: first,
            last: None,
            lost: VecDeque::new(),
            in_flight: 0,
            recovery: None,
            check_at: Tick::NEVER,
            paused: false,
            round: Round::default(),
            counters: PipelineCounters::default(),
        }
    }

    pub(crate) fn counters(&self) -> PipelineCounters {
        self.counters
    }

    pub(crate) fn rtt(&self) -> &RttEstimator {
        &self.rtt
    }

    pub(crate) fn window(&self) -> f64 {
        self.window.size()
    }

    /// The next segment in order that was not handed out.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn last(&self) -> Option<u64> {
        self.last
    }

    /// All segments were handed out.
    pub(crate) fn is_done(&self) -> bool {
        self.last.is_some_and(|last| self.base > last)
    }

    fn next(&self) -> u64 {
        self.base + self.slots.len() as u64
    }

    fn slot(&mut self, segment: u64) -> Option<&mut Slot<P>> {
        let at = usize::try_from(segment.checked_sub(self.base)?).ok()?;
        self.slots.get_mut(at)
    }

    /// The segment to ask for now, if the window allows one; it counts as sent.
    pub(crate) fn next_send(&mut self, now: Tick) -> Option<u64> {
        // No truncation that matters: a window beyond usize is as good as unbounded.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let room = (self.window.size() as usize).max(1);
        if self.paused || self.in_flight >= room {
            return None;
        }
        let segment = self.next_lost().or_else(|| self.next_new())?;
        let rto = self.timeout_of(segment);
        let deadline = now + rto;
        let slot = self.slot(segment)?;
        slot.state = State::InFlight;
        slot.sent = now;
        slot.deadline = deadline;
        slot.tries += 1;
        let again = slot.tries > 1;
        self.in_flight += 1;
        self.counters.sent += 1;
        self.counters.retransmitted += u64::from(again);
        self.check_at = self.check_at.min(deadline);
        Some(segment)
    }

    fn next_lost(&mut self) -> Option<u64> {
        while let Some(segment) = self.lost.pop_front() {
            if self.slot(segment).is_some_and(|s| matches!(s.state, State::Lost)) {
                return Some(segment);
            }
        }
        None
    }

    fn next_new(&mut self) -> Option<u64> {
        let segment = self.next();
        if self.last.is_some_and(|last| segment > last)
            || self.slots.len() >= self.options.reorder_max
        {
            return None;
        }
        self.slots.push_back(Slot {
            state: State::Lost,
            sent: Tick(0),
            deadline: Tick::NEVER,
            tries: 0,
            refusals: 0,
            congested: 0,
        });
        Some(segment)
    }

    /// How long to wait for `segment`, which is about to be sent: the timeout, doubled for each
    /// retransmission but the first, so that an outage is not met with a storm.
    fn timeout_of(&mut self, segment: u64) -> Duration {
        let tries = self.slot(segment).map_or(0, |s| s.tries);
        if self.window.is_fixed() {
            return self.options.lifetime;
        }
        let shift = tries.saturating_sub(1).min(BACKOFF_SHIFT_MAX);
        (self.rtt.rto() * (1 << shift)).min(self.rtt.rto_max())
    }

    /// `segment` arrived.
    pub(crate) fn on_data(&mut self, now: Tick, segment: u64, payload: P, mark: Mark) -> Arrival {
        let Some(slot) = self.slot(segment) else {
            self.counters.duplicates += 1;
            return Arrival::Duplicate;
        };
        let before = std::mem::replace(&mut slot.state, State::Received(payload));
        if matches!(before, State::Received(_)) {
            slot.state = before;
            self.counters.duplicates += 1;
            return Arrival::Duplicate;
        }
        let (sent, tries) = (slot.sent, slot.tries);
        let in_flight = self.in_flight;
        self.in_flight -= usize::from(matches!(before, State::InFlight));
        if tries == 1 && matches!(before, State::InFlight) {
            let rtt = now.since(sent);
            self.rtt.sample(rtt, in_flight.div_ceil(2));
            self.watch_delay(now, segment, rtt);
            self.watch_order(segment);
        }
        self.counters.received += 1;
        self.counters.marks += u64::from(mark == Mark::Congested);
        if mark == Mark::Congested && !self.options.ignore_marks {
            self.congestion(now, segment);
        } else {
            let rtt = self.rtt.smoothed().unwrap_or(self.options.rtt.rto_initial);
            self.window.on_data(now, rtt);
        }
        Arrival::New
    }

    fn watch_delay(&mut self, now: Tick, segment: u64, rtt: Duration) {
        if self.options.delay_aware
            && self.window.in_slow_start()
            && self.round.grew(segment, self.next(), rtt)
        {
            self.window.leave_slow_start(now);
        }
    }

    /// One cut per round trip: only a segment sent after the last cut may cut again.
    fn congestion(&mut self, now: Tick, segment: u64) -> bool {
        if !self.options.cut_every_time && self.recovery.is_some_and(|r| segment <= r) {
            return false;
        }
        self.recovery = self.next().checked_sub(1);
        self.window.cut(now);
        self.counters.cuts += 1;
        true
    }

    /// A Nack with reason Congestion: lost, and a sign of congestion. The first one of a segment is
    /// answered as a loss is; after further ones the segment waits, longer each time.
    pub(crate) fn on_congestion_nack(&mut self, now: Tick, segment: u64) -> Result<(), Exhausted> {
        self.counters.nacks += 1;
        let retries_max = self.options.retries_max;
        let Some(slot) = self.slot(segment) else { return Ok(()) };
        if !matches!(slot.state, State::InFlight) {
            return Ok(());
        }
        if slot.tries > retries_max {
            return Err(Exhausted(segment));
        }
        slot.congested += 1;
        if slot.congested == 1 {
            self.lose(segment);
        } else {
            let shift = (slot.congested - 2).min(CONGESTION_SHIFT_MAX);
            let deadline = now + CONGESTION_WAIT * (1 << shift);
            slot.state = State::Waiting;
            slot.deadline = deadline;
            self.check_at = self.check_at.min(deadline);
        }
        if self.congestion(now, segment) {
            self.rtt.back_off();
        }
        Ok(())
    }

    /// A Nack that may pass by itself (a route that is being made again): asked again after a
    /// while. Returns how often this segment was refused.
    pub(crate) fn on_refusal(&mut self, now: Tick, segment: u64) -> u32 {
        self.counters.nacks += 1;
        let Some(slot) = self.slot(segment) else { return 0 };
        if !matches!(slot.state, State::InFlight) {
            return slot.refusals;
        }
        slot.refusals += 1;
        slot.state = State::Waiting;
        let shift = (slot.refusals - 1).min(4);
        let deadline = now + Duration::from_millis(100 << shift);
        let refusals = slot.refusals;
        slot.deadline = deadline;
        self.check_at = self.check_at.min(deadline);
        refusals
    }

    /// A Nack that says nothing about the path (a duplicate Nonce): the timeout decides.
    pub(crate) fn on_ignored_nack(&mut self) {
        self.counters.nacks += 1;
    }

    /// Moves a segment in flight to the retransmission queue. False when it was not in flight.
    fn lose(&mut self, segment: u64) -> bool {
        let Some(slot) = self.slot(segment) else { return false };
        if !matches!(slot.state, State::InFlight) {
            return false;
        }
        slot.state = State::Lost;
        self.in_flight -= 1;
        self.lost.push_back(segment);
        true
    }

    /// When [`Pipeline::on_timer`] wants to be called.
    pub(crate) fn next_timer(&self) -> Tick {
        if self.paused { Tick::NEVER } else { self.check_at }
    }

    /// Looks for segments whose timeout passed.
    pub(crate) fn on_timer(&mut self, now: Tick) -> Result<(), Exhausted> {
        if self.paused || now < self.check_at {
            return Ok(());
        }
        let mut earliest = Tick::NEVER;
        for at in 0..self.slots.len() {
            let segment = self.base + at as u64;
            let due = self.due(segment, &self.slots[at]);
            let slot = &mut self.slots[at];
            match slot.state {
                State::InFlight | State::Waiting if due > now => {
                    earliest = earliest.min(due);
                }
                State::InFlight => {
                    if slot.tries > self.options.retries_max {
                        return Err(Exhausted(segment));
                    }
                    let in_time = now < slot.deadline;
                    self.counters.timeouts += 1;
                    self.lose(segment);
                    if self.congestion(now, segment) && !in_time {
                        self.rtt.back_off();
                    }
                }
                State::Waiting => {
                    // Still counted in flight while it waited, so that the window does not refill.
                    slot.state = State::InFlight;
                    self.lose(segment);
                }
                State::Lost | State::Received(_) => {}
            }
        }
        self.check_at = if earliest == Tick::NEVER { earliest } else { earliest.max(now + CHECK) };
        Ok(())
    }

    /// The object ends with segment `last`, as some segment says; the newest word counts.
    pub(crate) fn set_last(&mut self, last: u64) -> Result<(), EndsBefore> {
        if last + 1 < self.base {
            return Err(EndsBefore(self.base));
        }
        if self.last == Some(last) {
            return Ok(());
        }
        self.last = Some(last);
        while self.next() > last + 1 {
            let Some(slot) = self.slots.pop_back() else { break };
            self.in_flight -= usize::from(matches!(slot.state, State::InFlight | State::Waiting));
        }
        Ok(())
    }

    /// The next segment in order, once it is there.
    pub(crate) fn pop_ready(&mut self) -> Option<P> {
        if !matches!(self.slots.front()?.state, State::Received(_)) {
            return None;
        }
        self.base += 1;
        match self.slots.pop_front()?.state {
            State::Received(payload) => Some(payload),
            _ => None,
        }
    }

    /// The face is gone: what was in flight is lost, and nothing is sent until [`Self::resume`].
    pub(crate) fn pause(&mut self) {
        self.paused = true;
        self.lost.clear();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if !matches!(slot.state, State::Received(_)) {
                slot.state = State::Lost;
                // The outage is not the segment's fault.
                slot.tries = slot.tries.min(1);
                self.lost.push_back(self.base + at as u64);
            }
        }
        self.in_flight = 0;
        self.check_at = Tick::NEVER;
    }

    /// The face is back: start again from a small window, as on a new path.
    pub(crate) fn resume(&mut self) {
        if self.paused {
            self.paused = false;
            self.window = Window::new(self.options.law);
            self.rtt = self.rtt.restarted();
            self.recovery = None;
            self.round = Round::default();
        }
    }
}

#[cfg(test)]
mod tests;
