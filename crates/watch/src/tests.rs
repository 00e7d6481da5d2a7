#![allow(clippy::unwrap_used)]

use super::*;
use onym_wire::Name;
use onym_wire::lp::NackReason;
use onym_wire::tlv;
use proptest::prelude::*;
use std::time::Duration;

fn interest(name: &str) -> Vec<u8> {
    let name: Name = name.parse().unwrap();
    let mut wire = Vec::new();
    tlv::put_nested(&mut wire, types::INTEREST, |out| {
        name.as_ref().write_tlv(out);
        tlv::put_tlv(out, types::NONCE, &[1, 2, 3, 4]);
    });
    wire
}

fn shows(watch: &Watch, octets: &[u8]) -> bool {
    watch.may_show(Named::of(octets))
}

/// Why a packet that comes is looked at; none where it was not drawn.
fn look(watch: &mut Watch) -> Option<Look> {
    if watch.left() > 0 {
        watch.pass(1);
        return None;
    }
    Some(watch.look())
}

fn seen<'a>(at_ms: u64, face: u32, direction: Direction, octets: &'a [u8]) -> Seen<'a> {
    let kind = if octets.first() == Some(&5) { Kind::Interest } else { Kind::Data };
    Seen {
        at: Tick::from_ms(at_ms),
        face: FaceId(face),
        direction,
        kind,
        outcome: Outcome { word: "forwarded", is_drop: false },
        fields: Fields::Bare,
        octets,
        name: name_of(octets),
    }
}

fn data(name: &str) -> Vec<u8> {
    let mut wire = interest(name);
    wire[0] = 6;
    wire
}

/// The record of a packet of which so many octets are kept.
fn record_of(seen: &Seen<'_>, snap: usize) -> Record {
    let mut batch = Vec::new();
    record::append(&mut batch, seen, snap, 1_000_000_000);
    let (mut records, missed) = record::parse(&batch).unwrap();
    assert_eq!((records.len(), missed), (1, 0));
    records.remove(0)
}

#[test]
fn a_record_is_read_as_it_was_written_with_its_link_layer_fields() {
    let packet = interest("/a/b");
    let lp = LpOut { nack: Some(NackReason::NO_ROUTE), ..LpOut::default() };
    let fields = Fields::Out(&lp);
    for kind in Kind::ALL {
        let seen = Seen { fields, kind, ..seen(7, 300, Direction::Out, &packet) };
        let record = record_of(&seen, 1000);
        let frame = onym_wire::lp::LpPacket::parse(&record.frame).unwrap();
        assert_eq!((frame.nack, frame.fragment), (Some(NackReason::NO_ROUTE), Some(&packet[..])));
        assert_eq!((record.time_ns, record.face), (1_007_000_000, FaceId(300)));
        assert_eq!((record.direction, record.kind), (Direction::Out, kind));
        assert_eq!((&record.outcome[..], record.left_out), ("forwarded", 0));
    }
    let mut batch = Vec::new();
    record::write_missed(&mut batch, 9);
    assert_eq!(record::parse(&batch).unwrap(), (Vec::new(), 9));
}

/// Law: records of several threads are in the order of their times.
#[test]
fn batches_of_several_threads_are_one_in_order() {
    let packet = interest("/a");
    let batch = |times: &[u64]| {
        let mut batch = Vec::new();
        for at in times {
            record::append(&mut batch, &seen(*at, 300, Direction::In, &packet), 1000, 0);
        }
        batch
    };
    let merged = record::merge(vec![batch(&[1, 4, 9]), batch(&[]), batch(&[2, 3, 11])]);
    let (records, _) = record::parse(&merged).unwrap();
    let times: Vec<u64> = records.iter().map(|record| record.time_ns / 1_000_000).collect();
    assert_eq!(times, [1, 2, 3, 4, 9, 11]);
    assert_eq!(record::merge(vec![Vec::new(), batch(&[5])]), batch(&[5]));
    assert!(record::merge(Vec::new()).is_empty());
}

#[test]
fn a_name_is_found_as_the_parser_finds_it() {
    let long = format!("/{}/{}", "x".repeat(200), "y".repeat(300));
    for name in ["/", "/a", "/a/b/c", &long] {
        for packet in [interest(name), data(name)] {
            let name: Name = name.parse().unwrap();
            assert_eq!(name_of(&packet), Some(name.as_ref().value()));
            for end in 0..packet.len() {
                let whole = name_of(&packet[..end]).is_none_or(|n| n == name.as_ref().value());
                assert!(whole, "cut after {end}");
            }
        }
    }
    assert_eq!(name_of(&[]), None);
    assert_eq!(name_of(&[5, 2, 8, 0]), None, "an Interest without a name");
    assert_eq!(name_of(&[5, 4, 7, 255, 8, 0]), None);
}

/// Law: a frame is the same whether only a token goes with it or not, whatever their lengths.
#[test]
fn a_frame_is_written_as_its_link_layer_header_says() {
    let packets = [interest("/a"), data(&format!("/{}", "x".repeat(300)))];
    for (packet, len) in packets.iter().flat_map(|packet| (0..=32).map(move |len| (packet, len))) {
        let pit_token = Token::try_from(&[7; 32][..len]).unwrap();
        for congestion_mark in [0, 1] {
            let lp = LpOut { pit_token: pit_token.clone(), congestion_mark, ..LpOut::default() };
            let fields = Fields::Out(&lp);
            let record = record_of(&Seen { fields, ..seen(0, 1, Direction::Out, packet) }, 8800);
            let mut frame = Vec::new();
            fields.header(Kind::Data).write(&mut frame, packet.len());
            frame.extend_from_slice(packet);
            assert_eq!(record.frame, frame, "a token of {len} octets");
            let lp = LpIn { pit_token: pit_token.clone(), congestion_mark, ..LpIn::default() };
            let fields = Fields::In(&lp);
            let cut = record_of(&Seen { fields, ..seen(0, 1, Direction::In, packet) }, 3);
            assert_eq!((&cut.frame[..], cut.left_out as usize), (&frame[..3], frame.len() - 3));
        }
    }
}

#[test]
fn what_is_cut_off_is_told() {
    let packet = interest("/a/long/name");
    for snap in [0, 5, packet.len() - 1] {
        let record = record_of(&seen(0, 1, Direction::In, &packet), snap);
        let whole = packet.len() as u64;
        assert_eq!((record.frame.len(), record.left_out), (snap, whole - snap as u64));
        let lp = LpOut { nack: Some(NackReason::NO_ROUTE), ..LpOut::default() };
        let fields = Fields::Out(&lp);
        let record = record_of(&Seen { fields, ..seen(0, 1, Direction::In, &packet) }, snap);
        assert_eq!(record.frame.len(), snap, "with link-layer fields");
        assert!(record.left_out > whole - snap as u64);
    }
}

#[test]
fn most_packets_of_other_names_are_told_apart_by_a_glance() {
    let filter =
        |prefix: &str| Filter { prefix: Some(prefix.parse().unwrap()), ..Filter::default() };
    let mut watch = Watch::default();
    assert!(!shows(&watch, &interest("/net/site/alpha/1")), "nobody looks");
    watch.take(Tick(0), 1, &filter("/net/site/alpha"), 0);
    let others = ["/net/site/beta/1", "/net/site/gamma/1", "/net/site/alphb", "/n"];
    assert!(shows(&watch, &interest("/net/site/alpha/1")));
    for name in others {
        assert!(!shows(&watch, &interest(name)) && !shows(&watch, &data(name)), "{name}");
    }
    let above = |next: u32| {
        let (name, mut wire) = ("/net/site".parse::<Name>().unwrap(), Vec::new());
        tlv::put_nested(&mut wire, types::INTEREST, |out| {
            name.as_ref().write_tlv(out);
            tlv::put_tlv(out, next, &[]);
        });
        wire
    };
    assert!(shows(&watch, &above(types::CAN_BE_PREFIX)), "Data under the prefix answer it");
    assert!(!shows(&watch, &above(types::MUST_BE_FRESH)), "none of them do");
    watch.take(Tick(0), 2, &filter("/net/site/beta"), 0);
    assert!(shows(&watch, &interest("/net/site/beta/1")), "of another viewer");
    watch.end(2);
    assert!(!shows(&watch, &interest("/net/site/beta/1")));
    watch.end(1);
    assert!(!watch.has_captures() && !shows(&watch, &interest("/net/site/alpha/1")));
}

#[test]
fn a_filter_takes_what_it_says() {
    let (a, ab) = (interest("/a"), interest("/ab"));
    let filter = |text: &str| {
        let mut filter = Filter::default();
        for pair in text.split('&') {
            let (key, value) = pair.split_once('=').unwrap();
            assert!(filter.set(key, value).unwrap(), "{pair}");
        }
        assert_eq!(filter.to_string(), text, "it is shown as it is typed");
        filter
    };
    let of_a = seen(0, 300, Direction::In, &a);
    assert!(filter("face=300&prefix=/a&kind=interest,data&direction=in").takes(&of_a));
    assert!(!filter("prefix=/a").takes(&seen(0, 300, Direction::In, &ab)), "whole components");
    assert!(!filter("face=301").takes(&of_a));
    assert!(!filter("direction=out").takes(&of_a));
    assert!(!filter("kind=nack").takes(&of_a));
    assert!(!filter("verdict=no_route,scope").takes(&of_a));
    assert!(filter("verdict=forwarded").takes(&of_a));
    let mut wrong = Filter::default();
    for (key, value) in [("face", "x"), ("kind", "packet"), ("direction", "up"), ("sample", "0")] {
        assert!(wrong.set(key, value).is_err(), "{key}={value}");
    }
    assert!(!wrong.set("colour", "red").unwrap(), "no key of a filter");
}

#[test]
fn a_ring_is_bounded_and_what_found_no_room_is_counted() {
    let mut watch = Watch::default();
    let filter = Filter::default();
    let begun = watch.take(Tick(0), 1, &filter, 0);
    assert_eq!(begun, Some(Taken::default()), "the first begins it");
    let packet = vec![6; 8000];
    let told = 2 * RING_OCTETS / packet.len();
    for _ in 0..told {
        watch.show(&seen(1, 256, Direction::In, &packet));
    }
    let (count, missed) = taken(&mut watch, 2, &filter, RING_OCTETS);
    assert!(missed > 0 && count as u64 + missed == told as u64, "{count}, {missed} of {told}");
    watch.show(&seen(3, 256, Direction::In, &packet));
    assert_eq!(taken(&mut watch, 4, &filter, RING_OCTETS), (1, 0), "there is room again");
}

/// How many records viewer 1 is given at `ms`, in at most so many octets, and how many it missed.
fn taken(watch: &mut Watch, ms: u64, filter: &Filter, octets_max: usize) -> (usize, u64) {
    let taken = watch.take(Tick::from_ms(ms), 1, filter, 0).unwrap();
    assert!(taken.records.len() <= octets_max, "{} octets", taken.records.len());
    (record::parse(&taken.records).unwrap().0.len(), taken.missed)
}

#[test]
fn a_viewer_that_went_away_costs_nothing_for_longer_than_its_lease() {
    let mut watch = Watch::default();
    for viewer in 0..CAPTURES_MAX as u64 {
        assert!(watch.take(Tick(0), viewer, &Filter::default(), 0).is_some());
    }
    assert!(watch.take(Tick(0), 99, &Filter::default(), 0).is_none(), "one too many");
    watch.traffic(Tick(0), 1, 2);
    let late = u64::try_from(LEASE.as_millis()).unwrap() + 1;
    watch.show(&seen(late, 256, Direction::In, &interest("/a")));
    assert!(watch.is_idle());
    assert!(look(&mut watch).is_none(), "nobody looks");
    assert!(watch.take(Tick::from_ms(late), 99, &Filter::default(), 0).is_some());
}

#[test]
fn one_of_so_many_is_kept() {
    let mut watch = Watch::default();
    let filter = Filter { sample: 10, ..Filter::default() };
    watch.take(Tick(0), 1, &filter, 0);
    (0..95).for_each(|_| watch.show(&seen(1, 256, Direction::In, &interest("/a"))));
    assert_eq!(taken(&mut watch, 2, &filter, RING_OCTETS).0, 9);
}

/// A sample that stands for so many Interests of a name.
fn sample(name: &[u8], stands_for: u64) -> Sample<'_> {
    Sample {
        at: Tick(0),
        stands_for,
        name,
        is_interest: true,
        is_hit: false,
        is_drop: false,
        data: [0; 2],
        round_trip: None,
    }
}

#[test]
fn round_trips_are_smoothed_for_each_face() {
    let mut traffic = Traffic::new(Tick(0), 7, 2, 0);
    let name = name_of(&data("/a/b")).unwrap().to_vec();
    for (face, ms) in [(300, 20), (301, 5), (300, 20), (300, 100)] {
        let round_trip = Some((FaceId(face), Duration::from_millis(ms)));
        traffic.count(&Sample { is_interest: false, round_trip, ..sample(&name, 1) });
    }
    let mut trips = traffic.round_trips();
    trips.sort_by_key(|trip| trip.face);
    let trips = trips.iter().map(|t| (t.face.0, t.samples, t.smoothed.as_millis()));
    assert_eq!(trips.collect::<Vec<_>>(), [(300, 3, 30), (301, 1, 5)]);
    assert!(traffic.prefixes().is_empty(), "Data for nobody are no traffic of a prefix");
}

#[test]
fn hits_drops_and_octets_stand_beside_their_prefix() {
    let mut traffic = Traffic::new(Tick(0), 7, 1, 0);
    let name = name_of(&interest("/a/b/1")).unwrap().to_vec();
    for _ in 0..10 {
        let of = sample(&name, 16);
        traffic.count(&Sample { is_hit: true, data: [1, 100], ..of });
        traffic.count(&Sample { is_drop: true, ..of });
        traffic.count(&Sample { is_interest: false, is_hit: true, data: [3, 300], ..of });
    }
    let rows = traffic.prefixes();
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(row.name, "/a".parse::<Name>().unwrap());
    assert_eq!((row.interests, row.hits, row.drops, row.data), (320, 160, 160, 640));
    assert_eq!((row.octets, row.missing), (64_000, 0));
    assert_eq!(row.variance, 160 * 15 * (4 + 1 + 9));
}

#[test]
fn a_prefix_is_cut_at_whole_components_that_fit() {
    let mut traffic = Traffic::new(Tick(0), 7, 3, 0);
    let long = "x".repeat(300);
    for name in [format!("/{long}/a"), format!("/a/{long}/b"), "/a/b/c/d".to_owned()] {
        traffic.count(&sample(name_of(&interest(&name)).unwrap(), 1));
    }
    let mut names: Vec<_> = traffic.prefixes().iter().map(|row| row.name.to_string()).collect();
    names.sort();
    assert_eq!(names, ["/", "/a", "/a/b/c"]);
}

/// So many packets a second for some seconds, each with the name that `name` says, through what a shard
/// asks of a watch; how many were looked at.
fn run(watch: &mut Watch, rate: u64, seconds: u64, mut name: impl FnMut(u64) -> Vec<u8>) -> u64 {
    let mut looked_at = 0;
    for n in 0..rate * seconds {
        let octets = name(n);
        let Some(look) = look(watch) else { continue };
        assert!(!look.is_recorded);
        let at = Tick(n * 1_000_000_000 / rate);
        watch.count(&Sample { at, ..sample(name_of(&octets).unwrap(), look.stands_for) });
        looked_at += u64::from(look.stands_for > 0);
    }
    looked_at
}

/// Law: of many packets one in 256 is looked at, of few ones most.
#[test]
fn more_packets_are_looked_at_where_they_are_few() {
    let looked_at = |rate| {
        let mut watch = Watch::default();
        watch.traffic(Tick(0), 7, 2);
        run(&mut watch, rate, 4, |_| interest("/a/b"))
    };
    assert_eq!(looked_at(10), 40, "all");
    assert!((80..=400).contains(&looked_at(100)), "{}", looked_at(100));
    let many = looked_at(50_000);
    assert!((800..1800).contains(&many), "200,000 / 256 and those of the start: {many}");
}

/// Law: one Interest in so many is recorded, whatever else is drawn, and nothing else is looked at.
#[test]
fn what_is_recorded_is_drawn_beside_what_is_sampled() {
    let settings = SpanSettings { sample: 100, rate_max: 1_000_000, seed: 3 };
    let mut watch = Watch::recording(settings);
    watch.traffic(Tick(0), 1, 2);
    let packets = [interest("/a/b"), data("/a/b")];
    let (mut wanted, mut recorded) = (0, [0; 2]);
    for n in 0..200_000_u64 {
        let kind = (n % 2) as usize;
        let Some(look) = look(&mut watch) else { continue };
        wanted += 1;
        recorded[kind] += u64::from(look.is_recorded);
        if look.stands_for > 0 {
            let name = name_of(&packets[kind]).unwrap();
            watch.count(&Sample { at: Tick(10_000 * n), ..sample(name, look.stands_for) });
        }
    }
    for recorded in recorded {
        assert!((850..1150).contains(&recorded), "{recorded} of 100,000");
    }
    let drawn = recorded[0] + recorded[1];
    assert!(wanted < drawn + 1500, "{wanted}: those, and one in 256");
    watch.end_leases(Tick(0) + LEASE + LEASE);
    assert!(!watch.is_idle(), "who records is no viewer");
}

/// Law: the heaviest prefixes are found, with their share and what it may be wrong by.
#[test]
fn the_heaviest_prefixes_are_told_within_their_error() {
    let mut rng = onym_tables::Rng::new(5);
    let mut outside = 0;
    for seed in 0..6 {
        let mut watch = Watch::default();
        watch.traffic(Tick(0), seed, 2);
        let mut counts = std::collections::BTreeMap::<u64, u64>::new();
        run(&mut watch, 20_000, 5, |_| {
            // Four heavy ones with 30, 20, 10 and 5 per cent, and a tail of 10,000.
            let prefix = match rng.below(100) {
                0..30 => 0,
                30..50 => 1,
                50..60 => 2,
                60..65 => 3,
                _ => 4 + rng.below(10_000),
            };
            *counts.entry(prefix).or_default() += 1;
            interest(&format!("/site/p{prefix}/{}", rng.below(1_000_000)))
        });
        let traffic = watch.traffic(Tick::from_ms(5000), seed, 2);
        let (mut rows, unseen_max) = (traffic.prefixes(), traffic.unseen_max());
        rows.sort_by_key(|row| std::cmp::Reverse(row.packets()));
        for (place, row) in rows.iter().take(4).enumerate() {
            assert_eq!(row.name.to_string(), format!("/site/p{place}"), "seed {seed}");
            let real = counts[&(place as u64)];
            // Two standard deviations, which chance exceeds once in twenty times.
            let error = 2 * row.variance.isqrt() + row.missing;
            outside += u32::from(row.packets().abs_diff(real) > error);
            assert!(row.packets().abs_diff(real) <= 2 * error, "{} of {real}", row.packets());
        }
        assert!(unseen_max < 5_000, "less than the lightest of those: {unseen_max}");
    }
    assert!(outside <= 4, "{outside} of 24 are outside of their error");
}

/// A packet in which all lengths are as short as can be, and one in which they are not.
fn packets(name: &str, pad: usize) -> [Vec<u8>; 2] {
    let name: Name = name.parse().unwrap();
    [types::INTEREST, types::DATA].map(|typ| {
        let mut wire = Vec::new();
        tlv::put_nested(&mut wire, typ, |out| {
            name.as_ref().write_tlv(out);
            tlv::put_tlv(out, types::NONCE, &vec![7; pad]);
        });
        wire
    })
}

proptest! {
    /// Law: the glance by the last octets of a prefix misses no packet that is under it, and takes none with
    /// a name that differs in them.
    #[test]
    fn a_glance_misses_no_packet_under_a_prefix(
        prefix in "(/[ab]{1,9}){0,4}|(/[ab]{50,60}){4,6}|/[ab]{260}", rest in "(/[ab]{1,3}){0,3}", long: bool, pad in 0_usize..600,
    ) {
        let tail = if long { format!("/{}", "c".repeat(260)) } else { String::new() };
        let of: Name = if prefix.is_empty() { "/" } else { &prefix }.parse().unwrap();
        let filter = Filter { prefix: Some(of.clone()), ..Filter::default() };
        let mut watch = Watch::default();
        watch.take(Tick(0), 1, &filter, 0);
        for octets in packets(&format!("{prefix}{rest}{tail}/x"), pad) {
            prop_assert!(filter.takes(&seen(0, 256, Direction::In, &octets)));
            let name = name_of(&octets).unwrap();
            prop_assert!(shows(&watch, &octets) && watch.tail().may_cover(name), "{of}");
            prop_assert!(look(&mut watch).is_none(), "the forwarder knows it by its name");
        }
        // And one of another name is left alone.
        for octets in packets(&format!("{}/x", prefix.replace(['a', 'b'], "z")), pad) {
            prop_assert!(prefix.is_empty() || !shows(&watch, &octets), "{of}");
        }
    }

    /// Space-Saving: a prefix with more than a 256th of what was sampled has a row, and no count is
    /// too high, nor too low by more than what is missing.
    #[test]
    fn a_prefix_with_its_share_is_never_missing(counts in prop::collection::vec(1_usize..40, 300..400)) {
        let mut traffic = Traffic::new(Tick(0), 7, 1, 0);
        let total: usize = counts.iter().sum();
        let mut left = counts.clone();
        let names: Vec<Vec<u8>> = (0..counts.len()).map(|n| interest(&format!("/p{n}"))).collect();
        while left.iter().any(|n| *n > 0) {
            for (n, left) in left.iter_mut().enumerate().filter(|(_, left)| **left > 0) {
                *left -= 1;
                // Sampled each time, so that the law is that of the table.
                traffic.count(&sample(name_of(&names[n]).unwrap(), 1));
            }
        }
        let rows = traffic.prefixes();
        prop_assert!(rows.len() <= 256);
        // The same again: what is told of it by itself keeps the law.
        let unseen = traffic.unseen_max();
        for _ in 0..2 {
            names.iter().for_each(|name| traffic.count(&sample(name_of(name).unwrap(), 1)));
        }
        for row in traffic.prefixes() {
            let grown = row.since(rows.iter().find(|past| past.name == row.name), unseen);
            prop_assert!(grown.packets() <= 2 && 2 <= grown.packets() + grown.missing, "{:?}", grown);
        }
        for (n, count) in counts.iter().enumerate() {
            let row = rows.iter().find(|row| row.name == format!("/p{n}").parse::<Name>().unwrap());
            prop_assert!(row.is_some() || *count <= total / 256, "/p{} with {}", n, count);
            let count = *count as u64;
            match row {
                Some(row) => {
                    prop_assert!(row.packets() <= count && count <= row.packets() + row.missing);
                }
                None => prop_assert!(count <= unseen, "{count} of {unseen}"),
            }
        }
    }

    /// Octets of anybody are an error at worst.
    #[test]
    fn no_batch_ends_in_a_panic(octets in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = record::parse(&octets);
    }

    #[test]
    fn no_packet_ends_in_a_panic(octets in prop::collection::vec(any::<u8>(), 0..100), out: bool) {
        let mut watch = Watch::default();
        watch.traffic(Tick(0), 1, 3);
        let filter = Filter { prefix: Some("/a".parse().unwrap()), ..Filter::default() };
        watch.take(Tick(0), 1, &filter, 0);
        let direction = if out { Direction::Out } else { Direction::In };
        let drawn = look(&mut watch);
        prop_assert!(drawn.is_some(), "the first one is a sample");
        let stands_for = drawn.unwrap().stands_for;
        watch.show(&seen(1, 256, direction, &octets));
        watch.count(&sample(&octets, stands_for));
        prop_assert!(watch.take(Tick(1) + Duration::from_millis(1), 1, &filter, 0).is_some());
    }
}
