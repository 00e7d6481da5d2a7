//! A store that is a cache: the oldest gives way, what goes is told, and power loss loses no more
//! than a cache may lose.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use onym_frame::Buf;
use onym_store::{
    Bounds, Change, Done, Filter, Folder, Found, Gone, Options, Refused, Shelf, ShelfOptions,
    ShelfStats, Writer,
};
use onym_wire::interest::{Interest, InterestBuilder};
use onym_wire::{Data, Name};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use support::{FaultyDisk, Rng, packet};

const OPTIONS: Options = Options {
    bounds: Bounds {
        octets_max: 40_000,
        packets_max: 200,
        owner_octets_max: u64::MAX,
        owner_packets_max: u64::MAX,
        free_min_octets: 0,
    },
    segment_octets: 8192,
    checkpoint_octets: 16_384,
    cache_octets: 1 << 20,
    queue_groups: 4,
};

type Heard = Arc<Mutex<Vec<Name>>>;

fn open(disk: &FaultyDisk) -> (Writer, Heard) {
    let (mut writer, _) = Writer::open(Arc::new(disk.clone()), OPTIONS, 0).unwrap();
    let heard = Heard::default();
    let told = Arc::clone(&heard);
    writer.give_way(Gone(Box::new(move |name| told.lock().unwrap().push(name.to_name()))));
    (writer, heard)
}

fn name(n: u64) -> String {
    format!("/a/{n:06}")
}

fn has(writer: &Writer, n: u64) -> bool {
    let name: Name = name(n).parse().unwrap();
    writer.reader().get(0, name.as_ref()).unwrap().is_some()
}

/// Law: octets of the log and packets stay within their bounds; the oldest goes, the newest is there;
/// each name that goes is told once, and names that are there are not told.
#[test]
fn the_oldest_gives_way_and_is_told() {
    for content in [vec![7; 300], vec![7; 3]] {
        let disk = FaultyDisk::new(1);
        let (mut writer, heard) = open(&disk);
        for n in 0..1000 {
            let done = writer.apply(0, vec![Change::insert(packet(&name(n), &content))]);
            assert_eq!(done, [Ok(Done::New)]);
            let stats = writer.stats();
            assert!(stats.log_octets <= 40_000 && stats.total.packets <= 200, "{stats:?}");
            assert!(has(&writer, n));
        }
        let heard = heard.lock().unwrap();
        let gone: BTreeSet<String> = heard.iter().map(ToString::to_string).collect();
        assert_eq!(gone.len(), heard.len(), "none twice");
        let there: Vec<u64> = (0..1000).filter(|n| has(&writer, *n)).collect();
        assert_eq!(there.len() as u64, writer.stats().total.packets);
        assert_eq!(gone.len() + there.len(), 1000);
        assert!(there.len() >= 50 && there.windows(2).all(|two| two[0] + 1 == two[1]));
    }
}

/// Law: a packet that was written again lives in its new place, and does not go with the old one.
#[test]
fn what_was_replaced_stays_when_its_old_place_goes() {
    let (mut writer, heard) = open(&FaultyDisk::new(2));
    writer.apply(0, vec![Change::insert(packet("/kept", b"old"))]);
    for n in 0..40 {
        writer.apply(0, vec![Change::insert(packet(&name(n), &[1; 300]))]);
    }
    writer.apply(0, vec![Change::insert(packet("/kept", b"new"))]);
    for n in 40..100 {
        writer.apply(0, vec![Change::insert(packet(&name(n), &[1; 300]))]);
    }
    assert!(!has(&writer, 0), "its segment is gone");
    let kept: Name = "/kept".parse().unwrap();
    let found = writer.reader().get(0, kept.as_ref()).unwrap().unwrap();
    assert_eq!(Data::parse(&found).unwrap().content, b"new");
    assert!(!heard.lock().unwrap().contains(&kept));
}

/// Law: a packet larger than everything there is room for is refused, and the store goes on.
#[test]
fn what_is_larger_than_all_of_it_is_refused() {
    let mut options = OPTIONS;
    options.bounds.octets_max = 1000;
    let (mut writer, _) = Writer::open(Arc::new(FaultyDisk::new(3)), options, 0).unwrap();
    writer.give_way(Gone(Box::new(|_| {})));
    let large = writer.apply(0, vec![Change::insert(packet("/large", &[1; 2000]))]);
    assert_eq!(large, [Err(Refused::Full("octets_max"))]);
    assert_eq!(writer.apply(0, vec![Change::insert(packet("/small", b"x"))]), [Ok(Done::New)]);
}

/// Law: whatever the disk does and whenever power is lost, what is served is what came, the bounds
/// hold, and the store can be opened and written.
#[test]
fn power_loss_while_the_oldest_gives_way_damages_nothing() {
    for seed in 0..40 {
        let mut rng = Rng(seed);
        let mut disk = FaultyDisk::new(seed);
        for _ in 0..3 {
            let (mut writer, _) = open(&disk);
            for _ in 0..rng.below(300) {
                let n = rng.below(500);
                let content = vec![u8::try_from(n % 251).unwrap(); 100 + (n as usize % 7) * 50];
                writer.apply(0, vec![Change::insert(packet(&name(n), &content))]);
            }
            disk = disk.lose_power();
        }
        let (mut writer, _) = open(&disk);
        for n in 0..500 {
            let name: Name = name(n).parse().unwrap();
            if let Some(found) = writer.reader().get(0, name.as_ref()).unwrap() {
                let data = Data::parse(&found).unwrap();
                assert_eq!((data.name, data.content[0]), (name.as_ref(), (n % 251) as u8));
            }
        }
        let stats = writer.stats();
        assert!(stats.log_octets <= 40_000 && stats.total.packets <= 200, "{seed}: {stats:?}");
        let done = writer.apply(0, vec![Change::insert(packet("/last", b"x"))]);
        assert_eq!(done, [Ok(Done::New)], "{seed}");
    }
}

fn until(shelf: &Shelf, what: &str, holds: impl Fn(&ShelfStats) -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !holds(&shelf.gauge().stats()) {
        assert!(Instant::now() < end, "{what}: {:?}", shelf.gauge().stats());
        shelf.look();
        std::thread::yield_now();
    }
}

fn find(shelf: &mut Shelf, text: &str) -> Option<Found> {
    let (name, mut wire) = (text.parse::<Name>().unwrap(), Vec::new());
    InterestBuilder::new(name.as_ref()).write(&mut wire);
    shelf.find(&Interest::parse(&wire).unwrap()).unwrap()
}

/// Law: the filter knows what is on the shelf, also after a restart, and what is erased it forgets; a
/// packet keeps the freshness that it had left.
#[test]
fn a_shelf_says_what_it_may_have() {
    let place = tempfile::tempdir().unwrap();
    let options = ShelfOptions { octets_max: 1 << 24, packets_max: 1000, free_min_octets: 0 };
    let may = |filter: &Filter, text: &str| filter.may_have(text.parse::<Name>().unwrap().as_ref());
    let open = || {
        let filter = Arc::new(Filter::new(1000));
        let folder = Folder::open(place.path()).unwrap();
        (Shelf::open(folder, options, &filter).unwrap(), filter)
    };
    let (shelf, filter) = open();
    let found = |text: &str, fresh_ms, period| Found {
        packet: Buf::copy_from(&support::packet_fresh(text, b"x", period)),
        fresh_ms,
    };
    let all = vec![
        found("/a/1", 50_000, 60_000),
        found("/a/2", 0, 60_000),
        found("/b", 0, 0),
        Found { packet: Buf::copy_from(b"no packet"), fresh_ms: 0 },
    ];
    shelf.keep(all.clone()).unwrap();
    until(&shelf, "three are kept", |stats| stats.kept == 3);
    // What was kept may be on its way to the disk still: then there is no room, and it comes back.
    let (mut again, began) = (all, Instant::now());
    while let Err(back) = shelf.keep(again) {
        assert!(began.elapsed() < Duration::from_secs(20), "there is room again");
        again = back;
        std::thread::yield_now();
    }
    assert!(may(&filter, "/a/1") && may(&filter, "/b") && !may(&filter, "/c"));
    drop(shelf);
    let (mut shelf, filter) = open();
    until(&shelf, "three are there", |stats| stats.packets == 3);
    assert!(may(&filter, "/a/1") && may(&filter, "/b"));
    let fresh = find(&mut shelf, "/a/1").unwrap().fresh_ms;
    assert!((20_000..=50_000).contains(&fresh), "{fresh}");
    assert_eq!(find(&mut shelf, "/a/2").unwrap().fresh_ms, 0);
    let prefix: Name = "/a".parse().unwrap();
    assert_eq!(shelf.erase(prefix.as_ref(), 1).unwrap(), (1, true));
    assert_eq!(shelf.erase(prefix.as_ref(), 5).unwrap(), (1, false));
    assert!(!may(&filter, "/a/1") && !may(&filter, "/a/2") && may(&filter, "/b"));
    assert!(find(&mut shelf, "/a/1").is_none());
}
