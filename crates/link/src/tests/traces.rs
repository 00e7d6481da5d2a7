//! The context of a trace: taken from and sent to faces that share traces, and no others.

use super::*;
use onym_wire::lp::{LpHeader, LpPacket, TraceContext};

const CONTEXT: TraceContext = TraceContext { trace: 7, span: 9 };

fn sharing() -> Link {
    Link::new(LinkConfig { traces: true, ..LinkConfig::stream() })
}

fn traced() -> LpOut {
    let context = Some(Buf::copy_from(&CONTEXT.to_octets()));
    LpOut { pit_token: Token::from([1; 6]), prefix_announcement: context, ..LpOut::default() }
}

fn heard(link: &mut Link, frame: &[u8]) -> Option<TraceContext> {
    let lp = packet(receive(link, frame)).lp;
    assert_eq!(&*lp.pit_token, [1; 6]);
    lp.prefix_announcement.as_deref().map(|octets| TraceContext::parse(octets).unwrap())
}

/// Law: at a boundary the field is dropped in both directions, and the rest goes its way.
#[test]
fn a_context_crosses_only_where_both_ends_share_traces() {
    let interest = hex(INTEREST);
    let frames = sent(&mut sharing(), PacketKind::Interest, &interest, traced());
    assert_eq!(heard(&mut sharing(), &frames[0]), Some(CONTEXT));
    for config in [LinkConfig::stream(), LinkConfig { local_fields: true, ..LinkConfig::stream() }]
    {
        assert_eq!(heard(&mut Link::new(config.clone()), &frames[0]), None, "not taken");
        let frames = sent(&mut Link::new(config), PacketKind::Interest, &interest, traced());
        assert!(LpPacket::parse(&frames[0]).unwrap().trace_context.is_none(), "not sent");
    }
    let quiet = LinkConfig { traces: true, self_learning: false, ..LinkConfig::stream() };
    assert_eq!(heard(&mut Link::new(quiet), &frames[0]), Some(CONTEXT));
}

/// Law: a frame with token and context is what a header with both is, whatever the length of the packet,
/// and where it is not all that there is to tell.
#[test]
fn a_context_is_written_in_one_form() {
    let context = CONTEXT.to_octets();
    for (len, no_cache) in [1, 100, 211, 212, 213, 252, 253, 8000]
        .into_iter()
        .flat_map(|len| [(len, false), (len, true)])
    {
        let interest = vec![5; len];
        let lp = LpOut { no_cache, ..traced() };
        let frames = sent(&mut sharing(), PacketKind::Interest, &interest, lp);
        let trace_context = Some(&context[..]);
        let header =
            LpHeader { pit_token: &[1; 6], no_cache, trace_context, ..LpHeader::default() };
        let mut wire = Vec::new();
        header.write(&mut wire, len);
        wire.extend(interest);
        assert_eq!(frames, [wire], "{len} octets");
    }
}

/// Law: the first fragment has it, and it is whole with the packet.
#[test]
fn a_context_goes_with_an_interest_in_pieces() {
    let mut interest = hex(INTEREST);
    interest.splice(0..2, [5, 0xFD, 1, 0x0b]);
    interest.extend([0x24, 0xFD, 0, 252]);
    interest.resize(0x10b + 4, 0);
    let datagram = || Link::new(LinkConfig { traces: true, ..LinkConfig::datagram(200) });
    let frames = sent(&mut datagram(), PacketKind::Interest, &interest, traced());
    assert!(frames.len() > 1);
    let mut link = datagram();
    let mut last = None;
    for frame in &frames {
        last = Some(receive(&mut link, frame));
    }
    let whole = packet(last.unwrap());
    assert_eq!(&whole.bytes[..], interest);
    let context = whole.lp.prefix_announcement.as_deref().and_then(TraceContext::parse);
    assert_eq!(context, Some(CONTEXT));
}

/// Law: only Interests have one; beside other packets it is ignored, and none is refused for it.
#[test]
fn a_context_with_another_packet_is_ignored() {
    let octets = CONTEXT.to_octets();
    let announcement = data(20, 1);
    let none = LpHeader { trace_context: Some(&octets), ..LpHeader::default() };
    let nack = LpHeader { nack: Some(NackReason(50)), ..none };
    let announced = LpHeader { prefix_announcement: Some(&announcement), ..none };
    for (header, body) in [(none, data(30, 1)), (nack, hex(INTEREST)), (announced, data(30, 1))] {
        let mut wire = Vec::new();
        header.write(&mut wire, body.len());
        wire.extend_from_slice(&body);
        let lp = packet(receive(&mut sharing(), &wire)).lp;
        assert_eq!(lp.prefix_announcement.as_deref(), header.prefix_announcement);
    }
    // And it makes no Interest with an announcement a good one.
    let mut wire = Vec::new();
    announced.write(&mut wire, 13);
    wire.extend(hex(INTEREST));
    assert_eq!(dropped(receive(&mut sharing(), &wire)), FrameVerdict::UnexpectedField);
}
