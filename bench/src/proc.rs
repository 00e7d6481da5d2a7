//! What the kernel says about a process: CPU time and resident memory.

use anyhow::{Context, Result};
use std::fs;

/// CPU seconds, user and system, that process `pid` has used, with ended threads.
///
/// # Errors
/// When there is no such process.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name in parentheses may hold anything; fields are counted behind it.
    let rest = stat.rsplit_once(") ").context("no name in /proc/*/stat")?.1;
    let field = |n: usize| -> Result<f64> {
        Ok(rest.split(' ').nth(n).context("short /proc/*/stat")?.parse()?)
    };
    // Fields 14 and 15 of the file; the kernel counts in hundredths of a second.
    Ok((field(11)? + field(12)?) / 100.0)
}

/// Octets of memory that process `pid` has resident.
///
/// # Errors
/// When there is no such process.
pub fn resident_octets(pid: u32) -> Result<u64> {
    let statm = fs::read_to_string(format!("/proc/{pid}/statm"))?;
    let pages: u64 = statm.split(' ').nth(1).context("short /proc/*/statm")?.parse()?;
    Ok(pages * rustix::param::page_size() as u64)
}
