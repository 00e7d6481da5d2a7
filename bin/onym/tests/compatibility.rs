//! The promises of docs/compatibility.md, by what earlier versions left behind: `spec/compatibility`
//! has a folder for each, written by `record` below when it was released.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use support::Place;

fn recorded() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/compatibility");
    let mut versions: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()).collect();
    versions.sort();
    assert!(!versions.is_empty());
    versions
}

/// Every command with every option, a line each.
fn commands(place: &Place) -> BTreeSet<String> {
    let page = place.run(&["man", "--markdown"]);
    assert_eq!(page.code, 0, "{}", page.err);
    let mut lines = BTreeSet::new();
    let mut command = "";
    for line in page.out.lines() {
        if let Some(name) = line.strip_prefix("## ").or_else(|| line.strip_prefix("### ")) {
            command = name;
            lines.insert(command.to_owned());
        }
        let option = line.trim_start();
        let option = option
            .split_once(", --")
            .map_or(option, |(_, o)| &option[option.len() - o.len() - 2..]);
        if line.starts_with("  ") && option.starts_with("--") {
            let end = option[2..]
                .find(|c: char| !c.is_ascii_lowercase() && c != '-')
                .map_or(option.len(), |at| at + 2);
            lines.insert(format!("{command} {}", &option[..end]));
        }
    }
    assert!(lines.len() > 300, "{}", lines.len());
    lines
}

fn metrics() -> BTreeSet<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = fs::read_to_string(page).unwrap();
    let name = |line: &str| Some(line.strip_prefix("| `onym_")?.split_once('`')?.0.to_owned());
    page.lines().filter_map(name).map(|name| format!("onym_{name}")).collect()
}

fn missing(version: &Path, file: &str, now: &BTreeSet<String>) -> Vec<String> {
    let then = fs::read_to_string(version.join(file)).unwrap();
    then.lines().filter(|line| !now.contains(*line)).map(str::to_owned).collect()
}

/// Where the parts of a backup are.
const PARTS: [&str; 6] = ["--config", "etc/onym.toml", "--keys", "keys", "--routing", "routing"];

#[test]
fn commands_options_and_metrics_of_earlier_versions_are_still_there() {
    let place = Place::new();
    for version in recorded() {
        for (file, now) in [("commands.txt", commands(&place)), ("metrics.txt", metrics())] {
            let missing = missing(&version, file, &now);
            assert!(
                missing.is_empty(),
                "{}: gone since: {missing:?}. Keep the old name beside the new one until the next \
                 major version; what was never released is taken out of that file.",
                version.join(file).display()
            );
        }
    }
}

#[test]
fn a_configuration_of_an_earlier_version_is_taken() {
    let place = Place::new();
    for version in recorded() {
        let file = version.join("onym.toml");
        let checked = place.run(&["check-config", file.to_str().unwrap()]);
        assert_eq!(checked.code, 0, "{}: {}", file.display(), checked.err);
    }
}

#[test]
fn a_backup_of_an_earlier_version_is_restored() {
    for version in recorded() {
        let place = Place::new();
        let file = version.join("onym.backup");
        let done = place.run(&[&["restore", file.to_str().unwrap()], &PARTS[..]].concat());
        assert_eq!(done.code, 0, "{}: {}", file.display(), done.err);
        let checked = place.run(&["check-config", "etc/onym.toml"]);
        assert_eq!(checked.code, 0, "{}", checked.err);
        let keys = place
            .command(&["key", "list"])
            .env("ONYM_KEYSTORE", place.path("keys"))
            .output()
            .unwrap();
        assert!(
            String::from_utf8(keys.stdout).unwrap().contains("/alice/KEY/"),
            "{}",
            file.display()
        );
    }
}

/// Writes the folder of this version: `cargo test -p onym --test compatibility -- --ignored record`.
#[test]
#[ignore = "writes spec/compatibility; run when a version is released"]
fn record() {
    let folder = recorded()[0].with_file_name(env!("CARGO_PKG_VERSION"));
    fs::create_dir_all(&folder).unwrap();
    let place = Place::new();
    let lines = |set: BTreeSet<String>| set.into_iter().map(|l| l + "\n").collect::<String>();
    fs::write(folder.join("commands.txt"), lines(commands(&place))).unwrap();
    fs::write(folder.join("metrics.txt"), lines(metrics())).unwrap();
    let config = place.run(&["daemon", "--print-config"]);
    fs::write(folder.join("onym.toml"), &config.out).unwrap();
    fs::create_dir_all(place.path("etc")).unwrap();
    fs::create_dir_all(place.path("routing")).unwrap();
    fs::write(place.path("etc/onym.toml"), "[cs]\npackets_max = 5\n").unwrap();
    fs::write(place.path("routing/boot"), "1").unwrap();
    let mut key = place.command(&["key", "new", "/alice"]);
    assert!(key.env("ONYM_KEYSTORE", place.path("keys")).output().unwrap().status.success());
    let file = folder.join("onym.backup");
    let _ = fs::remove_file(&file);
    let made = place.run(&[&["backup", file.to_str().unwrap()], &PARTS[..]].concat());
    assert_eq!(made.code, 0, "{}", made.err);
}
