//! Node-local delivery (Fig. 4 of the Blackadder paper): one publisher, some subscribers in processes of
//! their own, payloads read or not; over the blackboard, copied through Unix sockets, copied by a node,
//! and by iceoryx2 when its program is there.

mod copying;
mod node;
mod onym;

use crate::part::{Part, rival, say};
use crate::push::{self, Link, Nodes};
use crate::report::{Report, human, median};
use crate::subject::Subject;
use anyhow::{Context, Result, bail, ensure};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// First word of the publication that ends a run; others count from 0.
const END: u64 = u64::MAX;
/// Publications that a subscriber may be behind: as many as a Unix socket holds (208 KiB), within
/// these bounds.
const DEPTHS: (usize, usize) = (15, 255);
const SOCKET_OCTETS: usize = 212_992;
/// The program of the rival.
const RIVAL: &str = "rival-iceoryx2";
const PATIENCE: Duration = Duration::from_secs(60);

/// How publications travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// The blackboard.
    Onym,
    /// Unix stream sockets.
    Copy,
    /// A node's Unix socket.
    Node,
    /// Another program.
    Iceoryx2,
}

impl Way {
    const ALL: [Self; 4] = [Self::Onym, Self::Copy, Self::Node, Self::Iceoryx2];

    const fn name(self) -> &'static str {
        match self {
            Self::Onym => "onym",
            Self::Copy => "copy",
            Self::Node => "node",
            Self::Iceoryx2 => "iceoryx2",
        }
    }
}

/// What is done with payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Read {
    /// Written whole, every word summed by every subscriber.
    Sum,
    /// Written whole, received and not looked at but for the first word.
    None,
    /// Only the first word written, and looked at.
    Head,
}

impl Read {
    const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::None => "none",
            Self::Head => "head",
        }
    }
}

/// The comparison.
#[derive(Debug, Args)]
pub struct BoardArgs {
    /// Octets of a publication, multiples of 8.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 1024, 8192, 102_400])]
    pub payloads: Vec<usize>,
    /// How many subscribers.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 5, 10])]
    pub subscribers: Vec<usize>,
    /// What is done with payloads.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["sum", "none"])]
    pub reads: Vec<Read>,
    /// By which ways; all that are there when none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub subjects: Vec<Way>,
    /// Rounds of each case; subjects take turns within a round.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Seconds that each run lasts, at most.
    #[arg(long, default_value_t = 1.0)]
    pub seconds: f64,
    /// Publications after which a run ends, at most; the paper's are 100,000.
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    pub items: u64,
    /// Where the rows go.
    #[arg(long, default_value = "target/bench.json")]
    pub json: PathBuf,
    /// Where this run's rows go as CSV.
    #[arg(long)]
    pub csv: Option<PathBuf>,
}

/// One side of a run.
#[derive(Debug, Args)]
pub struct PartArgs {
    /// How.
    #[arg(long, value_enum)]
    pub way: Way,
    /// The publisher, or else a subscriber.
    #[arg(long)]
    pub publisher: bool,
    /// Where both meet: a path, or a node's URI.
    #[arg(long)]
    pub path: PathBuf,
    /// Octets of a publication.
    #[arg(long)]
    pub payload: usize,
    /// How many subscribers.
    #[arg(long)]
    pub subscribers: usize,
    /// What is done with payloads.
    #[arg(long, value_enum)]
    pub read: Read,
    /// Publications that a subscriber may be behind.
    #[arg(long)]
    pub depth: usize,
    /// How long to publish, at most.
    #[arg(long)]
    pub seconds: f64,
    /// How many to publish, at most.
    #[arg(long)]
    pub items: u64,
    /// Core to run on.
    #[arg(long)]
    pub core: usize,
}

impl PartArgs {
    fn run(&self) -> Run {
        Run { count: 0, items: self.items, seconds: self.seconds, began: Instant::now() }
    }
}

/// What a publisher has sent, and for how long it goes on.
#[derive(Debug)]
struct Run {
    count: u64,
    items: u64,
    seconds: f64,
    began: Instant,
}

impl Run {
    fn is_over(&self) -> bool {
        // The clock is asked now and then.
        let is_late = || self.began.elapsed().as_secs_f64() >= self.seconds;
        self.count >= self.items || (self.count.is_multiple_of(64) && is_late())
    }

    fn result(&self) -> PartResult {
        PartResult { count: self.count, lost: 0, seconds: self.began.elapsed().as_secs_f64() }
    }
}

/// What a side says at its end.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct PartResult {
    /// Publications sent or received.
    pub count: u64,
    /// Publications that did not arrive.
    pub lost: u64,
    /// Seconds from the first to the last.
    pub seconds: f64,
}

/// A payload as its publisher has it: word `i` is `i`, but the first, which is the number.
fn words(octets: usize) -> Vec<u64> {
    (0..(octets / 8) as u64).collect()
}

/// Says that a side is there, and for a publisher waits for the start.
fn ready(is_publisher: bool) -> Result<()> {
    say("ready")?;
    if is_publisher {
        std::io::stdin().read_line(&mut String::new())?;
    }
    Ok(())
}

/// What a subscriber has seen.
#[derive(Debug)]
struct Seen {
    result: PartResult,
    began: Option<Instant>,
    /// Sum of all words behind the first.
    expected: u64,
}

impl Seen {
    fn new(payload: usize) -> Self {
        let expected = words(payload).iter().skip(1).sum();
        Self { result: PartResult::default(), began: None, expected }
    }

    /// Takes publication `number` and the sum of its words, where they were read; whether it was
    /// the last one.
    fn take(&mut self, number: u64, sum: Option<u64>) -> Result<bool> {
        let began = *self.began.get_or_insert_with(Instant::now);
        if number == END {
            self.result.seconds = began.elapsed().as_secs_f64();
            return Ok(true);
        }
        ensure!(number >= self.result.count + self.result.lost, "out of order");
        self.result.lost += number - self.result.count - self.result.lost;
        self.result.count += 1;
        if let Some(sum) = sum {
            ensure!(sum == self.expected.wrapping_add(number), "the payload is not what was sent");
        }
        Ok(false)
    }
}

/// Runs one side.
///
/// # Errors
/// When the other side is not there or sends what it should not.
pub fn part(args: &PartArgs) -> Result<PartResult> {
    onym_sys::thread::pin_to_core(args.core)?;
    match (args.way, args.publisher) {
        (Way::Onym, true) => onym::publish(args),
        (Way::Onym, false) => onym::subscribe(args),
        (Way::Copy, true) => copying::publish(args),
        (Way::Copy, false) => copying::subscribe(args),
        (Way::Node, true) => node::publish(args),
        (Way::Node, false) => node::subscribe(args),
        (Way::Iceoryx2, _) => bail!("iceoryx2 has a program of its own"),
    }
}

/// A case.
#[derive(Debug, Clone, Copy)]
struct Case {
    payload: usize,
    subscribers: usize,
    read: Read,
}

impl Case {
    fn depth(&self) -> usize {
        (SOCKET_OCTETS / self.payload).clamp(DEPTHS.0, DEPTHS.1)
    }

    fn name(&self) -> String {
        let Self { payload, subscribers, read } = self;
        format!("payload={payload},subscribers={subscribers},read={}", read.name())
    }
}

fn command(
    way: Way,
    case: Case,
    path: &Path,
    args: &BoardArgs,
    is_publisher: bool,
) -> Result<Command> {
    let own = std::env::current_exe()?;
    let mut command = if way == Way::Iceoryx2 {
        Command::new(rival(RIVAL)?.context("rival-iceoryx2 is not built")?)
    } else {
        let mut command = Command::new(own);
        command.args(["board-part", "--way", way.name()]);
        command
    };
    let Case { payload, subscribers, read } = case;
    command.arg("--path").arg(path);
    command.args(["--payload", &payload.to_string(), "--subscribers", &subscribers.to_string()]);
    command.args(["--read", read.name(), "--seconds", &args.seconds.to_string()]);
    command.args(["--items", &args.items.to_string()]);
    command.args(["--depth", &case.depth().to_string()]);
    command.args(["--core", if is_publisher { "0" } else { "1" }]);
    if is_publisher {
        command.arg("--publisher");
    }
    Ok(command)
}

/// Publications per second that each subscriber received, and how many were lost by all.
fn once(way: Way, case: Case, args: &BoardArgs) -> Result<(f64, u64)> {
    let folder = tempfile::tempdir()?;
    let nodes = if way == Way::Node {
        Some(Nodes::start(push::Way::Onym, 1, Link::Tcp, case.payload)?)
    } else {
        None
    };
    let path = match &nodes {
        Some(nodes) => nodes.places()[0].clone().into(),
        None => folder.path().join("board"),
    };
    let start = |is_publisher| -> Result<Part> {
        let mut part = Part::start(command(way, case, &path, args, is_publisher)?)?;
        if is_publisher {
            part.wait_for("open")?;
        }
        Ok(part)
    };
    let mut publisher = start(true)?;
    let mut subscribers: Vec<Part> =
        (0..case.subscribers).map(|_| start(false)).collect::<Result<_>>()?;
    for part in subscribers.iter_mut().chain([&mut publisher]) {
        part.wait_for("ready")?;
    }
    publisher.go()?;
    let sent: PartResult = publisher.result()?;
    let (mut rate, mut lost) = (0.0, 0);
    for subscriber in &mut subscribers {
        let got: PartResult = subscriber.result()?;
        rate += got.count as f64 / got.seconds.max(1e-9);
        lost += sent.count - got.count;
    }
    Ok((rate / case.subscribers as f64, lost))
}

/// Runs the comparison, prints a table and writes rows.
///
/// # Errors
/// When a side fails.
pub fn run(args: &BoardArgs) -> Result<()> {
    let mut ways = args.subjects.clone();
    if ways.is_empty() {
        ways = Way::ALL.to_vec();
    }
    if rival(RIVAL)?.is_none() && ways.contains(&Way::Iceoryx2) {
        println!("skipped: iceoryx2 (cargo build --release in bench/rivals)");
        ways.retain(|way| *way != Way::Iceoryx2);
    }
    if ways.contains(&Way::Node) && Subject::Onym.program().is_none() {
        println!("skipped: node (cargo build --release -p onym)");
        ways.retain(|way| *way != Way::Node);
    }
    let mut report = Report::default();
    println!(
        "{:44} {:>9} {:>14} {:>12} {:>6}",
        "case", "subject", "each, 1/s", "each, B/s", "lost"
    );
    for read in &args.reads {
        for payload in &args.payloads {
            for subscribers in &args.subscribers {
                let case = Case { payload: *payload, subscribers: *subscribers, read: *read };
                measure(case, &ways, args, &mut report)?;
            }
        }
    }
    if let Some(path) = &args.csv {
        report.write_csv(path)?;
    }
    report.write(&args.json)
}

fn measure(case: Case, ways: &[Way], args: &BoardArgs, report: &mut Report) -> Result<()> {
    ensure!(case.payload.is_multiple_of(8) && case.payload > 0, "payloads are multiples of 8");
    let mut rates = vec![Vec::new(); ways.len()];
    let mut lost = vec![0; ways.len()];
    for _ in 0..args.rounds {
        for (i, way) in ways.iter().enumerate() {
            let (rate, missing) = once(*way, case, args)?;
            rates[i].push(rate);
            lost[i] += missing;
        }
    }
    for ((way, rates), lost) in ways.iter().zip(&rates).zip(lost) {
        let rate = median(rates);
        let octets = human(rate * case.payload as f64);
        let name = case.name();
        println!("{name:44} {:>9} {:>14} {octets:>12} {lost:>6}", way.name(), human(rate));
        report.add("blackboard", &name, way.name(), "messages_per_second", rate);
        report.add("blackboard", &name, way.name(), "lost", lost as f64);
    }
    Ok(())
}
