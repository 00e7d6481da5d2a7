//! Content through a running daemon as a person types it: put, get, peek, poke, ping; what
//! `--json` promises; exit codes.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;
use support::{Ended, Place, Running, noise};

/// The shape of a JSON value: keys and kinds, without the values.
fn shape(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) => "bool".into(),
        Value::Number(_) => "number".into(),
        Value::String(_) => "string".into(),
        Value::Array(items) => format!("[{}]", items.first().map(shape).unwrap_or_default()),
        Value::Object(fields) => {
            let fields: Vec<_> = fields.iter().map(|(k, v)| format!("{k}: {}", shape(v))).collect();
            format!("{{{}}}", fields.join(", "))
        }
    }
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn files_of_every_length_arrive_as_they_were_put() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    for (n, len) in [0, 1, 7999, 8000, 8001, 100_000].into_iter().enumerate() {
        let (name, file) = (format!("/example/{n}"), format!("in-{n}"));
        let content = noise(len, 1 + n as u64);
        fs::write(place.path(&file), &content).unwrap();
        let _put = place.put(&[&name, &file]);
        let report = place.json(&["get", &name, "-o", "out"]);
        assert!(fs::read(place.path("out")).unwrap() == content, "{len} octets");
        assert_eq!(report["bytes"], len);
        assert_eq!(report["segments"], len.div_ceil(8000).max(1));
    }
}

#[test]
fn standard_input_and_output_are_files_too() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let content = noise(20_000, 3);
    fs::write(place.path("in"), &content).unwrap();
    let input = fs::File::open(place.path("in")).unwrap();
    let mut put =
        Running::start(place.command(&["put", "/example/piped"]).stdin(Stdio::from(input)));
    put.wait_for("ready: ");
    let got = place.command(&["get", "/example/piped"]).output().unwrap();
    assert!(got.stdout == content && got.status.success());
    assert!(got.stderr.is_empty(), "quiet when it is not a terminal");
}

#[test]
fn the_newest_version_is_found_and_each_version_by_its_name() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    fs::write(place.path("old"), "old").unwrap();
    fs::write(place.path("new"), "new").unwrap();
    let old = place.put(&["/example/page", "old", "--version", "1", "--freshness", "0"]);
    assert_eq!(place.run(&["get", "/example/page"]).out, "old");
    drop(old);
    let _new = place.put(&["/example/page", "new", "--version", "2", "--freshness", "0"]);
    assert_eq!(place.run(&["get", "/example/page"]).out, "new");
    assert_eq!(place.run(&["get", "/example/page/v=2"]).out, "new");
    assert_eq!(place.run(&["get", "/example/page/v=1"]).out, "old", "from the cache");
    let absent = place.run(&["get", "/example/page/v=3"]);
    assert_eq!(absent.code, 5, "{}", absent.err);
}

#[test]
fn a_file_is_believed_only_with_the_key_that_was_asked_for() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    for identity in ["/alice", "/mallory"] {
        assert_eq!(place.run(&["key", "new", identity]).code, 0);
    }
    assert_eq!(place.run(&["cert", "export", "/alice", "-o", "alice.ndncert"]).code, 0);
    fs::write(place.path("in"), noise(30_000, 5)).unwrap();
    let _put = place.put(&["/example/signed", "in", "--key", "/alice"]);
    let _bare = place.put(&["/example/bare", "in"]);
    let get = |name: &str, how: &str| place.run(&["get", name, "-o", "out", "--verify", how]);
    for how in ["/alice", "alice.ndncert", "integrity", "off"] {
        let done = get("/example/signed", how);
        assert_eq!(done.code, 0, "{how}: {}", done.err);
        fs::remove_file(place.path("out")).unwrap();
    }
    for (name, how) in [("/example/signed", "/mallory"), ("/example/bare", "/alice")] {
        let refused = get(name, how);
        assert_eq!(refused.code, 1, "{}", refused.err);
        assert!(refused.err.contains("does not verify"), "{}", refused.err);
        assert!(!place.path("out").exists(), "nothing unverified is left behind");
    }
    for how in ["/nobody", "no-such-file", "in"] {
        let wrong = get("/example/signed", how);
        assert_eq!(wrong.code, 2, "{how}: {}", wrong.err);
        assert!(wrong.err.contains("is not a certificate"), "{}", wrong.err);
    }
    let unsigned = place.run(&["put", "/example/x", "in", "--key", "/carol"]);
    assert!(unsigned.code == 1 && unsigned.err.contains("onym key new"), "{}", unsigned.err);
}

#[test]
fn a_chain_of_certificates_leads_from_a_file_to_the_anchor() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    for identity in ["/example", "/example/alice", "/mallory"] {
        assert_eq!(place.run(&["key", "new", identity]).code, 0);
    }
    let export = |name: &str, file: &str| place.run(&["cert", "export", name, "-o", file]);
    assert_eq!(export("/example", "root.ndncert").code, 0);
    assert_eq!(export("/example/alice", "alice.req").code, 0);
    assert_eq!(export("/mallory", "mallory.ndncert").code, 0);
    let issued =
        ["cert", "issue", "alice.req", "--signer", "/example", "-o", "alice-by-root.ndncert"];
    assert_eq!(place.run(&issued).code, 0);
    fs::write(place.path("in"), noise(30_000, 6)).unwrap();
    let _put = place.put(&["/example/alice/film", "in", "--key", "/example/alice"]);
    let get = |name: &str, anchor: &str| place.run(&["get", name, "-o", "out", "--anchor", anchor]);

    let absent = get("/example/alice/film", "root.ndncert");
    assert!(absent.code == 5 && absent.err.contains("/example/alice/KEY"), "{}", absent.err);
    let serve = |what: &[&str]| {
        let mut serve = Running::start(&mut place.command(&[&["cert", "serve"], what].concat()));
        serve.wait_for("ready: ");
        serve
    };
    let alone = serve(&["/example/alice"]);
    let unvouched = get("/example/alice/film", "root.ndncert");
    let says = "self-signed and not a trust anchor";
    assert!(unvouched.code == 1 && unvouched.err.contains(says), "{}", unvouched.err);
    drop(alone);
    // Segments name the certificate that their publisher had then.
    assert_eq!(place.run(&["cert", "install", "alice-by-root.ndncert"]).code, 0);
    let _song = place.put(&["/example/alice/song", "in", "--key", "/example/alice"]);
    let _other = place.put(&["/example/bob/song", "in", "--key", "/example/alice"]);
    let _serve = serve(&[]);
    for anchor in ["root.ndncert", "/example"] {
        let done = get("/example/alice/song", anchor);
        assert_eq!(done.code, 0, "{anchor}: {}", done.err);
        assert!(!done.out.contains("nobody checked"), "{}", done.out);
        assert!(fs::read(place.path("out")).unwrap() == noise(30_000, 6));
        fs::remove_file(place.path("out")).unwrap();
    }
    for (name, anchor, why) in [
        ("/example/alice/song", "mallory.ndncert", says),
        ("/example/bob/song", "root.ndncert", "may not sign"),
    ] {
        let refused = get(name, anchor);
        assert!(refused.code == 1 && refused.err.contains(why), "{name}: {}", refused.err);
        assert!(!place.path("out").exists(), "nothing untrusted is left behind");
    }
}

#[test]
fn peek_takes_what_is_below_a_name_when_asked_and_only_then() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    fs::write(place.path("in"), "hello").unwrap();
    let _put = place.put(&["/example/hello", "in", "--version", "7"]);
    let below = ["peek", "/example/hello", "--can-be-prefix", "--must-be-fresh"];
    assert_eq!(place.run(&below).out, "hello");
    assert_eq!(place.run(&["peek", "ndn:/example/hello/v=7/seg=0"]).out, "hello");
    let exact = place.run(&["peek", "/example/hello"]);
    assert_eq!(exact.code, 5);
    assert!(exact.err.contains("peek -P"), "{}", exact.err);
    let nowhere = place.run(&["peek", "/nowhere"]);
    assert!(nowhere.code == 5 && nowhere.err.contains("no route"), "{}", nowhere.err);
    let shown = place.json(&below);
    assert_eq!(shown["name"], "/example/hello/v=7/seg=0");
    assert_eq!(
        shape(&shown),
        "{content: string, content_type: number, final_block: string, freshness_ms: number, \
         integrity: bool, key_locator: null, name: string, signature_type: number}"
    );
}

#[test]
fn poke_answers_one_interest_and_gives_up_in_time() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    fs::write(place.path("note"), "a note").unwrap();
    let mut poke = place.start(&["poke", "/example/note", "note"]);
    support::wait_until("the route of poke", || {
        place.json(&["route", "list"]).as_array().unwrap().len() == 1
    });
    assert_eq!(place.run(&["peek", "/example/note"]).out, "a note");
    assert_eq!(poke.end(), Some(0));
    let late = place.run(&["poke", "/example/late", "note", "--timeout", "50"]);
    assert_eq!(late.code, 5, "{}", late.err);
}

#[test]
fn echo_requests_are_answered_with_who_replied_and_pings_beside_them() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let mut server = place.start(&["ping-server", "/example", "--echo"]);
    server.wait_for("ready: ");
    let pings = place.run(&["ping", "/example/deeper", "--echo", "-c", "2", "-i", "1", "--json"]);
    assert_eq!(pings.code, 0, "{}", pings.err);
    for event in &lines(&pings.out)[..2] {
        assert_eq!((&event["sender"], &event["code"]), (&"/example".into(), &2.into()), "{event}");
    }
    let text = place.run(&["ping", "/example", "--echo", "-c", "1"]).out;
    assert!(text.contains("sender=/example code=2 (an application answers)"), "{text}");
    assert_eq!(place.run(&["ping", "/example", "-c", "1"]).code, 0);
    let other = place.run(&["peek", "/example/other", "--lifetime", "100"]);
    assert_eq!(other.code, 5, "nothing else is answered: {}", other.out);
}

#[test]
fn pings_are_answered_under_the_names_of_ndnping() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let mut server = place.start(&["ping-server", "/example", "--size", "100"]);
    server.wait_for("ready: ");
    let pings = place.run(&["ping", "/example", "-c", "3", "-i", "1", "-n", "41", "--json"]);
    assert_eq!(pings.code, 0, "{}", pings.err);
    let events = lines(&pings.out);
    let sequences: Vec<_> = events[..3].iter().map(|e| e["sequence"].as_u64().unwrap()).collect();
    assert_eq!(sequences, [41, 42, 43]);
    assert_eq!(
        shape(&events[0]),
        "{event: string, prefix: string, rtt_ms: number, sequence: number}"
    );
    assert_eq!(
        shape(&events[3]),
        "{answered: number, event: string, nacks: number, \
         rtt_ms: {deviation: number, max: number, mean: number, min: number}, \
         sent: number, timeouts: number}"
    );
    // As ndnping asks, with its client identifier and without.
    assert_eq!(place.run(&["peek", "/example/ping/123"]).out.len(), 100);
    assert_eq!(place.run(&["peek", "/example/ping/me/124"]).out.len(), 100);
    let lost = place.run(&["ping", "/nowhere", "-c", "2", "-i", "1"]);
    assert_eq!(lost.code, 5);
    assert!(lost.err.contains("2 of 2 pings were not answered"), "{}", lost.err);
}

#[test]
fn what_json_promises_stays() {
    let place = Place::new();
    let _daemon = place.daemon(&["faces.udp.listen=127.0.0.1:0"]);
    fs::write(place.path("in"), "x").unwrap();
    let mut put = place.start(&["put", "/example/x", "in", "--json"]);
    put.wait_for("}\n");
    let ready: Value = serde_json::from_str(&put.out.text()).unwrap();
    assert_eq!(shape(&ready), "{bytes: number, event: string, name: string, segments: number}");
    let face = place.json(&["face", "create", "udp://127.0.0.1:7"]);
    assert_eq!(shape(&face), "{face: number, result: string, uri: string}");
    place.json(&["route", "add", "/far", "--via", "udp://127.0.0.1:7"]);
    for (args, promise) in [
        (
            &["get", "/example/x", "-o", "out"][..],
            "{bytes: number, gap_max_ms: number, goodput_bps: number, interests: number, marks: number, nacks: number, \
             name: string, retransmitted: number, rtt_max_ms: number, rtt_mean_ms: number, \
             rtt_min_ms: number, seconds: number, segments: number, timeouts: number, \
             unverified: number, window_cuts: number}",
        ),
        (
            &["face", "list"],
            "[{expires_ms: null, flags: [string], id: number, in_bytes: number, in_data: number, \
             in_interests: number, in_nacks: number, link: string, local: string, mtu: number, \
             out_bytes: number, out_data: number, out_interests: number, out_nacks: number, \
             persistency: string, remote: string, scope: string}]",
        ),
        (
            &["route", "list"],
            "[{cost: number, expires_ms: null, face: number, flags: [string], origin: string, \
             prefix: string}]",
        ),
        (&["fib", "list"], "[{next_hops: [{cost: number, face: number}], prefix: string}]"),
        (
            &["cs", "info"],
            "{capacity: number, entries: number, flags: [string], hits: number, misses: number}",
        ),
        (&["strategy", "list"], "[{prefix: string, strategy: string}]"),
        (
            &["status"],
            "{content_store: {capacity: number, entries: number, flags: [string], hits: number, \
             misses: number}, general: {cs_entries: number, fib_entries: number, in_data: number, \
             in_interests: number, in_nacks: number, measurements_entries: number, \
             name_tree_entries: number, now: string, out_data: number, out_interests: number, \
             out_nacks: number, pit_entries: number, satisfied_interests: number, \
             started: string, unsatisfied_interests: number, uptime_ms: number, version: string}}",
        ),
    ] {
        let mut value = place.json(args);
        // What a node of ours counts beside: keys come and go with what happened.
        value.as_object_mut().map(|fields| fields.remove("node"));
        assert_eq!(shape(&value), promise, "{args:?}");
    }
}

#[test]
fn groups_list_when_no_verb_is_typed() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    for group in ["face", "route", "fib", "strategy", "key", "cert"] {
        let bare = place.run(&[group]);
        assert_eq!(bare.code, 0, "{group}: {}", bare.err);
    }
    assert!(place.run(&["cs"]).out.starts_with("capacity"));
}

#[test]
fn refusals_of_the_node_end_with_4_and_say_what_to_do() {
    let place = Place::new();
    let mut daemon = place.daemon(&["faces.udp.listen=127.0.0.1:0"]);
    daemon.wait_for("kind=\"udp\"");
    let unknown = place.run(&["strategy", "set", "/a", "no-such-strategy"]);
    assert_eq!(unknown.code, 4, "{}", unknown.err);
    assert!(unknown.err.contains("onym strategy --help"), "{}", unknown.err);
    let closed = place.run(&["face", "create", "tcp://127.0.0.1:1"]);
    assert_eq!(closed.code, 4, "{}", closed.err);
    for (args, says) in [
        (&["face", "create", "192.0.2.1"][..], "scheme"),
        (&["face", "create", "gopher://192.0.2.1"], "unknown scheme gopher"),
    ] {
        let wrong = place.run(args);
        assert!(wrong.code == 2 && wrong.err.contains(says), "{args:?}: {}", wrong.err);
    }
    assert_eq!(place.run(&["face", "show", "9999"]).code, 5);
    assert_eq!(place.run(&["route", "add", "/a", "--via", "9999"]).code, 5);
    // Over the network there is no management, and that is what is said.
    let log = daemon.err.text();
    let line = log.lines().find(|l| l.contains("kind=\"udp\"")).unwrap();
    let address = line.split("address=").nth(1).unwrap().trim();
    let far = place.run(&["--node", &format!("udp://{address}"), "status"]);
    assert_eq!(far.code, 4, "{}", far.err);
    assert!(far.err.contains("from its own machine only"), "{}", far.err);
    let nobody = place.run(&["--node", "tcp://127.0.0.1:1", "status"]);
    assert_eq!(nobody.code, 3);
    assert!(nobody.err.contains("no node answers at tcp"), "{}", nobody.err);
}

#[test]
fn without_root_node_and_clients_meet_below_the_runtime_directory() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not root: every other test of this file shows it");
    }
    let place = Place::new();
    let nobody = 65_534;
    let program = place.path("onym");
    fs::copy(env!("CARGO_BIN_EXE_onym"), &program).unwrap();
    let as_nobody = |args: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.args(args).current_dir(place.dir()).env_remove("NDN_CLIENT_TRANSPORT");
        command.env("HOME", place.dir()).env("XDG_RUNTIME_DIR", place.dir());
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(place.dir(), Some(nobody), Some(nobody)).unwrap();
            command.uid(nobody).gid(nobody);
        }
        command
    };
    let no_network = ["faces.udp.listen=", "faces.tcp.listen=", "faces.websocket.listen="];
    let sets: Vec<&str> = no_network.iter().flat_map(|set| ["--set", set]).collect();
    let mut daemon = Running::start(&mut as_nobody(&[&["daemon"][..], &sets].concat()));
    daemon.wait_for("ready\n");
    assert!(place.path("onym/nfd.sock").exists() || place.path("onym").is_file());
    let status = Ended::of(as_nobody(&["status"]).output().unwrap());
    assert_eq!(status.code, 0, "{}", status.err);
}

#[test]
fn a_second_daemon_leaves_the_first_alone_and_says_whose_port_is_taken() {
    let place = Place::new();
    let mut first = place.daemon(&["faces.udp.listen=127.0.0.1:0"]);
    first.wait_for("kind=\"udp\"");
    let socket = format!("faces.unix.path={}", place.path("nfd.sock").display());
    let again = place.run(&["daemon", "--set", &socket]);
    assert_eq!(again.code, 1, "{}", again.err);
    assert!(again.err.contains("another forwarder answers on"), "{}", again.err);
    let log = first.err.text();
    let line = log.lines().find(|l| l.contains("kind=\"udp\"")).unwrap();
    let taken = line.split("address=").nth(1).unwrap().trim();
    let other = format!("faces.unix.path={}", place.path("other.sock").display());
    let udp = format!("faces.udp.listen={taken}");
    let tcp = "faces.tcp.listen=";
    let ws = "faces.websocket.listen=";
    let second = place.run(&["daemon", "--set", &other, "--set", &udp, "--set", tcp, "--set", ws]);
    assert_eq!(second.code, 1, "{}", second.err);
    for part in ["faces.udp.listen", taken, "in use", "onym doctor"] {
        assert!(second.err.contains(part), "{part}: {}", second.err);
    }
    assert_eq!(place.run(&["status"]).code, 0, "the first one goes on");
}

#[test]
fn a_wrong_configuration_names_file_key_value_and_what_is_allowed() {
    let place = Place::new();
    for (text, parts) in [
        ("[cs]\npackets_max = \"many\"\n", &["wrong.toml", "packets_max"][..]),
        ("[cs]\nno_such_key = 1\n", &["wrong.toml", "no_such_key"]),
        ("[cs]\npolicy = \"random\"\n", &["wrong.toml", "policy", "lru"]),
        ("[cs\n", &["wrong.toml", "line 1"]),
        ("[faces.udp]\nmtu = 1\n", &["wrong.toml", "faces.udp.mtu", "64"]),
    ] {
        fs::write(place.path("wrong.toml"), text).unwrap();
        let daemon = place.run(&["daemon", "--config", "wrong.toml"]);
        assert_eq!(daemon.code, 2, "{text}: {}", daemon.err);
        let check = place.run(&["check-config", "wrong.toml"]);
        assert_eq!(check.code, 1, "{text}: {}", check.err);
        for part in parts {
            assert!(daemon.err.contains(part), "{text}: {part}: {}", daemon.err);
            assert!(check.err.contains(part), "{text}: {part}: {}", check.err);
        }
    }
    fs::write(place.path("good.toml"), "shards = 2\n[cs]\npackets_max = 10\n").unwrap();
    let good = place.json(&["check-config", "good.toml"]);
    assert_eq!((&good["good"], &good["shards"]), (&true.into(), &2.into()));
    let set = place.run(&["daemon", "--set", "cs.packets_max=some"]);
    assert!(set.code == 2 && set.err.contains("cs.packets_max"), "{}", set.err);
}

#[test]
fn the_doctor_finds_a_healthy_node_and_a_port_that_somebody_else_has() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let socket = format!("faces.unix.path={}", place.path("nfd.sock").display());
    let off = ["faces.udp.listen=", "faces.tcp.listen=", "faces.websocket.listen="];
    let mut args = vec!["doctor", "--json", "--set", &socket];
    args.extend(off.iter().flat_map(|set| ["--set", set]));
    let healthy = place.run(&args);
    assert_eq!(healthy.code, 0, "{}{}", healthy.out, healthy.err);
    let report: Value = serde_json::from_str(&healthy.out).unwrap();
    let find = |report: &Value, check: &str| {
        let checks = report["checks"].as_array().unwrap();
        checks.iter().find(|c| c["check"] == check).unwrap().clone()
    };
    assert_eq!(find(&report, "node")["result"], "ok");
    assert_eq!(find(&report, "unix socket")["result"], "ok");
    for check in ["receive buffer", "mtu", "clock", "privileges", "descriptors", "keys"] {
        assert_ne!(find(&report, check)["result"], "failed", "{check}");
    }
    let held = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = format!("faces.udp.listen={}", held.local_addr().unwrap());
    args.extend(["--set", &taken]);
    let ill = place.run(&args);
    assert_eq!(ill.code, 1, "{}", ill.out);
    let report: Value = serde_json::from_str(&ill.out).unwrap();
    let udp = find(&report, "udp");
    assert_eq!((&udp["result"], &report["result"]), (&"failed".into(), &"failed".into()));
    assert!(udp["mend"].as_str().unwrap().contains("ss -lnup"), "{udp}");
    assert!(ill.err.contains("1 of"), "{}", ill.err);
}

#[test]
fn the_log_is_shown_and_made_louder_while_the_node_runs() {
    let place = Place::new();
    let mut daemon = place.daemon(&[]);
    let log = place.json(&["log"]);
    assert_eq!(shape(&log), "{filter: string, lines: [{seq: number, text: string}]}");
    assert_eq!(log["filter"], "info");
    assert!(place.run(&["log", "-n", "1000"]).out.contains("listening on the Unix socket"));
    assert_eq!(place.run(&["log", "-n", "1"]).out.lines().count(), 1);
    let louder = place.run(&["log", "--filter", "info,onym_node=debug"]);
    assert_eq!(louder.code, 0, "{}", louder.err);
    // The answer to the question before is fresh for a second.
    support::wait_until("the new filter", || {
        place.json(&["log"])["filter"].as_str().unwrap().contains("onym_node=debug")
    });
    daemon.wait_for("log filter changed");
    let wrong = place.run(&["log", "--filter", "verbose"]);
    assert_eq!(wrong.code, 4, "{}", wrong.err);
    assert!(wrong.err.contains("error, warn, info, debug, trace"), "{}", wrong.err);
    let mut follower = place.start(&["log", "-f", "-n", "1000"]);
    follower.wait_for("listening on the Unix socket");
    assert_eq!(place.run(&["log", "--filter", "warn,onym=info"]).code, 0);
    follower.wait_for("warn,onym=info");
}
