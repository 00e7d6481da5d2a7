use super::*;
use proptest::prelude::*;
use std::num::NonZeroU64;

fn packet(pieces: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    tlv::put_tlv(&mut out, types::LP_PACKET, &pieces.concat());
    out
}

const SEQUENCE: &[u8] = &[81, 8, 0, 0, 0, 0, 0, 0, 0, 1];
const TOKEN: &[u8] = &[98, 1, 9];
const MARK: &[u8] = &[0xFD, 3, 0x40, 1, 1];
const ACK: &[u8] = &[0xFD, 3, 0x44, 8, 0, 0, 0, 0, 0, 0, 0, 2];
const FRAGMENT: &[u8] = &[80, 2, 5, 0];

#[test]
fn header_fields_ascend_and_the_fragment_is_last() {
    let unknown: &[u8] = &[0xFD, 3, 0x24, 0];
    for (pieces, expected) in [
        (vec![SEQUENCE, TOKEN, MARK, ACK, ACK, FRAGMENT], Ok(())),
        (vec![], Ok(())),
        (vec![TOKEN, SEQUENCE, FRAGMENT], Err(Malformed::OutOfOrder(81))),
        (vec![FRAGMENT, TOKEN], Err(Malformed::OutOfOrder(98))),
        (vec![FRAGMENT, FRAGMENT], Err(Malformed::OutOfOrder(80))),
        (vec![TOKEN, TOKEN], Err(Malformed::OutOfOrder(98))),
        (vec![ACK, MARK], Err(Malformed::OutOfOrder(832))),
        (vec![unknown, FRAGMENT], Ok(())),
        (vec![&[0xFD, 3, 0xBC, 0], FRAGMENT], Ok(())),
        (vec![&[0xFD, 3, 0xC0, 0], FRAGMENT], Err(Malformed::UnknownHeader(960))),
        (vec![&[0xFD, 3, 0x26, 0], FRAGMENT], Err(Malformed::UnknownHeader(806))),
        (vec![&[0xFD, 3, 0x21, 0], FRAGMENT], Err(Malformed::UnknownHeader(801))),
        (vec![&[96, 0], FRAGMENT], Err(Malformed::UnknownHeader(96))),
        (vec![&[80, 0]], Err(Malformed::Length(80))),
        (vec![&[81, 3, 0, 0, 0], FRAGMENT], Ok(())),
        (vec![&[98, 0]], Err(Malformed::Length(98))),
        (vec![&[98, 33], &[0; 33]], Err(Malformed::Length(98))),
        (vec![&[0xFD, 3, 0x34, 5, 0xFD, 3, 0x35, 1, 2]], Err(Malformed::Value(821))),
        (vec![&[0xFD, 3, 0x4C, 1, 0]], Err(Malformed::Length(844))),
        (vec![&[0xFD, 3, 0x50, 2, 5, 0]], Err(Malformed::Unexpected(5))),
        (vec![&[0xFD, 3, 0x44, 1, 0]], Err(Malformed::Length(836))),
    ] {
        assert_eq!(LpPacket::parse(&packet(&pieces)).map(drop), expected, "{pieces:?}");
    }
    assert_eq!(LpPacket::parse(&[7, 0]), Err(Malformed::Unexpected(7)));
}

#[test]
fn a_sequence_is_a_number_of_any_length_that_numbers_have() {
    let sequence = |octets: &[u8]| {
        let field = [&[81, u8::try_from(octets.len()).unwrap()], octets].concat();
        LpPacket::parse(&packet(&[&field, FRAGMENT])).unwrap().sequence
    };
    assert_eq!(sequence(&[0]), Some(0));
    assert_eq!(sequence(&[1, 2]), Some(0x102));
    assert_eq!(sequence(&[1, 2, 3, 4]), Some(0x0102_0304));
    assert_eq!(sequence(&[0, 0, 0, 0, 0, 0, 0, 9]), Some(9));
    assert_eq!((sequence(&[]), sequence(&[1, 2, 3])), (None, None));
}

#[test]
fn a_bare_packet_is_a_link_packet_without_fields() {
    let bare = [5, 2, 7, 0];
    let wrapped = packet(&[&[80, 4], &bare]);
    assert_eq!(LpPacket::parse(&bare), LpPacket::parse(&wrapped));
    assert!(LpPacket::parse(&bare).unwrap().is_bare());
    assert!(!LpPacket::parse(&packet(&[TOKEN, FRAGMENT])).unwrap().is_bare());
}

/// Law: what is not of the form that is known is as good as absent, and never refused.
#[test]
fn a_trace_context_of_another_form_is_ignored() {
    let context = TraceContext { trace: 5, span: 6 };
    let good = context.to_octets();
    let found = |value: &[u8]| {
        let mut field = Vec::new();
        tlv::put_tlv(&mut field, types::LP_TRACE_CONTEXT, value);
        let frame = packet(&[&field, FRAGMENT]);
        LpPacket::parse(&frame).unwrap().trace_context.and_then(TraceContext::parse)
    };
    assert_eq!(found(&good), Some(context));
    let changed = |at: usize, octet: u8| {
        let mut octets = good;
        octets[at] = octet;
        found(&octets)
    };
    assert_eq!(changed(25, 0xFF), Some(context), "flags that are not known");
    for (what, told) in [
        ("nothing", found(&[])),
        ("short", found(&good[..25])),
        ("long", found(&[&good[..], &[0]].concat())),
        ("another form", changed(0, 1)),
        ("not sampled", changed(25, 0)),
        ("no trace", changed(16, 0)),
        ("no span", changed(24, 0)),
    ] {
        assert_eq!(told, None, "{what}");
    }
}

#[test]
fn the_least_severe_nack_is_the_smallest_number_but_none() {
    let mut reasons =
        [NackReason::NONE, NackReason::NO_ROUTE, NackReason::CONGESTION, NackReason::DUPLICATE];
    reasons.sort();
    assert_eq!(reasons.map(|r| r.0), [50, 100, 150, 0]);
}

proptest! {
    #[test]
    fn a_header_written_is_read_back(
        sequence: Option<u64>, fragment: Option<(u64, u64)>,
        pit_token in proptest::collection::vec(any::<u8>(), 0..33),
        nack: Option<u64>, faces: (Option<u64>, Option<u64>), no_cache: bool,
        congestion_mark in prop_oneof![Just(0u64), any::<u64>()],
        acks in proptest::collection::vec(any::<u64>(), 0..5),
        tx_sequence: Option<u64>, non_discovery: bool, announced: bool,
        traced: Option<(u128, u64)>,
        body in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        let nack = nack.map(NackReason);
        let traced = traced.map(|(trace, span)| {
            TraceContext { trace: trace.max(1), span: span.max(1) }.to_octets()
        });
        let header = LpHeader {
            sequence, fragment, pit_token: &pit_token, nack,
            incoming_face: faces.0, next_hop_face: faces.1, no_cache, congestion_mark,
            acks: &acks, tx_sequence, non_discovery,
            prefix_announcement: announced.then_some(&[6, 1, 0]),
            service_origin: faces.0.and_then(NonZeroU64::new).map(NonZeroU64::get),
            service_next_hops: announced.then_some(&[3; 18]),
            trace_context: traced.as_ref().map(|octets| &octets[..]),
        };
        let mut out = Vec::new();
        header.write(&mut out, body.len());
        prop_assert_eq!(out.len(), header.encoded_len(body.len()));
        if header.is_empty() {
            prop_assert!(out.is_empty());
            return Ok(());
        }
        out.extend_from_slice(&body);
        let between = ServiceFields::parse(&out).unwrap();
        prop_assert_eq!(between.origin.map(NonZeroU64::get), header.service_origin);
        prop_assert_eq!(between.next_hops, header.service_next_hops);
        let packet = LpPacket::parse(&out).unwrap();
        prop_assert_eq!(packet.acks().collect::<Vec<_>>(), acks.clone());
        let expected = LpPacket {
            fragment: Some(&body[..]).filter(|b| !b.is_empty()),
            sequence,
            frag_index: fragment.map_or(0, |f| f.0),
            frag_count: fragment.map_or(1, |f| f.1),
            pit_token: Some(&pit_token[..]).filter(|t| !t.is_empty()),
            nack, incoming_face: faces.0, next_hop_face: faces.1, no_cache, congestion_mark,
            tx_sequence, non_discovery, prefix_announcement: header.prefix_announcement,
            trace_context: header.trace_context,
            acks: packet.acks,
        };
        prop_assert_eq!(packet, expected);
    }

    #[test]
    fn arbitrary_fields_never_panic_as_a_link_packet(
        fields in proptest::collection::vec(
            (prop_oneof![80u32..100, 800u32..850], proptest::collection::vec(any::<u8>(), 0..9)), 0..6),
        raw: Vec<u8>,
    ) {
        let mut value = Vec::new();
        fields.iter().for_each(|(typ, bytes)| tlv::put_tlv(&mut value, *typ, bytes));
        for wire in [packet(&[&value]), packet(&[&raw]), raw.clone()] {
            if let Ok(packet) = LpPacket::parse(&wire) {
                prop_assert!(packet.acks().count() <= fields.len());
            }
        }
    }
}
