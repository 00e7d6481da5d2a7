//! self-learning: discovery, learned routes, announcements.

use super::*;
use onym_wire::lp::NackReason;

fn announcement() -> Buf {
    Buf::copy_from(&[6, 0])
}

#[test]
fn a_discovery_without_route_is_broadcast_to_all_but_local_faces_and_the_ingress() {
    let mut bench = Bench::new("self-learning", &[]);
    let said = bench.interest(301);
    let mut asked: Vec<u32> = said.split(' ').map(|face| face.parse().unwrap()).collect();
    asked.sort_unstable();
    assert_eq!(asked, [300, 302, 303, 304, 305, 306, 307, 308, 309]);
}

#[test]
fn with_a_route_the_interest_is_no_discovery_any_more() {
    let mut bench = Bench::new("self-learning", &[(302, 1), (303, 5), (301, 0)]);
    assert_eq!(bench.interest(301), "known:302 known:303");
    let mut back = Bench::new("self-learning", &[(301, 1)]);
    assert_eq!(back.interest(301), "hold:NoEligibleNextHop");
}

#[test]
fn a_non_discovery_without_route_is_refused() {
    let mut bench = Bench::new("self-learning", &[]);
    assert_eq!(bench.interest_with(301, true), "nack:301:NoRoute reject:NoRoute");
}

#[test]
fn the_announcement_that_answers_a_discovery_becomes_a_route() {
    let mut bench = Bench::new("self-learning", &[]);
    bench.interest(301);
    assert_eq!(bench.data_with(304, Some(&announcement())), "learn:304");
    // Without an announcement the upstream does not take part.
    bench.next("/p/2").interest(301);
    assert_eq!(bench.data(304), "");
}

#[test]
fn an_announcement_that_answers_a_known_route_is_not_learned() {
    let mut bench = Bench::new("self-learning", &[(302, 1)]);
    bench.interest_with(301, true);
    assert_eq!(bench.data_with(302, Some(&announcement())), "");
}

#[test]
fn data_over_a_known_route_gets_the_announcement_when_another_node_discovers() {
    let mut bench = Bench::new("self-learning", &[(302, 1)]);
    bench.interest(301);
    assert_eq!(bench.data(302), "attach");
    // An application of this host does not forward, and one that did not discover knows it.
    bench.next("/p/2").interest(290);
    assert_eq!(bench.data(302), "");
    bench.next("/p/3").interest_with(301, true);
    assert_eq!(bench.data(302), "");
}

#[test]
fn a_route_that_leads_nowhere_is_unlearned_and_all_downstreams_hear_of_it() {
    let mut bench = Bench::new("self-learning", &[(302, 1)]);
    bench.interest(301);
    bench.interest(303);
    assert_eq!(bench.nack(302, NackReason::NO_ROUTE), "nackall:NoRoute unlearn:302");
    let mut bench = Bench::new("self-learning", &[(302, 1)]);
    bench.interest(301);
    assert_eq!(bench.nack(302, NackReason::CONGESTION), "");
}
