//! The blocking shell over real faces, a consumer and a producer face to face.

#![allow(clippy::unwrap_used)]

use onym_client::blocking::{Client, Watch};
use onym_client::serve::{Object, ServeOptions};
use onym_client::{Error, FetchOptions, Request, Unanswered};
use onym_face::{Face, mem, unix};
use onym_wire::mgmt::Scope;
use onym_wire::name::Name;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Runs a producer on `face` until the other end is closed or `stop` is set.
fn produce(face: Box<dyn Face>, content: Vec<u8>, stop: Arc<AtomicBool>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        let mut client = Client::over(face);
        let object = Object::new(name("/f"), content, ServeOptions::new(1)).unwrap();
        client.respond(name("/f"), Box::new(object)).unwrap();
        let done = client.run(
            Duration::from_millis(20),
            &mut || stop.load(Ordering::Relaxed),
            &mut |_| {},
        );
        assert!(matches!(done, Ok(()) | Err(Error::Disconnected(_))), "{done:?}");
    })
}

fn content(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i / 7 % 251) as u8).collect()
}

fn fetch_over(a: Box<dyn Face>, b: Box<dyn Face>, len: usize) {
    let stop = Arc::new(AtomicBool::new(false));
    let producer = produce(b, content(len), Arc::clone(&stop));
    let mut client = Client::over(a);
    let mut got = Vec::new();
    let start = Instant::now();
    let report = client
        .fetch(name("/f"), FetchOptions::default(), &mut got, &mut |event| {
            assert!(!matches!(event, Watch::Notice(_)));
        })
        .unwrap();
    let took = start.elapsed();
    println!("{} octets in {took:?}, {:?}", got.len(), report.counters);
    assert!(got == content(len));
    assert_eq!((report.bytes, report.unverified), (len as u64, 0));
    stop.store(true, Ordering::Relaxed);
    producer.join().unwrap();
}

#[test]
fn a_file_goes_over_memory_faces() {
    let (a, b) = mem::pair(Scope::Local).unwrap();
    fetch_over(Box::new(a), Box::new(b), 3_000_000);
}

#[test]
fn a_file_goes_over_unix_sockets() {
    let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
    let (a, b) = (unix::from_stream(a).unwrap(), unix::from_stream(b).unwrap());
    fetch_over(Box::new(a), Box::new(b), 20_000_000);
}

#[test]
fn a_silent_node_is_a_timeout_and_a_closed_one_an_end() {
    let (a, b) = mem::pair(Scope::Local).unwrap();
    let mut client = Client::over(Box::new(a));
    let lifetime = Duration::from_millis(50);
    let request = Request { lifetime, ..Request::new(name("/nobody")) };
    let error = client.request(&request).unwrap_err();
    assert!(matches!(error, Error::Unanswered { why: Unanswered::Timeout, .. }), "{error}");
    drop(b);
    let request = Request::new(name("/nobody"));
    let error = client.request(&request).unwrap_err();
    assert!(matches!(error, Error::Unanswered { why: Unanswered::Disconnected, .. }), "{error}");
}
