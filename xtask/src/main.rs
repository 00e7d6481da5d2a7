//! The project's own checks and errands: `cargo run -p xtask -- NAME`.
//!
//! One file per errand; each returns an error that says what is wrong and where.

mod builds;
mod demo;
mod generate;
mod icount;
mod licences;
mod programs;
mod release;
mod sbom;
mod tidy;

use anyhow::{Result, bail};
use std::process::ExitCode;

/// An errand takes the words after its name.
type Errand = fn(&[String]) -> Result<()>;

/// An errand that cannot be done here, and why: exit status 77.
#[derive(Debug)]
struct Skipped(String);

impl std::fmt::Display for Skipped {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skipped {}

/// Errands by name, with the line that `xtask help` prints.
const ERRANDS: &[(&str, &str, Errand)] = &[
    ("builds", "each library by itself; `oldest`: all by the oldest compiler", builds::run),
    ("demo", "three nodes, a 100 MB file, and what the caches saw", demo::run),
    ("gen", "writes the generated documents again", generate::run),
    ("icount", "instructions of the core against bench/budget.toml", icount::run),
    ("licences", "licences and bans of deny.toml", licences::run),
    (
        "release",
        "cuts VERSION: changelog, tag, packages, SBOM, checksums; `--dry-run` says how",
        release::run,
    ),
    ("sbom", "what the program is made of, as CycloneDX", sbom::run),
    (
        "tests",
        "the workspace's tests, as many programs at once as there are processors, at most four",
        programs::run,
    ),
    ("tidy", "structure, sizes, words and documents of the tree", tidy::run),
];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<Skipped>() => {
            eprintln!("skipped: {error}");
            ExitCode::from(77)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("help", String::as_str);
    if let Some((_, _, errand)) = ERRANDS.iter().find(|(n, _, _)| *n == name) {
        return errand(&arguments[1..]);
    }
    if name != "help" {
        bail!("no errand is called {name:?}; `cargo run -p xtask -- help` lists them");
    }
    for (name, what, _) in ERRANDS {
        println!("{name:10} {what}");
    }
    Ok(())
}
