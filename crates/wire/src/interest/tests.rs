use super::*;
use crate::name::Name;
use proptest::prelude::*;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

/// An Interest element around `value`, given as pieces.
fn interest(pieces: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    tlv::put_tlv(&mut out, types::INTEREST, &pieces.concat());
    out
}

const NAME_A: &[u8] = &[7, 3, 8, 1, 65];
const CBP: &[u8] = &[33, 0];
const MBF: &[u8] = &[18, 0];
const HINT: &[u8] = &[30, 5, 7, 3, 8, 1, 72];
const NONCE: &[u8] = &[10, 4, 1, 2, 3, 4];
const LIFETIME: &[u8] = &[12, 1, 9];
const HOP: &[u8] = &[34, 1, 7];
const UNKNOWN_EVEN: &[u8] = &[120, 1, 0];

#[test]
fn critical_elements_out_of_order_refuse_an_interest_and_others_are_skipped() {
    for (pieces, expected) in [
        (vec![NAME_A, MBF, CBP], Err(Malformed::OutOfOrder(33))),
        (vec![NAME_A, HINT, MBF], Err(Malformed::OutOfOrder(18))),
        (vec![NAME_A, NONCE, HINT], Err(Malformed::OutOfOrder(30))),
        (vec![NAME_A, LIFETIME, NONCE], Err(Malformed::OutOfOrder(10))),
        (vec![NAME_A, HOP, LIFETIME], Err(Malformed::OutOfOrder(12))),
        (vec![NAME_A, CBP, CBP], Err(Malformed::OutOfOrder(33))),
        (vec![NAME_A, NAME_A], Err(Malformed::OutOfOrder(7))),
        (vec![NAME_A, &[9, 0]], Err(Malformed::UnknownCritical(9))),
        (vec![NAME_A, &[121, 0]], Err(Malformed::UnknownCritical(121))),
        (vec![UNKNOWN_EVEN, NAME_A], Err(Malformed::Missing(7))),
        (vec![&[7, 0]], Err(Malformed::EmptyName)),
        (vec![NAME_A, &[33, 1, 0]], Err(Malformed::Length(33))),
        (vec![NAME_A, &[18, 1, 0]], Err(Malformed::Length(18))),
        (vec![NAME_A, &[10, 3, 1, 2, 3]], Err(Malformed::Length(10))),
        (vec![NAME_A, &[12, 3, 1, 2, 3]], Err(Malformed::NniLength)),
        (vec![NAME_A, &[34, 2, 1, 2]], Err(Malformed::Length(34))),
        (vec![NAME_A, &[30, 0]], Err(Malformed::Missing(7))),
        (vec![NAME_A, &[36, 0]], Err(Malformed::ParametersDigest)),
        (vec![NAME_A, UNKNOWN_EVEN, CBP, HOP, HOP], Ok(())),
        (vec![NAME_A, &[44, 1, 0], HOP], Ok(())),
    ] {
        assert_eq!(Interest::parse(&interest(&pieces)).map(drop), expected, "{pieces:?}");
    }
}

#[test]
fn parameters_and_their_digest_go_together() {
    let digest = Name::new().with(crate::Component::parameters_digest(&[9; 32]));
    let two = digest.clone().join(digest.as_ref());
    let wire = |name: &Name, tail: &[u8]| {
        let mut name_tlv = Vec::new();
        name.as_ref().write_tlv(&mut name_tlv);
        interest(&[&name_tlv, tail])
    };
    let parse = |wire: &[u8]| Interest::parse(wire).map(drop);
    assert_eq!(parse(&wire(&digest, &[])), Err(Malformed::ParametersDigest));
    assert_eq!(parse(&wire(&digest, &[36, 0])), Ok(()));
    assert_eq!(parse(&wire(&two, &[36, 0])), Err(Malformed::ParametersDigest));
    let wire = wire(&digest, &[36, 0, 120, 1, 5]);
    let interest = Interest::parse(&wire).unwrap();
    assert_eq!(interest.parameters_range(), Some(&[36, 0, 120, 1, 5][..]));
    assert_eq!(interest.parameters_digest(), Some(&[9; 32]));
    assert_eq!(interest.app_parameters, Some(&[][..]));
}

#[test]
fn forwarding_hints_are_read_in_the_old_form_too() {
    let old: &[u8] = &[30, 10, 31, 8, 30, 1, 5, 7, 3, 8, 1, 72];
    for hint in [HINT, old] {
        let wire = interest(&[NAME_A, hint, NONCE]);
        let interest = Interest::parse(&wire).unwrap();
        let hints: Vec<String> = interest.forwarding_hint.iter().map(|n| n.to_string()).collect();
        assert_eq!(hints, ["/H"]);
    }
}

#[test]
fn a_forwarded_interest_differs_only_where_asked() {
    let parameters: &[u8] = &[36, 1, 1];
    let mut name_tlv = Vec::new();
    name("/A")
        .with(crate::Component::parameters_digest(&[9; 32]))
        .as_ref()
        .write_tlv(&mut name_tlv);
    for bits in 0..64u8 {
        let has = |bit: u8, piece: &'static [u8]| if bits >> bit & 1 == 1 { piece } else { &[] };
        let (hint, nonce, hop) = (has(0, HINT), has(1, NONCE), has(2, HOP));
        let (lifetime, extra) = (has(3, LIFETIME), has(4, UNKNOWN_EVEN));
        let strip = bits >> 5 == 1;
        let wire = interest(&[
            &name_tlv, extra, CBP, hint, nonce, extra, lifetime, hop, extra, parameters,
        ]);
        let parsed = Interest::parse(&wire).unwrap();
        for new_hop in [None, Some(3)] {
            let mut out = vec![0xEE];
            parsed.write_forwarded(
                &mut out,
                [5, 6, 7, 8],
                new_hop,
                if strip { Hint::Strip } else { Hint::Keep },
            );
            let copy = Interest::parse(&out[1..]).unwrap();
            assert_eq!(copy.nonce, Some([5, 6, 7, 8]));
            assert_eq!(copy.hop_limit, new_hop.or(parsed.hop_limit));
            assert_eq!(copy.forwarding_hint.is_empty(), strip || hint.is_empty());
            assert_eq!((copy.name, copy.lifetime_ms), (parsed.name, parsed.lifetime_ms));
            assert_eq!(copy.parameters_range(), parsed.parameters_range());
            let nonce_at = copy.nonce_offset().unwrap();
            assert_eq!(copy.wire[nonce_at..nonce_at + 4], [5, 6, 7, 8]);
            assert_eq!(copy.hop_limit_offset().map(|at| copy.wire[at]), copy.hop_limit);
            // A second time nothing moves.
            let mut again = Vec::new();
            copy.write_forwarded(
                &mut again,
                [5, 6, 7, 8],
                new_hop,
                if strip { Hint::Strip } else { Hint::Keep },
            );
            assert_eq!(again, copy.wire);
        }
    }
}

#[test]
fn a_signed_interest_hands_out_what_was_signed() {
    let builder = InterestBuilder {
        nonce: Some([1, 2, 3, 4]),
        ..InterestBuilder::new(NameRef::parse_value(&NAME_A[2..]).unwrap())
    };
    let info = SignatureInfo { nonce: Some(&[1; 8]), time: Some(7), ..SignatureInfo::of_kind(0) };
    let mut signed = Vec::new();
    let mut out = vec![1];
    let sign = |parts: &[&[u8]]| {
        signed = parts.concat();
        Ok::<_, ()>([5; 32])
    };
    builder.write_signed(&mut out, b"parameters", &info, sign, |_| [6; 32]).unwrap();
    let interest = Interest::parse(&out[1..]).unwrap();
    assert_eq!(interest.signed_ranges().unwrap().concat(), signed);
    assert_eq!(interest.signature_info(), Some(info));
    assert_eq!(interest.parameters_digest(), Some(&[6; 32]));
    assert_eq!(interest.signature_value, Some(&[5; 32][..]));

    let mut out = vec![1];
    let refused =
        builder.write_signed(&mut out, b"", &info, |_| Err::<[u8; 0], _>("no key"), |_| [0; 32]);
    assert_eq!((refused, out), (Err("no key"), vec![1]));
}

proptest! {
    #[test]
    fn an_interest_written_is_read_back(
        components in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 1..12),
        flags: (bool, bool),
        hints in 0usize..3,
        nonce: Option<[u8; 4]>,
        lifetime_ms: Option<u64>,
        hop_limit: Option<u8>,
        parameters in proptest::option::of(proptest::collection::vec(any::<u8>(), 0..300)),
    ) {
        let name: Name = components.iter().map(|c| crate::Component::generic(c)).collect();
        let hint = vec![name.as_ref(); hints];
        let builder = InterestBuilder {
            name: name.as_ref(), can_be_prefix: flags.0, must_be_fresh: flags.1,
            forwarding_hint: &hint, nonce, lifetime_ms, hop_limit,
        };
        let mut out = Vec::new();
        let mut digested = Vec::new();
        match &parameters {
            None => builder.write(&mut out),
            Some(p) => builder.write_with_parameters(&mut out, p, |b| { digested = b.to_vec(); [3; 32] }),
        }
        let interest = Interest::parse(&out).unwrap();
        prop_assert_eq!(interest.name.prefix(name.len()), name.as_ref());
        prop_assert_eq!(interest.name.len(), name.len() + usize::from(parameters.is_some()));
        prop_assert_eq!((interest.can_be_prefix, interest.must_be_fresh), flags);
        prop_assert_eq!(interest.forwarding_hint.iter().count(), hints);
        prop_assert_eq!((interest.nonce, interest.hop_limit), (nonce, hop_limit));
        prop_assert_eq!(interest.lifetime_or_default(), lifetime_ms.unwrap_or(4000));
        prop_assert_eq!(interest.app_parameters, parameters.as_deref());
        prop_assert_eq!(interest.parameters_range().unwrap_or_default(), &digested[..]);
    }

    #[test]
    fn arbitrary_elements_never_panic_as_an_interest(
        elements in proptest::collection::vec(
            (prop_oneof![Just(7u32), 1u32..60], proptest::collection::vec(any::<u8>(), 0..6)), 0..8),
        raw: Vec<u8>,
    ) {
        let mut value = NAME_A.to_vec();
        elements.iter().for_each(|(typ, bytes)| tlv::put_tlv(&mut value, *typ, bytes));
        for wire in [interest(&[&value]), interest(&[&raw]), raw.clone()] {
            let Ok(parsed) = Interest::parse(&wire) else { continue };
            let mut out = Vec::new();
            parsed.write_forwarded(&mut out, [1; 4], Some(1), Hint::Strip);
            let copy = Interest::parse(&out).unwrap();
            prop_assert_eq!((copy.name, copy.hop_limit), (parsed.name, Some(1)));
        }
    }
}

/// Pieces of an Interest in their order, each of which may be left out, and then one octet changed.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    let pieces: &[&[&[u8]]] = &[
        &[&[7, 3, 8, 1, 65], &[7, 0], &[7, 5, 8, 0, 54, 1, 2], &[7, 36, 8, 0, 1, 32]],
        &[&[], &[33, 0], &[33, 1, 0]],
        &[&[], &[18, 0], &[18, 1, 0]],
        &[&[], &[], &[30, 5, 7, 3, 8, 1, 66], &[120, 0]],
        &[&[10, 4, 1, 2, 3, 4], &[], &[10, 3, 1, 2, 3]],
        &[&[], &[12, 1, 9], &[12, 2, 9, 9], &[12, 3, 1, 1, 1]],
        &[&[], &[34, 1, 7], &[34, 2, 7, 7]],
        &[&[], &[], &[36, 0], &[120, 0], &[121, 0], &[18, 0]],
    ];
    let chosen: Vec<_> = pieces.iter().map(|options| 0..options.len()).collect();
    (chosen, prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>()))).prop_map(
        |(chosen, change)| {
            let inner: Vec<u8> =
                pieces.iter().zip(chosen).flat_map(|(options, n)| options[n].to_vec()).collect();
            let mut wire = Vec::new();
            tlv::put_tlv(&mut wire, types::INTEREST, &inner);
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
        if let Some(quick) = quick::parse(&wire) {
            let general = Interest::parse_any(&wire).expect("what the quick way takes is well-formed");
            prop_assert_eq!(format!("{quick:?}"), format!("{general:?}"));
        }
    }
}
