//! A disk that does not answer.

use super::*;
use crate::shard::{DiskAnswer, DiskJob, DiskSide};
use onym_forward::stage::Offers;
use onym_forward::verdict::Verdict;
use onym_link::PacketKind;
use onym_store::{Filter, Found, Shelf, ShelfOptions};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

const WAIT: Duration = Duration::from_millis(30);

/// A shard with a disk that may have `/disk/0` to `/disk/{count}`, which a test answers for; `room` is
/// what the lane to it holds.
fn with_disk(count: u32, room: usize) -> (Bench, Receiver<DiskJob>) {
    with_disk_for(count, room, WAIT)
}

/// The same, and Interests wait for it so long.
fn with_disk_for(count: u32, room: usize, wait: Duration) -> (Bench, Receiver<DiskJob>) {
    let filter = Arc::new(Filter::new(10_000));
    let place = tempfile::tempdir().unwrap();
    let folder = onym_store::Folder::open(place.path()).unwrap();
    let options = ShelfOptions { octets_max: 1 << 24, packets_max: 10_000, free_min_octets: 0 };
    let shelf = Shelf::open(folder, options, &filter).unwrap();
    let packets = (0..count).map(|n| Found { packet: data(n), fresh_ms: 0 }).collect();
    shelf.keep(packets).unwrap();
    let end = Instant::now() + Duration::from_secs(20);
    while shelf.gauge().stats().kept < u64::from(count) {
        assert!(Instant::now() < end);
        std::thread::yield_now();
    }
    let (jobs, asked) = sync_channel(room);
    let wait_ms = u64::try_from(wait.as_millis()).unwrap();
    let mut b = bench(1);
    let side = DiskSide::new(filter, jobs, Arc::default(), wait_ms);
    b.engine.driver.set_disk(side, Offers::new(Vec::new(), None));
    (b, asked)
}

fn data(n: u32) -> Buf {
    let (name, mut wire) = (format!("/disk/{n}").parse::<Name>().unwrap(), Vec::new());
    let builder = onym_wire::data::DataBuilder::new(name.as_ref(), b"x");
    onym_crypto::signer::write_digest_data(&builder, &mut wire);
    Buf::copy_from(&wire)
}

fn counts(b: &Bench) -> DiskCounts {
    b.engine.driver.disk_counts().unwrap()
}

fn ended(b: &Bench, verdict: Verdict) -> u64 {
    b.engine.driver.fw.counters().verdict(PacketKind::Interest, verdict)
}

/// Rounds until `done`, at most for some seconds.
fn rounds(b: &mut Bench, done: impl Fn(&Bench) -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done(b) {
        assert!(Instant::now() < end, "{:?}", counts(b));
        b.ordered_round();
    }
}

/// Law: an Interest for what is on the disk waits as long as it may, and is then forwarded; meanwhile
/// others pass, and for a while nothing is asked of that disk.
#[test]
fn a_disk_that_does_not_answer_delays_an_interest_once_and_no_other() {
    let (mut b, asked) = with_disk(20, 64);
    let ((_, mut asks), (upstream, _producer)) = (b.face(), b.face());
    b.route("/", upstream);
    let begun = Instant::now();
    send(&mut asks, "/disk", 0, 10);
    send(&mut asks, "/elsewhere", 0, 50);
    rounds(&mut b, |b| ended(b, Verdict::Forwarded) >= 50);
    rounds(&mut b, |b| ended(b, Verdict::Forwarded) == 60);
    assert!(begun.elapsed() >= WAIT);
    assert_eq!((counts(&b).late, counts(&b).passed), (10, 0));
    assert_eq!(asked.try_iter().count(), 10);
    send(&mut asks, "/disk", 10, 10);
    rounds(&mut b, |b| ended(b, Verdict::Forwarded) == 70);
    assert_eq!((counts(&b).late, counts(&b).passed), (10, 10));
    assert_eq!(asked.try_iter().count(), 0);
    assert!(b.engine.driver.is_drained(&b.engine.io));
}

/// Law: Interests beyond what may wait of a face, or beyond the lane, are forwarded at once, each once.
#[test]
fn what_the_lane_has_no_room_for_is_forwarded() {
    for (room, waiting) in [(4096, WAITING_MAX / 2), (10, 10)] {
        let (mut b, _asked) = with_disk(400, room);
        let ((_, mut asks), (upstream, _producer)) = (b.face(), b.face());
        b.route("/", upstream);
        send(&mut asks, "/disk", 0, 400);
        rounds(&mut b, |b| ended(b, Verdict::Forwarded) == 400);
        assert_eq!((counts(&b).late, counts(&b).passed), (waiting as u64, 400 - waiting as u64));
    }
}

/// Law: a face that asks for more from the disk than may wait leaves places for the others.
#[test]
fn a_face_does_not_take_all_places_for_itself() {
    let (mut b, asked) = with_disk_for(420, 4096, Duration::from_secs(60));
    let ((_, mut takes), (_, mut asks), (upstream, _producer)) = (b.face(), b.face(), b.face());
    b.route("/", upstream);
    let mut waiting = 0;
    let mut read = |b: &mut Bench, all: u64| {
        let end = Instant::now() + Duration::from_secs(20);
        while waiting + counts(b).passed < all {
            assert!(Instant::now() < end, "{waiting} wait, {:?}", counts(b));
            b.ordered_round();
            waiting += asked.try_iter().count() as u64;
        }
        waiting
    };
    send(&mut takes, "/disk", 0, 400);
    assert_eq!(read(&mut b, 400), WAITING_MAX as u64 / 2);
    send(&mut asks, "/disk", 400, 20);
    assert_eq!(read(&mut b, 420), WAITING_MAX as u64 / 2 + 20);
}

/// Law: what the disk has answers the Interest, and comes too late without harm.
#[test]
fn an_answer_of_the_disk_is_an_answer_of_the_content_store() {
    let (mut b, asked) = with_disk(2, 64);
    let ((_, mut asks), (upstream, _producer)) = (b.face(), b.face());
    b.route("/", upstream);
    let answer = |b: &mut Bench, number: u64, n: u32| {
        let found = Some(Found { packet: data(n), fresh_ms: 0 });
        b.engine.driver.disk_answered(&mut b.engine.io, vec![DiskAnswer { number, found }]);
    };
    send(&mut asks, "/disk", 0, 1);
    while ended(&b, Verdict::Forwarded) == 0 && counts(&b).late == 0 {
        b.ordered_round();
        if let Ok(DiskJob::Find { number, .. }) = asked.try_recv() {
            answer(&mut b, number, 0);
            // A second answer, and one to nobody.
            answer(&mut b, number, 0);
            answer(&mut b, 1234, 1);
            break;
        }
    }
    assert_eq!((counts(&b).hits, ended(&b, Verdict::CsHit)), (1, 1));
    assert_eq!(ended(&b, Verdict::Forwarded), 0);
    // In memory now: the disk is not asked again.
    send(&mut asks, "/disk", 0, 1);
    rounds(&mut b, |b| ended(b, Verdict::CsHit) == 2);
    assert_eq!(asked.try_iter().count(), 0);
}
