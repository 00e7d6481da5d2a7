//! A 100 MB file over two UDP nodes whose receive buffers are limited to the stock default.

use super::exchange::{Topology, start};
use super::{Run, output, own};
use crate::file::{GetResult, NAME};
use crate::report::{human, median};
use crate::subject::{Node, Subject};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Of the file.
const OCTETS: usize = 100_000_000;
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
    let _serving = Serving::start(context, subject, &nodes[1], NAME, OCTETS)?;
    let mut get = get(context, &nodes[0], NAME, window)?;
    Ok((output(&mut get)?, cpu(&nodes)?))
}

/// CPU seconds of these nodes.
pub(super) fn cpu(nodes: &[Node]) -> Result<f64> {
    nodes.iter().map(|node| crate::proc::cpu_seconds(node.pid())).sum()
}

/// What fetches file `name` over `node`, with a fixed window or the default congestion control.
pub(super) fn get(
    context: &Run<'_>,
    node: &Node,
    name: &str,
    window: Option<u32>,
) -> Result<Command> {
    let mut get = own()?;
    get.arg("get").arg("--node").arg(node.socket()).arg(format!("--name={name}"));
    get.arg(format!("--core={}", context.args.app_core));
    if let Some(window) = window {
        get.arg(format!("--window={window}"));
    }
    Ok(get)
}

/// A process that serves a file; ended when dropped.
#[derive(Debug)]
pub(super) struct Serving(Child);

impl Serving {
    /// Serves so many octets of `name` over `node`, and is ready for them.
    pub(super) fn start(
        context: &Run<'_>,
        subject: Subject,
        node: &Node,
        name: &str,
        octets: usize,
    ) -> Result<Self> {
        let mut serve = own()?;
        serve.arg("serve").arg("--node").arg(node.socket()).arg(format!("--name={name}"));
        serve.arg(format!("--octets={octets}"));
        serve.arg(format!("--core={}", context.args.app_core));
        if subject == Subject::Relay {
            serve.arg("--no-register");
        }
        let mut serving = Self(serve.stdout(Stdio::piped()).spawn()?);
        let stdout = serving.0.stdout.take().context("no standard output")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        ensure!(line == "serving\n", "{name} is not served");
        Ok(serving)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
