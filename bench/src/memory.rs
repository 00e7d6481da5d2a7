//! Memory of the tables per entry, as a counting allocator saw it, and the time of a FIB lookup.
//!
//! Everything goes through the forwarder: Interests that are sent on and wait, Data that answers
//! them and is cached, routes. What is counted is what the allocator was asked for and not given
//! back, divided by the entries, minus the octets of the packets or names themselves: slots that
//! are not in use, index buckets, free lists and timers are all in it.

use crate::report::Report;
use anyhow::{Result, ensure};
use clap::Args;
use onym_forward::{Config, FaceInfo, Forwarder, Verdict};
use onym_frame::Buf;
use onym_link::{LpIn, Outbox, Packet};
use onym_sys::alloc_count::counts;
use onym_tables::cs::{CsConfig, Policy};
use onym_tables::fib::NextHop;
use onym_tables::pit::Token;
use onym_tables::{FaceId, NameHashes, Tick};
use onym_wire::data::DataBuilder;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::Name;
use onym_wire::signature::SignatureInfo;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

/// Memory of the tables.
#[derive(Debug, Args)]
pub struct MemoryArgs {
    /// Entries of each table.
    #[arg(long, default_value_t = 1_000_000)]
    pub entries: u32,
    /// Where the rows go.
    #[arg(long, default_value = "target/bench.json")]
    pub json: PathBuf,
}

const DOWN: FaceId = FaceId(256);
const UP: FaceId = FaceId(257);

/// Most octets per PIT entry, cached packet and route.
const PIT_MOST: f64 = 300.0;
const CS_MOST: f64 = 200.0;
const FIB_MOST: f64 = 150.0;

/// A name of eight components, as the segments of many files.
fn name(n: u32) -> Name {
    let mut name = Name::new();
    for part in ["edu", "university", "lab", "project"] {
        name.append_generic(part);
    }
    name.append_generic((n / 1000).to_string()).append_generic("measurements.bin");
    name.append_version(1_700_000_000_000).append_segment(u64::from(n % 1000));
    name
}

fn interest(n: u32) -> Buf {
    let (mut out, name) = (Vec::new(), name(n));
    let nonce = Some(n.wrapping_mul(0x9e37_79b9).to_be_bytes());
    InterestBuilder { nonce, ..InterestBuilder::new(name.as_ref()) }.write(&mut out);
    Buf::copy_from(&out)
}

fn data(n: u32, payload: usize) -> Result<Buf> {
    let (mut out, name, content) = (Vec::new(), name(n), vec![0x5a; payload]);
    DataBuilder { freshness_ms: 10_000, ..DataBuilder::new(name.as_ref(), &content) }.write(
        &mut out,
        &SignatureInfo::default(),
        |_| Ok::<_, std::fmt::Error>([0; 32]),
    )?;
    Ok(Buf::copy_from(&out))
}

/// A route of four components; every name of [`name`] with the same thousand lies under one.
fn route(n: u32) -> Name {
    let mut name = Name::new();
    name.append_generic("edu").append_generic("university");
    name.append_generic("lab").append_generic(n.to_string());
    name
}

struct Core {
    fw: Forwarder,
    out: Outbox,
    now: Tick,
}

impl Core {
    fn new(cs: CsConfig, entries: u32) -> Result<Self> {
        let entries_max = entries as usize;
        let mut fw = Forwarder::new(Config {
            cs,
            // One face alone gets three quarters of the PIT.
            pit_entries_max: entries_max * 2,
            fib_entries_max: entries_max,
            // Nonces of Interests that ended are no part of the PIT.
            dead_nonces_max: 1,
            ..Config::default()
        });
        let mut out = Outbox::default();
        fw.face_add(DOWN, FaceInfo::point_to_point());
        fw.face_add(UP, FaceInfo::point_to_point());
        let hop = NextHop { face: UP, cost: 0 };
        fw.fib_add(Tick(0), Name::new().as_ref(), hop, &mut out)?;
        Ok(Self { fw, out, now: Tick::from_ms(1) })
    }

    fn receive(&mut self, face: FaceId, bytes: Buf, token: &[u8], wanted: Verdict) -> Result<()> {
        let pit_token = Token::try_from(token)?;
        let lp = LpIn { pit_token, ..LpIn::default() };
        let verdict = self.fw.receive(self.now, Packet { face, bytes, lp }, &mut self.out);
        self.out.clear();
        ensure!(verdict == wanted, "{verdict:?} in place of {wanted:?}");
        Ok(())
    }

    /// Interests of a downstream with PIT tokens, all sent on.
    fn ask(&mut self, entries: std::ops::Range<u32>) -> Result<usize> {
        let mut octets = 0;
        for n in entries {
            let bytes = interest(n);
            octets += bytes.len();
            self.receive(DOWN, bytes, &u64::from(n).to_be_bytes(), Verdict::Forwarded)?;
        }
        Ok(octets)
    }
}

/// Octets beside the packets per pending Interest: after the first ones, and after as many others
/// took their slots.
fn pit(entries: u32) -> Result<[f64; 2]> {
    let off = CsConfig { packets_max: 0, ..CsConfig::default() };
    let mut core = Core::new(off, entries)?;
    let before = counts();
    let octets = core.ask(0..entries)?;
    let first = beside(before, octets, entries);
    core.now = Tick::from_ms(10_000);
    while core.fw.pit_len() > 0 {
        core.fw.handle_timeout(core.now, &mut core.out);
    }
    let octets = core.ask(entries..entries * 2)?;
    Ok([first, beside(before, octets, entries)])
}

/// Octets beside the packets per cached packet: of a store that fills, and of one that has evicted
/// as many as it holds.
fn cs(entries: u32, payload: usize, policy: Policy) -> Result<[f64; 2]> {
    let config = CsConfig {
        packets_max: entries as usize,
        bytes_max: usize::MAX,
        policy,
        ..CsConfig::default()
    };
    let mut core = Core::new(config, 1000)?;
    let before = counts();
    let mut figures = [0.0; 2];
    for (round, figure) in (0..2).zip(&mut figures) {
        for n in round * entries..(round + 1) * entries {
            core.ask(n..n + 1)?;
            core.receive(UP, data(n, payload)?, &[], Verdict::Satisfied)?;
        }
        ensure!(core.fw.cs().len() == entries as usize, "the store is not full");
        *figure = beside(before, core.fw.cs().octets(), entries);
    }
    Ok(figures)
}

/// Octets beside the names per route, and the seconds of a lookup among few and among all routes.
fn fib(entries: u32) -> Result<(f64, [f64; 2])> {
    let mut core = Core::new(CsConfig::default(), entries + 1)?;
    let hop = NextHop { face: UP, cost: 10 };
    let mut times = [0.0; 2];
    let before = counts();
    let mut octets = 0;
    for n in 0..entries {
        let name = route(n);
        octets += name.value().len();
        core.fw.fib_add(core.now, name.as_ref(), hop, &mut core.out)?;
        if n == entries / 1000 {
            times[0] = lookup_time(&core, n);
        }
    }
    let octets = beside(before, octets, entries);
    times[1] = lookup_time(&core, entries);
    Ok((octets, times))
}

/// Seconds of hashing a name and finding its route, on average over a spread of the routes.
fn lookup_time(core: &Core, routes: u32) -> f64 {
    const NAMES: u32 = 100_000;
    let names: Vec<Name> = (0..NAMES)
        .map(|n| {
            let mut name = route(n.wrapping_mul(0x9e37_79b1) % routes);
            name.append_generic("file").append_generic("data.bin");
            name.append_version(1).append_segment(u64::from(n));
            name
        })
        .collect();
    let (fib, key) = (core.fw.fib(), Config::default().hash_key);
    let mut hashes = NameHashes::default();
    let start = Instant::now();
    for name in &names {
        hashes.fill(&key, name.value(), fib.lengths());
        black_box(fib.lookup(&hashes, name.value()));
    }
    start.elapsed().as_secs_f64() / f64::from(NAMES)
}

/// What is held since `before` beside `octets`, per entry.
fn beside(before: onym_sys::alloc_count::Counts, octets: usize, entries: u32) -> f64 {
    // No loss that matters: below 2^53.
    #[allow(clippy::cast_precision_loss)]
    let held = (counts() - before).held() as f64 - octets as f64;
    held / f64::from(entries)
}

/// Prints the table and writes the rows.
///
/// # Errors
/// When a table did not take what it should, or holds more than it may.
pub fn run(args: &MemoryArgs) -> Result<()> {
    let mut report = Report::default();
    let mut over = Vec::new();
    println!("octets beside the packet or name, {} entries\n", args.entries);
    println!("{:44} {:>7} {:>9} {:>6}", "table", "filled", "replaced", "most");
    let mut line = |case: &str, figures: [f64; 2], most: f64| {
        println!("{case:44} {:>7.0} {:>9.0} {most:>6.0}", figures[0], figures[1]);
        for (state, octets) in ["filled", "replaced"].into_iter().zip(figures) {
            let case = format!("table={case},state={state}");
            report.add("memory", &case, "onym", "octets_per_entry", octets);
            if octets > most {
                over.push(case);
            }
        }
    };
    line("pit", pit(args.entries)?, PIT_MOST);
    let tenth = args.entries / 10;
    for (policy, word) in [(Policy::Lru, "lru"), (Policy::PriorityFifo, "priority_fifo")] {
        let small = cs(args.entries, 100, policy)?;
        line(&format!("cs payload=100 policy={word}"), small, CS_MOST);
        let large = cs(tenth, 4000, policy)?;
        line(&format!("cs payload=4000 policy={word} (a tenth)"), large, CS_MOST);
    }
    let (octets, times) = fib(args.entries)?;
    line("fib", [octets, octets], FIB_MOST);
    let [few, all] = times.map(|s| s * 1e9);
    println!("\nFIB: hash and longest match {few:.0} ns among a thousandth, {all:.0} ns among all");
    report.write(&args.json)?;
    ensure!(over.is_empty(), "more than allowed: {}", over.join("; "));
    Ok(())
}
