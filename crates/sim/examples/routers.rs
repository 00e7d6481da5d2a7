//! Large networks of routers in virtual time: how long they take to find their ways, in how many
//! messages, with how much memory.
//!
//! `cargo run --release -p onym-sim --example routers -- flat` doubles a flat network from 100 routers,
//! `-- areas` the same number of routers in areas of 50 and more, `-- prefixes 100 100000` announces so many
//! prefixes in a flat network, `-- sprint` lets each link and each router of sprint fail in turn. A run ends the
//! series when it takes more processor time than `--seconds` (600) or more memory than `--gib` (16).

#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::print_stdout)]

use onym_route::{Export, Summary};
use onym_sim::routers::{Graph, RouterNetwork, Setting, network_name};
use onym_wire::Name;
use std::time::Duration;

const SEED: u64 = 20_261_123;
const DELAY_MS: u64 = 10;
/// Routers of an area at least, and areas at most: the core has two routers for each.
const AREA: usize = 50;
const AREAS_MAX: usize = 128;

struct Bounds {
    time: Duration,
    octets: u64,
}

/// What one run took.
struct Run {
    routers: usize,
    links: usize,
    diameter: Option<u64>,
    /// Virtual time until everything was right; none when it was not.
    right_ms: Option<u64>,
    wrong: usize,
    packets: u64,
    octets: u64,
    idle: u64,
    cpu: Duration,
    memory: u64,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let option = |key: &str, default: u64| {
        let at = args.iter().position(|arg| arg == key);
        at.and_then(|at| args.get(at + 1)?.parse().ok()).unwrap_or(default)
    };
    let bounds = Bounds {
        time: Duration::from_secs(option("--seconds", 600)),
        octets: option("--gib", 16) << 30,
    };
    let first = usize::try_from(option("--first", 100)).unwrap();
    println!(
        "routers links diameter  right_ms     wrong     packets      octets idle_packets_s  cpu_s memory_mb"
    );
    match args.first().map(String::as_str) {
        Some("flat") => double(&bounds, first, flat),
        Some("areas") => double(&bounds, first, areas),
        Some("prefixes") => {
            let number = |at: usize, default: usize| {
                args.get(at).and_then(|arg| arg.parse().ok()).unwrap_or(default)
            };
            prefixes(number(1, 100), number(2, 100_000), &bounds).print();
        }
        Some("sprint") => sprint(),
        _ => println!("flat, areas, prefixes ROUTERS PREFIXES, or sprint"),
    }
}

/// Fails each link and each router of sprint in turn.
fn sprint() {
    let mut net = RouterNetwork::new(&Graph::sprint(), Setting::new(50, SEED));
    let cold = until_right(&mut net, 12_000);
    println!("sprint, 50 ms: cold start {cold} ms");
    let mut worst = (0, 0);
    for link in 0..net.links.len() {
        net.cut(link);
        worst = worst.max((until_right(&mut net, 6_000), link));
        net.mend(link);
        until_right(&mut net, 12_000);
    }
    println!("each link in turn: {} ms at most, link {}", worst.0, worst.1);
    let mut worst = (0, 0);
    for node in 0..net.len() {
        net.kill(node);
        worst = worst.max((until_right(&mut net, 6_000), node));
        net.start(node);
        net.retry_all();
        until_right(&mut net, 12_000);
    }
    println!("each router in turn: {} ms at most, router {}", worst.0, worst.1);
    assert_eq!(net.wrong(), 0);
}

/// Runs for `ms`; when the last way to a router became right. No ways close a loop meanwhile.
fn until_right(net: &mut RouterNetwork, ms: u64) -> u64 {
    let (start, mut last) = (net.now, net.now);
    net.run(start.plus_ms(ms), &mut |net| {
        assert_eq!(net.looped(), None, "at {:?}", net.now);
        last = net.now;
    });
    assert_eq!(net.wrong(), 0);
    u64::try_from(last.since(start).as_millis()).unwrap()
}

fn double(bounds: &Bounds, first: usize, run: fn(usize, &Bounds) -> Run) {
    let mut routers = first;
    loop {
        let run = run(routers, bounds);
        run.print();
        if run.cpu > bounds.time || run.memory > bounds.octets {
            println!("ends here: more than {:?} or {} GiB", bounds.time, bounds.octets >> 30);
            return;
        }
        routers *= 2;
    }
}

impl Run {
    fn print(&self) {
        let or = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |v| v.to_string());
        println!(
            "{:7} {:5} {:>8} {:>9} {:9} {:11} {:11} {:14} {:6.1} {:9}",
            self.routers,
            self.links,
            or(self.diameter),
            or(self.right_ms),
            self.wrong,
            self.packets,
            self.octets,
            self.idle,
            self.cpu.as_secs_f64(),
            self.memory >> 20
        );
    }
}

/// Processor time of this process, of `/proc/self/schedstat`: the machine may have other work.
fn cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanos = text.split_whitespace().next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}

/// Memory in use, of `/proc/self/statm`.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

fn own_prefix(node: usize, area: usize) -> Name {
    format!("/site/a{}/n{node}", node / area).parse().unwrap()
}

/// Passes virtual time until `wrong` is nothing, at most `most_ms` of it and so much of real time.
fn settle(
    net: &mut RouterNetwork,
    begun: Duration,
    bounds: &Bounds,
    most_ms: u64,
    wrong: impl Fn(&RouterNetwork) -> usize,
) -> (Option<u64>, usize) {
    let start = net.now;
    let mut left = usize::MAX;
    let mut step = 500;
    while net.now.since(start).as_millis() < u128::from(most_ms) {
        net.pass(step);
        left = wrong(net);
        if left == 0 {
            return (u64::try_from(net.now.since(start).as_millis()).ok(), 0);
        }
        if cpu().saturating_sub(begun) > bounds.time || memory() > bounds.octets {
            break;
        }
        step = (step * 2).min(5_000);
    }
    (None, left)
}

/// Prefixes that are not reached, of every eighth node from 64 nodes.
fn unreached(net: &RouterNetwork, names: &[Name]) -> usize {
    let from = (0..net.len()).step_by((net.len() / 64).max(1));
    let pairs = from.flat_map(|from| names.iter().enumerate().step_by(8).map(move |to| (from, to)));
    pairs.filter(|(from, (to, name))| !net.leads(*from, name, *to)).count()
}

fn measure(
    mut net: RouterNetwork,
    begun: Duration,
    bounds: &Bounds,
    wrong: impl Fn(&RouterNetwork) -> usize,
) -> Run {
    let (right_ms, wrong) = settle(&mut net, begun, bounds, 120_000, wrong);
    let (packets, octets) = (net.packets, net.octets);
    let used = memory();
    if cpu().saturating_sub(begun) < bounds.time {
        net.pass(10_000);
    }
    let cpu = cpu().saturating_sub(begun);
    Run {
        routers: net.len(),
        links: net.links.len(),
        diameter: (net.len() <= 3_200).then(|| net.diameter()),
        right_ms,
        wrong,
        packets,
        octets,
        idle: (net.packets - packets) / 10,
        cpu,
        memory: used,
    }
}

/// A flat network; each router announces one prefix.
fn flat(routers: usize, bounds: &Bounds) -> Run {
    let begun = cpu();
    let graph = Graph::random(routers, routers * 2, 0, SEED);
    let net = RouterNetwork::new(&graph, Setting::new(DELAY_MS, SEED));
    announced(net, routers, begun, bounds)
}

/// As many routers in areas, each behind a summary.
fn areas(routers: usize, bounds: &Bounds) -> Run {
    let begun = cpu();
    let size = AREA.max(routers.div_ceil(AREAS_MAX));
    let count = routers.div_ceil(size);
    let core = network_name(0);
    let exports = (1..=count).flat_map(|area| {
        let prefix = format!("/site/a{}", area - 1).parse().unwrap();
        let summary = Summary { prefix, cost: 0, always: false };
        let (from, to) = (network_name(area), core.clone());
        let up = Export { from, to, summaries: vec![summary], others: false };
        [up, Export::all(core.clone(), network_name(area))]
    });
    let setting = Setting { exports: exports.collect(), ..Setting::new(DELAY_MS, SEED) };
    let net = RouterNetwork::new(&Graph::areas(count, size, SEED), setting);
    announced(net, size, begun, bounds)
}

fn announced(mut net: RouterNetwork, area: usize, begun: Duration, bounds: &Bounds) -> Run {
    let names: Vec<Name> = (0..net.len()).map(|node| own_prefix(node, area)).collect();
    for (node, name) in names.iter().enumerate() {
        net.with(node, |router, now| assert!(router.announce(now, name, 300, 0)));
    }
    measure(net, begun, bounds, move |net| unreached(net, &names))
}

/// So many prefixes, spread over the routers of a flat network.
fn prefixes(routers: usize, count: usize, bounds: &Bounds) -> Run {
    let begun = cpu();
    let uncounted = Some("/many".parse().unwrap());
    let setting = Setting { uncounted, ..Setting::new(DELAY_MS, SEED) };
    let graph = Graph::random(routers, routers * 2, 0, SEED);
    let mut net = RouterNetwork::new(&graph, setting);
    let each = count / routers;
    for node in 0..routers {
        net.with(node, |router, now| {
            for i in 0..each {
                let name: Name = format!("/many/r{node}/p{i}").parse().unwrap();
                assert!(router.announce(now, &name, 300, 0));
            }
        });
    }
    measure(net, begun, bounds, move |net| {
        (0..net.len()).filter(|node| net.remote(*node) != each * (net.len() - 1)).count()
    })
}
