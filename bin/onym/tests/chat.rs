//! `onym chat`: members on one daemon, what comes late, a shared secret.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write as _;
use std::process::{ChildStdin, Command, Stdio};
use support::{Place, Running, wait_until};

struct Member {
    running: Running,
    keys: ChildStdin,
}

impl Member {
    fn join(command: &mut Command) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut running = Running::start(command.stdin(Stdio::from(reader)));
        running.wait_for("ready");
        let keys = ChildStdin::from(std::os::fd::OwnedFd::from(writer));
        Self { running, keys }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.keys, "{line}").unwrap();
    }

    fn hears(&mut self, line: &str) {
        let running = &mut self.running;
        wait_until(line, || running.out.text().lines().any(|l| l == line));
    }
}

#[test]
fn members_read_each_other_and_a_newcomer_reads_the_last_lines() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let join = |who: &str| Member::join(&mut place.command(&["chat", "/g", "--as", who]));
    let (mut alice, mut bob) = (join("/alice"), join("/bob"));
    alice.say("hello");
    bob.hears("/alice: hello");
    bob.say("hello, alice");
    alice.hears("/bob: hello, alice");
    for n in 1..=5 {
        alice.say(&format!("line {n}"));
    }
    bob.hears("/alice: line 5");
    let mut carol =
        Member::join(&mut place.command(&["chat", "/g", "--as", "/carol", "--last", "2"]));
    carol.hears("/bob: hello, alice");
    carol.hears("/alice: line 5");
    let heard = carol.running.out.text();
    let of_alice: Vec<_> = heard.lines().filter(|l| l.starts_with("/alice")).collect();
    assert_eq!(of_alice, ["/alice: line 4", "/alice: line 5"]);
}

#[test]
fn a_line_of_another_member_stays_one_line_and_obeys_nothing() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let join = |who: &str| Member::join(&mut place.command(&["chat", "/g", "--as", who]));
    let (mut alice, mut bob) = (join("/alice"), join("/bob"));
    alice.say("a\u{1b}[2Jb\rc");
    bob.hears("/alice: a\\x1b[2Jb\\rc");
}

#[test]
fn who_does_not_know_the_secret_is_not_heard() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    std::fs::write(place.path("secret"), "of the group\n").unwrap();
    std::fs::write(place.path("guess"), "of another\n").unwrap();
    let join = |who: &str, file: &str| {
        Member::join(&mut place.command(&["chat", "/g", "--as", who, "--secret-file", file]))
    };
    let mut mallory = join("/mallory", "guess");
    let (mut alice, mut bob) = (join("/alice", "secret"), join("/bob", "secret"));
    mallory.say("believe me");
    alice.say("hello");
    bob.hears("/alice: hello");
    bob.say("hello, alice");
    alice.hears("/bob: hello, alice");
    for member in [&alice, &bob] {
        assert!(!member.running.out.text().contains("mallory"));
    }
    assert!(!mallory.running.out.text().contains("hello"));
}

#[test]
fn a_chat_ends_after_its_input_when_told_and_speaks_json() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let bob = Member::join(&mut place.command(&["chat", "/g", "--as", "/bob", "--json"]));
    let mut alice =
        Member::join(&mut place.command(&["chat", "/g", "--as", "/alice", "--stay", "5"]));
    alice.say("done");
    let Member { mut running, keys } = alice;
    drop(keys);
    wait_until("the line", || bob.running.out.text().contains("\"text\":\"done\""));
    wait_until("the end", || !running.runs());
}

/// ndnd's example `std/examples/svs/alo-history`, where it is on PATH under that name.
#[test]
fn members_of_ndnds_library_and_ours_read_each_other() {
    let place = Place::new();
    let mut theirs = Command::new("alo-history");
    theirs.arg("/theirs").current_dir(place.path("."));
    theirs.env("NDN_CLIENT_TRANSPORT", format!("unix://{}", place.path("nfd.sock").display()));
    if let Err(error) = Command::new("alo-history").current_dir(place.path(".")).output() {
        println!("skipped: alo-history of ndnd is not on PATH: {error}");
        return;
    }
    let _daemon = place.daemon(&[]);
    let (reader, writer) = std::io::pipe().unwrap();
    let theirs = Running::start(theirs.stdin(Stdio::from(reader)));
    let mut keys = ChildStdin::from(std::os::fd::OwnedFd::from(writer));
    wait_until("their member", || theirs.err.text().contains("Joined"));
    let mut ours = Member::join(&mut place.command(&["chat", "/ndn/svs", "--as", "/ours"]));
    ours.hears("/theirs: Entered the chat room");
    ours.say("hello");
    wait_until("our line", || theirs.out.text().lines().any(|line| line == "/ours: hello"));
    writeln!(keys, "hello, ours").unwrap();
    ours.hears("/theirs: hello, ours");
    // A snapshot of ten lines, and what follows it.
    for n in 1..=25 {
        ours.say(&format!("line {n}"));
    }
    let their_lines = || theirs.out.text().lines().filter(|l| l.starts_with("/ours: line")).count();
    wait_until("all lines", || their_lines() == 25);
}
