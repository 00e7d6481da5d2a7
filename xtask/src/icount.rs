//! Instructions of the core, counted by callgrind and held below the ceilings of bench/budget.toml.

use crate::{Skipped, tidy};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is counted in core_icount: the functions whose names start so.
const COUNTED: &str = "--toggle-collect=*counted_*";

/// A figure this far below its ceiling, in per cent, asks for a lower one.
const LOOSE_PERCENT: u64 = 4;

/// One line of the budget.
struct Figure {
    name: String,
    /// Units of work within the counted function.
    units: u64,
    ceiling: u64,
}

/// `icount [NAME...]`: all figures of the budget, or those named.
pub(crate) fn run(wanted: &[String]) -> Result<()> {
    let root = tidy::root()?;
    let figures = budget(&root.join("bench/budget.toml"))?;
    for name in wanted {
        ensure!(figures.iter().any(|f| f.name == *name), "bench/budget.toml has no figure {name}");
    }
    let found = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        return Err(Skipped("there is no valgrind: scripts/setup.sh test".to_owned()).into());
    }
    // Of the workspace, so that what a release is made of is not compiled with other features.
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--locked", "--workspace"])
        .args(["--example", "core_icount", "--example", "push_core"])
        .current_dir(&root)
        .status()
        .context("cargo build")?;
    ensure!(built.success(), "core_icount or push_core does not build");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    println!("{:24} {:>12} {:>9}", "figure", "instructions", "ceiling");
    let mut over = Vec::new();
    for figure in &figures {
        if !wanted.is_empty() && !wanted.contains(&figure.name) {
            continue;
        }
        // Figures of the push half are those that say so.
        let example = if figure.name.starts_with("push_") { "push_core" } else { "core_icount" };
        let program = target.join("release/examples").join(example);
        let count = count(&program, &target, &figure.name)?.div_ceil(figure.units);
        let loose = count * 100 < figure.ceiling * (100 - LOOSE_PERCENT);
        let note = match (count > figure.ceiling, loose) {
            (true, _) => "  OVER",
            (false, true) => "  lower the ceiling",
            (false, false) => "",
        };
        println!("{:24} {count:>12} {:>9}{note}", figure.name, figure.ceiling);
        if count > figure.ceiling {
            over.push(figure.name.as_str());
        }
    }
    if over.is_empty() {
        return Ok(());
    }
    bail!("more instructions than bench/budget.toml allows: {}", over.join(", "))
}

fn budget(path: &Path) -> Result<Vec<Figure>> {
    let text = fs::read_to_string(path).with_context(|| format!("{}", path.display()))?;
    let table: toml::Table = text.parse().with_context(|| format!("{}", path.display()))?;
    let figures = table.get("figure").and_then(toml::Value::as_array);
    figures.into_iter().flatten().map(figure).collect()
}

fn figure(value: &toml::Value) -> Result<Figure> {
    let name = value.get("name").and_then(toml::Value::as_str).context("a figure without name")?;
    let number = |key: &str| {
        value
            .get(key)
            .and_then(toml::Value::as_integer)
            .and_then(|n| u64::try_from(n).ok())
            .filter(|n| *n > 0)
            .with_context(|| format!("figure {name}: {key} is no positive number"))
    };
    Ok(Figure { name: name.to_owned(), units: number("units")?, ceiling: number("ceiling")? })
}

/// Instructions within the counted functions of one case.
fn count(program: &Path, target: &Path, case: &str) -> Result<u64> {
    let log = target.join(format!("callgrind.{case}"));
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", COUNTED])
        .arg(format!("--callgrind-out-file={}", log.display()))
        .arg(program)
        .arg(case)
        .output()
        .context("valgrind")?;
    let said = String::from_utf8_lossy(&run.stderr);
    ensure!(run.status.success(), "core_icount {case} failed:\n{said}");
    let line = said.lines().find_map(|line| line.split_once("Collected :"));
    let (_, number) = line.with_context(|| format!("callgrind counted nothing:\n{said}"))?;
    number.trim().parse().with_context(|| format!("callgrind said {number:?}"))
}
