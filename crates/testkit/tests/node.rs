//! Every script against a whole node behind sockets.

use onym_testkit::in_process::InProcess;
use onym_testkit::{files, report};

/// Scripts at once: they wait more than they work.
const THREADS: usize = 8;

fn all_laws(shards: usize, at_least: usize) {
    let all = files::load_all(&files::conformance().join("pull"));
    let scripts = all.unwrap_or_else(|e| panic!("{e:?}"));
    let report = report::run_all(&InProcess { shards, slow: true, pause_ms: 0 }, &scripts, THREADS);
    println!("{}", report.skips());
    println!("{shards} shards, {}", report.summary());
    assert!(report.failures().is_empty(), "{}\n{}", report.failures().join("\n"), report.summary());
    // Nothing is passed over that could be run.
    let good = ["needs virtual time", "needs core", "is about the order of one table"];
    for line in report.skips().lines() {
        assert!(good.iter().any(|reason| line.contains(reason)), "{line}");
    }
    assert!(report.counts().0 >= at_least, "{}", report.summary());
}

#[test]
fn a_node_keeps_every_law_that_it_can_be_asked() {
    all_laws(1, 350);
}

#[test]
fn a_node_of_several_shards_keeps_every_law_that_is_not_about_one_table() {
    all_laws(2, 340);
}
