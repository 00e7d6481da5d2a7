//! Dashboard and alert rules ask for metrics and labels that exist, with values that are counted.

#![allow(clippy::unwrap_used)]

mod selectors;

use onym_metrics::{About, Kind, Program, catalogue::ALL};
use selectors::{Matchers, dashboard, expressions, line, read, rules};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Labels that Prometheus adds to every series.
const ADDED: [&str; 2] = ["instance", "job"];

/// The metrics of an expression, each with its matchers.
fn selectors(expression: &str) -> Vec<(&'static About, Matchers)> {
    let known = |selector: selectors::Selector| {
        let about = ALL.iter().find(|metric| metric.name == selector.name);
        let about = about.unwrap_or_else(|| panic!("{selector:?} is no metric: {expression}"));
        (about, selector.matchers)
    };
    selectors::selectors(expression).into_iter().map(known).collect()
}

/// Checks an expression; the labels that its series keep.
fn check(expression: &str) -> BTreeSet<String> {
    let balance =
        |open, close| expression.matches(open).count() == expression.matches(close).count();
    assert!(balance('(', ')') && balance('{', '}') && balance('[', ']'), "{expression}");
    let words = [read("docs/verdicts.md"), read("docs/push-verdicts.md"), read("docs/metrics.md")];
    let mut labels: BTreeSet<String> = ADDED.map(str::to_owned).into();
    for (about, matchers) in selectors(expression) {
        // A node shows the figures of its router, too.
        let of_node = [Program::Node, Program::Router];
        let is_shown = about.programs.iter().any(|program| of_node.contains(program));
        assert!(is_shown, "{}: {expression}", about.name);
        labels.extend(about.labels.iter().map(|label| (*label).to_owned()));
        for (label, values) in matchers {
            let is_known = about.labels.contains(&label.as_str()) || ADDED.contains(&&*label);
            assert!(is_known, "{} has no label {label}: {expression}", about.name);
            for value in values {
                let is_counted = words.iter().any(|page| {
                    page.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|w| w == value)
                });
                assert!(is_counted, "nothing counts {label}={value}: {expression}");
            }
        }
        // A counter is asked for its rate, everything else for what it is.
        let is_rated = expression.contains(&format!("rate({}", about.name));
        assert_eq!(is_rated, about.kind == Kind::Counter, "{}: {expression}", about.name);
    }
    let mut kept = labels.clone();
    for (at, _) in expression.match_indices(" by (") {
        let list = expression[at + 5..].split(')').next().unwrap();
        let by: BTreeSet<String> = list.split(", ").map(str::to_owned).collect();
        assert!(by.is_subset(&labels), "{by:?}: {expression}");
        kept = by;
    }
    kept
}

/// What stands between two marks.
fn between<'a>(text: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    let parts = text.split(open).skip(1);
    parts.map(|part| part.split(close).next().unwrap().trim()).collect()
}

#[test]
fn each_query_of_the_dashboard_finds_its_series_and_its_labels() {
    let board = dashboard();
    let mut shown = BTreeSet::new();
    let mut ids = BTreeSet::new();
    let mut cells = BTreeSet::new();
    for panel in board["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(x < 24 && cells.insert((x, y)), "{} covers another panel", panel["title"]);
            }
        }
        for target in panel["targets"].as_array().into_iter().flatten() {
            let expression = target["expr"].as_str().unwrap();
            let kept = check(expression);
            shown.extend(selectors(expression).into_iter().map(|(about, _)| about.name));
            for label in between(target["legendFormat"].as_str().unwrap(), "{{", "}}") {
                assert!(kept.contains(label), "{label}: {expression}");
            }
        }
    }
    let of_node = ALL.iter().filter(|metric| metric.programs.contains(&Program::Node));
    assert_eq!(shown, of_node.map(|metric| metric.name).collect(), "all of a node are shown");
    let variables = board["templating"]["list"].to_string();
    selectors(&variables);
}

#[test]
fn each_alert_rule_finds_its_series_and_says_a_sentence() {
    let mut names = BTreeSet::new();
    for rule in &rules() {
        let line = |key: &str| line(rule, key);
        assert!(names.insert(rule.lines().next().unwrap().to_owned()), "{rule}");
        let expression = line("expr:");
        if expression.starts_with("absent(") {
            selectors(expression);
        } else {
            let kept = check(expression);
            for label in between(line("summary:"), "{{ $labels.", "}}") {
                assert!(kept.contains(label), "{label}: {rule}");
            }
        }
        assert!(line("summary:").ends_with('.') && line("for:").ends_with(['m', 'h']));
    }
    for about in ["ManyDrops", "CacheThrashes", "PitNearlyFull", "FaceDown", "CertificateEnds"] {
        assert!(names.contains(&format!("Onym{about}")), "{about}");
    }
    assert!(expressions().len() > names.len());
}

/// Law: Prometheus takes the alert rules. Without its `promtool` this says so and tests nothing.
#[test]
fn prometheus_takes_the_alert_rules() {
    let rules =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/monitoring/onym-alerts.yml");
    let Ok(said) = Command::new("promtool").args(["check", "rules"]).arg(&rules).output() else {
        eprintln!("not tested: there is no promtool (Debian: apt-get install prometheus)");
        return;
    };
    let out = String::from_utf8_lossy(&said.stdout);
    assert!(said.status.success(), "{out}{}", String::from_utf8_lossy(&said.stderr));
    let count = selectors::rules().len();
    assert!(out.contains(&format!("{count} rules found")), "{out}");
}
