//! Measurements of a link: round-trip time, loss, whether full-size packets pass; and what they add
//! to its cost.

use crate::table::PeerId;
use onym_tables::Tick;
use std::time::Duration;

/// What a measured link adds to its configured cost, at most.
const ADDED_MAX: u64 = 255;
/// Probes whose loss is known, at most, and at least before loss costs anything.
const WINDOW: u32 = 32;
const WINDOW_MIN: u32 = 8;
/// A measured cost differs from the one in use by this much, in thousandths, or by a quarter of it,
/// before it is taken.
const BAND: u64 = 750;
/// Full packets lost in a row beside small ones that pass: the MTU is too large.
const FULL_LOST: u32 = 3;
/// A new face is tried after these times.
const FIRST_MS: u64 = 200;

/// What quality of a link adds to its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CostBy {
    /// One more for each of this round-trip time; zero: time adds nothing.
    pub rtt: Duration,
    /// One more for each so many of a hundred probes that are lost; zero: loss adds nothing.
    pub loss_percent: u32,
}

impl CostBy {
    pub(super) fn is_on(self) -> bool {
        self.loss_percent > 0 || !self.rtt.is_zero()
    }
}

/// What is known about one face of a neighbour.
#[derive(Debug, Clone, Default)]
pub(super) struct Measure {
    pub(super) next: Tick,
    pub(super) sent: u32,
    pub(super) rtt: Option<Duration>,
    /// The newest probe in the lowest bit; a one was lost.
    lost: u32,
    samples: u32,
    /// Probes of full size lost in a row.
    full_lost: u32,
    full_passed: bool,
    /// What the configured cost grows by.
    pub(super) added: u64,
    /// Since when what is measured is far from that.
    apart_since: Option<Tick>,
}

impl Measure {
    pub(super) fn new(now: Tick) -> Self {
        Self { next: now.plus_ms(FIRST_MS), ..Self::default() }
    }

    pub(super) fn answered(&mut self, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            self.rtt = Some(self.rtt.map_or(rtt, |old| (old * 7 + rtt) / 8));
        }
        self.sample(0);
    }

    /// A probe that was lost counts once one was answered: before, nobody there knows probes.
    pub(super) fn unanswered(&mut self) {
        if self.samples > 0 {
            self.sample(1);
        }
    }

    fn sample(&mut self, lost: u32) {
        self.lost = (self.lost << 1) | lost;
        self.samples = (self.samples + 1).min(WINDOW);
    }

    pub(super) fn full(&mut self, passed: Option<()>) {
        self.full_passed |= passed.is_some();
        self.full_lost = if passed.is_some() { 0 } else { self.full_lost.saturating_add(1) };
    }

    /// Of a hundred probes, those lost; nothing before there are enough of them.
    pub(super) fn loss_percent(&self) -> Option<u32> {
        (self.samples >= WINDOW_MIN).then(|| self.lost.count_ones() * 100 / self.samples)
    }

    /// Whether packets of full size pass; nothing while that is open.
    pub(super) fn full_size(&self) -> Option<bool> {
        match (self.full_lost, self.samples) {
            (0, _) if self.full_passed => Some(true),
            (FULL_LOST.., 1..) => Some(false),
            _ => None,
        }
    }

    /// Whether it is not known yet what passes, so that the next probe shall not wait for long.
    pub(super) fn is_open(&self) -> bool {
        self.sent < 2 || (1..FULL_LOST).contains(&self.full_lost)
    }

    /// The cost to add, in thousandths.
    fn wanted(&self, by: CostBy) -> u64 {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let rtt = self.rtt.map_or(0, micros).saturating_mul(1000);
        let by_rtt = rtt.checked_div(micros(by.rtt)).unwrap_or(0);
        let loss = u64::from(self.loss_percent().unwrap_or(0)) * 1000;
        let by_loss = loss.checked_div(by.loss_percent.into()).unwrap_or(0);
        by_rtt.saturating_add(by_loss).min(ADDED_MAX * 1000)
    }

    /// Takes what is measured once it is far from what is in use for the time `settle`. Says whether
    /// the cost is another one.
    pub(super) fn adopt(&mut self, now: Tick, by: CostBy, settle: Duration) -> bool {
        let (wanted, used) = (self.wanted(by), self.added * 1000);
        if wanted.abs_diff(used) < BAND.max(used / 4) {
            self.apart_since = None;
            return false;
        }
        let since = *self.apart_since.get_or_insert(now);
        if now < since + settle {
            return false;
        }
        self.apart_since = None;
        let before = std::mem::replace(&mut self.added, (wanted + 500) / 1000);
        before != self.added
    }
}

/// A probe without an answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Probe {
    pub(super) peer: PeerId,
    pub(super) face: u64,
    /// Its answer has full size.
    pub(super) is_full: bool,
}

/// The answer to a probe, checked or not yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Echo {
    pub(super) probe: Probe,
    pub(super) rtt: Option<Duration>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const BY: CostBy = CostBy { rtt: Duration::from_millis(10), loss_percent: 10 };
    const SETTLE: Duration = Duration::from_secs(5);

    /// Echoes, one each second, of these times in ms; none is a loss. How often the cost changed.
    fn run(measure: &mut Measure, from_s: u64, echoes: &[Option<u64>]) -> u32 {
        let mut changes = 0;
        for (second, echo) in echoes.iter().enumerate() {
            match echo {
                Some(ms) => measure.answered(Some(Duration::from_millis(*ms))),
                None => measure.unanswered(),
            }
            let now = Tick::from_ms((from_s + second as u64) * 1000);
            changes += u32::from(measure.adopt(now, BY, SETTLE));
        }
        changes
    }

    #[test]
    fn a_cost_follows_time_and_loss_and_only_what_lasts() {
        let mut measure = Measure::default();
        assert_eq!((run(&mut measure, 0, &[Some(40); 10]), measure.added), (1, 4));
        // Around the boundary of a unit, and a peak of some seconds.
        let around: Vec<_> = (0..200).map(|i| Some(if i % 2 == 0 { 31 } else { 48 })).collect();
        assert_eq!((run(&mut measure, 100, &around), measure.added), (0, 4));
        let slower = run(&mut measure, 400, &[Some(120); 60]);
        assert!((10..=12).contains(&measure.added) && slower <= 4, "{slower} {measure:?}");
        let faster = run(&mut measure, 500, &[Some(1); 100]);
        assert!(measure.added <= 1 && faster <= 8, "{faster} {measure:?}");
        let lossy: Vec<_> = (0..64).map(|i| (i % 2 == 0).then_some(1)).collect();
        run(&mut measure, 700, &lossy);
        assert!((4..=6).contains(&measure.added), "half are lost: {measure:?}");
    }

    #[test]
    fn who_never_answered_a_probe_lost_none() {
        let mut measure = Measure::default();
        assert_eq!(run(&mut measure, 0, &[None; 100]), 0);
        assert_eq!((measure.added, measure.loss_percent(), measure.full_size()), (0, None, None));
    }

    #[test]
    fn three_full_packets_in_a_row_that_are_lost_beside_small_ones_tell_of_the_mtu() {
        let mut measure = Measure::default();
        run(&mut measure, 0, &[Some(1); 3]);
        (0..2).for_each(|_| measure.full(None));
        assert_eq!(measure.full_size(), None);
        measure.full(None);
        assert_eq!(measure.full_size(), Some(false));
        measure.full(Some(()));
        assert_eq!(measure.full_size(), Some(true));
    }
}
