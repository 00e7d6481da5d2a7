use super::*;
use crate::{LpOut, Outgoing, PacketKind, Payload, Transmit};
use onym_frame::RxFrame;
use onym_tables::FaceId;
use onym_tables::pit::Token;
use onym_wire::lp::NackReason;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

mod hostile;
mod path;
mod reliable;
mod services;
mod traces;

const FACE: FaceId = FaceId(300);
/// Interest /A of the vectors.
const INTEREST: &str = "050b07030801410a0401020304";

fn hex(text: &str) -> Vec<u8> {
    let octet = |i: usize| u8::from_str_radix(&text[i..i + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(octet).collect()
}

/// A Data element of exactly `len` octets whose content depends on `seed`; it is never parsed.
fn data(len: usize, seed: u8) -> Vec<u8> {
    let mut out = Vec::new();
    let head = if len < 255 { 2 } else { 4 };
    onym_wire::tlv::put_head(&mut out, 6, len - head);
    while out.len() < len {
        out.push((out.len() as u8).wrapping_mul(31).wrapping_add(seed));
    }
    assert_eq!(out.len(), len);
    out
}

fn transmit(kind: PacketKind, bytes: &[u8], lp: LpOut) -> Transmit {
    let bytes = Payload::Shared(Buf::copy_from(bytes));
    Transmit { face: FACE, what: Outgoing::Pull(kind, lp), bytes }
}

fn frames(queue: &mut TxQueue) -> Vec<Vec<u8>> {
    let frames = queue.iter().map(|(a, b)| [a, b].concat()).collect();
    queue.pop(usize::MAX);
    frames
}

/// Sends one packet; the frames that leave.
fn sent(link: &mut Link, kind: PacketKind, bytes: &[u8], lp: LpOut) -> Vec<Vec<u8>> {
    let mut queue = TxQueue::new(1 << 20);
    link.send(Tick::default(), &transmit(kind, bytes, lp), &[], &mut queue).unwrap();
    frames(&mut queue)
}

fn receive_at(link: &mut Link, now: Tick, endpoint: u64, bytes: &[u8]) -> Received {
    link.receive(now, FACE, RxFrame { endpoint, bytes: Buf::copy_from(bytes) })
}

fn receive(link: &mut Link, bytes: &[u8]) -> Received {
    receive_at(link, Tick::default(), 0, bytes)
}

fn packet(received: Received) -> Packet {
    match received {
        Received::Packet(packet) => packet,
        other => panic!("not a packet: {other:?}"),
    }
}

fn dropped(received: Received) -> FrameVerdict {
    match received {
        Received::Dropped(verdict) => verdict,
        other => panic!("not dropped: {other:?}"),
    }
}

fn token(bytes: &[u8]) -> Token {
    Token::try_from(bytes).unwrap()
}

#[test]
fn a_nack_is_the_interest_under_a_nack_field() {
    let wire = hex("6418fd032005fd03210196500d050b07030801410a0401020304");
    let mut link = Link::new(LinkConfig::stream());
    let nack = packet(receive(&mut link, &wire));
    assert_eq!((nack.lp.nack, &*nack.bytes), (Some(NackReason(150)), &*hex(INTEREST)));
    let lp = LpOut { nack: Some(NackReason(150)), ..LpOut::default() };
    assert_eq!(sent(&mut link, PacketKind::Nack, &hex(INTEREST), lp), [wire]);
}

#[test]
fn token_and_mark_go_with_the_packet_in_ascending_order() {
    let wire = hex("641e62080102030405060708fd03400101500d050b07030801410a0401020304");
    let mut link = Link::new(LinkConfig::stream());
    let interest = packet(receive(&mut link, &wire));
    assert_eq!(interest.lp.congestion_mark, 1);
    assert_eq!(interest.lp.pit_token[..], [1, 2, 3, 4, 5, 6, 7, 8]);
    let lp =
        LpOut { pit_token: interest.lp.pit_token.clone(), congestion_mark: 1, ..LpOut::default() };
    assert_eq!(sent(&mut link, PacketKind::Interest, &hex(INTEREST), lp), [wire]);
}

#[test]
fn a_packet_without_fields_is_bare_both_ways() {
    let mut link = Link::new(LinkConfig::datagram(1400));
    assert_eq!(
        sent(&mut link, PacketKind::Interest, &hex(INTEREST), LpOut::default()),
        [hex(INTEREST)]
    );
    let bare = packet(receive(&mut link, &hex(INTEREST)));
    assert_eq!((bare.face, &*bare.bytes), (FACE, &*hex(INTEREST)));
}

#[test]
fn changed_packets_leave_from_the_arena_with_their_fields() {
    let mut link = Link::new(LinkConfig::stream());
    let mut queue = TxQueue::new(1 << 16);
    let mut arena = vec![0xff; 3];
    arena.extend(hex(INTEREST));
    for pit_token in [token(&[]), token(&[1, 2, 3, 4, 5, 6, 7, 8])] {
        let lp = LpOut { pit_token, ..LpOut::default() };
        let what = Outgoing::Pull(PacketKind::Interest, lp);
        let item = Transmit { face: FACE, what, bytes: Payload::Arena(3..16) };
        link.send(Tick::default(), &item, &arena, &mut queue).unwrap();
    }
    let frames = frames(&mut queue);
    assert_eq!(frames[0], hex(INTEREST));
    assert_eq!(&*packet(receive(&mut link, &frames[1])).bytes, &*hex(INTEREST));
}

#[test]
fn fragments_of_the_vectors_reassemble_in_either_order() {
    let a = hex("6418510800000000000000105201005301025006050b07030801");
    let b = hex("6419510800000000000000115201015301025007410a0401020304");
    for (first, second) in [(&a, &b), (&b, &a)] {
        let mut link = Link::new(LinkConfig::datagram(1400));
        assert!(matches!(receive(&mut link, first), Received::Held));
        assert_eq!(&*packet(receive(&mut link, second)).bytes, &*hex(INTEREST));
    }
    let mut stream = Link::new(LinkConfig::stream());
    assert_eq!(dropped(receive(&mut stream, &a)), FrameVerdict::FragRefused);
}

#[test]
fn acknowledgements_without_a_packet_leave_after_five_milliseconds() {
    let idle = hex("640cfd0344080000000000000005");
    let mut link = Link::new(LinkConfig { reliability: true, ..LinkConfig::datagram(1400) });
    assert!(matches!(receive(&mut link, &idle), Received::Idle));
    let header = onym_wire::LpHeader {
        sequence: Some(9),
        tx_sequence: Some(5),
        ..onym_wire::LpHeader::default()
    };
    let mut wire = Vec::new();
    header.write(&mut wire, 13);
    wire.extend(hex(INTEREST));
    packet(receive(&mut link, &wire));
    assert_eq!(dropped(receive(&mut link, &wire)), FrameVerdict::DuplicateSequence);
    assert_eq!(link.poll_timeout(), Tick::from_ms(5));
    let mut queue = TxQueue::new(1 << 16);
    link.handle_timeout(Tick::from_ms(4), &mut queue);
    assert!(queue.is_empty());
    link.handle_timeout(Tick::from_ms(5), &mut queue);
    let ack = hex("fd0344080000000000000005");
    assert_eq!(frames(&mut queue), [[hex("6418"), ack.clone(), ack].concat()]);
    assert_eq!(link.poll_timeout(), Tick::NEVER);
}

#[test]
fn fields_that_may_not_go_with_a_packet_drop_it() {
    use onym_wire::LpHeader;
    let announcement = data(20, 1);
    let none = LpHeader::default();
    let cases: &[(&str, LpHeader<'_>, [bool; 3])] = &[
        // Allowed with Interest, Data, Nack.
        ("no field", LpHeader { congestion_mark: 1, ..none }, [true; 3]),
        ("token", LpHeader { pit_token: &[1], ..none }, [true; 3]),
        ("incoming face", LpHeader { incoming_face: Some(9), ..none }, [true; 3]),
        ("next hop", LpHeader { next_hop_face: Some(9), ..none }, [true, false, false]),
        ("no cache", LpHeader { no_cache: true, ..none }, [false, true, false]),
        ("non-discovery", LpHeader { non_discovery: true, ..none }, [true, false, false]),
        (
            "announcement",
            LpHeader { prefix_announcement: Some(&announcement), ..none },
            [false, true, false],
        ),
    ];
    let config = LinkConfig { local_fields: true, ..LinkConfig::stream() };
    let mut link = Link::new(config.clone());
    for (what, header, allowed) in cases {
        let kinds = [
            (hex(INTEREST), *header),
            (data(30, 1), *header),
            (hex(INTEREST), LpHeader { nack: Some(NackReason(50)), ..*header }),
        ];
        for ((bytes, header), allowed) in kinds.into_iter().zip(allowed) {
            let mut wire = Vec::new();
            header.write(&mut wire, bytes.len());
            wire.extend(&bytes);
            match receive(&mut link, &wire) {
                Received::Packet(p) => assert!(*allowed, "{what}: {p:?}"),
                Received::Dropped(FrameVerdict::UnexpectedField) => assert!(!allowed, "{what}"),
                other => panic!("{what}: {other:?}"),
            }
        }
    }
    let mut nacked_data = Vec::new();
    LpHeader { nack: Some(NackReason(50)), ..none }.write(&mut nacked_data, 30);
    nacked_data.extend(data(30, 1));
    assert_eq!(dropped(receive(&mut link, &nacked_data)), FrameVerdict::UnexpectedField);
    // Without local fields the next hop is refused and not followed.
    let mut wire = Vec::new();
    LpHeader { next_hop_face: Some(9), ..none }.write(&mut wire, 13);
    wire.extend(hex(INTEREST));
    assert_eq!(packet(receive(&mut link, &wire)).lp.next_hop_face, FaceId(9).told());
    link.configure(LinkConfig { local_fields: false, ..config });
    assert_eq!(dropped(receive(&mut link, &wire)), FrameVerdict::UnexpectedField);
}

#[test]
fn the_incoming_face_is_told_only_where_local_fields_are_on() {
    let lp = || LpOut { incoming_face: FaceId(262).told(), ..LpOut::default() };
    let mut link = Link::new(LinkConfig::stream());
    assert_eq!(sent(&mut link, PacketKind::Data, &data(30, 1), lp()), [data(30, 1)]);
    link.configure(LinkConfig { local_fields: true, ..LinkConfig::stream() });
    let frames = sent(&mut link, PacketKind::Data, &data(30, 1), lp());
    let told = onym_wire::LpPacket::parse(&frames[0]).unwrap();
    assert_eq!(told.incoming_face, Some(262));
}

#[test]
fn frames_that_are_no_packets_have_their_verdicts() {
    let mut link = Link::new(LinkConfig::datagram(1400));
    for (wire, verdict) in [
        ("", FrameVerdict::LpMalformed),
        ("f00141", FrameVerdict::LpMalformed),
        // An Interest within an LpPacket within an LpPacket.
        ("6406500464025001", FrameVerdict::LpMalformed),
        ("6400", FrameVerdict::LpEmpty),
        // Fragment before a field.
        ("640850010562034142ff", FrameVerdict::LpMalformed),
        // Unknown field 85, which may not be ignored.
        ("640955014150040502410a", FrameVerdict::LpUnknownCritical),
        // FragIndex 2 of 2, and a fragment without Sequence.
        ("6413510800000000000000105201025301025001 05", FrameVerdict::FragInvalid),
        ("6409520100530102500105", FrameVerdict::FragInvalid),
    ] {
        let wire = hex(&wire.replace(' ', ""));
        assert_eq!(dropped(receive(&mut link, &wire)), verdict, "{wire:02x?}");
    }
    let counters = link.counters();
    assert_eq!(counters.verdicts.iter().sum::<u64>(), 8);
    assert_eq!(counters.of(FrameVerdict::LpMalformed), 4);
}

#[test]
fn frames_of_the_push_half_are_packets_for_who_takes_them() {
    let mut link = Link::new(LinkConfig { push: true, ..LinkConfig::datagram(1400) });
    for (wire, inner) in [("f00141", "f00141"), ("f20141", "f20141"), ("64055003f00141", "f00141")]
    {
        assert_eq!(packet(receive(&mut link, &hex(wire))).bytes.as_ref(), hex(inner));
    }
    // Messages of applications stay on their machine, bare.
    assert_eq!(dropped(receive(&mut link, &hex("64055003f20141"))), FrameVerdict::LpMalformed);
}

#[test]
fn on_a_stream_a_packet_of_8800_octets_leaves_without_its_fields() {
    let mut link = Link::new(LinkConfig::stream());
    let lp = || LpOut { pit_token: token(&[1, 2]), ..LpOut::default() };
    let full = data(8800, 1);
    assert_eq!(sent(&mut link, PacketKind::Data, &full, lp()), [full]);
    assert_eq!(link.counters().bare, 1);
    let fits = sent(&mut link, PacketKind::Data, &data(8788, 1), lp());
    assert_eq!(fits[0].len(), 8800);
    assert_eq!(link.counters().bare, 1);
    let mut queue = TxQueue::new(1 << 16);
    let nack =
        transmit(PacketKind::Nack, &data(8790, 1), LpOut { nack: Some(NackReason(50)), ..lp() });
    let unsent = link.send(Tick::default(), &nack, &[], &mut queue);
    assert_eq!(unsent, Err(LinkUnsent::OverMtu));
    let long = transmit(PacketKind::Data, &data(8801, 1), LpOut::default());
    let unsent = link.send(Tick::default(), &long, &[], &mut queue);
    assert_eq!(unsent, Err(LinkUnsent::OverMtu));
    assert!(queue.is_empty());
    assert_eq!(link.counters().over_mtu, 2);
}

#[test]
fn a_packet_enters_the_queue_whole_or_not_at_all() {
    let mut link = Link::new(LinkConfig::datagram(500));
    let mut queue = TxQueue::new(4000);
    let item = transmit(PacketKind::Data, &data(3000, 1), LpOut::default());
    link.send(Tick::default(), &item, &[], &mut queue).unwrap();
    let before = queue.len();
    assert!(before > 6);
    let unsent = link.send(Tick::default(), &item, &[], &mut queue);
    assert_eq!(unsent, Err(LinkUnsent::QueueFull));
    assert_eq!((queue.len(), link.counters().queue_full), (before, 1));
}

#[test]
fn a_queue_that_stays_long_marks_a_packet() {
    let congestion_marking =
        Some(CongestionConfig { base_interval: Duration::from_millis(100), threshold: 1000 });
    let mut link = Link::new(LinkConfig { congestion_marking, ..LinkConfig::stream() });
    let mut queue = TxQueue::new(1 << 16);
    let item = transmit(PacketKind::Data, &data(100, 1), LpOut::default());
    link.set_socket_queue(1001);
    for ms in [0, 99, 100] {
        link.send(Tick::from_ms(ms), &item, &[], &mut queue).unwrap();
    }
    let frames = frames(&mut queue);
    assert_eq!(frames[..2], [data(100, 1), data(100, 1)]);
    assert_eq!(onym_wire::LpPacket::parse(&frames[2]).unwrap().congestion_mark, 1);
    assert_eq!(link.counters().congestion_marked, 1);
}

#[test]
fn an_incomplete_packet_is_dropped_half_a_second_after_its_last_fragment() {
    let mut tx = Link::new(LinkConfig::datagram(500));
    let pieces = sent(&mut tx, PacketKind::Data, &data(1300, 1), LpOut::default());
    assert_eq!(pieces.len(), 3);
    let mut link = Link::new(LinkConfig::datagram(500));
    let mut queue = TxQueue::new(1 << 16);
    receive_at(&mut link, Tick::from_ms(0), 0, &pieces[0]);
    receive_at(&mut link, Tick::from_ms(300), 0, &pieces[2]);
    // A repeated fragment does not restart the timer.
    let again = receive_at(&mut link, Tick::from_ms(700), 0, &pieces[2]);
    assert_eq!(dropped(again), FrameVerdict::DuplicateSequence);
    link.handle_timeout(Tick::from_ms(799), &mut queue);
    assert_eq!(link.counters().frag_timeout, 0);
    assert_eq!(link.poll_timeout(), Tick::from_ms(800));
    link.handle_timeout(Tick::from_ms(800), &mut queue);
    assert_eq!((link.counters().frag_timeout, link.poll_timeout()), (2, Tick::NEVER));
    let late = receive_at(&mut link, Tick::from_ms(801), 0, &pieces[1]);
    assert!(matches!(late, Received::Held));
}

proptest! {
    #[test]
    fn what_is_cut_and_arrives_in_any_order_and_number_is_what_was_sent(
        len in 20_usize..8800,
        mtu in 100_usize..2000,
        with_token in any::<bool>(),
        order in proptest::collection::vec(any::<u64>(), 200),
        lost in proptest::option::of(0_usize..200),
        repeat in 0_usize..4,
    ) {
        let mut tx = Link::new(LinkConfig { first_sequence: u64::MAX - 1, ..LinkConfig::datagram(mtu) });
        let mut rx = Link::new(LinkConfig::datagram(mtu));
        let lp = LpOut {
            pit_token: if with_token { token(&[7; 8]) } else { token(&[]) },
            ..LpOut::default()
        };
        let whole = data(len, 3);
        let frames = sent(&mut tx, PacketKind::Data, &whole, lp);
        for frame in &frames {
            prop_assert!(frame.len() <= mtu);
        }
        let mut arrivals: Vec<(u64, usize)> = (0..frames.len()).map(|i| (order[i % 200], i)).collect();
        for extra in 0..repeat {
            arrivals.push((order[100 + extra], extra % frames.len()));
        }
        arrivals.retain(|(_, i)| Some(*i) != lost);
        arrivals.sort_unstable();
        let mut got = Vec::new();
        for (_, i) in arrivals {
            if let Received::Packet(p) = receive(&mut rx, &frames[i]) {
                got.push(p);
            }
        }
        if lost.is_some_and(|lost| lost < frames.len()) {
            prop_assert!(got.is_empty());
        } else {
            prop_assert!(!got.is_empty());
            prop_assert_eq!(&*got[0].bytes, &*whole);
            prop_assert_eq!(got[0].lp.pit_token.len(), if with_token { 8 } else { 0 });
        }
    }
}

#[test]
fn a_token_alone_goes_and_comes_as_the_general_way_has_it() {
    use onym_wire::lp::{LpHeader, LpPacket, token_and_packet};
    for token_len in 1..=32 {
        let octets: Vec<u8> = (0..token_len).collect();
        for len in [10, 200, 215, 247, 252, 260, 300, 1025, 8000] {
            let (body, lp) =
                (data(len, 3), LpOut { pit_token: token(&octets), ..LpOut::default() });
            let mut wire = Vec::new();
            LpHeader { pit_token: &octets, ..LpHeader::default() }.write(&mut wire, len);
            wire.extend_from_slice(&body);
            let mut link = Link::new(LinkConfig::stream());
            assert_eq!(sent(&mut link, PacketKind::Data, &body, lp.clone()), [wire.clone()]);
            // The same from the arena.
            let item = Transmit {
                bytes: Payload::Arena(0..u32::try_from(len).unwrap()),
                ..transmit(PacketKind::Data, &[], lp)
            };
            let mut queue = TxQueue::new(1 << 20);
            link.send(Tick::default(), &item, &body, &mut queue).unwrap();
            assert_eq!(frames(&mut queue), [wire.clone()]);
            let general = LpPacket::parse(&wire).unwrap();
            let (found, inside) = token_and_packet(&wire).expect("nothing else is in it");
            assert_eq!((general.pit_token, general.fragment), (Some(found), Some(inside)));
            let packet = packet(receive(&mut link, &wire));
            assert_eq!((&*packet.lp.pit_token, &*packet.bytes), (&*octets, &*body));
        }
    }
}

#[test]
fn the_short_way_takes_nothing_that_the_general_one_refuses() {
    use onym_wire::lp::{LpPacket, token_and_packet};
    let whole = hex("640f6203aabbcc50080606070308014140");
    let mut taken = 0;
    for at in 0..whole.len() {
        for octet in 0..=255 {
            let mut wire = whole.clone();
            wire[at] = octet;
            if let Some((token, inside)) = token_and_packet(&wire) {
                let general = LpPacket::parse(&wire).expect("well-formed");
                assert_eq!((general.pit_token, general.fragment), (Some(token), Some(inside)));
                taken += 1;
            }
        }
        assert!(token_and_packet(&whole[..at]).is_none());
    }
    assert!(taken > 256, "{taken}");
}
