use super::*;
use crate::codec::Request;

fn router(name: &str) -> Arc<Name> {
    Arc::new(format!("/net/{name}").parse().unwrap())
}

fn entry(destination: &str, next_hop: &str, cost: u64, seq: Option<u64>) -> AdvEntry {
    AdvEntry {
        destination: (*router(destination)).clone(),
        next_hop: (*router(next_hop)).clone(),
        cost,
        other_cost: INFINITY,
        seq,
        metric: None,
    }
}

fn advert(entries: &[AdvEntry]) -> Advert {
    Advert { entries: entries.to_vec(), requests: Vec::new() }
}

/// A router `x` with neighbours `a` (1) and `b` (2).
fn table() -> Table {
    let mut table = Table::new(router("x"), 100, Limits::default());
    table.set_peer(PeerId(1), &router("a"), 1);
    table.set_peer(PeerId(2), &router("b"), 1);
    table
}

fn turn(table: &mut Table, ms: u64) -> Delta {
    table.settle(Tick::from_ms(ms));
    table.publish(Tick::from_ms(ms), 0)
}

fn hops(table: &Table, destination: &str) -> Vec<(u32, u64)> {
    let route = table.route(&router(destination));
    route.map_or_else(Vec::new, |r| r.hops.iter().map(|h| (h.peer.0, h.metric)).collect())
}

#[test]
fn equal_ways_are_all_taken_and_longer_ones_that_are_feasible_behind_them() {
    let mut table = table();
    table.set_peer(PeerId(3), &router("c"), 2);
    for (peer, name) in [(1, "a"), (2, "b"), (3, "c")] {
        table.replace(PeerId(peer), &advert(&[entry("d", name, 1, Some(5))]));
    }
    turn(&mut table, 0);
    assert_eq!(hops(&table, "d"), [(1, 2), (2, 2), (3, 3)]);
}

#[test]
fn a_backup_that_is_no_nearer_than_this_router_is_not_taken() {
    let mut table = table();
    table.replace(PeerId(1), &advert(&[entry("d", "d", 1, Some(5))]));
    table.replace(PeerId(2), &advert(&[entry("d", "q", 2, Some(5))]));
    turn(&mut table, 0);
    assert_eq!(hops(&table, "d"), [(1, 2)], "b is as far as x: it may go by x");
}

#[test]
fn a_way_that_may_be_old_is_not_taken_and_its_router_is_asked_to_count_on() {
    let mut table = table();
    table.replace(PeerId(1), &advert(&[entry("d", "d", 1, Some(5))]));
    table.replace(PeerId(2), &advert(&[entry("d", "q", 3, Some(5))]));
    turn(&mut table, 0);
    table.drop_peer(PeerId(1));
    let delta = turn(&mut table, 10);
    assert_eq!(hops(&table, "d"), []);
    assert_eq!(delta.removed, [(*router("d")).clone()]);
    let asked = Request { destination: (*router("d")).clone(), seq: 6, to: None };
    assert_eq!(delta.requests, [asked]);
    table.replace(PeerId(2), &advert(&[entry("d", "q", 3, Some(6))]));
    turn(&mut table, 20);
    assert_eq!(hops(&table, "d"), [(2, 4)]);
}

#[test]
fn a_shorter_way_with_an_old_number_is_asked_for_after_a_while() {
    let mut table = table();
    table.replace(PeerId(1), &advert(&[entry("d", "d", 1, Some(5))]));
    turn(&mut table, 0);
    // Its only way grew longer, and the other one now is as near as x told that it is.
    table.replace(PeerId(1), &advert(&[entry("d", "e", 1, Some(6))]));
    turn(&mut table, 1);
    table.set_peer(PeerId(1), &router("a"), 9);
    table.replace(PeerId(2), &advert(&[entry("d", "q", 2, Some(6))]));
    assert_eq!(turn(&mut table, 2).requests, []);
    assert_eq!(hops(&table, "d"), [(1, 10)]);
    assert!(table.next_ask() > Tick::from_ms(2));
    let late = table.publish(table.next_ask(), 0);
    assert_eq!(late.requests[0].to.as_ref(), Some(&*router("b")));
    assert_eq!(late.requests[0].seq, 7);
}

#[test]
fn a_request_ends_at_the_router_it_is_about_and_goes_on_by_others_once() {
    let mut table = table();
    let own = Request { destination: (*router("x")).clone(), seq: 107, to: None };
    assert_eq!(table.asked(Tick(0), PeerId(1), &own), Asked::Raised);
    assert_eq!(table.own_seq(), 107);
    table.replace(PeerId(1), &advert(&[entry("d", "d", 1, Some(5))]));
    turn(&mut table, 0);
    let far = Request { destination: (*router("d")).clone(), seq: 6, to: None };
    assert_eq!(table.asked(Tick(0), PeerId(2), &far), Asked::Passed);
    let on = table.publish(Tick(0), 0).requests;
    assert_eq!(on[0].to.as_ref(), Some(&*router("a")));
    assert_eq!(table.asked(Tick::from_ms(10), PeerId(2), &far), Asked::Ignored);
    let known = Request { seq: 5, ..far };
    assert_eq!(table.asked(Tick::from_ms(10), PeerId(2), &known), Asked::Ignored);
}

#[test]
fn peers_without_numbers_are_followed_as_ndn_dv_is() {
    let mut table = table();
    let back = AdvEntry { other_cost: 3, ..entry("d", "x", 2, None) };
    table.replace(PeerId(1), &advert(&[back]));
    turn(&mut table, 0);
    assert_eq!(hops(&table, "d"), [(1, 4)], "its other cost, as its way leads here");
    table.replace(PeerId(1), &advert(&[entry("d", "q", 15, None)]));
    turn(&mut table, 0);
    assert_eq!(hops(&table, "d"), [], "15 and the link are 16");
    table.replace(PeerId(1), &advert(&[entry("d", "q", 14, None)]));
    turn(&mut table, 0);
    assert_eq!(hops(&table, "d"), [(1, 15)]);
    for beyond in [16, 17, u64::MAX] {
        let back = AdvEntry { other_cost: beyond, ..entry("d", "x", 2, None) };
        table.replace(PeerId(1), &advert(&[back]));
        turn(&mut table, 0);
        assert_eq!(hops(&table, "d"), [], "no other way: {beyond}");
    }
    table.replace(PeerId(1), &advert(&[entry("d", "q", 1, None)]));
    table.replace(PeerId(1), &advert(&[]));
    turn(&mut table, 0);
    assert_eq!(hops(&table, "d"), [], "all is withdrawn");
}

#[test]
fn a_full_table_refuses_destinations_and_counts_them() {
    let limits = Limits { destinations_max: 2, ..Limits::default() };
    let mut table = Table::new(router("x"), 1, limits);
    table.set_peer(PeerId(1), &router("a"), 1);
    let many: Vec<_> = (0..5).map(|i| entry(&format!("d{i}"), "a", 1, Some(1))).collect();
    table.replace(PeerId(1), &advert(&many));
    assert_eq!((table.len(), table.counters().refused), (2, 3));
    table.replace(PeerId(1), &advert(&[]));
    turn(&mut table, 0);
    table.sweep(Tick::from_ms(FORGET_AFTER_MS + 1));
    assert!(table.is_empty(), "what is gone for long makes room");
}

#[test]
fn a_number_from_the_far_future_is_not_believed() {
    let mut table = table();
    table.believe_below(1000);
    table.replace(
        PeerId(1),
        &advert(&[entry("d", "d", 1, Some(1000)), entry("x", "x", 1, Some(5000))]),
    );
    turn(&mut table, 0);
    assert_eq!(hops(&table, "d"), []);
    assert_eq!(table.own_seq(), 100);
    table.replace(PeerId(1), &advert(&[entry("x", "x", 1, Some(500))]));
    assert_eq!(table.own_seq(), 501, "a number of an earlier run is passed");
}
