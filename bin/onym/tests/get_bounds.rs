//! `onym get` against its producer, its user and its disk.

#![allow(clippy::unwrap_used)]

mod support;

use onym_client::blocking::Client;
use onym_client::metadata::Metadata;
use onym_client::{Answer, ClientOptions, Incoming, RouteOptions};
use onym_wire::data::DataBuilder;
use onym_wire::{NackReason, Name};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use support::{Place, Running, wait_until};

/// A producer in the test, for all of `/hostile`; it ends with the test.
struct Producer {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Producer {
    fn new(
        place: &Place,
        answer: impl FnMut(&Incoming, &mut Vec<u8>) -> Answer + Send + 'static,
    ) -> Self {
        let options = ClientOptions { node: Some(place.node()), ..ClientOptions::default() };
        let mut client = Client::open(options).unwrap();
        let name: Name = "/hostile".parse().unwrap();
        client.respond(name.clone(), Box::new(answer)).unwrap();
        client.register(name, RouteOptions::default()).unwrap();
        let over = Arc::new(AtomicBool::new(false));
        let end = Arc::clone(&over);
        let thread = thread::spawn(move || {
            let stop = &mut || end.load(Ordering::Relaxed);
            let _ = client.run(Duration::from_millis(20), stop, &mut |_| {});
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// Segments without end; `last` says which one each calls the last.
fn endless(last: impl Fn(u64) -> Option<u64>) -> impl FnMut(&Incoming, &mut Vec<u8>) -> Answer {
    move |incoming, out| {
        let interest = incoming.interest();
        let Some(asked) = interest.name.last().and_then(|c| c.as_segment()) else {
            return Answer::Nothing;
        };
        let mut end = Name::new();
        if let Some(last) = last(asked) {
            end.append_segment(last);
        }
        let data = DataBuilder {
            final_block_id: end.as_ref().last(),
            ..DataBuilder::new(interest.name, &[7; 8000])
        };
        onym_crypto::signer::write_digest_data(&data, out);
        Answer::Written
    }
}

/// What lies in the place beside the node's socket.
fn files(place: &Place) -> Vec<String> {
    let names = fs::read_dir(place.dir()).unwrap().flatten();
    let names = names.map(|f| f.file_name().to_string_lossy().into_owned());
    names.filter(|n| !n.starts_with("nfd.sock")).collect()
}

#[test]
fn objects_without_an_end_are_refused_in_time_and_leave_nothing() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.packets_max=0"]);
    let get = |name: &str, more: &[&str]| {
        let ended = place.run(&[&["get", name, "-o", "out"], more].concat());
        assert_eq!(ended.code, 4, "{name}: {}", ended.err);
        assert!(files(&place).is_empty(), "{:?}", files(&place));
        ended.err
    };
    let producer = Producer::new(&place, endless(|_| None));
    let error = get("/hostile/v=1", &["--size-max", "20M"]);
    assert!(error.contains("larger than 20000000 octets"), "{error}");
    assert!(error.contains("--size-max"), "{error}");
    drop(producer);
    let producer = Producer::new(&place, endless(|n| Some(n + 10)));
    let error = get("/hostile/v=2", &[]);
    assert!(error.contains("moved"), "{error}");
    drop(producer);
    let _producer = Producer::new(&place, endless(|_| Some(u64::MAX)));
    let error = get("/hostile/v=3", &[]);
    assert!(error.contains("18446744073709551615"), "{error}");
}

#[test]
fn congestion_without_end_ends_when_the_retries_do() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let _producer = Producer::new(&place, |_, _| Answer::Nack(NackReason::CONGESTION));
    let ended = place.run(&["get", "/hostile/v=1", "-o", "out", "--retries", "3"]);
    assert_eq!(ended.code, 5, "{}", ended.err);
    assert!(ended.err.contains("after 4 Interests"), "{}", ended.err);
}

#[test]
fn a_redirect_outside_the_name_asked_for_is_followed_only_when_that_is_said() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    fs::write(place.path("in"), "elsewhere").unwrap();
    let _put = place.put(&["/elsewhere", "in", "--version", "1"]);
    let _producer = Producer::new(&place, |incoming: &Incoming, out: &mut Vec<u8>| {
        let metadata = Metadata {
            name: "/elsewhere/v=1".parse().unwrap(),
            last_segment: None,
            segment_size: None,
            size: None,
        };
        let mut content = Vec::new();
        metadata.write(&mut content);
        let mut name = incoming.interest().name.to_name();
        name.append_version(1);
        onym_crypto::signer::write_digest_data(&DataBuilder::new(name.as_ref(), &content), out);
        Answer::Written
    });
    let ended = place.run(&["get", "/hostile/page", "-o", "out"]);
    assert_eq!(ended.code, 4, "{}{}", ended.out, ended.err);
    for says in ["/elsewhere/v=1", "--follow"] {
        assert!(ended.err.contains(says), "{}", ended.err);
    }
    let ended = place.run(&["get", "/hostile/page", "-o", "out", "--follow"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(fs::read(place.path("out")).unwrap(), b"elsewhere");
}

/// A `get` that is under way and takes long.
fn slow_get(place: &Place) -> Running {
    let get = ["get", "/hostile/v=9", "-o", "out", "--pipeline", "fixed", "--window", "1"];
    let get = place.start(&get);
    let open = || fs::read_dir(format!("/proc/{}/fd", get.pid())).into_iter().flatten().flatten();
    wait_until("the fetch to be under way", || {
        open().filter_map(|f| fs::metadata(f.path()).ok()).any(|m| m.is_file() && m.len() > 1 << 20)
    });
    get
}

#[test]
fn a_fetch_that_is_ended_leaves_no_half_file_and_what_was_there() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.packets_max=0"]);
    let _producer = Producer::new(&place, endless(|_| None));
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        fs::write(place.path("out"), "before").unwrap();
        let mut get = slow_get(&place);
        kill_process(Pid::from_raw(get.pid().cast_signed()).unwrap(), signal).unwrap();
        let code = get.end();
        if signal != Signal::KILL {
            assert_eq!(code, Some(130), "{signal:?}: {}", get.err.text());
        }
        assert_eq!(files(&place), ["out"], "{signal:?}");
        assert_eq!(fs::read(place.path("out")).unwrap(), b"before");
    }
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    fs::write(place.path("in"), "new").unwrap();
    let _put = place.put(&["/example/page", "in"]);
    fs::write(place.path("out"), "old").unwrap();
    fs::set_permissions(place.path("out"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(place.run(&["get", "/example/page", "-o", "out"]).code, 0);
    assert_eq!(fs::read(place.path("out")).unwrap(), b"new");
    let mode = fs::metadata(place.path("out")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{mode:o}");
}

#[test]
fn a_put_that_is_killed_leaves_no_route_and_the_name_is_free() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.packets_max=0"]);
    fs::write(place.path("in"), vec![1; 100_000]).unwrap();
    let mut put = place.put(&["/example/film", "in"]);
    put.kill();
    wait_until("the route to go", || place.json(&["route", "list"]).as_array().unwrap().is_empty());
    assert_eq!(place.run(&["get", "/example/film", "-o", "out"]).code, 5);
    assert_eq!(files(&place), ["in"]);
    let _put = place.put(&["/example/film", "in"]);
    assert_eq!(place.run(&["get", "/example/film", "-o", "out"]).code, 0);
}
