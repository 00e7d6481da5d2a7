//! Index structures side by side: a content store's, and a FIB's.
//!
//! The content distribution paper profiles ccnd, finds its skip list decoding every packet that it
//! compares with, keeps the decoded name instead, and doubles the throughput (its section 5). The
//! same change is measured here on NDN packets, beside a keyed hash (what Onym has), each with and
//! without a Bloom filter in front: lookups alone, and within a whole exchange through the
//! forwarder, whose own content store is off then.

mod bloom;
mod fib;
mod names;
mod skip_list;
mod store;
#[cfg(test)]
mod tests;

pub use bloom::Bloom;
pub use fib::{FibIndex, FibKind};
pub use skip_list::{Keep, SkipList};
pub use store::{Store, StoreKind};

use crate::report::{Report, median};
use anyhow::Result;
use clap::Args;
use names::Names;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

/// Index structures side by side.
#[derive(Debug, Args)]
pub struct IndexArgs {
    /// Packets in the content store.
    #[arg(long, value_delimiter = ',', default_values_t = [10_000, 50_000])]
    pub entries: Vec<u32>,
    /// Components of a name.
    #[arg(long, value_delimiter = ',', default_values_t = [4, 16, 64])]
    pub components: Vec<usize>,
    /// Prefixes in the FIB.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 100_000, 1_000_000])]
    pub routes: Vec<u32>,
    /// Octets of content in a packet.
    #[arg(long, default_value_t = 1024)]
    pub payload: usize,
    /// Lookups of a round.
    #[arg(long, default_value_t = 50_000)]
    pub lookups: u32,
    /// Rounds; a row is their median. Structures take turns within a round.
    #[arg(long, default_value_t = 5)]
    pub rounds: usize,
    /// Where the rows go.
    #[arg(long, default_value = "target/bench.json")]
    pub json: PathBuf,
}

/// Prints the tables and writes the rows.
///
/// # Errors
/// When a packet cannot be built, a structure does not find what it holds, or the file cannot be
/// written.
pub fn run(args: &IndexArgs) -> Result<()> {
    let mut report = Report::default();
    for &entries in &args.entries {
        for &components in &args.components {
            content(args, entries, components, &mut report)?;
        }
    }
    for &routes in &args.routes {
        for &components in &args.components {
            routing(args, routes, components, &mut report)?;
        }
    }
    report.write(&args.json)
}

/// Rate of `count` calls, which must take some time.
fn rate(count: u32, mut call: impl FnMut(u32)) -> f64 {
    let start = Instant::now();
    for n in 0..count {
        call(n);
    }
    f64::from(count) / start.elapsed().as_secs_f64().max(1e-9)
}

fn content(args: &IndexArgs, entries: u32, components: usize, report: &mut Report) -> Result<()> {
    let names = Names::new(components, args.payload);
    println!("\ncontent store: {entries} packets, {components} components");
    println!("{:34} {:>12} {:>12} {:>12}", "index", "present /s", "absent /s", "exchanges /s");
    let mut stores = Vec::new();
    for kind in StoreKind::ALL {
        stores.push((kind, store::filled(kind, &names, entries)?, [const { Vec::new() }; 3]));
    }
    let asked: Vec<_> = (0..args.lookups)
        .map(|n| n.wrapping_mul(0x9e37_79b1) % entries)
        .map(|n| (names.name(n), names.name(n + entries)))
        .collect();
    for round in 0..args.rounds {
        for (kind, store, rates) in &mut stores {
            rates[0].push(rate(args.lookups, |n| {
                black_box(store.find(asked[n as usize].0.value()));
            }));
            rates[1].push(rate(args.lookups, |n| {
                black_box(store.find(asked[n as usize].1.value()));
            }));
            let exchanges = args.lookups / 5;
            rates[2].push(store::exchanges(*kind, store, &names, entries, exchanges, round)?);
        }
    }
    for (kind, store, rates) in &stores {
        let [present, absent, exchanged] = [0, 1, 2].map(|n: usize| median(&rates[n]));
        println!("{:34} {present:>12.0} {absent:>12.0} {exchanged:>12.0}", kind.name());
        let case = |asked: &str| {
            format!(
                "table=cs,index={},entries={entries},components={components}{asked}",
                kind.name()
            )
        };
        report.add("index", &case(",asked=present"), "onym", "lookups_per_second", present);
        report.add("index", &case(",asked=absent"), "onym", "lookups_per_second", absent);
        report.add("index", &case(""), "onym", "exchanges_per_second", exchanged);
        report.add("index", &case(""), "onym", "octets_per_entry", store.octets_per_entry());
    }
    Ok(())
}

fn routing(args: &IndexArgs, routes: u32, components: usize, report: &mut Report) -> Result<()> {
    let names = Names::new(components, args.payload);
    println!("\nFIB: {routes} prefixes, names of {components} components");
    println!("{:34} {:>12} {:>12}", "index", "routed /s", "no route /s");
    let mut kinds = Vec::new();
    for kind in FibKind::ALL {
        kinds.push((kind, fib::filled(kind, &names, routes)?, [const { Vec::new() }; 2]));
    }
    let asked: Vec<_> = (0..args.lookups)
        .map(|n| n.wrapping_mul(0x9e37_79b1) % routes)
        .map(|n| (names.under_route(n), names.under_route(n + routes)))
        .collect();
    for _ in 0..args.rounds {
        for (_, index, rates) in &mut kinds {
            rates[0].push(rate(args.lookups, |n| {
                black_box(index.find(asked[n as usize].0.value()));
            }));
            rates[1].push(rate(args.lookups, |n| {
                black_box(index.find(asked[n as usize].1.value()));
            }));
        }
    }
    for (kind, _, rates) in &kinds {
        let [routed, unrouted] = [0, 1].map(|n: usize| median(&rates[n]));
        println!("{:34} {routed:>12.0} {unrouted:>12.0}", kind.name());
        for (asked, value) in [("routed", routed), ("unrouted", unrouted)] {
            let case = format!(
                "table=fib,index={},entries={routes},components={components},asked={asked}",
                kind.name()
            );
            report.add("index", &case, "onym", "lookups_per_second", value);
        }
    }
    Ok(())
}
