//! The packet scripts against a chain of services that does what a node does.

use onym_testkit::chain::{Chain, SETTINGS};
use onym_testkit::deviations::Deviations;
use onym_testkit::run::Outcome;
use onym_testkit::{files, report};

/// The number called `key` in chain-budget.toml.
fn ceiling(key: &str) -> usize {
    let text = include_str!("../chain-budget.toml");
    let table: toml::Table = text.parse().unwrap_or_else(|e| panic!("chain-budget.toml: {e}"));
    let number = table.get(key).and_then(toml::Value::as_integer);
    number.and_then(|n| n.try_into().ok()).unwrap_or_else(|| panic!("chain-budget.toml: {key}"))
}

fn all_laws(chain: Chain) {
    let all = files::load_all(&files::conformance().join("pull"));
    let scripts = all.unwrap_or_else(|e| panic!("{e:?}"));
    let file = files::conformance().join("deviations/chain.toml");
    let deviations = Deviations::read(&file).unwrap_or_else(|e| panic!("{e}"));
    let mut report = report::run_all(&chain, &scripts, 4);
    let gone = deviations.apply(&mut report);
    println!("{}", report.skips());
    for (setting, reason) in SETTINGS {
        println!("setting  {setting}: {reason}");
    }
    println!("{}", report.summary());
    assert!(report.failures().is_empty(), "{}\n{}", report.failures().join("\n"), report.summary());
    assert!(gone.is_empty(), "take what is kept now out of deviations/chain.toml:\n{gone}");
    let count = |is: fn(&Outcome) -> bool| report.outcomes.iter().filter(|(_, o)| is(o)).count();
    let refused = count(|o| matches!(o, Outcome::Skipped(_)));
    let deviates = count(|o| matches!(o, Outcome::Deviates(_)));
    println!("of {} scripts {refused} are refused, {deviates} deviate", scripts.len());
    assert!(refused <= ceiling("refused"), "{refused} are refused");
    assert!(deviates <= ceiling("deviations"), "{deviates} deviate");
}

#[test]
fn a_chain_of_services_keeps_every_law_that_it_can_show() {
    all_laws(Chain::default());
}

#[test]
fn the_chain_keeps_them_whether_or_not_its_peers_return_tokens() {
    all_laws(Chain { returned: true });
}
