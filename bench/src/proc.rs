//! What the kernel says about a process: CPU time and resident memory.

use anyhow::{Context, Result};
use std::fs;

/// CPU seconds, user and system, that process `pid` has used, with ended threads.
///
/// # Errors
/// When there is no such process.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    Ok(onym_sys::thread::cpu_time_of(pid)?.as_secs_f64())
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
