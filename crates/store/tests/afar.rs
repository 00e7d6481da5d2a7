//! A store of which a part is in a bucket: what is there, what leaves the disk, and what a bucket that
//! is away, tears or lies does to it.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use onym_store::{Afar, AfarStats, Bounds, Change, Done, Error, Options, Store, Writer};
use onym_wire::{Data, Name};
use std::sync::Arc;
use std::time::{Duration, Instant};
use support::{FaultyBucket, FaultyDisk, packet};

fn options() -> Options {
    let bounds = Bounds { free_min_octets: 0, ..Bounds::default() };
    Options { bounds, segment_octets: 4096, cache_octets: 1 << 18, ..Options::default() }
}

fn afar(bucket: &FaultyBucket, near_octets_max: u64) -> Afar {
    Afar { near_octets_max, ..Afar::new(Arc::new(bucket.clone())) }
}

fn try_open(disk: &FaultyDisk, bucket: &FaultyBucket, near: u64) -> Result<Writer, Error> {
    let afar = afar(bucket, near);
    Ok(Writer::open_with(Arc::new(disk.clone()), Some(&afar), options(), 0)?.0)
}

fn open(disk: &FaultyDisk, bucket: &FaultyBucket, near: u64) -> Writer {
    try_open(disk, bucket, near).unwrap()
}

fn name_of(n: u64) -> Name {
    format!("/far/{n}").parse().unwrap()
}

fn content_of(n: u64) -> Vec<u8> {
    vec![n as u8; 900]
}

fn change(n: u64) -> Change {
    Change::insert(packet(&name_of(n).to_string(), &content_of(n)))
}

/// Four or so in a segment.
fn insert(writer: &mut Writer, numbers: std::ops::Range<u64>) {
    for n in numbers {
        writer.apply(0, vec![change(n)]).pop().unwrap().unwrap();
    }
}

fn read(writer: &Writer, n: u64) -> Result<Option<Vec<u8>>, Error> {
    let found = writer.reader().get(0, name_of(n).as_ref())?;
    Ok(found.map(|packet| Data::parse(&packet).unwrap().content.to_vec()))
}

#[track_caller]
fn all_there(writer: &Writer, numbers: std::ops::Range<u64>) {
    for n in numbers {
        assert_eq!(read(writer, n).unwrap(), Some(content_of(n)), "{n}");
    }
}

/// One errand; whether it was done, none when there is none.
fn errand(writer: &mut Writer) -> Option<bool> {
    let ended = writer.next_errand().unwrap()?.run();
    let is_done = ended.is_done();
    writer.errand_ended(ended).unwrap();
    Some(is_done)
}

fn errands(writer: &mut Writer) {
    while let Some(is_done) = errand(writer) {
        assert!(is_done, "{:?}", stats(writer).trouble);
    }
}

fn stats(writer: &Writer) -> AfarStats {
    writer.stats().afar.unwrap()
}

/// A store with forty packets, of which the last few are on the disk.
fn filled() -> (FaultyDisk, FaultyBucket, Writer) {
    let (disk, bucket) = (FaultyDisk::new(1), FaultyBucket::default());
    let mut writer = open(&disk, &bucket, 8192);
    insert(&mut writer, 0..40);
    errands(&mut writer);
    (disk, bucket, writer)
}

/// Law: full segments go to the bucket and leave the disk down to the bound; everything is served.
#[test]
fn full_segments_are_in_the_bucket_and_the_disk_keeps_what_it_may() {
    let (disk, bucket, writer) = filled();
    let there = stats(&writer);
    assert_eq!(there.segments as usize, bucket.segments().len());
    assert!(there.segments >= 8 && there.far_only >= 7, "{there:?}");
    assert!(there.near_octets <= 8192 && there.waiting == 0, "{there:?}");
    let on_disk = disk.files().iter().filter(|name| name.ends_with(".log")).count();
    assert!(on_disk <= 2, "{:?}", disk.files());
    all_there(&writer, 0..40);
    assert!(stats(&writer).fetched_octets > 0);
    drop(writer);
    // The index knows what is there: a start asks the bucket for nothing.
    bucket.with(|there| there.is_away = true);
    let writer = open(&disk.lose_power(), &bucket, 8192);
    bucket.with(|there| there.is_away = false);
    all_there(&writer, 0..40);
}

/// Law: an acknowledgement is of the disk, whatever the bucket does; what is not there stays here, and
/// goes there when it can.
#[test]
fn a_bucket_that_is_away_is_told_and_keeps_nothing_up() {
    let (disk, bucket) = (FaultyDisk::new(2), FaultyBucket::default());
    let mut writer = open(&disk, &bucket, 0);
    bucket.with(|there| there.is_away = true);
    insert(&mut writer, 0..20);
    assert_eq!(errand(&mut writer), Some(false));
    let there = stats(&writer);
    assert_eq!(there.trouble.as_deref(), Some("the bucket does not answer"));
    assert!(there.segments == 0 && there.far_only == 0 && there.waiting >= 3, "{there:?}");
    all_there(&writer, 0..20);
    bucket.with(|there| there.is_away = false);
    errands(&mut writer);
    assert_eq!((stats(&writer).trouble, stats(&writer).waiting), (None, 0));
    // What is there only cannot be had while it is away; the rest can, and so can what comes.
    bucket.with(|there| there.is_away = true);
    assert!(matches!(read(&writer, 0), Err(Error::Bucket(_))));
    insert(&mut writer, 20..21);
    all_there(&writer, 19..21);
    assert!(stats(&writer).trouble.is_some());
}

/// Law: what the bucket has is compared before anything leaves the disk.
#[test]
fn an_upload_that_was_torn_is_not_believed() {
    let (disk, bucket) = (FaultyDisk::new(3), FaultyBucket::default());
    let mut writer = open(&disk, &bucket, 0);
    insert(&mut writer, 0..6);
    assert_eq!(errand(&mut writer), Some(true));
    insert(&mut writer, 6..12);
    bucket.with(|there| there.tears = true);
    assert_eq!(errand(&mut writer), Some(false));
    let there = stats(&writer);
    assert_eq!((there.segments, there.wrong), (1, 1), "{there:?}");
    assert!(there.trouble.unwrap().contains("of which"));
    bucket.with(|there| there.lies = true);
    assert_eq!(errand(&mut writer), Some(false));
    assert!(stats(&writer).trouble.unwrap().contains("other octets"));
    bucket.with(|there| there.lies = false);
    errands(&mut writer);
    all_there(&writer, 0..12);
}

/// Law: wrong octets of the bucket are told, never served; inserting again mends it.
#[test]
fn what_a_bucket_lies_about_is_absent_and_told() {
    let (_disk, bucket, mut writer) = filled();
    bucket.with(|there| there.lies = true);
    assert_eq!(read(&writer, 0).unwrap(), None);
    let there = stats(&writer);
    assert_eq!(there.wrong, 1);
    assert!(there.trouble.unwrap().contains("wrong octets"));
    assert_eq!(writer.stats().damaged, 0, "what is not here is not damaged here");
    assert_eq!(writer.apply(0, vec![change(0)]), [Ok(Done::Replaced)]);
    all_there(&writer, 0..1);
    bucket.with(|there| there.lies = false);
    all_there(&writer, 0..40);
}

/// Law: one who does not wait is told what to fetch, and has it then.
#[test]
fn a_reader_that_does_not_wait_hears_what_is_to_be_fetched() {
    let (_disk, bucket, writer) = filled();
    let mut reader = writer.reader().without_waiting();
    let name = name_of(0);
    let Err(Error::Far(range)) = reader.get(0, name.as_ref()) else { panic!("it was there") };
    bucket.with(|there| there.is_away = true);
    assert!(range.fetch().is_err());
    let begun = Instant::now();
    assert!(range.fetch().is_err() && begun.elapsed() < Duration::from_millis(500), "it rests");
    bucket.with(|there| there.is_away = false);
    let end = begun + Duration::from_secs(20);
    while range.fetch().is_err() {
        assert!(Instant::now() < end);
        std::thread::yield_now();
    }
    assert!(reader.get(0, name.as_ref()).unwrap().is_some());
    let reads = bucket.with(|there| there.reads);
    assert!(reader.get(0, name_of(1).as_ref()).unwrap().is_some(), "it came with the other");
    assert_eq!(bucket.with(|there| there.reads), reads);
}

/// Law: another machine goes on from the bucket alone; who had it before does nothing to it any more.
#[test]
fn a_store_is_made_again_from_the_bucket_alone() {
    let (disk, bucket, mut before) = filled();
    before.apply(0, vec![Change::delete(name_of(3))]);
    insert(&mut before, 40..60);
    errands(&mut before);
    let kept = stats(&before).segments;
    let elsewhere = FaultyDisk::new(9);
    bucket.with(|there| there.is_away = true);
    assert!(matches!(try_open(&elsewhere, &bucket, 0), Err(Error::Bucket(_))));
    bucket.with(|there| there.is_away = false);
    let mut after = open(&elsewhere, &bucket, 0);
    assert_eq!(stats(&after).segments, kept);
    // All that was in a full segment.
    let missing: Vec<u64> = (0..60).filter(|n| read(&after, *n).unwrap().is_none()).collect();
    assert_eq!(missing[0], 3, "{missing:?}");
    assert!(missing[1..].iter().all(|n| *n >= 55), "{missing:?}");
    insert(&mut after, 100..110);
    errands(&mut after);
    all_there(&after, 100..110);
    let there = bucket.segments();
    insert(&mut before, 60..80);
    assert_eq!(errand(&mut before), Some(false));
    assert!(stats(&before).trouble.unwrap().contains("another store"));
    assert_eq!(bucket.segments(), there);
    drop(before);
    assert!(disk.files().contains(&"bucket".to_owned()));
    disk.remove_quietly("index.redb");
    assert!(matches!(try_open(&disk.kill(), &bucket, 0), Err(Error::Bucket(_))));
}

/// Law: a bucket of another store is not used, and a store that needs its bucket is not opened without.
#[test]
fn a_bucket_has_one_store_and_a_store_its_bucket() {
    let (disk, bucket, writer) = filled();
    drop(writer);
    let other = FaultyDisk::new(4);
    drop(Writer::open(Arc::new(other.clone()), options(), 0).unwrap().0.apply(0, vec![change(1)]));
    assert!(matches!(try_open(&other, &bucket, 0), Err(Error::Bucket(_))));
    assert!(try_open(&other, &FaultyBucket::default(), 0).is_ok());
    let alone = Writer::open(Arc::new(disk.kill()), options(), 0);
    assert!(matches!(alone, Err(Error::Bucket(_))));
    let disk = FaultyDisk::new(5);
    bucket.with(|there| there.objects.remove("owner"));
    assert!(matches!(try_open(&disk, &bucket, 0), Err(Error::Bucket(_))));
}

/// Law: an index that was lost is made again from disk and bucket, and not without the bucket.
#[test]
fn a_lost_index_is_made_again_from_both() {
    let (disk, bucket, mut writer) = filled();
    writer.apply(0, vec![Change::delete(name_of(39))]);
    drop(writer);
    disk.remove_quietly("index.redb");
    bucket.with(|there| there.is_away = true);
    assert!(matches!(try_open(&disk.kill(), &bucket, 8192), Err(Error::Bucket(_))));
    bucket.with(|there| there.is_away = false);
    let mut writer = open(&disk.kill(), &bucket, 8192);
    all_there(&writer, 0..39);
    assert_eq!(read(&writer, 39).unwrap(), None);
    errands(&mut writer);
    assert_eq!(stats(&writer).waiting, 0);
    all_there(&writer, 0..39);
}

/// Law: a segment of which little is alive comes back, is compacted, and is removed from the bucket
/// once its copies are there: whoever starts from the bucket finds what was there, and nothing that was
/// deleted.
#[test]
fn what_is_compacted_leaves_the_bucket_behind_its_copies() {
    let (_disk, bucket, mut writer) = filled();
    let before = bucket.segments();
    let gone: Vec<Change> =
        (0..4).filter(|n| n % 4 != 0).map(|n| Change::delete(name_of(n))).collect();
    writer.apply(0, gone);
    for _ in 0..60 {
        while writer.compact(0, 0.5).unwrap() {}
        let _ = errand(&mut writer);
    }
    let kept = bucket.segments();
    assert!(before[..1].iter().all(|old| kept.contains(old)), "its copies are not there: {kept:?}");
    // The segment with the copies gets full.
    insert(&mut writer, 40..60);
    for _ in 0..60 {
        while writer.compact(0, 0.5).unwrap() {}
        let _ = errand(&mut writer);
    }
    let kept = bucket.segments();
    assert!(before[..1].iter().all(|old| !kept.contains(old)), "{kept:?}");
    let after = open(&FaultyDisk::new(8), &bucket, 0);
    for n in 0..4 {
        assert_eq!(read(&after, n).unwrap().is_some(), n % 4 == 0, "{n}");
    }
}

/// Law: what is read much comes back to the disk whole, and something else goes.
#[test]
fn what_is_read_much_comes_back() {
    let (_disk, bucket, mut writer) = filled();
    all_there(&writer, 0..4);
    errands(&mut writer);
    let reads = bucket.with(|there| there.reads);
    let mut reader = writer.reader();
    for _ in 0..3 {
        (0..4).for_each(|n| drop(reader.get(0, name_of(n).as_ref()).unwrap().unwrap()));
    }
    assert_eq!(bucket.with(|there| there.reads), reads);
    assert!(stats(&writer).near_octets <= 8192);
}

/// Law: the thread of a store brings segments to the bucket by itself, and scrubbing reads them there.
#[test]
fn a_store_carries_by_itself() {
    let (disk, bucket) = (FaultyDisk::new(6), FaultyBucket::default());
    let store = Store::open_with(disk.clone(), Some(&afar(&bucket, 0)), options()).unwrap();
    for n in 0..20 {
        store.apply(vec![change(n)]).unwrap().pop().unwrap().unwrap();
    }
    let end = Instant::now() + Duration::from_secs(20);
    while store.stats().unwrap().afar.unwrap().far_only < 4 {
        assert!(Instant::now() < end, "{:?}", store.stats());
        std::thread::yield_now();
    }
    assert_eq!(store.scrub().unwrap().wrong_octets, 0);
    bucket.with(|there| there.lies = true);
    let found = store.scrub().unwrap();
    assert!(found.wrong_octets > 4096 && found.lost == 0, "{found:?}");
    drop(store);
    bucket.with(|there| there.lies = false);
    let writer = open(&disk.kill(), &bucket, 0);
    all_there(&writer, 0..20);
}
