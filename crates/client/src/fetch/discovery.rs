//! Finding the version of an object: by its metadata (RDR), and, for producers without metadata,
//! by whatever segment answers the bare name (as ndn-cxx's SegmentFetcher does).

use crate::request::{Request, Unanswered};
use onym_tables::Tick;
use onym_wire::NackReason;
use onym_wire::name::Name;
use std::time::Duration;

/// A request of discovery.
pub(crate) type Ask = Request;

/// Time between two asks; an earlier one stays pending for its lifetime and may still be answered.
const STEP: Duration = Duration::from_secs(1);
/// Time before asking again after a refusal that may pass.
const PATIENT_STEP: Duration = Duration::from_millis(200);
/// Asks before giving up: metadata and segment in turn.
const ASKS_MAX: u32 = 8;

/// How the version of an object is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Find {
    /// By metadata, or else by a segment; a name that ends with a version is taken as it is.
    #[default]
    Auto,
    /// By a segment only, as for the datasets of management.
    Segment,
    /// Not at all: the name is the versioned name, whatever its last component.
    Nothing,
}

/// What a refusal by the network says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// There is nothing to fetch.
    Final,
    /// A route is missing that may come back.
    MayPass,
}

#[derive(Debug)]
pub(crate) struct Discovery {
    metadata: bool,
    asked: u32,
    /// Asks that were neither answered nor failed.
    waiting: u32,
    /// Asks in a row that were refused: metadata, then segment.
    refused: u32,
    next_at: Tick,
}

impl Discovery {
    pub(crate) fn new(now: Tick, find: Find) -> Self {
        Self { metadata: find == Find::Auto, asked: 0, waiting: 0, refused: 0, next_at: now }
    }

    pub(crate) fn next_timer(&self) -> Tick {
        if self.asked >= ASKS_MAX { Tick::NEVER } else { self.next_at }
    }

    pub(crate) fn next_ask(&mut self, now: Tick, name: &Name, lifetime: Duration) -> Option<Ask> {
        if now < self.next_timer() {
            return None;
        }
        let mut name = name.clone();
        if self.metadata && self.asked.is_multiple_of(2) {
            name.append_keyword("metadata");
        }
        self.asked += 1;
        self.waiting += 1;
        self.next_at = now + STEP;
        Some(Request { can_be_prefix: true, must_be_fresh: true, lifetime, ..Request::new(name) })
    }

    /// An ask failed; true when there is no hope left.
    pub(crate) fn on_failure(&mut self, now: Tick, why: Unanswered, refused: Refused) -> bool {
        self.waiting = self.waiting.saturating_sub(1);
        match why {
            Unanswered::Nack(NackReason::CONGESTION | NackReason::DUPLICATE) => {}
            Unanswered::Nack(_) if refused == Refused::MayPass => {
                self.asked = self.asked.min(ASKS_MAX - 1);
                self.next_at = now + PATIENT_STEP;
            }
            Unanswered::Nack(_) => {
                // The other form of asking at once; when both are refused there is nothing.
                self.refused += 1;
                self.next_at = now;
                return self.refused >= if self.metadata { 2 } else { 1 };
            }
            Unanswered::Timeout => {}
            Unanswered::Disconnected => return true,
        }
        self.asked >= ASKS_MAX && self.waiting == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(d: &mut Discovery, now: Tick) -> Option<String> {
        d.next_ask(now, &"/f".parse().unwrap(), Duration::from_secs(4)).map(|a| a.name.to_string())
    }

    #[test]
    fn metadata_and_segment_are_asked_for_in_turn_until_both_are_refused() {
        let mut d = Discovery::new(Tick(0), Find::Auto);
        assert_eq!(ask(&mut d, Tick(0)).unwrap(), "/f/32=metadata");
        assert_eq!(ask(&mut d, Tick(0)), None);
        let refusal = Unanswered::Nack(NackReason::NO_ROUTE);
        assert!(!d.on_failure(Tick::from_ms(5), refusal, Refused::Final));
        assert_eq!(ask(&mut d, Tick::from_ms(5)).unwrap(), "/f");
        assert!(d.on_failure(Tick::from_ms(6), refusal, Refused::Final));
    }

    #[test]
    fn silence_ends_after_the_last_ask_was_waited_for() {
        let mut d = Discovery::new(Tick(0), Find::Auto);
        let mut now = 0;
        while ask(&mut d, Tick::from_ms(now)).is_some() {
            now += 1000;
        }
        assert_eq!((d.asked, d.next_timer()), (ASKS_MAX, Tick::NEVER));
        for n in 1..=ASKS_MAX {
            assert_eq!(
                d.on_failure(Tick::from_ms(now), Unanswered::Timeout, Refused::Final),
                n == ASKS_MAX
            );
        }
    }

    #[test]
    fn a_missing_route_is_waited_for_after_a_restart_of_the_node() {
        let mut d = Discovery::new(Tick(0), Find::Auto);
        for n in 0..50 {
            let now = Tick::from_ms(200 * n);
            assert!(ask(&mut d, now).is_some(), "{n}");
            assert!(!d.on_failure(now, Unanswered::Nack(NackReason::NO_ROUTE), Refused::MayPass));
        }
    }
}
