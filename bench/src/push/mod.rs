//! Publish/subscribe over two nodes or more: one publisher at the first, some subscribers at the last, by
//! our push half and by what users would pick instead.

mod nats;
mod nodes;
mod onym;
mod relay;

use crate::part::{Part, rival, say};
use crate::report::{Report, human, median};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
pub(crate) use nodes::Nodes;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// First word of publications that end a run, and of those before it; others count from 0.
const END: u64 = u64::MAX;
const PROBE: u64 = u64::MAX - 1;
/// Time between two of those.
const AGAIN: Duration = Duration::from_millis(20);
/// Time without a publication after which a subscriber takes the run for ended.
const SILENCE: Duration = Duration::from_secs(5);

/// Who carries publications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// Bare relays that make the same copies.
    Relay,
    /// Nodes of this project.
    Onym,
    /// Zenoh routers (`bench/rivals`).
    Zenoh,
    /// Two NATS servers (`nats-server` on PATH).
    Nats,
}

impl Way {
    const ALL: [Self; 4] = [Self::Relay, Self::Onym, Self::Zenoh, Self::Nats];

    const fn name(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Onym => "onym",
            Self::Zenoh => "zenoh",
            Self::Nats => "nats",
        }
    }
}

/// What joins two nodes of this project; the others use TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Link {
    /// Datagrams: what finds no room at the next node is lost there.
    Udp,
    /// A connection.
    Tcp,
}

/// The comparison.
#[derive(Debug, Args)]
pub struct PushArgs {
    /// Octets of a publication, at least 8.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 8192])]
    pub payloads: Vec<usize>,
    /// How many subscribers, each a process at the second node.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100])]
    pub subscribers: Vec<usize>,
    /// Who; all that are there when none is named.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub subjects: Vec<Way>,
    /// Rounds of each case; subjects take turns within a round.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Seconds for which is published.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Nodes, one behind the other; the publisher is at the first. NATS has two.
    #[arg(long, default_value_t = 2)]
    pub nodes: usize,
    /// As many subscribers at each node behind the first, not only at the last.
    #[arg(long)]
    pub everywhere: bool,
    /// What joins our nodes.
    #[arg(long, value_enum, default_value = "tcp")]
    pub link: Link,
    /// Where the rows go.
    #[arg(long, default_value = "target/bench.json")]
    pub json: PathBuf,
    /// Where this run's rows go as CSV.
    #[arg(long)]
    pub csv: Option<PathBuf>,
}

/// One side of a run.
#[derive(Debug, Args)]
pub struct PushPartArgs {
    /// Publisher or subscriber.
    #[arg(long, value_enum)]
    pub role: Role,
    /// Of which subject.
    #[arg(long, value_enum)]
    pub way: Way,
    /// Where its node is: a URI, or an address.
    #[arg(long)]
    pub at: String,
    /// Octets of a publication.
    #[arg(long)]
    pub payload: usize,
    /// How long to publish.
    #[arg(long, default_value_t = 0.0)]
    pub seconds: f64,
    /// Where a relay is reached by the one before it.
    #[arg(long)]
    pub listen: Option<SocketAddr>,
    /// Where the relay behind it is.
    #[arg(long)]
    pub next: Option<SocketAddr>,
}

/// Which side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Publishes as fast as it is let.
    Publisher,
    /// Receives.
    Subscriber,
    /// Relays.
    Node,
}

/// What a side says at its end.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct PartResult {
    /// Publications sent or received.
    pub count: u64,
    /// Publications that a subscriber was told it missed.
    pub told: u64,
    /// Seconds from the first to the last.
    pub seconds: f64,
}

/// Runs one side.
///
/// # Errors
/// When its node is not there or sends what it should not.
pub fn part(args: &PushPartArgs) -> Result<PartResult> {
    match (args.way, args.role) {
        (Way::Onym, Role::Publisher) => onym::publish(args),
        (Way::Onym, Role::Subscriber) => onym::subscribe(args),
        (Way::Nats, Role::Publisher) => nats::publish(args),
        (Way::Nats, Role::Subscriber) => nats::subscribe(args),
        (Way::Relay, Role::Publisher) => relay::publish(args),
        (Way::Relay, Role::Subscriber) => relay::subscribe(args),
        (Way::Relay, Role::Node) => relay::node(args).map(|()| PartResult::default()),
        _ => anyhow::bail!("nodes of others, and Zenoh, have programs of their own"),
    }
}

/// Publishes probes until it is told to begin, then as much as it is let, then what ends the run
/// until this process is ended. `put` hands one publication over, `pause` hands over what was held
/// back and waits so long.
fn publish<T>(
    args: &PushPartArgs,
    to: &mut T,
    mut put: impl FnMut(&mut T, &[u8]) -> Result<()>,
    mut pause: impl FnMut(&mut T, Duration) -> Result<()>,
) -> Result<PartResult> {
    ensure!(args.payload >= 8, "a publication has at least 8 octets");
    let mut octets = vec![7_u8; args.payload];
    let mut send = |to: &mut T, number: u64| {
        octets[..8].copy_from_slice(&number.to_le_bytes());
        put(to, &octets)
    };
    let go = told_to_go();
    say("open")?;
    while !go.load(Ordering::Relaxed) {
        send(to, PROBE)?;
        pause(to, AGAIN)?;
    }
    let (mut count, began) = (0_u64, Instant::now());
    // The clock is asked now and then.
    while !count.is_multiple_of(64) || began.elapsed().as_secs_f64() < args.seconds {
        send(to, count)?;
        count += 1;
    }
    let seconds = began.elapsed().as_secs_f64();
    say(&serde_json::to_string(&PartResult { count, told: 0, seconds })?)?;
    loop {
        send(to, END)?;
        pause(to, AGAIN * 5)?;
    }
}

/// Turns true when a line comes over standard input.
fn told_to_go() -> Arc<AtomicBool> {
    let go = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&go);
    std::thread::spawn(move || {
        // Without a line its end says the same.
        let _ = std::io::stdin().read_line(&mut String::new());
        told.store(true, Ordering::Relaxed);
    });
    go
}

/// What a subscriber has seen.
#[derive(Debug, Default)]
struct Seen {
    result: PartResult,
    next: u64,
    began: Option<Instant>,
    last: Option<Instant>,
    is_ready: bool,
    is_ended: bool,
}

impl Seen {
    /// Takes a publication of which `length` octets are wanted; whether it was the last one.
    fn take(&mut self, octets: &[u8], length: usize) -> Result<bool> {
        ensure!(octets.len() == length, "{} octets came, not {length}", octets.len());
        let first = octets.first_chunk().context("a publication has at least 8 octets")?;
        match u64::from_le_bytes(*first) {
            END => return Ok(true),
            PROBE if self.is_ready => {}
            PROBE => {
                self.is_ready = true;
                say("ready")?;
            }
            number => {
                ensure!(number >= self.next, "publication {number} comes late or twice");
                self.next = number + 1;
                self.result.count += 1;
                if self.began.is_none() {
                    self.began = Some(Instant::now());
                }
                if self.result.count.is_multiple_of(64) {
                    self.last = Some(Instant::now());
                }
            }
        }
        Ok(false)
    }

    fn result(&self) -> PartResult {
        let seconds = match (self.began, self.last) {
            (Some(began), Some(last)) => (last - began).as_secs_f64(),
            _ => 0.0,
        };
        PartResult { seconds, ..self.result }
    }
}

/// A case.
#[derive(Debug, Clone, Copy)]
struct Case {
    payload: usize,
    /// At each node that has some.
    subscribers: usize,
    nodes: usize,
    is_everywhere: bool,
}

impl Case {
    fn name(&self) -> String {
        let Self { payload, subscribers, nodes, is_everywhere } = self;
        let at = if *is_everywhere { "all" } else { "last" };
        format!("payload={payload},subscribers={subscribers},nodes={nodes},at={at}")
    }
}

/// What one run brought.
#[derive(Debug, Clone, Copy, Default)]
struct Found {
    /// Publications per second that each subscriber received.
    rate: f64,
    /// Publications sent times subscribers, less what was received.
    lost: u64,
    /// Of those, what the subscribers were told.
    told: u64,
    /// Publications sent.
    sent: u64,
    /// Frames that came over the link, control messages too, where the node tells.
    frames: Option<u64>,
}

fn start(way: Way, case: Case, at: &str, seconds: f64, role: Role) -> Result<Part> {
    let mut command = if way == Way::Zenoh {
        Command::new(rival(nodes::ZENOH)?.context("rival-zenoh is not built")?)
    } else {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["push-part", "--way", way.name()]);
        command
    };
    let role = if role == Role::Publisher { "publisher" } else { "subscriber" };
    command.args(["--role", role, "--at", at, "--payload", &case.payload.to_string()]);
    command.args(["--seconds", &seconds.to_string()]);
    Part::start(command)
}

fn once(way: Way, case: Case, args: &PushArgs) -> Result<Found> {
    let nodes = Nodes::start(way, args.nodes, args.link, case.payload)?;
    let (first, others) = nodes.places().split_first().context("no node")?;
    let places = if args.everywhere { others } else { &others[others.len().saturating_sub(1)..] };
    let mut publisher = start(way, case, first, args.seconds, Role::Publisher)?;
    publisher.wait_for("open")?;
    let mut subscribers = Vec::new();
    for place in places {
        for _ in 0..case.subscribers {
            subscribers.push(start(way, case, place, 0.0, Role::Subscriber)?);
        }
    }
    let count = subscribers.len() as f64;
    subscribers.iter_mut().try_for_each(|part| part.wait_for("ready"))?;
    let before = nodes.frames()?;
    publisher.go()?;
    let sent: PartResult = publisher.result()?;
    let mut found = Found { sent: sent.count, ..Found::default() };
    for part in &mut subscribers {
        let got: PartResult = part.result()?;
        found.rate += got.count as f64 / got.seconds.max(1e-9) / count;
        found.lost += sent.count - got.count;
        found.told += got.told;
    }
    found.frames = nodes.frames()?.zip(before).map(|(after, before)| after - before);
    Ok(found)
}

/// Runs the comparison, prints a table and writes rows.
///
/// # Errors
/// When a side fails.
pub fn run(args: &PushArgs) -> Result<()> {
    ensure!(args.nodes >= 2, "a chain has at least two nodes");
    let mut ways = args.subjects.clone();
    if ways.is_empty() {
        ways = Way::ALL.to_vec();
    }
    ways.retain(|way| match nodes::missing(*way) {
        Some(what) => {
            println!("skipped: {} ({what})", way.name());
            false
        }
        None if *way == Way::Nats && args.nodes != 2 => false,
        None => true,
    });
    let mut report = Report::default();
    println!(
        "{:48} {:>8} {:>12} {:>12} {:>11} {:>11} {:>9}",
        "case", "subject", "each, 1/s", "sent", "lost", "told", "frames"
    );
    for payload in &args.payloads {
        for subscribers in &args.subscribers {
            let (payload, subscribers) = (*payload, *subscribers);
            let case =
                Case { payload, subscribers, nodes: args.nodes, is_everywhere: args.everywhere };
            measure(case, &ways, args, &mut report)?;
        }
    }
    if let Some(path) = &args.csv {
        report.write_csv(path)?;
    }
    report.write(&args.json)
}

fn measure(case: Case, ways: &[Way], args: &PushArgs, report: &mut Report) -> Result<()> {
    let mut all = vec![Vec::new(); ways.len()];
    for _ in 0..args.rounds {
        for (found, way) in all.iter_mut().zip(ways) {
            let one = once(*way, case, args);
            found.push(one.with_context(|| format!("{} with {}", way.name(), case.name()))?);
        }
    }
    let name = case.name();
    for (way, found) in ways.iter().zip(&all) {
        let middle = |of: fn(&Found) -> f64| median(&found.iter().map(of).collect::<Vec<_>>());
        let (rate, sent) = (middle(|f| f.rate), middle(|f| f.sent as f64));
        let (lost, told) = (middle(|f| f.lost as f64), middle(|f| f.told as f64));
        let frames = found[0].frames.map(|_| middle(|f| f.frames.unwrap_or(0) as f64));
        println!(
            "{name:48} {:>8} {:>12} {:>12} {lost:>11} {told:>11} {:>9}",
            way.name(),
            human(rate),
            human(sent),
            frames.map_or_else(String::new, human),
        );
        report.add(BENCH, &name, way.name(), "messages_per_second", rate);
        report.add(BENCH, &name, way.name(), "lost", lost);
        report.add(BENCH, &name, way.name(), "lost_told", told);
        if let Some(frames) = frames {
            report.add(BENCH, &name, way.name(), "frames_per_message", frames / sent.max(1.0));
        }
    }
    Ok(())
}

const BENCH: &str = "push";
