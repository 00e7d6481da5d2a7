//! `onym dissect` as it is typed.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::process::Stdio;
use support::{Ended, Place};

/// An Interest that says it is longer than it is.
const CUT: &str = "050d07030801410a0401020304";
const VIDEO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/sim/examples/video.toml");

#[test]
fn octets_are_taken_from_words_files_and_pipes() {
    let place = Place::new();
    let line = "Interest /A nonce=01020304\n";
    let words = place.run(&["dissect", "--hex", "05 05 07 03 08", "0141"]);
    assert_eq!((words.code, words.out.as_str()), (0, "Interest /A\n"), "{}", words.err);
    let octets = [5, 11, 7, 3, 8, 1, b'A', 10, 4, 1, 2, 3, 4];
    fs::write(place.path("packet"), octets).unwrap();
    fs::write(place.path("text"), "050b 0703 080141\n0a04 01020304\n").unwrap();
    for file in ["packet", "text"] {
        let ended = place.run(&["dissect", file]);
        assert_eq!((ended.code, ended.out.as_str()), (0, line), "{file}: {}", ended.err);
    }
    let mut command = place.command(&["dissect", "-v"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&octets).unwrap();
    let ended = Ended::of(child.wait_with_output().unwrap());
    assert!(
        ended.out.starts_with(line) && ended.out.contains("    Name (7), 3 octets: /A\n"),
        "{}",
        ended.out
    );
}

#[test]
fn what_is_malformed_is_shown_and_what_is_no_octets_is_refused() {
    let place = Place::new();
    let ended = place.run(&["dissect", "--hex", CUT]);
    assert_eq!(ended.code, 0);
    assert!(ended.out.starts_with("malformed"), "{}", ended.out);
    let ended = place.run(&["dissect", "--hex", "05x0"]);
    assert_eq!(ended.code, 2, "{}", ended.err);
    let ended = place.run(&["dissect", "nowhere"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
}

/// Captures of a simulated link, as text, as JSON, filtered, and cut.
#[test]
fn a_capture_is_shown_packet_by_packet() {
    let place = Place::new();
    let recorded = ["--record", ".", "--capture", "edge:core", "--snaplen", "9000"];
    let run = place.run(&[&["sim", VIDEO][..], &recorded].concat());
    assert_eq!(run.code, 0, "{}", run.err);
    let file = "edge-core.pcap";
    let text = place.run(&["dissect", file]);
    assert_eq!(text.code, 0, "{}", text.err);
    let json = place.run(&["dissect", file, "--json"]);
    let rows: Vec<Value> = json.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(rows.len(), text.out.lines().count());
    let count = |kind: &str| rows.iter().filter(|row| row["kind"] == kind).count();
    assert!(count("interest") > 0 && count("data") > 0, "{}", text.out);
    assert_eq!(count("malformed"), 0);
    let name = rows[0]["name"].as_str().unwrap();
    let of_name = rows.iter().filter(|r| r["name"] == name && r["kind"] == "interest").count();
    let only = place.run(&["dissect", file, "--prefix", name, "--kind", "interest"]);
    assert_eq!(only.out.lines().count(), of_name);
    let octets = fs::read(place.path(file)).unwrap();
    fs::write(place.path("cut"), &octets[..octets.len() - 1]).unwrap();
    let cut = place.run(&["dissect", "cut"]);
    assert_eq!(cut.code, 1);
    assert!(cut.err.contains("in the middle of the block"), "{}", cut.err);
    assert_eq!(cut.out.lines().count(), text.out.lines().count() - 1);
}
