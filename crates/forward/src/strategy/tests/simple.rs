//! best-route, multicast, random, and what all share.

use super::*;
use onym_wire::lp::NackReason;

#[test]
fn best_route_sends_to_the_lowest_cost_and_never_back() {
    let mut bench = Bench::new("best-route", &[(301, 1), (302, 5), (303, 9)]);
    assert_eq!(bench.interest(300), "301");
    assert_eq!(bench.next("/p/2").interest(301), "302");
}

#[test]
fn equal_next_hops_share_flow_by_flow_when_told_to() {
    let hops = [(301, 1), (302, 1), (303, 9)];
    let mut shared = Bench::new("best-route/v=5/equal~flow", &hops);
    let mut taken = std::collections::BTreeMap::<String, u32>::new();
    for flow in 0..400 {
        let first = shared.next(&format!("/p/{flow}/0")).interest(300);
        for segment in 1..4 {
            let name = format!("/p/{flow}/{segment}");
            assert_eq!(shared.next(&name).interest(300), first, "one flow, one way");
        }
        *taken.entry(first).or_default() += 1;
    }
    println!("flows by face: {taken:?}");
    assert_eq!(taken.len(), 2, "the dearer one has none: {taken:?}");
    assert!(taken.values().all(|flows| (140..=260).contains(flows)), "{taken:?}");
    // A retransmission tries the other one; where nothing is equal nothing changes.
    let first = shared.next("/p/again/0").interest(300);
    shared.after(10);
    assert_ne!(shared.interest(300), first);
    let mut lowest = Bench::new("best-route/v=5/equal~flow", &[(301, 1), (302, 5)]);
    assert!((0..20).all(|i| lowest.next(&format!("/p/{i}/0")).interest(300) == "301"));
    let mut plain = Bench::new("best-route", &hops);
    assert!((0..20).all(|i| plain.next(&format!("/p/{i}/0")).interest(300) == "301"));
}

#[test]
fn a_flow_stays_where_it_is_when_another_next_hop_comes() {
    let two = [(301, 1), (302, 1)];
    let mut before = Bench::new("best-route/v=5/equal~flow", &two);
    let mut after = Bench::new("best-route/v=5/equal~flow", &[(301, 1), (302, 1), (303, 1)]);
    for flow in 0..100 {
        let name = format!("/p/{flow}/0");
        let now = after.next(&name).interest(300);
        assert!(now == "303" || now == before.next(&name).interest(300), "{name}");
    }
}

#[test]
fn best_route_tries_unused_next_hops_and_then_the_one_used_longest_ago() {
    let mut bench = Bench::new("best-route", &[(301, 1), (302, 5)]);
    assert_eq!(bench.interest(300), "301");
    bench.after(9);
    assert_eq!(bench.interest(300), "suppress");
    bench.after(1);
    assert_eq!(bench.interest(300), "302");
    // The interval has doubled.
    bench.after(19);
    assert_eq!(bench.interest(300), "suppress");
    bench.after(1);
    assert_eq!(bench.interest(300), "301");
    bench.after(40);
    assert_eq!(bench.interest(300), "302");
}

/// Decision 15.
#[test]
fn the_first_interest_of_another_downstream_joins_what_is_under_way() {
    for hops in [&[(301, 1)][..], &[(301, 1), (302, 5)]] {
        let mut bench = Bench::new("best-route", hops);
        let again = format!("{}", hops.last().unwrap().0);
        assert_eq!(bench.interest(300), "301");
        bench.after(9);
        assert_eq!(bench.interest(310), "");
        bench.after(240);
        assert_eq!(bench.interest(311), "");
        // Who repeats itself takes it for lost.
        assert_eq!(bench.interest(310), again);
    }
}

#[test]
fn best_route_does_as_nfd_with_others_forward() {
    let uri = "best-route/v=5/others~forward";
    let mut bench = Bench::new(uri, &[(301, 1), (302, 5)]);
    assert_eq!(bench.interest(300), "301");
    bench.after(9);
    assert_eq!(bench.interest(310), "suppress");
    bench.after(1);
    assert_eq!(bench.interest(311), "302");
}

#[test]
fn after_the_longest_interval_another_downstream_is_heard() {
    let mut bench = Bench::new("best-route", &[(301, 1), (302, 5)]);
    assert_eq!(bench.interest(300), "301");
    bench.after(250);
    assert_eq!(bench.interest(310), "302");
    bench.after(249);
    assert_eq!(bench.interest(311), "");
}

#[test]
fn nobody_joins_what_ends_long_before_its_own_time() {
    let mut bench = Bench::new("best-route", &[(301, 1), (302, 5)]);
    assert_eq!(bench.interest(300), "301");
    bench.after(20);
    let (now, lifetime) = (bench.now, LIFETIME_MS);
    bench.entry.outs[0].expiry = now.plus_ms(lifetime / 2);
    assert_eq!(bench.interest(310), "");
    bench.entry.outs[0].expiry = now.plus_ms(lifetime / 2 - 1);
    assert_eq!(bench.interest(311), "302");
}

#[test]
fn the_suppression_interval_grows_to_its_greatest_and_no_further() {
    let uri = "best-route/v=5/retx-suppression-initial~100/retx-suppression-max~250";
    let mut bench = Bench::new(uri, &[(301, 1)]);
    bench.interest(300);
    for wait in [100, 200, 250, 250] {
        bench.after(wait - 1);
        assert_eq!(bench.interest(300), "suppress");
        bench.after(1);
        assert_eq!(bench.interest(300), "301");
    }
}

#[test]
fn without_an_eligible_next_hop_the_downstream_gets_a_nack() {
    for strategy in ["best-route", "asf", "random"] {
        let mut none = Bench::new(strategy, &[]);
        assert_eq!(none.interest(300), "nack:300:NoRoute reject:NoRoute", "{strategy}");
        let mut back = Bench::new(strategy, &[(300, 1)]);
        let said = back.interest(300);
        assert_eq!(said, "nack:300:NoRoute reject:NoEligibleNextHop", "{strategy}");
        let mut gone = Bench::new(strategy, &[(399, 1)]);
        let said = gone.interest(300);
        assert_eq!(said, "nack:300:NoRoute reject:NoEligibleNextHop", "{strategy}");
    }
}

#[test]
fn nacks_are_merged_to_the_least_severe_once_all_upstreams_refused() {
    for strategy in ["best-route", "asf", "random"] {
        let mut bench = Bench::new(strategy, &[(301, 1), (302, 5)]);
        bench.interest(300);
        // The second Interest goes to whatever upstream is left or to the same one.
        bench.sent(FaceId(301), 0);
        bench.sent(FaceId(302), 0);
        assert_eq!(bench.nack(301, NackReason::NO_ROUTE), "", "{strategy}");
        let said = bench.nack(302, NackReason::DUPLICATE);
        assert_eq!(said, "nackall:Duplicate", "{strategy}");
    }
}

#[test]
fn an_upstream_that_waits_for_us_gets_the_nack_that_others_sent() {
    let mut bench = Bench::new("best-route", &[(301, 1), (302, 5)]);
    bench.interest(302);
    bench.interest(300);
    bench.after(10);
    assert_eq!(bench.interest(300), "302");
    assert_eq!(bench.nack(301, NackReason::NO_ROUTE), "nack:302:NoRoute");
}

#[test]
fn multicast_sends_to_every_eligible_next_hop_and_suppresses_each_by_itself() {
    let mut bench = Bench::new("multicast", &[(301, 1), (302, 5)]);
    assert_eq!(bench.interest(300), "301 302");
    bench.after(5);
    bench.hops.push(NextHop { face: FaceId(303), cost: 9 });
    assert_eq!(bench.interest(300), "303");
    bench.after(5);
    assert_eq!(bench.interest(300), "301 302");
    bench.after(1);
    assert_eq!(bench.interest(300), "suppress");
    assert_eq!(bench.nack(301, NackReason::NO_ROUTE), "");
    let mut none = Bench::new("multicast", &[(300, 1)]);
    assert_eq!(none.interest(300), "hold:NoEligibleNextHop");
    assert!(!none.strategy.nacks_loops());
}

#[test]
fn multicast_sends_what_is_pending_to_a_new_next_hop() {
    let mut bench = Bench::new("multicast", &[(301, 1)]);
    bench.interest(300);
    assert!(bench.strategy.wants_new_next_hop());
    let new = NextHop { face: FaceId(302), cost: 1 };
    assert_eq!(bench.call(|s, ctx| s.after_new_next_hop(ctx, new)), "302");
    let back = NextHop { face: FaceId(300), cost: 1 };
    assert_eq!(bench.call(|s, ctx| s.after_new_next_hop(ctx, back)), "");
}

#[test]
fn random_spreads_interests_evenly_and_never_back() {
    let mut bench = Bench::new("random", &[(300, 0), (301, 1), (302, 5), (303, 9)]);
    let mut counts = [0_u32; 4];
    for number in 0..3000 {
        let said = bench.next(&format!("/p/{number}")).interest(300);
        let face: u32 = said.parse().unwrap();
        counts[usize::try_from(face - 300).unwrap()] += 1;
    }
    assert_eq!(counts[0], 0);
    for count in &counts[1..] {
        assert!((900..1100).contains(count), "seed 7: {counts:?}");
    }
}
