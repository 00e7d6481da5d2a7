use super::*;
use crate::Rng;
use onym_wire::data::{Data, DataBuilder, matches};
use onym_wire::interest::{Interest, InterestBuilder};
use onym_wire::name::{Component, Name};
use onym_wire::signature::SignatureInfo;
use proptest::prelude::*;
use std::collections::BTreeMap;

const KEY: HashKey = HashKey::new(8, 9);

fn name(path: &[u8]) -> Name {
    let mut name = Name::new();
    for &c in path {
        name.append_generic([b'a' + c]);
    }
    name
}

fn data(path: &[u8]) -> Vec<u8> {
    let (mut out, name) = (Vec::new(), name(path));
    DataBuilder::new(name.as_ref(), b"")
        .write(&mut out, &SignatureInfo::default(), |_| Ok::<_, std::fmt::Error>([0; 32]))
        .unwrap();
    out
}

/// What tells an Interest of this test apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    path: Vec<u8>,
    can_be_prefix: bool,
    must_be_fresh: bool,
    hint: u64,
    /// The digest of the Data of that name, or a wrong one.
    digest: Option<bool>,
}

impl Asked {
    fn wire(&self) -> Vec<u8> {
        let mut name = name(&self.path);
        if let Some(right) = self.digest {
            let digest = onym_crypto::digest::implicit_digest(&data(&self.path));
            let digest = if right { digest } else { [7; 32] };
            name.push(Component::implicit_digest(&digest));
        }
        let mut out = Vec::new();
        InterestBuilder {
            can_be_prefix: self.can_be_prefix,
            must_be_fresh: self.must_be_fresh,
            ..InterestBuilder::new(name.as_ref())
        }
        .write(&mut out);
        out
    }

    fn with_key<R>(&self, wire: &[u8], then: impl FnOnce(&Key<'_>) -> R) -> R {
        let interest = Interest::parse(wire).unwrap();
        let hashes = NameHashes::new(&KEY, interest.name.value(), 0);
        then(&Key {
            can_be_prefix: self.can_be_prefix,
            must_be_fresh: self.must_be_fresh,
            hint: self.hint,
            ..Key::new(interest.name.value(), &hashes)
        })
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    (
        prop::collection::vec(0u8..2, 1..5),
        any::<bool>(),
        any::<bool>(),
        0u64..2,
        prop::option::weighted(0.2, any::<bool>()),
    )
        .prop_map(|(path, can_be_prefix, must_be_fresh, hint, digest)| Asked {
            path,
            can_be_prefix,
            must_be_fresh,
            hint,
            digest,
        })
}

proptest! {
    #[test]
    fn data_finds_what_a_walk_over_all_entries_finds(
        ops in prop::collection::vec((asked(), 0u8..4), 1..120)
    ) {
        let mut pit: Pit<u8> = Pit::new(1000);
        let mut model: BTreeMap<Asked, u32> = BTreeMap::new();
        for (asked, what) in ops {
            let wire = asked.wire();
            match what {
                0 | 1 => asked.with_key(&wire, |key| {
                    let look = pit.look(key);
                    assert_eq!(look.found, model.get(&asked).copied());
                    if look.found.is_none() {
                        let slot = pit.insert(&look, key, &wire).unwrap();
                        model.insert(asked.clone(), slot);
                    }
                }),
                2 => {
                    if let Some(slot) = model.remove(&asked) {
                        pit.erase(slot);
                    }
                }
                _ => {
                    let bytes = data(&asked.path);
                    let data = Data::parse(&bytes).unwrap();
                    let digest = || onym_crypto::digest::implicit_digest(&bytes);
                    let value = data.name.value();
                    let hashes = NameHashes::new(&KEY, value, pit.prefix_lengths());
                    let mut found = Vec::new();
                    pit.matches(&KEY, value, &hashes, digest, &mut found);
                    found.sort_unstable();
                    let mut expected: Vec<u32> = model
                        .iter()
                        .filter(|(asked, _)| {
                            let wire = asked.wire();
                            matches(&Interest::parse(&wire).unwrap(), &data, digest)
                        })
                        .map(|(_, slot)| *slot)
                        .collect();
                    expected.sort_unstable();
                    prop_assert_eq!(&found, &expected);
                    // Law: who sees the marks alone misses none that waits.
                    let prefixes = pit.prefixes_mut();
                    let (lengths, marks) = (prefixes.lengths(), *prefixes.marks());
                    let is_marked = |hash: u64| {
                        let (word, bit) = mark_of(hash);
                        marks[word] & bit != 0
                    };
                    let may_wait = KEY.any_prefix(value, lengths, is_marked);
                    let waits = model.iter().any(|(asked, slot)| {
                        let wire = asked.wire();
                        expected.contains(slot) && Interest::parse(&wire).unwrap().can_be_prefix
                    });
                    prop_assert!(may_wait || !waits);
                    prop_assert!(prefixes.may_be(value) || !waits);
                    for slot in pit.iter().collect::<Vec<_>>() {
                        if let Some(hash) = pit.only_match(slot, value) {
                            prop_assert_eq!(&found, &vec![slot]);
                            prop_assert_eq!(hash, KEY.name(value));
                        }
                    }
                }
            }
            prop_assert_eq!(pit.len(), model.len());
            prop_assert_eq!(pit.has_prefix_entries(), model.keys().any(|a| a.can_be_prefix));
        }
    }
}

/// Law: however many prefixes wait, come and go, no name that one of them is a prefix of is missed;
/// while few wait, other names are told apart.
#[test]
fn a_prefix_that_waits_is_found_by_its_end_among_many() {
    let (mut pit, mut rng) = (Pit::<u8>::new(100), Rng::new(5));
    // Prefixes of prefixes, some that end alike, and four that wait twice.
    let path = |n: u8| match n / 8 {
        0 => vec![n],
        1 => vec![n - 8, n % 3],
        2 => vec![1, n - 16, 2],
        _ => vec![n - 24],
    };
    let prefixes: Vec<Vec<u8>> = (0..28).map(path).collect();
    let mut slots: Vec<Option<u32>> = vec![None; prefixes.len()];
    let (mut told_apart, mut most) = (0, 0);
    for step in 0..2000 {
        let at = usize::try_from(rng.below(prefixes.len() as u64)).unwrap();
        // More and more of them, then fewer.
        if step / 200 % 2 == 0 {
            let hint = at as u64;
            let asked = Asked { can_be_prefix: true, hint, ..plain(&prefixes[at]) };
            let slot = slots[at].get_or_insert_with(|| put(&mut pit, &asked).unwrap());
            assert_eq!(pit.name(*slot), name(&prefixes[at]).value());
        } else if let Some(slot) = slots[at].take() {
            pit.erase(slot);
        }
        most = most.max(slots.iter().flatten().count());
        for prefix in &prefixes {
            let path: Vec<u8> = prefix.iter().copied().chain([9, 9]).collect();
            let under = name(&path);
            let waits = slots
                .iter()
                .zip(&prefixes)
                .any(|(slot, prefix)| slot.is_some() && path.starts_with(prefix));
            let may_be = pit.prefixes_mut().may_be(under.value());
            assert!(may_be || !waits, "{path:?}");
            told_apart += u32::from(!may_be);
        }
    }
    assert!(most > 2 * ENDS && told_apart > 1000, "{most} {told_apart}");
    slots.into_iter().flatten().for_each(|slot| pit.erase(slot));
    assert_eq!(pit.prefixes_mut().summary(), 0);
}

fn plain(path: &[u8]) -> Asked {
    Asked { path: path.to_vec(), can_be_prefix: false, must_be_fresh: false, hint: 0, digest: None }
}

fn put(pit: &mut Pit<u8>, asked: &Asked) -> Result<u32, PitError> {
    let wire = asked.wire();
    asked.with_key(&wire, |key| {
        let look = pit.look(key);
        pit.insert(&look, key, &wire)
    })
}

#[test]
fn names_longer_than_the_tables_are_found_by_prefix_as_well() {
    let mut pit: Pit<u8> = Pit::new(10);
    let long: Vec<u8> = vec![0; 40];
    let slot = put(&mut pit, &Asked { can_be_prefix: true, ..plain(&long[..36]) }).unwrap();
    let value = name(&long);
    let hashes = NameHashes::new(&KEY, value.value(), pit.prefix_lengths());
    let mut found = Vec::new();
    pit.matches(&KEY, value.value(), &hashes, || [0; 32], &mut found);
    assert_eq!(found, [slot]);
    pit.erase(slot);
    assert!(!pit.has_prefix_entries());
}

#[test]
fn hints_and_digests_of_one_name_are_bounded_and_do_not_shut_out_the_plain_interest() {
    let mut pit: Pit<u8> = Pit::new(1000);
    for hint in 1..=VARIANTS_MAX as u64 {
        put(&mut pit, &Asked { hint, ..plain(&[1]) }).unwrap();
    }
    assert_eq!(put(&mut pit, &Asked { hint: 999, ..plain(&[1]) }), Err(PitError::Variants));
    assert!(put(&mut pit, &plain(&[1])).is_ok());
    assert!(put(&mut pit, &Asked { hint: 999, ..plain(&[2]) }).is_ok());
}

#[test]
fn the_digest_of_a_data_is_computed_only_where_an_interest_of_its_name_asks_for_it() {
    let mut pit: Pit<u8> = Pit::new(10);
    put(&mut pit, &plain(&[1])).unwrap();
    put(&mut pit, &Asked { digest: Some(true), ..plain(&[2]) }).unwrap();
    let computed = |path: &[u8]| {
        let value = name(path);
        let hashes = NameHashes::new(&KEY, value.value(), pit.prefix_lengths());
        let (count, mut found) = (std::cell::Cell::new(0), Vec::new());
        let digest = || {
            count.set(count.get() + 1);
            onym_crypto::digest::implicit_digest(&data(path))
        };
        pit.matches(&KEY, value.value(), &hashes, digest, &mut found);
        (count.get(), found.len())
    };
    assert_eq!(computed(&[1]), (0, 1));
    assert_eq!(computed(&[2]), (1, 1));
    assert_eq!(computed(&[3]), (0, 0));
}

#[test]
fn a_full_table_refuses_and_a_freed_slot_has_a_new_generation() {
    let mut pit: Pit<u8> = Pit::new(1);
    let slot = put(&mut pit, &plain(&[0])).unwrap();
    assert_eq!(put(&mut pit, &plain(&[1])), Err(PitError::Full));
    let generation = pit.generation(slot);
    assert_eq!(pit.at_token(slot, generation), Some(slot));
    pit.erase(slot);
    assert_eq!(pit.at_token(slot, generation), None);
    let again = put(&mut pit, &plain(&[1])).unwrap();
    assert_eq!(again, slot);
    assert_eq!(pit.at_token(slot, generation), None);
}

#[test]
fn a_table_bounds_the_octets_and_keeps_the_buffers_of_usual_interests_only() {
    let usual = plain(&[0]).wire().len();
    let mut pit: Pit<u8> = Pit::new(100).with_octets_max(3 * usual);
    let slots: Vec<u32> = (0..3).map(|n| put(&mut pit, &plain(&[n])).unwrap()).collect();
    assert_eq!((pit.octets(), pit.octets_max()), (3 * usual, 3 * usual));
    assert_eq!(put(&mut pit, &plain(&[3])), Err(PitError::Octets));
    pit.erase(slots[0]);
    let slot = put(&mut pit, &plain(&[3])).unwrap();
    pit.erase(slot);
    assert_eq!(pit.kept_octets(), usual);
    pit.give_back_buffers();
    assert_eq!(pit.kept_octets(), 0);
    let mut pit: Pit<u8> = Pit::new(100);
    let long = put(&mut pit, &plain(&[1; 400])).unwrap();
    pit.erase(long);
    assert_eq!(pit.kept_octets(), 0);
}

#[test]
fn both_timers_of_an_entry_fire_and_end_with_it() {
    let mut pit: Pit<u8> = Pit::new(4);
    let a = put(&mut pit, &plain(&[0])).unwrap();
    let b = put(&mut pit, &plain(&[1])).unwrap();
    pit.set_expiry(a, Tick::from_ms(100));
    pit.set_timer(a, Tick::from_ms(10));
    pit.set_expiry(b, Tick::from_ms(50));
    assert_eq!(pit.pop_due(Tick::from_ms(9)), None);
    assert_eq!(pit.pop_due(Tick::from_ms(12)), Some((a, Due::Strategy)));
    pit.erase(b);
    assert_eq!(pit.pop_due(Tick::from_ms(99)), None);
    assert_eq!(pit.pop_due(Tick::from_ms(102)), Some((a, Due::Expiry)));
}
