//! `onym load`: the applications of a simulated scenario, at a real node.

mod shell;

use crate::cmd::sim::{record, show};
use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::stop::{self, Stop};
use anyhow::Context as _;
use onym_sim::report::AppReport;
use onym_sim::topology::duration;
use onym_sim::{PlacedApp, Scenario};
use serde::Serialize;
use std::io::BufRead;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Run the applications of a scenario against a running node.
#[derive(Debug, clap::Args)]
#[command(
    long_about = "Run the applications of a scenario against a running node.\n\n\
        The scenario is a file of `onym sim`; the applications of one of its nodes run here, each \
        with a face of its own to the node, in real time and with the same code as in the \
        simulator. Links and limits of the scenario are not looked at: they are the node's.",
    after_help = "Examples:\n  \
        onym load scenario.toml --at n5 &\n  \
        onym load scenario.toml --at n1 --until-done --json\n\n\
        Prints `ready` to standard error once the prefixes of producers are registered. With --wait \
        consumers start when a line arrives on standard input. Without --until-done it runs until \
        SIGTERM or --duration. Data carry no signature: this measures forwarders, not trust."
)]
pub(crate) struct Args {
    /// Scenario (TOML).
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Node of the scenario whose applications run.
    #[arg(long, value_name = "NAME")]
    at: String,
    /// Seed of all randomness; overrides that of the file.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Maximum time, such as 60s; overrides the file's.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Stop as soon as every consumer is done.
    #[arg(long)]
    until_done: bool,
    /// Start when a line arrives on standard input.
    #[arg(long)]
    wait: bool,
    /// File for the objects that were fetched (CSV).
    #[arg(long, value_name = "FILE")]
    transfers: Option<PathBuf>,
}

/// What the applications achieved.
#[derive(Debug, Serialize)]
struct Shown {
    /// The moment from which their times count, in seconds since 1970.
    began_unix_s: f64,
    elapsed_s: f64,
    /// Whether every consumer got or gave up all it asked for.
    done: bool,
    /// Frames that did not fit the way to the node.
    unsent: u64,
    apps: Vec<Placed>,
}

#[derive(Debug, Serialize)]
struct Placed {
    /// Number among all applications of the scenario, from 0.
    index: usize,
    #[serde(flatten)]
    app: show::App,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let text = std::fs::read_to_string(&args.file)
        .with_context(|| format!("{} cannot be read", args.file.display()))?;
    let scenario = Scenario::parse(&text, args.seed).map_err(|error| {
        Failure::new(Exit::Usage, format!("{} is not a scenario", args.file.display())).why(error)
    })?;
    let apps = scenario.topology.apps_of(&args.at, scenario.seed).map_err(|error| {
        Failure::new(Exit::Usage, format!("there is nothing to run at {}", args.at)).why(error)
    })?;
    let mut open = Vec::new();
    for placed in apps {
        let mut shell = shell::Shell::open(cx)?;
        if let Some(prefix) = &placed.answers {
            shell.register(prefix, &stop)?;
        }
        open.push((placed, shell));
    }
    crate::output::tell(format_args!("ready"));
    if args.wait {
        std::io::stdin().lock().read_line(&mut String::new())?;
    }
    let limit = args.duration.unwrap_or(scenario.duration);
    let (shown, apps) = all(open, limit, args.until_done, &stop)?;
    if let Some(path) = &args.transfers {
        let rows = apps.iter().map(|one| (one.index, args.at.as_str(), one.app.transfers()));
        record::transfers(path, rows)?;
    }
    let shown = Shown { apps: placed(&apps, &args.at), ..shown };
    cx.print(&shown, text_of)
}

/// Runs every application in a thread of its own until the end.
fn all(
    open: Vec<(PlacedApp, shell::Shell)>,
    limit: Duration,
    until_done: bool,
    stop: &Stop,
) -> anyhow::Result<(Shown, Vec<PlacedApp>)> {
    let origin = Instant::now();
    let began_unix_s = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
    // Producers go on while a consumer does; producers alone go on until stopped.
    let consumers = open.iter().filter(|(placed, _)| placed.answers.is_none()).count();
    let left = Arc::new(AtomicUsize::new(consumers));
    let threads = open.into_iter().map(|(mut placed, mut shell)| {
        let (left, stop) = (Arc::clone(&left), stop.clone());
        std::thread::spawn(move || {
            let is_consumer = placed.answers.is_none();
            let is_over = |is_done: bool| {
                let ended = until_done
                    && ((is_consumer && is_done)
                        || (consumers > 0 && left.load(Ordering::Relaxed) == 0));
                ended || stop.is_set() || origin.elapsed() >= limit
            };
            let result = shell.drive(placed.app.as_mut(), origin, is_over);
            if is_consumer {
                left.fetch_sub(1, Ordering::Relaxed);
            }
            (placed, result)
        })
    });
    let threads: Vec<_> = threads.collect();
    let mut apps = Vec::new();
    let mut unsent = 0;
    for thread in threads {
        let (placed, result) =
            thread.join().map_err(|_| anyhow::anyhow!("an application's thread ended"))?;
        unsent += result?;
        apps.push(placed);
    }
    let done = apps.iter().all(|placed| placed.app.is_done());
    let elapsed_s = origin.elapsed().as_secs_f64();
    Ok((Shown { began_unix_s, elapsed_s, done, unsent, apps: Vec::new() }, apps))
}

fn placed(apps: &[PlacedApp], node: &str) -> Vec<Placed> {
    let report = |one: &PlacedApp| AppReport { node: node.to_owned(), stats: one.app.stats() };
    apps.iter().map(|one| Placed { index: one.index, app: show::app(&report(one)) }).collect()
}

fn text_of(shown: &Shown) -> String {
    let state = if shown.done { "every consumer is done" } else { "consumers were still waiting" };
    let apps: Vec<_> = shown.apps.iter().map(|one| &one.app).collect();
    format!("{:.3} s: {state}\n\n{}", shown.elapsed_s, show::apps(&apps))
}
