//! One direction of an impaired link, as a state machine: frames and `now` go in, due frames come out.

use super::impairment::Impairment;
use onym_frame::RxFrame;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

/// A frame under way.
#[derive(Debug)]
struct Held {
    due: Instant,
    /// Order of arrival: frames due at the same time stay in order.
    number: u64,
    frame: RxFrame,
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.number) == (other.due, other.number)
    }
}
impl Eq for Held {}
impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

#[derive(Debug)]
pub(super) struct Lane {
    impairment: Impairment,
    random: u64,
    held: BinaryHeap<Reverse<Held>>,
    octets: usize,
    number: u64,
    /// When the link has sent what it was given so far.
    busy_until: Option<Instant>,
}

impl Lane {
    pub(super) fn new(impairment: Impairment, seed: u64) -> Self {
        Self {
            impairment,
            random: seed,
            held: BinaryHeap::new(),
            octets: 0,
            number: 0,
            busy_until: None,
        }
    }

    /// A number in 0..1. Xorshift of a Weyl sequence (SplitMix64): reproducible from the seed.
    fn random(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let bits = u32::try_from((z ^ (z >> 31)) >> 32).unwrap_or(0);
        f64::from(bits) / (f64::from(u32::MAX) + 1.0)
    }

    /// Takes a frame that enters the link at `now`; false when the link loses it.
    pub(super) fn offer(&mut self, now: Instant, frame: RxFrame) -> bool {
        let len = frame.bytes.len();
        if self.random() < self.impairment.loss {
            return false;
        }
        if self.octets + len > self.impairment.held_octets_max
            || self.backlog_octets(now) + len > self.impairment.queue_octets_max
        {
            return false;
        }
        let mut due = now;
        if let Some(rate) = self.impairment.rate_bps {
            #[allow(clippy::cast_precision_loss)] // a frame is short, a rate is approximate
            let takes = Duration::from_secs_f64(len as f64 * 8.0 / rate.max(1) as f64);
            due = self.busy_until.map_or(now, |t| t.max(now)) + takes;
            self.busy_until = Some(due);
        }
        due += self.impairment.delay + self.impairment.jitter.mul_f64(self.random());
        self.number += 1;
        self.octets += len;
        self.held.push(Reverse(Held { due, number: self.number, frame }));
        true
    }

    /// The next frame that has arrived at `now`.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<RxFrame> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse(held) = self.held.pop()?;
        self.octets -= held.frame.bytes.len();
        Some(held.frame)
    }

    /// When the next frame arrives.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.held.peek().map(|Reverse(held)| held.due)
    }

    /// Octets that wait for the limited rate; those that only travel do not count.
    pub(super) fn backlog_octets(&self, now: Instant) -> usize {
        let (Some(until), Some(rate)) = (self.busy_until, self.impairment.rate_bps) else {
            return 0;
        };
        let wait = until.saturating_duration_since(now).as_nanos();
        usize::try_from(wait * u128::from(rate) / 8_000_000_000).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_frame::Buf;

    fn frame(number: u8) -> RxFrame {
        RxFrame { endpoint: 0, bytes: Buf::copy_from(&[number; 100]) }
    }

    #[test]
    fn a_delay_keeps_order_and_a_rate_spaces_frames() {
        let delay = Duration::from_millis(10);
        let rate_bps = Some(8_000); // 100 octets take 100 ms
        let mut lane = Lane::new(Impairment { delay, rate_bps, ..Impairment::default() }, 1);
        let t = Instant::now();
        for i in 0..3 {
            assert!(lane.offer(t, frame(i)));
        }
        assert_eq!(lane.backlog_octets(t), 300);
        let ms = |n| t + Duration::from_millis(n);
        assert_eq!(lane.next_due(), Some(ms(110)));
        assert!(lane.pop_due(ms(109)).is_none());
        let arrived: Vec<u8> =
            std::iter::from_fn(|| lane.pop_due(ms(210))).map(|f| f.bytes[0]).collect();
        assert_eq!(arrived, [0, 1]);
    }

    #[test]
    fn the_same_seed_loses_the_same_frames() {
        let lost = |seed| {
            let mut lane = Lane::new(Impairment { loss: 0.3, ..Impairment::default() }, seed);
            let t = Instant::now();
            (0..1000).filter(|_| !lane.offer(t, frame(0))).collect::<Vec<u32>>()
        };
        assert_eq!(lost(7), lost(7));
        assert_ne!(lost(7), lost(8));
        assert!((200..400).contains(&lost(7).len()), "{} of 1000 lost", lost(7).len());
    }

    #[test]
    fn a_full_queue_loses_what_comes() {
        let queue_octets_max = 250;
        let rate_bps = Some(8_000);
        let impairment = Impairment { queue_octets_max, rate_bps, ..Impairment::default() };
        let mut lane = Lane::new(impairment, 1);
        let t = Instant::now();
        let taken = (0..5).filter(|&i| lane.offer(t, frame(i))).count();
        assert_eq!(taken, 2);
    }
}
