//! Each library by itself, with and without its features, and all of them by the oldest compiler that
//! Cargo.toml promises.
//!
//! The workspace as a whole is compiled with the features that any member asks of a dependency: a
//! library that relies on those of another one is found only when it is compiled alone.

use crate::{Skipped, tidy};
use anyhow::{Context as _, Result, bail, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

/// `builds`: with the compiler of rust-toolchain.toml; `builds oldest`: the whole workspace with that
/// of `rust-version`.
pub(crate) fn run(words: &[String]) -> Result<()> {
    let root = tidy::root()?;
    match words {
        [] => alone(&root),
        [word] if word == "oldest" => oldest(&root),
        _ => bail!("`builds` or `builds oldest`"),
    }
}

fn alone(root: &Path) -> Result<()> {
    let manifests = tidy::library_manifests(root)?;
    let mut faults = Vec::new();
    for (name, features) in &manifests {
        let mut ways = vec![vec!["--no-default-features"]];
        if !features.is_empty() {
            ways.push(vec!["--all-features"]);
        }
        for way in ways {
            println!("{name} {}", way.join(" "));
            let mut cargo = Command::new("cargo");
            cargo.args(["check", "--quiet", "--locked", "--lib", "--package", name]).args(&way);
            let fault = format!("{name} does not build alone with {}", way.join(" "));
            faults.extend(check(root, cargo, &fault).err().map(|error| error.to_string()));
        }
    }
    ensure!(faults.is_empty(), "{}", faults.join("\n"));
    println!("builds: {} libraries", manifests.len());
    Ok(())
}

fn oldest(root: &Path) -> Result<()> {
    let version = rust_version(&std::fs::read_to_string(root.join("Cargo.toml"))?)?;
    let mut found = Command::new("rustup");
    found.args(["run", &version, "rustc", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !found.status().is_ok_and(|status| status.success()) {
        let how = format!("rustup toolchain install {version} --profile minimal");
        return Err(Skipped(format!("there is no Rust {version}: {how}")).into());
    }
    let mut cargo = Command::new("rustup");
    cargo.args(["run", &version, "cargo", "check", "--quiet", "--locked", "--workspace"]);
    // Beside the other: neither compiles again what the other left.
    cargo.args(["--all-targets", "--target-dir", "target/oldest"]);
    check(root, cargo, &format!("the workspace does not build with Rust {version}"))?;
    println!("builds: the workspace with Rust {version}");
    Ok(())
}

/// `rust-version` of the workspace.
fn rust_version(manifest: &str) -> Result<String> {
    let table: toml::Table = manifest.parse()?;
    let version = table["workspace"]["package"]["rust-version"].as_str();
    Ok(version.context("Cargo.toml has no workspace.package.rust-version")?.to_owned())
}

fn check(root: &Path, mut command: Command, fault: &str) -> Result<()> {
    let status = command.current_dir(root).status().context("starting cargo")?;
    ensure!(status.success(), "{fault}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_compiler_is_that_of_the_workspace() {
        let text = "[workspace.package]\nrust-version = \"1.90\"\n";
        assert_eq!(rust_version(text).unwrap(), "1.90");
    }
}
