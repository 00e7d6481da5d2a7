//! Names: URI forms, canonical order, prefixes, successors.

use onym_wire::name::{Name, NameRef};

/// Shortest input that is split in two names.
const SPLIT_LEN: usize = 2;

/// Reads `input` as the URI of a name and as the VALUE of two names.
///
/// # Panics
/// When a law of names does not hold.
pub fn names(input: &[u8]) {
    if let Ok(text) = std::str::from_utf8(input)
        && let Ok(name) = text.parse::<Name>()
    {
        one(name.as_ref());
    }
    let Some((first, rest)) = input.split_first() else { return };
    if let Ok(name) = NameRef::parse_value(rest) {
        one(name);
    }
    if input.len() > SPLIT_LEN {
        let (left, right) = rest.split_at(usize::from(*first) % rest.len());
        if let (Ok(a), Ok(b)) = (NameRef::parse_value(left), NameRef::parse_value(right)) {
            two(a, b);
        }
    }
}

fn one(name: NameRef<'_>) {
    for text in [name.to_string(), name.display_canonical().to_string()] {
        let again: Name = text.parse().expect("law: the URI of a name can be read");
        assert_eq!(again.as_ref(), name, "{text}");
    }
    assert_eq!(name.components().count(), name.len());
    let rebuilt: Name = name.components().collect();
    assert_eq!(rebuilt.as_ref(), name);
    let mut wire = Vec::new();
    name.write_tlv(&mut wire);
    assert_eq!(wire.len(), name.wire_len());
    assert_eq!(NameRef::parse(&wire).expect("law: what is written can be read"), name);
    for count in 0..=name.len().min(40) {
        let (prefix, rest) = (name.prefix(count), name.suffix(count));
        assert!(prefix.is_prefix_of(name));
        assert_eq!(prefix.to_name().join(rest).as_ref(), name);
        assert_eq!(name.strip_prefix(prefix), Some(rest));
    }
    let successor = name.successor();
    assert!(name.is_empty() || name < successor.as_ref());
    assert!(name.is_empty() || !name.is_prefix_of(successor.as_ref()));
    let mut child = name.to_name();
    child.append_generic([0xff; 3]);
    assert!(name.is_empty() || child.as_ref() < successor.as_ref(), "{name} {successor}");
}

/// The order of octets is the canonical order: by component, and each by type, length, octets.
fn two(a: NameRef<'_>, b: NameRef<'_>) {
    assert_eq!(a.cmp(&b), a.components().cmp(b.components()), "{a} {b}");
    assert_eq!(a == b, a.cmp(&b).is_eq());
    let is_prefix = a.len() <= b.len() && a.components().eq(b.components().take(a.len()));
    assert_eq!(a.is_prefix_of(b), is_prefix, "{a} {b}");
}
