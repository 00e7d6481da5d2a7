//! Invitations and certificate lists: positive (i), negative 38 and 39.

#![allow(clippy::unwrap_used)]

use onym_trust::invite::{Invitation, InviteError, attached, certificate_list};
use onym_wire::Name;
use onym_wire::cert::{CertTime, ValidityPeriod};
use onym_wire::data::{Data, DataBuilder};
use onym_wire::signature::SignatureInfo;
use onym_wire::tlv::{put_nested, put_nni_tlv, put_tlv};
use std::convert::Infallible;

const BASIC: &str = include_str!("../../../spec/vectors/trust/basic.txt");
/// 2026-11-23, in milliseconds.
const NOW_MS: u64 = 1_795_400_000_000;

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn recorded(word: &str) -> Vec<u8> {
    let line = BASIC.lines().find(|line| line.split(' ').next() == Some(word)).unwrap();
    unhex(line.split(' ').next_back().unwrap())
}

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

/// A Data with this content, period in days from now, and element behind its signature.
fn data(uri: &str, content: &[u8], days: Option<(i64, i64)>, behind: &[u8]) -> Vec<u8> {
    let name = name(uri);
    let second = |days: i64| CertTime(i64::try_from(NOW_MS / 1000).unwrap() + days * 86_400);
    let validity_period =
        days.map(|(from, to)| ValidityPeriod { not_before: second(from), not_after: second(to) });
    let info = SignatureInfo { validity_period, ..SignatureInfo::of_kind(0) };
    let mut wire = Vec::new();
    let builder = DataBuilder { freshness_ms: 4000, ..DataBuilder::new(name.as_ref(), content) };
    builder.write(&mut wire, &info, |_| Ok::<_, Infallible>([0; 32])).unwrap();
    if behind.is_empty() {
        return wire;
    }
    let (outer, _) = onym_wire::tlv::Element::split(&wire).unwrap();
    let value = [outer.value, behind].concat();
    let mut whole = Vec::new();
    put_tlv(&mut whole, 6, &value);
    whole
}

fn name_tlv(uri: &str) -> Vec<u8> {
    let mut out = Vec::new();
    name(uri).as_ref().write_tlv(&mut out);
    out
}

fn prefix_rule(uri: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_tlv(&mut out, 622, &name_tlv(uri));
    out
}

fn component_rule(uri: &str, key: &str, at: (u64, u64)) -> Vec<u8> {
    let mut out = Vec::new();
    put_nested(&mut out, 624, |out| {
        out.extend(name_tlv(uri));
        put_tlv(out, 28, &name_tlv(key));
        put_nni_tlv(out, 625, at.0);
        put_nni_tlv(out, 626, at.1);
    });
    out
}

const INVITE: &str = "/a/w/32=INVITE/b/v=1/seg=0";

fn parse(wire: &[u8]) -> Result<Invitation, InviteError> {
    Invitation::parse(&Data::parse(wire).unwrap())
}

#[test]
fn the_recorded_invitation_lets_in_whom_ndnd_lets_in() {
    let wire = recorded("DATA-CROSS");
    let packet = Data::parse(&wire).unwrap();
    let inner = attached(&packet).unwrap();
    assert_eq!(inner, recorded("CROSSSCHEMA"));
    let invitation = parse(inner).unwrap();
    assert_eq!(invitation.check_valid_at(NOW_MS), Ok(()));
    let mut pairs = 0;
    for line in BASIC.lines().filter_map(|line| line.strip_prefix("  cross ")) {
        let words: Vec<&str> = line.split(' ').collect();
        let [expected, packet, "<-", key] = words.as_slice() else { panic!("{line}") };
        let allowed = invitation.allows(name(packet).as_ref(), name(key).as_ref());
        assert_eq!(allowed, *expected == "true", "{line}");
        pairs += 1;
    }
    assert_eq!(pairs, 9);
    assert!(attached(&Data::parse(&recorded("DATA")).unwrap()).is_none());
}

#[test]
fn negative_38_an_invitation_counts_in_its_time_for_its_owners_names_and_by_itself() {
    let rule = prefix_rule("/a/w/open");
    let good = data(INVITE, &rule, Some((-1, 1)), &[]);
    assert!(parse(&good).unwrap().check_valid_at(NOW_MS).is_ok());
    // Expired, not yet, no period.
    for days in [(-2, -1), (1, 2)] {
        let invitation = parse(&data(INVITE, &rule, Some(days), &[])).unwrap();
        assert!(matches!(invitation.check_valid_at(NOW_MS), Err(InviteError::NotValidNow { .. })));
    }
    let error = parse(&data(INVITE, &rule, None, &[])).unwrap_err();
    assert!(matches!(error, InviteError::NoPeriod(_)));
    // An invitation within an invitation.
    let mut behind = Vec::new();
    put_tlv(&mut behind, 600, &good);
    let error = parse(&data(INVITE, &rule, Some((-1, 1)), &behind)).unwrap_err();
    assert!(matches!(error, InviteError::Nested(_)));
    // A rule that matches too much: a wildcard, or another name, in the owner's part.
    for foreign in ["/_/_/open", "/a/_/open", "/b", "/"] {
        let error = parse(&data(INVITE, &prefix_rule(foreign), Some((-1, 1)), &[])).unwrap_err();
        assert!(matches!(error, InviteError::Foreign { .. }), "{foreign}");
    }
    // Behind the owner's name a wildcard is one component, and no key without identity fits.
    let rules = [prefix_rule("/a/w/_"), component_rule("/a/w/_/c", "/b/_", (4, 1))].concat();
    let invitation = parse(&data(INVITE, &rules, Some((-1, 1)), &[])).unwrap();
    let allows =
        |packet: &str, key: &str| invitation.allows(name(packet).as_ref(), name(key).as_ref());
    assert!(allows("/a/w/x/q/1", "/q/KEY/k/i/v=1"));
    assert!(!allows("/a/w/x/q/1", "/KEY/k/i/v=1"));
    assert!(!allows("/a/w", "/a/KEY/k/i/v=1"));
    assert!(!allows("/a/w/x/q/1", "/q/KEY/k"), "only full names of certificates are compared");
    assert!(allows("/a/w/x/c/bob/1", "/b/bob/KEY/k/i/v=1"));
    assert!(!allows("/a/w/x/c", "/b/bob/KEY/k/i/v=1"), "an index beyond the name");
    // Names and contents that are none.
    for bad in ["/a/w/32=INVITE/b/v=1", "/a/w/INVITE/b/v=1/seg=0", "/32=INVITE/b/v=1/seg=0"] {
        assert!(parse(&data(bad, &rule, Some((-1, 1)), &[])).is_err(), "{bad}");
    }
    let disorder = [prefix_rule("/a/w/_"), component_rule("/a/w", "/b", (0, 0)), rule].concat();
    assert!(parse(&data(INVITE, &disorder, Some((-1, 1)), &[])).is_err());
    let many = prefix_rule("/a/w/x").repeat(257);
    assert_eq!(parse(&data(INVITE, &many, Some((-1, 1)), &[])), Err(InviteError::TooMany));
}

#[test]
fn negative_39_a_certificate_list_is_about_one_key_and_not_empty() {
    let key = name("/a/KEY/k1");
    let list = |uri: &str, content: &[u8]| {
        let wire = data(uri, content, None, &[]);
        certificate_list(&Data::parse(&wire).unwrap(), key.as_ref())
    };
    let recorded = recorded("CERTLIST");
    let names = list("/a/KEY/k1/32=auth", &recorded).unwrap();
    assert_eq!(names.len(), 2);
    assert!(names.iter().all(|name| key.as_ref().is_prefix_of(name.as_ref())));
    assert_eq!(list("/a/KEY/k1/32=auth/v=3", &recorded).unwrap(), names);
    assert!(list("/a/KEY/k1/32=auth", &[]).is_err(), "empty");
    assert!(list("/a/KEY/k2/32=auth", &recorded).is_err(), "of another key");
    assert!(list("/a/KEY/k1/auth", &recorded).is_err());
    assert!(list("/a/KEY/k1/32=auth/v=3/x", &recorded).is_err());
    assert!(list("/a/KEY/k1/32=auth", &name_tlv("/a/KEY/k2/i/v=1")).is_err(), "outside the key");
    assert!(list("/a/KEY/k1/32=auth", &name_tlv("/a/KEY/k1")).is_err(), "no certificate");
}
