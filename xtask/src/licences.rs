//! Licences and bans of deny.toml against every package that Cargo.lock names.

use crate::tidy;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::fs;
use std::process::Command;

pub(crate) fn run(_: &[String]) -> Result<()> {
    let root = tidy::root()?;
    let policy: toml::Table = fs::read_to_string(root.join("deny.toml"))?.parse()?;
    let allowed: Vec<&str> = strings(&policy["licenses"]["allow"]);
    let banned: Vec<&str> = policy["bans"]["deny"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|ban| ban["name"].as_str())
        .collect();
    let out = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .current_dir(&root)
        .output()
        .context("cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&out.stdout).context("cargo metadata")?;
    let mut faults = Vec::new();
    let mut count = 0;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        count += 1;
        if banned.contains(&name) {
            faults.push(format!("{name} is banned by deny.toml"));
        }
        match package["license"].as_str() {
            Some(expression) if satisfied(expression, &allowed) => {}
            Some(expression) => faults.push(format!("{name}: licence {expression} is not allowed")),
            None => faults.push(format!("{name} names no licence")),
        }
    }
    if faults.is_empty() {
        println!("licences: {count} packages fit");
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

fn strings(value: &toml::Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(|v| v.as_str()).collect()
}

/// Whether an SPDX expression can be met by the allowed licences alone.
fn satisfied(expression: &str, allowed: &[&str]) -> bool {
    // The old form "MIT/Apache-2.0" means OR.
    let expression = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = expression.split_whitespace().collect();
    let mut at = 0;
    let met = either(&words, &mut at, allowed);
    met && at == words.len()
}

fn either(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut met = both(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        // Evaluated first: the position must advance whatever is known already.
        let next = both(words, at, allowed);
        met = met || next;
    }
    met
}

fn both(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let mut met = single(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        let next = single(words, at, allowed);
        met = met && next;
    }
    met
}

fn single(words: &[&str], at: &mut usize, allowed: &[&str]) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let met = either(words, at, allowed);
        *at += 1;
        return met;
    }
    if words.get(*at) == Some(&"WITH") {
        let whole = format!("{word} WITH {}", words.get(*at + 1).unwrap_or(&""));
        *at += 2;
        return allowed.contains(&whole.as_str());
    }
    allowed.contains(word)
}

#[cfg(test)]
mod tests {
    use super::satisfied;

    #[test]
    fn an_expression_is_met_when_one_choice_is_allowed_whole() {
        let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "ISC"];
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "ISC AND (GPL-3.0 OR MIT)",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0",
        ] {
            assert!(satisfied(good, &allowed), "{good}");
        }
        for bad in ["GPL-3.0", "MIT AND GPL-3.0", "ISC AND (GPL-3.0 OR LGPL-2.1)", "", "MIT MIT"] {
            assert!(!satisfied(bad, &allowed), "{bad}");
        }
    }
}
