//! Nodes in network namespaces of their own, each joined to the next one by a pair of virtual
//! Ethernet ends. Applications reach their node by its Unix socket, from outside.

use anyhow::{Context, Result, ensure};
use std::process::Command;

/// Octets that wait at a limited link: more than a socket's send buffer.
const QUEUE_OCTETS: u32 = 1 << 20;

/// A row of namespaces; gone when dropped.
#[derive(Debug)]
pub(crate) struct Namespaces {
    names: Vec<String>,
}

fn done(program: &str, words: &str) -> Result<()> {
    let output = Command::new(program).args(words.split(' ')).output();
    let output = output.with_context(|| format!("{program} cannot be run"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {words}: {}", said.trim());
    Ok(())
}

fn ip(words: &str) -> Result<()> {
    done("ip", words)
}

impl Namespaces {
    /// `count` namespaces in a row; ethernet of the usual 1500 octets.
    pub(crate) fn new(count: usize) -> Result<Self> {
        let own = std::process::id();
        let mut row = Self { names: Vec::new() };
        for at in 0..count {
            let name = format!("onym-bench-{own}-{at}");
            ip(&format!("netns add {name}"))?;
            row.names.push(name.clone());
            ip(&format!("-n {name} link set lo up"))?;
            if let Some(before) = at.checked_sub(1) {
                let other = &row.names[before];
                ip(&format!(
                    "link add next netns {other} type veth peer name before netns {name}"
                ))?;
                for (space, end, host) in [(other, "next", 1), (&name, "before", 2)] {
                    ip(&format!("-n {space} addr add 10.77.{before}.{host}/24 dev {end}"))?;
                    ip(&format!("-n {space} link set {end} up"))?;
                }
            }
        }
        Ok(row)
    }

    /// Limits what leaves namespace `at` toward the one before it. The kernel holds back
    /// [`QUEUE_OCTETS`] of it, what more comes is lost.
    pub(crate) fn limit(&self, at: usize, bits_per_second: u64) -> Result<()> {
        let rate = format!("rate {bits_per_second}bit burst 32kb limit {QUEUE_OCTETS}");
        done("tc", &format!("-n {} qdisc add dev before root tbf {rate}", self.names[at]))
    }

    /// What runs `program` in namespace `at`.
    pub(crate) fn command(&self, at: usize, program: &std::path::Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[at]]).arg(program);
        command
    }

    /// The address in namespace `at` of the end toward its neighbour `other`.
    pub(crate) fn address(at: usize, other: usize) -> String {
        let (before, host) = if at < other { (at, 1) } else { (other, 2) };
        format!("10.77.{before}.{host}")
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}
