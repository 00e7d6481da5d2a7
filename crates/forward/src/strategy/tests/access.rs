//! access: the last working next hop, then all.

use super::*;
use onym_wire::lp::NackReason;

const HOPS: &[(u32, u64)] = &[(302, 1), (303, 5), (304, 9)];

#[test]
fn an_unknown_prefix_is_multicast_and_the_one_that_answers_is_asked_next() {
    let mut bench = Bench::new("access", HOPS);
    assert_eq!(bench.interest(301), "302 303 304");
    bench.after(30);
    bench.data(303);
    // Slower upstreams change nothing.
    bench.data(302);
    assert_eq!(bench.next("/p/2").interest(301), "303");
}

#[test]
fn when_the_last_working_next_hop_is_silent_the_others_are_asked_after_its_timeout() {
    let mut bench = Bench::new("access", HOPS);
    bench.interest(301);
    bench.after(30);
    bench.data(303);
    assert_eq!(bench.next("/p/2").interest(301), "303");
    assert_eq!(bench.after(199), "");
    assert_eq!(bench.after(1), "302 304");
}

#[test]
fn what_is_known_holds_for_siblings_of_the_data_and_for_eight_seconds() {
    let mut bench = Bench::new("access", HOPS);
    bench.next("/p/a/1").interest(301);
    bench.data(303);
    assert_eq!(bench.next("/p/b/1").interest(301), "302 303 304");
    assert_eq!(bench.next("/p/a/2").interest(301), "303");
    bench.after(8000);
    assert_eq!(bench.next("/p/a/3").interest(301), "302 303 304");
}

#[test]
fn a_retransmission_is_multicast_but_not_within_100_milliseconds() {
    let mut bench = Bench::new("access", HOPS);
    bench.interest(301);
    bench.after(99);
    assert_eq!(bench.interest(301), "suppress");
    bench.after(1);
    assert_eq!(bench.interest(301), "302 303 304");
}

#[test]
fn a_last_working_next_hop_that_is_no_next_hop_any_more_is_not_used() {
    let mut bench = Bench::new("access", HOPS);
    bench.interest(301);
    bench.data(303);
    bench.hops.retain(|hop| hop.face.0 != 303);
    assert_eq!(bench.next("/p/2").interest(301), "302 304");
    // Nor is the one that the Interest came from.
    bench.hops.push(NextHop { face: FaceId(303), cost: 1 });
    assert_eq!(bench.next("/p/3").interest(303), "302 304");
}

#[test]
fn nothing_to_send_to_is_a_rejection_without_nack() {
    let mut bench = Bench::new("access", &[]);
    assert_eq!(bench.interest(301), "reject:NoRoute");
    let mut bench = Bench::new("access", &[(301, 1)]);
    assert_eq!(bench.interest(301), "reject:NoEligibleNextHop");
    let mut bench = Bench::new("access", HOPS);
    bench.interest(301);
    assert_eq!(bench.nack(302, NackReason::NO_ROUTE), "");
}
