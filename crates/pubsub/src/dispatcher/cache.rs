//! Publications with algorithmic identifiers, kept for who subscribes later (section 5.3).

use crate::publication::{AppId, Event};
use onym_tables::Tick;
use onym_wire::push::{Id, Strategy};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Longest lifetime that is honoured.
const LIFETIME_MAX: Duration = Duration::from_secs(3600);
/// What an entry takes beside identifier and payload, about.
const OVERHEAD: usize = 128;

/// A publication that is kept.
#[derive(Debug)]
struct Entry {
    payload: Arc<[u8]>,
    strategy: Strategy,
    /// The application of this node that published it.
    publisher: Option<AppId>,
    until: Tick,
    number: u64,
}

/// The publications that are kept, by full identifier.
#[derive(Debug)]
pub(super) struct Cache {
    octets_max: usize,
    octets: usize,
    entries: BTreeMap<Id, Entry>,
    /// Identifiers in the order in which they came, with the number of the entry.
    order: VecDeque<(u64, Id)>,
    number: u64,
}

fn size(id: &Id, payload: &[u8]) -> usize {
    2 * id.octets().len() + payload.len() + OVERHEAD
}

impl Cache {
    pub(super) fn new(octets_max: usize) -> Self {
        let (entries, order) = Default::default();
        Self { octets_max, octets: 0, entries, order, number: 0 }
    }

    /// Keeps a publication for its lifetime, in place of an older one of that identifier. The
    /// oldest ones make room.
    pub(super) fn insert(
        &mut self,
        now: Tick,
        id: &Id,
        payload: &[u8],
        strategy: Strategy,
        publisher: Option<AppId>,
        lifetime_ms: u64,
    ) {
        let lifetime = Duration::from_millis(lifetime_ms).min(LIFETIME_MAX);
        let size = size(id, payload);
        if lifetime.is_zero() || size > self.octets_max {
            return;
        }
        self.remove(id);
        self.number += 1;
        let (number, until) = (self.number, now + lifetime);
        let entry = Entry { payload: payload.into(), strategy, publisher, until, number };
        self.entries.insert(id.clone(), entry);
        self.order.push_back((number, id.clone()));
        self.octets += size;
        // What was replaced leaves its place in the order behind.
        while self.octets > self.octets_max || self.order.len() > 2 * self.entries.len() + 8 {
            let Some((number, id)) = self.order.pop_front() else { return };
            match self.entries.get(&id) {
                Some(entry) if entry.number == number && self.octets > self.octets_max => {
                    self.remove(&id);
                }
                Some(entry) if entry.number == number => self.order.push_back((number, id)),
                _ => {}
            }
        }
    }

    fn remove(&mut self, id: &Id) {
        if let Some(entry) = self.entries.remove(id) {
            self.octets -= size(id, &entry.payload);
        }
    }

    /// What is kept of `id` and beneath it, but not what `app` published itself.
    pub(super) fn beneath(&self, now: Tick, id: &Id, app: AppId) -> Vec<Event> {
        let from = self.entries.range(id.clone()..).take_while(|(known, _)| known.starts_with(id));
        from.filter(|(_, entry)| entry.until > now && entry.publisher != Some(app))
            .map(|(id, entry)| Event::Data {
                id: id.clone(),
                payload: Arc::clone(&entry.payload),
                came_by: Some(entry.strategy),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> Id {
        text.parse().unwrap()
    }

    const BY: Strategy = Strategy::ALGORITHMIC_DOMAIN;

    fn found(cache: &Cache, now: u64, beneath: &str) -> Vec<(String, Vec<u8>)> {
        let kept = cache.beneath(Tick::from_ms(now), &id(beneath), AppId(1));
        let each = kept.into_iter().map(|event| match event {
            Event::Data { id, payload, came_by: Some(BY) } => (id.to_string(), payload.to_vec()),
            other => panic!("{other:?}"),
        });
        each.collect()
    }

    #[test]
    fn what_is_kept_is_found_by_its_identifier_and_by_those_above_until_it_is_too_old() {
        let mut cache = Cache::new(10_000);
        for (text, ms) in [("/1/2", 50), ("/1/2/3", 100), ("/1/20", 100), ("/2", 100), ("/3", 0)] {
            cache.insert(Tick(0), &id(text), text.as_bytes(), BY, None, ms);
        }
        let ids = |now, beneath: &str| -> Vec<String> {
            found(&cache, now, beneath).into_iter().map(|f| f.0).collect()
        };
        assert_eq!(ids(10, "/1/2"), ["/0001/0002", "/0001/0002/0003"]);
        assert_eq!(ids(60, "/1/2"), ["/0001/0002/0003"]);
        assert_eq!(ids(60, "/1").len(), 2);
        assert!(ids(60, "/3").is_empty() && ids(200, "/2").is_empty());
    }

    #[test]
    fn a_newer_publication_takes_the_place_of_the_older_one() {
        let mut cache = Cache::new(10_000);
        for n in 0..1000_u32 {
            cache.insert(Tick(0), &id("/1/2"), &n.to_be_bytes(), BY, None, 1000);
            cache.insert(Tick(0), &id("/1/3"), b"x", BY, Some(AppId(1)), 1000);
        }
        assert_eq!(found(&cache, 1, "/1"), [("/0001/0002".into(), 999_u32.to_be_bytes().into())]);
        assert!(cache.order.len() < 20 && cache.octets < 1000);
    }

    #[test]
    fn the_oldest_makes_room_and_what_has_none_at_all_is_not_kept() {
        let mut cache = Cache::new(2000);
        for n in 1..=20_u64 {
            cache.insert(Tick(0), &id(&format!("/1/{n:x}")), &[0; 100], BY, None, 1000);
            assert!(cache.octets <= 2000);
        }
        let kept = found(&cache, 1, "/1");
        assert_eq!(kept.len(), 7);
        assert_eq!(kept.last().map(|k| k.0.as_str()), Some("/0001/0014"));
        cache.insert(Tick(0), &id("/2"), &[0; 3000], BY, None, 1000);
        assert_eq!(found(&cache, 1, "/1").len(), 7);
    }
}
