//! Rate limit for log lines that strangers can cause.

use onym_tables::Tick;
use std::time::Duration;

/// Lines of one kind that are written in one [`WINDOW`].
const LINES: u32 = 20;
/// How often the count begins anew.
const WINDOW: Duration = Duration::from_secs(10);

/// Lets at most [`LINES`] lines of one kind pass in each [`WINDOW`] and counts the others.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    until: Tick,
    passed: u32,
    held: u64,
}

impl Throttle {
    /// Whether a line may be written at `now`: then how many were held back since the last one.
    pub(crate) fn pass(&mut self, now: Tick) -> Option<u64> {
        if now >= self.until {
            self.until = now + WINDOW;
            self.passed = 0;
        }
        if self.passed == LINES {
            self.held += 1;
            return None;
        }
        self.passed += 1;
        Some(std::mem::take(&mut self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_beyond_the_bound_are_counted_and_told_later() {
        let mut throttle = Throttle::default();
        let at = |s: u64| Tick::default() + Duration::from_secs(s);
        let passed = (0..1000).filter(|_| throttle.pass(at(100)).is_some()).count();
        assert_eq!(passed, LINES as usize);
        assert_eq!(throttle.pass(at(109)), None);
        assert_eq!(throttle.pass(at(110)), Some(1001 - u64::from(LINES)));
        assert_eq!(throttle.pass(at(110)), Some(0));
    }
}
