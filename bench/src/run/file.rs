//! A 100 MB file over two UDP nodes whose receive buffers are limited to the stock default.

use super::exchange::{Topology, start};
use super::{Run, output, own};
use crate::file::{GetResult, NAME};
use crate::report::{human, median};
use crate::subject::Subject;
use anyhow::{Context, Result};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Debian's `net.core.rmem_max`, in octets. Our nodes and the relay ask for exactly this, so that
/// the socket gets what it would get without privilege on a stock machine, whatever this one allows.
const STOCK_BUFFER: usize = 212_992;
/// A relay has no congestion marks and the fetcher has no windows made for it, so its ceiling is the
/// best of these fixed windows.
const RELAY_WINDOWS: [u32; 5] = [4, 8, 12, 16, 24];

pub(super) fn run(context: &mut Run<'_>) -> Result<()> {
    let case = "octets=100000000,recv_buffer=212992";
    println!("\nfile: 100 MB over two UDP nodes, receive buffers limited to 208 KiB");
    println!(
        "{:<10} {:>13} {:>9} {:>14} {:>10}  of relay",
        "subject", "goodput b/s", "seconds", "retransmitted", "cpu s"
    );
    let subjects = context.subjects.clone();
    let mut results = vec![Vec::new(); subjects.len()];
    for round in 0..context.args.rounds {
        for (i, subject) in subjects.iter().enumerate() {
            if !context.subjects.contains(subject) {
                continue;
            }
            let result = measure(context, *subject, 200 + round * 10 + i);
            results[i].extend(context.take(*subject, result)?);
        }
    }
    for (subject, results) in subjects.iter().zip(&results).filter(|(_, r)| !r.is_empty()) {
        let of = |f: &dyn Fn(&(GetResult, f64)) -> f64| {
            median(&results.iter().map(f).collect::<Vec<_>>())
        };
        #[allow(clippy::cast_precision_loss)] // counts of one file
        let (goodput, lost) = (
            of(&|(r, _)| r.octets as f64 * 8.0 / r.seconds),
            of(&|(r, _)| r.retransmitted as f64 / r.sent.max(1) as f64),
        );
        let (seconds, cpu) = (of(&|(r, _)| r.seconds), of(&|(_, cpu)| *cpu));
        let name = subject.name();
        context.report.add("file", case, name, "goodput_bps", goodput);
        context.report.add("file", case, name, "lost", lost);
        context.report.add("file", case, name, "cpu_s", cpu);
        let relay = context.report.value("file", case, "relay", "goodput_bps");
        let share = relay.map_or(String::new(), |r| format!("{:>7.0}%", goodput / r * 100.0));
        println!(
            "{name:<10} {:>13} {seconds:>9.2} {:>13.3}% {cpu:>10.2}  {share}",
            human(goodput),
            lost * 100.0
        );
    }
    Ok(())
}

/// One fetch; of a relay chain the best of several.
fn measure(context: &Run<'_>, subject: Subject, round: usize) -> Result<(GetResult, f64)> {
    if subject != Subject::Relay {
        return fetch(context, subject, None, round);
    }
    let mut best: Option<(GetResult, f64)> = None;
    for (i, window) in RELAY_WINDOWS.into_iter().enumerate() {
        let one = fetch(context, subject, Some(window), round + 100 + i)?;
        if best.as_ref().is_none_or(|(b, _)| one.0.seconds < b.seconds) {
            best = Some(one);
        }
    }
    best.context("no window")
}

fn fetch(
    context: &Run<'_>,
    subject: Subject,
    window: Option<u32>,
    round: usize,
) -> Result<(GetResult, f64)> {
    let nodes = start(context, subject, Topology::Udp, 0, Some(STOCK_BUFFER), round, NAME)?;
    let core = format!("--core={}", context.args.app_core);
    let mut serve = own()?;
    serve.arg("serve").arg("--node").arg(nodes[1].socket()).arg(&core);
    if subject == Subject::Relay {
        serve.arg("--no-register");
    }
    let mut producer = serve.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    let stdout = producer.stdout.take().context("no standard output")?;
    BufReader::new(stdout).read_line(&mut line)?;
    let mut get = own()?;
    get.arg("get").arg("--node").arg(nodes[0].socket()).arg(&core);
    if let Some(window) = window {
        get.arg(format!("--window={window}"));
    }
    let result = output(&mut get);
    let _ = producer.kill();
    let _ = producer.wait();
    let cpu: Result<Vec<f64>> =
        nodes.iter().map(|node| crate::proc::cpu_seconds(node.pid())).collect();
    Ok((result?, cpu?.iter().sum()))
}
