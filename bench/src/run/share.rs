//! Two files over one bottleneck: how the consumers share it, and how much of it they use.
//!
//! ```text
//! consumers=one   both --- node ------ node ===*=== node --- both producers
//! consumers=two   first -- node ------ node ===*=== node --- both producers
//!                                        |
//!                                     second
//! ```
//!
//! The link with a star carries [`BITS_PER_SECOND`] toward the consumers. What it carries of a file is
//! what a window that is never too small gets through it alone.

use super::ethernet::Row;
use super::file::{Serving, get};
use super::{Run, no_namespaces, output};
use crate::file::{GetResult, NAME};
use crate::report::{human, median};
use crate::subject::Subject;
use anyhow::{Context, Result, ensure};
use std::process::Stdio;

const BITS_PER_SECOND: u64 = 200_000_000;
const OCTETS: usize = 100_000_000;
/// Segments of 8000 octets: some 10 ms of the link.
const LONE_WINDOW: u32 = 32;
/// Seconds after the later start that are not counted.
const SETTLE: f64 = 1.0;

/// The name of a case and the node of the second consumer.
const CASES: [(&str, usize); 2] = [("consumers=one", 0), ("consumers=two", 1)];

pub(super) fn run(context: &mut Run<'_>) -> Result<()> {
    println!("\nshare: two files at a time over a link of 200 Mbit/s");
    if let Some(why) = no_namespaces() {
        println!("skipped: {why}");
        return Ok(());
    }
    println!(
        "{:<20} {:>13} {:>13} {:>13} {:>8}  of the link",
        "case", "one b/s", "other b/s", "the link b/s", "Jain"
    );
    for (case, second) in CASES {
        if !case.contains(&context.args.case) {
            continue;
        }
        let rounds = (0..context.args.rounds).map(|_| measure(context, second));
        let rounds = rounds.collect::<Result<Vec<_>>>()?;
        let of = |f: &dyn Fn(&Shares) -> f64| median(&rounds.iter().map(f).collect::<Vec<_>>());
        let (jain, used) = (of(&Shares::jain), of(&|s| s.sum() / s.alone));
        context.report.add("share", case, "onym", "fairness", jain);
        context.report.add("share", case, "onym", "goodput_bps", of(&Shares::sum));
        context.report.add("share", case, "onym", "used_share", used);
        for Shares { each: [one, other], alone } in &rounds {
            println!("{case:<20} {:>13} {:>13} {:>13}", human(*one), human(*other), human(*alone));
        }
        println!("{case:<20} {:>41} {jain:>8.3}  {:.1}%", "medians:", used * 100.0);
    }
    Ok(())
}

/// Goodput in bits per second.
#[derive(Debug)]
struct Shares {
    /// Of both at a time.
    each: [f64; 2],
    /// Of one alone whose window fills the link.
    alone: f64,
}

impl Shares {
    fn sum(&self) -> f64 {
        self.each.iter().sum()
    }

    fn jain(&self) -> f64 {
        self.sum().powi(2) / (2.0 * self.each.iter().map(|x| x * x).sum::<f64>())
    }
}

fn measure(context: &Run<'_>, second: usize) -> Result<Shares> {
    let row = Row::start(context, 3, "", NAME)?;
    row.spaces.limit(2, BITS_PER_SECOND)?;
    let names = ["one", "other"].map(|word| format!("{NAME}/{word}"));
    let serve = |name: &String| Serving::start(context, Subject::Onym, &row.nodes[2], name, OCTETS);
    let _serving = names.iter().map(serve).collect::<Result<Vec<_>>>()?;
    let alone: GetResult = output(&mut get(context, &row.nodes[0], &names[0], Some(LONE_WINDOW))?)?;
    let mut both = Vec::new();
    for (name, node) in names.iter().zip([0, second]) {
        let mut get = get(context, &row.nodes[node], name, None)?;
        both.push(get.arg("--samples").stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?);
    }
    // Both are waited for whatever the first one says.
    let said: Vec<_> = both.into_iter().map(std::process::Child::wait_with_output).collect();
    let mut results = Vec::new();
    for said in said {
        let said = said?;
        ensure!(said.status.success(), "a fetch failed");
        results.push(serde_json::from_slice::<GetResult>(&said.stdout)?);
    }
    #[allow(clippy::cast_precision_loss)] // octets of one file
    let alone = alone.octets as f64 * 8.0 / alone.seconds;
    Ok(Shares { each: together(&results)?, alone })
}

/// What each carried while both did.
fn together(results: &[GetResult]) -> Result<[f64; 2]> {
    let samples = |r: &GetResult| Some((r.samples.first()?.0, r.samples.last()?.0));
    let spans: Option<Vec<_>> = results.iter().map(samples).collect();
    let spans = spans.filter(|spans| spans.len() == 2).context("a fetch was too short")?;
    let from = spans.iter().map(|(first, _)| *first).fold(f64::MIN, f64::max) + SETTLE;
    let until = spans.iter().map(|(_, last)| *last).fold(f64::MAX, f64::min);
    let mut each = [0.0; 2];
    for (each, result) in each.iter_mut().zip(results) {
        let within = result.samples.iter().filter(|(at, _)| (from..=until).contains(at));
        let within: Vec<_> = within.collect();
        let ends = within.first().zip(within.last()).filter(|(a, b)| b.0 > a.0);
        let ((began, before), (ended, after)) = ends.context("both did not fetch at a time")?;
        #[allow(clippy::cast_precision_loss)] // octets of one file
        let bits = (after - before) as f64 * 8.0;
        *each = bits / (ended - began);
    }
    Ok(each)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_the_time_in_which_both_fetch_counts() {
        // Samples each tenth of a second, `rate` octets in each.
        let fetch = |from: u32, until: u32, rate: u64| GetResult {
            samples: (from..=until)
                .map(|n| (f64::from(n) / 10.0, u64::from(n - from) * rate))
                .collect(),
            ..GetResult::default()
        };
        let each = together(&[fetch(0, 50, 100), fetch(20, 90, 300)]).unwrap();
        assert!((each[0] - 8000.0).abs() < 1e-6 && (each[1] - 24_000.0).abs() < 1e-6, "{each:?}");
        let shares = Shares { each, alone: 32_000.0 };
        assert!((shares.jain() - 0.8).abs() < 1e-9);
        assert!(together(&[fetch(0, 50, 1), fetch(60, 90, 1)]).is_err());
    }
}
