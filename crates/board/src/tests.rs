use super::*;
use crate::grant::{self, Message};
use crate::layout::{Entry, FLOOR, Layout, TAIL};
use crate::seat::HEAD;
use onym_sys::shm::SharedMemory;
use onym_sys::words::{WordMemory, WordView};
use proptest::prelude::*;
use rustix::fd::{AsFd, OwnedFd};
use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

fn publisher(payload_max: usize, depth: usize, subscribers_max: usize) -> Publisher {
    Publisher::new(&Config { payload_max, depth, subscribers_max }).unwrap()
}

fn admitted(publisher: &mut Publisher) -> Subscriber {
    let (ours, theirs) = UnixStream::pair().unwrap();
    publisher.admit(ours.into()).unwrap();
    Subscriber::attach(theirs.into(), LONG).unwrap()
}

/// What can be received now: first octets of items, and how many were missed.
fn drain(subscriber: &mut Subscriber) -> (Vec<u8>, u64) {
    let (mut firsts, mut missed) = (Vec::new(), 0);
    while let Some(reception) = subscriber.receive().unwrap() {
        match reception {
            Reception::Item(item) => firsts.push(item.to_vec()[0]),
            Reception::Missed(count) => missed += count,
        }
    }
    (firsts, missed)
}

#[test]
fn what_is_written_once_is_read_in_place_by_everybody() {
    let mut publisher = publisher(1000, 7, 3);
    let mut subscribers: Vec<_> = (0..3).map(|_| admitted(&mut publisher)).collect();
    for (number, len) in [(0, 1000), (1, 0), (2, 13)] {
        let payload = vec![number; len];
        assert_eq!(publisher.publish(&payload).unwrap(), u64::from(number));
        for subscriber in &mut subscribers {
            let Some(Reception::Item(item)) = subscriber.receive().unwrap() else {
                panic!("an item was published");
            };
            assert_eq!((item.number(), item.len()), (u64::from(number), len));
            assert_eq!(item.to_vec(), payload);
            assert_eq!(item.words().len(), len.div_ceil(8));
        }
    }
    assert!(subscribers.iter_mut().all(|s| s.receive().unwrap().is_none()));
}

#[test]
fn nothing_published_before_the_first_receive_is_lost_silently() {
    let mut publisher = publisher(8, 7, 1);
    publisher.publish(&[99]).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    publisher.admit(ours.into()).unwrap();
    for n in 0..7 {
        publisher.publish(&[n]).unwrap();
    }
    let mut subscriber = Subscriber::attach(theirs.into(), LONG).unwrap();
    assert_eq!(drain(&mut subscriber), ((0..7).collect(), 0));
    for n in 0..100 {
        publisher.publish(&[n]).unwrap();
    }
    let (received, missed) = drain(&mut subscriber);
    assert_eq!(received.len() as u64 + missed, 100);
    assert_eq!(received, (100 - received.len() as u8..100).collect::<Vec<_>>());
    assert!(received.len() >= 3, "it goes on in the middle of what is there");
    assert_eq!(subscriber.missed(), missed);
}

#[test]
fn an_item_in_the_hand_stays_what_it_was_however_much_is_published() {
    let mut publisher = publisher(64, 3, 2);
    let (mut holder, mut other) = (admitted(&mut publisher), admitted(&mut publisher));
    publisher.publish(&[42; 64]).unwrap();
    let Some(Reception::Item(held)) = holder.receive().unwrap() else { panic!("published") };
    for n in 0..200 {
        publisher.publish(&[n; 64]).unwrap();
        drain(&mut other);
        assert_eq!(held.to_vec(), [42; 64]);
    }
    drop(held);
    assert_eq!(other.missed(), 0, "who is in time misses nothing because of who is not");
    let (received, missed) = drain(&mut holder);
    assert_eq!(received.len() as u64 + missed, 200);
}

#[test]
fn all_subscribers_may_hold_different_items_and_publishing_goes_on() {
    let mut publisher = publisher(8, 1, 5);
    let mut subscribers: Vec<_> = (0..5).map(|_| admitted(&mut publisher)).collect();
    let mut held = Vec::new();
    for (n, subscriber) in (0..).zip(&mut subscribers) {
        for m in 0..3 {
            publisher.publish(&[n * 3 + m]).unwrap();
        }
        let Some(Reception::Missed(_)) = subscriber.receive().unwrap() else {
            panic!("the ring holds one, three were published")
        };
        publisher.publish(&[100 + n]).unwrap();
        let Some(Reception::Item(item)) = subscriber.receive().unwrap() else { panic!("one") };
        held.push((item.to_vec(), item));
    }
    for n in 0..100 {
        publisher.publish(&[n]).unwrap();
        assert!(held.iter().all(|(octets, item)| item.to_vec() == *octets));
    }
}

#[test]
fn a_publisher_that_waits_makes_nobody_miss_anything() {
    for (depth, count) in [(15, 20_000), (3, 5000), (1, 5000)] {
        all_of_so_many_are_received(depth, count);
    }
}

fn all_of_so_many_are_received(depth: usize, count: u64) {
    let mut publisher = publisher(800, depth, 4);
    let subscribers: Vec<_> = (0..4).map(|_| admitted(&mut publisher)).collect();
    std::thread::scope(|scope| {
        let readers: Vec<_> = subscribers
            .into_iter()
            .map(|mut subscriber| {
                scope.spawn(move || {
                    let mut sum = 0_u64;
                    for expected in 0..count {
                        match subscriber.receive_within(LONG).unwrap() {
                            Some(Reception::Item(item)) => {
                                assert_eq!(item.number(), expected);
                                assert!(item.words().iter().all(|word| word == expected));
                                sum += item.words().iter().sum::<u64>();
                            }
                            other => panic!("{other:?} instead of item {expected}"),
                        }
                    }
                    let end = subscriber.receive_within(LONG);
                    assert!(matches!(end, Err(BoardError::Ended)), "{end:?}");
                    sum
                })
            })
            .collect();
        for n in 0..count {
            assert!(publisher.wait_for_room(LONG).unwrap());
            let mut loan = publisher.loan(800).unwrap();
            (0..100).for_each(|i| loan.write_word(i, n));
            loan.publish();
        }
        assert!(publisher.wait_for_readers(0, LONG).unwrap());
        drop(publisher);
        for reader in readers {
            assert_eq!(reader.join().unwrap(), 100 * (0..count).sum::<u64>());
        }
    });
}

#[test]
fn while_subscribers_keep_up_two_slots_are_written_in_turns() {
    let mut publisher = publisher(8, 15, 1);
    let (ours, theirs) = UnixStream::pair().unwrap();
    publisher.admit(ours.into()).unwrap();
    // A subscriber made by hand, which can see which slots are used.
    let (layout, first, memory, seat) = grant::hear(&theirs).unwrap().unwrap();
    let memory = WordView::map(&memory, layout.check().unwrap()).unwrap();
    let seat = SharedMemory::map(&seat, 0).unwrap();
    let mut publish_and_see = |n: u64, head: u64| {
        publisher.publish(&n.to_le_bytes()).unwrap();
        seat.words()[HEAD].store(head, Release);
        Entry::of(memory.load(layout.entry(n), Acquire)).slot
    };
    let distinct = |slots: Vec<u32>| slots.into_iter().collect::<BTreeSet<_>>().len();
    let head = |n| first + n + 1;
    let in_time: Vec<u32> = (0..100).map(|n| publish_and_see(n, head(n))).collect();
    assert_eq!(distinct(in_time), 2);
    // Who stays behind keeps every one that it has not read.
    let behind: Vec<u32> = (100..115).map(|n| publish_and_see(n, head(99))).collect();
    assert_eq!(distinct(behind), 15);
}

#[test]
fn numbers_received_and_missed_are_all_numbers_while_nobody_waits() {
    const COUNT: u64 = 50_000;
    let mut publisher = publisher(256, 7, 3);
    let subscribers: Vec<_> = (0..3).map(|_| admitted(&mut publisher)).collect();
    std::thread::scope(|scope| {
        for mut subscriber in subscribers {
            scope.spawn(move || {
                let (mut next, mut received) = (0, 0);
                loop {
                    match subscriber.receive_within(LONG) {
                        Ok(Some(Reception::Item(item))) => {
                            assert_eq!(item.number(), next);
                            assert!(item.words().iter().all(|word| word == next), "torn");
                            next += 1;
                            received += 1;
                        }
                        Ok(Some(Reception::Missed(count))) => next += count,
                        Err(BoardError::Ended) => break,
                        other => panic!("{other:?}"),
                    }
                }
                assert_eq!(next, COUNT);
                assert_eq!(received + subscriber.missed(), COUNT);
            });
        }
        for n in 0..COUNT {
            let mut loan = publisher.loan(256).unwrap();
            (0..32).for_each(|i| loan.write_word(i, n));
            loan.publish();
        }
        drop(publisher);
    });
}

#[test]
fn a_loan_that_is_dropped_publishes_nothing_and_too_much_is_refused() {
    let mut publisher = publisher(10, 3, 1);
    let mut subscriber = admitted(&mut publisher);
    for _ in 0..100 {
        publisher.loan(10).unwrap().write(2, &[1; 8]);
    }
    assert_eq!(publisher.published(), 0);
    assert!(subscriber.receive().unwrap().is_none());
    assert!(matches!(publisher.publish(&[0; 11]), Err(BoardError::TooLong { most: 10, .. })));
    assert!(matches!(publisher.loan(usize::MAX), Err(BoardError::TooLong { .. })));
}

#[test]
fn who_leaves_makes_room_and_who_comes_when_all_seats_are_taken_is_told() {
    let mut publisher = publisher(10, 3, 2);
    let first = admitted(&mut publisher);
    let mut second = admitted(&mut publisher);
    let (ours, theirs) = UnixStream::pair().unwrap();
    assert!(matches!(publisher.admit(ours.into()), Err(BoardError::Full(2))));
    let refused = Subscriber::attach(theirs.into(), LONG);
    assert!(matches!(refused, Err(BoardError::Refused(_))), "{refused:?}");
    drop(first);
    let mut third = admitted(&mut publisher);
    publisher.publish(&[5]).unwrap();
    assert_eq!(drain(&mut second), (vec![5], 0));
    assert_eq!(drain(&mut third), (vec![5], 0));
    assert_eq!(publisher.subscribers(), 2);
}

#[test]
fn a_publisher_waits_for_nobody_who_is_gone() {
    let mut publisher = publisher(10, 3, 2);
    let (gone, mut there) = (admitted(&mut publisher), admitted(&mut publisher));
    publisher.publish(&[1]).unwrap();
    drain(&mut there);
    drop(gone);
    assert!(publisher.wait_for_readers(0, LONG).unwrap());
    assert_eq!(publisher.subscribers(), 1);
    publisher.publish(&[2]).unwrap();
    assert!(!publisher.wait_for_readers(0, Duration::from_millis(20)).unwrap(), "it has not read");
}

#[test]
fn a_subscriber_that_claims_what_cannot_be_harms_itself_only() {
    let mut publisher = publisher(10, 3, 3);
    let mut honest = admitted(&mut publisher);
    let (ours, theirs) = UnixStream::pair().unwrap();
    publisher.admit(ours.into()).unwrap();
    let (_, _, _, seat) = grant::hear(&theirs).unwrap().unwrap();
    let page = SharedMemory::map(&seat, 0).unwrap();
    let mut seed = 0x5eed_u64;
    for n in 0..1000_u64 {
        for word in &page.words()[..8] {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(n);
            word.store(if seed >> 63 == 0 { seed >> 60 } else { seed }, Relaxed);
        }
        publisher.publish(&[n as u8]).unwrap();
        assert_eq!(drain(&mut honest), (vec![n as u8], 0));
    }
    page.words()[HEAD].store(u64::MAX, Relaxed);
    assert!(publisher.wait_for_readers(0, LONG).unwrap());
    assert_eq!((publisher.subscribers(), publisher.liars()), (1, 1));
}

/// A publisher that writes what it likes.
fn liar(layout: Layout) -> (WordMemory, SharedMemory, OwnedFd, Subscriber) {
    let (memory, fd) = WordMemory::create("onym-test", layout.check().unwrap()).unwrap();
    let (page, seat) = SharedMemory::create("onym-test", 0).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let grant = Message::Grant { layout, first: 0 };
    grant::send(&ours, &grant, &[fd.as_fd(), seat.as_fd()]).unwrap();
    let subscriber = Subscriber::attach(theirs.into(), LONG).unwrap();
    (memory, page, ours.into(), subscriber)
}

const SMALL: Layout = Layout { entries: 4, slots: 6, slot_words: 8 };

#[test]
fn an_entry_outside_of_the_memory_is_not_followed() {
    for entry in [
        Entry { slot: 6, octets: 1 },
        Entry { slot: u32::MAX, octets: 1 },
        Entry { slot: 0, octets: 65 },
        Entry { slot: 5, octets: u32::MAX },
    ] {
        let (memory, _page, _socket, mut subscriber) = liar(SMALL);
        memory.words()[SMALL.entry(0)].store(entry.word(), Relaxed);
        memory.words()[TAIL].store(1, Relaxed);
        assert!(matches!(subscriber.receive(), Err(BoardError::Lie(_))), "{entry:?}");
    }
}

#[test]
fn publications_that_become_fewer_are_a_lie() {
    let (memory, _page, _socket, mut subscriber) = liar(SMALL);
    memory.words()[TAIL].store(1, Relaxed);
    assert!(matches!(subscriber.receive(), Ok(Some(Reception::Item(_)))));
    memory.words()[TAIL].store(0, Relaxed);
    assert!(matches!(subscriber.receive_within(LONG), Err(BoardError::Lie(_))));
    let (memory, _page, _socket, mut subscriber) = liar(SMALL);
    memory.words()[TAIL].store(3, Relaxed);
    memory.words()[FLOOR].store(9, Relaxed);
    assert!(matches!(subscriber.receive(), Err(BoardError::Lie(_))));
}

#[test]
fn a_grant_that_cannot_be_is_refused() {
    let bad = [
        Layout { entries: 3, ..SMALL },
        Layout { entries: 1, ..SMALL },
        Layout { slots: 0, ..SMALL },
        Layout { slots: usize::MAX, ..SMALL },
        Layout { slot_words: 7, ..SMALL },
        Layout { slot_words: usize::MAX & !7, ..SMALL },
        Layout { entries: 1 << 40, ..SMALL },
    ];
    for layout in bad {
        let octets = Message::Grant { layout, first: 0 }.encode();
        assert!(Message::decode(&octets).is_err(), "{layout:?}");
    }
    let octets = Message::Grant { layout: SMALL, first: 7 }.encode();
    assert_eq!(Message::decode(&octets), Ok(Message::Grant { layout: SMALL, first: 7 }));
    // Memory that is shorter than was said.
    let (_memory, fd) = WordMemory::create("onym-test", SMALL.check().unwrap() - 1).unwrap();
    let (_page, seat) = SharedMemory::create("onym-test", 0).unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    grant::send(&ours, &Message::Grant { layout: SMALL, first: 0 }, &[fd.as_fd(), seat.as_fd()])
        .unwrap();
    let attached = Subscriber::attach(theirs.into(), LONG);
    assert!(matches!(attached, Err(BoardError::Io { .. })), "{attached:?}");
}

#[test]
fn a_silent_publisher_and_one_that_promises_memory_without_sending_it_are_told_apart() {
    let (_ours, theirs) = UnixStream::pair().unwrap();
    let attached = Subscriber::attach(theirs.into(), Duration::from_millis(20));
    assert!(matches!(attached, Err(BoardError::Silent)), "{attached:?}");
    let (ours, theirs) = UnixStream::pair().unwrap();
    grant::send(&ours, &Message::Grant { layout: SMALL, first: 0 }, &[]).unwrap();
    let attached = Subscriber::attach(theirs.into(), LONG);
    assert!(matches!(attached, Err(BoardError::Refused(_))), "{attached:?}");
}

#[test]
fn a_door_left_by_a_killed_publisher_is_opened_again_and_one_in_use_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("board");
    // A listener that is gone without its file being removed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let door = Door::open(&path).unwrap();
    assert!(matches!(Door::open(&path), Err(BoardError::Io { .. })));
    let mut publisher = publisher(10, 3, 2);
    let knocking = {
        let path = path.clone();
        std::thread::spawn(move || connect(&path, LONG).unwrap())
    };
    while publisher.subscribers() == 0 {
        door.admit(&mut publisher).unwrap();
        std::thread::yield_now();
    }
    publisher.publish(&[1]).unwrap();
    assert_eq!(drain(&mut knocking.join().unwrap()), (vec![1], 0));
    drop(door);
    assert!(!path.exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_a_publisher_writes_a_subscriber_stays_whole(
        writes in prop::collection::vec((0_usize..80, prop_oneof![0_u64..10, any::<u64>()]), 1..60)
    ) {
        let (memory, _page, _socket, mut subscriber) = liar(SMALL);
        for (word, value) in writes {
            memory.words()[word].store(value, Relaxed);
            for _ in 0..5 {
                match subscriber.receive() {
                    Ok(Some(Reception::Item(item))) => prop_assert!(item.to_vec().len() <= 64),
                    Ok(Some(Reception::Missed(count))) => prop_assert!(count > 0),
                    Ok(None) => break,
                    Err(_) => return Ok(()),
                }
            }
        }
    }

    #[test]
    fn no_octets_make_a_grant_that_breaks_anything(
        octets in prop::collection::vec(any::<u8>(), 0..80)
    ) {
        let _ = Message::decode(&octets);
    }
}
