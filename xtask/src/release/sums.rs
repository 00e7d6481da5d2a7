//! SHA256SUMS of a folder.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

pub(super) fn write(folder: &Path) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && entry.file_name() != "SHA256SUMS" {
            names.push(entry.file_name());
        }
    }
    names.sort();
    let out = Command::new("sha256sum").args(&names).current_dir(folder).output();
    let out = out.context("sha256sum (coreutils)")?;
    ensure!(out.status.success(), "sha256sum: {}", String::from_utf8_lossy(&out.stderr));
    Ok(fs::write(folder.join("SHA256SUMS"), out.stdout)?)
}
