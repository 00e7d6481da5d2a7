use super::*;
use crate::data::DataBuilder;
use crate::signature::SignatureInfo;
use crate::validity::{TIME_MAX, TIME_MIN};
use proptest::prelude::*;

#[test]
fn the_parts_of_a_certificate_name_are_found() {
    let name: Name = "/net/alice/KEY/%01/self/v=5".parse().unwrap();
    let parts = CertName::parse(name.as_ref()).unwrap();
    assert_eq!(parts.identity.to_string(), "/net/alice");
    assert_eq!(parts.key_name.to_string(), "/net/alice/KEY/%01");
    assert_eq!((parts.issuer_id, parts.version.as_version()), (ISSUER_SELF, Some(5)));
    assert_eq!(cert_name(key_name(parts.identity, parts.key_id).as_ref(), ISSUER_SELF, 5), name);
    assert_eq!(identity_of_key(parts.key_name), Some(parts.identity));
    let root: Name = "/KEY/a/self/v=1".parse().unwrap();
    assert!(CertName::parse(root.as_ref()).unwrap().identity.is_empty());
    for uri in ["/KEY/a/self", "/a/b/c/d", "/a/32=KEY/b/c/d"] {
        assert_eq!(CertName::parse(uri.parse::<Name>().unwrap().as_ref()), None);
    }
}

#[test]
fn certificate_times_are_those_of_the_calendar() {
    for (text, unix_s) in [
        ("19700101T000000", 0),
        ("20000229T235959", 951_868_799),
        ("20261121T120000", 1_795_262_400),
        ("99991231T235959", TIME_MAX),
        ("00000101T000000", TIME_MIN),
        ("19691231T235959", -1),
    ] {
        assert_eq!(CertTime::parse(text.as_bytes()), Some(CertTime(unix_s)), "{text}");
        assert_eq!(CertTime(unix_s).to_string(), text);
    }
    for text in [
        "20260229T000000",
        "20261301T000000",
        "20260100T000000",
        "20260101 000000",
        "20260101T240000",
        "20260101T006000",
        "2026010T000000",
        "+0260101T000000",
    ] {
        assert_eq!(CertTime::parse(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn both_ends_of_a_validity_period_are_within() {
    let period = ValidityPeriod { not_before: CertTime(10), not_after: CertTime(20) };
    assert!(
        period.contains(10) && period.contains(20) && !period.contains(9) && !period.contains(21)
    );
    let mut wire = Vec::new();
    period.write(&mut wire);
    let value = tlv::Element::parse_as(&wire, types::VALIDITY_PERIOD).unwrap().value;
    assert_eq!(ValidityPeriod::parse(value), Ok(period));
}

#[test]
fn a_prefix_announcement_is_read_back() {
    let prefix: Name = "/net/app".parse().unwrap();
    let validity = ValidityPeriod { not_before: CertTime(0), not_after: CertTime(86_400) };
    let announcement = PrefixAnnouncement {
        prefix: prefix.as_ref(),
        version: 7,
        expiration_ms: 60_000,
        validity_period: Some(validity),
        cost: Some(3),
    };
    let mut content = Vec::new();
    announcement.write_content(&mut content);
    let wire = |name: &Name, content: &[u8], content_type| {
        let mut wire = Vec::new();
        DataBuilder { content_type, ..DataBuilder::new(name.as_ref(), content) }
            .write(&mut wire, &SignatureInfo::of_kind(0), |_| Ok::<_, ()>([0; 32]))
            .unwrap();
        wire
    };
    let parse =
        |wire: &[u8]| PrefixAnnouncement::parse(&Data::parse(wire).unwrap()).map(|a| a.cost);
    let name = announcement.name();
    assert_eq!(name.to_string(), "/net/app/32=PA/v=7/seg=0");
    let good = wire(&name, &content, 5);
    assert_eq!(PrefixAnnouncement::parse(&Data::parse(&good).unwrap()), Ok(announcement));
    assert_eq!(parse(&wire(&name, &content, 0)), Err(Malformed::Value(types::CONTENT_TYPE)));
    assert_eq!(parse(&wire(&prefix, &content, 5)), Err(Malformed::Value(types::NAME)));
    assert_eq!(parse(&wire(&name, &[], 5)), Err(Malformed::Missing(types::EXPIRATION_PERIOD)));
    content.extend([121, 0]);
    assert_eq!(parse(&wire(&name, &content, 5)), Err(Malformed::UnknownCritical(121)));
}

proptest! {
    #[test]
    fn a_certificate_time_survives_its_text(unix_s in TIME_MIN..=TIME_MAX) {
        prop_assert_eq!(CertTime::parse(CertTime(unix_s).to_string().as_bytes()), Some(CertTime(unix_s)));
    }

    #[test]
    fn later_certificate_times_have_larger_texts(a in TIME_MIN..=TIME_MAX, b in TIME_MIN..=TIME_MAX) {
        prop_assert_eq!(a.cmp(&b), CertTime(a).to_string().cmp(&CertTime(b).to_string()));
    }
}
