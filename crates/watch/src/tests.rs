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

#[test]
fn a_record_is_read_as_it_was_written_with_its_link_layer_fields() {
    let packet = interest("/a/b");
    let lp = LpOut { nack: Some(NackReason::NO_ROUTE), ..LpOut::default() };
    let fields = Fields::Out(&lp);
    let seen = Seen { fields, kind: Kind::Nack, ..seen(7, 300, Direction::Out, &packet) };
    let record = Record::of(&seen, 1000);
    let frame = onym_wire::lp::LpPacket::parse(&record.frame).unwrap();
    assert_eq!(frame.nack, Some(NackReason::NO_ROUTE));
    let mut batch = Vec::new();
    record.write(&mut batch);
    record::write_missed(&mut batch, 9);
    assert_eq!(record::parse(&batch).unwrap(), (vec![record], 9));
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

#[test]
fn what_is_cut_off_is_told() {
    let packet = interest("/a/long/name");
    let record = Record::of(&seen(0, 1, Direction::In, &packet), 5);
    assert_eq!((record.frame.len(), record.left_out), (5, packet.len() as u64 - 5));
}

#[test]
fn most_packets_of_other_names_are_told_apart_by_a_glance() {
    let filter = Filter { prefix: Some("/net/site/alpha".parse().unwrap()), ..Filter::default() };
    let capture = Capture::new(Tick(0), 1, filter);
    assert!(capture.may_want(&interest("/net/site/alpha/1")));
    for name in ["/net/site/beta/1", "/net/site/gamma/1", "/net/site/alphb", "/n"] {
        assert!(!capture.may_want(&interest(name)) && !capture.may_want(&data(name)), "{name}");
    }
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
    assert_eq!(watch.take(Tick(0), 1, &filter), Some(Taken::default()), "the first begins it");
    let packet = vec![6; 8000];
    let told = 2 * RING_OCTETS / packet.len();
    for _ in 0..told {
        watch.note(&seen(1, 256, Direction::In, &packet));
    }
    let taken = watch.take(Tick::from_ms(2), 1, &filter).unwrap();
    let kept: usize = taken.records.iter().map(|record| record.frame.len()).sum();
    assert!(kept <= RING_OCTETS, "{kept}");
    assert_eq!(taken.records.len() as u64 + taken.missed, told as u64);
    watch.note(&seen(3, 256, Direction::In, &packet));
    let taken = watch.take(Tick::from_ms(4), 1, &filter).unwrap();
    assert_eq!((taken.records.len(), taken.missed), (1, 0), "there is room again");
}

#[test]
fn a_viewer_that_went_away_costs_nothing_for_longer_than_its_lease() {
    let mut watch = Watch::default();
    for viewer in 0..CAPTURES_MAX as u64 {
        assert!(watch.take(Tick(0), viewer, &Filter::default()).is_some());
    }
    assert!(watch.take(Tick(0), 99, &Filter::default()).is_none(), "one too many");
    watch.traffic(Tick(0), 1, 2);
    let late = u64::try_from(LEASE.as_millis()).unwrap() + 1;
    watch.note(&seen(late, 256, Direction::In, &interest("/a")));
    assert!(watch.is_idle());
    assert!(watch.take(Tick::from_ms(late), 99, &Filter::default()).is_some());
}

#[test]
fn one_of_so_many_is_kept() {
    let mut watch = Watch::default();
    let filter = Filter { sample: 10, ..Filter::default() };
    watch.take(Tick(0), 1, &filter);
    (0..95).for_each(|_| watch.note(&seen(1, 256, Direction::In, &interest("/a"))));
    assert_eq!(watch.take(Tick(2), 1, &filter).unwrap().records.len(), 9);
}

/// Shows a packet with a token of a pending Interest whose generation ends so; none: without a token.
fn told(traffic: &mut Traffic, seen: &Seen<'_>, generation: Option<u8>) {
    let token = generation.map(|low| [0, 0, 0, 0, 0, low]);
    let token = token.as_ref().map_or(&[][..], |token| token);
    if traffic.counts(seen.kind, seen.direction, token) {
        traffic.look(seen);
    }
}

/// Law: one Interest in 16, by its token; where upstreams return none, by its name.
#[test]
fn a_round_trip_is_from_the_interest_sent_to_the_data_of_that_face() {
    for (generation, which) in [
        (Some as fn(u8) -> Option<u8>, "tokens that end in 0x_0"),
        (|_| None, "names that end in 0x_0"),
    ] {
        let mut traffic = Traffic::new(Tick(0), 7, 2);
        for n in 0..64_u8 {
            let (name, at, token) = (format!("/a/seg={n}"), u64::from(n) * 100, generation(n));
            told(&mut traffic, &seen(at, 300, Direction::Out, &interest(&name)), Some(n));
            // Another face has the same name: no answer of this one.
            told(&mut traffic, &seen(at + 1, 301, Direction::In, &data(&name)), token);
            told(&mut traffic, &seen(at + 20, 300, Direction::In, &data(&name)), token);
        }
        let trips = traffic.round_trips();
        assert_eq!(trips.len(), 1);
        assert_eq!((trips[0].face, trips[0].samples), (FaceId(300), 4), "{which}");
        assert_eq!(trips[0].smoothed.as_millis(), 20);
    }
}

#[test]
fn a_repeated_interest_is_not_measured() {
    let mut traffic = Traffic::new(Tick(0), 7, 2);
    let (ask, answer) = (interest("/a/seg=16"), data("/a/seg=16"));
    told(&mut traffic, &seen(0, 300, Direction::Out, &ask), Some(16));
    told(&mut traffic, &seen(900, 300, Direction::Out, &ask), Some(16));
    told(&mut traffic, &seen(901, 300, Direction::In, &answer), Some(16));
    assert!(traffic.round_trips().is_empty());
    // What comes too late neither.
    told(&mut traffic, &seen(1000, 300, Direction::Out, &ask), Some(16));
    told(&mut traffic, &seen(60_000, 300, Direction::In, &answer), Some(16));
    assert!(traffic.round_trips().is_empty());
}

#[test]
fn hits_drops_and_octets_stand_beside_their_prefix() {
    let mut traffic = Traffic::new(Tick(0), 7, 1);
    let (ask, answer) = (interest("/a/b/1"), data("/a/b/1"));
    for word in ["cs_hit", "no_route"] {
        for _ in 0..160 {
            let outcome = Outcome { word, is_drop: word == "no_route" };
            let seen = Seen { outcome, ..seen(0, 256, Direction::In, &ask) };
            told(&mut traffic, &seen, Some(1));
        }
    }
    let sent = seen(0, 256, Direction::Out, &answer);
    (0..320).for_each(|_| told(&mut traffic, &sent, Some(1)));
    let rows = traffic.prefixes();
    assert_eq!(rows.len(), 1);
    let row = &rows[0];
    assert_eq!(row.name, "/a".parse::<Name>().unwrap());
    assert_eq!((row.interests, row.hits, row.drops, row.data), (320, 160, 160, 320));
    assert_eq!(row.octets, 320 * answer.len() as u64);
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
    /// Law: the glance by the last octets of a prefix misses nothing that is under it.
    #[test]
    fn a_glance_misses_no_packet_under_a_prefix(
        prefix in "(/[ab]{1,9}){0,4}", rest in "(/[ab]{1,3}){0,3}", long: bool, pad in 0_usize..600,
    ) {
        let tail = if long { format!("/{}", "c".repeat(260)) } else { String::new() };
        let of: Name = if prefix.is_empty() { "/" } else { &prefix }.parse().unwrap();
        let filter = Filter { prefix: Some(of.clone()), ..Filter::default() };
        let capture = Capture::new(Tick(0), 1, filter.clone());
        for packet in packets(&format!("{prefix}{rest}{tail}/x"), pad) {
            prop_assert!(filter.takes(&seen(0, 256, Direction::In, &packet)));
            prop_assert!(capture.may_want(&packet), "{of}");
        }
    }

    /// Space-Saving: a prefix with more than a 256th of what was sampled has a row, and no count is
    /// too low, nor too high by more than its error.
    #[test]
    fn a_prefix_with_its_share_is_never_missing(counts in prop::collection::vec(1_usize..40, 300..400)) {
        let mut traffic = Traffic::new(Tick(0), 7, 1);
        let total: usize = counts.iter().sum();
        let mut left = counts.clone();
        let names: Vec<Vec<u8>> = (0..counts.len()).map(|n| interest(&format!("/p{n}"))).collect();
        while left.iter().any(|n| *n > 0) {
            for (n, left) in left.iter_mut().enumerate().filter(|(_, left)| **left > 0) {
                *left -= 1;
                // Sampled each time, so that the law is that of the table.
                traffic.put(&seen(0, 256, Direction::In, &names[n]));
            }
        }
        let rows = traffic.prefixes();
        prop_assert!(rows.len() <= 256);
        for (n, count) in counts.iter().enumerate() {
            let row = rows.iter().find(|row| row.name == format!("/p{n}").parse::<Name>().unwrap());
            prop_assert!(row.is_some() || *count <= total / 256, "/p{} with {}", n, count);
            if let Some(row) = row {
                let (counted, count) = (row.packets() / 16, *count as u64);
                prop_assert!(counted >= count && counted - row.error / 16 <= count);
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
        watch.take(Tick(0), 1, &filter);
        let direction = if out { Direction::Out } else { Direction::In };
        watch.note(&seen(1, 256, direction, &octets));
        prop_assert!(watch.take(Tick(1) + Duration::from_millis(1), 1, &filter).is_some());
    }
}
