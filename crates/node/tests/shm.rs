//! Applications that exchange packets with a node by shared memory.

#![allow(clippy::unwrap_used)]

mod support;

use onym_face::{Face, shm, unix};
use onym_frame::{BufPool, TxQueue};
use onym_node::NodeHandle;
use onym_node::config::Config;
use onym_wire::mgmt::Scope;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{App, DEADLINE, quiet, start};

struct Here {
    _folder: tempfile::TempDir,
    path: PathBuf,
    node: NodeHandle,
}

fn node_with(change: impl FnOnce(&mut Config)) -> Here {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nfd.sock");
    let mut config = quiet(1);
    config.faces.unix.path.0 = path.display().to_string();
    config.faces.shm.ring_bytes = 64 << 10;
    change(&mut config);
    Here { _folder: folder, path, node: start(config) }
}

fn connect(path: &Path) -> shm::ShmFace {
    let mut face = shm::connect(path, 0).unwrap();
    until("an answer of the node", || {
        face.flush(&mut TxQueue::new(0)).unwrap();
        !face.is_connecting()
    });
    face
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < end, "{what} did not come");
        std::thread::yield_now();
    }
}

/// The node's faces over shared memory.
fn faces(here: &Here) -> Vec<onym_node::mgmt::host::FaceView> {
    let mut faces = here.node.faces().unwrap();
    let uri = format!("shm://{}", here.path.display());
    faces.retain(|face| face.local_uri == uri);
    faces
}

fn queue_full(here: &Here) -> u64 {
    let unsent = here.node.snapshot().unwrap().unsent();
    unsent.iter().find(|(reason, _)| *reason == "queue_full").map_or(0, |(_, count)| *count)
}

#[test]
fn applications_exchange_packets_through_a_node_by_shared_memory() {
    let here = node_with(|_| ());
    let producer = connect(&here.path);
    until("the face", || faces(&here).len() == 1);
    let view = faces(&here).remove(0);
    assert_eq!(view.scope, Scope::Local);
    assert!(view.remote_uri.starts_with("fd://"), "{}", view.remote_uri);
    here.node.route("/a", view.id, 0).unwrap();
    let mut producer = App::new(producer);
    let mut by_ring = App::new(connect(&here.path));
    let mut by_socket = App::new(unix::connect(&here.path).unwrap());
    for (i, consumer) in [&mut by_ring, &mut by_socket].into_iter().enumerate() {
        for n in 0..200 {
            let name = format!("/a/{i}/{n}");
            consumer.interest(&name);
            assert_eq!(producer.take_interest().0.to_string(), name);
            producer.data(&name, &vec![7; 40 * n]);
            assert_eq!(consumer.take_data().1.len(), 40 * n);
        }
    }
    assert!(here.node.stop(), "nothing was left to send");
}

#[test]
fn an_application_that_ends_or_lies_loses_its_face_and_others_do_not_notice() {
    let here = node_with(|config| config.faces.shm.count_max = 1);
    let app = connect(&here.path);
    until("the face", || faces(&here).len() == 1);
    drop(app);
    until("the end of the face", || faces(&here).is_empty());
    let mut app = App::new(connect(&here.path));
    app.send(&[0x64, 0xfe, 0xff, 0xff, 0xff, 0xff]);
    assert!(app.is_closed_by_node(), "what it sent is no packet");
    until("the end of the face", || faces(&here).is_empty());
    App::new(connect(&here.path)).interest("/place/is/free");
}

#[test]
fn an_application_that_reads_nothing_loses_what_its_ring_and_queue_do_not_hold() {
    let here = node_with(|config| config.faces.queue_bytes_max = 64 << 10);
    let deaf = connect(&here.path);
    until("the face", || faces(&here).len() == 1);
    here.node.route("/a", faces(&here)[0].id, 0).unwrap();
    let mut consumer = App::new(here.node.attach(Scope::Local).unwrap().1);
    let long = "x".repeat(2000);
    for n in 0..200 {
        consumer.interest(&format!("/a/{long}/{n}"));
    }
    until("a drop", || queue_full(&here) > 0);
    // And when it reads again, what waited comes.
    let mut app = App::new(deaf);
    let mut got = 0;
    while let Some(_frame) = app.try_frame(Duration::from_millis(300)).unwrap() {
        got += 1;
    }
    assert!((30..200).contains(&got), "{got} of 200");
}

#[test]
fn a_node_without_shared_memory_says_so() {
    let here = node_with(|config| config.faces.shm.enabled = false);
    let mut face = shm::connect(&here.path, 0).unwrap();
    let mut told = None;
    until("a refusal", || {
        told = face.receive(&mut BufPool::new(onym_face::CHUNK_LEN, 1), 1, &mut Vec::new()).err();
        told.is_some()
    });
    assert!(told.unwrap().to_string().contains("shared memory is off here"));
    let mut app = App::new(unix::connect(&here.path).unwrap());
    app.interest("/the/stream/works");
}
