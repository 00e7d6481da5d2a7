//! The results of a run, as tables and as JSON.

use crate::human;
use onym_link::PacketKind;
use onym_sim::report::{AppReport, LinkReport, NodeReport};
use onym_sim::{Ended, Report};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// A run.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    seed: u64,
    elapsed_s: f64,
    /// Until a node last received a frame; the rates of links are counted over it.
    active_s: f64,
    events: u64,
    /// `quiet` (nothing was left to happen), `time` or `events`.
    ended: &'static str,
    /// Whether every consumer got or gave up all it asked for.
    done: bool,
    nodes: Vec<Node>,
    links: Vec<Link>,
    apps: Vec<App>,
}

#[derive(Debug, Serialize)]
struct Node {
    name: String,
    in_interests: u64,
    in_data: u64,
    in_nacks: u64,
    out_interests: u64,
    out_data: u64,
    out_nacks: u64,
    cs_hits: u64,
    cs_misses: u64,
    satisfied: u64,
    unsatisfied: u64,
    pit_entries: usize,
    cs_entries: usize,
    /// By kind and word of the registry, those that are not 0.
    verdicts: BTreeMap<&'static str, BTreeMap<&'static str, u64>>,
    drops: u64,
}

#[derive(Debug, Serialize)]
struct Link {
    from: String,
    to: String,
    rate_bps: Option<u64>,
    frames: u64,
    bytes: u64,
    lost: u64,
    queue_full: u64,
    down: u64,
    duplicated: u64,
    goodput_bps: f64,
    queue_delay_mean_s: f64,
    queue_delay_max_s: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct App {
    node: String,
    kind: &'static str,
    prefix: String,
    interests: u64,
    data: u64,
    bytes: u64,
    retransmissions: u64,
    timeouts: u64,
    nacks: u64,
    failed: u64,
    congestion_marks: u64,
    duration_s: f64,
    goodput_bps: f64,
    latency_p50_s: f64,
    latency_p99_s: f64,
    /// On the clock of the run; `null` before it began, and while nothing came.
    began_s: Option<f64>,
    ended_s: Option<f64>,
}

impl Node {
    /// Whether no packet came; such nodes are left out of the tables.
    fn is_idle(&self) -> bool {
        self.in_interests + self.in_data + self.in_nacks == 0
    }
}

impl Link {
    fn is_idle(&self) -> bool {
        self.frames + self.lost + self.queue_full + self.down == 0
    }
}

/// Bits per second; 0 when no time passed.
fn per_second(octets: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { octets as f64 * 8.0 / time.as_secs_f64() }
}

impl Shown {
    pub(crate) fn of(report: &Report, seed: u64, ended: Ended) -> Self {
        Self {
            seed,
            elapsed_s: report.elapsed.as_secs_f64(),
            active_s: report.active.as_secs_f64(),
            events: report.events,
            ended: match ended {
                Ended::Quiet => "quiet",
                Ended::Time => "time",
                Ended::Events => "events",
            },
            done: report.is_done,
            nodes: report.nodes.iter().map(node).collect(),
            links: report.links.iter().map(|link| self::link(link, report.active)).collect(),
            apps: report.apps.iter().map(app).collect(),
        }
    }
}

fn node(report: &NodeReport) -> Node {
    let counters = &report.counters;
    let mut verdicts: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for (kind, verdict, count) in report.verdicts() {
        verdicts.entry(kind.label()).or_default().insert(verdict.label(), count);
    }
    let [in_interests, in_data, in_nacks] = counters.received;
    let [out_interests, out_data, out_nacks] = counters.sent;
    Node {
        name: report.name.clone(),
        in_interests,
        in_data,
        in_nacks,
        out_interests,
        out_data,
        out_nacks,
        cs_hits: counters.cs_hits,
        cs_misses: counters.cs_misses,
        satisfied: counters.satisfied_interests,
        unsatisfied: counters.unsatisfied_interests,
        pit_entries: report.pit_entries,
        cs_entries: report.cs_entries,
        drops: report.drops().map(|(_, _, count)| count).sum(),
        verdicts,
    }
}

fn link(report: &LinkReport, active: Duration) -> Link {
    let counters = &report.counters;
    let through = counters.carried + counters.lost;
    Link {
        from: report.from.clone(),
        to: report.to.clone(),
        rate_bps: report.rate_bps,
        frames: counters.carried,
        bytes: counters.octets_carried,
        lost: counters.lost,
        queue_full: counters.dropped,
        down: counters.down,
        duplicated: counters.duplicated,
        goodput_bps: per_second(counters.octets_carried, active),
        queue_delay_mean_s: counters.waited.as_secs_f64() / through.max(1) as f64,
        queue_delay_max_s: counters.waited_max.as_secs_f64(),
    }
}

/// What an application achieved, as it is shown.
pub(crate) fn app(report: &AppReport) -> App {
    let stats = &report.stats;
    App {
        node: report.node.clone(),
        kind: stats.kind,
        prefix: stats.prefix.clone(),
        interests: stats.interests,
        data: stats.data,
        bytes: stats.octets,
        retransmissions: stats.retransmissions,
        timeouts: stats.timeouts,
        nacks: stats.nacks,
        failed: stats.failed,
        congestion_marks: stats.marks,
        duration_s: stats.duration.as_secs_f64(),
        goodput_bps: per_second(stats.octets, stats.duration),
        latency_p50_s: stats.latency_p50.as_secs_f64(),
        latency_p99_s: stats.latency_p99.as_secs_f64(),
        began_s: stats.began.map(|at| at.as_secs_f64()),
        ended_s: stats.ended.map(|at| at.as_secs_f64()),
    }
}

/// `12.3 ms`.
fn ms(seconds: f64) -> String {
    format!("{:.2} ms", seconds * 1000.0)
}

pub(crate) fn text(shown: &Shown) -> String {
    let state = match (shown.done, shown.ended) {
        (true, _) => "every consumer is done",
        (false, "events") => "the limit of events was reached (--events)",
        (false, _) => "consumers were still waiting (--duration)",
    };
    let head = format!(
        "{:.3} s of virtual time, {} events, seed {}: {state}\n",
        shown.active_s, shown.events, shown.seed
    );
    let idle_nodes = shown.nodes.iter().filter(|node| node.is_idle()).count();
    let idle_links = shown.links.iter().filter(|link| link.is_idle()).count();
    let idle = if idle_nodes + idle_links == 0 {
        String::new()
    } else {
        format!(
            "not shown: {idle_nodes} nodes and {idle_links} directions of links without frames\n"
        )
    };
    let all: Vec<_> = shown.apps.iter().collect();
    let parts = [head, nodes(&shown.nodes), links(&shown.links), apps(&all), idle];
    parts.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join("\n")
}

fn nodes(nodes: &[Node]) -> String {
    let row = |node: &Node| {
        let share =
            |hits: u64, of: u64| format!("{hits} ({:.0}%)", hits as f64 * 100.0 / of.max(1) as f64);
        vec![
            node.name.clone(),
            node.in_interests.to_string(),
            node.out_interests.to_string(),
            node.in_data.to_string(),
            node.out_data.to_string(),
            format!("{}/{}", node.in_nacks, node.out_nacks),
            share(node.cs_hits, node.in_interests),
            node.pit_entries.to_string(),
            node.cs_entries.to_string(),
            drops(node),
        ]
    };
    let rows: Vec<_> = nodes.iter().filter(|node| !node.is_idle()).map(row).collect();
    let heading = [
        "NODE",
        "INTERESTS IN",
        "OUT",
        "DATA IN",
        "OUT",
        "NACKS",
        "CACHE HITS",
        "PENDING",
        "CACHED",
        "DROPPED",
    ];
    human::table(&heading, &rows)
}

/// What was dropped and why, such as `3 no_route, 1 unsolicited`.
fn drops(node: &Node) -> String {
    if node.drops == 0 {
        return "-".to_owned();
    }
    let is_drop =
        |word: &str| onym_forward::Verdict::ALL.iter().any(|v| v.label() == word && v.is_drop());
    let mut all = Vec::new();
    for kind in PacketKind::ALL {
        let words = node.verdicts.get(kind.label()).into_iter().flatten();
        all.extend(
            words.filter(|(w, _)| is_drop(w)).map(|(word, count)| format!("{count} {word}")),
        );
    }
    all.join(", ")
}

fn links(links: &[Link]) -> String {
    let row = |link: &Link| {
        let used = link.rate_bps.map_or("-".to_owned(), |rate| {
            format!("{:.0}%", link.goodput_bps * 100.0 / rate as f64)
        });
        vec![
            format!("{} > {}", link.from, link.to),
            link.frames.to_string(),
            link.lost.to_string(),
            link.queue_full.to_string(),
            link.down.to_string(),
            human::bits_per_second(link.goodput_bps),
            used,
            ms(link.queue_delay_mean_s),
            ms(link.queue_delay_max_s),
        ]
    };
    let rows: Vec<_> = links.iter().filter(|link| !link.is_idle()).map(row).collect();
    let heading =
        ["LINK", "FRAMES", "LOST", "QUEUE FULL", "DOWN", "GOODPUT", "USED", "MEAN WAIT", "LONGEST"];
    human::table(&heading, &rows)
}

/// Applications as a table.
pub(crate) fn apps(apps: &[&App]) -> String {
    let row = |app: &&App| {
        let consumes = app.kind == "consumer";
        let only = |text: String| if consumes { text } else { "-".to_owned() };
        vec![
            format!("{} at {}", app.kind, app.node),
            app.prefix.clone(),
            app.interests.to_string(),
            app.data.to_string(),
            only(app.retransmissions.to_string()),
            only(app.nacks.to_string()),
            only(app.failed.to_string()),
            only(human::bits_per_second(app.goodput_bps)),
            only(ms(app.latency_p50_s)),
            only(ms(app.latency_p99_s)),
        ]
    };
    let rows: Vec<_> = apps.iter().map(row).collect();
    let heading = [
        "APPLICATION",
        "PREFIX",
        "INTERESTS",
        "DATA",
        "AGAIN",
        "NACKS",
        "FAILED",
        "GOODPUT",
        "P50",
        "P99",
    ];
    human::table(&heading, &rows)
}
