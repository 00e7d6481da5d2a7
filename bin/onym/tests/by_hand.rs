//! What a newcomer types and sees: own writes, honest refusals, quiet pipes, words that fit.

#![allow(clippy::unwrap_used)]

mod support;

use onym_client::push::{App, Event};
use onym_wire::push::app::{Message, kind};
use onym_wire::push::{Status, Strategy};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{Ended, Place, Running, wait_until};

/// The address of the daemon's listener of this kind.
fn address(daemon: &mut Running, kind: &str) -> String {
    let word = format!("kind=\"{kind}\"");
    daemon.wait_for(&word);
    let log = daemon.err.text();
    let line = log.lines().find(|l| l.contains(&word)).unwrap();
    line.split("address=").nth(1).unwrap().trim().to_owned()
}

fn frames_dropped(place: &Place) -> Value {
    place.json(&["status"])["node"]["frames_dropped"].clone()
}

fn terminate(process: &Running) {
    kill_process(Pid::from_raw(process.pid().cast_signed()).unwrap(), Signal::TERM).unwrap();
}

#[test]
fn every_datagram_that_is_no_frame_is_counted_once_whoever_sent_it() {
    let place = Place::new();
    let mut daemon = place.daemon(&["faces.udp.listen=127.0.0.1:0"]);
    let to = address(&mut daemon, "udp");
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let malformed: [&[u8]; 3] = [&[0], &[5, 0xff], &[5, 0, 0xff]];
    for datagram in malformed {
        stranger.send_to(datagram, &to).unwrap();
    }
    wait_until("the stranger's to be counted", || {
        let dropped = frames_dropped(&place);
        dropped["datagram_malformed"] == 2 && dropped["datagram_trailing"] == 1
    });
    // The same from somebody who has a face.
    let neighbour = UdpSocket::bind("127.0.0.1:0").unwrap();
    neighbour.send_to(&[5, 11, 7, 3, 8, 1, b'x', 0x0a, 4, 1, 2, 3, 4], &to).unwrap();
    wait_until("its face", || {
        let faces = place.json(&["face", "list"]);
        faces.as_array().unwrap().iter().any(|f| f["remote"].as_str().unwrap().starts_with("udp4"))
    });
    for datagram in malformed {
        neighbour.send_to(datagram, &to).unwrap();
    }
    wait_until("the neighbour's to be counted", || {
        let dropped = frames_dropped(&place);
        dropped["datagram_malformed"] == 4 && dropped["datagram_trailing"] == 2
    });
    // A link packet whose field is longer than the packet.
    neighbour.send_to(&[0x64, 2, 0x50, 5], &to).unwrap();
    let node = || place.json(&["status"])["node"].clone();
    wait_until("the link packet to be counted", || {
        let node = node();
        ["dropped", "frames_dropped"].iter().any(|of| node[of]["lp_malformed"] == 1)
    });
    let (told, text) = (node(), place.run(&["status"]).out);
    for of in ["dropped", "frames_dropped", "unsent"] {
        for (reason, count) in told[of].as_object().unwrap() {
            let mut rows = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            let wanted = [&**reason, &count.to_string()];
            assert!(rows.any(|row| row == wanted), "text and JSON agree on {wanted:?}: {text}");
        }
    }
}

#[test]
fn who_changes_something_sees_it_at_once() {
    let place = Place::new();
    let _daemon = place.daemon(&["faces.udp.listen=127.0.0.1:0"]);
    for n in 0..5 {
        place.json(&["route", "list"]);
        let prefix = format!("/own/{n}");
        place.json(&["route", "add", &prefix, "--via", "udp4://127.0.0.1:9"]);
        let routes = place.json(&["route", "list"]);
        let is_there = |routes: &Value| {
            routes.as_array().unwrap().iter().any(|r| r["prefix"] == prefix.as_str())
        };
        assert!(is_there(&routes), "{prefix} after adding: {routes}");
        place.json(&["strategy", "set", &prefix, "multicast"]);
        let strategies = place.json(&["strategy", "list"]);
        assert!(is_there(&strategies), "{prefix}: {strategies}");
        place.json(&["route", "remove", &prefix, "--via", "udp4://127.0.0.1:9"]);
        assert!(!is_there(&place.json(&["route", "list"])), "{prefix} after removing");
    }
}

#[test]
fn what_is_not_there_is_not_said_to_be_removed() {
    let place = Place::new();
    let mut daemon = place.daemon(&["faces.udp.listen=127.0.0.1:0"]);
    let _ = address(&mut daemon, "udp");
    let via = "udp4://127.0.0.1:9";
    place.json(&["face", "create", via]);
    let absent = place.run(&["route", "remove", "/a", "--via", via]);
    assert_eq!(absent.code, 5, "{}{}", absent.out, absent.err);
    place.json(&["route", "add", "/a", "--via", via, "--origin", "nlsr"]);
    let other = place.run(&["route", "remove", "/a", "--via", via]);
    assert_eq!(other.code, 5, "{}{}", other.out, other.err);
    assert!(other.err.contains("--origin nlsr"), "{}", other.err);
    assert_eq!(place.run(&["route", "remove", "/a", "--via", via, "--origin", "nlsr"]).code, 0);
    let wrong = place.run(&["face", "update", via, "--persistency", "on-demand"]);
    assert_eq!(wrong.code, 4, "{}", wrong.err);
    assert!(wrong.err.contains("--persistency"), "{}", wrong.err);
    assert!(!wrong.err.contains("--mtu"), "only what is wrong: {}", wrong.err);
}

#[test]
fn without_a_push_half_or_a_rendezvous_that_is_said_at_once() {
    let place = Place::new();
    let daemon = place.daemon(&[]);
    for command in [
        &["scope", "list"][..],
        &["explain", "--push", "/1/2"],
        &["rendezvous", "graph"],
        &["topology", "map"],
    ] {
        let begun = Instant::now();
        let ended = place.run(command);
        assert_eq!(ended.code, 4, "{command:?}: {}{}", ended.out, ended.err);
        assert!(ended.err.contains("push.enabled"), "{command:?}: {}", ended.err);
        assert!(begun.elapsed() < Duration::from_secs(5), "{command:?}: {:?}", begun.elapsed());
    }
    drop(daemon);
    let place = Place::new();
    let _daemon = place.daemon(&["push.enabled=true", "push.node=b", "push.roles=[]"]);
    for command in [&["scope", "list"][..], &["rendezvous", "graph"]] {
        let said = place.run(command).out;
        assert!(said.contains("no rendezvous"), "{command:?}: {said}");
        assert!(!said.contains("nothing is published"), "{command:?}: {said}");
    }
}

#[test]
fn questions_about_the_node_are_no_cache_misses() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let misses = || place.json(&["cs", "info"])["misses"].as_u64().unwrap();
    let before = misses();
    for _ in 0..3 {
        place.json(&["status"]);
    }
    assert_eq!(misses(), before);
    assert_eq!(place.run(&["peek", "/nowhere"]).code, 5);
    wait_until("a miss that is one", || misses() == before + 1);
}

/// Runs a command whose reader takes one octet and goes.
fn read_little(place: &Place, args: &[&str]) -> Ended {
    let mut command = place.command(args);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut out = child.stdout.take().unwrap();
    out.read_exact(&mut [0]).unwrap();
    drop(out);
    Ended::of(child.wait_with_output().unwrap())
}

#[test]
fn a_reader_that_has_enough_ends_a_command_quietly() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    fs::write(place.path("in"), vec![b'x'; 4 << 20]).unwrap();
    let _put = place.put(&["/example/long", "in"]);
    for args in [
        &["get", "/example/long"][..],
        &["man", "--markdown"],
        &["completions", "zsh"],
        &["status", "--all"],
    ] {
        let ended = read_little(&place, args);
        assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{args:?}");
    }
}

#[test]
fn words_fit_what_they_say() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    fs::write(place.path("in"), "x").unwrap();
    let put = place.put(&["/example/x", "in"]);
    assert!(put.out.text().contains("in 1 segment\n"), "{}", put.out.text());
    let got = place.run(&["get", "/example/x", "-o", "out"]).out;
    assert!(got.contains("in 1 segment,"), "{got}");
    fs::write(place.path("one.toml"), "shards = 1\n").unwrap();
    let good = place.run(&["check-config", "one.toml"]).out;
    assert!(good.contains("1 shard, 0 faces"), "{good}");
    let help = place.run(&["help", "get"]);
    assert_eq!(help.code, 0, "{}", help.err);
    assert!(help.out.contains("onym get /example/film"), "{}", help.out);
    assert!(place.run(&["help"]).out.contains("Content:"));
    let wrong = place.run(&["key", "generate", "/a"]);
    assert!(wrong.code == 2 && wrong.err.contains("new"), "{}", wrong.err);
}

#[test]
fn a_fifo_that_nobody_writes_is_no_trap() {
    let place = Place::new();
    let _daemon = place.daemon(&["push.enabled=true"]);
    let fifo = place.path("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    for args in [&["put", "/example/fifo", "fifo"][..], &["publish", "/1/2", "fifo"]] {
        let mut waits = place.start(args);
        wait_until("its handlers", || {
            let status = fs::read_to_string(format!("/proc/{}/status", waits.pid())).unwrap();
            let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:")).unwrap().trim();
            u64::from_str_radix(caught, 16).unwrap() & (1 << 14) != 0
        });
        terminate(&waits);
        assert_eq!(waits.end(), Some(130), "{args:?}: {}", waits.err.text());
    }
    // And with a writer it is read to its end.
    let mut put = place.start(&["put", "/example/fifo", "fifo"]);
    fs::write(&fifo, "through a pipe").unwrap();
    put.wait_for("ready: ");
    assert_eq!(place.run(&["get", "/example/fifo"]).out, "through a pipe");
}

#[test]
fn publish_ends_at_once_when_no_rendezvous_answers() {
    let place = Place::new();
    let _daemon = place.daemon(&["push.enabled=true", "push.node=b", "push.roles=[]"]);
    let mut publish = place.start(&["publish", "/1/2", "--text", "x"]);
    wait_until("the application to be there", || {
        place.json(&["rendezvous", "status"])["apps"].as_array().is_some_and(|a| !a.is_empty())
    });
    let begun = Instant::now();
    terminate(&publish);
    publish.end();
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

#[test]
fn a_publication_that_announces_too_much_is_refused_with_its_first_piece() {
    let place = Place::new();
    let _daemon = place.daemon(&["push.enabled=true"]);
    let mut app = UnixStream::connect(place.path("nfd.sock")).unwrap();
    let register = Message { text: b"test", ..Message::new(kind::REGISTER, 1) };
    app.write_all(&register.octets()).unwrap();
    let id = [[0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0, 2]].concat();
    let publish = Message {
        id: &id,
        strategy: Strategy::NODE_LOCAL,
        payload: &[7; 1000],
        length: Some(1 << 40),
        offset: Some(0),
        ..Message::new(kind::PUBLISH, 7)
    };
    app.write_all(&publish.octets()).unwrap();
    app.set_read_timeout(Some(support::PATIENCE)).unwrap();
    let mut came = Vec::new();
    let status = loop {
        let mut octets = [0; 4096];
        let n = app.read(&mut octets).expect("a status comes");
        assert!(n > 0, "the connection is kept");
        came.extend_from_slice(&octets[..n]);
        let mut rest = &came[..];
        let mut found = None;
        while let Ok((element, more)) = onym_wire::tlv::Element::split(rest) {
            let whole = &rest[..rest.len() - more.len()];
            let _ = element;
            let message = Message::parse(whole).unwrap();
            if message.kind == kind::STATUS && message.tag == 7 {
                found = message.status;
            }
            rest = more;
        }
        if let Some(status) = found {
            break status;
        }
    };
    assert_eq!(status, Status::FULL);
    // The library does not even send it.
    let mut app = App::open(Some(&place.node()), "test").unwrap();
    let most = usize::try_from(app.info().length_max).unwrap();
    let (id, payload) = ("/1/2".parse().unwrap(), vec![0; most + 1]);
    assert!(app.publish(&id, Strategy::NODE_LOCAL, &payload).is_err());
}

#[test]
fn every_strategy_can_be_published_and_subscribed_from_the_command_line() {
    let place = Place::new();
    let _daemon = place.daemon(&["push.enabled=true", "push.node=a"]);
    let help = place.run(&["publish", "--help"]).out;
    for (_, name) in Strategy::ALL {
        assert!(help.contains(name), "{name} is in the help: {help}");
    }
    let wrong = place.run(&["publish", "/1/2", "--strategy", "nonsense"]);
    for (_, name) in Strategy::ALL {
        assert!(wrong.code == 2 && wrong.err.contains(name), "{name}: {}", wrong.err);
    }
    // Nobody is waited for: whoever listens gets it.
    let mut listener = App::open(Some(&place.node()), "test").unwrap();
    listener.subscribe_item(&"/7/8".parse().unwrap(), Strategy::BROADCAST).unwrap();
    let told = place.json(&["publish", "/7/8", "--text", "hello", "--strategy", "broadcast"]);
    assert_eq!(told["local"], 1, "{told}");
    match listener.event(Some(support::PATIENCE)).unwrap() {
        Some(Event::Data { payload, .. }) => assert_eq!(&*payload, b"hello"),
        other => panic!("{other:?}"),
    }
    for (strategy, needs) in [
        ("link-local", "--to"),
        ("implicit", "--filter"),
        ("algorithmic-local", "--about"),
        ("algorithmic-domain", "--about"),
    ] {
        let lacks = place.run(&["publish", "/7/8", "--text", "x", "--strategy", strategy]);
        assert!(lacks.code == 2 && lacks.err.contains(needs), "{strategy}: {}", lacks.err);
    }
    // Where another item goes, which this node subscribes to.
    let _other = place.start(&["subscribe", "/1/3", "--strategy", "node-local"]);
    let algorithmic = ["--strategy", "algorithmic-local", "--about", "/1/3", "--timeout", "20"];
    let told = place.json(&[&["publish", "/7/8", "--text", "about"], &algorithmic[..]].concat());
    assert_eq!((&told["frames"], &told["local"]), (&0.into(), &1.into()), "{told}");
    match listener.event(Some(support::PATIENCE)).unwrap() {
        Some(Event::Data { payload, .. }) => assert_eq!(&*payload, b"about"),
        other => panic!("{other:?}"),
    }
    let filter = "0".repeat(256);
    let implicit =
        ["publish", "/7/8", "--text", "x", "--strategy", "implicit", "--filter", &filter];
    assert_eq!(place.run(&implicit).code, 0);
    let unknown = ["publish", "/7/8", "--text", "x", "--strategy", "link-local", "--to", "b"];
    assert_eq!(place.run(&unknown).code, 4, "no such neighbour");
}

#[test]
fn faces_are_asked_for_as_others_write_them() {
    let place = Place::new();
    let _daemon = place.daemon(&["faces.udp.listen=127.0.0.1:0"]);
    let faces = place.json(&["face", "list"]);
    let null = faces.as_array().unwrap().iter().find(|f| f["remote"] == "null://");
    assert_eq!(null.map(|f| f["id"].clone()), Some(255.into()), "{faces}");
    for via in ["255", "null://"] {
        let added = place.run(&["route", "add", "/nowhere", "--via", via]);
        assert_eq!(added.code, 0, "{via}: {}", added.err);
    }
    let lost = place.run(&["peek", "/nowhere/x", "--lifetime", "200"]);
    assert_eq!(lost.code, 5, "{}", lost.err);
}

#[test]
fn a_link_between_listeners_of_other_addresses_is_heard_where_its_end_is_named() {
    let (a, b) = (Place::new(), Place::new());
    let two = "faces.udp.listen=[\"127.0.0.1:0\", \"127.0.0.2:0\"]";
    let daemon_a = a.daemon(&[two]);
    let mut daemon_b = b.daemon(&["faces.udp.listen=127.0.0.1:0"]);
    let to_b = format!("udp4://{}", address(&mut daemon_b, "udp"));
    wait_until("both listeners", || daemon_a.err.text().matches("kind=\"udp\"").count() == 2);
    let log = daemon_a.err.text();
    let second = log
        .split_whitespace()
        .find_map(|w| w.strip_prefix("address=").filter(|a| a.starts_with("127.0.0.2")));
    let second = format!("udp4://{}", second.expect("the second listener"));
    b.json(&["face", "create", &second]);
    a.json(&["face", "create", &to_b, "--local", &second]);
    a.json(&["route", "add", "/over", "--via", &to_b]);
    let _server = {
        let mut server = b.start(&["ping-server", "/over"]);
        server.wait_for("ready: ");
        server
    };
    assert_eq!(a.run(&["ping", "/over", "-c", "1"]).code, 0);
    let faces = b.json(&["face", "list"]);
    let over_udp: Vec<_> = faces
        .as_array()
        .unwrap()
        .iter()
        .filter(|f| f["remote"].as_str().unwrap().starts_with("udp4://127"))
        .collect();
    assert_eq!(over_udp.len(), 1, "what comes is heard on the face that was made: {over_udp:?}");
    assert_eq!(over_udp[0]["in_interests"], 1);
    let nowhere = a.run(&["face", "create", "udp4://127.0.0.1:9", "--local", "udp4://127.0.0.3:9"]);
    assert!(nowhere.code == 4 && nowhere.err.contains("faces.udp.listen"), "{}", nowhere.err);
}

#[test]
fn a_disk_that_is_full_is_said_and_nothing_is_left() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    fs::write(place.path("in"), vec![b'x'; 1 << 20]).unwrap();
    let _put = place.put(&["/example/long", "in"]);
    assert_eq!(place.run(&["key", "new", "/alice"]).code, 0);
    let full = |args: &[&str]| {
        let to = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = place.command(args).stdout(Stdio::from(to)).output().unwrap();
        Ended::of(output)
    };
    for args in [
        &["get", "/example/long"][..],
        &["status"],
        &["status", "--json"],
        &["man", "--markdown"],
        &["completions", "bash"],
        &["cert", "export", "/alice"],
        &["peek", "/example/long", "-P"],
    ] {
        let ended = full(args);
        assert_eq!(ended.code, 1, "{args:?}: {}", ended.err);
        assert!(ended.err.contains("No space left"), "{args:?}: {}", ended.err);
    }
    for args in [
        &["get", "/example/long", "-o", "/dev/full"][..],
        &["cert", "export", "/alice", "-o", "/dev/full"],
    ] {
        let ended = place.run(args);
        assert_eq!(ended.code, 1, "{args:?}: {}", ended.err);
        assert!(ended.err.contains("No space left"), "{args:?}: {}", ended.err);
    }
}

/// Runs a command in a folder `full` on a file system without room; what is left there.
fn on_a_full_disk(place: &Place, args: &[&str]) -> (Ended, Vec<String>) {
    let script = "mount -t tmpfs -o size=64k none full && { head -c 1M /dev/zero > full/filler; \
                  \"$@\"; code=$?; ls -A full >&2; exit $code; } 2> said";
    let onym = place.command(args);
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(onym.get_program()).args(args);
    command.current_dir(place.dir());
    for (key, value) in onym.get_envs() {
        command.env(key, value.unwrap_or_default());
    }
    let mut ended = Ended::of(command.stdin(Stdio::null()).output().unwrap());
    let said = fs::read_to_string(place.path("said")).unwrap();
    let is_left = |line: &&str| !line.starts_with(['o', ' ']) && !line.starts_with("head:");
    let left = said.lines().filter(is_left).map(str::to_owned).collect();
    ended.err = said;
    (ended, left)
}

#[test]
fn every_command_that_writes_a_file_says_that_the_disk_is_full_and_leaves_nothing() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a file system of its own needs root");
        return;
    }
    let place = Place::new();
    let _daemon = place.daemon(&["push.enabled=true"]);
    fs::create_dir(place.path("full")).unwrap();
    fs::write(place.path("in"), vec![b'x'; 1 << 20]).unwrap();
    fs::write(place.path("secret"), "secret\n").unwrap();
    fs::write(place.path("domain.toml"), "shape = \"line\"\nnodes = 3\n").unwrap();
    let _put = place.put(&["/example/long", "in"]);
    assert_eq!(place.run(&["key", "new", "/alice"]).code, 0);
    for args in [
        &["get", "/example/long", "-o", "full/out"][..],
        &["cert", "export", "/alice", "-o", "full/out"],
        &["key", "export", "/alice", "-o", "full/out", "--passphrase-file", "secret"],
        &["man", "full"],
    ] {
        let (ended, left) = on_a_full_disk(&place, args);
        assert_eq!(ended.code, 1, "{args:?}: {}{}", ended.out, ended.err);
        assert!(ended.err.contains("No space left"), "{args:?}: {}", ended.err);
        assert_eq!(left, ["filler"], "{args:?}: {}", ended.err);
    }
}
