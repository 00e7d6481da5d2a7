use super::*;
use proptest::prelude::*;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

/// Any valid name, from components of all kinds.
fn any_name() -> impl Strategy<Value = Name> {
    let component = prop_oneof![
        (3u16.., proptest::collection::vec(any::<u8>(), 0..6)),
        (
            prop_oneof![Just(8u16), Just(32), Just(50), Just(54)],
            proptest::collection::vec(prop_oneof![Just(b'.'), Just(0), any::<u8>()], 0..300)
        ),
        (1u16..3, proptest::collection::vec(any::<u8>(), 32..33)),
    ];
    proptest::collection::vec(component, 0..6).prop_map(|components| {
        components.iter().map(|(typ, value)| Component { typ: *typ, value }).collect()
    })
}

#[test]
fn every_uri_form_is_read_and_printed() {
    let digest = "0123456789abcdef".repeat(4);
    for (uri, printed) in [
        ("/", "/"),
        ("", "/"),
        ("ndn:/A/B", "/A/B"),
        ("ndn://authority/A", "/A"),
        ("//authority", "/"),
        ("A/B/", "/A/B"),
        ("/8=A/...", "/A/..."),
        ("/....", "/...."),
        ("/a+b%20c", "/a%2Bb%20c"),
        (
            "/seg=0/off=256/v=1/t=70000/seq=18446744073709551615",
            "/seg=0/off=256/v=1/t=70000/seq=18446744073709551615",
        ),
        ("/32=metadata/50=%05", "/32=metadata/seg=5"),
        ("/50=%00%05", "/50=%00%05"),
        ("/50=abc", "/50=abc"),
        ("/65535=x/253=...", "/65535=x/253=..."),
    ] {
        assert_eq!(name(uri).to_string(), printed, "{uri}");
    }
    for word in ["sha256digest", "params-sha256"] {
        let uri = format!("/{word}={digest}");
        assert_eq!(name(&uri.to_uppercase().replace(&word.to_uppercase(), word)).to_string(), uri);
    }
    assert_eq!(name("/v=1/seg=0").as_ref().display_canonical().to_string(), "/54=%01/50=%00");
}

#[test]
fn a_text_that_is_no_name_is_refused_with_what_is_allowed() {
    for (uri, expected) in [
        ("/a//b", "Periods"),
        ("/.", "Periods"),
        ("/..", "Periods"),
        ("/32=", "Periods"),
        ("/%4", "Percent"),
        ("/%zz", "Percent"),
        ("/foo=1", "Prefix"),
        ("/0=1", "Prefix"),
        ("/08=1", "Prefix"),
        ("/65536=1", "Prefix"),
        ("/=1", "Prefix"),
        ("/seg=01", "Number"),
        ("/v=", "Number"),
        ("/v=+1", "Number"),
        ("/seq=18446744073709551616", "Number"),
        ("/sha256digest=00", "Digest"),
        ("/1=abc", "Digest"),
        ("http://x/y", "Scheme"),
    ] {
        let error = uri.parse::<Name>().unwrap_err();
        assert!(format!("{error:?}").starts_with(expected), "{uri}: {error:?}");
    }
}

#[test]
fn components_are_ordered_by_type_then_length_then_octets() {
    let zeros = format!("/sha256digest={}", "00".repeat(32));
    let sorted = ["/", &zeros, "/...", "/A", "/B", "/B/A", "/AA", "/v=2", "/v=256"].map(name);
    assert!(sorted.is_sorted());
}

#[test]
fn successors_are_those_of_the_field() {
    let successor = |uri: &str| name(uri).as_ref().successor().to_string();
    assert_eq!(successor("/"), format!("/sha256digest={}", "00".repeat(32)));
    assert_eq!(successor("/A"), "/B");
    assert_eq!(successor("/A/%FF"), "/A/%00%00");
    assert_eq!(successor("/..."), "/%00");
    let ones = |word: &str| format!("/{word}={}", "ff".repeat(32));
    assert_eq!(successor(&ones("sha256digest")), format!("/params-sha256={}", "00".repeat(32)));
    assert_eq!(successor(&ones("params-sha256")), "/3=...");
}

#[test]
fn prefixes_and_suffixes_cut_between_components() {
    let name = name("/A/v=1/C");
    let view = name.as_ref();
    assert_eq!(view.prefix(2).to_string(), "/A/v=1");
    assert_eq!(view.prefix(9), view);
    assert_eq!(view.prefix(0), NameRef::EMPTY);
    assert_eq!(view.suffix(1).to_string(), "/v=1/C");
    assert_eq!(view.suffix(9), NameRef::EMPTY);
    assert_eq!(view.drop_last(1).len(), 2);
    assert_eq!(view.strip_prefix(view.prefix(1)), Some(view.suffix(1)));
    assert_eq!(view.last().unwrap().to_string(), "C");
    assert_eq!(view.get(1).unwrap().as_version(), Some(1));
}

#[test]
fn markers_are_read_only_when_asked_for() {
    let name = name("/%FD%05/%00%01%00");
    assert_eq!(name.as_ref().get(0).unwrap().as_marked(0xFD), Some(5));
    assert_eq!(name.as_ref().get(0).unwrap().as_version(), None);
    assert_eq!(name.as_ref().get(1).unwrap().as_marked(0), Some(256));
}

#[test]
fn a_digest_component_has_32_octets() {
    assert_eq!(NameRef::parse_value(&[1, 1, 0]), Err(Malformed::Length(1)));
    assert_eq!(NameRef::parse_value(&[2, 0]), Err(Malformed::Length(2)));
    assert_eq!(NameRef::parse_value(&[0xFE, 0, 1, 0, 0, 0]), Err(Malformed::ComponentType(65536)));
    assert_eq!(NameRef::parse_value(&[8, 2, 0]), Err(Malformed::Truncated));
}

proptest! {
    #[test]
    fn a_name_survives_its_uri_and_its_encoding(name in any_name()) {
        prop_assert_eq!(&name.to_string().parse::<Name>().unwrap(), &name);
        let canonical = name.as_ref().display_canonical().to_string();
        prop_assert_eq!(&canonical.parse::<Name>().unwrap(), &name);
        let mut wire = Vec::new();
        name.as_ref().write_tlv(&mut wire);
        prop_assert_eq!(wire.len(), name.as_ref().wire_len());
        let parsed = NameRef::parse(&wire).unwrap();
        prop_assert_eq!(parsed, name.as_ref());
        prop_assert_eq!(parsed.len(), name.components().count());
    }

    #[test]
    fn canonical_order_is_the_order_of_the_encodings(a in any_name(), b in any_name()) {
        let by_components = a.components().cmp(b.components());
        prop_assert_eq!(by_components, a.value().cmp(b.value()));
        prop_assert_eq!(by_components, a.cmp(&b));
    }

    #[test]
    fn the_successor_bounds_all_names_with_the_prefix(a in any_name(), b in any_name()) {
        let successor = a.as_ref().successor();
        prop_assert!(a < successor);
        if !a.is_empty() {
            prop_assert_eq!(a.as_ref().is_prefix_of(b.as_ref()), a <= b && b < successor);
            prop_assert!(a.clone().join(b.as_ref()) < successor);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic_as_a_name(bytes: Vec<u8>, uri: String) {
        if let Ok(name) = NameRef::parse_value(&bytes) {
            prop_assert_eq!(name.components().count(), name.len());
        }
        if let Ok(name) = uri.parse::<Name>() {
            prop_assert_eq!(name.to_string().parse::<Name>().unwrap(), name);
        }
    }
}
