//! The dissector for Wireshark (packaging/wireshark) finds in a capture what this crate finds.
//!
//! Without tshark it says so and tests nothing.

#![allow(clippy::unwrap_used)]

use onym_dissect::{Dissector, Kind, Reader};
use onym_wire::lp::{LpHeader, NackReason, TraceContext};
use onym_wire::push::{Flags, FrameBuilder, Route, RouteBuf, Strategy};
use onym_wire::{InterestBuilder, Name};
use std::fs;
use std::path::Path;
use std::process::Command;

const FIELDS: [&str; 14] = [
    "name",
    "nonce",
    "hoplimit",
    "hint",
    "nack_reason",
    "pit_token",
    "sequence",
    "push.id",
    "push.strategy",
    "push.flags.keep",
    "push.flags.cached",
    "push.flags.age",
    "trace_id",
    "span_id",
];
/// The push frame is from a cache, and half of its lifetime is over.
const FLAGS: Flags = Flags(32 << 2 | 3);
/// The context of the Interest for `/traced`.
const TRACE: TraceContext = TraceContext { trace: 0xABCD, span: 0xEF };

fn interest(name: &str) -> Vec<u8> {
    let (name, hint): (Name, Name) = (name.parse().unwrap(), "/hint".parse().unwrap());
    let mut out = Vec::new();
    InterestBuilder {
        nonce: Some([1, 2, 3, 4]),
        hop_limit: Some(9),
        forwarding_hint: &[hint.as_ref()],
        ..InterestBuilder::new(name.as_ref())
    }
    .write(&mut out);
    out
}

fn linked(header: LpHeader<'_>, packet: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    header.write(&mut out, packet.len());
    [out, packet.to_vec()].concat()
}

fn push() -> Vec<u8> {
    let mut out = Vec::new();
    FrameBuilder {
        hop_limit: 7,
        strategy: Strategy::LINK_LOCAL,
        route: &RouteBuf::from(Route::Link),
        ids: &["/1/2".parse().unwrap()],
        options: &[],
        payload: b"hello",
    }
    .write(&mut out);
    FLAGS.put(&mut out);
    out
}

fn ethernet(proto: [u8; 2], payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1], &proto[..], payload].concat()
}

/// A datagram or a segment between port 50000 and port 6363.
fn ip(proto: u8, head: &[u8], payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(24 + head.len() + payload.len()).unwrap().to_be_bytes();
    let fixed = [0, 0, 0, 0, 64, proto, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0xC3, 0x50, 0x18, 0xDB];
    ethernet([8, 0], &[&[0x45, 0], &len[..], &fixed, head, payload].concat())
}

fn udp(payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(8 + payload.len()).unwrap().to_be_bytes();
    ip(17, &[len[0], len[1], 0, 0], payload)
}

fn tcp(sequence: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    ip(6, &[0, 0, 0, sequence, 0, 0, 0, 1, 0x50, flags, 255, 255, 0, 0, 0, 0], payload)
}

fn capture() -> Vec<u8> {
    let nack = LpHeader {
        nack: Some(NackReason::NO_ROUTE),
        pit_token: &[0xAA, 0xBB],
        ..LpHeader::default()
    };
    let piece = LpHeader { sequence: Some(5), fragment: Some((0, 2)), ..LpHeader::default() };
    let (context, other_form) = (TRACE.to_octets(), [1; TraceContext::LEN]);
    let traced = |octets| LpHeader { trace_context: Some(octets), ..LpHeader::default() };
    let mut padded = interest("/padded");
    padded.resize(46, 0);
    let stream = [interest("/x"), interest("/y")].concat();
    let frames = [
        ethernet([0x86, 0x24], &padded),
        udp(&interest("/a/b%20c")),
        udp(&linked(nack, &interest("/nobody"))),
        udp(&linked(piece, b"piece")),
        udp(&linked(traced(&context), &interest("/traced"))),
        udp(&linked(traced(&other_form), &interest("/other"))),
        udp(&linked(traced(&context[1..]), &interest("/shorter"))),
        ethernet([0x86, 0x24], &push()),
        tcp(0, 2, b""),
        tcp(1, 16, &stream[..9]),
        tcp(10, 16, &stream[9..]),
        udp(&[5, 200, 1]),
    ];
    let mut out = 0xA1B2_C3D4_u32.to_le_bytes().to_vec();
    out.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0, 1, 0, 0, 0]);
    for frame in frames {
        let len = u32::try_from(frame.len()).unwrap().to_le_bytes();
        out.extend([&[0; 8], &len[..], &len, &frame].concat());
    }
    out
}

/// What tshark prints for a frame: each field, and whether it is malformed.
fn wanted(capture: &[u8]) -> Vec<String> {
    let (mut reader, mut dissector) = (Reader::default(), Dissector::default());
    reader.feed(capture);
    let mut lines = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        let records = dissector.frame(&frame);
        let column = |of: &dyn Fn(&onym_dissect::Shown<'_>) -> Option<String>| {
            let all: Vec<_> = records.iter().filter_map(|record| of(&record.shown())).collect();
            all.join(",")
        };
        let is_pull = |shown: &onym_dissect::Shown<'_>| shown.kind != Kind::Push;
        let is_nack = |s: &onym_dissect::Shown<'_>| s.nack_reason.is_some().then(|| "150".into());
        let is_traced = |s: &onym_dissect::Shown<'_>| s.name.as_deref() == Some("/traced");
        let is_bad = |s: &onym_dissect::Shown<'_>| (s.kind == Kind::Malformed).then(|| "1".into());
        let columns = [
            column(&|s| s.name.clone()),
            column(&|s| s.nonce.as_ref().map(|nonce| format!("0x{nonce}"))),
            column(&|s| s.hop_limit.filter(|_| is_pull(s)).map(|hops| hops.to_string())),
            column(&|s| s.forwarding_hint.first().cloned()),
            column(&is_nack),
            column(&|s| s.pit_token.clone()),
            column(&|s| s.sequence.map(|n| n.to_string())),
            column(&|s| s.ids.first().cloned()),
            column(&|s| (s.kind == Kind::Push).then(|| Strategy::LINK_LOCAL.0.to_string())),
            column(&|s| (s.kind == Kind::Push).then(|| "1".into())),
            column(&|s| (s.kind == Kind::Push).then(|| "1".into())),
            column(&|s| s.age.map(|age| age.to_string())),
            column(&|s| is_traced(s).then(|| format!("{:032x}", TRACE.trace))),
            column(&|s| is_traced(s).then(|| format!("{:016x}", TRACE.span))),
            column(&is_bad),
        ];
        lines.push(columns.join("|"));
    }
    lines
}

#[test]
fn wireshark_shows_what_we_show() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("not tested: there is no tshark (Debian: apt-get install tshark)");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("capture.pcap");
    let capture = capture();
    fs::write(&file, &capture).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/wireshark/onym.lua");
    let mut command = Command::new("tshark");
    command.env("HOME", place.path()).arg("-r").arg(&file);
    command.arg("-X").arg(format!("lua_script:{}", script.display()));
    command.args(["-T", "fields", "-E", "separator=|"]);
    for field in FIELDS {
        command.args(["-e", &format!("ndn.{field}")]);
    }
    let output = command.args(["-e", "ndn.malformed"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("onym.lua"), "{said}");
    let found = String::from_utf8(output.stdout).unwrap();
    assert_eq!(found.lines().collect::<Vec<_>>(), wanted(&capture));
}
