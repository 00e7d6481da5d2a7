//! Licences and bans of deny.toml against every package that can be compiled in, on each of its targets.

use crate::tidy;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

/// Of the workspace, or of one beneath it that is named and has a deny.toml of its own.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let root = tidy::root()?.join(args.first().map_or("", String::as_str));
    let policy: toml::Table = fs::read_to_string(root.join("deny.toml"))?.parse()?;
    let allowed: Vec<&str> = strings(&policy["licenses"]["allow"]);
    let banned: Vec<&str> = policy["bans"]["deny"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|ban| ban["name"].as_str())
        .collect();
    let targets = strings(&policy["graph"]["targets"]);
    ensure!(!targets.is_empty(), "deny.toml names no targets");
    // The tree and not the lock file, which also names optional packages that nothing turns on.
    let out = Command::new("cargo")
        .args(["tree", "--locked", "--workspace", "--all-features"])
        .args(targets.iter().flat_map(|target| ["--target", target]))
        .args(["--edges", "normal,build,dev", "--prefix", "none", "--format", "{p}\t{l}"])
        .current_dir(&root)
        .output()
        .context("cargo tree")?;
    ensure!(out.status.success(), "cargo tree: {}", String::from_utf8_lossy(&out.stderr));
    let text = String::from_utf8(out.stdout).context("cargo tree")?;
    let packages: BTreeSet<&str> =
        text.lines().map(|line| line.trim_end_matches(" (*)")).filter(|l| !l.is_empty()).collect();
    let mut faults = Vec::new();
    let count = packages.len();
    for package in packages {
        let (id, licence) = package.split_once('\t').unwrap_or((package, ""));
        let name = id.split(' ').next().unwrap_or_default();
        if banned.contains(&name) {
            faults.push(format!("{name} is banned by deny.toml"));
        }
        if licence.is_empty() {
            faults.push(format!("{name} names no licence"));
        } else if !satisfied(licence, &allowed) && !satisfied(licence, &excepted(&policy, name)) {
            faults.push(format!("{name}: licence {licence} is not allowed"));
        }
    }
    if faults.is_empty() {
        println!("licences: {count} packages fit");
        return Ok(());
    }
    bail!("{}", faults.join("\n"))
}

/// Licences that one package alone may have.
fn excepted<'a>(policy: &'a toml::Table, name: &str) -> Vec<&'a str> {
    let all = policy["licenses"].get("exceptions").and_then(toml::Value::as_array);
    let mut of = all.into_iter().flatten().filter(|of| of["name"].as_str() == Some(name));
    of.next().map_or_else(Vec::new, |of| strings(&of["allow"]))
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
