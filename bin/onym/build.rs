//! Tells the program the commit that it was built from: `ONYM_VERSION`, for `onym --version` and the
//! provenance of measurements.

use std::path::Path;
use std::process::Command;

/// What the program is made of, from the root of the source tree.
const SOURCES: [&str; 5] = ["bin", "crates", "Cargo.lock", "Cargo.toml", ".cargo"];

fn main() {
    // Identical code folding, which rust-lld has, the default linker of this target.
    if std::env::var("TARGET").as_deref() == Ok("x86_64-unknown-linux-gnu")
        && std::env::var("PROFILE").as_deref() == Ok("release")
    {
        println!("cargo:rustc-link-arg-bin=onym=-Wl,--icf=all");
        // A relative relocation in a bit, in place of 24 octets.
        if glibc().is_some_and(|version| version >= (2, 36)) {
            println!("cargo:rustc-link-arg-bin=onym=-Wl,-z,pack-relative-relocs");
        }
    }
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    // A commit, or a change of what the program is made of.
    for place in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", place]) {
            watch(&path);
        }
    }
    for place in SOURCES {
        watch(&format!("../../{place}"));
    }
    // An archive of the sources has no history: its maker names the commit.
    println!("cargo:rerun-if-env-changed=ONYM_COMMIT");
    let commit = std::env::var("ONYM_COMMIT").ok().or_else(described);
    println!(
        "cargo:rustc-env=ONYM_VERSION={version} ({})",
        commit.as_deref().unwrap_or("no commit")
    );
}

/// The commit, with `+changes` where a kept file that the program is made of differs from it.
fn described() -> Option<String> {
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let mut status = vec!["-C", "../..", "status", "--porcelain", "--untracked-files=no", "--"];
    status.extend(SOURCES);
    let changed = git(&status)?;
    Some(if changed.is_empty() { commit } else { format!("{commit}+changes") })
}

/// The version of the C library of this machine, whose loader will start what is built here.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("ldd").arg("--version").output().ok()?.stdout;
    let said = String::from_utf8(said).ok()?;
    let (major, minor) = said.lines().next()?.split_whitespace().next_back()?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn watch(path: &str) {
    if Path::new(path).exists() {
        println!("cargo:rerun-if-changed={path}");
    }
}
