//! Pages of an origin that are kept in memory, and what is known of others.

use super::address::{Asked, Target};
use super::ask::Validators;
use hyper::body::Bytes;
use onym_client::Answer;
use onym_crypto::Signer;
use onym_crypto::edge::unix_now_ms;
use onym_repo::file::{FILE, FileMetadata};
use onym_repo::reply::{self, Made, SEGMENT};
use onym_wire::NackReason;
use onym_wire::name::{Name, NameRef};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Names of which something is known, at most.
const NAMES_MAX: usize = 65_536;

/// A page.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    pub(crate) version: u64,
    pub(crate) content: Bytes,
    pub(crate) validators: Validators,
    /// When it changed, in nanoseconds since the Unix epoch; 0 when the origin does not say.
    pub(crate) mtime_ns: u64,
    pub(crate) fresh_until: Instant,
    pub(crate) stale_until: Instant,
}

/// What is known of a name.
#[derive(Debug, Clone)]
pub(crate) enum State {
    Page(Arc<Page>),
    /// There is nothing, until then.
    Nothing(Instant),
    /// The origin failed; it is not asked before then.
    Failed(Instant),
}

#[derive(Debug)]
struct Slot {
    state: State,
    used: u64,
}

/// The table, least recently used first out.
#[derive(Debug)]
pub(crate) struct Shelf {
    slots: HashMap<Name, Slot>,
    order: BTreeMap<u64, Name>,
    clock: u64,
    octets: usize,
    octets_max: usize,
}

impl Shelf {
    pub(crate) fn new(octets_max: usize) -> Self {
        let (slots, order) = (HashMap::new(), BTreeMap::new());
        Self { slots, order, clock: 0, octets: 0, octets_max }
    }

    /// What is known of `name`, which so is used.
    pub(crate) fn get(&mut self, name: &Name) -> Option<State> {
        let slot = self.slots.get_mut(name)?;
        self.order.remove(&slot.used);
        self.clock += 1;
        slot.used = self.clock;
        self.order.insert(self.clock, name.clone());
        Some(slot.state.clone())
    }

    pub(crate) fn put(&mut self, name: Name, state: State) {
        self.remove(&name);
        self.octets += octets(&state);
        self.clock += 1;
        self.order.insert(self.clock, name.clone());
        self.slots.insert(name, Slot { state, used: self.clock });
        while self.slots.len() > NAMES_MAX || self.octets > self.octets_max {
            let Some((_, oldest)) = self.order.first_key_value() else { break };
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, name: &Name) {
        if let Some(slot) = self.slots.remove(name) {
            self.order.remove(&slot.used);
            self.octets -= octets(&slot.state);
        }
    }
}

fn octets(state: &State) -> usize {
    match state {
        State::Page(page) => page.content.len(),
        _ => 0,
    }
}

/// The answer to an Interest for `name` by what is known, when it may be used now.
pub(crate) fn answer(
    state: &State,
    target: &Target,
    name: NameRef<'_>,
    signer: &Signer,
    out: &mut Vec<u8>,
) -> Option<Answer> {
    let now = Instant::now();
    let left = |until: Instant| until.checked_duration_since(now).filter(|left| !left.is_zero());
    match (state, target.asked) {
        (State::Nothing(until), _) => {
            left(*until).map(|left| reply::nothing(signer, name, millis(left), out))
        }
        (State::Failed(until), _) => left(*until).map(|_| Answer::Nothing),
        (State::Page(page), Asked::Segment { version, segment }) => {
            if page.version == version {
                return Some(reply::segment_of(name, segment, &page.content, signer, out));
            }
            // It was another one, and is so no more as far as anybody knows.
            left(page.fresh_until).map(|_| Answer::Nack(NackReason::NONE))
        }
        (State::Page(page), Asked::Metadata) => {
            let fresh = left(page.fresh_until)?;
            Some(metadata(page, &target.page, name, signer, millis(fresh), out))
        }
    }
}

/// The metadata of a page, whether it is fresh or not.
pub(crate) fn metadata(
    page: &Page,
    of: &Name,
    asked: NameRef<'_>,
    signer: &Signer,
    freshness_ms: u64,
    out: &mut Vec<u8>,
) -> Answer {
    let mut versioned = of.clone();
    versioned.append_version(page.version);
    let size = page.content.len() as u64;
    let metadata = FileMetadata {
        name: versioned,
        last_segment: Some(size.div_ceil(SEGMENT as u64).saturating_sub(1)),
        segment_size: Some(SEGMENT as u64),
        size: Some(size),
        mode: FILE | 0o644,
        mtime_ns: page.mtime_ns,
        ..FileMetadata::default()
    };
    let made = Made { now_ms: unix_now_ms(), freshness_ms };
    reply::metadata(signer, asked, made, &metadata, out)
}

/// As FreshnessPeriod counts; what is fresh at all is so for a millisecond.
fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(len: usize) -> State {
        let now = Instant::now();
        State::Page(Arc::new(Page {
            version: 1,
            content: Bytes::from(vec![0; len]),
            validators: Validators::default(),
            mtime_ns: 0,
            fresh_until: now,
            stale_until: now,
        }))
    }

    /// Law: what is kept is bounded in octets and names, and what was used last stays.
    #[test]
    fn the_least_recently_used_page_gives_way() {
        let name = |n: usize| format!("/{n}").parse::<Name>().unwrap();
        let mut shelf = Shelf::new(1000);
        for n in 0..4 {
            shelf.put(name(n), page(300));
            assert!(shelf.get(&name(0)).is_some());
        }
        let kept: Vec<bool> = (0..4).map(|n| shelf.get(&name(n)).is_some()).collect();
        assert_eq!(kept, [true, false, true, true]);
        assert_eq!(shelf.octets, 900);
        shelf.put(name(0), page(10));
        assert_eq!(shelf.octets, 610);
        shelf.put(name(9), page(1001));
        assert_eq!((shelf.octets, shelf.slots.len()), (0, 0), "it does not fit at all");
        for n in 0..NAMES_MAX + 5 {
            shelf.put(name(n), State::Nothing(Instant::now()));
        }
        assert_eq!((shelf.slots.len(), shelf.order.len()), (NAMES_MAX, NAMES_MAX));
    }
}
