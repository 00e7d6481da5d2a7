//! What a viewer is shown of copies that no packet of its own made.

use super::*;
use onym_engine::reply;
use onym_link::{LpIn, Packet};
use onym_tables::Tick;
use onym_watch::{Filter, record};

/// What the viewer of `/x` was shown since it asked last.
fn shown(b: &mut Bench, now: Tick) -> Vec<String> {
    let filter = Filter { prefix: Some("/x".parse().unwrap()), ..Filter::default() };
    let (reply, answer) = reply();
    let take = WatchOrder::Take { viewer: 1, filter, unix_offset: 0, reply };
    b.engine.driver.obey_watch(now, take);
    let (records, _) = record::parse(&answer.wait().unwrap().unwrap().records).unwrap();
    records.iter().map(|r| format!("{} {}", r.direction.word(), r.kind.word())).collect()
}

/// Law: an Interest that gives way to one of another name is shown as it ends, in the turn of that one.
#[test]
fn a_viewer_is_shown_what_gave_way_to_packets_of_others() {
    let mut b = bench(1);
    b.engine.driver.fw = Forwarder::new(Config { pit_entries_max: 8, ..Config::default() });
    let ((asks, _app), (to, _producer)) = (b.face(), b.face());
    b.route("/", to);
    let turn = |b: &mut Bench, now: Tick, names: &[String]| {
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
    };
    let (early, late) = (Tick::from_ms(1), Tick::from_ms(3000));
    assert!(shown(&mut b, early).is_empty());
    turn(&mut b, early, &(0..6).map(|n| format!("/x/{n}")).collect::<Vec<_>>());
    assert_eq!(shown(&mut b, early).len(), 12, "each came and left");
    turn(&mut b, late, &["/y/0".to_owned()]);
    assert_eq!(b.engine.driver.fw.counters().displaced_interests, 1);
    assert_eq!(shown(&mut b, late), ["out nack"]);
    turn(&mut b, late, &["/y/0".to_owned()]);
    assert!(shown(&mut b, late).is_empty());
}
