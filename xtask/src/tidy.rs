//! Checks of the tree itself: dependency edges, file and line lengths, words that do not belong,
//! and the packet's walk in ARCHITECTURE.md.

use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Edges between crates of the workspace that the design allows (docs/decisions records additions).
const EDGES: &[(&str, &[&str])] = &[
    ("onym-wire", &[]),
    ("onym-frame", &[]),
    ("onym-crypto", &["onym-wire"]),
    ("onym-sys", &[]),
    ("onym-http", &[]),
    ("onym-etcd", &["onym-http"]),
    ("onym-kernel", &["onym-wire", "onym-crypto", "onym-sys"]),
    ("onym-tables", &["onym-wire", "onym-frame", "onym-crypto"]),
    ("onym-link", &["onym-wire", "onym-frame", "onym-tables"]),
    ("onym-forward", &["onym-wire", "onym-frame", "onym-link", "onym-crypto", "onym-tables"]),
    ("onym-pubsub", &["onym-wire", "onym-crypto", "onym-sys", "onym-tables"]),
    ("onym-face", &["onym-wire", "onym-frame", "onym-sys"]),
    ("onym-board", &["onym-wire", "onym-sys"]),
    ("onym-engine", &[]),
    (
        "onym-node",
        &[
            "onym-wire",
            "onym-frame",
            "onym-link",
            "onym-crypto",
            "onym-sys",
            "onym-tables",
            "onym-forward",
            "onym-pubsub",
            "onym-face",
            "onym-board",
            "onym-http",
            "onym-etcd",
        ],
    ),
    (
        "onym-client",
        &[
            "onym-wire",
            "onym-frame",
            "onym-link",
            "onym-crypto",
            "onym-sys",
            "onym-tables",
            "onym-face",
            "onym-kernel",
            "onym-board",
        ],
    ),
    // An application of both halves: never the data path of either.
    ("onym-gateway", &["onym-wire", "onym-frame", "onym-crypto", "onym-tables", "onym-client"]),
    // By the control interface of services only: never the data path.
    ("onym-manager", &["onym-wire", "onym-crypto", "onym-http", "onym-etcd"]),
    (
        "onym-services",
        &["onym-wire", "onym-frame", "onym-link", "onym-crypto", "onym-tables", "onym-forward"],
    ),
    (
        "onym-host",
        &[
            "onym-wire",
            "onym-frame",
            "onym-link",
            "onym-sys",
            "onym-tables",
            "onym-services",
            "onym-face",
            "onym-http",
        ],
    ),
    (
        "onym-sim",
        &["onym-wire", "onym-frame", "onym-link", "onym-tables", "onym-forward", "onym-pubsub"],
    ),
];

/// Programs and test crates: they may use every library, and no library may use them.
const LEAVES: &[&str] = &["onym", "onym-testkit", "onym-fuzz-targets", "onym-bench", "xtask"];

/// Longest source file, in lines, its tests not counted.
const FILE_LINES_MAX: usize = 600;

pub(crate) fn run(_: &[String]) -> Result<()> {
    let root = root()?;
    let mut faults = Vec::new();
    edges(&root, &mut faults)?;
    sources(&root, &mut faults)?;
    walk(&root, &mut faults)?;
    if faults.is_empty() {
        println!("tidy: nothing to mend");
        return Ok(());
    }
    for fault in &faults {
        eprintln!("tidy: {fault}");
    }
    bail!("{} places to mend", faults.len())
}

/// The top of the checkout: the folder of the workspace's Cargo.toml.
pub(crate) fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("xtask lies in the workspace")?.to_path_buf())
}

fn edges(root: &Path, faults: &mut Vec<String>) -> Result<()> {
    for folder in crate_folders(root)? {
        let file = folder.join("Cargo.toml");
        let text = fs::read_to_string(&file)?;
        let manifest: toml::Table = text.parse().with_context(|| file.display().to_string())?;
        let name = manifest["package"]["name"].as_str().unwrap_or_default().to_owned();
        if LEAVES.contains(&name.as_str()) {
            continue;
        }
        let Some((_, allowed)) = EDGES.iter().find(|(n, _)| *n == name) else {
            faults.push(format!("{name} is not in the table of allowed edges (xtask/src/tidy.rs)"));
            continue;
        };
        let dependencies = manifest.get("dependencies").and_then(|d| d.as_table());
        for dependency in dependencies.into_iter().flat_map(|d| d.keys()) {
            let ours = dependency.starts_with("onym");
            if ours && !allowed.contains(&dependency.as_str()) {
                faults.push(format!("{name} depends on {dependency}: the design has no such edge"));
            }
        }
    }
    Ok(())
}

fn crate_folders(root: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = vec![root.join("bin/onym"), root.join("bench"), root.join("xtask")];
    for entry in fs::read_dir(root.join("crates"))? {
        folders.push(entry?.path());
    }
    folders.retain(|f| f.join("Cargo.toml").exists());
    folders.sort();
    Ok(folders)
}

/// All files of the tree that git knows or would add.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let out = std::process::Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("git ls-files")?;
    let list = String::from_utf8(out.stdout)?;
    Ok(list.lines().map(PathBuf::from).filter(|f| root.join(f).is_file()).collect())
}

fn sources(root: &Path, faults: &mut Vec<String>) -> Result<()> {
    for file in files(root)? {
        let Ok(text) = fs::read_to_string(root.join(&file)) else { continue };
        let shown = file.display();
        if file.extension().is_some_and(|e| e == "rs") {
            rust_source(&file, &text, faults);
        }
        let generated = file.ends_with("Cargo.lock") || shown.to_string().ends_with(".json");
        if !generated && file != Path::new("xtask/src/tidy.rs") {
            for (number, line) in text.lines().enumerate() {
                if let Some(word) = FOREIGN_WORDS.iter().find(|w| line.contains(*w)) {
                    faults.push(format!("{shown}:{}: {word:?} does not belong here", number + 1));
                }
            }
        }
    }
    Ok(())
}

/// Homes of one machine's users and marks of unfinished work.
const FOREIGN_WORDS: &[&str] = &["/home/", "TODO", "FIXME", "XXX:"];

fn rust_source(file: &Path, text: &str, faults: &mut Vec<String>) {
    let shown = file.display();
    let is_test = file.components().any(|c| c.as_os_str() == "tests")
        || file.file_stem().is_some_and(|s| s == "tests");
    let body = text.find("\n#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at]);
    let lines = body.lines().count();
    if !is_test && lines > FILE_LINES_MAX {
        faults.push(format!("{shown}: {lines} lines, at most {FILE_LINES_MAX} (tests apart)"));
    }
    let in_sys = file.starts_with("crates/sys");
    if !in_sys && !file.starts_with("fuzz") && !file.starts_with("xtask") {
        for (number, line) in text.lines().enumerate() {
            let code = line.trim_start();
            if code.contains("allow(unsafe_code)") {
                faults.push(format!("{shown}:{}: unsafe code outside crates/sys", number + 1));
            }
        }
    }
    if is_pure(file) && !is_test {
        for (number, line) in body.lines().enumerate() {
            if [
                "Instant::now",
                "SystemTime::now",
                "std::net::Tcp",
                "std::net::Udp",
                "thread::spawn",
            ]
            .iter()
            .any(|w| line.contains(w) && !line.trim_start().starts_with("//"))
            {
                faults.push(format!("{shown}:{}: no clock, socket or thread here", number + 1));
            }
        }
    }
}

/// Crates that own no clock, socket or thread.
fn is_pure(file: &Path) -> bool {
    ["wire", "frame", "link", "tables", "forward", "pubsub", "services", "sim"]
        .iter()
        .any(|c| file.starts_with(format!("crates/{c}/src")))
}

/// Every `path` and `path` → `function` named in the walk of ARCHITECTURE.md exists.
fn walk(root: &Path, faults: &mut Vec<String>) -> Result<()> {
    let Ok(text) = fs::read_to_string(root.join("ARCHITECTURE.md")) else {
        faults.push("ARCHITECTURE.md is missing".into());
        return Ok(());
    };
    let mut named = 0;
    let mut seen = BTreeSet::new();
    for word in text.split('`').skip(1).step_by(2) {
        let Some((file, function)) = word.split_once(".rs:") else {
            let is_path = word.contains('/') && word.ends_with(".rs");
            if is_path && !root.join(word).exists() {
                faults.push(format!("ARCHITECTURE.md names {word}, which does not exist"));
            }
            continue;
        };
        if !seen.insert(word.to_owned()) {
            continue;
        }
        named += 1;
        let file = format!("{file}.rs");
        let Ok(source) = fs::read_to_string(root.join(&file)) else {
            faults.push(format!("ARCHITECTURE.md names {file}, which does not exist"));
            continue;
        };
        let name = function.rsplit("::").next().unwrap_or(function);
        if !source.contains(&format!("fn {name}")) {
            faults.push(format!("ARCHITECTURE.md: {file} has no function {name}"));
        }
    }
    if named < 15 {
        faults.push(format!("ARCHITECTURE.md names only {named} functions: the walk is missing"));
    }
    Ok(())
}
