use super::*;
use crate::interest::InterestBuilder;
use crate::name::Name;
use proptest::prelude::*;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn data_wire(name: &Name) -> Vec<u8> {
    let mut out = Vec::new();
    let sign = |_: &[u8]| Ok::<_, ()>([1; 32]);
    DataBuilder::new(name.as_ref(), b"x")
        .write(&mut out, &SignatureInfo::of_kind(0), sign)
        .unwrap();
    out
}

#[test]
fn critical_elements_out_of_order_refuse_a_data_and_others_are_skipped() {
    const NAME: &[u8] = &[7, 3, 8, 1, 65];
    const META: &[u8] = &[20, 0];
    const CONTENT: &[u8] = &[21, 1, 1];
    const INFO: &[u8] = &[22, 3, 27, 1, 0];
    const VALUE: &[u8] = &[23, 1, 1];
    for (pieces, expected) in [
        (vec![NAME, META, CONTENT, INFO, VALUE], Ok(())),
        (vec![NAME, INFO, VALUE, &[120, 0]], Ok(())),
        (vec![&[7, 0], INFO, VALUE], Ok(())),
        (vec![NAME, CONTENT, META, INFO, VALUE], Err(Malformed::OutOfOrder(20))),
        (vec![NAME, INFO, VALUE, CONTENT], Err(Malformed::OutOfOrder(21))),
        (vec![NAME, INFO], Err(Malformed::Missing(23))),
        (vec![NAME, VALUE], Err(Malformed::Missing(22))),
        (vec![INFO, VALUE], Err(Malformed::Missing(7))),
        (vec![NAME, &[9, 0], INFO, VALUE], Err(Malformed::UnknownCritical(9))),
        (vec![NAME, &[20, 3, 26, 1, 8], INFO, VALUE], Err(Malformed::Truncated)),
        (vec![NAME, &[20, 2, 26, 0], INFO, VALUE], Err(Malformed::Truncated)),
        (vec![NAME, &[20, 6, 26, 4, 8, 0, 8, 0], INFO, VALUE], Err(Malformed::Trailing)),
        (vec![NAME, &[20, 6, 25, 1, 1, 24, 1, 1], INFO, VALUE], Err(Malformed::OutOfOrder(24))),
        (vec![NAME, &[20, 5, 129, 0, 25, 1, 1], INFO, VALUE], Ok(())),
        (vec![NAME, &[22, 0], VALUE], Err(Malformed::Missing(27))),
        (vec![NAME, &[22, 6, 27, 1, 99, 121, 1, 0], VALUE], Err(Malformed::UnknownCritical(121))),
        (vec![NAME, &[22, 5, 27, 1, 99, 28, 0], VALUE], Ok(())),
    ] {
        let mut wire = Vec::new();
        tlv::put_tlv(&mut wire, types::DATA, &pieces.concat());
        assert_eq!(Data::parse(&wire).map(drop), expected, "{pieces:?}");
    }
}

#[test]
fn an_interest_is_answered_by_the_rules_of_matching() {
    let digest = [7; 32];
    let full = |uri: &str| name(uri).with(Component::implicit_digest(&digest));
    let wrong = name("/A/B").with(Component::implicit_digest(&[8; 32]));
    let wire = data_wire(&name("/A/B"));
    let data = Data::parse(&wire).unwrap();
    for (interest_name, exact, prefix) in [
        (name("/A/B"), true, true),
        (name("/A"), false, true),
        (name("/A/C"), false, false),
        (name("/A/B/C"), false, false),
        (name("/A/BB"), false, false),
        (full("/A/B"), true, true),
        (full("/A"), false, false),
        (full("/A/B/C"), false, false),
        (wrong, false, false),
    ] {
        for (can_be_prefix, expected) in [(false, exact), (true, prefix)] {
            let mut out = Vec::new();
            InterestBuilder { can_be_prefix, ..InterestBuilder::new(interest_name.as_ref()) }
                .write(&mut out);
            let interest = Interest::parse(&out).unwrap();
            assert_eq!(
                matches(&interest, &data, || digest),
                expected,
                "{interest_name} {can_be_prefix}"
            );
        }
    }
}

#[test]
fn the_digest_is_computed_only_when_asked_for() {
    let wire = data_wire(&name("/A/B"));
    let data = Data::parse(&wire).unwrap();
    let mut out = Vec::new();
    InterestBuilder::new(name("/A/B").as_ref()).write(&mut out);
    assert!(matches(&Interest::parse(&out).unwrap(), &data, || unreachable!()));
}

proptest! {
    #[test]
    fn a_data_written_is_read_back(
        uri_parts in proptest::collection::vec("[a-z]{0,9}x", 0..9),
        content_type in prop_oneof![Just(0u64), any::<u64>()],
        freshness_ms: u64,
        final_segment: Option<u64>,
        content in proptest::collection::vec(any::<u8>(), 0..400),
        kind: u64,
        time: Option<u64>,
        locator: bool,
    ) {
        let name = name(&format!("/{}", uri_parts.join("/")));
        let mut last = Name::new();
        if let Some(n) = final_segment { last.append_segment(n); }
        let builder = DataBuilder {
            content_type, freshness_ms, final_block_id: last.as_ref().last(),
            ..DataBuilder::new(name.as_ref(), &content)
        };
        let info = SignatureInfo {
            time, key_locator: locator.then_some(crate::KeyLocator::Name(name.as_ref())),
            ..SignatureInfo::of_kind(kind)
        };
        let mut out = vec![1];
        let mut signed = Vec::new();
        builder.write(&mut out, &info, |b| { signed = b.to_vec(); Ok::<_, ()>(vec![2; 70]) }).unwrap();
        let data = Data::parse(&out[1..]).unwrap();
        prop_assert_eq!(data.name, name.as_ref());
        prop_assert_eq!((data.content_type, data.freshness_ms), (content_type, freshness_ms));
        prop_assert_eq!(data.final_block_id, last.as_ref().last());
        prop_assert_eq!((data.content, data.signature_value), (&content[..], &[2; 70][..]));
        prop_assert_eq!(data.signature_info(), info);
        prop_assert_eq!(data.signed_range, &signed[..]);
    }

    #[test]
    fn arbitrary_elements_never_panic_as_a_data(
        elements in proptest::collection::vec(
            (1u32..40, proptest::collection::vec(any::<u8>(), 0..9)), 0..8),
        raw: Vec<u8>,
    ) {
        let mut value = vec![7, 3, 8, 1, 65];
        elements.iter().for_each(|(typ, bytes)| tlv::put_tlv(&mut value, *typ, bytes));
        let mut wire = Vec::new();
        tlv::put_tlv(&mut wire, types::DATA, &value);
        for wire in [wire, raw] {
            if let Ok(data) = Data::parse(&wire) {
                prop_assert!(data.is_final_block() || data.app_meta_info().count() < 100);
            }
        }
    }
}

/// Pieces of a Data in their order, each of which may be left out, and then one octet changed.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let pieces: &[&[&[u8]]] = &[
        &[&[7, 3, 8, 1, 65], &[7, 0], &[7, 5, 8, 0, 54, 1, 2], &[7, 34, 1, 32]],
        &[
            &[20, 0],
            &[],
            &[20, 3, 25, 1, 9],
            &[20, 6, 24, 1, 2, 25, 1, 9],
            &[20, 5, 26, 3, 8, 1, 65],
            &[20, 2, 129, 0],
        ],
        &[&[21, 1, 1], &[], &[21, 253, 0, 1, 7], &[120, 0], &[121, 0]],
        &[
            &[22, 3, 27, 1, 0],
            &[22, 7, 27, 1, 1, 28, 2, 29, 0],
            &[22, 5, 27, 1, 99, 28, 0],
            &[22, 0],
            &[],
        ],
        &[&[23, 1, 1], &[23, 0], &[]],
        &[&[], &[], &[120, 0]],
    ];
    let chosen: Vec<_> = pieces.iter().map(|options| 0..options.len()).collect();
    (chosen, prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>()))).prop_map(
        |(chosen, change)| {
            let inner: Vec<u8> =
                pieces.iter().zip(chosen).flat_map(|(options, n)| options[n].to_vec()).collect();
            let mut wire = Vec::new();
            tlv::put_tlv(&mut wire, types::DATA, &inner);
            if let Some((at, octet)) = change {
                let at = at.index(wire.len());
                wire[at] = octet;
            }
            wire
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn the_quick_way_finds_what_the_general_parser_finds(wire in nearly()) {
        if let Some((quick, is_expected)) = quick::parse(&wire, None) {
            prop_assert!(!is_expected);
            let general = Data::parse_any(&wire).expect("what the quick way takes is well-formed");
            prop_assert_eq!(format!("{quick:?}"), format!("{general:?}"));
        }
    }
}

#[test]
fn a_data_is_the_same_whatever_name_was_expected() {
    let names = ["/a/b/c", "/a/b", "/a/b/d", "/", "/a/b/c/d"].map(name);
    for data in &names {
        let wire = data_wire(data);
        let found = Data::parse(&wire).unwrap();
        for expected in &names {
            let other = DataHead::parse_expecting(&wire, Some(expected.as_ref()));
            let (other, is_expected) = other.unwrap();
            assert_eq!(is_expected, data == expected);
            let found = DataHead::from(found);
            assert_eq!(format!("{found:?}"), format!("{other:?}"), "{expected} expected");
            assert_eq!(found.name.len(), other.name.len());
        }
    }
    // A name that is malformed equals none that was checked.
    let mut wire = data_wire(&name("/a/b/c"));
    let at = wire.iter().position(|octet| *octet == b'c').unwrap();
    wire[at - 1] = 9;
    let expected = name("/a/b/c");
    assert!(DataHead::parse_expecting(&wire, Some(expected.as_ref())).is_err());
}
