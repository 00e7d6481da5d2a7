use super::*;
use onym_wire::{Data, Interest, tlv::Element};

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect()
}

const BOOT: u64 = 1_795_444_162;
const UNIX_MS: u64 = BOOT * 1000;

/// Sent by ndnd 31822ab2 (`/net/a`, boot 1795444162, Ed25519).
const PREFIX_SYNC: &str = "05fd0102073808036e657420024456200350465320037376733601030220c911bfc1970a9b0e5fd3027eb7b259985cd4b7f1d6ce6d5032c4a3129d80f8c80a047c9fe4bc0c0203e824bc06ba072408036e657420024456200350465308036e657408016138046b044dc2200373767336010314031801001519c917ca15070808036e6574080161d209d4046b044dc2d6010116301b01051c21071f08036e65740801612002445608034b45590808d14c150c5add375f08024e412808000001a208cfbf8b17403d7484afcbdb089691466363175cba3b46f4024636298b953b6ad2c6b40065d2507a64bcfe98673ace7f1fa0a1278a852573558c1aa4a67c3e7ba89747f8e604";

fn config(node: &str) -> SvsConfig {
    let config = SvsConfig::new(name("/g"), Some(name(node)), BOOT, Signer::digest());
    SvsConfig { check: Check::Nothing, ..config }
}

fn svs(config: SvsConfig) -> Svs {
    let mut svs = Svs::new(Tick(0), UNIX_MS, config, 7);
    assert!(svs.poll_transmit(Tick(0)).is_some(), "the first vector");
    svs
}

fn vector(entries: &[(&str, u64, u64)]) -> StateVector {
    let mut vector = StateVector::default();
    entries.iter().for_each(|(node, boot, seq)| vector.raise(&name(node), *boot, *seq));
    vector
}

fn packet(config: &SvsConfig, entries: &[(&str, u64, u64)], extra: &[u8]) -> Vec<u8> {
    packet::write(config, &vector(entries), extra, [1; 4], 5, UNIX_MS).expect("a digest")
}

fn updates(svs: &mut Svs) -> Vec<(String, u64, u64, u64)> {
    let mut all = Vec::new();
    while let Some(event) = svs.poll_event() {
        let SvsEvent::Updates(updates) = event else { continue };
        all.extend(updates.into_iter().map(|u| (u.node.to_string(), u.boot, u.low, u.high)));
    }
    all
}

#[test]
fn the_recorded_sync_interest_of_ndnd_is_read_and_its_vector_written_again() {
    let wire = hex(PREFIX_SYNC);
    let group = name("/net/32=DV/32=PFS/32=svs");
    let read = SyncPacket::parse(&wire, group.as_ref(), Version::V3).expect("well formed");
    let read = read.expect("of this group");
    assert_eq!(read.vector, vector(&[("/net/a", BOOT, 1)]));
    let inner = Data::parse(&read.signed).expect("Data");
    let own = name("/net/32=DV/32=PFS/net/a/t=1795444162/32=svs/v=3");
    assert_eq!(inner.name, own);
    let mut again = Vec::new();
    read.vector.write(Version::V3, &mut again);
    assert_eq!(again, inner.content);
    let other = name("/net/32=DV/32=PFS");
    assert_eq!(SyncPacket::parse(&wire, other.as_ref(), Version::V3), Ok(None));
    let mut bent = wire;
    let last = bent.len() - 1;
    bent[last] ^= 1;
    assert!(SyncPacket::parse(&bent, group.as_ref(), Version::V3).is_err(), "its digest");
}

#[test]
fn a_sync_interest_of_ours_has_the_shape_of_the_recorded_one() {
    let recorded = hex(PREFIX_SYNC);
    let theirs = Interest::parse(&recorded).expect("an Interest");
    let mut c = config("/net/a");
    c.group = name("/net/32=DV/32=PFS/32=svs");
    c.inner = InnerName::Own(name("/net/32=DV/32=PFS/net/a/t=1795444162/32=svs"));
    let wire = packet(&c, &[("/net/a", BOOT, 1)], &[]);
    let ours = Interest::parse(&wire).expect("an Interest");
    assert_eq!(ours.name.drop_last(1), theirs.name.drop_last(1).to_name());
    assert_eq!((ours.lifetime_ms, ours.can_be_prefix), (theirs.lifetime_ms, false));
    assert!(!ours.must_be_fresh && ours.signature_info().is_none());
    let inner = |i: &Interest<'_>| {
        let data = Element::parse(i.app_parameters.unwrap()).unwrap().wire.to_vec();
        let data = Data::parse(&data).unwrap();
        (data.name.to_name(), data.content.to_vec())
    };
    assert_eq!(inner(&ours), inner(&theirs));
}

#[test]
fn version_2_is_written_and_read_with_one_number_a_node() {
    let c = SvsConfig { version: Version::V2, ..config("/a") };
    let wire = packet(&c, &[("/a", 0, 3), ("/b", 0, 300)], b"\xcd\x00");
    let interest = Interest::parse(&wire).expect("an Interest");
    assert!(interest.is_signed());
    assert_eq!(interest.name.prefix(2), name("/g/v=2"));
    let parameters = interest.app_parameters.expect("parameters");
    assert_eq!(version_of(parameters), Some(Version::V2));
    assert_eq!(parameters, hex("c915ca080703080161cc0103ca090703080162cc02012ccd00"));
    let mut b = svs(SvsConfig { version: Version::V2, ..config("/b") });
    assert!(b.receive(Tick(0), &wire));
    assert_eq!(b.poll_event(), Some(SvsEvent::OwnAhead { seq: 300 }));
    assert_eq!(updates(&mut b), [("/a".into(), 0, 1, 3)]);
    assert_eq!(b.publish(Tick(0)), Some(301), "behind what was heard");
}

#[test]
fn several_bootstraps_of_a_node_are_told_newest_first() {
    let mut a = svs(config("/a"));
    let c = config("/b");
    a.receive(Tick(0), &packet(&c, &[("/b", 10, 2), ("/b", 20, 1), ("/c", 5, 1)], &[]));
    let told = updates(&mut a);
    assert_eq!(told, [("/b".into(), 20, 1, 1), ("/b".into(), 10, 1, 2), ("/c".into(), 5, 1, 1)]);
    a.receive(Tick(0), &packet(&c, &[("/b", 10, 4)], &[]));
    assert_eq!(updates(&mut a), [("/b".into(), 10, 3, 4)]);
}

#[test]
fn a_vector_from_the_future_changes_nothing_wherever_the_entry_stands() {
    let mut a = svs(config("/a"));
    let c = config("/b");
    let late = BOOT + 86_402;
    a.receive(Tick(0), &packet(&c, &[("/b", 10, 2), ("/z", late, 1)], &[]));
    assert_eq!(a.poll_event(), None);
    assert_eq!((a.vector().len(), a.counters().future), (0, 1));
    a.set_clock(Tick(0), UNIX_MS + 5000);
    a.receive(Tick(0), &packet(&c, &[("/b", 10, 2), ("/z", late, 1)], &[]));
    assert_eq!(a.vector().len(), 2, "once the clock is right");
}

#[test]
fn a_vector_counts_only_when_it_was_verified() {
    let mut a = svs(SvsConfig { check: Check::Ask, ..config("/a") });
    let wire = packet(&config("/b"), &[("/b", 10, 2)], &[]);
    let ask = |a: &mut Svs| {
        a.receive(Tick(0), &wire);
        let Some(SvsEvent::Verify { id, packet }) = a.poll_event() else { panic!() };
        assert_eq!(Data::parse(&packet).unwrap().name, name("/g/v=3"));
        id
    };
    let (first, second) = (ask(&mut a), ask(&mut a));
    assert!(a.vector().is_empty());
    a.verified(Tick(0), first, Judged::Bad);
    assert_eq!((a.poll_event(), a.counters().refused), (None, 1));
    a.verified(Tick(0), second, Judged::Good);
    a.verified(Tick(0), second, Judged::Good);
    assert_eq!(updates(&mut a).len(), 1);
    for _ in 0..3 * VERIFYING_MAX {
        a.receive(Tick(0), &wire);
    }
    assert_eq!(a.verifying.len(), VERIFYING_MAX);
    assert_eq!(a.counters().verifying_dropped, 2 * VERIFYING_MAX as u64);
}

#[test]
fn an_outdated_vector_is_answered_after_a_wait_and_not_when_others_did() {
    let mut a = svs(config("/a"));
    let c = config("/b");
    a.publish(Tick(0));
    assert!(a.poll_transmit(Tick(0)).is_some());
    let at = Tick::from_ms(1000);
    let outdated = packet(&c, &[("/b", 10, 1)], &[]);
    a.receive(at, &outdated);
    assert!(a.poll_timeout() <= at.plus_ms(200), "{:?}", a.poll_timeout());
    assert_eq!(a.poll_transmit(at), None, "not at once");
    a.handle_timeout(a.poll_timeout());
    assert!(a.poll_transmit(at.plus_ms(200)).is_some());
    // The same again, and somebody else answers.
    let at = Tick::from_ms(5000);
    a.receive(at, &outdated);
    a.receive(at, &packet(&c, &[("/a", BOOT, 1), ("/b", 10, 1)], &[]));
    assert!(a.poll_timeout() > at.plus_ms(20_000), "steady again");
    assert_eq!(a.poll_transmit(at), None);
}

#[test]
fn news_of_a_moment_ago_is_no_reason_to_answer() {
    let mut a = svs(config("/a"));
    a.publish(Tick::from_ms(1000));
    assert!(a.poll_transmit(Tick::from_ms(1000)).is_some());
    a.receive(Tick::from_ms(1100), &packet(&config("/b"), &[("/b", 10, 1)], &[]));
    assert_eq!(a.counters().suppressed, 1);
    assert!(a.poll_timeout() > Tick::from_ms(20_000));
}

#[test]
fn what_comes_along_is_handed_on_and_bounded() {
    let mut a = svs(config("/a"));
    let mut b = svs(config("/b"));
    b.publish(Tick(0));
    b.attach(b"\xcd\x02xy");
    b.attach(&[0; EXTRA_OCTETS_MAX]);
    let wire = b.poll_transmit(Tick(0)).expect("due");
    a.receive(Tick(0), &wire);
    let events: Vec<_> = std::iter::from_fn(|| a.poll_event()).collect();
    assert_eq!(events.last(), Some(&SvsEvent::Extra(b"\xcd\x02xy".to_vec())));
    b.publish(Tick(0));
    let wire = b.poll_transmit(Tick(0)).expect("due");
    a.receive(Tick(0), &wire);
    assert!(!std::iter::from_fn(|| a.poll_event()).any(|e| matches!(e, SvsEvent::Extra(_))));
}

#[test]
fn a_vector_stays_within_its_bounds_whatever_is_claimed() {
    let limits = Limits { octets_max: 1000, boots_max: 4, forgotten_max: 8 };
    let mut a = svs(SvsConfig { limits, ..config("/a") });
    let c = config("/b");
    a.publish(Tick(0));
    for round in 0..200u64 {
        let at = Tick::from_ms(round);
        let names: Vec<String> = (0..40).map(|i| format!("/hostile/{round}/{i}")).collect();
        let mut entries: Vec<_> = names.iter().map(|n| (n.as_str(), round + 1, 1)).collect();
        (1..40).for_each(|boot| entries.push(("/boots", round * 40 + boot, 1)));
        a.receive(at, &packet(&c, &entries, &[]));
        while a.poll_event().is_some() {}
        let mut wire = Vec::new();
        a.vector().write(Version::V3, &mut wire);
        assert!(wire.len() <= 1000 + 4, "{}", wire.len());
        assert!(a.vector().boots(&name("/boots")).count() <= 4);
    }
    assert_eq!(a.vector().seq(&name("/a"), BOOT), 1, "our own has its place");
    assert!(a.known_counters().full > 0 && a.known_counters().boots_forgotten > 0);
    // Those names were dead for a day: living nodes find room.
    let day = Tick::from_ms(2 * 86_400_000);
    let living: Vec<String> = (0..30).map(|i| format!("/living/{i}")).collect();
    let entries: Vec<_> = living.iter().map(|n| (n.as_str(), 7, 1)).collect();
    a.receive(day, &packet(&c, &entries, &[]));
    assert!(living.iter().all(|n| a.vector().seq(&name(n), 7) == 1));
    assert!(a.known_counters().nodes_forgotten > 0);
}

#[test]
fn superseded_bootstraps_are_forgotten_for_good_and_nobody_lacks_them() {
    let mut a = svs(config("/a"));
    let c = config("/b");
    let both = packet(&c, &[("/b", 10, 5), ("/b", 20, 1)], &[]);
    a.receive(Tick(0), &both);
    assert_eq!(updates(&mut a).len(), 2);
    let later = Tick::from_ms(3_700_000);
    a.handle_timeout(later);
    assert!(a.poll_transmit(later).is_some());
    assert_eq!(a.vector(), vector(&[("/b", 20, 1)]));
    a.receive(later, &both);
    assert_eq!(updates(&mut a), [], "no news");
    a.receive(later, &packet(&c, &[("/b", 20, 1)], &[]));
    assert_eq!(a.poll_transmit(later), None);
    assert!(a.poll_timeout() > later.plus_ms(20_000), "nobody is outdated");
}

#[test]
fn only_members_are_taken() {
    let members = Members::Under { prefix: name("/net"), components: Some(1) };
    let mut a = svs(SvsConfig { members, ..config("/net/a") });
    let entries = [("/net/b", 1, 1), ("/net/b/c", 1, 1), ("/other", 1, 1), ("/net", 1, 1)];
    a.receive(Tick(0), &packet(&config("/net/b"), &entries, &[]));
    assert_eq!(a.vector(), vector(&[("/net/b", 1, 1)]));
    assert_eq!(a.known_counters().strangers, 3);
}

#[test]
fn malformed_vectors_are_refused_whole() {
    let good = hex("c917ca15070808036e6574080161d209d4046b044dc2d60101");
    let read = |wire: &[u8]| {
        Element::parse(wire).and_then(|e| StateVector::read(e, Version::V3)).map(|v| v.len())
    };
    assert_eq!(read(&good), Ok(1));
    // A sequence number above 2^63 - 1; a critical element; one that is ignored; no boot time.
    assert!(read(&hex("c911ca0f0703080161d208d40101d608ffffffffffffffff")).is_err());
    assert!(read(&hex("c912ca100703080161d206d40101d601010f010f00")).is_err());
    assert!(read(&hex("c90cca0a0703080161d203d60101")).is_err());
    for cut in 1..good.len() {
        assert!(read(&good[..cut]).is_err(), "{cut}");
    }
}

#[test]
fn the_inner_name_of_every_implementation_is_taken_and_left_to_the_trust_check() {
    // NDNts and the specification; ndnd's SvsALO; ndnd's plain SvSync until 2026 (a time in it).
    let names = ["/g/v=3", "/g/net/b/t=10/32=svs/v=3", "/g/v=1795444162000000", "/anything/at/all"];
    for (turn, inner) in (1u64..).zip(names) {
        let mut a = svs(SvsConfig { check: Check::Ask, ..config("/a") });
        let c = SvsConfig { inner: InnerName::Own(name(inner)), ..config("/b") };
        assert!(a.receive(Tick(0), &packet(&c, &[("/b", 10, turn)], &[])));
        let Some(SvsEvent::Verify { id, packet }) = a.poll_event() else { panic!("{inner}") };
        assert!(Data::parse(&packet).expect("a Data").name.to_string().starts_with(inner));
        a.verified(Tick(0), id, Judged::Good);
        assert_eq!(updates(&mut a), [("/b".to_owned(), 10, 1, turn)]);
    }
}

#[test]
fn a_vector_that_fills_a_packet_is_taken_to_its_bound_and_answered_in_one_packet() {
    let mut a = svs(config("/a"));
    let names: Vec<String> = (0..340).map(|i| format!("/member/{i:03}")).collect();
    let entries: Vec<_> = names.iter().map(|n| (n.as_str(), BOOT, 1)).collect();
    let mut packets = (0..entries.len()).rev().map(|n| packet(&config("/b"), &entries[..n], &[]));
    let wire = packets.find(|wire| wire.len() <= 8_800).expect("one that fits");
    println!("{} octets", wire.len());
    assert!(wire.len() > 8_700, "{}", wire.len());
    a.receive(Tick(0), &wire);
    let (kept, full) = (a.vector().len(), a.known_counters().full);
    assert!(kept >= 270 && full > 0, "{kept} kept, {full} refused");
    a.publish(Tick::from_ms(1));
    let sent = a.poll_transmit(Tick::from_ms(1)).expect("a vector");
    assert!(sent.len() <= 8_800 && Interest::parse(&sent).is_ok(), "{}", sent.len());
    assert_eq!(a.vector().seq(&name("/a"), BOOT), 1);
}

#[test]
fn a_flood_of_vectors_is_looked_at_so_often_in_a_second() {
    let mut a = svs(SvsConfig { check: Check::Ask, ..config("/a") });
    let c = config("/b");
    let seconds = 3;
    for i in 0..seconds * 1_500u64 {
        let now = Tick(i * 666_666);
        a.receive(now, &packet(&c, &[("/b", 10, i + 1)], &[]));
        while a.poll_event().is_some() {}
    }
    let counters = a.counters();
    assert!(counters.received <= VECTORS_BURST + VECTORS_PER_SECOND * seconds + 1, "{counters:?}");
    assert_eq!(counters.received + counters.flooded, seconds * 1_500);
    // A quarter of an hour later it listens again.
    assert!(a.receive(Tick::from_ms(900_000), &packet(&c, &[("/b", 10, 1_000_000)], &[])));
    assert!(matches!(a.poll_event(), Some(SvsEvent::Verify { .. })));
}

/// Law: who is behind a face that opened is told, also when others that have everything are heard
/// meanwhile; a vector that leaves for another reason does it, too.
#[test]
fn who_is_behind_a_new_face_is_told_whatever_others_say() {
    let mut a = svs(config("/a"));
    let up_to_date = packet(&config("/c"), &[("/c", 5, 1)], &[]);
    a.receive(Tick(0), &up_to_date);
    a.connected(Tick(0));
    a.receive(Tick(0).plus_ms(50), &up_to_date);
    assert!(a.poll_timeout() <= Tick(0).plus_ms(100), "{:?}", a.poll_timeout());
    a.handle_timeout(Tick(0).plus_ms(100));
    assert!(a.poll_transmit(Tick(0).plus_ms(100)).is_some());
    a.connected(Tick(0).plus_ms(200));
    a.publish(Tick(0).plus_ms(210));
    assert!(a.poll_transmit(Tick(0).plus_ms(210)).is_some());
    assert!(a.poll_timeout() > Tick(0).plus_ms(1000), "nothing more to tell them");
}
