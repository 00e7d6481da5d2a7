//! A victim at half its solo rate, beside an attacker who asks for names that do not exist.

use super::exchange::{Topology, load, start};
use super::{Run, output, own};
use crate::load::LoadResult;
use crate::packets::PREFIX;
use crate::report::{human, human_time, median};
use crate::subject::Subject;
use anyhow::Result;
use std::process::Stdio;

/// How the attacker behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attack {
    None,
    /// The CCNx paper's pace: 2000 Interests every 6 s.
    Paced,
    /// As fast as its socket takes them.
    Blast,
}

impl Attack {
    fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Paced => "2000-per-6-s",
            Self::Blast => "blast",
        }
    }
}

/// Interests in flight of the victim.
const WINDOW: u32 = 64;
/// Seconds of one run: at least one burst of the paced attacker falls into it.
const SECONDS: f64 = 7.0;

/// What one run gave: the victim, the attacker's Interests and its CPU seconds.
struct Outcome {
    victim: LoadResult,
    attacked: u64,
    attacker_cpu_s: f64,
}

/// Round trips of the lone flow, in milliseconds, each with the Interests that keep about 20,000
/// exchanges a second in flight (64 at least).
const FAR: [(u64, u32); 5] = [(1, 64), (10, 256), (30, 640), (100, 2048), (300, 6144)];

pub(super) fn run(context: &mut Run<'_>) -> Result<()> {
    attacks(context)?;
    alone(context)
}

/// A flow alone over a long way: what the defences leave it of what it has without them, and both
/// beside a relay.
fn alone(context: &mut Run<'_>) -> Result<()> {
    println!("\nfair: one flow alone over a long way");
    println!(
        "{:<26} {:<10} {:>13} {:>9} {:>7}  {:>9} {:>9}",
        "case", "subject", "exchanges/s", "p50", "lost", "of relay", "of open"
    );
    let subjects = [Subject::Relay, Subject::OnymOpen, Subject::Onym];
    let wanted = |s: &Subject| {
        context.subjects.contains(if *s == Subject::OnymOpen { &Subject::Onym } else { s })
    };
    let subjects: Vec<_> = subjects.into_iter().filter(wanted).collect();
    let mut round = 350;
    for (rtt_ms, window) in FAR {
        let case = format!("rtt_ms={rtt_ms},window={window}");
        let mut results = vec![Vec::new(); subjects.len()];
        for _ in 0..context.args.rounds {
            for (subject, results) in subjects.iter().zip(&mut results) {
                round += 1;
                results.push(far(context, *subject, rtt_ms, window, round)?);
            }
        }
        for (subject, results) in subjects.iter().zip(&results) {
            note_alone(context, &case, *subject, results);
        }
    }
    Ok(())
}

fn far(
    context: &Run<'_>,
    subject: Subject,
    rtt_ms: u64,
    window: u32,
    round: usize,
) -> Result<LoadResult> {
    let nodes = start(context, subject, Topology::Unix, 0, None, round, PREFIX)?;
    output(
        load(context, subject, &nodes)?
            .arg(format!("--window={window}"))
            .arg(format!("--delay-ms={rtt_ms}"))
            .args(["--warm-up=1", "--seconds=3"]),
    )
}

fn note_alone(context: &mut Run<'_>, case: &str, subject: Subject, results: &[LoadResult]) {
    let of = |value: fn(&LoadResult) -> f64| median(&results.iter().map(value).collect::<Vec<_>>());
    #[allow(clippy::cast_precision_loss)]
    let (rate, lost) = (of(|r| r.exchanges as f64 / r.seconds), of(|r| r.lost as f64));
    let p50 = of(|r| r.latency_p50_s);
    let name = subject.name();
    context.report.add("fair", case, name, "exchanges_per_second", rate);
    context.report.add("fair", case, name, "latency_p50_s", p50);
    context.report.add("fair", case, name, "lost", lost);
    let share = |other| {
        let other = context.report.value("fair", case, other, "exchanges_per_second");
        other.map_or(String::new(), |other| format!("{:>8.1}%", rate / other * 100.0))
    };
    println!(
        "{case:<26} {name:<10} {:>13} {:>9} {lost:>7}  {:>9} {:>9}",
        human(rate),
        human_time(p50),
        share("relay"),
        share(Subject::OnymOpen.name())
    );
}

/// A victim beside an attacker.
fn attacks(context: &mut Run<'_>) -> Result<()> {
    println!("\nfair: a victim at half its solo rate, an attacker asking for what does not exist");
    println!(
        "{:<10} {:<14} {:>13} {:>7} {:>9} {:>9} {:>7} {:>12} {:>9} {:>9} {:>9}",
        "subject",
        "attack",
        "victim ex/s",
        "kept",
        "p50",
        "p99",
        "lost",
        "attack Int.",
        "node cpu",
        "victim cpu",
        "att. cpu"
    );
    let mut round = 300;
    for subject in context.subjects.clone() {
        if subject == Subject::Relay {
            continue;
        }
        let mut solo = Vec::new();
        for _ in 0..context.args.rounds {
            round += 1;
            let result = measure(context, subject, 0, Attack::None, 2.0, round);
            let Some(outcome) = context.take(subject, result)? else { break };
            let r = outcome.victim;
            #[allow(clippy::cast_precision_loss)]
            solo.push(r.exchanges as f64 / r.seconds);
        }
        if solo.len() < context.args.rounds {
            continue;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let pace = (median(&solo) / 2.0) as u32;
        let mut undisturbed = None;
        for attack in [Attack::None, Attack::Paced, Attack::Blast] {
            round += 1;
            match measure(context, subject, pace, attack, SECONDS, round) {
                Ok(outcome) => note(context, subject, attack, &outcome, &mut undisturbed),
                // A forwarder that does not stand the attack is a result.
                Err(error) => {
                    let said = error.to_string();
                    let last = said.lines().rfind(|l| !l.is_empty()).unwrap_or_default();
                    println!("{:<10} {:<14} failed: {last}", subject.name(), attack.name());
                }
            }
        }
    }
    Ok(())
}

fn measure(
    context: &Run<'_>,
    subject: Subject,
    rate: u32,
    attack: Attack,
    seconds: f64,
    round: usize,
) -> Result<Outcome> {
    let nodes = start(context, subject, Topology::Unix, 0, None, round, PREFIX)?;
    let mut attacker = None;
    if attack != Attack::None {
        let mut command = own()?;
        command.arg("flood").arg("--node").arg(nodes[0].socket());
        command.arg(format!("--core={}", context.args.app_core));
        // It starts during the victim's warm-up and ends after it.
        command.arg("--after=0.3").arg(format!("--seconds={}", seconds + 1.2));
        if attack == Attack::Blast {
            command.arg("--every=0");
        }
        attacker = Some(command.stdout(Stdio::piped()).spawn()?);
    }
    let victim: LoadResult = output(
        load(context, subject, &nodes)?
            .arg(format!("--window={WINDOW}"))
            .arg(format!("--seconds={seconds}"))
            .arg(format!("--rate={rate}")),
    )?;
    let mut outcome = Outcome { victim, attacked: 0, attacker_cpu_s: 0.0 };
    if let Some(attacker) = attacker {
        let said = attacker.wait_with_output()?;
        // Nothing when the forwarder closed its face.
        let (sent, cpu): (u64, f64) = serde_json::from_slice(&said.stdout).unwrap_or_default();
        (outcome.attacked, outcome.attacker_cpu_s) = (sent, cpu);
    }
    Ok(outcome)
}

fn note(
    context: &mut Run<'_>,
    subject: Subject,
    attack: Attack,
    outcome: &Outcome,
    undisturbed: &mut Option<f64>,
) {
    let (case, name, r) = (format!("attack={}", attack.name()), subject.name(), &outcome.victim);
    #[allow(clippy::cast_precision_loss)]
    let (rate, lost) = (r.exchanges as f64 / r.seconds, r.lost as f64);
    let node_cpu = r.cpu_s.iter().sum::<f64>();
    let kept = rate / *undisturbed.get_or_insert(rate) * 100.0;
    context.report.add("fair", &case, name, "exchanges_per_second", rate);
    context.report.add("fair", &case, name, "latency_p50_s", r.latency_p50_s);
    context.report.add("fair", &case, name, "latency_p99_s", r.latency_p99_s);
    context.report.add("fair", &case, name, "lost", lost);
    context.report.add("fair", &case, name, "cpu_s", node_cpu);
    println!(
        "{name:<10} {:<14} {:>13} {kept:>6.1}% {:>9} {:>9} {lost:>7} {:>12} {node_cpu:>8.2}s {:>8.2}s {:>8.2}s",
        attack.name(),
        human(rate),
        human_time(r.latency_p50_s),
        human_time(r.latency_p99_s),
        outcome.attacked,
        r.own_cpu_s,
        outcome.attacker_cpu_s,
    );
}
