//! What a second level of the content store is offered: Data under some prefixes as they come, and
//! what is asked for again. Nobody waits for it.

use crate::path::scope::{is_localhop, is_localhost};
use onym_frame::Buf;
use onym_tables::cs::Demand;
use onym_wire::data::Data;
use onym_wire::name::{Name, NameRef};
use std::collections::VecDeque;

/// Data that wait to be handed over, at most; one more is left out.
pub const OFFERS_MAX: usize = 256;

/// Whether a name (its value) concerns this host or this link only: no second level has it.
#[must_use]
pub fn stays_near(name: &[u8]) -> bool {
    is_localhost(name) || is_localhop(name)
}

/// A Data for the second level.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The packet. A copy: it would hold the buffer that it was read into.
    pub bytes: Buf,
    /// How much longer it is fresh.
    pub fresh_ms: u64,
}

/// What was offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OfferCounts {
    /// Data that were handed over.
    pub offered: u64,
    /// Data that were not, for want of room.
    pub left_out: u64,
}

/// A Data that comes into the store.
pub(super) struct Came<'a> {
    pub(super) bytes: &'a Buf,
    pub(super) name: NameRef<'a>,
    pub(super) hash: u64,
    pub(super) fresh_ms: u64,
    pub(super) demand: Demand,
}

/// Chooses what is offered.
#[derive(Debug)]
pub struct Offers {
    prefixes: Vec<Name>,
    seen: Option<Seen>,
    waiting: VecDeque<Offer>,
    counts: OfferCounts,
}

impl Offers {
    /// Offers what comes under `prefixes`; and, where that is wanted, what is asked for a second time
    /// while the names of about `remembered` Data have come since the first.
    #[must_use]
    pub fn new(prefixes: Vec<Name>, remembered: Option<usize>) -> Self {
        Self {
            prefixes,
            seen: remembered.map(Seen::new),
            waiting: VecDeque::new(),
            counts: OfferCounts::default(),
        }
    }

    /// Looks at a Data that comes into the store; how the store is to take it.
    #[cold]
    pub(super) fn came(&mut self, came: &Came<'_>) -> Demand {
        // What nobody asked for is no sign that somebody will.
        if came.demand == Demand::Unsolicited {
            return came.demand;
        }
        let name = came.name;
        let is_chosen = self.prefixes.iter().any(|prefix| prefix.as_ref().is_prefix_of(name))
            || self.seen.as_mut().is_some_and(|seen| seen.again(came.hash));
        if !is_chosen {
            return came.demand;
        }
        self.offer(came.bytes, name.value(), came.fresh_ms);
        Demand::Noted
    }

    /// A Data of the store was asked for, and was not offered yet.
    pub(super) fn was_asked_again(&mut self, bytes: &[u8], fresh_ms: u64) {
        if self.seen.is_some()
            && let Ok(data) = Data::parse(bytes)
        {
            self.offer(bytes, data.name.value(), fresh_ms);
        }
    }

    /// What stays near is not kept longer than it must be.
    fn offer(&mut self, bytes: &[u8], name: &[u8], fresh_ms: u64) {
        if stays_near(name) {
            return;
        }
        if self.waiting.len() >= OFFERS_MAX {
            self.counts.left_out += 1;
            return;
        }
        self.counts.offered += 1;
        self.waiting.push_back(Offer { bytes: Buf::copy_from(bytes), fresh_ms });
    }

    /// The next one.
    pub fn hand_out(&mut self) -> Option<Offer> {
        self.waiting.pop_front()
    }

    /// One that was handed out found no room.
    pub fn is_left_out(&mut self) {
        self.counts.offered -= 1;
        self.counts.left_out += 1;
    }

    /// What was offered.
    #[must_use]
    pub const fn counts(&self) -> OfferCounts {
        self.counts
    }
}

/// Names that came lately: two generations of bits. One name in about twenty is taken for another that
/// came.
#[derive(Debug)]
struct Seen {
    now: Vec<u64>,
    before: Vec<u64>,
    count: usize,
    names_max: usize,
}

/// Bits for each name of a generation.
const BITS: usize = 8;

impl Seen {
    fn new(remembered: usize) -> Self {
        let names_max = remembered.max(1024);
        let words = vec![0; (names_max * BITS).div_ceil(64)];
        Self { now: words.clone(), before: words, count: 0, names_max }
    }

    /// Where the two bits of a name are.
    // Below the number of words, which fits.
    #[allow(clippy::cast_possible_truncation)]
    fn places(&self, hash: u64) -> [(usize, u64); 2] {
        [0x9e37_79b9_7f4a_7c15_u64, 0xd134_2543_de82_ef95].map(|factor| {
            let mixed = (hash ^ hash >> 31).wrapping_mul(factor);
            let word = (u128::from(mixed) * self.now.len() as u128) >> 64;
            (word as usize, 1 << (mixed & 63))
        })
    }

    /// Whether the name with this hash came before; now it did.
    fn again(&mut self, hash: u64) -> bool {
        let places = self.places(hash);
        let has = |words: &[u64]| places.iter().all(|(word, bit)| words[*word] & bit != 0);
        if has(&self.now) || has(&self.before) {
            return true;
        }
        for (word, bit) in places {
            self.now[word] |= bit;
        }
        self.count += 1;
        if self.count >= self.names_max {
            self.count = 0;
            std::mem::swap(&mut self.now, &mut self.before);
            self.now.fill(0);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_wire::data::DataBuilder;
    use onym_wire::signature::SignatureInfo;

    fn wire(uri: &str) -> Buf {
        let name: Name = uri.parse().unwrap();
        let mut wire = Vec::new();
        DataBuilder::new(name.as_ref(), b"x")
            .write(&mut wire, &SignatureInfo::of_kind(0), |_| {
                Ok::<_, std::convert::Infallible>([0; 32])
            })
            .unwrap();
        Buf::copy_from(&wire)
    }

    fn comes(offers: &mut Offers, uri: &str, hash: u64, demand: Demand) -> Demand {
        let bytes = wire(uri);
        let data = Data::parse(&bytes).unwrap();
        offers.came(&Came { bytes: &bytes, name: data.name, hash, fresh_ms: 7, demand })
    }

    /// Law: what comes under a prefix is offered at once, other Data when they come again, and what
    /// nobody asked for, or concerns this host or link only, never.
    #[test]
    fn a_prefix_is_offered_at_once_and_the_rest_the_second_time() {
        let mut offers = Offers::new(vec!["/film".parse().unwrap()], Some(10_000));
        let asked = Demand::Asked;
        assert_eq!(comes(&mut offers, "/film/1", 1, asked), Demand::Noted);
        assert_eq!(comes(&mut offers, "/page", 2, asked), asked);
        assert_eq!(offers.counts().offered, 1);
        assert_eq!(comes(&mut offers, "/page", 2, asked), Demand::Noted);
        assert_eq!(offers.hand_out().map(|offer| offer.fresh_ms), Some(7));
        assert_eq!(offers.counts().offered, 2);
        let unasked = Demand::Unsolicited;
        assert_eq!(comes(&mut offers, "/film/2", 3, unasked), unasked);
        for (hash, uri) in [(4, "/localhost/a"), (5, "/localhop/b")] {
            comes(&mut offers, uri, hash, asked);
            comes(&mut offers, uri, hash, asked);
        }
        assert_eq!(offers.counts(), OfferCounts { offered: 2, left_out: 0 });
        let mut offers = Offers::new(Vec::new(), None);
        assert_eq!(comes(&mut offers, "/page", 2, asked), asked);
        assert_eq!(comes(&mut offers, "/page", 2, asked), asked);
        offers.was_asked_again(&wire("/page"), 1);
        assert_eq!(offers.counts(), OfferCounts::default());
    }

    /// Law: what waits is bounded, and what is beyond is counted.
    #[test]
    fn offers_that_wait_are_bounded() {
        let mut offers = Offers::new(vec![Name::new()], None);
        (0..OFFERS_MAX as u64 + 3).for_each(|n| {
            comes(&mut offers, "/a", n, Demand::Asked);
        });
        assert_eq!(offers.counts(), OfferCounts { offered: OFFERS_MAX as u64, left_out: 3 });
    }

    /// Law: a name is forgotten when as many as are remembered have come twice.
    #[test]
    fn names_are_forgotten_in_generations() {
        let mut seen = Seen::new(1024);
        let hash = |n: u64| n.wrapping_mul(0xa24b_aed4_963e_e407);
        let first = (0..1024).filter(|n| seen.again(hash(*n))).count();
        assert!(first < 80, "{first} of 1024 were taken for others");
        assert!(seen.again(hash(1)), "one generation ago");
        (1024..3600).for_each(|n| {
            seen.again(hash(n));
        });
        let known = (0..1024).filter(|n| seen.again(hash(*n))).count();
        assert!(known < 300, "{known} of 1024 are still known");
    }
}
