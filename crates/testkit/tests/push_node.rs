//! Every push script that can be had over sockets, against whole nodes.

use onym_testkit::run::Outcome;
use onym_testkit::{files, push};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Scripts at once: they wait more than they work.
const THREADS: usize = 8;

#[test]
fn daemons_keep_every_law_of_push_that_they_can_be_asked() {
    let scripts = push::load_all(&files::conformance().join("push"));
    let scripts = scripts.unwrap_or_else(|e| panic!("{e:#?}"));
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(script) = scripts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = push::run_daemons(script);
                    if let Ok(mut all) = outcomes.lock() {
                        all.push((script.name.clone(), outcome));
                    }
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_default();
    let (mut passed, mut failures) = (0, Vec::new());
    let mut skipped = BTreeMap::<String, usize>::new();
    for (name, outcome) in outcomes {
        match outcome {
            Outcome::Passed => passed += 1,
            Outcome::Skipped(reason) => *skipped.entry(reason).or_default() += 1,
            other => failures.push(format!("{name}: {other:?}")),
        }
    }
    println!("{passed} passed, {} failed, skipped {skipped:#?}", failures.len());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(passed >= 80, "only {passed} could be run: {skipped:#?}");
}
