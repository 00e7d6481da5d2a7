//! The packet scripts against a chain of services that does what a node does.

use onym_testkit::chain::Chain;
use onym_testkit::deviations::Deviations;
use onym_testkit::{files, report};

fn all_laws(chain: Chain) {
    let all = files::load_all(&files::conformance().join("pull"));
    let scripts = all.unwrap_or_else(|e| panic!("{e:?}"));
    let file = files::conformance().join("deviations/chain.toml");
    let deviations = Deviations::read(&file).unwrap_or_else(|e| panic!("{e}"));
    let mut report = report::run_all(&chain, &scripts, 4);
    deviations.apply(&mut report);
    println!("{}", report.skips());
    println!("{}", report.summary());
    assert!(report.failures().is_empty(), "{}\n{}", report.failures().join("\n"), report.summary());
    assert!(report.counts().0 >= 120, "{}", report.summary());
}

#[test]
fn a_chain_of_services_keeps_every_law_that_it_can_show() {
    all_laws(Chain::default());
}

#[test]
fn the_chain_keeps_them_whether_or_not_its_peers_return_tokens() {
    all_laws(Chain { returned: true });
}
