//! Captures made here, octet by octet, as tools of others write them.

use crate::*;
use onym_wire::lp::LpHeader;
use onym_wire::{InterestBuilder, Name};

/// Interest `name` with Nonce 01020304.
fn interest(name: &str) -> Vec<u8> {
    let name: Name = name.parse().unwrap();
    let mut out = Vec::new();
    InterestBuilder { nonce: Some([1, 2, 3, 4]), ..InterestBuilder::new(name.as_ref()) }
        .write(&mut out);
    out
}

fn ipv4(proto: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x45, 0];
    out.extend(u16::try_from(20 + payload.len()).unwrap().to_be_bytes());
    out.extend([0, 0, 0, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    out.extend(payload);
    out
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x18, 0xDB, 0x18, 0xDB]; // 6363, 6363
    out.extend(u16::try_from(8 + payload.len()).unwrap().to_be_bytes());
    out.extend([0, 0]);
    out.extend(payload);
    ipv4(17, &out)
}

fn tcp(port: u16, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = 50_000_u16.to_be_bytes().to_vec();
    out.extend(port.to_be_bytes());
    out.extend(sequence.to_be_bytes());
    out.extend([0, 0, 0, 0, 0x50, flags, 0xFF, 0xFF, 0, 0, 0, 0]);
    out.extend(payload);
    ipv4(6, &out)
}

fn ethernet(proto: u16, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    out.extend(proto.to_be_bytes());
    out.extend(payload);
    out
}

/// A pcap file of one link type; a second between frames.
fn pcap(link_type: u32, frames: &[Vec<u8>], is_big: bool) -> Vec<u8> {
    let word = |n: u32| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
    let half = |n: u16| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
    let mut out = word(0xA1B2_C3D4).to_vec();
    out.extend([half(2), half(4)].concat());
    [0, 0, 65_535, link_type].iter().for_each(|n| out.extend(word(*n)));
    for (second, frame) in (1..).zip(frames) {
        let len = u32::try_from(frame.len()).unwrap();
        [second, 5, len, len].iter().for_each(|n| out.extend(word(*n)));
        out.extend(frame);
    }
    out
}

fn block(typ: u32, body: &[u8]) -> Vec<u8> {
    let mut body = body.to_vec();
    body.resize(body.len().next_multiple_of(4), 0);
    let len = u32::try_from(12 + body.len()).unwrap().to_le_bytes();
    [&typ.to_le_bytes()[..], &len, &body, &len].concat()
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let len = u16::try_from(value.len()).unwrap().to_le_bytes();
    let mut out = [&code.to_le_bytes()[..], &len, value].concat();
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// A section with one interface of this link type and name, times in nanoseconds.
fn pcapng(link_type: u16, name: &str) -> Vec<u8> {
    let mut section = 0x1A2B_3C4D_u32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend(u64::MAX.to_le_bytes());
    let options = [option(2, name.as_bytes()), option(9, &[9]), option(0, &[])].concat();
    let interface =
        [&link_type.to_le_bytes()[..], &[0, 0], &0_u32.to_le_bytes(), &options].concat();
    [block(0x0A0D_0D0A, &section), block(1, &interface)].concat()
}

fn enhanced(interface: u32, ns: u64, frame: &[u8], options: &[Vec<u8>]) -> Vec<u8> {
    let len = u32::try_from(frame.len()).unwrap().to_le_bytes();
    let high = u32::try_from(ns >> 32).unwrap().to_le_bytes();
    let low = u32::try_from(ns & 0xFFFF_FFFF).unwrap().to_le_bytes();
    let mut body = [&interface.to_le_bytes()[..], &high, &low, &len, &len, frame].concat();
    body.resize(body.len().next_multiple_of(4), 0);
    options.iter().for_each(|o| body.extend(o));
    block(6, &body)
}

/// The lines of a capture that is fed in pieces of `step` octets.
fn lines_by(capture: &[u8], step: usize) -> Result<(Vec<Record>, Passed), CaptureError> {
    let (mut reader, mut dissector) = (Reader::default(), Dissector::default());
    let mut records = Vec::new();
    for piece in capture.chunks(step) {
        reader.feed(piece);
        while let Some(frame) = reader.next_frame()? {
            records.extend(dissector.frame(&frame));
        }
    }
    reader.end()?;
    Ok((records, dissector.passed()))
}

fn lines(capture: &[u8]) -> Vec<String> {
    let whole = lines_by(capture, capture.len()).unwrap();
    assert_eq!(lines_by(capture, 1).unwrap(), whole, "in pieces");
    whole.0.iter().map(ToString::to_string).collect()
}

#[test]
fn pcap_of_both_orders_shows_time_ends_and_packet() {
    for is_big in [false, true] {
        let capture = pcap(1, &[ethernet(0x0800, &udp(&interest("/a/b")))], is_big);
        assert_eq!(
            lines(&capture),
            ["1.000005000 udp 10.0.0.1:6363 > 10.0.0.2:6363 Interest /a/b nonce=01020304"]
        );
    }
}

#[test]
fn pcapng_shows_interface_direction_and_comment() {
    let mut capture = pcapng(1, "face 263");
    let mut padded = interest("/a");
    padded.resize(46, 0);
    let options = [option(1, b"cs_hit"), option(2, &[2, 0, 0, 0]), option(0, &[])];
    capture.extend(enhanced(0, 7_000_000_009, &ethernet(0x8624, &padded), &options));
    assert_eq!(
        lines(&capture),
        ["7.000000009 face 263 out ethernet 02:00:00:00:00:01 > 02:00:00:00:00:02 \
          Interest /a nonce=01020304 # cs_hit"]
    );
}

#[test]
fn cooked_captures_tell_the_direction() {
    let mut frame = vec![0, 4, 0xFF, 0xFE];
    frame.extend([0; 10]);
    frame.extend([0x86, 0x24]);
    frame.extend(interest("/a"));
    assert_eq!(
        lines(&pcap(113, &[frame], false)),
        ["1.000005000 out ethernet Interest /a nonce=01020304"]
    );
}

#[test]
fn tcp_is_put_in_order_whatever_comes_twice_or_late() {
    let packets = [interest("/a"), interest("/b"), interest("/c")].concat();
    let (one, rest) = packets.split_at(5);
    let (two, three) = rest.split_at(9);
    let at = |n: usize| u32::MAX - 3 + u32::try_from(n).unwrap();
    let wrapping = |n: usize| at(0).wrapping_add(u32::try_from(n).unwrap());
    let frames = [
        tcp(6363, at(0).wrapping_sub(1), 2, &[]),
        tcp(6363, wrapping(14), 16, three),
        tcp(6363, wrapping(0), 16, one),
        tcp(6363, wrapping(0), 16, one),
        tcp(6363, wrapping(3), 16, &[&packets[3..5], two].concat()),
    ];
    let lines = lines(&pcap(101, &frames, false));
    let names: Vec<_> = lines.iter().map(|l| l.rsplit("Interest ").next().unwrap()).collect();
    assert_eq!(names, ["/a nonce=01020304", "/b nonce=01020304", "/c nonce=01020304"]);
}

#[test]
fn a_stream_without_its_beginning_is_followed_from_a_packet_on() {
    let frames = [tcp(6363, 900, 16, b"middle"), tcp(6363, 2000, 16, &interest("/a"))];
    let (records, passed) = lines_by(&pcap(101, &frames, false), 1000).unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(passed, Passed { others: 0, lost: 0 });
    // What begins like no packet ends the stream, and the next packet begins it again.
    let frames =
        [tcp(6363, 0, 2, &[]), tcp(6363, 1, 16, &[0, 0, 0, 0]), tcp(6363, 5, 16, &interest("/b"))];
    let (records, passed) = lines_by(&pcap(101, &frames, false), 1000).unwrap();
    assert_eq!((records.len(), passed.lost), (1, 1));
}

#[test]
fn websocket_messages_are_unmasked_and_put_together() {
    let packet = interest("/a/b/c");
    let mask = [9, 8, 7, 6];
    let frame = |first: u8, part: &[u8]| {
        let mut out = vec![first, 0x80 | u8::try_from(part.len()).unwrap()];
        out.extend(mask);
        out.extend(part.iter().zip(mask.iter().cycle()).map(|(o, m)| o ^ m));
        out
    };
    let mut stream = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_vec();
    stream.extend(frame(2, &packet[..4]));
    stream.extend(frame(0x89, b"ping"));
    stream.extend(frame(0x80, &packet[4..]));
    let (first, second) = stream.split_at(40);
    let frames = [tcp(9696, 9, 2, &[]), tcp(9696, 10, 16, first), tcp(9696, 50, 16, second)];
    let lines = lines(&pcap(228, &frames, true));
    assert_eq!(lines.len(), 1);
    assert!(
        lines[0].contains("websocket 10.0.0.1:50000 > 10.0.0.2:9696 Interest /a/b/c"),
        "{lines:?}"
    );
}

#[test]
fn fragments_are_put_together_and_the_last_one_shows_the_packet() {
    let packet = interest("/long/name/of/a/packet");
    let fragments = packet.chunks(9).count() as u64;
    let mut frames: Vec<_> = (0..)
        .zip(packet.chunks(9))
        .map(|(index, part)| {
            let mut frame = Vec::new();
            let fragment = Some((index, fragments));
            LpHeader { sequence: Some(70 + index), fragment, ..LpHeader::default() }
                .write(&mut frame, part.len());
            frame.extend(part);
            udp(&frame)
        })
        .collect();
    frames.reverse();
    let (records, _) = lines_by(&pcap(101, &frames, false), 64).unwrap();
    assert_eq!(records.len() as u64, fragments);
    let kinds: Vec<_> = records.iter().map(|r| r.shown().kind).collect();
    assert_eq!(kinds[0], Kind::Fragment);
    assert_eq!(*kinds.last().unwrap(), Kind::Interest);
    let last = records.last().unwrap();
    assert!(last.to_string().ends_with("whole: Interest /long/name/of/a/packet nonce=01020304"));
    assert!(last.is_under("/long/name".parse::<Name>().unwrap().as_ref()));
    assert!(!last.is_under("/other".parse::<Name>().unwrap().as_ref()));
}

#[test]
fn json_has_what_is_there_and_nothing_else() {
    let record = &octets(&interest("/a"))[0];
    let json = serde_json::to_value(record.shown()).unwrap();
    let wanted = serde_json::json!({
        "carrier": "bare", "length": 13, "kind": "interest", "name": "/a", "nonce": "01020304",
    });
    assert_eq!(json, wanted);
}

#[test]
fn octets_are_shown_as_far_as_they_go() {
    let mut two = [interest("/a"), interest("/b")].concat();
    two.extend([6, 200, 7]);
    let records = octets(&two);
    let kinds: Vec<_> = records.iter().map(|r| r.shown().kind).collect();
    assert_eq!(kinds, [Kind::Interest, Kind::Interest, Kind::Malformed]);
    assert!(records[2].shown().error.is_some());
}

#[test]
fn what_is_no_capture_or_ends_early_is_said() {
    assert_eq!(lines_by(&[7; 40], 40), Err(CaptureError::Unknown));
    assert_eq!(lines_by(&[0xA1, 0xB2], 2), Err(CaptureError::Unknown));
    let capture = pcap(101, &[udp(&interest("/a"))], false);
    assert_eq!(lines_by(&capture[..capture.len() - 1], 7), Err(CaptureError::Cut(24)));
    let mut long = pcap(101, &[], false);
    long.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0x7F, 0, 0, 0, 0]);
    assert_eq!(lines_by(&long, 9), Err(CaptureError::TooLong(24)));
    let mut damaged = pcapng(1, "x");
    let at = damaged.len() as u64;
    damaged.extend(enhanced(5, 0, &[], &[]));
    assert_eq!(lines_by(&damaged, 1000), Err(CaptureError::Damaged(at)), "no such interface");
}

#[test]
fn other_protocols_are_counted_and_passed() {
    let frames = [ethernet(0x0806, &[0; 28]), ethernet(0x0800, &ipv4(1, &[0; 8])), vec![1, 2, 3]];
    let (records, passed) = lines_by(&pcap(1, &frames, false), 50).unwrap();
    assert_eq!((records.len(), passed), (0, Passed { others: 3, lost: 0 }));
}

#[test]
fn streams_and_fragments_stay_within_their_bounds() {
    let mut dissector = Dissector::default();
    for n in 0..5000_u32 {
        let mut frame = tcp(6363, 1, 2, &[]);
        frame[12..16].copy_from_slice(&n.to_be_bytes());
        let first = Captured { link_type: 101, octets: frame, ..Captured::default() };
        assert!(dissector.frame(&first).is_empty());
        let mut link = Vec::new();
        LpHeader {
            sequence: Some(u64::from(n) * 7),
            fragment: Some((0, 2)),
            ..LpHeader::default()
        }
        .write(&mut link, 1);
        link.push(5);
        let second = Captured { link_type: 147, octets: link, ..Captured::default() };
        assert_eq!(dissector.frame(&second).len(), 1);
    }
    assert!(dissector.sizes() <= [1024, 257], "{:?}", dissector.sizes());
    // Segments that came early, of a stream that began.
    let octets = tcp(6363, 1, 2, &[]);
    let _ = dissector.frame(&Captured { link_type: 101, octets, ..Captured::default() });
    for n in 0..1000_u32 {
        let octets = tcp(6363, 10 + 1000 * n, 16, &[0; 900]);
        let _ = dissector.frame(&Captured { link_type: 101, octets, ..Captured::default() });
    }
    assert!(dissector.passed().lost > 0);
}
