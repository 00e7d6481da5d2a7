//! The processor of a node: each frame costs time, what waits is bounded, other programs take a
//! share.

use onym_tables::Tick;
use std::collections::VecDeque;
use std::time::Duration;

/// A program that competes for the processor: it takes `duty` of it for `on`, sleeps for `off`,
/// and begins at `phase`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Share of the processor that it takes, 0 to below 1.
    pub duty: f64,
    /// How long it runs; more than zero.
    pub on: Duration,
    /// How long it sleeps.
    pub off: Duration,
    /// When it runs first.
    pub phase: Duration,
}

/// How fast a node works.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcessorConfig {
    /// Time that one frame takes on a whole processor.
    pub cost: Duration,
    /// Share of a processor that the node may use, above 0 to 1.
    pub share: f64,
    /// Frames that wait at most; a further one is lost, as in a full receive buffer.
    pub waiting_max: usize,
    /// Who competes.
    pub load: Option<Load>,
}

impl Default for ProcessorConfig {
    fn default() -> Self {
        Self { cost: Duration::ZERO, share: 1.0, waiting_max: 1000, load: None }
    }
}

/// What a processor did.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessorCounters {
    /// Frames that found no room to wait.
    pub shed: u64,
    /// Processor time used, in seconds of a whole processor.
    pub used_s: f64,
    /// Time during which a frame was being worked on.
    pub busy: Duration,
}

/// One node's processor: frames are worked on one after another.
#[derive(Debug)]
pub struct Processor {
    config: ProcessorConfig,
    /// When each accepted frame begins and is done.
    accepted: VecDeque<(Tick, Tick)>,
    counters: ProcessorCounters,
}

impl Processor {
    /// An idle processor.
    #[must_use]
    pub fn new(config: ProcessorConfig) -> Self {
        Self { config, accepted: VecDeque::new(), counters: ProcessorCounters::default() }
    }

    /// What it did until `now`.
    #[must_use]
    pub fn counters(&self) -> ProcessorCounters {
        self.counters
    }

    /// Takes a frame; returns when it is done, or `None` when there is no room.
    pub fn admit(&mut self, now: Tick) -> Option<Tick> {
        // One frame is being worked on, the others wait.
        if self.accepted.len() > self.config.waiting_max {
            self.counters.shed += 1;
            return None;
        }
        let begin = self.accepted.back().map_or(now, |(_, done)| (*done).max(now));
        let done = self.finish(begin);
        self.accepted.push_back((begin, done));
        Some(done)
    }

    /// The frame admitted first is done.
    pub fn complete(&mut self) {
        if let Some((begin, done)) = self.accepted.pop_front() {
            self.counters.used_s += self.config.cost.as_secs_f64();
            self.counters.busy += done.since(begin);
        }
    }

    /// When a frame that begins at `begin` is done.
    fn finish(&self, begin: Tick) -> Tick {
        let mut left = self.config.cost.as_secs_f64();
        let mut at = begin;
        loop {
            let (speed, until) = self.speed(at);
            let need = left / speed;
            let span = until.map(|until| until.since(at).as_secs_f64());
            match (span, until) {
                (Some(span), Some(until)) if span < need => {
                    left -= span * speed;
                    at = until;
                }
                _ => return at + Duration::from_secs_f64(need),
            }
        }
    }

    /// The share that the node has at `at`, and until when.
    fn speed(&self, at: Tick) -> (f64, Option<Tick>) {
        let share = self.config.share;
        let Some(load) = self.config.load else { return (share, None) };
        let first = Tick::default() + load.phase;
        if at < first {
            return (share, Some(first));
        }
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4);
        let (on, period) = (nanos(load.on), nanos(load.on + load.off).max(1));
        let into = (at.0 - first.0) % period;
        let start = at.0 - into;
        if into < on {
            (share * (1.0 - load.duty), Some(Tick(start + on)))
        } else {
            (share, Some(Tick(start + period)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn ms(tick: Tick) -> u128 {
        tick.since(Tick::default()).as_millis()
    }

    #[test]
    fn a_quarter_of_a_processor_takes_four_times_as_long() {
        let config = ProcessorConfig { cost: MS, share: 0.25, ..ProcessorConfig::default() };
        let mut processor = Processor::new(config);
        let done: Vec<_> = (0..3).map(|_| ms(processor.admit(Tick::default()).unwrap())).collect();
        assert_eq!(done, [4, 8, 12]);
        processor.complete();
        assert_eq!(processor.counters().busy, 4 * MS);
    }

    #[test]
    fn what_finds_no_room_is_shed() {
        let config = ProcessorConfig { cost: MS, waiting_max: 2, ..ProcessorConfig::default() };
        let mut processor = Processor::new(config);
        let taken = (0..5).filter(|_| processor.admit(Tick::default()).is_some()).count();
        assert_eq!((taken, processor.counters().shed), (3, 2));
    }

    #[test]
    fn competing_load_slows_work_while_it_runs() {
        let load = Load { duty: 0.9, on: 10 * MS, off: 20 * MS, phase: 5 * MS };
        let cost = 6 * MS;
        let config = ProcessorConfig { cost, load: Some(load), ..ProcessorConfig::default() };
        let mut processor = Processor::new(config);
        // 5 ms at full speed, then 1 ms of work at a tenth: 10 ms.
        assert_eq!(ms(processor.admit(Tick::default()).unwrap()), 15);
        // From 15 to 21 ms nothing competes.
        assert_eq!(ms(processor.admit(Tick::default()).unwrap()), 21);
        // 14 ms to the next period at 35 ms.
        assert_eq!(ms(processor.admit(Tick::default()).unwrap()), 27);
    }
}
