//! A file over Ethernet of 1500 octets: our nodes in network namespaces of their own, frames cut by
//! the nodes (`faces.udp.find_mtu`) and by IP in turns.

use super::file::{Serving, cpu, get};
use super::{Run, no_namespaces, output};
use crate::file::{GetResult, NAME};
use crate::report::{human, median};
use crate::subject::{Node, Subject};
use crate::veth::Namespaces;
use anyhow::{Context, Result};
use std::fs;

const OCTETS: usize = 200_000_000;
const PORT: u16 = 6363;

/// Nodes of ours in a row, the consumer's first; what is asked under `prefix` goes to the last one.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) nodes: Vec<Node>,
    // Gone after the nodes.
    pub(super) spaces: Namespaces,
}

impl Row {
    /// Starts `count` nodes whose configurations end with `options`.
    pub(super) fn start(
        context: &Run<'_>,
        count: usize,
        options: &str,
        prefix: &str,
    ) -> Result<Self> {
        let mut row = Self { nodes: Vec::new(), spaces: Namespaces::new(count)? };
        let folder = tempfile::tempdir_in(context.folder.path())?.keep();
        let program = Subject::Onym.program().context("onym is not built")?;
        for at in 0..count {
            let others = [at.checked_sub(1), (at + 1 < count).then_some(at + 1)];
            let ends: Vec<String> = others
                .into_iter()
                .flatten()
                .map(|other| format!("\"{}:{PORT}\"", Namespaces::address(at, other)))
                .collect();
            let file = |kind: &str| folder.join(format!("{at}.{kind}"));
            let (config, socket) = (file("conf"), file("sock"));
            let text = format!(
                "shards = 1\n[cs]\npackets_max = 0\n[faces.unix]\npath = \"{}\"\n\
                 [faces.tcp]\nlisten = []\n[faces.websocket]\nlisten = []\n\
                 [faces.udp]\nmulticast = []\nlisten = [{}]\n{options}",
                socket.display(),
                ends.join(", ")
            );
            fs::write(&config, text)?;
            let mut command = row.spaces.command(at, "taskset".as_ref());
            command.args(["-c", &context.args.node_core.to_string()]).arg(&program);
            command.args(["daemon", "--config"]).arg(&config);
            row.nodes.push(Subject::Onym.spawn(command, socket, &file("log"))?);
        }
        for (at, node) in row.nodes.iter().enumerate().take(count - 1) {
            let there = format!("udp4://{}:{PORT}", Namespaces::address(at + 1, at));
            Subject::Onym.connect(node, prefix, &there)?;
        }
        Ok(row)
    }
}

/// The name of a case and what it adds to a configuration.
const CASES: [(&str, &str); 2] =
    [("octets=200000000,cut=ip", "find_mtu = false\n"), ("octets=200000000,cut=node", "")];

pub(super) fn run(context: &mut Run<'_>) -> Result<()> {
    println!("\nethernet: 200 MB over two nodes, UDP over Ethernet of 1500 octets");
    if let Some(why) = no_namespaces() {
        println!("skipped: {why}");
        return Ok(());
    }
    let again = "asked again";
    println!("{:<43} {:>13} {again:>12} {:>10}  of cut=ip", "case", "goodput b/s", "cpu s");
    let cases: Vec<_> =
        CASES.into_iter().filter(|(case, _)| case.contains(&context.args.case)).collect();
    let mut results: Vec<Vec<(GetResult, f64)>> = vec![Vec::new(); cases.len()];
    for _ in 0..context.args.rounds {
        for ((_, options), results) in cases.iter().zip(&mut results) {
            results.push(measure(context, options)?);
        }
    }
    for ((case, _), results) in cases.iter().zip(&results) {
        let of = |f: &dyn Fn(&(GetResult, f64)) -> f64| {
            median(&results.iter().map(f).collect::<Vec<_>>())
        };
        #[allow(clippy::cast_precision_loss)] // counts of one file
        let (goodput, again, cpu) = (
            of(&|(r, _)| r.octets as f64 * 8.0 / r.seconds),
            results.iter().map(|(r, _)| r.retransmitted).max().unwrap_or(0) as f64,
            of(&|(_, cpu)| *cpu),
        );
        context.report.add("ethernet", case, "onym", "goodput_bps", goodput);
        context.report.add("ethernet", case, "onym", "lost", again);
        context.report.add("ethernet", case, "onym", "cpu_s", cpu);
        // Where it was left out, nothing is compared.
        let by_ip = context.report.value("ethernet", CASES[0].0, "onym", "goodput_bps");
        let share = by_ip.map_or(String::new(), |by_ip| format!("{:.2}", goodput / by_ip));
        println!("{case:<43} {:>13} {again:>12} {cpu:>10.2}  {share}", human(goodput));
    }
    Ok(())
}

/// One fetch, and the CPU seconds of the nodes.
fn measure(context: &Run<'_>, options: &str) -> Result<(GetResult, f64)> {
    let row = Row::start(context, 2, options, NAME)?;
    let _serving = Serving::start(context, Subject::Onym, &row.nodes[1], NAME, OCTETS)?;
    let result = output(&mut get(context, &row.nodes[0], NAME, None)?)?;
    Ok((result, cpu(&row.nodes)?))
}
