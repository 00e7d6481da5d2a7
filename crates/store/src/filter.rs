//! Which names a store may have: asked by threads that never wait for a disk.

use crate::record::is_head;
use onym_wire::interest::Interest;
use onym_wire::name::NameRef;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Counters for each packet that there may be.
const COUNTERS: usize = 8;
/// How many of its last components a name may be longer than a prefix that finds it.
const BENEATH: usize = 2;

/// A counting Bloom filter. What was added is found; of what was not, one in twenty when it is
/// full. The first packet of an object is found by its prefixes, too, down to two components
/// shorter. Names are chosen by strangers: the hash is keyed.
#[derive(Debug)]
pub struct Filter {
    counters: Box<[AtomicU8]>,
    key: RandomState,
    is_ready: AtomicBool,
}

/// A name as it is asked for, or a prefix of one.
#[derive(Debug, Clone, Copy, Hash)]
enum Mark<'a> {
    Name(&'a [u8]),
    Prefix(&'a [u8]),
}

impl Filter {
    /// A filter for so many packets, 8 octets each. Nothing is found until it is ready.
    #[must_use]
    pub fn new(packets_max: u64) -> Self {
        let count = usize::try_from(packets_max).unwrap_or(usize::MAX).clamp(64, 1 << 32);
        let counters = (0..count * COUNTERS).map(|_| AtomicU8::new(0)).collect();
        Self { counters, key: RandomState::new(), is_ready: AtomicBool::new(false) }
    }

    /// Everything was added that there is.
    pub(crate) fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    /// Nothing is there any more.
    pub(crate) fn clear(&self) {
        self.is_ready.store(false, Ordering::Release);
        self.counters.iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
    }

    // Below the number of counters, which fits.
    #[allow(clippy::cast_possible_truncation)]
    fn places(&self, mark: Mark<'_>) -> [&AtomicU8; 2] {
        let hash = self.key.hash_one(mark);
        let place = |half: u64| {
            let at = (u128::from(half & 0xffff_ffff) * self.counters.len() as u128) >> 32;
            &self.counters[at as usize]
        };
        [place(hash), place(hash >> 32)]
    }

    fn has(&self, mark: Mark<'_>) -> bool {
        self.places(mark).iter().all(|counter| counter.load(Ordering::Relaxed) > 0)
    }

    fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// Whether there may be a packet of this name.
    #[must_use]
    pub fn may_have(&self, name: NameRef<'_>) -> bool {
        self.is_ready() && self.has(Mark::Name(name.value()))
    }

    /// Whether there may be a packet of this name or beneath it.
    #[must_use]
    pub fn may_have_under(&self, prefix: NameRef<'_>) -> bool {
        self.may_have(prefix) || self.is_ready() && self.has(Mark::Prefix(prefix.value()))
    }

    /// Whether there may be a packet that answers `interest`.
    #[must_use]
    pub fn may_answer(&self, interest: &Interest<'_>) -> bool {
        match interest.implicit_digest() {
            Some(_) => self.may_have(interest.name.drop_last(1)),
            None if interest.can_be_prefix => self.may_have_under(interest.name),
            None => self.may_have(interest.name),
        }
    }

    fn each(&self, name: NameRef<'_>, change: impl Fn(u8) -> Option<u8>) {
        let beneath = if is_head(name) { name.len().min(BENEATH) } else { 0 };
        let prefixes = (1..=beneath).map(|n| Mark::Prefix(name.drop_last(n).value()));
        for mark in std::iter::once(Mark::Name(name.value())).chain(prefixes) {
            for counter in self.places(mark) {
                let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, &change);
            }
        }
    }

    /// A packet of this name is there.
    pub(crate) fn add(&self, name: NameRef<'_>) {
        self.each(name, |count| count.checked_add(1));
    }

    /// A packet of this name is there no more. A counter that was full stays full.
    pub(crate) fn remove(&self, name: NameRef<'_>) {
        self.each(name, |count| if count == u8::MAX { None } else { count.checked_sub(1) });
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use onym_wire::Name;

    fn name(text: &str) -> Name {
        text.parse().unwrap()
    }

    /// Law: what is there is found, by its name and by two prefixes of an object's first packet;
    /// what went is not.
    #[test]
    fn what_was_added_is_found_until_it_goes() {
        let filter = Filter::new(1000);
        let first = name("/a/b/c/v=1/seg=0");
        filter.add(first.as_ref());
        assert!(!filter.may_have(first.as_ref()), "not before it is ready");
        filter.set_ready();
        assert!(filter.may_have(first.as_ref()));
        for (prefix, found) in [("/a/b/c/v=1", true), ("/a/b/c", true), ("/a/b", false)] {
            assert_eq!(filter.may_have_under(name(prefix).as_ref()), found, "{prefix}");
            assert!(!filter.may_have(name(prefix).as_ref()), "{prefix} itself");
        }
        filter.remove(first.as_ref());
        assert!(!filter.may_have_under(first.as_ref()));
        assert!(!filter.may_have_under(name("/a/b/c").as_ref()));
    }

    /// Law: of what is not there, a small share is taken for what may be.
    #[test]
    fn a_full_filter_is_wrong_about_one_in_twenty() {
        let filter = Filter::new(1000);
        filter.set_ready();
        for n in 0..1000 {
            filter.add(name(&format!("/here/{n}/seg=1")).as_ref());
        }
        let wrong = |n: &u32| filter.may_have(name(&format!("/there/{n}/seg=1")).as_ref());
        let wrong = (0..10_000).filter(wrong).count();
        assert!(wrong < 800, "{wrong} of 10,000");
    }

    /// Law: a counter that is full stays so, for nobody knows any more how many there are.
    #[test]
    fn a_prefix_of_more_objects_than_a_counter_counts_is_found_for_good() {
        let filter = Filter::new(1000);
        filter.set_ready();
        let all: Vec<Name> = (0..300).map(|n| name(&format!("/all/{n}"))).collect();
        all.iter().for_each(|name| filter.add(name.as_ref()));
        all.iter().for_each(|name| filter.remove(name.as_ref()));
        assert!(filter.may_have_under(name("/all").as_ref()));
    }
}
