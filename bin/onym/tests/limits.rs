//! What a manager and its services do where the system gives no more: a full disk, little memory.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::Command;
use support::managed::Managed;
use support::{Ended, Place, Running, noise, wait_until};

fn can_mount() -> bool {
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    let tried =
        Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]).status();
    let can = root && tried.is_ok_and(|status| status.success());
    if !can {
        eprintln!("skipped: a file system can be mounted by root with unshare only");
    }
    can
}

/// A manager whose state is on a file system of its own.
fn on_small_disk(megabytes: u32) -> Managed {
    let mut managed = Managed { place: Place::new(), manager: None, url: String::new() };
    fs::create_dir(managed.place.path("state")).unwrap();
    let program = env!("CARGO_BIN_EXE_onym");
    let script = format!(
        "mount -t tmpfs -o size={megabytes}m,mode=700 tmpfs state && exec {program} {}",
        Managed::words(&[]).join(" ")
    );
    // The surroundings of a command of this place, for another program.
    let like = managed.place.command(&[]);
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(managed.place.dir());
    command.envs(like.get_envs().filter_map(|(k, v)| Some((k, v?))));
    let mut running = Running::start(&mut command);
    managed.url = Managed::url_of(&mut running);
    managed.manager = Some(running);
    managed
}

/// The state as the manager sees it.
fn state(managed: &Managed) -> PathBuf {
    let pid = managed.manager.as_ref().unwrap().pid();
    let inside = managed.place.path("state");
    PathBuf::from(format!("/proc/{pid}/root{}", inside.display()))
}

fn fill(managed: &Managed) -> PathBuf {
    let path = state(managed).join("filler");
    let mut file = fs::File::create(&path).unwrap();
    let block = vec![1; 4096];
    while std::io::Write::write_all(&mut file, &block).is_ok() {}
    for size in [512, 64, 1] {
        while std::io::Write::write_all(&mut file, &block[..size]).is_ok() {}
    }
    path
}

#[test]
fn a_full_disk_stops_changes_and_no_packet() {
    if !can_mount() {
        return;
    }
    let managed = on_small_disk(24);
    managed.apply_chain();
    managed.wait_settled();
    let content = noise(500_000, 5);
    fs::write(managed.place.path("in"), &content).unwrap();
    let _put = managed.place.put(&["/example/file", "in"]);
    managed.fetches("/example/file", &content);
    let names = ["pd", "cs", "br", "nr"];
    let pids = || names.map(|name| managed.pid(name));
    let before = pids();

    let filler = fill(&managed);
    let net = |words: &[&str]| -> Ended {
        managed.place.run(&[&["net", "--manager", &managed.url], words].concat())
    };
    let ended = net(&["insert", "cs", "br", "nf", "name-filter"]);
    assert_ne!(ended.code, 0, "{}", ended.out);
    assert!(ended.err.contains("space"), "it says why: {}", ended.err);
    assert_eq!(pids(), before, "nothing was stopped");
    let view = managed.net(&["show"]);
    assert_eq!(view["functions"].as_object().unwrap().len(), 4, "{view}");
    managed.fetches("/example/file", &content);

    // What is killed meanwhile comes back when there is room again.
    assert!(Command::new("kill").args(["-9", &before[1]]).status().unwrap().success());
    wait_until("it is missed", || managed.net(&["show"])["settled"] == false);
    fs::remove_file(filler).unwrap();
    managed.wait_settled();
    managed.net(&["insert", "cs", "br", "nf", "name-filter"]);
    wait_until("the file again", || {
        managed.place.run(&["get", "/example/file", "-o", "again"]).code == 0
    });
    managed.net(&["down"]);
}

/// Runs `words` with so much address space until it says that it is ready or ends: what it said,
/// and how it ended, `None` when it runs.
fn within(kilobytes: u32, place: &Place, words: &str) -> (String, Option<Option<i32>>) {
    let script = format!("ulimit -v {kilobytes}; exec {} {words}", env!("CARGO_BIN_EXE_onym"));
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(place.dir()).env("HOME", place.dir());
    let mut running = Running::start(&mut command);
    let said = |running: &Running| format!("{}{}", running.out.text(), running.err.text());
    let mut runs = true;
    wait_until("it is ready or has ended", || {
        runs = running.runs();
        !runs || said(&running).lines().any(|line| line.starts_with("ready"))
    });
    let ended = (!runs).then(|| running.end());
    if ended == Some(Some(1)) {
        // Its last words may still be on their way.
        wait_until("a sentence", || !said(&running).is_empty());
    }
    (said(&running), ended)
}

/// With less the system cannot load the program, or it cannot begin.
fn least(place: &Place) -> u32 {
    let begins = |kilobytes: &u32| within(*kilobytes, place, "--version").1 == Some(Some(0));
    (10_000..2_000_000).step_by(1000).find(begins).unwrap()
}

#[test]
fn with_little_memory_a_service_and_a_node_run_or_end_with_a_sentence() {
    let place = Place::new();
    let node = "daemon --set faces.unix.path=little.sock --set faces.udp.listen=[] \
                --set faces.tcp.listen=[] --set faces.websocket.listen=[] --set shards=1";
    let service = "service content-store --set capacity=1000000";
    let least = least(&place);
    for words in [service, node] {
        let (mut ready, mut refused) = (0, 0);
        for more in (0..16_000).step_by(1000).chain([60_000, 400_000]) {
            let (said, ended) = within(least + more, &place, words);
            match ended {
                None => ready += 1,
                Some(code) => {
                    let told = said.contains("no memory left") || said.contains("does not start");
                    assert!(code == Some(1) && told, "{words}, {more}: {code:?}: {said}");
                    assert!(!said.contains("panicked"), "{words}, {more}: {said}");
                    refused += 1;
                }
            }
        }
        eprintln!("from {least} KiB: {ready} ran, {refused} ended with a sentence");
        assert!(ready > 0 && refused > 0, "{words}: {ready} ran, {refused} ended");
    }
}
