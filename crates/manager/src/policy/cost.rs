//! What a packet costs a neighbour, as a line over the number of clones that it serves.

use std::collections::VecDeque;

/// Points kept; older ones are forgotten, because machines and traffic change.
const POINTS_MAX: usize = 32;

/// Fits `load = rate × (a + b × clones)`: `a` is the work for a packet, `b` the work for each
/// copy (`spec` of the headroom rule: a neighbour that multicasts to all clones pays `b` for each).
#[derive(Debug, Clone, Default)]
pub struct Cost {
    points: VecDeque<(f64, f64)>,
}

impl Cost {
    /// Notes that `clones` clones at `rate` packets a second gave the load `load`.
    pub fn note(&mut self, clones: u32, rate: f64, load: f64) {
        if rate < 1.0 || !load.is_finite() {
            return; // An idle neighbour tells nothing about the work for a packet.
        }
        if self.points.len() == POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back((f64::from(clones), load / rate));
    }

    /// By how much the work for a packet grows from `n` clones to `n + 1`; 1 while unknown.
    #[must_use]
    pub fn tax(&self, n: u32) -> f64 {
        let Some((a, b)) = self.fit() else { return 1.0 };
        let n = f64::from(n);
        let (now, then) = (b.mul_add(n, a), b.mul_add(n + 1.0, a));
        if now > 0.0 { (then / now).max(1.0) } else { 1.0 }
    }

    /// Least squares; none before two different numbers of clones were seen.
    fn fit(&self) -> Option<(f64, f64)> {
        let count = self.points.len() as f64;
        let mean_n = self.points.iter().map(|p| p.0).sum::<f64>() / count;
        let mean_c = self.points.iter().map(|p| p.1).sum::<f64>() / count;
        let spread = self.points.iter().map(|p| (p.0 - mean_n).powi(2)).sum::<f64>();
        if spread < 1e-9 || !spread.is_finite() {
            return None;
        }
        let along = self.points.iter().map(|p| (p.0 - mean_n) * (p.1 - mean_c)).sum::<f64>();
        let b = (along / spread).max(0.0);
        Some((mean_c - b * mean_n, b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_numbers_of_the_third_backward_router_are_found_again() {
        // undn: a + 2b = 66.7 us and a + 3b = 89.5 us, so b = 22.8 us and a = 21.1 us.
        let mut cost = Cost::default();
        cost.note(2, 15_000.0, 1.0);
        assert!((cost.tax(2) - 1.0).abs() < 1e-9, "one point says nothing about copies");
        cost.note(3, 11_170.0, 1.0);
        let (a, b) = cost.fit().unwrap();
        assert!((b * 1e6 - 22.8).abs() < 0.3, "{b}");
        assert!((a * 1e6 - 21.0).abs() < 0.6, "{a}");
        assert!((cost.tax(1) - (a + 2.0 * b) / (a + b)).abs() < 1e-9);
    }
}
