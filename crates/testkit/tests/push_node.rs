//! Every push script that can be had over sockets, against whole nodes.

use onym_testkit::run::Outcome;
use onym_testkit::{files, push};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Scripts at once: they wait more than they work.
const THREADS: usize = 8;
/// Of so many scripts the time is told.
const SLOWEST: usize = 12;
/// What cannot be had over daemons, and how many scripts need it. All others run.
const SKIPPED: [(&str, usize); 7] = [
    ("counts deliveries of messages too", 6),
    ("loses so much that requests are given up by chance, which nobody can draw again", 1),
    ("needs a bound that is no key of the configuration", 1),
    ("needs epochs that begin when the script says", 1),
    ("needs links that delay", 4),
    ("needs virtual time", 1),
    ("sends what the face itself refuses", 1),
];

#[test]
fn daemons_keep_every_law_of_push_that_they_can_be_asked() {
    let scripts = push::load_all(&files::conformance().join("push"));
    let mut scripts = scripts.unwrap_or_else(|e| panic!("{e:#?}"));
    // Those that wait longest first: nobody waits for them at the end.
    let is_slow = |tags: &[String]| tags.iter().any(|tag| tag == "slow");
    scripts.sort_by_key(|script| Reverse((is_slow(&script.tags), script.waits_ms())));
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let begun = Instant::now();
                    let outcome = push::run_daemons(script);
                    if let Ok(mut all) = outcomes.lock() {
                        all.push((begun.elapsed(), script.name.clone(), outcome));
                    }
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().unwrap_or_default();
    outcomes.sort_by_key(|(took, ..)| Reverse(*took));
    for (took, name, _) in outcomes.iter().take(SLOWEST) {
        println!("{took:5.1?} {name}");
    }
    let (mut passed, mut failures) = (0, Vec::new());
    let mut skipped = BTreeMap::<String, usize>::new();
    for (_, name, outcome) in outcomes {
        match outcome {
            Outcome::Passed => passed += 1,
            Outcome::Skipped(reason) => *skipped.entry(reason).or_default() += 1,
            other => failures.push(format!("{name}: {other:?}")),
        }
    }
    println!("{passed} passed, {} failed, skipped {skipped:#?}", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let permitted = SKIPPED.map(|(reason, count)| (reason.to_owned(), count));
    assert_eq!(skipped, BTreeMap::from(permitted), "what is skipped, and why");
}
