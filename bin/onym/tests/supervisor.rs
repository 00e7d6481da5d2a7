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

#[test]
fn who_connects_to_a_socket_of_the_service_manager_waits_until_the_node_is_there() {
    let place = Place::new();
    let path = place.path("nfd.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let early = place.start(&["status"]);
    // As `sd_listen_fds(3)` has it: the process's own number, and descriptors from 3 on.
    let start = || {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\" 3<&0 </dev/null", "sh"]);
        let mut program = place.command(&["daemon", "--set"]);
        program.arg(format!("faces.unix.path={}", path.display()));
        for faces in ["udp", "tcp", "websocket"] {
            program.args(["--set", &format!("faces.{faces}.listen=[]")]);
        }
        command.arg(program.get_program()).args(program.get_args()).current_dir(place.dir());
        command.env("HOME", place.dir()).env("XDG_RUNTIME_DIR", place.dir());
        command.stdin(std::os::fd::OwnedFd::from(listener.try_clone().unwrap()));
        let mut daemon = Running::start(&mut command);
        daemon.wait_for("ready\n");
        daemon
    };
    let mut daemon = start();
    let mut waited = early;
    assert_eq!(waited.end(), Some(0), "{}", waited.err.text());
    signal(&daemon, "-TERM");
    assert_eq!(daemon.end(), Some(0));
    // It is the service manager's, and stays; who comes meanwhile is answered by the next one.
    assert!(path.exists());
    let mut between = place.start(&["status"]);
    let _daemon = start();
    assert_eq!(between.end(), Some(0), "{}", between.err.text());
}
