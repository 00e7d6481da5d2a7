//! What the dashboard and the alert rules of `packaging/monitoring` ask Prometheus for.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use serde_json::Value;
use std::fs;
use std::path::Path;

/// A file of the repository.
pub fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The dashboard.
pub fn dashboard() -> Value {
    serde_json::from_str(&read("packaging/monitoring/onym-dashboard.json")).unwrap()
}

/// The alert rules, each from its name on.
pub fn rules() -> Vec<String> {
    let rules = read("packaging/monitoring/onym-alerts.yml");
    rules.split("- alert: ").skip(1).map(str::to_owned).collect()
}

/// What stands behind a key of a rule.
pub fn line<'a>(rule: &'a str, key: &str) -> &'a str {
    let line = rule.lines().find_map(|line| line.trim().strip_prefix(key));
    line.unwrap_or_else(|| panic!("no {key} {rule}")).trim()
}

/// Every expression of both.
pub fn expressions() -> Vec<String> {
    let board = dashboard();
    let panels = board["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let mut all: Vec<String> =
        targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    all.extend(rules().iter().map(|rule| line(rule, "expr:").to_owned()));
    all
}

/// Labels, each with the values that it may have; those with a variable are left out.
pub type Matchers = Vec<(String, Vec<String>)>;

/// A metric in an expression.
#[derive(Debug)]
pub struct Selector {
    /// Its name.
    pub name: String,
    /// What it is asked for.
    pub matchers: Matchers,
}

/// The metrics of an expression.
pub fn selectors(expression: &str) -> Vec<Selector> {
    let mut found = Vec::new();
    for (at, _) in expression.match_indices("onym_") {
        let name = word(&expression[at..]);
        let mut matchers = Vec::new();
        if let Some(rest) = expression[at + name.len()..].strip_prefix('{') {
            for matcher in rest.split('}').next().unwrap().split(',') {
                let (label, value) = matcher.split_once('=').unwrap();
                let values = value.trim_start_matches('~').trim_matches('"').split('|');
                let values = values.filter(|value| !value.starts_with('$'));
                matchers.push((label.to_owned(), values.map(str::to_owned).collect()));
            }
        }
        found.push(Selector { name: name.to_owned(), matchers });
    }
    assert!(!found.is_empty(), "{expression}");
    found
}

fn word(text: &str) -> &str {
    let is_of = |c: char| c.is_ascii_alphanumeric() || c == '_';
    &text[..text.find(|c| !is_of(c)).unwrap_or(text.len())]
}
