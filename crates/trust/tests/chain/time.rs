//! Validity: of every element, at the moment that counts.

use super::world::{
    Chain, DAY_MS, Form, NOW_MS, chain_with, issued, name, self_signed, signed, signed_at,
};
use onym_trust::chain::{Context, Element, Limits, OldData, Refusal};

fn forms(which: usize, days: (i64, i64)) -> [Form; 4] {
    let mut forms: [Form; 4] = std::array::from_fn(|_| Form::default());
    forms[which].days = days;
    forms
}

fn judge(chain: &mut Chain) -> Result<(), Refusal> {
    let packet = signed("/a/s/h/p/1", &chain.app);
    chain.world.judge(&packet).map(|_| ())
}

#[test]
fn negative_1_2_3_an_expired_leaf_intermediate_or_anchor_is_refused_and_named() {
    for (which, element, expired) in [
        (3, Element::Chain, "/a/s/h/p/KEY/p/h/v=1"),
        (2, Element::Chain, "/a/s/h/KEY/h/s/v=1"),
        (1, Element::Chain, "/a/s/KEY/s/r/v=1"),
        (0, Element::Anchor, "/a/KEY/r/self/v=1"),
    ] {
        let mut chain = chain_with(Limits::default(), forms(which, (-30, -1)));
        match judge(&mut chain).unwrap_err() {
            Refusal::Expired { element: e, name: n, .. } => {
                assert_eq!((e, n), (element, name(expired)));
            }
            other => panic!("{other}"),
        }
    }
    // As ndn-cxx has it, when asked for.
    let limits = Limits { expired_anchors: true, ..Limits::default() };
    assert_eq!(judge(&mut chain_with(limits, forms(0, (-30, -1)))), Ok(()));
}

#[test]
fn negative_4_what_is_not_valid_yet_is_told_apart_from_what_expired() {
    for which in 0..4 {
        let mut chain = chain_with(Limits::default(), forms(which, (1, 30)));
        let refusal = judge(&mut chain).unwrap_err();
        assert!(matches!(refusal, Refusal::NotYetValid { .. }), "{refusal}");
        assert!(
            refusal.to_string().contains("is not valid yet: it will be from 2026"),
            "{refusal}"
        );
    }
}

#[test]
fn negative_5_a_cached_chain_ends_with_its_first_element() {
    let mut chain = chain_with(Limits::default(), forms(1, (-30, 1)));
    assert_eq!(judge(&mut chain), Ok(()));
    chain.world.now_ms = NOW_MS + DAY_MS;
    assert_eq!(judge(&mut chain), Ok(()), "the last second counts");
    chain.world.now_ms += 1000;
    let refusal = judge(&mut chain).unwrap_err();
    assert!(refusal.to_string().contains("/a/s/KEY/s/r/v=1 expired"), "{refusal}");
    // Ended chains are not fetched again for each packet.
    let fetched = chain.world.fetched.len();
    for _ in 0..100 {
        assert!(judge(&mut chain).is_err());
    }
    assert!(chain.world.fetched.len() <= fetched + 1);
}

/// A site renews: its old certificate is over, the new one has the same key.
#[test]
fn a_renewed_certificate_above_is_found_by_the_name_of_its_key() {
    let mut chain = chain_with(Limits::default(), forms(1, (-30, 1)));
    let by_key = |days| Form { days, locator: Some(name("/a/s/KEY/s")), ..Form::default() };
    let (host, wire) = issued("/a/s/h/KEY/h2/s/v=1", &chain.site, &by_key((-30, 30)));
    chain.world.publish(wire);
    let (app, wire) = issued("/a/s/h/p/KEY/p2/h/v=1", &host, &Form::default());
    chain.world.publish(wire);
    let packet = signed("/a/s/h/p/1", &app);
    assert!(chain.world.judge(&packet).is_ok());
    chain.world.now_ms += 2 * DAY_MS;
    chain.world.validator.advance(chain.world.now_ms);
    assert!(matches!(chain.world.judge(&packet), Err(Refusal::Expired { .. })));
    let renewed = super::world::certificate(
        "/a/s/KEY/s/r/v=2",
        &chain.site.key,
        &chain.root,
        &Form::default(),
    );
    chain.world.answers.remove(&name("/a/s/KEY/s/r/v=1"));
    chain.world.publish(renewed);
    chain.world.now_ms += 11_000;
    chain.world.validator.advance(chain.world.now_ms);
    let trusted = chain.world.judge(&packet).unwrap();
    assert_eq!(trusted.depth, 3);
}

#[test]
fn negative_6_a_packet_that_is_itself_an_expired_certificate_is_refused() {
    let mut chain = chain_with(Limits::default(), forms(1, (-30, -1)));
    let wire = chain.world.answers[&chain.site.certificate].clone();
    match chain.world.judge(&wire).unwrap_err() {
        Refusal::Expired { element, name, .. } => {
            assert_eq!((element, name), (Element::Packet, chain.site.certificate));
        }
        other => panic!("{other}"),
    }
    let (_, anchor) = self_signed("/a/KEY/r/self/v=1", &Form { days: (-3, -1), ..Form::default() });
    assert!(matches!(chain.world.judge(&anchor), Err(Refusal::Expired { .. })));
}

#[test]
fn negative_7_8_a_period_that_makes_no_sense_makes_no_certificate() {
    let mut chain = chain_with(Limits::default(), forms(2, (5, -5)));
    let refusal = judge(&mut chain).unwrap_err();
    assert!(refusal.to_string().contains("it ends before it begins"), "{refusal}");
    for bad in [&b"20260101T00000"[..], b"2026O101T000000", b"20261301T000000"] {
        let mut chain = chain_with(Limits::default(), forms(3, (-30, 30)));
        let wire = chain.world.answers[&chain.app.certificate].clone();
        let at = wire.windows(3).position(|w| w == [0xfd, 0, 0xfe]).unwrap();
        let mut wire = wire;
        let end = at + 4 + bad.len();
        wire[at + 4..end].copy_from_slice(bad);
        if bad.len() == 14 {
            wire[at + 3] = 14;
            // Keep the outer lengths: the last octet becomes an element's.
            wire[end] = b'0';
        }
        chain.world.answers.insert(chain.app.certificate.clone(), wire);
        let refusal = judge(&mut chain).unwrap_err();
        assert!(matches!(refusal, Refusal::BadCertificate { .. }), "{refusal}");
    }
}

#[test]
fn old_data_passes_only_with_a_witness_who_saw_it_while_its_chain_was_valid() {
    let limits = Limits { old_data: OldData::AtWitnessedTime, ..Limits::default() };
    let mut chain = chain_with(limits, forms(2, (-30, -5)));
    let at = |day: u64| NOW_MS - day * DAY_MS;
    let packet =
        |time: Option<u64>| signed_at("/a/s/h/p/1", &chain.app, &chain.app.certificate, time);
    let cases = [
        (Some(at(10)), Some(at(9)), true),
        (Some(at(10)), None, false),
        (None, Some(at(9)), false),
        // Seen only after the end: a thief may have written the time.
        (Some(at(10)), Some(at(2)), false),
        // Signed after it was seen.
        (Some(at(8)), Some(at(9)), false),
        // Seen in the future, or signed before the chain began.
        (Some(at(10)), Some(NOW_MS + 1), false),
        (Some(at(40)), Some(at(9)), false),
    ];
    for (time, witness_ms, expected) in cases {
        let wire = packet(time);
        let context = Context { now_ms: NOW_MS, witness_ms, via: None };
        let result = chain.world.judge_with(&wire, &context);
        assert_eq!(result.is_ok(), expected, "{time:?} {witness_ms:?}: {result:?}");
        chain.world.validator.advance(NOW_MS + 1_000_000);
    }
}

/// A clock that jumps changes verdicts and nothing else: back in time all is as before.
#[test]
fn a_clock_that_jumps_a_year_ahead_or_a_day_back_is_told_and_mended() {
    let mut chain = chain_with(Limits::default(), forms(3, (0, 30)));
    chain.world.now_ms = NOW_MS + 1000;
    assert_eq!(judge(&mut chain), Ok(()));
    chain.world.now_ms = NOW_MS + 365 * DAY_MS;
    assert!(matches!(judge(&mut chain), Err(Refusal::Expired { .. })));
    chain.world.now_ms = NOW_MS - DAY_MS;
    chain.world.validator.advance(NOW_MS + 400 * DAY_MS);
    assert!(matches!(judge(&mut chain), Err(Refusal::NotYetValid { .. })));
    chain.world.now_ms = NOW_MS + 2000;
    chain.world.validator.advance(NOW_MS + 400 * DAY_MS);
    assert_eq!(judge(&mut chain), Ok(()));
}

/// A clock that jumps a year ahead and is put right: what failed meanwhile is asked for again, and
/// nothing that was believed before is lost for longer than a failure is remembered.
#[test]
fn a_clock_that_jumps_a_year_ahead_and_back_leaves_nothing_behind() {
    let mut chain = chain_with(Limits::default(), forms(0, (-30, 30)));
    assert!(judge(&mut chain).is_ok());
    chain.world.now_ms = NOW_MS + 365 * DAY_MS;
    let refusal = judge(&mut chain).unwrap_err();
    assert!(matches!(refusal, Refusal::Expired { .. }), "{refusal}");
    chain.world.now_ms = NOW_MS + 1000;
    assert!(judge(&mut chain).is_ok(), "the failure was of another year");
}

#[test]
fn a_clock_that_goes_back_a_day_says_not_valid_yet_and_a_fetch_of_tomorrow_ends() {
    let mut chain = chain_with(Limits::default(), forms(2, (0, 30)));
    assert!(judge(&mut chain).is_ok());
    chain.world.now_ms = NOW_MS - DAY_MS;
    let refusal = judge(&mut chain).unwrap_err();
    assert!(matches!(refusal, Refusal::NotYetValid { .. }), "{refusal}");
    assert!(refusal.to_string().contains("is not valid yet"), "{refusal}");
    chain.world.now_ms = NOW_MS;
    assert!(judge(&mut chain).is_ok());
    // What was asked for tomorrow is given up, not kept for a day.
    let mut chain = chain_with(Limits::default(), forms(0, (-30, 30)));
    let context = Context { now_ms: NOW_MS + DAY_MS, ..Context::default() };
    assert_eq!(chain.world.validator.data(&signed("/a/s/h/p/1", &chain.app), 7, &context), None);
    chain.world.validator.advance(NOW_MS);
    assert_eq!(chain.world.validator.waiting(), 0);
}
