//! How much of what its links carry a node sends: measured, smoothed, and said when it is news (P-90).

use super::{HOLD, LinkState};
use onym_tables::{FaceId, Tick};
use onym_wire::push::{Control, Load};
use std::collections::BTreeSet;
use std::time::Duration;

/// Percent of a link from which on it is loaded: trees leave it.
pub(crate) const HOT: u8 = 80;
/// Least change in percent that is said.
const STEP: u8 = 10;
/// Least time between two looks at what was sent.
const LOOK: Duration = Duration::from_millis(500);
/// Least time since the last link state before another load is said, when the link is loaded now and
/// was not, and otherwise.
const SOON: Duration = Duration::from_secs(2);
const LATER: Duration = Duration::from_secs(10);

/// What is sent over one link.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// What the link carries, in kilobits per second; 0: nobody said, and there is no load.
    pub(super) capacity: u32,
    /// Octets that were sent, when that was asked last.
    counted: Option<(Tick, u64)>,
    /// Octets per second, smoothed.
    rate: u64,
    said: u8,
}

impl Meter {
    /// So many octets were sent since the link is there.
    fn sent(&mut self, now: Tick, octets: u64) {
        let Some((then, before)) = self.counted else {
            self.counted = Some((now, octets));
            return;
        };
        let time = now.since(then);
        if time < LOOK {
            return;
        }
        self.counted = Some((now, octets));
        let fresh = u128::from(octets.saturating_sub(before)) * 1_000_000_000 / time.as_nanos();
        self.rate = u64::try_from(fresh).unwrap_or(u64::MAX).midpoint(self.rate);
    }

    fn percent(&self) -> u8 {
        let bits = self.rate.saturating_mul(8);
        u8::try_from(bits / (10 * u64::from(self.capacity.max(1)))).unwrap_or(u8::MAX)
    }

    /// What is said of the link with this number, if it has a capacity.
    pub(super) fn say(&mut self, link: u32) -> Option<Load> {
        if self.capacity == 0 {
            return None;
        }
        self.said = self.percent();
        Some(Load { link, capacity: self.capacity, percent: self.said })
    }

    /// How long after the last link state the load is said, if it is another one.
    fn is_news_after(&self) -> Option<Duration> {
        let percent = self.percent();
        if self.capacity == 0 || percent.abs_diff(self.said) < STEP {
            return None;
        }
        Some(if percent >= HOT && self.said < HOT { SOON } else { LATER })
    }
}

impl LinkState {
    /// The link carries so many kilobits per second; 0: that is not known.
    pub fn link_capacity(&mut self, now: Tick, face: FaceId, capacity: u32) {
        let link = self.links.get_mut(&face).filter(|link| link.meter.capacity != capacity);
        if let Some(link) = link {
            link.meter.capacity = capacity;
            self.say_by(now + HOLD);
        }
    }

    /// So many octets were sent over the link since it is there. It is told about once in a second.
    pub fn link_sent(&mut self, now: Tick, face: FaceId, octets: u64) {
        let Some(link) = self.links.get_mut(&face) else { return };
        link.meter.sent(now, octets);
        if let Some(after) = link.meter.is_news_after() {
            self.say_by((self.said_at + after).max(now + HOLD));
        }
    }

    /// Faces of links that have a capacity: what is sent over them is to be told.
    pub fn measured(&self) -> impl Iterator<Item = FaceId> {
        self.links.iter().filter(|(_, link)| link.meter.capacity > 0).map(|(face, _)| *face)
    }
}

/// Loads of links that the link state has, once each: a node says nothing of links of others.
pub(super) fn own_loads(message: &Control) -> Vec<Load> {
    let mut of: BTreeSet<u32> = message.links.iter().map(|link| link.number).collect();
    message.loads.iter().filter(|load| of.remove(&load.link)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link of 8 Mbit/s, which is 10,000 octets per second for each percent.
    fn meter(percents: &[u64]) -> Meter {
        let mut meter = Meter { capacity: 8000, ..Meter::default() };
        let mut octets = 0;
        meter.sent(Tick::from_ms(0), octets);
        for (second, percent) in (1..).zip(percents) {
            octets += percent * 10_000;
            meter.sent(Tick::from_ms(second * 1000), octets);
        }
        meter
    }

    #[test]
    fn a_load_is_smoothed_and_never_more_than_its_octet() {
        assert_eq!(meter(&[100]).percent(), 50);
        assert_eq!(meter(&[100; 8]).percent(), 99);
        assert_eq!(meter(&[100, 100, 0]).percent(), 37);
        assert_eq!(meter(&[u64::MAX / 100_000; 2]).percent(), u8::MAX);
        // A counter that began anew, and a look too early, say nothing.
        let mut meter = meter(&[100; 8]);
        meter.sent(Tick::from_ms(8100), u64::MAX);
        assert_eq!(meter.percent(), 99);
        meter.sent(Tick::from_ms(9000), 5);
        assert_eq!(meter.percent(), 49);
    }

    #[test]
    fn a_change_is_news_from_a_tenth_on_and_soon_when_the_link_is_loaded() {
        let mut meter = meter(&[16]);
        assert_eq!(meter.is_news_after(), None);
        meter.rate = 100_000;
        assert_eq!(meter.is_news_after(), Some(LATER));
        meter.rate = 800_000;
        assert_eq!(meter.is_news_after(), Some(SOON));
        let said = meter.say(7);
        assert_eq!(said, Some(Load { link: 7, capacity: 8000, percent: 80 }));
        assert_eq!(meter.is_news_after(), None);
        meter.rate = 500_000;
        assert_eq!(meter.is_news_after(), Some(LATER));
        meter.capacity = 0;
        assert_eq!((meter.is_news_after(), meter.say(7)), (None, None));
    }
}
