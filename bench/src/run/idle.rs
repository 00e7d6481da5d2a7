//! The cost of an idle node.

use super::Run;
use super::exchange::{Topology, start};
use crate::packets::PREFIX;
use crate::proc;
use crate::subject::Subject;
use anyhow::Result;
use std::time::Duration;

/// Seconds that are measured, after one for the start.
const SECONDS: u64 = 10;

pub(super) fn run(context: &mut Run<'_>) -> Result<()> {
    println!("\nidle: a node that does nothing for {SECONDS} s");
    for subject in context.subjects.clone() {
        if subject == Subject::Relay {
            continue;
        }
        let nodes = start(context, subject, Topology::Unix, 60_000, None, 400, PREFIX);
        let Some(nodes) = context.take(subject, nodes)? else { continue };
        std::thread::sleep(Duration::from_secs(1));
        let before = proc::cpu_seconds(nodes[0].pid())?;
        std::thread::sleep(Duration::from_secs(SECONDS));
        let used = proc::cpu_seconds(nodes[0].pid())? - before;
        #[allow(clippy::cast_precision_loss)]
        let (rss, share) =
            (proc::resident_octets(nodes[0].pid())? as f64, used / SECONDS as f64 * 100.0);
        let case = format!("seconds={SECONDS}");
        context.report.add("idle", &case, subject.name(), "cpu_s", used);
        context.report.add("idle", &case, subject.name(), "rss_bytes", rss);
        println!("{:<10} {share:>6.2}% of a core, {:.1} MB resident", subject.name(), rss / 1e6);
    }
    Ok(())
}
