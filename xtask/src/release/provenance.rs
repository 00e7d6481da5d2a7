//! What a release was made of and by what: a statement of in-toto with the provenance of SLSA 1, about
//! every file of its folder. Nobody signs it here; who publishes a release signs SHA256SUMS, which has it.

use super::{git, read, sums};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;

pub(super) fn write(root: &Path, folder: &Path, version: &str) -> Result<()> {
    let text = serde_json::to_string_pretty(&statement(root, folder, version)?)?;
    let file = folder.join(format!("onym-{version}.provenance.json"));
    fs::write(&file, text + "\n").with_context(|| file.display().to_string())
}

fn statement(root: &Path, folder: &Path, version: &str) -> Result<Value> {
    let manifest: toml::Table = read(root, "Cargo.toml")?.parse()?;
    let repository = manifest["workspace"]["package"]["repository"].as_str();
    let repository = repository.context("Cargo.toml names no repository")?;
    let commit = git(root, &["rev-parse", "HEAD"])?;
    let lock = sums::of(root, &["Cargo.lock".into()])?;
    let compiler = Command::new("rustc").arg("--version").current_dir(root).output();
    let compiler = compiler.context("rustc")?;
    ensure!(compiler.status.success(), "rustc --version failed");
    let compiler = String::from_utf8_lossy(&compiler.stdout).trim().to_owned();
    let subjects: Vec<Value> = sums::of(folder, &sums::names(folder)?)?
        .into_iter()
        .map(|(name, sum)| json!({"name": name, "digest": {"sha256": sum}}))
        .collect();
    ensure!(!subjects.is_empty(), "{} has no files", folder.display());
    Ok(json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": subjects,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": format!("{repository}/xtask/release/v1"),
                "externalParameters": {"version": version},
                "resolvedDependencies": [
                    {"uri": format!("git+{repository}@refs/tags/v{version}"), "digest": {"gitCommit": commit.trim()}},
                    {"name": "Cargo.lock", "digest": {"sha256": lock[0].1}},
                    {"name": compiler},
                ],
            },
            "runDetails": {"builder": {"id": format!("{repository}/maintainer")}},
        },
    }))
}
