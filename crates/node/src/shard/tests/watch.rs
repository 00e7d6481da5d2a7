//! What a viewer is shown of copies that no packet of its own made.

use super::*;
use onym_engine::reply;
use onym_link::{LpIn, Packet};
use onym_tables::Tick;
use onym_watch::{Filter, LEASE, record};

/// What the viewer of `/x` was shown since it asked last.
fn shown(b: &mut Bench, now: Tick) -> Vec<String> {
    let filter = Filter { prefix: Some("/x".parse().unwrap()), ..Filter::default() };
    let (reply, answer) = reply();
    let take = WatchOrder::Take { viewer: 1, filter, unix_offset: 0, reply };
    b.engine.driver.obey_watch(now, take);
    let (records, _) = record::parse(&answer.wait().unwrap().unwrap().records).unwrap();
    records.iter().map(|r| format!("{} {}", r.direction.word(), r.kind.word())).collect()
}

/// A turn of the face `asks` with an Interest for each name.
fn turn(b: &mut Bench, asks: FaceId, now: Tick, names: &[String]) {
    b.engine.io.now = now;
    b.engine.driver.is_of_turn = true;
    for (name, nonce) in names.iter().zip(1_u32..) {
        let (name, mut wire) = (name.parse::<Name>().unwrap(), Vec::new());
        let (nonce, lifetime_ms) = (Some(nonce.to_be_bytes()), Some(60_000));
        let interest = InterestBuilder::new(name.as_ref());
        InterestBuilder { nonce, lifetime_ms, ..interest }.write(&mut wire);
        let packet = Packet { face: asks, bytes: Buf::copy_from(&wire), lp: LpIn::default() };
        b.engine.driver.accept(now, packet.kind(), packet);
    }
    b.engine.driver.dispatch(&mut b.engine.io);
}

/// Law: when nobody looks any more the forwarder looks at no name, whoever noticed that the lease of the
/// last viewer was over.
#[test]
fn a_lease_that_a_packet_ended_leaves_nothing_behind() {
    let mut b = bench(1);
    let ((asks, _app), (to, _producer)) = (b.face(), b.face());
    b.route("/", to);
    assert!(shown(&mut b, Tick::from_ms(1)).is_empty());
    turn(&mut b, asks, Tick::from_ms(2), &["/x/0".to_owned()]);
    let late = Tick::from_ms(2) + LEASE;
    turn(&mut b, asks, late, &["/x/1".to_owned()]);
    assert!(b.engine.driver.watch.as_ref().is_some_and(|watch| !watch.has_captures()));
    b.engine.driver.obey_watch(late, WatchOrder::EndLeases);
    assert!(b.engine.driver.watch.is_none());
    b.engine.driver.fw.forget_met();
    turn(&mut b, asks, late, &["/x/2".to_owned()]);
    assert!(!b.engine.driver.fw.has_met());
}

/// Law: an Interest that gives way to one of another name is shown as it ends, in the turn of that one.
#[test]
fn a_viewer_is_shown_what_gave_way_to_packets_of_others() {
    let mut b = bench(1);
    b.engine.driver.fw = Forwarder::new(Config { pit_entries_max: 8, ..Config::default() });
    let ((asks, _app), (to, _producer)) = (b.face(), b.face());
    b.route("/", to);
    let (early, late) = (Tick::from_ms(1), Tick::from_ms(3000));
    assert!(shown(&mut b, early).is_empty());
    turn(&mut b, asks, early, &(0..6).map(|n| format!("/x/{n}")).collect::<Vec<_>>());
    assert_eq!(shown(&mut b, early).len(), 12, "each came and left");
    turn(&mut b, asks, late, &["/y/0".to_owned()]);
    assert_eq!(b.engine.driver.fw.counters().displaced_interests, 1);
    assert_eq!(shown(&mut b, late), ["out nack"]);
    turn(&mut b, asks, late, &["/y/0".to_owned()]);
    assert!(shown(&mut b, late).is_empty());
}
