//! Publish/subscribe over two nodes or more: one publisher at the first, some subscribers at the last, by
//! our push half and by what users would pick instead.

mod frames;
mod latency;
mod level;
mod mqtt;
mod nats;
mod nodes;
mod onym;
mod relay;
mod search;
mod side;

use crate::part::{Part, rival};
use crate::report::{Report, human, median};
use anyhow::{Context, Result, ensure};
use clap::{Args, ValueEnum};
use latency::Histogram;
pub(crate) use nodes::Nodes;
pub use side::PartResult;
use side::{SILENCE, Seen, SideArgs};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

/// Who carries publications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Way {
    /// Bare relays that make the same copies, of blocks of octets over TCP.
    Relay,
    /// Bare relays that make the same copies, frame by frame over the links and faces of our nodes.
    Frames,
    /// Nodes of this project.
    Onym,
    /// Zenoh routers (`bench/rivals`).
    Zenoh,
    /// Zenoh peers that are connected directly, without any node.
    ZenohPeer,
    /// iceoryx2 within one node, whose subscribers sleep until they are woken (`bench/rivals`).
    Iceoryx2,
    /// The same, with subscribers that look again and again.
    Iceoryx2Poll,
    /// One NATS server or two (`nats-server` on PATH).
    Nats,
    /// MQTT brokers with a bridge to the one before (`mosquitto` on PATH).
    Mqtt,
}

impl Way {
    const ALL: [Self; 9] = [
        Self::Relay,
        Self::Frames,
        Self::Onym,
        Self::Zenoh,
        Self::ZenohPeer,
        Self::Iceoryx2,
        Self::Iceoryx2Poll,
        Self::Nats,
        Self::Mqtt,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Relay => "relay",
            Self::Frames => "frames",
            Self::Onym => "onym",
            Self::Zenoh => "zenoh",
            Self::ZenohPeer => "zenoh-peer",
            Self::Iceoryx2 => "iceoryx2",
            Self::Iceoryx2Poll => "iceoryx2-poll",
            Self::Nats => "nats",
            Self::Mqtt => "mqtt",
        }
    }

    /// The program of its sides, where that is one of `bench/rivals`.
    const fn rival(self) -> Option<&'static str> {
        match self {
            Self::Zenoh | Self::ZenohPeer => Some("rival-zenoh"),
            Self::Iceoryx2 | Self::Iceoryx2Poll => Some("rival-iceoryx2-push"),
            _ => None,
        }
    }

    /// Whether it has no such chain of nodes.
    fn lacks(self, args: &PushArgs) -> bool {
        let is_ours = matches!(self, Self::Onym | Self::Frames);
        match self {
            Self::Relay | Self::Frames if args.nodes < 2 => true,
            Self::Nats => args.nodes > 2 || args.link == Link::Veth,
            Self::ZenohPeer | Self::Iceoryx2 | Self::Iceoryx2Poll => {
                args.nodes > 1 || args.link == Link::Veth
            }
            _ => !is_ours && args.link == Link::Veth,
        }
    }
}

/// What joins two nodes of this project, or two relays of frames; the others use TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Link {
    /// Datagrams: what finds no room at the next node is lost there.
    Udp,
    /// A connection.
    Tcp,
    /// Datagrams over virtual Ethernet of 1500 octets, each node in a network namespace of its own
    /// (needs root).
    Veth,
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
    /// Nodes, one behind the other; the publisher is at the first. NATS has one or two, Zenoh's peers
    /// and iceoryx2 stand beside one.
    #[arg(long, default_value_t = 2)]
    pub nodes: usize,
    /// As many subscribers at each node behind the first, not only at the last.
    #[arg(long)]
    pub everywhere: bool,
    /// Publications in a second at most; as many as it is let without.
    #[arg(long)]
    pub rate: Option<u32>,
    /// How long publications are under way: at 1, 10 and 80 % of the highest rate that
    /// each subject carries with one in a hundred lost, and at one rate for all.
    #[arg(long, conflicts_with_all = ["rate", "lost_max"])]
    pub latency: bool,
    /// Publications in a second, of all subjects, for `--latency`.
    #[arg(long, default_value_t = 1000)]
    pub common_rate: u32,
    /// Looks for the highest rate at which no more than this share is lost, and shows that.
    #[arg(long, conflicts_with = "rate", value_parser = share)]
    pub lost_max: Option<f64>,
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
    /// What any side is told.
    #[command(flatten)]
    pub side: SideArgs,
    /// Where a relay is reached by the one before it.
    #[arg(long)]
    pub listen: Option<SocketAddr>,
    /// Where the relay behind it is.
    #[arg(long)]
    pub next: Option<SocketAddr>,
    /// Where the relay before it is, when datagrams join them.
    #[arg(long)]
    pub before: Option<SocketAddr>,
    /// Where a relay sends datagrams from.
    #[arg(long)]
    pub own: Option<SocketAddr>,
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
        (Way::Mqtt, Role::Publisher) => mqtt::publish(args),
        (Way::Mqtt, Role::Subscriber) => mqtt::subscribe(args),
        (Way::Relay, Role::Publisher) => relay::publish(args),
        (Way::Relay, Role::Subscriber) => relay::subscribe(args),
        (Way::Relay, Role::Node) => relay::node(args).map(|()| PartResult::default()),
        (Way::Frames, Role::Publisher) => frames::publish(args),
        (Way::Frames, Role::Subscriber) => frames::subscribe(args),
        (Way::Frames, Role::Node) => frames::node(args).map(|()| PartResult::default()),
        _ => anyhow::bail!("nodes of others, Zenoh and iceoryx2 have programs of their own"),
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
#[derive(Debug, Clone, Default)]
struct Found {
    /// Publications per second that each subscriber received.
    rate: f64,
    /// Publications received, of all subscribers.
    received: u64,
    /// Publications sent times subscribers, less what was received.
    lost: u64,
    /// Of those, what the subscribers were told.
    told: u64,
    /// Publications sent.
    sent: u64,
    /// In a second.
    sent_rate: f64,
    /// Frames that came over the link, control messages too, where the node tells.
    frames: Option<u64>,
    /// How long publications were under way, where that is measured.
    latency: Histogram,
}

impl Found {
    fn lost_share(&self) -> f64 {
        self.lost as f64 / (self.lost as f64 + self.received as f64).max(1.0)
    }
}

/// How publications are sent.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// In a second, at most.
    rate: Option<u32>,
    /// They say since when they are under way.
    is_stamped: bool,
}

impl Pace {
    const fn of(rate: Option<u32>) -> Self {
        Self { rate, is_stamped: false }
    }
}

/// A part of the whole.
fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..1.0).contains(&share) { Ok(share) } else { Err("not from 0 to below 1".into()) }
}

fn start(
    (way, role): (Way, Role),
    case: Case,
    at: &str,
    args: &PushArgs,
    pace: Pace,
) -> Result<Part> {
    let mut command = match way.rival() {
        Some(name) => Command::new(rival(name)?.with_context(|| format!("{name} is not built"))?),
        None => {
            let mut command = Command::new(std::env::current_exe()?);
            command.args(["push-part", "--way", way.name(), "--role"]);
            command
        }
    };
    let role = if role == Role::Publisher { "publisher" } else { "subscriber" };
    command.args([role, "--at", at, "--payload", &case.payload.to_string()]);
    if role == "publisher" {
        command.args(["--seconds", &args.seconds.to_string()]);
        if let Some(rate) = pace.rate {
            command.args(["--rate", &rate.to_string()]);
        }
    }
    if pace.is_stamped {
        command.arg("--stamp");
    }
    Part::start(command)
}

fn once(way: Way, case: Case, args: &PushArgs, pace: Pace) -> Result<Found> {
    let nodes = Nodes::start(way, args.nodes, args.link, case.payload)?;
    let (first, others) = nodes.places().split_first().context("no node")?;
    let places = match others.split_last() {
        None => nodes.places(),
        Some(_) if args.everywhere => others,
        Some((last, _)) => std::slice::from_ref(last),
    };
    let mut publisher = start((way, Role::Publisher), case, first, args, pace)?;
    publisher.wait_for("open")?;
    let mut subscribers = Vec::new();
    for place in places {
        for _ in 0..case.subscribers {
            subscribers.push(start((way, Role::Subscriber), case, place, args, pace)?);
        }
    }
    let count = subscribers.len() as f64;
    subscribers.iter_mut().try_for_each(|part| part.wait_for("ready"))?;
    let before = nodes.frames()?;
    publisher.go()?;
    let sent: PartResult = publisher.result()?;
    let mut found = Found {
        sent: sent.count,
        sent_rate: sent.count as f64 / sent.seconds.max(1e-9),
        ..Found::default()
    };
    for part in &mut subscribers {
        let got: PartResult = part.result()?;
        found.rate += got.count as f64 / got.seconds.max(1e-9) / count;
        found.received += got.count;
        found.lost += sent.count - got.count;
        found.told += got.told;
        found.latency.merge(&got.latency);
    }
    found.frames = nodes.frames()?.zip(before).map(|(after, before)| after - before);
    Ok(found)
}

/// Runs the comparison, prints a table and writes rows.
///
/// # Errors
/// When a side fails.
pub fn run(args: &PushArgs) -> Result<()> {
    ensure!(args.nodes >= 1, "publications need a node");
    let mut ways = args.subjects.clone();
    if ways.is_empty() {
        ways = Way::ALL.to_vec();
    }
    ways.retain(|way| match nodes::missing(*way) {
        Some(what) => {
            println!("skipped: {} ({what})", way.name());
            false
        }
        None => !way.lacks(args),
    });
    let mut report = Report::default();
    if args.latency {
        level::head();
    } else {
        println!(
            "{:48} {:>8} {:>12} {:>12} {:>11} {:>11} {:>9}",
            "case", "subject", "each, 1/s", "sent", "lost", "told", "frames"
        );
    }
    for payload in &args.payloads {
        for subscribers in &args.subscribers {
            let (payload, subscribers) = (*payload, *subscribers);
            let case =
                Case { payload, subscribers, nodes: args.nodes, is_everywhere: args.everywhere };
            if args.latency {
                level::measure(case, &ways, args, &mut report)?;
            } else {
                measure(case, &ways, args, &mut report)?;
            }
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
            let one = match args.lost_max {
                None => once(*way, case, args, Pace::of(args.rate)),
                Some(share) => {
                    search::highest(share, |rate| once(*way, case, args, Pace::of(rate)))
                }
            };
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
        let sent_rate = middle(|f| f.sent_rate);
        report.add(BENCH, &name, way.name(), "sent_per_second", sent_rate);
        report.add(BENCH, &name, way.name(), "lost", lost);
        report.add(BENCH, &name, way.name(), "lost_told", told);
        report.add(BENCH, &name, way.name(), "lost_share", middle(Found::lost_share));
        if let Some(frames) = frames {
            report.add(BENCH, &name, way.name(), "frames_per_message", frames / sent.max(1.0));
        }
    }
    Ok(())
}

const BENCH: &str = "push";
