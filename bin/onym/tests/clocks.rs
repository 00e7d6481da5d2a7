//! The wall clock jumps by a day and by a year, back and forth, while clients run: their timers do
//! not follow it. Needs libfaketime (Debian: faketime).

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Place, Running, noise, wait_until};

const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";

/// Whether the clock can be moved; says so when not.
fn is_there() -> bool {
    let is_there = Path::new(LIBRARY).exists();
    if !is_there {
        eprintln!("skipped: {LIBRARY} is not there (apt-get install faketime)");
    }
    is_there
}

/// A command whose wall clock is moved by what the place's file `clock` says; what counts time that
/// passes stays, as when a clock is set.
fn moved(place: &Place, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command
        .env("LD_PRELOAD", LIBRARY)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1")
        .env("FAKETIME_NO_CACHE", "1")
        .env("FAKETIME_TIMESTAMP_FILE", place.path("clock"));
    command
}

fn set_clock(place: &Place, offset: &str) {
    fs::write(place.path("new-clock"), offset).unwrap();
    fs::rename(place.path("new-clock"), place.path("clock")).unwrap();
}

const JUMPS: [&str; 4] = ["+1d", "-1d", "+366d", "-366d"];

#[test]
fn a_transfer_goes_on_while_the_clock_jumps() {
    if !is_there() {
        return;
    }
    let place = Place::new();
    let _daemon = place.daemon(&["cs.packets_max=0"]);
    let content = noise(12 << 20, 3);
    fs::write(place.path("in"), &content).unwrap();
    set_clock(&place, "+0d");
    let mut put = Running::start(&mut moved(&place, &["put", "/example/film", "in"]));
    put.wait_for("ready: ");
    let get =
        ["get", "/example/film", "-o", "out", "--pipeline", "fixed", "--window", "1", "--json"];
    let mut get = Running::start(&mut moved(&place, &get));
    let mut jumps = JUMPS.iter().cycle();
    let mut jumped = 0;
    while get.runs() && jumped < 400 {
        set_clock(&place, jumps.next().unwrap());
        jumped += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(get.end(), Some(0), "{}", get.err.text());
    assert!(jumped > JUMPS.len(), "the clock jumped while it ran: {jumped}");
    assert!(fs::read(place.path("out")).unwrap() == content);
    let report: serde_json::Value = serde_json::from_str(&get.out.text()).unwrap();
    assert_eq!(report["timeouts"], 0, "no timer followed the clock");
    // The registration holds, and a node that comes back gets it again.
    assert_eq!(place.json(&["route", "list"])[0]["prefix"], "/example/film");
}

#[test]
fn a_request_times_out_by_the_time_that_passes() {
    if !is_there() {
        return;
    }
    let place = Place::new();
    let _daemon = place.daemon(&["faces.udp.listen=127.0.0.1:0"]);
    place.json(&["route", "add", "/silent", "--via", "255"]);
    set_clock(&place, "+0d");
    let begun = Instant::now();
    let mut peek = Running::start(&mut moved(&place, &["peek", "/silent/x", "--lifetime", "1500"]));
    let mut jumps = JUMPS.iter().cycle();
    while peek.runs() && begun.elapsed() < support::PATIENCE {
        set_clock(&place, jumps.next().unwrap());
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(peek.end(), Some(5), "{}", peek.err.text());
    assert!(begun.elapsed() >= Duration::from_millis(1500), "{:?}", begun.elapsed());
}

#[test]
fn commands_of_a_client_with_another_clock_are_taken() {
    if !is_there() {
        return;
    }
    let place = Place::new();
    let mut daemon = place.daemon(&[]);
    for offset in JUMPS {
        set_clock(&place, offset);
        let set = moved(&place, &["strategy", "set", "/example", "multicast"]).output().unwrap();
        assert!(set.status.success(), "{offset}: {}", String::from_utf8_lossy(&set.stderr));
    }
    // A server whose clock is back by a year registers again at a node that started anew.
    set_clock(&place, "+0d");
    let mut server = Running::start(&mut moved(&place, &["ping-server", "/example"]));
    server.wait_for("ready: ");
    set_clock(&place, "-366d");
    daemon.kill();
    server.wait_for("is lost");
    let _daemon = place.daemon(&[]);
    wait_until("the prefix to be registered again", || {
        place.json(&["route", "list"])[0]["prefix"] == "/example/ping"
    });
}
