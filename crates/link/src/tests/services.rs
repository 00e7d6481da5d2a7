//! Fields between services of one chain: what one says the next one hears, and nobody else.

use super::*;
use onym_wire::lp::{LpHeader, LpPacket, SERVICE_NEXT_HOPS_MAX};
use std::num::NonZeroU64;

const ORIGIN: u64 = 1 << 63 | 5;

fn between() -> Link {
    Link::new(LinkConfig::stream().between_services())
}

fn hops(count: usize) -> Vec<u8> {
    vec![1; 2 + 16 * count]
}

fn said() -> LpOut {
    LpOut {
        incoming_face: NonZeroU64::new(ORIGIN),
        prefix_announcement: Some(Buf::copy_from(&hops(3))),
        ..LpOut::default()
    }
}

fn frame(header: LpHeader<'_>, body: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    header.write(&mut wire, body.len());
    wire.extend_from_slice(body);
    wire
}

#[test]
fn a_service_hears_origin_and_next_hops_and_nobody_else_does() {
    let interest = hex(INTEREST);
    let frames = sent(&mut between(), PacketKind::Interest, &interest, said());
    let heard = packet(receive(&mut between(), &frames[0]));
    assert_eq!(heard.lp.next_hop_face, NonZeroU64::new(ORIGIN));
    assert_eq!(heard.lp.prefix_announcement.as_deref(), Some(&hops(3)[..]));
    assert_eq!(&heard.bytes[..], interest);
    // Who is no service of the chain ignores them, and forges them in vain.
    for config in [LinkConfig::stream(), LinkConfig { local_fields: true, ..LinkConfig::stream() }]
    {
        let heard = packet(receive(&mut Link::new(config), &frames[0]));
        assert!(heard.lp.next_hop_face.is_none() && heard.lp.prefix_announcement.is_none());
    }
    // And none is told.
    let mut stranger = Link::new(LinkConfig::stream());
    assert_eq!(sent(&mut stranger, PacketKind::Interest, &interest, said()), [interest]);
}

#[test]
fn data_between_services_has_its_origin_and_its_announcement() {
    let announced = LpOut { prefix_announcement: Some(Buf::copy_from(&data(20, 2))), ..said() };
    let frames = sent(&mut between(), PacketKind::Data, &data(30, 1), announced);
    let heard = packet(receive(&mut between(), &frames[0]));
    assert_eq!(heard.lp.next_hop_face, NonZeroU64::new(ORIGIN));
    assert_eq!(heard.lp.prefix_announcement.as_deref(), Some(&data(20, 2)[..]));
}

/// Else an Interest that is nearly as long as may be would lose its next hops.
#[test]
fn a_packet_of_8800_octets_keeps_its_fields_between_services() {
    let longest = data(8800, 1);
    assert_eq!(longest.len(), 8800);
    let frames = sent(&mut between(), PacketKind::Data, &longest, said_of_data());
    assert_eq!(frames.len(), 2);
    let mut far = between();
    assert!(matches!(receive(&mut far, &frames[0]), Received::Held));
    let heard = packet(receive(&mut far, &frames[1]));
    assert_eq!((&heard.bytes[..], heard.lp.next_hop_face), (&longest[..], NonZeroU64::new(ORIGIN)));
}

fn said_of_data() -> LpOut {
    LpOut { prefix_announcement: None, ..said() }
}

#[test]
fn what_a_service_must_not_say_is_refused() {
    let (none, interest) = (LpHeader::default(), hex(INTEREST));
    let (good, long, cut) = (hops(1), hops(SERVICE_NEXT_HOPS_MAX + 1), &hops(2)[..20]);
    let told = |hops| LpHeader { service_next_hops: Some(hops), ..none };
    let data = data(30, 1);
    let cases: [(_, _, &[u8]); 7] = [
        (FrameVerdict::LpMalformed, told(&long[..]), &interest),
        (FrameVerdict::LpMalformed, told(cut), &interest),
        (FrameVerdict::LpMalformed, told(&good[..1]), &interest),
        (FrameVerdict::LpMalformed, LpHeader { service_origin: Some(0), ..none }, &data),
        (FrameVerdict::UnexpectedField, told(&good[..]), &data),
        (FrameVerdict::UnexpectedField, LpHeader { next_hop_face: Some(9), ..none }, &interest),
        (
            FrameVerdict::UnexpectedField,
            LpHeader { prefix_announcement: Some(&data), ..told(&good[..]) },
            &interest,
        ),
    ];
    for (verdict, header, body) in cases {
        assert_eq!(dropped(receive(&mut between(), &frame(header, body))), verdict, "{header:?}");
    }
    let most = hops(SERVICE_NEXT_HOPS_MAX);
    packet(receive(&mut between(), &frame(told(&most[..]), &interest)));
    // The octets are the same for who reads them with other eyes.
    assert!(LpPacket::parse(&frame(told(&long[..]), &interest)).is_ok());
}
