//! One direction of a link: rate, delay, loss, and a queue that drops at its tail.

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
    /// Most frames that wait for the one being sent; a further one is dropped.
    pub queue_max: usize,
    /// Longest frame in octets: larger packets are cut by the link service. `None`: 8800, no cutting.
    pub mtu: Option<usize>,
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self { delay: Duration::ZERO, rate_bps: None, loss: 0.0, queue_max: 100, mtu: None }
    }
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It arrives at this moment.
    Arrives(Tick),
    /// It was sent and got lost.
    Lost,
    /// The queue was full.
    Dropped,
}

/// Frames by what became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Frames offered.
    pub offered: u64,
    /// Octets of the frames offered.
    pub octets: u64,
    /// Frames that arrive.
    pub carried: u64,
    /// Frames lost on the way.
    pub lost: u64,
    /// Frames that found the queue full.
    pub dropped: u64,
}

/// One direction of a link.
#[derive(Debug)]
pub struct Channel {
    config: ChannelConfig,
    /// When each frame in the queue has left, with its length; the first one is being sent.
    leaving: VecDeque<(Tick, usize)>,
    octets_waiting: usize,
    counters: ChannelCounters,
}

impl Channel {
    /// An idle channel.
    #[must_use]
    pub fn new(config: ChannelConfig) -> Self {
        let counters = ChannelCounters::default();
        Self { config, leaving: VecDeque::new(), octets_waiting: 0, counters }
    }

    /// Offers a frame of `len` octets.
    pub fn send(&mut self, now: Tick, len: usize, rng: &mut Rng) -> Fate {
        self.counters.offered += 1;
        self.counters.octets += len as u64;
        self.settle(now);
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
        Fate::Arrives(left + self.config.delay)
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
