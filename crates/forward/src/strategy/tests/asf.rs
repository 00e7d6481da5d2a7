//! asf: measures, prefers, gives up, probes.

use super::*;
use onym_wire::lp::NackReason;

const HOPS: &[(u32, u64)] = &[(302, 1), (303, 5), (304, 9)];

/// A bench whose next hops are all measured: 302 in 50 ms, 303 in 20 ms, 304 in 80 ms.
fn measured() -> Bench {
    let mut bench = Bench::new("asf/v=5/probing-interval~1000/measurements-lifetime~300000", HOPS);
    let answers = &[(302, 50), (303, 20), (304, 80)];
    for number in 0..200 {
        bench.exchange(number, answers);
    }
    bench
}

#[test]
fn unmeasured_next_hops_are_used_in_the_order_of_cost() {
    let mut bench = Bench::new("asf", HOPS);
    assert_eq!(bench.interest(301), "302");
}

#[test]
fn the_fastest_next_hop_is_preferred_once_probes_have_measured_it() {
    let mut bench = measured();
    assert!(bench.exchange(1000, &[]).starts_with("303"));
}

#[test]
fn a_probe_is_due_within_five_seconds_and_then_every_interval() {
    let mut bench = Bench::new("asf/v=5/probing-interval~2000", HOPS);
    let mut probes = Vec::new();
    for number in 0..200 {
        let at = bench.now;
        let said = bench.exchange(number, &[(302, 50), (303, 20), (304, 80)]);
        if said.contains("probe") {
            probes.push((at.since(Tick::from_ms(1000)).as_millis(), said));
        }
    }
    assert!(probes[0].0 <= 5000, "seed 7: {probes:?}");
    for pair in probes.windows(2) {
        assert_eq!(pair[1].0 - pair[0].0, 2000, "seed 7: {probes:?}");
    }
    // The unmeasured ones come first, in the order of cost.
    assert_eq!(probes[0].1, "302 probe:303");
    assert_eq!(probes[1].1, "303 probe:304");
    let probed_again = probes.iter().skip(2).filter(|(_, said)| said.ends_with(":302")).count();
    assert!(probed_again > 2, "seed 7: {probes:?}");
}

#[test]
fn one_next_hop_is_never_probed() {
    let mut bench = Bench::new("asf/v=5/probing-interval~1000", &[(302, 1)]);
    for number in 0..200 {
        assert_eq!(bench.exchange(number, &[(302, 10)]), "302");
    }
}

#[test]
fn after_three_timeouts_in_a_row_the_next_hop_is_the_last_choice() {
    let mut bench = Bench::new("asf", HOPS);
    // The timeout of an unmeasured next hop is a second.
    for number in 0..3 {
        let said = bench.next(&format!("/p/{number}")).interest(301);
        assert!(said.starts_with("302"), "{number}: {said}");
        bench.after(1000);
    }
    assert!(bench.next("/p/3").interest(301).starts_with("303"));
}

#[test]
fn an_answer_ends_the_row_of_timeouts() {
    let mut bench = Bench::new("asf", HOPS);
    for number in 0..20 {
        let said = bench.next(&format!("/p/{number}")).interest(301);
        assert!(said.starts_with("302"), "{number}: {said}");
        if number % 3 == 2 {
            bench.data(302);
        }
        bench.after(1000);
    }
}

#[test]
fn a_nack_makes_the_next_hop_the_last_choice_at_once() {
    let mut bench = measured();
    bench.next("/p/n").interest(301);
    bench.nack(303, NackReason::CONGESTION);
    assert!(bench.next("/p/m").interest(301).starts_with("302"));
}

#[test]
fn a_next_hop_that_timed_out_comes_back_when_a_probe_of_it_is_answered() {
    let mut bench = measured();
    bench.next("/p/n").interest(301);
    bench.nack(303, NackReason::NO_ROUTE);
    let answers = &[(302, 50), (303, 20), (304, 80)];
    let back = (0..2000).any(|number| bench.exchange(number, answers).starts_with("303"));
    assert!(back, "seed 7");
}

#[test]
fn a_retransmission_tries_another_next_hop() {
    let mut bench = Bench::new("asf", HOPS);
    assert_eq!(bench.interest(301), "302");
    bench.after(5);
    assert_eq!(bench.interest(301), "suppress");
    bench.after(5);
    assert_eq!(bench.interest(301), "303");
    bench.after(20);
    assert_eq!(bench.interest(301), "304");
    bench.after(40);
    assert_eq!(bench.interest(301), "302");
}

#[test]
fn a_satisfied_interest_lingers_while_another_upstream_may_answer() {
    let mut bench = Bench::new("asf", HOPS);
    bench.interest(301);
    bench.after(10);
    bench.interest(301);
    assert_eq!(bench.data(303), "linger:50");
    assert_eq!(bench.data(302), "");
}

#[test]
fn what_is_known_of_a_namespace_is_not_known_of_another() {
    let mut bench = measured();
    bench.fib_prefix = "/q".parse().unwrap();
    assert_eq!(bench.next("/q/1").interest(301), "302");
}

#[test]
fn measurements_are_forgotten_after_their_lifetime() {
    let mut bench = measured();
    bench.after(300_001);
    assert_eq!(bench.next("/p/late").interest(301), "302");
}
