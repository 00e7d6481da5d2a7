//! The walks of ARCHITECTURE.md: every file and function that they name exists, and every way in
//! which a packet can be dropped is named where it happens.

use anyhow::{Context as _, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Where verdicts and reasons are declared.
const VERDICTS: &[&str] = &[
    "crates/link/src/verdict.rs",
    "crates/forward/src/verdict.rs",
    "crates/pubsub/src/verdict.rs",
];

/// The line that names each function which a short publication passes, and how many it may.
const SHORT: &str = "a short publication of a started item passes";
const SHORT_MAX: usize = 8;

pub(super) fn check(root: &Path, faults: &mut Vec<String>) -> Result<()> {
    let Ok(text) = fs::read_to_string(root.join("ARCHITECTURE.md")) else {
        faults.push("ARCHITECTURE.md is missing".into());
        return Ok(());
    };
    let words: BTreeSet<&str> = text.split('`').skip(1).step_by(2).collect();
    let named = words.iter().filter(|word| exists(root, word, faults)).count();
    if named < 15 {
        faults.push(format!("ARCHITECTURE.md names only {named} functions: the walk is missing"));
    }
    let short = text.lines().find(|line| line.contains(SHORT));
    let functions = short.map_or(0, |line| line.matches(".rs:").count());
    if functions == 0 || functions > SHORT_MAX {
        faults.push(format!(
            "ARCHITECTURE.md: a short publication passes {functions} functions: 1 to {SHORT_MAX}"
        ));
    }
    for file in VERDICTS {
        let source = fs::read_to_string(root.join(file)).with_context(|| (*file).to_owned())?;
        for drop in drops(&source).filter(|drop| !words.contains(drop)) {
            faults.push(format!("ARCHITECTURE.md: no step names the drop `{drop}` of {file}"));
        }
    }
    Ok(())
}

/// Whether `word` names a function of a file; a fault when the file or the function is not there.
fn exists(root: &Path, word: &str, faults: &mut Vec<String>) -> bool {
    let Some((file, function)) = word.split_once(".rs:") else {
        let is_path = word.contains('/') && word.ends_with(".rs");
        if is_path && !root.join(word).exists() {
            faults.push(format!("ARCHITECTURE.md names {word}, which does not exist"));
        }
        return false;
    };
    let file = format!("{file}.rs");
    let name = function.rsplit("::").next().unwrap_or(function);
    match fs::read_to_string(root.join(&file)) {
        Err(_) => faults.push(format!("ARCHITECTURE.md names {file}, which does not exist")),
        Ok(source) if !source.contains(&format!("fn {name}")) => {
            faults.push(format!("ARCHITECTURE.md: {file} has no function {name}"));
        }
        Ok(_) => {}
    }
    true
}

/// The words of what is declared as a drop: `Name "word" true "meaning"`.
fn drops(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| {
        let (name, rest) = line.trim().split_once(" \"")?;
        let (word, rest) = rest.split_once("\" ")?;
        let is_declared = name.chars().all(char::is_alphanumeric) && rest.starts_with("true \"");
        is_declared.then_some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_declared_as_a_drop_has_to_be_named() {
        let source = "    /// A \"word\" true \"of prose\".\n        \
            Sent \"sent\" false \"It left\"\n        Full \"queue_full\" true \"No room\"\n";
        assert_eq!(drops(source).collect::<Vec<_>>(), ["queue_full"]);
    }

    #[test]
    fn the_walk_of_this_tree_names_every_drop() {
        let mut faults = Vec::new();
        check(&super::super::root().unwrap(), &mut faults).unwrap();
        assert!(faults.is_empty(), "{faults:#?}");
    }
}
