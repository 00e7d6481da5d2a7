//! Instructions of the core and of the whole daemon, counted by callgrind and held below the ceilings of
//! bench/budget.toml.

use crate::{Skipped, tidy};
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is counted in core_icount: the functions whose names start so.
const COUNTED: &str = "--toggle-collect=*counted_*";

/// A figure this far below its ceiling, in per cent, asks for a lower one.
const LOOSE_PERCENT: u64 = 4;

/// Runs of a whole daemon that is compared with another, of which the lowest counts. The keys of its hash
/// tables are random, so that single runs differ by up to ten instructions an exchange.
const COMPARED_RUNS: usize = 5;

/// One line of the budget.
struct Figure {
    name: String,
    /// Units of work within the counted function.
    units: u64,
    ceiling: u64,
    /// Arguments of `onym-bench instructions`, for a figure of the whole daemon.
    daemon: Option<Vec<String>>,
    /// Another figure, above which this one may be by so many per cent at most.
    above: Option<(String, u64)>,
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
    // Programs of the workspace and no examples, whose dependencies of tests would have all of it
    // compiled with other features than a release.
    let built = Command::new("cargo")
        .args(["build", "--quiet", "--release", "--locked", "--workspace"])
        .args([
            "--bin",
            "core_icount",
            "--bin",
            "push_core",
            "--bin",
            "onym",
            "--bin",
            "onym-bench",
        ])
        .current_dir(&root)
        .status()
        .context("cargo build")?;
    ensure!(built.success(), "core_icount, push_core, onym or onym-bench does not build");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    println!("{:24} {:>12} {:>9}", "figure", "instructions", "ceiling");
    let figures: Vec<_> = figures
        .iter()
        .filter(|figure| wanted.is_empty() || wanted.contains(&figure.name))
        .collect();
    let compared = compared(&figures);
    let mut cores = of_cores(&figures, &target).into_iter();
    let mut over = Vec::new();
    let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
    for figure in figures {
        let count = match &figure.daemon {
            Some(arguments) => {
                let is_compared = figure.above.is_some() || compared.contains(&figure.name);
                let runs = if is_compared { COMPARED_RUNS } else { 1 };
                lowest_of_daemon(runs, &target.join("release/onym-bench"), arguments)?
            }
            None => cores.next().context("a figure was not counted")??,
        };
        let count = count.div_ceil(figure.units);
        let loose = count * 100 < figure.ceiling * (100 - LOOSE_PERCENT);
        counted.insert(&figure.name, count);
        let is_above = figure.above.as_ref().is_some_and(|(other, percent)| {
            counted.get(other.as_str()).is_some_and(|base| count * 100 > base * (100 + percent))
        });
        let is_over = count > figure.ceiling || is_above;
        let note = match (is_over, loose) {
            (true, _) => "  OVER",
            (false, true) => "  lower the ceiling",
            (false, false) => "",
        };
        println!("{:24} {count:>12} {:>9}{note}", figure.name, figure.ceiling);
        if let Some((other, percent)) = figure.above.as_ref().filter(|_| is_above) {
            println!("{:24} more than {percent} % above {other}", "");
        }
        if is_over {
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
    let words = |list: &Vec<toml::Value>| {
        list.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let daemon = value.get("daemon").and_then(toml::Value::as_array).map(words);
    let (units, ceiling) = (number("units")?, number("ceiling")?);
    let above = match value.get("above").and_then(toml::Value::as_str) {
        Some(other) => Some((other.to_owned(), number("percent")?)),
        None => None,
    };
    Ok(Figure { name: name.to_owned(), units, ceiling, daemon, above })
}

/// Instructions of the figures without a daemon, in their order. Each is counted by a process that has one
/// thread and no clock, so that others beside it change nothing: as many at a time as there are cores.
fn of_cores(figures: &[&Figure], target: &Path) -> Vec<Result<u64>> {
    let cases: Vec<_> = figures.iter().filter(|f| f.daemon.is_none()).collect();
    let next = AtomicUsize::new(0);
    let counted = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some((at, figure)) = {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    cases.get(at).map(|figure| (at, figure))
                } {
                    // Figures of the push half are those that say so.
                    let is_push = figure.name.starts_with("push_");
                    let program = if is_push { "push_core" } else { "core_icount" };
                    let program = target.join("release").join(program);
                    let count = count(&program, target, &figure.name);
                    counted.lock().expect("invariant: no panic under this lock").push((at, count));
                }
            });
        }
    });
    let mut counted = counted.into_inner().expect("invariant: no panic under this lock");
    counted.sort_by_key(|(at, _)| *at);
    counted.into_iter().map(|(_, count)| count).collect()
}

/// Names of the figures beside which others are judged.
fn compared(figures: &[&Figure]) -> Vec<String> {
    figures.iter().filter_map(|figure| Some(figure.above.as_ref()?.0.clone())).collect()
}

/// The lowest count of so many runs of a whole daemon.
fn lowest_of_daemon(runs: usize, program: &Path, arguments: &[String]) -> Result<u64> {
    let counts = (0..runs).map(|_| of_daemon(program, arguments));
    counts.collect::<Result<Vec<_>>>()?.into_iter().min().context("no run")
}

/// Instructions of a whole daemon: what the program prints.
fn of_daemon(program: &Path, arguments: &[String]) -> Result<u64> {
    let run = Command::new(program).arg("instructions").args(arguments).output();
    let run = run.with_context(|| format!("{}", program.display()))?;
    let said = String::from_utf8_lossy(&run.stderr);
    ensure!(run.status.success(), "onym-bench instructions failed:\n{said}");
    let number = String::from_utf8_lossy(&run.stdout);
    number.trim().parse().with_context(|| format!("onym-bench instructions said {number:?}"))
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
