//! CUBIC (RFC 9438) with the cuts of the field's fetchers.

use super::WindowOptions;
use onym_tables::id::Tick;
use std::time::Duration;

/// Options of CUBIC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CubicOptions {
    /// What all windows share.
    pub window: WindowOptions,
    /// Part of the window that a cut leaves.
    pub beta: f64,
    /// Give room to new flows: remember less than the last maximum when windows shrink.
    pub fast_convergence: bool,
}

impl Default for CubicOptions {
    fn default() -> Self {
        Self { window: WindowOptions::default(), beta: 0.7, fast_convergence: false }
    }
}

/// Scale of the cubic, in segments per cubic second.
const C: f64 = 0.4;

#[derive(Debug, Clone)]
pub(super) struct Cubic {
    options: CubicOptions,
    size: f64,
    threshold: f64,
    /// Window before the last cut.
    max: f64,
    /// The value of `max` before that, for fast convergence.
    max_before: f64,
    /// What AIMD of the same average would have: it grows by what arrives, never by time that
    /// passes without an answer.
    friendly: f64,
    /// When the present epoch of growth began: the last cut, or the end of slow start.
    epoch: Option<Tick>,
}

impl Cubic {
    pub(super) fn new(options: CubicOptions) -> Self {
        Self {
            size: options.window.initial,
            threshold: options.window.threshold,
            options,
            max: 0.0,
            max_before: 0.0,
            friendly: 0.0,
            epoch: None,
        }
    }

    pub(super) fn on_data(&mut self, now: Tick, rtt: Duration) {
        if self.in_slow_start() {
            self.size += 1.0;
            return;
        }
        let epoch = *self.epoch.get_or_insert(now);
        let beta = self.options.beta;
        let k = (self.max * (1.0 - beta) / C).cbrt();
        let at = |t: f64| C * (t - k).powi(3) + self.max;
        let t = now.since(epoch).as_secs_f64();
        let gain = if self.friendly < self.max { 3.0 * (1.0 - beta) / (1.0 + beta) } else { 1.0 };
        self.friendly = self.friendly.max(self.options.window.initial) + gain / self.size;
        if at(t) < self.friendly {
            self.size = self.size.max(self.friendly);
        } else {
            let target = at(t + rtt.as_secs_f64()).clamp(self.size, self.size * 1.5);
            self.size += (target - self.size) / self.size;
        }
    }

    pub(super) fn cut(&mut self, now: Tick) {
        self.max = if self.options.fast_convergence && self.size < self.max_before {
            self.size * (1.0 + self.options.beta) / 2.0
        } else {
            self.size
        };
        self.max_before = self.max;
        self.threshold = self.options.window.initial.max(self.size * self.options.beta);
        self.size = if self.options.window.reset_to_initial {
            self.options.window.initial
        } else {
            self.threshold
        };
        self.friendly = self.size;
        self.epoch = Some(now);
    }

    pub(super) fn leave_slow_start(&mut self, now: Tick) {
        if self.in_slow_start() {
            self.threshold = self.size;
            // Growth starts from the plateau of the cubic, as after a cut from this size.
            self.max = self.size;
            self.friendly = self.size;
            self.epoch = Some(now);
        }
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    pub(super) fn size(&self) -> f64 {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(50);

    fn at_cut(size: f64) -> Cubic {
        let window = WindowOptions { initial: size, ..WindowOptions::default() };
        let mut cubic = Cubic::new(CubicOptions { window, ..CubicOptions::default() });
        cubic.options.window.initial = 2.0;
        cubic.cut(Tick(0));
        cubic
    }

    #[test]
    fn a_cut_leaves_seven_tenths() {
        assert!((at_cut(100.0).size() - 70.0).abs() < 1e-9);
    }

    #[test]
    fn the_window_is_back_at_its_maximum_after_k_seconds_and_flat_there() {
        let mut cubic = at_cut(100.0);
        let k = (100.0_f64 * 0.3 / C).cbrt();
        let step = Duration::from_millis(1);
        let mut now = Tick(0);
        while now.since(Tick(0)).as_secs_f64() < k {
            now = now + step;
            cubic.on_data(now, RTT);
        }
        assert!((cubic.size() - 100.0).abs() < 1.0, "{} after {k} s", cubic.size());
    }

    #[test]
    fn below_the_cubic_the_window_grows_by_half_a_segment_a_round_trip_and_not_by_waiting() {
        let rtt = Duration::from_micros(300);
        let mut cubic = at_cut(20.0);
        cubic.on_data(Tick(0) + Duration::from_millis(200), rtt);
        assert!(cubic.size() < 14.2, "{}: silence is no reason to grow", cubic.size());
        let mut cubic = at_cut(20.0);
        for _ in 0..14 {
            cubic.on_data(Tick(0) + rtt, rtt);
        }
        assert!((14.5..14.6).contains(&cubic.size()), "{}", cubic.size());
    }

    #[test]
    fn fast_convergence_remembers_less_when_windows_shrink() {
        let mut cubic = at_cut(100.0);
        cubic.options.fast_convergence = true;
        cubic.max_before = 100.0;
        cubic.cut(Tick(1));
        assert!((cubic.max - 70.0 * 0.85).abs() < 1e-9);
    }
}
