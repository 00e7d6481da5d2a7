//! What the manifests of the workspace say: edges between its crates, and dependencies that are used.

use super::{DEV_EDGES, EDGES, LEAVES};
use anyhow::{Context as _, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// A manifest, and the crate around it.
struct Manifest {
    folder: PathBuf,
    name: String,
    table: toml::Table,
}

/// The folders of a crate whose sources may use a dependency.
const OF_LIBRARY: &[&str] = &["src", "build.rs"];
const OF_TESTS: &[&str] = &["src", "tests", "examples", "benches"];

pub(super) fn check(root: &Path, faults: &mut Vec<String>) -> Result<()> {
    for manifest in manifests(root)? {
        edges(&manifest, faults);
        unused(&manifest, "dependencies", OF_LIBRARY, faults)?;
        unused(&manifest, "dev-dependencies", OF_TESTS, faults)?;
        unused(&manifest, "build-dependencies", &["build.rs"], faults)?;
    }
    Ok(())
}

fn manifests(root: &Path) -> Result<Vec<Manifest>> {
    let mut folders = vec![root.join("bin/onym"), root.join("bench"), root.join("xtask")];
    for entry in fs::read_dir(root.join("crates"))? {
        folders.push(entry?.path());
    }
    folders.retain(|f| f.join("Cargo.toml").exists());
    folders.sort();
    folders.into_iter().map(manifest).collect()
}

/// The libraries, each with its features.
pub(super) fn libraries(root: &Path) -> Result<Vec<(String, Vec<String>)>> {
    let mut all = manifests(root)?;
    all.retain(|m| m.folder.join("src/lib.rs").exists());
    let each = |m: Manifest| {
        let features = m.names("features").map(str::to_owned).collect();
        (m.name, features)
    };
    Ok(all.into_iter().map(each).collect())
}

fn manifest(folder: PathBuf) -> Result<Manifest> {
    let file = folder.join("Cargo.toml");
    let text = fs::read_to_string(&file)?;
    let table: toml::Table = text.parse().with_context(|| file.display().to_string())?;
    let name = table["package"]["name"].as_str().unwrap_or_default().to_owned();
    Ok(Manifest { folder, name, table })
}

impl Manifest {
    /// The names in one of its sections.
    fn names(&self, section: &str) -> impl Iterator<Item = &str> {
        let section = self.table.get(section).and_then(toml::Value::as_table);
        section.into_iter().flat_map(toml::Table::keys).map(String::as_str)
    }
}

fn allowed(
    table: &[(&str, &'static [&'static str])],
    name: &str,
) -> Option<&'static [&'static str]> {
    table.iter().find(|(n, _)| *n == name).map(|(_, allowed)| *allowed)
}

/// Every edge to a crate of ours is one that the design has; tests may have some of their own.
fn edges(manifest: &Manifest, faults: &mut Vec<String>) {
    let name = manifest.name.as_str();
    if LEAVES.contains(&name) {
        return;
    }
    let Some(edges) = allowed(EDGES, name) else {
        faults.push(format!("{name} is not in the table of allowed edges (xtask/src/tidy.rs)"));
        return;
    };
    let of_tests = allowed(DEV_EDGES, name).unwrap_or_default();
    for (section, also) in
        [("dependencies", &[][..]), ("build-dependencies", &[]), ("dev-dependencies", of_tests)]
    {
        let ours = manifest.names(section).filter(|d| d.starts_with("onym"));
        for dependency in ours.filter(|d| !edges.contains(d) && !also.contains(d)) {
            faults.push(format!(
                "{name}, [{section}]: the design has no edge to {dependency} (xtask/src/tidy.rs)"
            ));
        }
    }
}

/// Every dependency is named in a source that may use it.
fn unused(
    manifest: &Manifest,
    section: &str,
    sources: &[&str],
    faults: &mut Vec<String>,
) -> Result<()> {
    let mut texts = Vec::new();
    for source in sources {
        read_all(&manifest.folder.join(source), &mut texts)?;
    }
    for dependency in manifest.names(section) {
        let name = dependency.replace('-', "_");
        if !texts.iter().any(|text| names_word(text, &name)) {
            let place = manifest.folder.join("Cargo.toml");
            faults.push(format!("{}, [{section}]: {dependency} is not used", place.display()));
        }
    }
    Ok(())
}

/// The text of `path`, or of every Rust source under it.
fn read_all(path: &Path, texts: &mut Vec<String>) -> Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            read_all(&entry?.path(), texts)?;
        }
    } else if path.extension().is_some_and(|e| e == "rs") && path.exists() {
        texts.push(fs::read_to_string(path)?);
    }
    Ok(())
}

/// Whether `word` stands in `text` and is no part of a longer identifier.
pub(super) fn names_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let before = text[..at].chars().next_back().is_some_and(is_part);
        let after = text[at + word.len()..].chars().next().is_some_and(is_part);
        !before && !after
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(manifest: &str, source: &str) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("crates/one");
        fs::create_dir_all(folder.join("src")).unwrap();
        fs::write(folder.join("Cargo.toml"), manifest).unwrap();
        fs::write(folder.join("src/lib.rs"), source).unwrap();
        let mut faults = Vec::new();
        check(root.path(), &mut faults).unwrap();
        faults
    }

    #[test]
    fn a_dependency_that_no_source_names_is_a_fault() {
        let manifest = "[package]\nname = \"xtask\"\n[dependencies]\nserde-json = \"1\"\n";
        assert!(faults(manifest, "use serde_json::Value;").is_empty());
        let found = faults(manifest, "use serde_json_other::Value;");
        assert!(found.len() == 1 && found[0].contains("serde-json is not used"), "{found:?}");
    }

    #[test]
    fn an_edge_of_tests_is_seen() {
        let head = "[package]\nname = \"onym-wire\"\n[dev-dependencies]\n";
        let source = "use {onym_crypto::x, onym_node::y};";
        assert!(faults(&format!("{head}onym-crypto = \"0\"\n"), source).is_empty());
        let found = faults(&format!("{head}onym-node = \"0\"\n"), source);
        assert!(found.len() == 1 && found[0].contains("no edge to onym-node"), "{found:?}");
    }
}
