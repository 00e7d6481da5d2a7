//! How long publications are under way, at rates that say something: far from what a subject carries,
//! near to it, and the same for all.

use super::{BENCH, Case, Found, Pace, PushArgs, Way, once, search};
use crate::report::{Report, human, human_time, median};
use anyhow::{Context, Result};

/// What of its own highest rate a subject carries here.
const SHARES: [(&str, f64); 3] = [("1%", 0.01), ("10%", 0.1), ("80%", 0.8)];
/// What may be lost at the highest rate.
const LOST_MAX: f64 = 0.01;
const QUANTILES: [(&str, f64); 3] =
    [("latency_p50_s", 0.5), ("latency_p99_s", 0.99), ("latency_p999_s", 0.999)];

pub(super) fn head() {
    println!(
        "{:48} {:>8} {:>7} {:>11} {:>9} {:>9} {:>9} {:>9}",
        "case", "subject", "rate", "1/s", "lost", "p50", "p99", "p99.9"
    );
}

/// The rates of one round, and what came of each.
fn round(way: Way, case: Case, args: &PushArgs) -> Result<Vec<(String, Found)>> {
    let most = search::highest(LOST_MAX, |rate| once(way, case, args, Pace::of(rate)))?;
    let own = SHARES.map(|(word, share)| (word.to_owned(), most.rate.min(most.sent_rate) * share));
    let common = (args.common_rate.to_string(), f64::from(args.common_rate));
    let mut found = Vec::new();
    for (word, rate) in own.into_iter().chain([common]) {
        let pace = Pace { rate: Some((rate as u32).max(1)), is_stamped: true };
        found.push((word, once(way, case, args, pace)?));
    }
    Ok(found)
}

pub(super) fn measure(
    case: Case,
    ways: &[Way],
    args: &PushArgs,
    report: &mut Report,
) -> Result<()> {
    let mut all = vec![Vec::new(); ways.len()];
    for _ in 0..args.rounds {
        for (rounds, way) in all.iter_mut().zip(ways) {
            let one = round(*way, case, args);
            rounds.push(one.with_context(|| format!("{} with {}", way.name(), case.name()))?);
        }
    }
    for (way, rounds) in ways.iter().zip(&all) {
        let levels = rounds.first().map_or(0, Vec::len);
        for level in 0..levels {
            let of_level: Vec<&(String, Found)> =
                rounds.iter().filter_map(|round| round.get(level)).collect();
            let Some((word, _)) = of_level.first() else { continue };
            let middle = |of: &dyn Fn(&Found) -> f64| {
                median(&of_level.iter().map(|(_, found)| of(found)).collect::<Vec<_>>())
            };
            let name = format!("{},rate={word}", case.name());
            let (rate, lost) = (middle(&|f| f.sent_rate), middle(&Found::lost_share));
            report.add(BENCH, &name, way.name(), "sent_per_second", rate);
            report.add(BENCH, &name, way.name(), "lost_share", lost);
            let times = QUANTILES.map(|(metric, share)| {
                let time = middle(&|f| f.latency.quantile(share));
                report.add(BENCH, &name, way.name(), metric, time);
                human_time(time)
            });
            println!(
                "{:48} {:>8} {word:>7} {:>11} {:>8.3}% {:>9} {:>9} {:>9}",
                case.name(),
                way.name(),
                human(rate),
                lost * 100.0,
                times[0],
                times[1],
                times[2],
            );
        }
    }
    Ok(())
}
