use super::*;
use crate::push::{Flags, FrameBuilder, Route, RouteBuf, Strategy};
use proptest::prelude::*;

/// NACK NoRoute of Interest /A, as in the vectors of spec/vectors.
const NACK: &[u8] = &[
    0x64, 0x18, 0xfd, 0x03, 0x20, 0x05, 0xfd, 0x03, 0x21, 0x01, 0x96, 0x50, 0x0d, 0x05, 0x0b, 0x07,
    0x03, 0x08, 0x01, 0x41, 0x0a, 0x04, 0x01, 0x02, 0x03, 0x04,
];

#[test]
fn a_tree_shows_every_element_with_its_name_and_number() {
    assert_eq!(
        Tree(NACK).to_string(),
        "LpPacket (100), 24 octets\n\
         \x20 Nack (800), 5 octets\n\
         \x20   NackReason (801), 1 octets: 150\n\
         \x20 Fragment (80), 13 octets\n\
         \x20   Interest (5), 11 octets\n\
         \x20     Name (7), 3 octets: /A\n\
         \x20     Nonce (10), 4 octets: 01020304\n"
    );
}

#[test]
fn a_line_says_what_a_frame_is() {
    assert_eq!(Line(NACK).to_string(), "Nack NoRoute Interest /A nonce=01020304");
    assert_eq!(Line(&[0x64, 0]).to_string(), "Idle");
    assert!(Line(&[7, 0]).to_string().starts_with("malformed (unexpected element of type 7)"));
}

#[test]
fn a_line_says_what_a_push_frame_is() {
    let mut frame = Vec::new();
    FrameBuilder {
        hop_limit: 7,
        strategy: Strategy::LINK_LOCAL,
        route: &RouteBuf::from(Route::Link),
        ids: &["/1/2".parse().unwrap()],
        options: &[],
        payload: b"hello",
    }
    .write(&mut frame);
    let line = "Push /0001/0002 strategy=link-local hops=7 to=neighbour payload=5 octets";
    assert_eq!(Line(&frame).to_string(), line);
    assert!(Tree(&frame).to_string().contains(line));
    // What a cache answers with, of which half its lifetime is over.
    let [lifetime, left] = [2000, 1000].map(std::time::Duration::from_millis);
    Flags::aged(lifetime, left).unwrap().put(&mut frame);
    let line = line.replace(" payload", " keep from-cache age=32/64 payload");
    assert_eq!(Line(&frame).to_string(), line);
    assert!(Line(&frame[..5]).to_string().starts_with("malformed Push"));
}

#[test]
fn parameters_are_shown_as_pairs() {
    let parameters = ControlParameters {
        name: Some("/a".parse().unwrap()),
        cost: Some(7),
        uri: Some("fd://3".into()),
        strategy: Some("/s".parse().unwrap()),
        ..Default::default()
    };
    assert_eq!(parameters.to_string(), "Name=/a Uri=fd://3 Cost=7 Strategy=/s");
}

#[test]
fn deep_nesting_is_cut_off() {
    let mut bytes = vec![5, 2, 7, 0];
    for _ in 0..1000 {
        let mut outer = Vec::new();
        crate::tlv::put_tlv(&mut outer, types::DELEGATION, &bytes);
        bytes = outer;
    }
    assert!(Tree(&bytes).to_string().lines().count() <= DEPTH_MAX + 1);
}

proptest! {
    #[test]
    fn any_bytes_can_be_shown(bytes: Vec<u8>, at: usize, octet: u8) {
        let mut broken = NACK.to_vec();
        broken[at % NACK.len()] = octet;
        for bytes in [bytes, broken] {
            prop_assert!(!Line(&bytes).to_string().is_empty());
            prop_assert!(bytes.is_empty() || !Tree(&bytes).to_string().is_empty());
        }
    }
}
