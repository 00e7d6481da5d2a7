//! `onym repo run` in a sync group of ndnd's library: its example `std/examples/svs/alo-history`, where
//! it is on PATH under that name, asks `/ndnd/repo` to join its group.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::Write as _;
use std::process::{ChildStdin, Command, Stdio};
use support::{Place, Running, wait_until};

struct Theirs {
    running: Running,
    keys: ChildStdin,
}

impl Theirs {
    /// A member with a folder of its own.
    fn join(place: &Place, name: &str) -> Self {
        let folder = place.path(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut command = Command::new("alo-history");
        command.arg(format!("/{name}")).current_dir(folder);
        let node = format!("unix://{}", place.path("nfd.sock").display());
        command.env("NDN_CLIENT_TRANSPORT", node);
        let (reader, writer) = std::io::pipe().unwrap();
        let running = Running::start(command.stdin(Stdio::from(reader)));
        Self { running, keys: ChildStdin::from(std::os::fd::OwnedFd::from(writer)) }
    }

    fn say(&mut self, line: &str) {
        writeln!(self.keys, "{line}").unwrap();
    }

    fn heard(&self, line: &str) -> bool {
        self.running.out.text().lines().any(|l| l == line)
    }
}

fn is_there() -> bool {
    let found = Command::new("alo-history").stdin(Stdio::null()).output().is_ok();
    if !found {
        println!("skipped: alo-history of ndnd is not on PATH");
    }
    found
}

fn repo(place: &Place, more: &[&str]) -> Running {
    let base = ["repo", "run", "--store", "data", "--name", "/ndnd/repo"];
    let mut run = place.start(&[&base[..], more].concat());
    run.wait_for("ready: ");
    run
}

/// Law: what members of a group published, and blobs that they asked to be kept, are there for members
/// who come when all others have gone, also after a restart of the repository.
#[test]
fn a_group_of_ndnds_library_outlives_its_members() {
    if !is_there() {
        return;
    }
    let place = Place::new();
    let _daemon = place.daemon(&["cs.packets_max=0"]);
    let mut run = repo(&place, &["--allow-everybody"]);
    let mut first = Theirs::join(&place, "first");
    wait_until("the command's answer", || {
        first.running.err.text().contains("Repo joined SVS group")
    });
    first.say("hello from first");
    // A hundred lines: the next bundle of its history.
    first.say("!!");
    first.say("+a blob");
    let packets = || place.json(&["repo", "stats", "--store", "data"])["packets"].as_u64().unwrap();
    // Its first line, hello, a hundred lines, the command for the blob; two bundles of history, at
    // least one index of them, and the blob.
    wait_until("everything is kept", || packets() >= 107);
    first.running.kill();
    run.kill();
    let _run = repo(&place, &["--allow-everybody"]);
    let routes = || place.run(&["route", "list"]).out;
    wait_until("it takes part again", || routes().contains("/ndn/svs/32=svs"));
    let second = Theirs::join(&place, "second");
    for line in ["Entered the chat room", "hello from first", "Message 1", "Message 100"] {
        let line = format!("/first: {line}");
        wait_until(&line, || second.heard(&line));
    }
}

/// Law: who may not command does not have the repository join.
#[test]
fn a_group_is_joined_for_who_is_admitted_only() {
    if !is_there() {
        return;
    }
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let _run = repo(&place, &[]);
    let mut first = Theirs::join(&place, "first");
    // Their member notes that there was an answer, and does not read it.
    wait_until("an answer", || first.running.err.text().contains("Repo joined SVS group"));
    first.say("hello");
    let mut second = Theirs::join(&place, "second");
    wait_until("others hear it", || second.heard("/first: hello"));
    second.say("hello");
    wait_until("it hears others", || first.heard("/second: hello"));
    assert_eq!(place.json(&["repo", "stats", "--store", "data"])["packets"], 0);
}
