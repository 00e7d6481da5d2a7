//! Data that somebody verifies before the cache keeps it: some of those under named prefixes, at a
//! bounded rate. Nobody waits for it: the Data goes to who asked, and is kept when it was verified.

use super::Arrival;
use onym_frame::Buf;
use onym_tables::Tick;
use onym_tables::cs::Demand;
use onym_wire::name::Name;
use std::collections::VecDeque;

/// Data of which nobody knows yet whether they count, at most: those handed out and those that wait
/// to be.
pub const HELD_MAX: usize = 256;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// Which Data of a prefix are verified.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchRule {
    /// The prefix; of several that match, the longest counts.
    pub prefix: Name,
    /// The share of its Data that are verified; the others are kept as they come.
    pub sample: f64,
    /// What the verifier knows the rule by.
    pub id: u16,
}

/// A Data on its way to the verifier and back.
#[derive(Debug, Clone)]
pub struct Held {
    /// The packet.
    pub bytes: Buf,
    /// Hash of its name.
    pub hash: u64,
    /// Whether somebody asked for it.
    pub demand: Demand,
    /// When it came: its freshness began then.
    pub since: Tick,
    /// [`WatchRule::id`].
    pub rule: u16,
}

/// What became of the Data under the prefixes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WatchCounts {
    /// Handed to the verifier.
    pub held: u64,
    /// Not kept, and not verified either: too many at once, or in this second.
    pub left_out: u64,
}

/// Rules, and what they chose.
#[derive(Debug)]
pub struct Watch {
    /// The longest prefixes first.
    rules: Vec<(WatchRule, u64)>,
    held: VecDeque<Held>,
    /// Handed out, and not back yet.
    out: usize,
    rate_max: u64,
    /// Nanoseconds of work that may be asked for, each Data worth its share of a second.
    credit: u64,
    seen: Tick,
    counts: WatchCounts,
}

/// `sample` as a bound of keyed hashes: who sends a packet does not know on which side it falls.
fn bound(sample: f64) -> u64 {
    match sample {
        s if s >= 1.0 => u64::MAX,
        s if s > 0.0 => (s * (1_u64 << 53) as f64) as u64 * (1 << 11),
        _ => 0,
    }
}

impl Watch {
    /// Verifies what these rules choose, at most `rate_max` in a second.
    #[must_use]
    pub fn new(mut rules: Vec<WatchRule>, rate_max: u64) -> Self {
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.prefix.as_ref().len()));
        let rules = rules.into_iter().map(|rule| (bound(rule.sample), rule));
        Self {
            rules: rules.map(|(bound, rule)| (rule, bound)).collect(),
            held: VecDeque::new(),
            out: 0,
            rate_max,
            credit: SECOND,
            seen: Tick(0),
            counts: WatchCounts::default(),
        }
    }

    /// Takes a Data that is to be verified before it is kept; `false` for all others.
    #[cold]
    pub(super) fn takes(&mut self, now: Tick, arrival: &Arrival<'_>) -> bool {
        let name = arrival.data.name;
        let found = self.rules.iter().find(|(rule, _)| rule.prefix.as_ref().is_prefix_of(name));
        let Some((rule, bound)) = found.filter(|(_, bound)| mixed(arrival.hash) <= *bound) else {
            return false;
        };
        if *bound == 0 {
            return false;
        }
        let id = rule.id;
        if self.held.len() + self.out >= HELD_MAX || !self.pays(now) {
            self.counts.left_out += 1;
            return true;
        }
        self.counts.held += 1;
        self.held.push_back(Held {
            // A copy: the packet would hold the buffer that it was read into.
            bytes: Buf::copy_from(&arrival.packet.bytes),
            hash: arrival.hash,
            demand: arrival.demand,
            since: now,
            rule: id,
        });
        true
    }

    fn pays(&mut self, now: Tick) -> bool {
        let passed = now.0.saturating_sub(self.seen.0);
        self.seen = self.seen.max(now);
        self.credit = self.credit.saturating_add(passed).min(SECOND);
        let Some(price) = SECOND.checked_div(self.rate_max) else { return false };
        let can = self.credit >= price;
        if can {
            self.credit -= price;
        }
        can
    }

    /// What the verifier is handed next.
    pub fn hand_out(&mut self) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.out += 1;
        Some(held)
    }

    /// One that was handed out is back.
    pub(crate) fn is_back(&mut self) {
        self.out = self.out.saturating_sub(1);
    }

    /// What became of the Data under the prefixes.
    #[must_use]
    pub const fn counts(&self) -> WatchCounts {
        self.counts
    }
}

/// Other bits of the hash than those that tables use.
const fn mixed(hash: u64) -> u64 {
    hash.rotate_left(29).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_link::{LpIn, Packet};
    use onym_tables::FaceId;
    use onym_wire::data::{Data, DataBuilder};
    use onym_wire::signature::SignatureInfo;

    fn wire(uri: &str) -> Vec<u8> {
        let name: Name = uri.parse().unwrap();
        let mut wire = Vec::new();
        DataBuilder::new(name.as_ref(), b"x")
            .write(&mut wire, &SignatureInfo::of_kind(0), |_| {
                Ok::<_, std::convert::Infallible>([0; 32])
            })
            .unwrap();
        wire
    }

    fn takes(watch: &mut Watch, now: Tick, uri: &str, hash: u64) -> bool {
        let wire = wire(uri);
        let packet =
            Packet { face: FaceId(300), bytes: Buf::copy_from(&wire), lp: LpIn::default() };
        let data = Data::parse(&wire).unwrap();
        watch.takes(
            now,
            &Arrival { packet: &packet, data: &data.into(), hash, demand: Demand::Asked },
        )
    }

    fn rule(prefix: &str, sample: f64, id: u16) -> WatchRule {
        WatchRule { prefix: prefix.parse().unwrap(), sample, id }
    }

    #[test]
    fn the_longest_prefix_decides_and_a_sample_is_a_share_of_the_names() {
        let rules = vec![rule("/a", 1.0, 1), rule("/a/free", 0.0, 2), rule("/b", 0.25, 3)];
        let mut watch = Watch::new(rules, 1_000_000);
        assert!(takes(&mut watch, Tick(0), "/a/x", 7));
        assert!(!takes(&mut watch, Tick(0), "/a/free/x", 7));
        assert!(!takes(&mut watch, Tick(0), "/c", 7));
        assert_eq!(watch.hand_out().map(|held| held.rule), Some(1));
        let mut chosen = 0;
        for hash in 0..4000_u64 {
            let hash = hash.wrapping_mul(0xd134_2543_de82_ef95);
            let taken = takes(&mut watch, Tick(hash), "/b/x", hash);
            assert_eq!(taken, takes(&mut watch, Tick(hash), "/b/x", hash), "by the name alone");
            chosen += u32::from(taken);
            while watch.hand_out().is_some() {
                watch.is_back();
            }
        }
        assert!((900..1100).contains(&chosen), "{chosen}");
    }

    #[test]
    fn rate_and_number_are_bounded_and_what_is_beyond_is_left_out() {
        let mut watch = Watch::new(vec![rule("/a", 1.0, 1)], 100);
        let held = |watch: &mut Watch, now| {
            let before = watch.counts().held;
            (0..1000).for_each(|hash| assert!(takes(watch, now, "/a/x", hash)));
            watch.counts().held - before
        };
        assert_eq!(held(&mut watch, Tick(0)), 100);
        assert_eq!(held(&mut watch, Tick(SECOND / 10)), 10);
        assert_eq!(watch.counts().left_out, 2000 - 110);
        let mut watch = Watch::new(vec![rule("/a", 1.0, 1)], 1_000_000);
        assert_eq!(held(&mut watch, Tick(0)), HELD_MAX as u64);
        for _ in 0..10 {
            watch.hand_out();
        }
        assert_eq!(held(&mut watch, Tick(0)), 0, "those that are out count");
        watch.is_back();
        assert_eq!(held(&mut watch, Tick(0)), 1);
    }
}
