use super::*;
use onym_wire::data::DataBuilder;
use onym_wire::name::Name;
use onym_wire::signature::SignatureInfo;
use proptest::prelude::*;

const KEY: HashKey = HashKey::new(5, 6);

fn name(path: &[u8]) -> Name {
    let mut name = Name::new();
    for &c in path {
        // Components of two lengths, so that canonical order is not the order of their octets.
        name.append_generic(if c < 3 { vec![b'z' - c] } else { vec![b'a', c] });
    }
    name
}

fn data(path: &[u8], content: &[u8]) -> Buf {
    let (mut out, name) = (Vec::new(), name(path));
    DataBuilder::new(name.as_ref(), content)
        .write(&mut out, &SignatureInfo::default(), |_| Ok::<_, std::fmt::Error>([0; 32]))
        .unwrap();
    Buf::copy_from(&out)
}

/// Value of the name within a Data of this test, whose lengths are all of one octet.
fn name_in(data: &[u8]) -> &[u8] {
    let at = if data[1] < 253 { 2 } else { 4 };
    &data[at + 2..at + 2 + data[at + 1] as usize]
}

fn store(packets_max: usize, policy: Policy) -> ContentStore {
    ContentStore::new(CsConfig { packets_max, policy, ..CsConfig::default() }, &KEY)
}

fn put(cs: &mut ContentStore, now: Tick, data: &Buf, freshness_ms: u64) -> Inserted {
    let name = name_in(data);
    cs.insert(now, data, name, KEY.name(name), freshness_ms, Demand::Asked)
}

fn query(name: &Name) -> Query<'_> {
    Query {
        name: name.value(),
        hash: KEY.name(name.value()),
        can_be_prefix: false,
        must_be_fresh: false,
        digest: None,
    }
}

/// A packet as a naive store keeps it.
#[derive(Clone)]
struct Kept {
    bytes: Buf,
    fresh_until: u64,
}

impl Kept {
    fn key(&self) -> (Vec<u8>, [u8; 32]) {
        (name_in(&self.bytes).to_vec(), onym_crypto::digest::implicit_digest(&self.bytes))
    }
}

#[derive(Debug, Clone)]
enum Op {
    Insert { path: Vec<u8>, content: u8, freshness_ms: u64 },
    Find { path: Vec<u8>, prefix: bool, fresh: bool, digest_of: Option<u8> },
    Erase { path: Vec<u8>, limit: usize },
    Wait(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let path = prop::collection::vec(0u8..5, 0..4);
    prop_oneof![
        4 => (path.clone(), 0u8..3, prop_oneof![Just(0), 1u64..50])
            .prop_map(|(path, content, freshness_ms)| Op::Insert { path, content, freshness_ms }),
        4 => (path.clone(), any::<bool>(), any::<bool>(), prop::option::of(0u8..3))
            .prop_map(|(path, prefix, fresh, digest_of)| Op::Find { path, prefix, fresh, digest_of }),
        1 => (path, 0usize..4).prop_map(|(path, limit)| Op::Erase { path, limit }),
        1 => (1u64..30).prop_map(Op::Wait),
    ]
}

/// The same as a naive store does it: a list, the least recently used first.
struct Model {
    kept: Vec<Kept>,
    packets_max: usize,
}

impl Model {
    fn insert(&mut self, bytes: Buf, fresh_until: u64) {
        if let Some(at) = self.kept.iter().position(|k| k.bytes == bytes) {
            self.kept.remove(at);
        } else if self.kept.len() == self.packets_max {
            self.kept.remove(0);
        }
        self.kept.push(Kept { bytes, fresh_until });
    }

    fn find(&mut self, now: u64, wanted: &Name, op: (bool, bool, Option<[u8; 32]>)) -> Option<Buf> {
        let (prefix, fresh, digest) = op;
        let best = (0..self.kept.len())
            .filter(|&i| {
                let (name, found) = self.kept[i].key();
                let named = match digest {
                    Some(digest) => name == wanted.value() && found == digest,
                    None if prefix => name.starts_with(wanted.value()),
                    None => name == wanted.value(),
                };
                named && (!fresh || self.kept[i].fresh_until > now)
            })
            .min_by_key(|&i| self.kept[i].key())?;
        let kept = self.kept.remove(best);
        self.kept.push(kept.clone());
        Some(kept.bytes)
    }

    fn erase(&mut self, prefix: &Name, limit: usize) -> usize {
        let mut hits: Vec<_> = (0..self.kept.len())
            .filter(|&i| self.kept[i].key().0.starts_with(prefix.value()))
            .collect();
        hits.sort_by_key(|&i| self.kept[i].key());
        hits.truncate(limit);
        hits.sort_unstable();
        for &i in hits.iter().rev() {
            self.kept.remove(i);
        }
        hits.len()
    }
}

proptest! {
    #[test]
    fn the_store_answers_as_a_list_does(ops in prop::collection::vec(op(), 1..200), packets_max in 1usize..12) {
        let mut cs = store(packets_max, Policy::Lru);
        let mut model = Model { kept: Vec::new(), packets_max };
        let mut now = Tick::from_ms(1);
        for op in ops {
            match op {
                Op::Insert { path, content, freshness_ms } => {
                    let bytes = data(&path, &[content]);
                    put(&mut cs, now, &bytes, freshness_ms);
                    let until = if freshness_ms == 0 { 0 } else { now.plus_ms(freshness_ms).0 };
                    model.insert(bytes, until);
                }
                Op::Find { path, prefix, fresh, digest_of } => {
                    let wanted = name(&path);
                    let digest = digest_of
                        .map(|c| onym_crypto::digest::implicit_digest(&data(&path, &[c])));
                    let query = Query {
                        can_be_prefix: prefix,
                        must_be_fresh: fresh,
                        digest: digest.as_ref(),
                        ..query(&wanted)
                    };
                    let found = cs.find(now, &query).map(|b| b.bytes().to_vec());
                    let expected = model.find(now.0, &wanted, (prefix, fresh, digest));
                    prop_assert_eq!(found, expected.map(|b| b.to_vec()));
                }
                Op::Erase { path, limit } => {
                    prop_assert_eq!(cs.erase(name(&path).value(), limit), model.erase(&name(&path), limit));
                }
                Op::Wait(ms) => now = now.plus_ms(ms),
            }
            let mut sorted = model.kept.clone();
            sorted.sort_by_key(Kept::key);
            let listed: Vec<Vec<u8>> = cs.list().iter().map(|(bytes, _, _)| bytes.to_vec()).collect();
            let expected: Vec<Vec<u8>> = sorted.iter().map(|k| k.bytes.to_vec()).collect();
            prop_assert_eq!(listed, expected, "canonical order");
            prop_assert_eq!(cs.len(), model.kept.len());
            prop_assert_eq!(cs.octets(), model.kept.iter().map(|k| k.bytes.len()).sum::<usize>());
        }
    }
}

#[test]
fn priority_fifo_evicts_unsolicited_then_stale_then_fresh() {
    let mut cs = store(4, Policy::PriorityFifo);
    let now = Tick::from_ms(10);
    put(&mut cs, now, &data(&[0], b"fresh, first"), 10_000);
    put(&mut cs, now, &data(&[1], b"soon stale"), 100);
    put(&mut cs, now, &data(&[2], b"fresh, second"), 10_000);
    let unasked = data(&[3], b"unsolicited");
    let name_value = name_in(&unasked);
    cs.insert(now, &unasked, name_value, KEY.name(name_value), 10_000, Demand::Unsolicited);
    let later = now.plus_ms(200);
    let mut left = Vec::new();
    for n in 0..4u8 {
        put(&mut cs, later, &data(&[4, n], b"more"), 10_000);
        left.push(
            (0..4u8).filter(|n| cs.would_find(later, &query(&name(&[*n])))).collect::<Vec<_>>(),
        );
    }
    assert_eq!(left, [vec![0, 1, 2], vec![0, 2], vec![2], vec![]]);
}

#[test]
fn asked_for_again_a_packet_is_no_longer_unsolicited() {
    let mut cs = store(2, Policy::PriorityFifo);
    let (a, b) = (data(&[0], b"a"), data(&[1], b"b"));
    for packet in [&a, &b] {
        let value = name_in(packet);
        cs.insert(Tick(1), packet, value, KEY.name(value), 1000, Demand::Unsolicited);
    }
    assert_eq!(put(&mut cs, Tick(2), &a, 1000), Inserted::Refreshed);
    put(&mut cs, Tick(3), &data(&[2], b"c"), 1000);
    assert!(
        cs.would_find(Tick(3), &query(&name(&[0]))) && !cs.would_find(Tick(3), &query(&name(&[1])))
    );
}

#[test]
fn the_limit_in_octets_holds_and_a_packet_beyond_it_is_refused() {
    let (small, large) = (data(&[0], &[0; 50]), data(&[1], &[0; 200]));
    let config = CsConfig { bytes_max: large.len(), ..CsConfig::default() };
    let mut cs = ContentStore::new(config, &KEY);
    put(&mut cs, Tick(1), &small, 0);
    assert_eq!(put(&mut cs, Tick(1), &large, 0), Inserted::New);
    assert_eq!((cs.len(), cs.octets()), (1, large.len()));
    let huge = data(&[2], &[0; 240]);
    assert_eq!(put(&mut cs, Tick(1), &huge, 0), Inserted::Refused);
    assert_eq!(cs.len(), 1);
}

#[test]
fn smaller_limits_take_effect_in_steps() {
    let mut cs = store(100, Policy::Lru);
    for n in 0..100u8 {
        put(&mut cs, Tick(1), &data(&[n / 10 + 3, n % 10 + 3], b"x"), 0);
    }
    cs.set_config(Tick(1), CsConfig { packets_max: 10, ..*cs.config() });
    assert_eq!((cs.evict(50), cs.len()), (50, 50));
    assert_eq!((cs.evict(50), cs.len()), (40, 10));
}

#[test]
fn different_packets_of_one_name_are_bounded() {
    let mut cs = store(1000, Policy::Lru);
    for n in 0..100u8 {
        put(&mut cs, Tick(1), &data(&[0], &[n]), 0);
    }
    assert!(cs.len() <= VARIANTS_MAX, "{}", cs.len());
    assert_eq!(cs.list().len(), cs.len());
}

#[test]
fn a_large_packet_shares_its_buffer_and_a_small_one_does_not() {
    let mut cs = store(10, Policy::Lru);
    let mut name_of = |path: &[u8], len: usize| {
        let bytes = data(path, &vec![1; len]);
        let value = {
            let at = if bytes[1] < 253 { 2 } else { 4 };
            bytes[at + 2..at + 2 + bytes[at + 1] as usize].to_vec()
        };
        let start = bytes.windows(value.len()).position(|w| w == value).unwrap();
        let part = &bytes[start..start + value.len()];
        cs.insert(Tick(1), &bytes, part, KEY.name(part), 0, Demand::Asked);
        let wanted = name(path);
        let shared = matches!(cs.find(Tick(1), &query(&wanted)), Some(Body::Shared(_)));
        shared
    };
    assert!(!name_of(&[0], 100));
    assert!(name_of(&[1], 4000));
}

#[test]
fn freed_buffers_are_used_again_and_not_hoarded() {
    let mut cs = store(1, Policy::Lru);
    for n in 0..200u8 {
        put(&mut cs, Tick(1), &data(&[n], &vec![0; n as usize]), 0);
    }
    assert_eq!(cs.len(), 1);
}

/// `/a/0000` and so on, in canonical order.
fn numbered(n: usize) -> Buf {
    let name: Name = format!("/a/{n:06}").parse().unwrap();
    let mut out = Vec::new();
    DataBuilder::new(name.as_ref(), b"")
        .write(&mut out, &SignatureInfo::default(), |_| Ok::<_, std::fmt::Error>([0; 32]))
        .unwrap();
    Buf::copy_from(&out)
}

fn fresh_under<'a>(name: &'a Name) -> Query<'a> {
    Query { can_be_prefix: true, must_be_fresh: true, ..query(name) }
}

#[test]
fn stale_packets_do_not_stand_in_the_way_of_fresh_ones() {
    let mut cs = store(65_536, Policy::Lru);
    let prefix: Name = "/a".parse().unwrap();
    let now = Tick::from_ms(1);
    for n in 0..5000 {
        put(&mut cs, now, &numbered(n), 10);
    }
    put(&mut cs, now, &numbered(9000), 100_000);
    // None was ever looked for, so they are entered by the first lookups, some by each.
    let mut later = Tick::from_ms(50);
    let mut lookups = 0;
    while cs.find(later, &fresh_under(&prefix)).is_none() {
        lookups += 1;
        later = later.plus_ms(1);
        assert!(lookups < 50, "the fresh one is not found");
        assert!(cs.take_steps() <= ENTER_MAX * 20, "an order of 5000 is searched in few steps");
    }
    later = settle(&mut cs, later);
    for _ in 0..5 {
        let _ = cs.would_find(later, &fresh_under(&prefix));
    }
    cs.take_steps();
    for _ in 0..100 {
        assert_eq!(cs.find(later, &fresh_under(&prefix)).unwrap().bytes(), &*numbered(9000));
    }
    assert_eq!(cs.take_steps(), 0, "stale ones are looked at once");
    // One that is fresh again is found again, in a turn that may enter it.
    put(&mut cs, later, &numbered(7), 100_000);
    later = later.plus_ms(1);
    assert_eq!(cs.find(later, &fresh_under(&prefix)).unwrap().bytes(), &*numbered(7));
}

/// Waits until what was asked for is entered.
fn settle(cs: &mut ContentStore, mut now: Tick) -> Tick {
    while cs.poll_timeout() != Tick::NEVER {
        now = cs.poll_timeout();
        cs.handle_timeout(now);
    }
    now
}

/// `count` numbers below it in an order that nobody foresees.
fn shuffled(count: usize) -> Vec<usize> {
    let (mut all, mut rng) = ((0..count).collect::<Vec<_>>(), crate::Rng::new(7));
    for n in (1..count).rev() {
        all.swap(n, usize::try_from(rng.below(n as u64 + 1)).unwrap());
    }
    all
}

fn under(name: &Name) -> Query<'_> {
    Query { can_be_prefix: true, ..query(name) }
}

/// What `cs` says about the names that wait to be entered into the order of all.
fn waiting(cs: &ContentStore) -> usize {
    cs.orders.waiting(Of::All, waiting::Under::All)
}

#[test]
fn names_in_any_order_cost_no_search_until_somebody_asks() {
    let mut cs = store(2000, Policy::Lru);
    for n in shuffled(10_000) {
        put(&mut cs, Tick::from_ms(1), &numbered(n), 1000);
    }
    assert_eq!((cs.take_steps(), cs.len()), (0, 2000));
    assert_eq!(waiting(&cs), 2000, "what left the store does not wait");
}

#[test]
fn a_turn_enters_a_bounded_number_and_a_lookup_knows_what_was_entered() {
    let mut cs = store(65_536, Policy::Lru);
    let (prefix, now): (Name, _) = ("/a".parse().unwrap(), Tick::from_ms(1));
    for n in shuffled(5000) {
        put(&mut cs, now, &numbered(n), 0);
    }
    for _ in 0..10 {
        assert!(cs.find(now, &under(&prefix)).is_some(), "a match, perhaps not the smallest");
        assert_eq!(waiting(&cs), 5000 - 256, "one turn, whoever asks");
    }
    cs.find(now.plus_ms(1), &under(&prefix));
    assert_eq!(waiting(&cs), 5000 - 512);
}

#[test]
fn what_a_lookup_found_waiting_is_entered_in_time_without_another_lookup() {
    let mut cs = store(65_536, Policy::Lru);
    let (prefix, mut now): (Name, _) = ("/a".parse().unwrap(), Tick::from_ms(1));
    for n in shuffled(5000) {
        put(&mut cs, now, &numbered(n), 100_000);
    }
    assert_eq!(cs.poll_timeout(), Tick::NEVER, "nobody asked");
    cs.find(now, &under(&prefix));
    cs.find(now, &fresh_under(&prefix));
    let mut turns = 0;
    while cs.poll_timeout() != Tick::NEVER {
        assert_eq!(cs.poll_timeout(), now + GO_ON_AFTER);
        now = cs.poll_timeout();
        cs.handle_timeout(now);
        turns += 1;
        assert!(turns <= 2 * 5000 / ENTER_MAX as usize, "{turns}");
    }
    cs.take_steps();
    for query in [under(&prefix), fresh_under(&prefix)] {
        assert_eq!(cs.find(now, &query).unwrap().bytes(), &*numbered(0));
    }
    assert_eq!((waiting(&cs), cs.take_steps()), (0, 0));
}

#[test]
fn names_that_begin_otherwise_keep_nobody_waiting() {
    let mut cs = store(65_536, Policy::Lru);
    let named = |text: String| {
        let (mut out, name): (_, Name) = (Vec::new(), text.parse().unwrap());
        DataBuilder::new(name.as_ref(), b"")
            .write(&mut out, &SignatureInfo::default(), |_| Ok::<_, std::fmt::Error>([0; 32]))
            .unwrap();
        Buf::copy_from(&out)
    };
    let now = Tick::from_ms(1);
    // Wherever the groups were made anew.
    for n in 0..5000 {
        put(&mut cs, now, &named(format!("/attacker/site/of/random/{n}")), 0);
    }
    let wanted = named("/victim/site/with/a/file/1/2".into());
    put(&mut cs, now, &wanted, 0);
    let prefix: Name = "/victim/site/with/a/file".parse().unwrap();
    assert_eq!(cs.find(now, &under(&prefix)).unwrap().bytes(), &*wanted);
    assert!(cs.take_steps() < 20 && waiting(&cs) == 5000, "{}", waiting(&cs));
}

#[test]
fn erasing_goes_on_until_nothing_is_left() {
    let mut cs = store(65_536, Policy::Lru);
    for n in shuffled(3000) {
        put(&mut cs, Tick::from_ms(1), &numbered(n), 1000);
    }
    let other = data(&[0], b"other");
    put(&mut cs, Tick::from_ms(1), &other, 0);
    let prefix: Name = "/a".parse().unwrap();
    let (mut erased, mut calls) = (0, 0);
    while cs.may_have_under(prefix.value()) {
        let waits = waiting(&cs);
        erased += cs.erase(prefix.value(), 256);
        assert!(waits - waiting(&cs) <= 512, "256 erased and 256 entered");
        calls += 1;
        assert!(calls < 30, "{erased} erased");
    }
    assert_eq!((erased, cs.len()), (3000, 1));
    assert!(cs.would_find(Tick::from_ms(1), &query(&name(&[0]))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    /// Larger than a turn and than the groups of a small store: what is answered is there and
    /// matches, and once everything asked for is entered it is the smallest.
    #[test]
    fn a_large_store_answers_with_what_it_has_and_in_time_with_the_smallest(
        seed: u64, count in 300u64..9000, packets_max in 200usize..6000,
        asked in prop::collection::vec((0u64..9000, any::<bool>()), 1..20),
    ) {
        let mut cs = store(packets_max, Policy::Lru);
        let mut rng = crate::Rng::new(seed);
        let mut now = Tick::from_ms(1);
        let mut prefixes: Vec<Name> = vec!["/a".parse().unwrap(), "/a/00".parse().unwrap()];
        for (n, ask) in &asked {
            prefixes.push(format!("/a/{n:06}").parse().unwrap());
            for _ in 0..count / asked.len() as u64 {
                let n = usize::try_from(rng.below(9000)).unwrap();
                put(&mut cs, now, &numbered(n), rng.below(2) * 1_000_000);
            }
            now = now.plus_ms(1);
            let name = &prefixes[usize::try_from(rng.below(prefixes.len() as u64)).unwrap()];
            let query = if *ask { under(name) } else { fresh_under(name) };
            let held: Vec<Vec<u8>> = cs.list().iter().map(|(bytes, _, _)| bytes.to_vec()).collect();
            if let Some(found) = cs.find(now, &query) {
                prop_assert!(name_in(found.bytes()).starts_with(name.value()));
                prop_assert!(held.iter().any(|bytes| bytes == found.bytes()));
            }
            if rng.below(4) == 0 {
                cs.erase(name.value(), 3);
            }
        }
        for name in &prefixes {
            for query in [under(name), fresh_under(name)] {
                let _ = cs.would_find(now, &query);
                now = settle(&mut cs, now);
                let expected = cs.list().into_iter()
                    .find(|(bytes, until, _)| {
                        name_in(bytes).starts_with(name.value()) && (!query.must_be_fresh || *until > now)
                    })
                    .map(|(bytes, _, _)| bytes.to_vec());
                let found = cs.find(now, &query).map(|found| found.bytes().to_vec());
                prop_assert_eq!(found, expected);
            }
        }
    }
}
