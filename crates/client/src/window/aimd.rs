//! Additive increase, multiplicative decrease.

use super::WindowOptions;

/// Options of AIMD.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AimdOptions {
    /// What all windows share.
    pub window: WindowOptions,
    /// Segments added per round trip above the threshold.
    pub step: f64,
    /// Part of the window that a cut leaves.
    pub beta: f64,
}

impl Default for AimdOptions {
    fn default() -> Self {
        Self { window: WindowOptions::default(), step: 1.0, beta: 0.5 }
    }
}

/// Least threshold after a cut.
const THRESHOLD_MIN: f64 = 2.0;

#[derive(Debug, Clone)]
pub(super) struct Aimd {
    options: AimdOptions,
    size: f64,
    threshold: f64,
}

impl Aimd {
    pub(super) fn new(options: AimdOptions) -> Self {
        Self { options, size: options.window.initial, threshold: options.window.threshold }
    }

    pub(super) fn on_data(&mut self) {
        if self.in_slow_start() {
            self.size += self.options.step;
        } else {
            self.size += self.options.step / self.size.floor().max(1.0);
        }
    }

    pub(super) fn cut(&mut self) {
        self.threshold = THRESHOLD_MIN.max(self.size * self.options.beta);
        self.size = if self.options.window.reset_to_initial {
            self.options.window.initial
        } else {
            self.threshold
        };
    }

    pub(super) fn leave_slow_start(&mut self) {
        self.threshold = self.threshold.min(self.size);
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

    #[test]
    fn slow_start_adds_one_a_segment_and_congestion_avoidance_one_a_round_trip() {
        let window = WindowOptions { initial: 2.0, threshold: 8.0, reset_to_initial: false };
        let mut aimd = Aimd::new(AimdOptions { window, ..AimdOptions::default() });
        for _ in 0..6 {
            aimd.on_data();
        }
        assert!((aimd.size() - 8.0).abs() < 1e-9);
        for _ in 0..8 {
            aimd.on_data();
        }
        assert!((aimd.size() - 9.0).abs() < 1e-9);
    }

    #[test]
    fn a_cut_halves_and_never_goes_below_two() {
        let mut aimd = Aimd::new(AimdOptions::default());
        for _ in 0..8 {
            aimd.on_data();
        }
        aimd.cut();
        assert!((aimd.size() - 5.0).abs() < 1e-9);
        for _ in 0..9 {
            aimd.cut();
        }
        assert!((aimd.size() - 2.0).abs() < 1e-9);
    }
}
