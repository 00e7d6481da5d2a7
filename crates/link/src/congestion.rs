//! Congestion marking after CoDel: marks when a queue stays long, not when it is long for a moment.

use super::config::CongestionConfig;
use onym_tables::Tick;
use std::time::Duration;

/// State of marking on one face.
#[derive(Debug, Default)]
pub(crate) struct Congestion {
    /// When the next packet is marked; `None` while the queue is short.
    next_mark: Option<Tick>,
    /// Marks since the queue became long.
    marked: u32,
}

impl Congestion {
    /// Whether the packet about to be sent is marked, with `queue_len` octets before it.
    pub(crate) fn check(&mut self, now: Tick, queue_len: usize, config: CongestionConfig) -> bool {
        if queue_len <= config.threshold {
            if self.next_mark.is_some() {
                *self = Self::default();
            }
            return false;
        }
        let Some(next) = self.next_mark else {
            self.next_mark = Some(now + config.base_interval);
            return false;
        };
        if now < next {
            return false;
        }
        self.marked = self.marked.saturating_add(1);
        self.next_mark = Some(next + interval(config.base_interval, self.marked));
        true
    }
}

/// base / sqrt(marks so far + 1): marks come closer while congestion lasts.
fn interval(base: Duration, marked: u32) -> Duration {
    base.div_f64(f64::from(marked.saturating_add(1)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: CongestionConfig =
        CongestionConfig { base_interval: Duration::from_millis(100), threshold: 1000 };

    #[test]
    fn only_a_queue_that_stays_long_for_an_interval_is_marked() {
        let mut c = Congestion::default();
        assert!(!c.check(Tick::from_ms(0), 1001, CONFIG));
        assert!(!c.check(Tick::from_ms(99), 5000, CONFIG));
        assert!(!c.check(Tick::from_ms(100), 1000, CONFIG), "short again: start over");
        assert!(!c.check(Tick::from_ms(101), 1001, CONFIG));
        assert!(!c.check(Tick::from_ms(200), 1001, CONFIG));
        assert!(c.check(Tick::from_ms(201), 1001, CONFIG));
    }

    #[test]
    fn marks_come_closer_by_the_square_root_law() {
        let mut c = Congestion::default();
        let mut marks = Vec::new();
        for ms in 0..400 {
            if c.check(Tick::from_ms(ms), 2000, CONFIG) {
                marks.push(ms);
            }
        }
        // 100, then + 100/sqrt(2), + 100/sqrt(3), + 100/sqrt(4), + 100/sqrt(5).
        assert_eq!(marks, [100, 171, 229, 279, 324, 364]);
    }
}
