//! One direction of a link: rate, delay, a queue that drops at its tail, and faults: loss, jitter
//! (which reorders), duplication, and times at which the link is down.

use onym_tables::{Rng, Tick};
use std::collections::VecDeque;
use std::time::Duration;

/// What a link does to frames, in each direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChannelConfig {
    /// Propagation delay.
    pub delay: Duration,
    /// Bits per second; `None` is unlimited: frames do not wait for each other.
    pub rate_bps: Option<u64>,
    /// Share of frames that are lost on the way, 0 to 1.
    pub loss: f64,
    /// Longest random addition to the delay; frames overtake each other within it.
    pub jitter: Duration,
    /// Share of frames that arrive twice, 0 to 1.
    pub duplicate: f64,
    /// Most frames that wait for the one being sent; a further one is dropped.
    pub queue_max: usize,
    /// Longest frame in octets: larger packets are cut by the link service. `None`: 8800, no cutting.
    pub mtu: Option<usize>,
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            rate_bps: None,
            loss: 0.0,
            jitter: Duration::ZERO,
            duplicate: 0.0,
            queue_max: 100,
            mtu: None,
        }
    }
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at this moment.
    Arrives(Tick),
    /// It arrives twice, at these moments.
    Twice(Tick, Tick),
    /// It was sent and got lost.
    Lost,
    /// The queue was full.
    Dropped,
    /// The link was down.
    Down,
}

/// Frames by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Frames offered.
    pub offered: u64,
    /// Octets of the frames offered.
    pub octets: u64,
    /// Frames that arrive, the second copies of duplicated ones included.
    pub carried: u64,
    /// Octets of the frames that arrive, second copies not counted.
    pub octets_carried: u64,
    /// Second copies.
    pub duplicated: u64,
    /// Frames lost on the way.
    pub lost: u64,
    /// Frames that found the queue full.
    pub dropped: u64,
    /// Frames offered while the link was down.
    pub down: u64,
    /// Time that frames waited for the line, in all.
    pub waited: Duration,
    /// Longest time that one frame waited for the line.
    pub waited_max: Duration,
}

impl ChannelCounters {
    /// Whether every frame offered had one fate.
    #[must_use]
    pub fn balance(&self) -> bool {
        let fates = self.carried + self.lost + self.dropped + self.down;
        self.offered + self.duplicated == fates
    }
}

/// One direction of a link.
#[derive(Debug)]
pub struct Channel {
    config: ChannelConfig,
    /// When each frame in the queue has left, with its length; the first one is being sent.
    leaving: VecDeque<(Tick, usize)>,
    octets_waiting: usize,
    is_up: bool,
    counters: ChannelCounters,
}

impl Channel {
    /// An idle channel.
    #[must_use]
    pub fn new(config: ChannelConfig) -> Self {
        let counters = ChannelCounters::default();
        Self { config, leaving: VecDeque::new(), octets_waiting: 0, is_up: true, counters }
    }

    /// Offers a frame of `len` octets.
    pub fn send(&mut self, now: Tick, len: usize, rng: &mut Rng) -> Fate {
        self.counters.offered += 1;
        self.counters.octets += len as u64;
        self.settle(now);
        if !self.is_up {
            self.counters.down += 1;
            return Fate::Down;
        }
        // One frame is being sent, the others wait.
        if self.leaving.len() > self.config.queue_max {
            self.counters.dropped += 1;
            return Fate::Dropped;
        }
        let left = match self.config.rate_bps {
            None => now,
            Some(rate) => {
                let start = self.leaving.back().map_or(now, |(left, _)| *left).max(now);
                let left = start + transmission(len, rate);
                let waited = start.since(now);
                self.counters.waited += waited;
                self.counters.waited_max = self.counters.waited_max.max(waited);
                self.leaving.push_back((left, len));
                self.octets_waiting += len;
                left
            }
        };
        if self.config.loss > 0.0 && unit(rng) < self.config.loss {
            self.counters.lost += 1;
            return Fate::Lost;
        }
        self.counters.carried += 1;
        self.counters.octets_carried += len as u64;
        let arrives = self.arrival(left, rng);
        if self.config.duplicate > 0.0 && unit(rng) < self.config.duplicate {
            self.counters.carried += 1;
            self.counters.duplicated += 1;
            return Fate::Twice(arrives, self.arrival(left, rng));
        }
        Fate::Arrives(arrives)
    }

    fn arrival(&self, left: Tick, rng: &mut Rng) -> Tick {
        let arrives = left + self.config.delay;
        if self.config.jitter.is_zero() {
            return arrives;
        }
        arrives + self.config.jitter.mul_f64(unit(rng))
    }

    /// Takes the link down, or up again. Frames on their way arrive.
    pub fn set_up(&mut self, is_up: bool) {
        self.is_up = is_up;
    }

    /// Octets that wait or are being sent at `now`.
    pub fn backlog(&mut self, now: Tick) -> usize {
        self.settle(now);
        self.octets_waiting
    }

    fn settle(&mut self, now: Tick) {
        while let Some((_, len)) = self.leaving.front().filter(|(left, _)| *left <= now) {
            self.octets_waiting -= len;
            self.leaving.pop_front();
        }
    }

    /// How the channel behaves.
    #[must_use]
    pub fn config(&self) -> &ChannelConfig {
        &self.config
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> ChannelCounters {
        self.counters
    }
}

/// Time to put `len` octets on a line of `rate_bps`.
fn transmission(len: usize, rate_bps: u64) -> Duration {
    let ns = len as u128 * 8 * 1_000_000_000 / u128::from(rate_bps.max(1));
    Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
}

/// A number from 0 to below 1.
pub(crate) fn unit(rng: &mut Rng) -> f64 {
    // 53 bits fill the mantissa exactly.
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_wait_for_each_other_and_the_queue_drops_its_tail() {
        let config = ChannelConfig {
            delay: Duration::from_millis(5),
            rate_bps: Some(8_000_000),
            queue_max: 2,
            ..ChannelConfig::default()
        };
        let mut channel = Channel::new(config);
        let mut rng = Rng::new(1);
        let mut send = |at| channel.send(Tick::from_ms(at), 1000, &mut rng);
        assert_eq!(send(0), Fate::Arrives(Tick::from_ms(6)));
        assert_eq!(send(0), Fate::Arrives(Tick::from_ms(7)));
        assert_eq!(send(0), Fate::Arrives(Tick::from_ms(8)));
        assert_eq!(send(0), Fate::Dropped);
        assert_eq!(send(1), Fate::Arrives(Tick::from_ms(9)));
        assert_eq!(send(20), Fate::Arrives(Tick::from_ms(26)));
        assert_eq!(channel.backlog(Tick::from_ms(20)), 1000);
        assert_eq!(channel.backlog(Tick::from_ms(21)), 0);
        let counters = channel.counters();
        assert_eq!((counters.offered, counters.carried, counters.dropped), (6, 5, 1));
    }

    #[test]
    fn a_link_that_is_down_takes_nothing() {
        let mut channel = Channel::new(ChannelConfig::default());
        let mut rng = Rng::new(1);
        channel.set_up(false);
        assert_eq!(channel.send(Tick(0), 100, &mut rng), Fate::Down);
        channel.set_up(true);
        assert_eq!(channel.send(Tick(0), 100, &mut rng), Fate::Arrives(Tick(0)));
        assert!(channel.counters().balance());
    }

    #[test]
    fn jitter_reorders_and_duplicates_arrive_twice() {
        let config = ChannelConfig {
            delay: Duration::from_millis(10),
            jitter: Duration::from_millis(5),
            duplicate: 0.5,
            ..ChannelConfig::default()
        };
        let mut channel = Channel::new(config);
        let mut rng = Rng::new(3);
        let mut arrivals = Vec::new();
        for _ in 0..1000 {
            match channel.send(Tick(0), 100, &mut rng) {
                Fate::Arrives(at) => arrivals.push(at),
                Fate::Twice(first, second) => arrivals.extend([first, second]),
                other => panic!("seed 3: {other:?}"),
            }
        }
        let (least, most) = (Tick::from_ms(10), Tick::from_ms(15));
        assert!(arrivals.iter().all(|at| (least..most).contains(at)), "seed 3");
        assert!(!arrivals.is_sorted(), "seed 3");
        assert!((1400..1600).contains(&arrivals.len()), "seed 3: {}", arrivals.len());
        assert!(channel.counters().balance());
    }

    #[test]
    fn the_share_of_lost_frames_is_the_configured_one() {
        let mut channel = Channel::new(ChannelConfig { loss: 0.25, ..ChannelConfig::default() });
        let mut rng = Rng::new(7);
        for _ in 0..10_000 {
            channel.send(Tick(0), 100, &mut rng);
        }
        let lost = channel.counters().lost;
        assert!((2300..2700).contains(&lost), "seed 7: {lost} of 10000");
    }
}
