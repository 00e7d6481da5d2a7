//! Exchanges per second, over Unix sockets, shared memory, and two nodes joined by UDP or QUIC.

use super::{Run, output, own};
use crate::load::LoadResult;
use crate::packets::PREFIX;
use crate::report::{human, human_time, median};
use crate::subject::{Node, NodeSpec, Subject};
use anyhow::Result;

/// Between which programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Topology {
    Unix,
    /// Shared memory beside Unix sockets.
    Shm,
    Udp,
    /// QUIC beside UDP.
    Quic,
}

/// What joins the applications with their nodes, and the nodes where that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Apps {
    /// Unix sockets, which go without saying.
    Unix,
    /// Unix sockets, compared with another.
    UnixToo,
    Shm,
    NodesByUdp,
    NodesByQuic,
}

impl Apps {
    fn in_name(self) -> &'static str {
        match self {
            Self::Unix => "",
            Self::UnixToo => ",apps=unix",
            Self::Shm => ",apps=shm",
            Self::NodesByUdp => ",nodes=udp",
            Self::NodesByQuic => ",nodes=quic",
        }
    }
}

/// What the cache does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cache {
    /// Keeps nothing.
    Off,
    /// Keeps everything; names are distinct, so it never answers.
    On,
    /// Answers: the same names again and again.
    Hit,
}

impl Cache {
    fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Hit => "hit",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Case {
    payload: usize,
    window: u32,
    cache: Cache,
    apps: Apps,
}

impl Case {
    fn name(self) -> String {
        let (cache, apps) = (self.cache.name(), self.apps.in_name());
        format!("payload={},window={},cs={cache}{apps}", self.payload, self.window)
    }
}

/// Cases in groups whose runs take turns.
fn cases(topology: Topology) -> Vec<Vec<Case>> {
    let case = |payload, window, cache| Case { payload, window, cache, apps: Apps::Unix };
    let mut cases = vec![
        case(100, 64, Cache::Off),
        case(100, 256, Cache::Off),
        case(100, 1024, Cache::Off),
        case(8000, 64, Cache::Off),
    ];
    if topology == Topology::Unix {
        cases.extend([
            case(100, 64, Cache::On),
            case(100, 256, Cache::On),
            case(8000, 64, Cache::On),
            case(100, 256, Cache::Hit),
        ]);
    }
    let both = match topology {
        Topology::Shm => [Apps::UnixToo, Apps::Shm],
        Topology::Quic => [Apps::NodesByUdp, Apps::NodesByQuic],
        _ => return cases.into_iter().map(|case| vec![case]).collect(),
    };
    cases.insert(0, case(100, 1, Cache::Off));
    cases.into_iter().map(|case| both.map(|apps| Case { apps, ..case }).to_vec()).collect()
}

/// Packets kept with the cache on.
const CS_PACKETS: usize = 60_000;

/// UDP ports of the two nodes, by round so that no socket of an earlier run is in the way.
pub(super) fn ports(round: usize) -> (u16, u16) {
    let base = 36_000 + u16::try_from(round % 500).unwrap_or(0) * 2;
    (base, base + 1)
}

/// The nodes of one run: the consumer's first.
pub(super) fn start(
    context: &Run<'_>,
    subject: Subject,
    topology: Topology,
    cs_packets: usize,
    recv_buffer: Option<usize>,
    round: usize,
    prefix: &str,
) -> Result<Vec<Node>> {
    let folder = context.folder.path().join(format!("{}-{round}", subject.name()));
    std::fs::create_dir_all(&folder)?;
    let spec = |name, udp| NodeSpec {
        folder: folder.clone(),
        name,
        udp,
        quic: topology == Topology::Quic,
        cs_packets,
        recv_buffer,
        core: context.args.node_core,
    };
    if !matches!(topology, Topology::Udp | Topology::Quic) {
        return Ok(vec![subject.start(&spec("a", None))?]);
    }
    let (a, b) = ports(round);
    let nodes =
        vec![subject.start(&spec("a", Some((a, b))))?, subject.start(&spec("b", Some((b, a))))?];
    let scheme = if topology == Topology::Quic { "quic" } else { "udp4" };
    subject.connect(&nodes[0], prefix, &format!("{scheme}://127.0.0.1:{b}"))?;
    Ok(nodes)
}

/// Arguments of the load generator that name the nodes.
pub(super) fn load(
    context: &Run<'_>,
    subject: Subject,
    nodes: &[Node],
) -> Result<std::process::Command> {
    let mut command = own()?;
    let (first, last) = (nodes[0].socket(), nodes[nodes.len() - 1].socket());
    command.arg("load").arg("--consumer").arg(first).arg("--producer").arg(last);
    command.arg(format!("--core={}", context.args.app_core));
    for node in nodes {
        command.arg(format!("--watch={}", node.pid()));
    }
    if subject == Subject::Relay {
        command.arg("--no-register");
    }
    Ok(command)
}

fn measure(
    context: &Run<'_>,
    subject: Subject,
    topology: Topology,
    case: Case,
    round: usize,
) -> Result<LoadResult> {
    let cs = if case.cache == Cache::Off { 0 } else { CS_PACKETS };
    let topology = if case.apps == Apps::NodesByUdp { Topology::Udp } else { topology };
    let nodes = start(context, subject, topology, cs, None, round, PREFIX)?;
    let names = if case.cache == Cache::Hit { "repeated" } else { "distinct" };
    let mut command = load(context, subject, &nodes)?;
    command
        .arg(format!("--payload={}", case.payload))
        .arg(format!("--window={}", case.window))
        .arg(format!("--seconds={}", context.args.seconds))
        .arg(format!("--names={names}"));
    if case.apps == Apps::Shm {
        command.arg("--shm");
    }
    output(&mut command)
}

/// All cases of a topology.
pub(super) fn run(context: &mut Run<'_>, topology: Topology) -> Result<()> {
    let bench = match topology {
        Topology::Unix => "unix",
        Topology::Shm => "shm",
        Topology::Udp => "udp",
        Topology::Quic => "quic",
    };
    println!("\n{bench}: {}", description(topology));
    println!(
        "{:<43} {:<8} {:>13} {:>13} {:>9} {:>9} {:>10} {:>8} {:>6}  of relay",
        "case",
        "subject",
        "exchanges/s",
        "goodput b/s",
        "p50",
        "p99",
        "cpu us/ex",
        "rss MB",
        "lost"
    );
    let mut round_number = 0;
    for group in cases(topology) {
        let runs = runs(context, topology, &group);
        let mut results = vec![Vec::new(); runs.len()];
        for _ in 0..context.args.rounds {
            for ((case, subject), results) in runs.iter().zip(&mut results) {
                round_number += 1;
                if !context.subjects.contains(subject) {
                    continue;
                }
                let result = measure(context, *subject, topology, *case, round_number);
                results.extend(context.take(*subject, result)?);
            }
        }
        for ((case, subject), results) in runs.iter().zip(&results) {
            if results.is_empty() {
                continue;
            }
            note(context, bench, &case.name(), *subject, results);
        }
    }
    Ok(())
}

/// Which subjects do which cases of a group.
fn runs(context: &Run<'_>, topology: Topology, group: &[Case]) -> Vec<(Case, Subject)> {
    let named = group.iter().filter(|case| case.name().contains(&context.args.case));
    let all = named.flat_map(|case| context.subjects.iter().map(|subject| (*case, *subject)));
    all.filter(|(case, subject)| match subject {
        // A relay has no cache.
        Subject::Relay => case.cache == Cache::Off && case.apps != Apps::NodesByQuic,
        Subject::Onym => true,
        // Others have no rings of this kind, and no QUIC.
        _ => !matches!(topology, Topology::Shm | Topology::Quic),
    })
    .collect()
}

fn description(topology: Topology) -> &'static str {
    match topology {
        Topology::Unix => "app - node - app, node on one core, both applications on the other",
        Topology::Shm => "app - node - app, Unix sockets and shared memory in turns",
        Topology::Udp => "app - node - node - app, nodes on one core, applications on the other",
        Topology::Quic => "the same, the nodes joined by UDP and by QUIC in turns",
    }
}

/// Adds the medians and prints a line.
fn note(
    context: &mut Run<'_>,
    bench: &'static str,
    case: &str,
    subject: Subject,
    results: &[LoadResult],
) {
    let of = |f: &dyn Fn(&LoadResult) -> f64| median(&results.iter().map(f).collect::<Vec<_>>());
    #[allow(clippy::cast_precision_loss)] // counts of a few seconds
    let (rate, goodput, rss, lost) = (
        of(&|r| r.exchanges as f64 / r.seconds),
        of(&|r| r.content_octets as f64 * 8.0 / r.seconds),
        of(&|r| r.rss.iter().sum::<u64>() as f64),
        of(&|r| r.lost as f64),
    );
    let (p50, p99) = (of(&|r| r.latency_p50_s), of(&|r| r.latency_p99_s));
    let cpu = of(&|r| r.cpu_s.iter().sum::<f64>() / r.seconds);
    let name = subject.name();
    for (metric, value) in [
        ("exchanges_per_second", rate),
        ("goodput_bps", goodput),
        ("latency_p50_s", p50),
        ("latency_p99_s", p99),
        ("cpu_s", cpu),
        ("rss_bytes", rss),
        ("lost", lost),
    ] {
        context.report.add(bench, case, name, metric, value);
    }
    let relay = context.report.value(bench, case, "relay", "exchanges_per_second");
    let share = relay.map_or(String::new(), |relay| format!("{:>7.0}%", rate / relay * 100.0));
    println!(
        "{case:<43} {name:<8} {:>13} {:>13} {:>9} {:>9} {:>10.2} {:>8.1} {lost:>6}  {share}",
        human(rate),
        human(goodput),
        human_time(p50),
        human_time(p99),
        cpu / rate * 1e6,
        rss / 1e6,
    );
}
