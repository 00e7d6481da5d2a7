//! The highest rate of publications at which no more than a share of them is lost.

use super::Found;
use anyhow::{Context, Result};

/// Halvings of the range in which the rate is: below one per cent of it remains.
const STEPS: usize = 7;

/// Runs without a rate, and if more than `lost_max` is lost, at rates that halve the range between
/// what was carried and what was not; the run with the highest that was carried.
pub(super) fn highest(
    lost_max: f64,
    mut run: impl FnMut(Option<u32>) -> Result<Found>,
) -> Result<Found> {
    let first = run(None)?;
    if first.lost_share() <= lost_max {
        return Ok(first);
    }
    let (mut low, mut high, mut best) = (0.0, first.sent_rate, None);
    for _ in 0..STEPS {
        let rate = f64::midpoint(low, high);
        let found = run(Some(rate as u32))?;
        if found.lost_share() <= lost_max {
            (low, best) = (rate, Some(found));
        } else {
            high = rate;
        }
    }
    best.with_context(|| format!("more than {lost_max} is lost at {high:.0} a second"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Carries 1000 a second and no more.
    fn carried(rate: Option<u32>) -> Found {
        let sent = u64::from(rate.unwrap_or(5000));
        let received = sent.min(1000);
        let lost = sent - received;
        Found {
            sent,
            sent_rate: sent as f64,
            rate: received as f64,
            received,
            lost,
            ..Found::default()
        }
    }

    #[test]
    fn the_highest_rate_with_few_losses_is_found() {
        let found = highest(0.05, |rate| Ok(carried(rate))).expect("some rate is carried");
        assert!(
            found.lost_share() <= 0.05 && (1000.0..1053.0).contains(&found.sent_rate),
            "{found:?}"
        );
    }

    #[test]
    fn who_loses_at_any_rate_has_none() {
        let lost = |_| Ok(Found { sent: 10, sent_rate: 10.0, lost: 10, ..Found::default() });
        assert!(highest(0.05, lost).is_err());
    }
}
