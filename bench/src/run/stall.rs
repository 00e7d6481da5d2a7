//! 100 MB over one node to a reader that stalls again and again: what is lost for its sake.

use super::file::{Serving, get};
use super::{Run, exchange, output};
use crate::file::{GetResult, NAME};
use crate::report::{human, median};
use crate::subject::Subject;
use anyhow::Result;

const OCTETS: usize = 100_000_000;
const STALL_MS: u64 = 20;
/// Segments of 8000 octets in flight: half, and twice, what the queue of a face has room for; `None`
/// is the default congestion control.
const WINDOWS: [Option<u32>; 3] = [None, Some(256), Some(1024)];

fn case(window: Option<u32>) -> String {
    let window = window.map_or("cubic".to_owned(), |window| window.to_string());
    format!("octets={OCTETS},stall_ms={STALL_MS},window={window}")
}

pub(super) fn run(context: &mut Run<'_>) -> Result<()> {
    println!("\nstall: 100 MB over one node, the reader stalls for {STALL_MS} ms every 5 MB");
    let (case_head, again) = ("case", "asked again");
    println!("{case_head:<43} {:<10} {:>13} {again:>12} {:>8}", "subject", "goodput b/s", "marks");
    let subjects = context.subjects.clone();
    // The relay has neither windows made for it nor a queue that waits.
    let subjects = subjects.into_iter().filter(|subject| *subject != Subject::Relay);
    let runs: Vec<(Option<u32>, Subject)> = subjects
        .flat_map(|subject| WINDOWS.map(|window| (window, subject)))
        .filter(|(window, _)| case(*window).contains(&context.args.case))
        .collect();
    let mut results: Vec<Vec<GetResult>> = vec![Vec::new(); runs.len()];
    let mut number = 0;
    for _ in 0..context.args.rounds {
        for ((window, subject), results) in runs.iter().zip(&mut results) {
            number += 1;
            if context.subjects.contains(subject) {
                let result = measure(context, *subject, *window, 700 + number);
                results.extend(context.take(*subject, result)?);
            }
        }
    }
    for ((window, subject), results) in runs.iter().zip(&results).filter(|(_, r)| !r.is_empty()) {
        let of = |f: &dyn Fn(&GetResult) -> f64| median(&results.iter().map(f).collect::<Vec<_>>());
        #[allow(clippy::cast_precision_loss)] // counts of one file
        let (goodput, again, marks) = (
            of(&|r| r.octets as f64 * 8.0 / r.seconds),
            results.iter().map(|r| r.retransmitted).max().unwrap_or(0) as f64,
            of(&|r| r.marks as f64),
        );
        let (case, name) = (case(*window), subject.name());
        context.report.add("stall", &case, name, "goodput_bps", goodput);
        context.report.add("stall", &case, name, "lost", again);
        println!("{case:<43} {name:<10} {:>13} {again:>12} {marks:>8}", human(goodput));
    }
    Ok(())
}

fn measure(
    context: &Run<'_>,
    subject: Subject,
    window: Option<u32>,
    round: usize,
) -> Result<GetResult> {
    let nodes = exchange::start(context, subject, exchange::Topology::Unix, 0, None, round, NAME)?;
    let _serving = Serving::start(context, subject, &nodes[0], NAME, OCTETS)?;
    let mut get = get(context, &nodes[0], NAME, window)?;
    output(get.arg(format!("--stall-ms={STALL_MS}")))
}
