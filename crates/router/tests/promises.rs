//! docs/routing.md names only tests that exist.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

/// Names of functions in the sources below `folder`.
fn functions(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs" || e == "py") {
            let text = std::fs::read_to_string(&path).unwrap();
            let starts = text.lines().filter_map(|line| {
                let line = line.trim_start();
                line.strip_prefix("fn ").or_else(|| line.strip_prefix("def "))
            });
            found.extend(starts.filter_map(|line| Some(line.split_once('(')?.0.to_owned())));
        }
    }
}

#[test]
fn every_test_that_the_page_of_routing_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut known = BTreeSet::new();
    let places = [
        "crates/route/src",
        "crates/router/src",
        "crates/sync/src",
        "crates/sim/tests",
        "bin/onym/tests",
        "bin/onym/src",
        "tests/routing",
    ];
    places.iter().for_each(|place| functions(&root.join(place), &mut known));
    let page = std::fs::read_to_string(root.join("docs/routing.md")).unwrap();
    let named: Vec<&str> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| word.split('_').count() > 2 && !word.contains(['/', ' ', '.']))
        .collect();
    assert!(named.len() > 90, "{}", named.len());
    let missing: Vec<_> = named.iter().filter(|name| !known.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
