//! SHA256SUMS of a folder.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

const FILE: &str = "SHA256SUMS";

pub(super) fn write(folder: &Path) -> Result<()> {
    let sums = of(folder, &names(folder)?)?;
    let lines: String = sums.iter().map(|(name, sum)| format!("{sum}  {name}\n")).collect();
    Ok(fs::write(folder.join(FILE), lines)?)
}

/// The files of a folder, without that of the sums.
pub(super) fn names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_file() && name != FILE {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Each of these files with its sum.
pub(super) fn of(folder: &Path, names: &[String]) -> Result<Vec<(String, String)>> {
    let out = Command::new("sha256sum").arg("--").args(names).current_dir(folder).output();
    let out = out.context("sha256sum (coreutils)")?;
    ensure!(out.status.success(), "sha256sum: {}", String::from_utf8_lossy(&out.stderr));
    let lines = String::from_utf8_lossy(&out.stdout).into_owned();
    let sums = lines.lines().map(|line| line.split(' ').next().unwrap_or_default().to_owned());
    Ok(names.iter().cloned().zip(sums).collect())
}
