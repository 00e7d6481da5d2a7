//! What a store promises, law by law.
#![allow(clippy::unwrap_used, missing_docs)]

mod support;

use onym_crypto::digest::implicit_digest;
use onym_store::{Bounds, Change, Done, Folder, Options, OwnerId, Refused, Store, Writer};
use onym_wire::interest::{Interest, InterestBuilder};
use onym_wire::{Name, NameRef};
use std::sync::Arc;
use support::{FaultyDisk, packet, packet_fresh};

fn open(disk: &FaultyDisk, options: Options) -> Writer {
    Writer::open(Arc::new(disk.clone()), options, 0).unwrap().0
}

fn one(writer: &mut Writer, now_ms: u64, change: Change) -> Result<Done, Refused> {
    writer.apply(now_ms, vec![change]).pop().unwrap()
}

fn insert(writer: &mut Writer, name: &str, content: &[u8]) {
    one(writer, 0, Change::insert(packet(name, content))).unwrap();
}

fn interest(name: NameRef<'_>, can_be_prefix: bool, must_be_fresh: bool) -> Vec<u8> {
    let mut out = Vec::new();
    InterestBuilder { can_be_prefix, must_be_fresh, ..InterestBuilder::new(name) }.write(&mut out);
    out
}

fn find(writer: &Writer, now_ms: u64, name: &str, prefix: bool, fresh: bool) -> Option<String> {
    let name: Name = name.parse().unwrap();
    let wire = interest(name.as_ref(), prefix, fresh);
    let found = writer.reader().find(now_ms, &Interest::parse(&wire).unwrap()).unwrap()?;
    Some(onym_wire::Data::parse(&found).unwrap().name.to_string())
}

#[test]
fn inserting_again_changes_nothing_and_other_octets_replace() {
    let disk = FaultyDisk::new(1);
    let mut writer = open(&disk, Options::default());
    let first = Change::insert(packet("/a", b"1"));
    let answers = writer.apply(0, vec![first.clone(), first.clone()]);
    assert_eq!(answers, [Ok(Done::New), Ok(Done::Had)]);
    let before = writer.stats();
    assert_eq!(one(&mut writer, 0, first.clone()), Ok(Done::Had));
    assert_eq!(writer.stats(), before);
    assert_eq!(one(&mut writer, 0, Change::insert(packet("/a", b"2"))), Ok(Done::Replaced));
    assert_eq!(writer.stats().total.packets, 1);
    assert_eq!(one(&mut writer, 0, Change::delete("/a".parse().unwrap())), Ok(Done::Deleted));
    assert_eq!(one(&mut writer, 0, Change::delete("/a".parse().unwrap())), Ok(Done::Missing));
    assert_eq!(writer.stats().total, onym_store::Usage::default());
    assert_eq!(one(&mut writer, 0, Change::insert(vec![6, 1, 0])), Err(Refused::Malformed));
}

#[test]
fn an_owner_replaces_and_deletes_its_own_packets_only_and_has_a_quota() {
    let disk = FaultyDisk::new(2);
    let bounds = Bounds { owner_packets_max: 2, ..Bounds::default() };
    let mut writer = open(&disk, Options { bounds, ..Options::default() });
    let alice = writer.owner(0, "/alice".parse::<Name>().unwrap().as_ref()).unwrap();
    let bob = writer.owner(0, "/bob".parse::<Name>().unwrap().as_ref()).unwrap();
    let by = |owner: OwnerId, name: &str, content: &[u8]| Change::Insert {
        packet: packet(name, content),
        owner,
        expires_ms: 0,
        arrived_ms: 0,
    };
    assert_eq!(one(&mut writer, 0, by(alice, "/x", b"1")), Ok(Done::New));
    assert_eq!(one(&mut writer, 0, by(bob, "/x", b"2")), Err(Refused::NotYours));
    let theirs = Change::Delete { name: "/x".parse().unwrap(), owner: Some(bob) };
    assert_eq!(one(&mut writer, 0, theirs), Err(Refused::NotYours));
    assert_eq!(one(&mut writer, 0, by(alice, "/y", b"1")), Ok(Done::New));
    assert!(matches!(one(&mut writer, 0, by(alice, "/z", b"1")), Err(Refused::Quota(_))));
    assert_eq!(one(&mut writer, 0, by(bob, "/z", b"1")), Ok(Done::New));
    drop(writer);
    let mut writer = open(&disk.lose_power(), Options { bounds, ..Options::default() });
    assert_eq!(writer.owner(0, "/bob".parse::<Name>().unwrap().as_ref()).unwrap(), bob);
    assert!(matches!(one(&mut writer, 0, by(alice, "/q", b"1")), Err(Refused::Quota(_))));
}

#[test]
fn a_full_store_refuses_insertions_and_goes_on_deleting_and_reading() {
    let disk = FaultyDisk::new(3);
    let bounds = Bounds { octets_max: 1000, ..Bounds::default() };
    let mut writer = open(&disk, Options { bounds, ..Options::default() });
    insert(&mut writer, "/a", &[7; 600]);
    let more = Change::insert(packet("/b", &[7; 600]));
    assert!(matches!(one(&mut writer, 0, more.clone()), Err(Refused::Full(_))));
    assert_eq!(find(&writer, 0, "/a", false, false).as_deref(), Some("/a"));
    one(&mut writer, 0, Change::delete("/a".parse().unwrap())).unwrap();
    assert_eq!(one(&mut writer, 0, more), Ok(Done::New));
}

#[test]
fn a_prefix_finds_the_first_segment_of_the_newest_version() {
    let disk = FaultyDisk::new(4);
    let mut writer = open(&disk, Options::default());
    for version in [1, 200, 70_000] {
        for segment in [0, 1, 2, 300] {
            insert(&mut writer, &format!("/f/v={version}/seg={segment}"), b"x");
        }
    }
    assert_eq!(find(&writer, 0, "/f", true, false).as_deref(), Some("/f/v=70000/seg=0"));
    assert_eq!(find(&writer, 0, "/f/v=200", true, false).as_deref(), Some("/f/v=200/seg=0"));
    assert_eq!(find(&writer, 0, "/f/v=200", false, false), None);
    assert_eq!(find(&writer, 0, "/f", true, true), None, "never fresh");
    assert_eq!(find(&writer, 0, "/g", true, false), None);
}

#[test]
fn must_be_fresh_is_arrival_and_freshness_period_and_needs_no_scan() {
    let disk = FaultyDisk::new(5);
    let mut writer = open(&disk, Options::default());
    // A thousand newer names that are never fresh hide the fresh one from nobody.
    one(&mut writer, 1000, Change::insert(packet_fresh("/t/a", b"x", 500))).unwrap();
    let never: Vec<_> =
        (0..1000).map(|n| Change::insert(packet(&format!("/t/b/{n}"), b"y"))).collect();
    writer.apply(1000, never);
    assert_eq!(find(&writer, 1499, "/t", true, true).as_deref(), Some("/t/a"));
    assert_eq!(find(&writer, 1499, "/t/a", false, true).as_deref(), Some("/t/a"));
    assert_eq!(find(&writer, 1500, "/t", true, true), None);
    assert_eq!(find(&writer, 1500, "/t/a", false, true), None);
    assert_eq!(find(&writer, 1500, "/t/a", false, false).as_deref(), Some("/t/a"));
    // A thousand stale ones are taken out in the background.
    let stale: Vec<_> =
        (0..1000).map(|n| Change::insert(packet_fresh(&format!("/t/c/{n}"), b"y", 1))).collect();
    writer.apply(2000, stale);
    one(&mut writer, 2000, Change::insert(packet_fresh("/t/a", b"z", 500))).unwrap();
    while writer.expire(2100).unwrap() {}
    assert_eq!(find(&writer, 2100, "/t", true, true).as_deref(), Some("/t/a"));
}

#[test]
fn what_expires_is_gone_at_its_time_and_its_room_is_free() {
    let disk = FaultyDisk::new(6);
    let mut writer = open(&disk, Options::default());
    let packet = packet("/a", b"x");
    one(
        &mut writer,
        0,
        Change::Insert { packet, owner: OwnerId(0), expires_ms: 100, arrived_ms: 0 },
    )
    .unwrap();
    assert!(find(&writer, 99, "/a", false, false).is_some());
    assert_eq!(find(&writer, 100, "/a", false, false), None);
    assert_eq!(find(&writer, 100, "/a", true, false), None);
    writer.expire(100).unwrap();
    assert_eq!(writer.stats().total.packets, 0);
}

#[test]
fn an_implicit_digest_must_be_that_of_the_packet() {
    let disk = FaultyDisk::new(7);
    let mut writer = open(&disk, Options::default());
    let packet = packet("/a", b"x");
    one(&mut writer, 0, Change::insert(packet.clone())).unwrap();
    for (digest, found) in [(implicit_digest(&packet), true), ([0; 32], false)] {
        let mut name: Name = "/a".parse().unwrap();
        name.append_implicit_digest(&digest);
        let wire = interest(name.as_ref(), false, false);
        let answer = writer.reader().find(0, &Interest::parse(&wire).unwrap()).unwrap();
        assert_eq!(answer.is_some(), found);
    }
}

#[test]
fn packets_in_their_order_are_parts_of_one_read() {
    let disk = FaultyDisk::new(8);
    let mut writer = open(&disk, Options::default());
    let names: Vec<Name> = (0..100).map(|n| format!("/f/v=1/seg={n}").parse().unwrap()).collect();
    let all = names.iter().map(|n| Change::insert(packet(&n.to_string(), &[3; 1000])));
    writer.apply(0, all.collect());
    let mut reader = writer.reader();
    reader.get(0, names[0].as_ref()).unwrap().unwrap();
    let before = disk.calls();
    let mut last = reader.get(0, names[1].as_ref()).unwrap().unwrap();
    for name in &names[2..] {
        let next = reader.get(0, name.as_ref()).unwrap().unwrap();
        assert!(next.shares_chunk(&last), "{name}");
        last = next;
    }
    // The index reads pages of its own; a thousandth of a packet each would be no read per packet.
    assert!(disk.calls() - before < 20, "{} calls of the disk", disk.calls() - before);
}

#[test]
fn a_damaged_packet_is_not_there_and_can_be_inserted_again() {
    let disk = FaultyDisk::new(9);
    let mut writer = open(&disk, Options::default());
    for n in 0..3 {
        insert(&mut writer, &format!("/d/{n}"), &[9; 500]);
    }
    disk.damage("00000001.log", 900);
    assert_eq!(find(&writer, 0, "/d/1", false, false), None);
    assert_eq!(find(&writer, 0, "/d/2", false, false).as_deref(), Some("/d/2"));
    let found = writer.scrub(1).unwrap();
    assert_eq!((found.records, found.lost), (2, 1));
    assert!(found.damaged_octets > 0);
    assert_eq!(writer.stats().total.packets, 2);
    assert_eq!(one(&mut writer, 0, Change::insert(packet("/d/1", &[9; 500]))), Ok(Done::New));
    assert_eq!(find(&writer, 0, "/d/1", false, false).as_deref(), Some("/d/1"));
}

#[test]
fn damage_in_the_tail_does_not_take_what_stands_behind_it() {
    let disk = FaultyDisk::new(10);
    let mut writer = open(&disk, Options::default());
    for n in 0..3 {
        insert(&mut writer, &format!("/d/{n}"), &[9; 500]);
    }
    drop(writer);
    disk.damage("00000001.log", 900);
    let (writer, recovery) =
        Writer::open(Arc::new(disk.lose_power()), Options::default(), 0).unwrap();
    assert!(recovery.damaged_octets > 0);
    assert_eq!(find(&writer, 0, "/d/0", false, false).as_deref(), Some("/d/0"));
    assert_eq!(find(&writer, 0, "/d/1", false, false), None);
    assert_eq!(find(&writer, 0, "/d/2", false, false).as_deref(), Some("/d/2"));
}

#[test]
fn a_start_reads_the_tail_only() {
    let disk = FaultyDisk::new(11);
    let options = Options { checkpoint_octets: 100_000, ..Options::default() };
    let mut writer = open(&disk, options);
    for n in 0..400 {
        let many = (0..10).map(|k| Change::insert(packet(&format!("/s/{n}/{k}"), &[1; 400])));
        writer.apply(0, many.collect());
    }
    assert!(writer.stats().log_octets > 1_800_000);
    drop(writer);
    let disk = disk.lose_power();
    let before = disk.calls();
    let (writer, recovery) = Writer::open(Arc::new(disk.clone()), options, 0).unwrap();
    assert!(recovery.octets <= 106_000, "{recovery:?}");
    assert!(disk.calls() - before < 300, "{} calls of the disk", disk.calls() - before);
    assert_eq!(writer.stats().total.packets, 4000);
}

#[test]
fn a_lost_index_is_made_again_with_notes_owners_and_deletions() {
    let disk = FaultyDisk::new(12);
    let options = Options { segment_octets: 4096, ..Options::default() };
    let mut writer = open(&disk, options);
    let alice = writer.owner(0, "/alice".parse::<Name>().unwrap().as_ref()).unwrap();
    for n in 0..60 {
        insert(&mut writer, &format!("/r/{n}"), &[4; 200]);
    }
    for n in 0..60 {
        if n % 3 > 0 {
            one(&mut writer, 0, Change::delete(format!("/r/{n}").parse().unwrap())).unwrap();
        }
    }
    for (key, value) in [("a", Some("1")), ("b", Some("2")), ("b", None)] {
        let (key, value) = (key.into(), value.map(Into::into));
        one(&mut writer, 0, Change::Note { key, value }).unwrap();
    }
    while writer.compact(0, 0.9).unwrap() {}
    drop(writer);
    let disk = disk.lose_power();
    disk.remove_quietly("index.redb");
    let mut writer = open(&disk, options);
    for n in 0..60 {
        let found = find(&writer, 0, &format!("/r/{n}"), false, false).is_some();
        assert_eq!(found, n % 3 == 0, "/r/{n}");
    }
    assert_eq!(writer.note(b"a").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(writer.note(b"b").unwrap(), None);
    assert_eq!(writer.owner(0, "/alice".parse::<Name>().unwrap().as_ref()).unwrap(), alice);
}

#[test]
fn compaction_frees_what_is_dead_and_keeps_what_is_alive() {
    let disk = FaultyDisk::new(13);
    let options = Options { segment_octets: 20_000, ..Options::default() };
    let mut writer = open(&disk, options);
    for n in 0..500 {
        insert(&mut writer, &format!("/c/{n}"), &[4; 300]);
    }
    for n in 0..450 {
        one(&mut writer, 0, Change::delete(format!("/c/{n}").parse().unwrap())).unwrap();
    }
    let before = writer.stats().log_octets;
    while writer.compact(0, 0.9).unwrap() {}
    let after = writer.stats().log_octets;
    assert!(after * 3 < before, "{before} to {after} octets");
    for n in 0..500 {
        assert_eq!(find(&writer, 0, &format!("/c/{n}"), false, false).is_some(), n >= 450);
    }
}

#[test]
fn a_read_only_disk_is_read_and_says_so() {
    let disk = FaultyDisk::new(14);
    let mut writer = open(&disk, Options::default());
    insert(&mut writer, "/a", b"x");
    drop(writer);
    let disk = disk.lose_power();
    disk.set_read_only();
    let mut writer = open(&disk, Options::default());
    assert_eq!(find(&writer, 0, "/a", false, false).as_deref(), Some("/a"));
    let refused = one(&mut writer, 0, Change::insert(packet("/b", b"x"))).unwrap_err();
    assert_eq!(refused.to_string(), "the disk is read-only");
    assert!(writer.stats().read_only);
}

#[test]
fn an_error_of_the_disk_refuses_a_group_and_the_next_one_is_made() {
    for call in 0..12 {
        let disk = FaultyDisk::new(15);
        let mut writer = open(&disk, Options { checkpoint_octets: 0, ..Options::default() });
        insert(&mut writer, "/a", b"x");
        disk.fail_after(call);
        let refused = one(&mut writer, 0, Change::insert(packet("/b", b"x")));
        assert!(matches!(refused, Ok(_) | Err(Refused::Disk(_))), "call {call}: {refused:?}");
        assert_eq!(writer.stats().trouble.is_some(), refused.is_err());
        let next = one(&mut writer, 0, Change::insert(packet("/c", b"x")));
        assert_eq!(next, Ok(Done::New), "call {call}");
        for name in ["/a", "/c"] {
            assert_eq!(find(&writer, 0, name, false, false).as_deref(), Some(name), "call {call}");
        }
    }
}

#[test]
fn folders_are_listed_by_one_step_for_each_child() {
    let disk = FaultyDisk::new(16);
    let mut writer = open(&disk, Options::default());
    for folder in ["a", "b", "c"] {
        for n in 0..50 {
            insert(&mut writer, &format!("/l/{folder}/v=1/seg={n}"), b"x");
        }
    }
    let mut reader = writer.reader();
    let prefix: Name = "/l".parse().unwrap();
    let uris = |names: Vec<Name>| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let all = reader.children(prefix.as_ref(), None, 10).unwrap();
    assert_eq!(uris(all.clone()), ["/l/a", "/l/b", "/l/c"]);
    let rest = reader.children(prefix.as_ref(), Some(all[0].as_ref()), 1).unwrap();
    assert_eq!(uris(rest), ["/l/b"]);
    let names = reader.names(prefix.as_ref(), None, 1000).unwrap();
    assert_eq!(names.len(), 150);
    let after = reader.names(prefix.as_ref(), Some(names[148].name.as_ref()), 10).unwrap();
    assert_eq!(after.len(), 1);
}

#[test]
fn names_of_thirty_components_and_of_four_thousand_octets_are_kept() {
    let disk = FaultyDisk::new(17);
    let mut writer = open(&disk, Options::default());
    let long = "/component".repeat(30);
    insert(&mut writer, &long, b"x");
    assert_eq!(find(&writer, 0, &long, false, false), Some(long.clone()));
    assert_eq!(find(&writer, 0, "/component", true, false), Some(long));
    let wide = format!("/{}", "y".repeat(4090));
    insert(&mut writer, &wide, b"x");
    assert!(find(&writer, 0, &wide, false, false).is_some());
    let wider = Change::insert(packet(&format!("/{}", "y".repeat(4095)), b"x"));
    assert_eq!(one(&mut writer, 0, wider), Err(Refused::NameTooLong));
}

#[test]
fn callers_of_many_threads_share_groups_and_a_second_process_is_kept_out() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(Folder::open(place.path()).unwrap(), Options::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                for n in 0..50 {
                    let change = Change::insert(packet(&format!("/m/{thread}/{n}"), &[5; 3000]));
                    assert_eq!(store.apply(vec![change]).unwrap(), [Ok(Done::New)]);
                }
            });
        }
    });
    assert_eq!(store.stats().unwrap().total.packets, 200);
    let second = Store::open(Folder::open(place.path()).unwrap(), Options::default());
    assert!(matches!(second, Err(onym_store::Error::Locked)));
    drop(store);
    let store = Store::open(Folder::open(place.path()).unwrap(), Options::default()).unwrap();
    assert_eq!(store.recovery().records, 0, "it was closed in order");
    let name: Name = "/m/3/49".parse().unwrap();
    assert!(store.reader().get(0, name.as_ref()).unwrap().is_some());
}
