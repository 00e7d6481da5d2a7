//! Services between a generator and a sink: each alone beside a bare relay, the chain that equals a
//! node beside the node, and the verifier beside a loop that only verifies.

mod bed;
mod verify;

use crate::load::LoadResult;
use crate::report::{Report, median};
use anyhow::{Context, Result};
use bed::{Bed, CACHE, Setup};
use clap::Args;
use onym_crypto::KeyType;
use std::path::PathBuf;

const BENCH: &str = "services";

/// Measures the services.
#[derive(Debug, Args)]
pub struct ServicesArgs {
    /// Octets of content.
    #[arg(long, default_value_t = 8192)]
    pub payload: usize,
    /// Interests in flight.
    #[arg(long, default_value_t = 32)]
    pub window: u32,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Rounds; the cases take turns within a round, and medians are told.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Only cases that contain one of these words, and the relay.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// The program of the services; else `onym` beside this one.
    #[arg(long)]
    pub onym: Option<PathBuf>,
    /// Where the rows go.
    #[arg(long, default_value = "target/bench.json")]
    pub out: PathBuf,
}

type Make = Box<dyn Fn(&Bed<'_>) -> Result<Setup>>;

/// One thing that is measured.
struct Case {
    name: String,
    subject: &'static str,
    /// What the paper measured there, in Mbit/s.
    paper: Option<f64>,
    make: Make,
    results: Vec<LoadResult>,
    /// Verifications a second and thread, where signatures are verified.
    verified: Vec<f64>,
}

/// What a case came to.
struct Row {
    bps: f64,
    latency: f64,
    cpu: f64,
    /// Processor time of the services, of what their cores had.
    busy: f64,
    /// Processor time of the generator for a gigabit.
    own: f64,
    lost: u64,
}

fn case(
    name: impl Into<String>,
    paper: Option<f64>,
    make: impl Fn(&Bed<'_>) -> Result<Setup> + 'static,
) -> Case {
    let name = name.into();
    let subject = if name == RELAY { "relay" } else { "onym" };
    Case { name, subject, paper, make: Box::new(make), results: Vec::new(), verified: Vec::new() }
}

/// The case that all others are compared with.
const RELAY: &str = "place=one";
/// Shares of hits at which the content store is compared with the backward router, in percent.
const HITS: [u32; 6] = [0, 10, 20, 30, 40, 60];
const ROUTER: &str = "kind=BR";

/// Table 3 of the paper.
fn alone() -> Vec<Case> {
    let open = &["registration=open"];
    let mut all = vec![
        case(RELAY, None, |b| b.relay()),
        case("kind=NR", Some(1820.0), |b| b.between("name-router", open)),
        case(ROUTER, Some(1304.0), |b| b.between("backward-router", &[])),
        case("kind=PD", Some(1761.0), |b| b.dispatcher()),
    ];
    for (mode, capacity, names, paper) in [
        ("pass", 0, "distinct", 1760.0),
        ("insert", CACHE, "distinct", 1031.0),
        ("hit", CACHE, "repeated", 2447.0),
    ] {
        all.push(case(format!("kind=CS,mode={mode}"), Some(paper), move |b| {
            Ok(b.store(capacity)?.asked(&["--names", names, "--set", "4096"]))
        }));
    }
    all.push(case("kind=SF", Some(1756.0), |b| {
        b.between("strategy-forwarder", &["strategy=round-robin"])
    }));
    all.push(case("kind=NF", Some(1804.0), |b| b.between("name-filter", &[])));
    all.push(case("kind=FW", None, |b| {
        let cache = format!("cs_capacity={CACHE}");
        b.between("forwarder", &["registration=open", &cache])
    }));
    for (kind, paper) in [(KeyType::Rsa, 515.0), (KeyType::Ecdsa, 122.0)] {
        for threads in [1, 2] {
            let name = format!("kind=SV,key={},threads={threads}", kind.word());
            all.push(case(name, Some(paper), move |b| b.verifier(kind, threads)));
        }
    }
    all
}

/// Table 4 of the paper, and the content store with some hits.
fn together() -> Vec<Case> {
    let mut all = vec![
        case("chain=preset", Some(776.0), |b| b.chain(false)),
        case("chain=producer-at-router", Some(968.0), |b| b.chain(true)),
        case("chain=fused", None, |b| b.daemon()),
    ];
    for hits in HITS {
        all.push(case(hits_name(hits), None, move |b| {
            let percent = hits.to_string();
            let setup = b.store(CACHE)?;
            Ok(setup.asked(&["--names", "mixed", "--set", "256", "--hits", &percent]))
        }));
    }
    all
}

fn hits_name(percent: u32) -> String {
    format!("kind=CS,hits={percent}")
}

/// Runs all.
///
/// # Errors
/// When a program does not start or a face breaks.
pub fn run(args: &ServicesArgs) -> Result<()> {
    let bed = Bed::new(args)?;
    let mut cases: Vec<Case> = alone().into_iter().chain(together()).collect();
    let asked = |name: &str| args.only.is_empty() || args.only.iter().any(|o| name.contains(o));
    cases.retain(|c| c.name == RELAY || asked(&c.name));
    for _ in 0..args.rounds {
        for case in &mut cases {
            let setup = (case.make)(&bed).with_context(|| case.name.clone())?;
            case.results.push(bed.load(&setup).with_context(|| case.name.clone())?);
            if case.name.starts_with("kind=SV") {
                case.verified.push(bed.verifications(&setup)?);
            }
        }
    }
    let mut report = Report::default();
    let rows: Vec<(&Case, Row)> = cases.iter().map(|c| (c, row(c))).collect();
    let relay = rows.first().map_or(f64::NAN, |(_, r)| r.bps);
    for (case, row) in &rows {
        tell(&mut report, args, case, row, relay);
    }
    crossover(&rows);
    ceilings(&rows);
    for kind in [KeyType::Rsa, KeyType::Ecdsa] {
        if asked("kind=SV,memory") {
            let bare = verify::verifying(&mut report, kind, args)?;
            in_service(&mut report, &cases, kind, bare);
        }
    }
    report.write(&args.out)
}

/// How fast the threads of a verifier verify while Data cross it, beside a loop that only does that.
fn in_service(report: &mut Report, cases: &[Case], kind: KeyType, bare: f64) {
    let begin = format!("kind=SV,key={},", kind.word());
    for case in cases.iter().filter(|c| c.name.starts_with(&begin)) {
        let rate = median(&case.verified);
        report.add(
            BENCH,
            &format!("{},place=thread", case.name),
            "onym",
            "exchanges_per_second",
            rate,
        );
        println!(
            "{:<26} {rate:>7.0} verifications a second of a thread's time for them, {:.1} % of a loop that only verifies",
            case.name,
            rate / bare * 100.0
        );
    }
}

#[allow(clippy::cast_precision_loss)]
fn row(case: &Case) -> Row {
    let middle = |value: &dyn Fn(&LoadResult) -> f64| {
        median(&case.results.iter().map(value).collect::<Vec<_>>())
    };
    let bits = |r: &LoadResult| r.content_octets as f64 * 8.0;
    let cpu = |r: &LoadResult| r.cpu_s.iter().sum::<f64>();
    Row {
        bps: middle(&|r| bits(r) / r.seconds),
        latency: middle(&|r| r.latency_p50_s),
        cpu: middle(&|r| cpu(r) / (bits(r) / 1e9)),
        busy: middle(&|r| cpu(r) / r.seconds),
        own: middle(&|r| r.own_cpu_s / (bits(r) / 1e9)),
        lost: case.results.iter().map(|r| r.lost).sum(),
    }
}

fn tell(report: &mut Report, args: &ServicesArgs, case: &Case, row: &Row, relay: f64) {
    let name = format!("{},payload={},window={}", case.name, args.payload, args.window);
    report.add(BENCH, &name, case.subject, "goodput_bps", row.bps);
    report.add(BENCH, &name, case.subject, "latency_p50_s", row.latency);
    report.add(BENCH, &name, case.subject, "cpu_s", row.cpu);
    #[allow(clippy::cast_precision_loss)]
    report.add(BENCH, &name, case.subject, "lost", row.lost as f64);
    let paper =
        case.paper.map_or_else(String::new, |p| format!("{:>5.1} x paper", row.bps / 1e6 / p));
    println!(
        "{:<26} {:>7.0} Mbit/s {:>4.0} % of relay {paper:<15} {:>7.3} ms {:>6.3} CPU s/Gbit {:>4.0} % busy  lost {}",
        case.name,
        row.bps / 1e6,
        row.bps / relay * 100.0,
        row.latency * 1e3,
        row.cpu,
        row.busy * 100.0,
        row.lost
    );
}

/// Says from which share of hits the content store carries more than the backward router.
fn crossover(rows: &[(&Case, Row)]) {
    let of = |name: &str| rows.iter().find(|(c, _)| c.name == name).map(|(_, r)| r);
    let Some(router) = of(ROUTER) else { return };
    let stores: Vec<(u32, &Row)> =
        HITS.iter().filter_map(|h| of(&hits_name(*h)).map(|r| (*h, r))).collect();
    if stores.is_empty() {
        return;
    }
    let by = |what: &str, value: &dyn Fn(&Row) -> f64| {
        let met = crossing(stores.iter().map(|(h, r)| (f64::from(*h), value(r) - value(router))));
        let text = met.map_or_else(|| "not met".to_owned(), |h| format!("{h:.0} % hits"));
        println!("content store and backward router, by {what}: {text}");
    };
    by("goodput", &|r| r.bps);
    by("processor time", &|r| -r.cpu);
    if let Some((keeps, answers)) = of("kind=CS,mode=insert").zip(of("kind=CS,mode=hit")) {
        let share = mixed_crossing(keeps.bps, answers.bps, router.bps) * 100.0;
        println!("content store and backward router, as the paper reckons: {share:.0} % hits");
    }
}

/// The share of hits from which a store carries as much as `router`, of what it carries when it
/// keeps all and when it answers all: the paper's 20 % follows from its Table 3 in this way.
fn mixed_crossing(keeps: f64, answers: f64, router: f64) -> f64 {
    (1.0 / keeps - 1.0 / router) / (1.0 / keeps - 1.0 / answers)
}

/// What the processor time of verifier and generator leaves room for on the cores that they have:
/// one thread has a core of its own, several share both cores with the generator.
fn ceilings(rows: &[(&Case, Row)]) {
    for (case, row) in rows.iter().filter(|(c, _)| c.name.starts_with("kind=SV")) {
        let own_core = case.name.ends_with("threads=1");
        let most = if own_core { 1.0 / row.cpu } else { 2.0 / (row.cpu + row.own) };
        println!(
            "{:<26} generator {:.3} CPU s/Gbit; {} hold at most {:.0} Mbit/s, of which {:.0} %",
            case.name,
            row.own,
            if own_core { "its core would" } else { "both cores would" },
            most * 1e3,
            row.bps / most / 1e7
        );
    }
}

/// Where a line through `points` first is not negative; 0 when it never was.
fn crossing(points: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let mut before: Option<(f64, f64)> = None;
    for (x, y) in points {
        if y >= 0.0 {
            return Some(before.map_or(x, |(x0, y0)| x0 + (x - x0) * y0 / (y0 - y)));
        }
        before = Some((x, y));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{crossing, mixed_crossing};

    #[test]
    fn the_papers_crossing_follows_from_its_table() {
        // In containers, and on bare metal.
        assert!((mixed_crossing(979.0, 2061.0, 1090.0) - 0.194).abs() < 0.001);
        assert!((mixed_crossing(1031.0, 2447.0, 1304.0) - 0.362).abs() < 0.001);
    }

    #[test]
    fn the_crossing_lies_between_the_points_around_it() {
        let at = |y: [f64; 3]| crossing([0.0, 10.0, 20.0].into_iter().zip(y));
        assert_eq!(at([-1.0, -1.0, 1.0]), Some(15.0));
        assert_eq!(at([0.5, 1.0, 2.0]), Some(0.0));
        assert_eq!(at([-3.0, -2.0, -1.0]), None);
    }
}
