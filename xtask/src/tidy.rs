//! Checks of the tree itself: dependencies, files that import each other, lengths of files, words that
//! do not belong, and the walks of ARCHITECTURE.md.

mod code;
mod cycles;
mod graph;
mod manifests;
mod paths;
mod signatures;
mod walk;
mod words;

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Edges between crates of the workspace that the design allows (docs/decisions records additions).
const EDGES: &[(&str, &[&str])] = &[
    ("onym-wire", &[]),
    ("onym-frame", &[]),
    ("onym-crypto", &["onym-wire"]),
    ("onym-sys", &[]),
    // Where memory lies: unsafe code without I/O, so that tables need not see sockets.
    ("onym-mem", &[]),
    ("onym-metrics", &[]),
    ("onym-dissect", &["onym-wire"]),
    ("onym-http", &["onym-sys"]),
    ("onym-etcd", &["onym-http"]),
    ("onym-kernel", &["onym-wire", "onym-crypto", "onym-sys"]),
    ("onym-tables", &["onym-wire", "onym-frame", "onym-crypto", "onym-mem"]),
    ("onym-trust", &["onym-wire", "onym-crypto"]),
    // Files of trust, for every program that decides; the rules themselves stay without them.
    ("onym-guard", &["onym-wire", "onym-crypto", "onym-trust"]),
    ("onym-yaml", &[]),
    ("onym-import", &["onym-trust", "onym-yaml"]),
    ("onym-ndncert", &["onym-wire", "onym-crypto"]),
    ("onym-access", &["onym-wire", "onym-crypto"]),
    // Loads the modules of tokens: only the command line has it.
    ("onym-token", &["onym-crypto"]),
    ("onym-link", &["onym-wire", "onym-frame", "onym-tables"]),
    // What a shard shows of its packets: never more than it was handed.
    ("onym-watch", &["onym-wire", "onym-frame", "onym-tables", "onym-link"]),
    ("onym-forward", &["onym-wire", "onym-frame", "onym-link", "onym-crypto", "onym-tables"]),
    ("onym-pubsub", &["onym-wire", "onym-crypto", "onym-tables"]),
    ("onym-face", &["onym-wire", "onym-frame", "onym-sys"]),
    // A router as a process: it speaks to its forwarder as any application does.
    (
        "onym-router",
        &[
            "onym-wire",
            "onym-crypto",
            "onym-trust",
            "onym-guard",
            "onym-tables",
            "onym-endpoint",
            "onym-route",
            "onym-client",
            "onym-metrics",
            // Interfaces and their addresses, where it says to be reached.
            "onym-sys",
        ],
    ),
    ("onym-route", &["onym-wire", "onym-crypto", "onym-tables", "onym-endpoint", "onym-sync"]),
    ("onym-board", &["onym-wire", "onym-sys"]),
    ("onym-endpoint", &["onym-wire", "onym-crypto", "onym-tables"]),
    ("onym-sync", &["onym-wire", "onym-crypto", "onym-tables", "onym-endpoint"]),
    (
        "onym-engine",
        &["onym-wire", "onym-sys", "onym-frame", "onym-tables", "onym-link", "onym-face"],
    ),
    (
        "onym-node",
        &[
            "onym-wire",
            "onym-frame",
            "onym-link",
            "onym-crypto",
            "onym-trust",
            "onym-guard",
            "onym-sys",
            "onym-tables",
            "onym-forward",
            "onym-pubsub",
            "onym-watch",
            "onym-engine",
            "onym-face",
            "onym-board",
            "onym-store",
            "onym-http",
            "onym-etcd",
            "onym-metrics",
        ],
    ),
    (
        "onym-client",
        &[
            "onym-wire",
            "onym-frame",
            "onym-link",
            "onym-crypto",
            "onym-trust",
            "onym-guard",
            "onym-sys",
            "onym-tables",
            "onym-face",
            "onym-kernel",
            "onym-board",
            "onym-endpoint",
            "onym-sync",
        ],
    ),
    ("onym-store", &["onym-wire", "onym-frame", "onym-crypto"]),
    // Far away for a store: the one place that knows S3.
    ("onym-bucket", &["onym-store", "onym-http"]),
    // An application of a node.
    (
        "onym-repo",
        &["onym-wire", "onym-frame", "onym-crypto", "onym-client", "onym-store", "onym-sync"],
    ),
    // An application of a node, with a server for strangers.
    ("onym-web", &["onym-wire", "onym-frame", "onym-crypto", "onym-client", "onym-repo"]),
    // An application of a node, with a server for strangers.
    ("onym-mqtt", &["onym-wire", "onym-tables", "onym-client", "onym-topics"]),
    // What bridges have in common: an application of a node.
    ("onym-topics", &["onym-wire", "onym-client"]),
    // An application of both halves: never the data path of either.
    ("onym-gateway", &["onym-wire", "onym-frame", "onym-crypto", "onym-tables", "onym-client"]),
    // By the control interface of services only: never the data path.
    (
        "onym-manager",
        &[
            "onym-wire",
            "onym-crypto",
            "onym-trust",
            "onym-sys",
            "onym-http",
            "onym-etcd",
            "onym-metrics",
            "onym-yaml",
        ],
    ),
    // A page for one user's browsers: what it asks a node by is handed to it.
    ("onym-console", &["onym-crypto", "onym-sys", "onym-http"]),
    (
        "onym-services",
        &[
            "onym-wire",
            "onym-frame",
            "onym-link",
            "onym-crypto",
            "onym-trust",
            "onym-tables",
            "onym-forward",
        ],
    ),
    (
        "onym-host",
        &[
            "onym-wire",
            "onym-frame",
            "onym-link",
            "onym-sys",
            "onym-crypto",
            "onym-tables",
            "onym-services",
            "onym-engine",
            "onym-face",
            "onym-http",
            "onym-metrics",
        ],
    ),
    (
        "onym-sim",
        &[
            "onym-wire",
            "onym-frame",
            "onym-link",
            "onym-tables",
            "onym-forward",
            "onym-pubsub",
            // Networks of routers: the very state machines, their packets and signatures.
            "onym-crypto",
            "onym-endpoint",
            "onym-route",
        ],
    ),
];

/// Edges that only tests and examples have, beside those of [`EDGES`].
const DEV_EDGES: &[(&str, &[&str])] = &[
    // Digests of test vectors.
    ("onym-wire", &["onym-crypto"]),
    // Rules that a test writes down.
    ("onym-repo", &["onym-trust"]),
    // A node's end of a connection in memory.
    ("onym-web", &["onym-face"]),
    // The counting allocator.
    ("onym-forward", &["onym-sys"]),
    ("onym-pubsub", &["onym-sys"]),
    // The crate itself, with its server for tests.
    ("onym-etcd", &["onym-etcd"]),
    // A participant that floods a group of routers.
    ("onym-sim", &["onym-sync"]),
];

/// Programs and test crates: they may use every library, and no library may use them.
const LEAVES: &[&str] =
    &["onym", "onym-testkit", "onym-fuzz-targets", "onym-model", "onym-bench", "xtask"];

/// Longest source file, in lines, its tests not counted.
const FILE_LINES_MAX: usize = 600;

pub(crate) fn run(_: &[String]) -> Result<()> {
    let root = root()?;
    let mut faults = Vec::new();
    manifests::check(&root, &mut faults)?;
    sources(&root, &mut faults)?;
    walk::check(&root, &mut faults)?;
    words::check(&root, &mut faults)?;
    let text = fs::read_to_string(root.join(CEILINGS)).context(CEILINGS)?;
    let most = toml::from_str(&text).context(CEILINGS)?;
    let mut ceiling = Ceiling { most, faults: &mut faults };
    cycles::check(&root, &mut ceiling)?;
    signatures::check(&root, &mut ceiling)?;
    if faults.is_empty() {
        println!("tidy: nothing to mend");
        return Ok(());
    }
    for fault in &faults {
        eprintln!("tidy: {fault}");
    }
    bail!("{} places to mend", faults.len())
}

/// How much of what should not be is still left; the numbers only fall.
const CEILINGS: &str = "xtask/ceilings.toml";

/// Holds counts against [`CEILINGS`].
struct Ceiling<'a> {
    most: BTreeMap<String, usize>,
    faults: &'a mut Vec<String>,
}

impl Ceiling<'_> {
    /// A fault when `count` is above the ceiling `name`; `which` says where and what to do.
    fn hold(&mut self, name: &str, count: usize, which: impl FnOnce() -> String) {
        let most = self.most.get(name).copied().unwrap_or(0);
        if count < most {
            println!("tidy: {name} are {count}: lower {CEILINGS}");
        }
        if count > most {
            self.faults.push(format!(
                "{name} are {count}, at most {most} are left ({CEILINGS}): {}",
                which()
            ));
        }
    }
}

/// The top of the checkout: the folder of the workspace's Cargo.toml.
pub(crate) fn root() -> Result<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    Ok(here.parent().context("xtask lies in the workspace")?.to_path_buf())
}

/// The libraries of the workspace, each with its features.
pub(crate) fn library_manifests(root: &Path) -> Result<Vec<(String, Vec<String>)>> {
    manifests::libraries(root)
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
        if file.extension().is_some_and(|e| e == "c" || e == "h") {
            let lines = text.lines().count();
            if lines > FILE_LINES_MAX {
                faults.push(format!("{shown}: {lines} lines, at most {FILE_LINES_MAX}"));
            }
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
    let may_be_unsafe = file.starts_with("crates/sys") || file.starts_with("crates/mem");
    if !may_be_unsafe && !file.starts_with("fuzz") && !file.starts_with("xtask") {
        for (number, line) in text.lines().enumerate() {
            let code = line.trim_start();
            if code.contains("allow(unsafe_code)") {
                faults.push(format!(
                    "{shown}:{}: unsafe code outside crates/sys and crates/mem",
                    number + 1
                ));
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
    [
        "wire", "frame", "link", "tables", "trust", "ndncert", "access", "watch", "forward",
        "pubsub", "services", "sim",
    ]
    .iter()
    .any(|c| file.starts_with(format!("crates/{c}/src")))
}
