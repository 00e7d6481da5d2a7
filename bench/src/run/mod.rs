//! The comparisons: cases, interleaved rounds, medians.

mod ethernet;
mod exchange;
mod fair;
mod file;
mod idle;
mod shards;
mod share;
mod stall;

use crate::report::Report;
use crate::subject::{ALL, Subject};
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Which benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Bench {
    /// app - node - app over Unix sockets.
    Unix,
    /// app - node - app over shared memory, beside Unix sockets.
    Shm,
    /// app - node - node - app over UDP.
    Udp,
    /// The same over QUIC, beside UDP.
    Quic,
    /// 100 MB over two UDP nodes with the stock receive buffer.
    File,
    /// The same over Ethernet of 1500 octets, frames cut by the nodes or by IP (root).
    Ethernet,
    /// 100 MB over one node to a reader that stalls.
    Stall,
    /// Two files over one bottleneck (root).
    Share,
    /// A victim and an attacker.
    Fair,
    /// A node that does nothing.
    Idle,
    /// What an exchange costs by what the tables hold, within one thread.
    Tables,
    /// Instructions of an exchange by the number of forwarding threads (valgrind).
    Shards,
}

/// Runs comparisons.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Which benchmarks; all when none is named.
    #[arg(value_enum)]
    pub benches: Vec<Bench>,
    /// Which subjects; all that are there when none is named.
    #[arg(long, value_delimiter = ',')]
    pub subjects: Vec<String>,
    /// Rounds of each case; subjects take turns within a round.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Seconds that each run is measured.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Only cases that contain this text.
    #[arg(long, default_value = "")]
    pub case: String,
    /// Where the rows go.
    #[arg(long, default_value = "target/bench.json")]
    pub json: PathBuf,
    /// Core of the nodes.
    #[arg(long, default_value_t = 0)]
    pub node_core: usize,
    /// Core of the applications.
    #[arg(long, default_value_t = 1)]
    pub app_core: usize,
}

/// What every benchmark needs.
#[derive(Debug)]
struct Run<'a> {
    args: &'a RunArgs,
    subjects: Vec<Subject>,
    report: Report,
    folder: tempfile::TempDir,
}

impl Run<'_> {
    /// What a run of `subject` gave. A foreign one that fails is named and left out from here on;
    /// that ours fails is an error.
    fn take<T>(&mut self, subject: Subject, result: Result<T>) -> Result<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error) if subject.is_foreign() => {
                let said = format!("{error:#}");
                let mut lines = said.lines().filter(|line| !line.trim().is_empty());
                println!("left out: {}: {}", subject.name(), lines.next().unwrap_or("no reason"));
                lines.rev().take(5).for_each(|line| println!("    {line}"));
                self.subjects.retain(|other| *other != subject);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Runs what was asked for, prints tables and writes rows.
///
/// # Errors
/// When a subject cannot be started or a program fails.
pub fn run(args: &RunArgs) -> Result<()> {
    let mut subjects = Vec::new();
    for subject in ALL {
        let named = args.subjects.is_empty() || args.subjects.iter().any(|s| s == subject.name());
        match subject.program() {
            _ if !named => {}
            Some(_) => subjects.push(subject),
            None if subject == Subject::Onym => {
                bail!("target/release/onym is missing: cargo build --release -p onym")
            }
            None => println!("skipped: {} is not on PATH", subject.name()),
        }
    }
    let folder = tempfile::tempdir()?;
    let mut context = Run { args, subjects, report: Report::default(), folder };
    for bench in Bench::value_variants() {
        if !args.benches.is_empty() && !args.benches.contains(bench) {
            continue;
        }
        match bench {
            Bench::Unix => exchange::run(&mut context, exchange::Topology::Unix)?,
            Bench::Shm => exchange::run(&mut context, exchange::Topology::Shm)?,
            Bench::Udp => exchange::run(&mut context, exchange::Topology::Udp)?,
            Bench::Quic => exchange::run(&mut context, exchange::Topology::Quic)?,
            Bench::File => file::run(&mut context)?,
            Bench::Ethernet => ethernet::run(&mut context)?,
            Bench::Stall => stall::run(&mut context)?,
            Bench::Share => share::run(&mut context)?,
            Bench::Fair => fair::run(&mut context)?,
            Bench::Idle => idle::run(&mut context)?,
            Bench::Tables => tables(&context)?,
            Bench::Shards => shards::run(&mut context)?,
        }
        context.report.write(&args.json)?;
    }
    println!("\nrows: {}", args.json.display());
    Ok(())
}

/// Runs `onym-bench tables`, which writes its rows to the same file.
fn tables(context: &Run<'_>) -> Result<()> {
    println!("\ntables: CPU time of an exchange by what the tables hold");
    let mut tables = own()?;
    tables.arg("tables").arg("--json").arg(&context.args.json);
    let ended = tables.arg(format!("--rounds={}", context.args.rounds)).status()?;
    ensure!(ended.success(), "{tables:?} failed");
    Ok(())
}

/// What keeps a benchmark from network namespaces, which it needs.
fn no_namespaces() -> Option<&'static str> {
    let is_root = rustix::process::geteuid().is_root();
    let has_ip = Command::new("ip").arg("-V").output().is_ok();
    match (is_root, has_ip) {
        (false, _) => Some("network namespaces are root's"),
        (_, false) => Some("there is no `ip`"),
        _ => None,
    }
}

/// This program again, with other arguments.
pub(crate) fn own() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.stdin(Stdio::null());
    Ok(command)
}

/// Runs `command` and reads the one line of JSON that it prints.
pub(crate) fn output<T: DeserializeOwned>(command: &mut Command) -> Result<T> {
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{command:?} failed:\n{said}");
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("{command:?} said:\n{said}"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Cli {
        #[command(flatten)]
        args: RunArgs,
    }

    #[test]
    fn a_foreign_subject_that_fails_is_left_out_and_ours_ends_the_run() {
        use clap::Parser as _;
        let args = Cli::parse_from(["test"]).args;
        let (report, folder) = (Report::default(), tempfile::tempdir().unwrap());
        let mut run = Run { args: &args, subjects: ALL.to_vec(), report, folder };
        let failed = || Err::<(), _>(anyhow::anyhow!("registration times out\nlog of it"));
        assert!(run.take(Subject::Nfd, failed()).unwrap().is_none());
        assert!(!run.subjects.contains(&Subject::Nfd) && run.subjects.contains(&Subject::Ndnd));
        assert!(run.take(Subject::Onym, failed()).is_err());
        assert_eq!(run.take(Subject::Ndnd, Ok(7)).unwrap(), Some(7));
    }
}
