//! Many certificates of one moment are renewed without a storm, also after their authority was away.

mod support;

use support::renewals::{Plan, Seen, run};

/// Bounds that do not depend on how many nodes there are, per node.
fn holds(plan: &Plan, seen: &Seen) {
    assert_eq!(seen.expired, 0, "{seen:?}");
    assert_eq!(seen.throttled, 0, "{seen:?}");
    assert!(seen.renewed >= u64::from(plan.nodes), "{seen:?}");
    // Even would be a 216th of the nodes in an hour; while the authority is away each node asks each
    // hour and a half at least and each hour at most.
    assert!(seen.peak_hour <= u64::from(plan.nodes) * 5 / 4, "{seen:?}");
}

#[test]
fn certificates_that_were_issued_together_are_renewed_apart() {
    let plan =
        Plan { nodes: 200, days: 90, issued_within_s: 3600, away: 0..0, until_day: 80, seed: 7 };
    let seen = run(&plan);
    holds(&plan, &seen);
    assert_eq!(seen.renewed, 200, "once each");
    assert_eq!(seen.tries, 200, "nobody asks twice");
    assert!(seen.peak_hour <= 12, "a 216th of them in an hour would be even: {seen:?}");
}

#[test]
fn an_authority_that_was_away_for_a_week_is_not_run_over_when_it_comes_back() {
    let plan =
        Plan { nodes: 200, days: 90, issued_within_s: 3600, away: 62..69, until_day: 80, seed: 11 };
    let seen = run(&plan);
    holds(&plan, &seen);
    assert!(seen.peak_min <= 12, "they come back over an hour and a half: {seen:?}");
}
