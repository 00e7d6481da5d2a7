//! A release by one command: `xtask release VERSION [--dry-run] [--no-build]`.
//!
//! The version is written where it stands, the changelog cut, the commit made and tagged, then
//! packages, archive, wheel, bill of materials, provenance and checksums are put into
//! `target/release-VERSION`. A dry run says all of that and writes nothing.

mod provenance;
mod sums;

use crate::tidy;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the version stands besides Cargo.toml, and the text around it.
const PLACES: [(&str, &str, &str); 4] = [
    ("packaging/kernel/dkms.conf", "PACKAGE_VERSION=\"", "\""),
    ("kernel/main.c", "MODULE_VERSION(\"", "\")"),
    ("lab/pyproject.toml", "\nversion = \"", "\""),
    ("clients/python/pyproject.toml", "\nversion = \"", "\""),
];
/// The time of `.cargo/config.toml`, which compilers of C write into programs.
const NO_TIME: &str = "315532800";
const UNRELEASED: &str = "## [Unreleased]\n";

struct Words {
    version: String,
    root: PathBuf,
    is_dry: bool,
    builds: bool,
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let words = words(arguments)?;
    let changes = changes(&words)?;
    let Words { version, root, .. } = &words;
    for (path, _) in &changes {
        println!("{} {path}", if words.is_dry { "would write" } else { "writes" });
    }
    if words.is_dry {
        println!("would commit \"Release {version}\" and tag it v{version}");
        println!(
            "would write target/release-{version}: packages, archive, wheel, SBOM, provenance, SHA256SUMS"
        );
        println!("the section of the changelog:\n{}", section(&changes, version));
        return Ok(());
    }
    for (path, text) in &changes {
        fs::write(root.join(path), text).with_context(|| path.clone())?;
    }
    git(root, &["commit", "--quiet", "--all", "--message", &format!("Release {version}")])?;
    let tag = format!("v{version}");
    git(root, &["tag", "--annotate", "--message", &format!("Onym {version}"), &tag])?;
    println!("committed, tagged {tag}");
    if words.builds { build(root, version) } else { Ok(()) }
}

fn words(arguments: &[String]) -> Result<Words> {
    let mut words =
        Words { version: String::new(), root: PathBuf::new(), is_dry: false, builds: true };
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        match word.as_str() {
            "--dry-run" => words.is_dry = true,
            "--no-build" => words.builds = false,
            "--root" => words.root = rest.next().context("--root needs a folder")?.into(),
            option if option.starts_with('-') => bail!("{option}: no such option"),
            version => version.clone_into(&mut words.version),
        }
    }
    ensure!(!words.version.is_empty(), "name the version: xtask release 0.2.0 [--dry-run]");
    if words.root.as_os_str().is_empty() {
        words.root = tidy::root()?;
    }
    Ok(words)
}

/// The files that change, with what will be in them. Whatever speaks against a release is said here.
fn changes(words: &Words) -> Result<Vec<(String, String)>> {
    let Words { version, root, .. } = words;
    let manifest = read(root, "Cargo.toml")?;
    let old = between(&manifest, "\nversion = \"", "\"").context("Cargo.toml has no version")?;
    ensure!(
        number(version)? > number(old)?,
        "{version} is not later than {old}, the version of Cargo.toml"
    );
    let tag = format!("v{version}");
    ensure!(git(root, &["tag", "--list", &tag])?.is_empty(), "the tag {tag} is there already");
    let changed = git(root, &["status", "--porcelain", "--untracked-files=no"])?;
    ensure!(changed.is_empty(), "commit first, these files are changed:\n{changed}");
    let day = git(root, &["log", "-1", "--format=%cs"])?;
    let mut changes = vec![
        ("Cargo.toml".to_owned(), replaced(&manifest, "\nversion = \"", "\"", version)?),
        ("Cargo.lock".to_owned(), locked(&read(root, "Cargo.lock")?, old, version)),
        ("CHANGELOG.md".to_owned(), cut(&read(root, "CHANGELOG.md")?, version, day.trim())?),
    ];
    for (path, before, after) in PLACES {
        let text = read(root, path)?;
        changes.push((path.to_owned(), replaced(&text, before, after, version).context(path)?));
    }
    Ok(changes)
}

fn read(root: &Path, path: &str) -> Result<String> {
    fs::read_to_string(root.join(path)).with_context(|| path.to_owned())
}

/// A version as numbers: three of them.
fn number(version: &str) -> Result<[u64; 3]> {
    let parts: Vec<u64> = version
        .split('.')
        .map(|part| {
            part.parse().with_context(|| format!("{version:?} is no version such as 0.2.0"))
        })
        .collect::<Result<_>>()?;
    parts.try_into().ok().with_context(|| format!("{version:?} is no version such as 0.2.0"))
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    Some(text.split_once(before)?.1.split_once(after)?.0)
}

fn replaced(text: &str, before: &str, after: &str, version: &str) -> Result<String> {
    let (head, rest) = text.split_once(before).context("the version is not where it was")?;
    let (_, tail) = rest.split_once(after).context("the version has no end")?;
    Ok(format!("{head}{before}{version}{after}{tail}"))
}

/// The lock file with the new version of our own packages: those without a source.
fn locked(lock: &str, old: &str, version: &str) -> String {
    let own = |package: &str| {
        if package.contains("\nsource = ") {
            return package.to_owned();
        }
        package.replacen(
            &format!("\nversion = \"{old}\""),
            &format!("\nversion = \"{version}\""),
            1,
        )
    };
    lock.split("[[package]]").map(own).collect::<Vec<_>>().join("[[package]]")
}

/// The changelog with what is unreleased under the new version.
fn cut(changelog: &str, version: &str, day: &str) -> Result<String> {
    let (head, rest) = changelog
        .split_once(UNRELEASED)
        .context("CHANGELOG.md has no section \"## [Unreleased]\"")?;
    let unreleased = rest.split("\n## [").next().unwrap_or_default();
    ensure!(
        unreleased.lines().any(|line| line.starts_with("- ")),
        "CHANGELOG.md has nothing unreleased"
    );
    Ok(format!("{head}{UNRELEASED}\n## [{version}] - {day}\n{rest}"))
}

fn section(changes: &[(String, String)], version: &str) -> String {
    let changelog = changes.iter().find(|(path, _)| path == "CHANGELOG.md");
    let (_, text) = changelog.expect("invariant: changes has the changelog");
    let begin = text.find(&format!("## [{version}]")).unwrap_or(0);
    let rest = &text[begin..];
    let end = rest[3..].find("\n## [").map_or(rest.len(), |at| at + 3);
    rest[..end].to_owned()
}

fn git(root: &Path, words: &[&str]) -> Result<String> {
    let out = Command::new("git").arg("-C").arg(root).args(words).output().context("git")?;
    ensure!(out.status.success(), "git {}: {}", words[0], String::from_utf8_lossy(&out.stderr));
    Ok(String::from_utf8_lossy(&out.stdout).into_owned())
}

/// Packages, archive, wheel, bill of materials, provenance, checksums.
fn build(root: &Path, version: &str) -> Result<()> {
    let folder = root.join(format!("target/release-{version}"));
    fs::create_dir_all(&folder)?;
    for target in ["deb", "archive", "wheel"] {
        let mut make = Command::new("make");
        // What .cargo/config.toml says to compilers; packages have the time of the commit.
        if std::env::var("SOURCE_DATE_EPOCH").as_deref() == Ok(NO_TIME) {
            make.env_remove("SOURCE_DATE_EPOCH");
        }
        let done = make.arg("-C").arg(root).arg(target).status().context("make")?;
        ensure!(
            done.success(),
            "make {target} failed; the tag v{version} is there: mend it, `git tag --delete v{version}`, and release again"
        );
        for entry in fs::read_dir(root.join("target").join(target))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.contains(version) {
                fs::copy(&path, folder.join(name))?;
            }
        }
    }
    crate::sbom::write(root, &folder.join(format!("onym-{version}.cdx.json")))?;
    provenance::write(root, &folder, version)?;
    sums::write(&folder)?;
    println!("{} is ready: `sha256sum --check SHA256SUMS` there", folder.display());
    Ok(())
}

#[cfg(test)]
mod tests;
