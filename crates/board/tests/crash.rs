//! Processes that are killed: the other side goes on.

use onym_board::{BoardError, Config, Door, Publisher, Reception, Subscriber, connect};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(60);
const ROLE: &str = "ONYM_BOARD_TEST_ROLE";
const DOOR: &str = "ONYM_BOARD_TEST_DOOR";

/// This test again, as another process with a role.
fn start(role: &str, door: &Path) -> Child {
    Command::new(std::env::current_exe().expect("the system has room"))
        .args(["--exact", "role", "--nocapture"])
        .env(ROLE, role)
        .env(DOOR, door)
        .stdout(Stdio::null())
        .spawn()
        .expect("the system has room")
}

fn killed(mut child: Child) {
    child.kill().expect("the system has room");
    child.wait().expect("the system has room");
}

fn publisher(payload_max: usize) -> Publisher {
    Publisher::new(&Config { payload_max, depth: 7, subscribers_max: 2 })
        .expect("the system has room")
}

fn wait_for_subscribers(door: &Door, publisher: &mut Publisher, count: usize) {
    let end = Instant::now() + LONG;
    while publisher.subscribers() < count {
        assert!(Instant::now() < end, "nobody came");
        door.admit(publisher).expect("the system has room");
        std::thread::yield_now();
    }
}

/// What the other process does; nothing when this is an ordinary run of the tests.
#[test]
fn role() {
    let (Ok(role), Some(path)) = (std::env::var(ROLE), std::env::var_os(DOOR)) else { return };
    let path = PathBuf::from(path);
    match role.as_str() {
        "publisher" => {
            let door = Door::open(&path).unwrap();
            let mut publisher = publisher(100);
            wait_for_subscribers(&door, &mut publisher, 1);
            for n in 0..5 {
                publisher.publish(&[n; 100]).unwrap();
            }
            // Killed in the middle of writing the sixth.
            let mut loan = publisher.loan(100).unwrap();
            loan.write(0, &[6; 50]);
            std::thread::park();
        }
        _ => {
            let mut subscriber = connect(&path, LONG).unwrap();
            let held = subscriber.receive_within(LONG).unwrap();
            assert!(matches!(held, Some(Reception::Item(_))));
            std::fs::write(path.with_extension("holds"), []).unwrap();
            std::thread::park();
        }
    }
}

fn numbers(subscriber: &mut Subscriber, count: usize) -> Vec<u8> {
    (0..count)
        .map(|_| match subscriber.receive_within(LONG).expect("an honest publisher") {
            Some(Reception::Item(item)) => item.to_vec()[0],
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn what_a_killed_publisher_published_is_read_and_then_its_end_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("board");
    let child = start("publisher", &path);
    let end = Instant::now() + LONG;
    let mut subscriber = loop {
        match connect(&path, LONG) {
            Ok(subscriber) => break subscriber,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        std::thread::yield_now();
    };
    assert_eq!(numbers(&mut subscriber, 2), [0, 1]);
    // All five are there before it dies.
    assert!(matches!(subscriber.receive_within(LONG), Ok(Some(Reception::Item(_)))));
    let end = Instant::now() + LONG;
    let mut rest = numbers(&mut subscriber, 2);
    killed(child);
    while Instant::now() < end {
        match subscriber.receive_within(LONG) {
            Ok(Some(Reception::Item(item))) => rest.push(item.to_vec()[0]),
            Err(BoardError::Ended) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(rest, [3, 4], "the sixth was never published");
    // Another publisher takes the place.
    let door = Door::open(&path).unwrap();
    let mut publisher = publisher(100);
    let knocking = std::thread::spawn(move || connect(&path, LONG).unwrap());
    wait_for_subscribers(&door, &mut publisher, 1);
    publisher.publish(&[9]).unwrap();
    assert_eq!(numbers(&mut knocking.join().unwrap(), 1), [9]);
}

#[test]
fn a_subscriber_killed_with_an_item_in_its_hand_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("board");
    let door = Door::open(&path).unwrap();
    let mut publisher = publisher(100);
    let child = start("subscriber", &path);
    wait_for_subscribers(&door, &mut publisher, 1);
    publisher.publish(&[1; 100]).unwrap();
    let end = Instant::now() + LONG;
    while !path.with_extension("holds").exists() {
        assert!(Instant::now() < end, "it never got the item");
        std::thread::yield_now();
    }
    for n in 0..100 {
        publisher.publish(&[n; 100]).unwrap();
    }
    killed(child);
    assert!(publisher.wait_for_readers(0, LONG).unwrap());
    assert_eq!(publisher.subscribers(), 0);
    let (first, second) = (path.clone(), path.clone());
    let knocking = [first, second].map(|p| std::thread::spawn(move || connect(&p, LONG).unwrap()));
    wait_for_subscribers(&door, &mut publisher, 2);
    publisher.publish(&[7]).unwrap();
    for knocking in knocking {
        assert_eq!(numbers(&mut knocking.join().unwrap(), 1), [7]);
    }
}
