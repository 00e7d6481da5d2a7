//! Nodes in network namespaces of their own, each joined to the next one by a pair of virtual
//! Ethernet ends. Applications reach their node by its Unix socket, from outside.

use anyhow::{Context, Result, ensure};
use std::process::Command;

/// A row of namespaces; gone when dropped.
#[derive(Debug)]
pub(super) struct Namespaces {
    names: Vec<String>,
}

fn ip(words: &str) -> Result<()> {
    let output = Command::new("ip").args(words.split(' ')).output().context("ip cannot be run")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {words}: {}", said.trim());
    Ok(())
}

impl Namespaces {
    /// `count` namespaces in a row; ethernet of the usual 1500 octets.
    pub(super) fn new(count: usize) -> Result<Self> {
        let own = std::process::id();
        let mut row = Self { names: Vec::new() };
        for at in 0..count {
            let name = format!("onym-push-{own}-{at}");
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

    /// What runs `program` in namespace `at`.
    pub(super) fn command(&self, at: usize, program: &std::path::Path) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[at]]).arg(program);
        command
    }

    /// The address in namespace `at` of the end toward its neighbour `other`.
    pub(super) fn address(at: usize, other: usize) -> String {
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
