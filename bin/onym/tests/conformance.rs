//! Every script against `onym daemon`, a process of its own for each, behind sockets.

use onym_testkit::daemon::Daemon;
use onym_testkit::{files, report};

#[test]
fn the_daemon_keeps_every_law_that_it_can_be_asked() {
    let all = files::load_all(&files::conformance().join("pull"));
    let scripts = all.unwrap_or_else(|e| panic!("{e:?}"));
    let binary = env!("CARGO_BIN_EXE_onym").into();
    let daemon = Daemon { binary, shards: 1, factor: 1, slow: false };
    let report = report::run_all(&daemon, &scripts, 8);
    println!("{}", report.skips());
    println!("{}", report.summary());
    assert!(report.failures().is_empty(), "{}\n{}", report.failures().join("\n"), report.summary());
    assert!(report.counts().0 >= 300, "{}", report.summary());
}
