//! What the service manager that starts the daemon is told (`sd_notify(3)`).

#![allow(clippy::unwrap_used)]

mod support;

use std::os::unix::net::UnixDatagram;
use support::{PATIENCE, Place, Running};

/// The next message with `word` in it; those before it are returned with it.
fn wait_for(socket: &UnixDatagram, word: &str) -> Vec<String> {
    let mut seen = Vec::new();
    let mut octets = [0; 4096];
    loop {
        let count = socket.recv(&mut octets).unwrap_or_else(|e| panic!("no {word}: {e}; {seen:?}"));
        seen.push(String::from_utf8_lossy(&octets[..count]).into_owned());
        if seen.last().unwrap().lines().any(|line| line == word) {
            return seen;
        }
    }
}

fn signal(daemon: &Running, name: &str) {
    let killed = std::process::Command::new("kill")
        .args([name, &daemon.pid().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
}

#[test]
fn the_service_manager_hears_of_readiness_life_reloads_and_the_end() {
    let place = Place::new();
    let told = UnixDatagram::bind(place.path("notify.sock")).unwrap();
    told.set_read_timeout(Some(PATIENCE)).unwrap();
    let unix = format!("faces.unix.path={}", place.path("nfd.sock").display());
    let mut command = place.command(&[
        "daemon",
        "--set",
        &unix,
        "--set",
        "faces.udp.listen=[]",
        "--set",
        "faces.tcp.listen=[]",
        "--set",
        "faces.websocket.listen=[]",
    ]);
    command.env("NOTIFY_SOCKET", place.path("notify.sock")).env("WATCHDOG_USEC", "200000");
    let mut daemon = Running::start(&mut command);
    let before = wait_for(&told, "READY=1");
    assert!(!before.concat().contains("WATCHDOG"), "the watchdog is fed after READY: {before:?}");
    wait_for(&told, "WATCHDOG=1");
    wait_for(&told, "WATCHDOG=1");
    signal(&daemon, "-HUP");
    wait_for(&told, "RELOADING=1");
    wait_for(&told, "READY=1");
    signal(&daemon, "-TERM");
    wait_for(&told, "STOPPING=1");
    assert_eq!(daemon.end(), Some(0));
}

#[test]
fn a_repository_and_a_manager_tell_readiness_life_and_the_end() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    for args in [
        &["repo", "run", "--store", "data", "--name", "/repo"][..],
        &["manager", "--listen", "127.0.0.1:0", "--state", "state"],
    ] {
        let socket = format!("{}.sock", args[0]);
        let told = UnixDatagram::bind(place.path(&socket)).unwrap();
        told.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut command = place.command(args);
        command.env("NOTIFY_SOCKET", place.path(&socket)).env("WATCHDOG_USEC", "200000");
        let mut program = Running::start(&mut command);
        let before = wait_for(&told, "READY=1");
        assert!(!before.concat().contains("WATCHDOG"), "{args:?}: {before:?}");
        wait_for(&told, "WATCHDOG=1");
        wait_for(&told, "WATCHDOG=1");
        signal(&program, "-TERM");
        wait_for(&told, "STOPPING=1");
        assert_eq!(program.end(), Some(0), "{args:?}");
    }
}

#[test]
fn a_daemon_that_hangs_feeds_no_watchdog() {
    let place = Place::new();
    let told = UnixDatagram::bind(place.path("notify.sock")).unwrap();
    told.set_read_timeout(Some(PATIENCE)).unwrap();
    let unix = format!("faces.unix.path={}", place.path("nfd.sock").display());
    let mut command = place.command(&[
        "daemon",
        "--set",
        &unix,
        "--set",
        "faces.udp.listen=[]",
        "--set",
        "faces.tcp.listen=[]",
        "--set",
        "faces.websocket.listen=[]",
    ]);
    command.env("NOTIFY_SOCKET", place.path("notify.sock")).env("WATCHDOG_USEC", "200000");
    let daemon = Running::start(&mut command);
    wait_for(&told, "WATCHDOG=1");
    signal(&daemon, "-STOP");
    // What was on its way is read; then nothing comes for ten of its turns.
    told.set_read_timeout(Some(std::time::Duration::from_secs(1))).unwrap();
    let mut octets = [0; 4096];
    let mut late = 0;
    while told.recv(&mut octets).is_ok() {
        late += 1;
        assert!(late < 10, "a stopped process goes on feeding the watchdog");
    }
    signal(&daemon, "-CONT");
    told.set_read_timeout(Some(PATIENCE)).unwrap();
    wait_for(&told, "WATCHDOG=1");
}
