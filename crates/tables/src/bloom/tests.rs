use super::*;
use crate::Rng;

#[test]
fn three_single_bits_have_three_ones_and_no_false_positive() {
    let scheme = Scheme::default();
    let mut filter = Filter::EMPTY;
    for number in [3, 70, 255] {
        filter.add(&scheme.tag(number, 0));
    }
    assert_eq!(filter.ones(), 3);
    let hits = (0..256).filter(|n| filter.contains(&scheme.tag(*n, 0))).count();
    assert_eq!(hits, 3);
}

#[test]
fn numbers_beyond_256_have_more_ones() {
    let scheme = Scheme::default();
    assert_eq!(scheme.tag(256, 0).ones(), 2);
    assert_eq!(scheme.tag(600, 0).ones(), 3);
    assert_eq!(scheme.tag(u32::MAX, 0).ones(), u32::from(K_MAX));
}

#[test]
fn tags_have_k_ones_and_differ_between_tables() {
    let scheme = Scheme { kind: Kind::Tags { k: 5, tables: 8 }, seed: 7 };
    for table in 0..8 {
        assert_eq!(scheme.tag(1, table).ones(), 5);
        assert_ne!(scheme.tag(1, table), scheme.tag(1, (table + 1) % 8));
    }
}

#[test]
fn false_positives_agree_with_the_formula() {
    let mut rng = Rng::new(11);
    for (members, k) in [(16_u32, 5_u8), (32, 5), (24, 3), (40, 7)] {
        let (mut hits, mut tested, mut expected) = (0_u32, 0_u32, 0.0);
        for round in 0..200 {
            let scheme = Scheme { kind: Kind::Tags { k, tables: 1 }, seed: rng.next_u64() };
            let mut filter = Filter::EMPTY;
            (0..members).for_each(|n| filter.add(&scheme.tag(n, 0)));
            let fill = f64::from(filter.ones()) / 256.0;
            // Distinct positions: a little below the formula for the fill, so it is measured.
            let formula = expected_fill(256, members, u32::from(k));
            assert!((fill - formula).abs() < 0.09, "fill {fill} instead of {formula}, {round}");
            expected += 500.0 * false_positive_rate(fill, u32::from(k));
            hits += (1000..1500).filter(|n| filter.contains(&scheme.tag(*n, 0))).count() as u32;
            tested += 500;
        }
        let (rate, expected) = (f64::from(hits) / f64::from(tested), expected / f64::from(tested));
        assert!((rate / expected - 1.0).abs() < 0.25, "{members}, {k}: {rate} and not {expected}");
    }
}

#[test]
fn keyed_tags_depend_on_flow_links_table_and_key() {
    let keys = KeyedTags::new([1, 2], 5);
    let tag = keys.tag(10, 1, 2, 0);
    assert!((1..=5).contains(&tag.ones()));
    assert!(keys.of_flow(10, 0).is_in(&Bits::of(&tag), 1, 2));
    assert!(!keys.of_flow(11, 0).is_in(&Bits::of(&tag), 1, 2));
    for (flow, from, to, table) in [(11, 1, 2, 0), (10, 3, 2, 0), (10, 2, 1, 0), (10, 1, 2, 1)] {
        assert_ne!(keys.tag(flow, from, to, table), tag);
    }
    assert_ne!(KeyedTags::new([1, 3], 5).tag(10, 1, 2, 0), tag);
}

#[test]
fn a_keyed_tag_is_in_a_filter_that_contains_it_and_in_no_other() {
    let seed = 4;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    let mut held = 0;
    for n in 0..2000 {
        let keys = KeyedTags::new([rng.next_u64(), n], 1 + (n % 8) as u8);
        let (flow, [from, to]) = (rng.next_u64(), [(); 2].map(|()| rng.below(1000) as u32));
        let tag = keys.tag(flow, from, to, 3);
        let mut filter = Filter::EMPTY;
        (0..rng.below(700)).for_each(|_| filter.set(rng.below(256) as u8));
        if n % 3 == 0 {
            filter.add(&tag);
        }
        let is_in = keys.of_flow(flow, 3).is_in(&Bits::of(&filter), from, to);
        assert_eq!(is_in, filter.contains(&tag));
        held += u32::from(is_in);
    }
    assert!((700..1900).contains(&held), "{held}");
}

#[test]
fn a_built_stage_holds_its_members_and_nothing_else() {
    let mut rng = Rng::new(3);
    for (members, others) in [(1, 0), (1, 20), (7, 30), (40, 200), (150, 300)] {
        let tags: Vec<u64> = (0..members + others).map(|_| rng.next_u64()).collect();
        let (ours, theirs) = tags.split_at(members);
        let built = build_stage(2, ours, theirs).unwrap();
        let stage = built.as_stage();
        assert!(ours.iter().all(|tag| stage_has(&stage, 2, *tag)));
        assert!(!theirs.iter().any(|tag| stage_has(&stage, 2, *tag)));
        let bound = 24.0 + 1.44 * members as f64 * ((others + 2) as f64 * 2.0).log2();
        assert!(f64::from(built.bits) <= bound, "{members}, {others}: {} bits", built.bits);
    }
    assert_eq!(build_stage(0, &vec![5; 70_000], &[]), None, "too many members");
}
