//! Names and contents replaced in place, so that a capture can be handed on: each component by one
//! of the same type and length, the same for the same under one key; contents by zeros.

use onym_wire::tlv::Element;
use onym_wire::types;
use siphasher::sip::SipHasher13;
use std::hash::Hasher as _;

/// Elements that have others in them, down to names and contents.
const HOLDERS: [u32; 9] = [
    types::INTEREST,
    types::DATA,
    types::LP_PACKET,
    types::LP_FRAGMENT,
    types::LP_PREFIX_ANNOUNCEMENT,
    types::FORWARDING_HINT,
    types::SIGNATURE_INFO,
    types::INTEREST_SIGNATURE_INFO,
    types::KEY_LOCATOR,
];
/// Elements whose octets tell something.
const CONTENTS: [u32; 4] = [
    types::CONTENT,
    types::APPLICATION_PARAMETERS,
    types::SIGNATURE_VALUE,
    types::INTEREST_SIGNATURE_VALUE,
];
/// Nested elements; real packets have at most six.
const DEPTH_MAX: u32 = 16;

/// Replaces what tells names and contents in `frame`. What cannot be read is emptied.
pub fn hide(frame: &mut [u8], key: &[u8; 16]) {
    within(frame, key, DEPTH_MAX);
}

fn within(mut octets: &mut [u8], key: &[u8; 16], depth: u32) {
    while !octets.is_empty() {
        let Some((kind, head, len)) = head_of(octets).filter(|_| depth > 0) else {
            octets.fill(0);
            return;
        };
        let (element, rest) = octets.split_at_mut(head + len);
        let value = &mut element[head..];
        if kind == types::NAME {
            components(value, key);
        } else if CONTENTS.contains(&kind) {
            value.fill(0);
        } else if HOLDERS.contains(&kind) {
            within(value, key, depth - 1);
        }
        octets = rest;
    }
}

/// Replaces the values of the components of a name. Numbers stay: segments, versions and times
/// tell the shape of the traffic and no name.
fn components(mut name: &mut [u8], key: &[u8; 16]) {
    while !name.is_empty() {
        let Some((kind, head, len)) = head_of(name) else {
            name.fill(0);
            return;
        };
        let (component, rest) = name.split_at_mut(head + len);
        let value = &mut component[head..];
        if !(50..=58).contains(&kind) {
            replace(value, kind, key);
        }
        name = rest;
    }
}

fn replace(value: &mut [u8], kind: u32, key: &[u8; 16]) {
    let original = value.to_vec();
    for (block, piece) in value.chunks_mut(8).enumerate() {
        let mut hasher = SipHasher13::new_with_key(key);
        hasher.write(&original);
        hasher.write_u32(kind);
        hasher.write_usize(block);
        // Letters, so that the name can be read and typed.
        for (octet, random) in piece.iter_mut().zip(hasher.finish().to_be_bytes()) {
            *octet = b'a' + random % 26;
        }
    }
}

/// Type, octets of type and length, and octets of the value of the first element.
fn head_of(octets: &[u8]) -> Option<(u32, usize, usize)> {
    let (element, rest) = Element::split(octets).ok()?;
    let len = element.value.len();
    Some((element.typ, octets.len() - rest.len() - len, len))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use onym_wire::{Interest, Name, tlv};

    fn interest(name: &str) -> Vec<u8> {
        let name: Name = name.parse().unwrap();
        let mut wire = Vec::new();
        tlv::put_nested(&mut wire, types::INTEREST, |out| {
            name.as_ref().write_tlv(out);
            tlv::put_tlv(out, types::NONCE, &[1, 2, 3, 4]);
            tlv::put_tlv(out, types::APPLICATION_PARAMETERS, b"secret");
        });
        wire
    }

    #[test]
    fn names_are_replaced_alike_and_nothing_of_them_is_left() {
        let hidden = |name: &str, key: u8| {
            let mut wire = interest(name);
            hide(&mut wire, &[key; 16]);
            assert!(!wire.windows(6).any(|w| w == b"secret" || w == b"person"), "{wire:?}");
            wire
        };
        let (a, b) = (hidden("/person/file/v=3/seg=7", 1), hidden("/person/other/v=3/seg=7", 1));
        let names = [&a, &b].map(|wire| {
            let (packet, _) = Element::split(wire).unwrap();
            let name = tlv::Reader::new(packet.value).expect(types::NAME).unwrap().value;
            onym_wire::name::NameRef::parse_value(name).unwrap().to_name()
        });
        assert_eq!(names[0].as_ref().get(0), names[1].as_ref().get(0), "the same for the same");
        assert_ne!(names[0].as_ref().get(1), names[1].as_ref().get(1));
        assert_eq!(names[0].as_ref().last().unwrap().as_segment(), Some(7), "numbers stay");
        assert_eq!(names[0].as_ref().get(0).unwrap().value.len(), 6, "of the same shape");
        assert_ne!(a, hidden("/person/file/v=3/seg=7", 2), "another key, other names");
    }

    #[test]
    fn octets_that_are_no_packet_are_emptied() {
        let mut octets = *b"\xfd\x00person";
        hide(&mut octets, &[0; 16]);
        assert_eq!(octets, [0; 8]);
        // Cut off in the middle of a name.
        let mut wire = interest("/person/file");
        wire.truncate(12);
        hide(&mut wire, &[0; 16]);
        assert!(!wire.windows(4).any(|w| w == b"pers"));
        let _ = Interest::parse(&wire);
    }
}
