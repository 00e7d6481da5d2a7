//! Finding scripts.

use crate::script::{Script, ScriptError, parse_file};
use std::path::{Path, PathBuf};

/// `spec/conformance` of this source tree.
#[must_use]
pub fn conformance() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/conformance")
}

/// All scripts of a folder, by name.
///
/// # Errors
/// All that cannot be read or parsed.
pub fn load_all(folder: &Path) -> Result<Vec<Script>, Vec<ScriptError>> {
    let unreadable = |e: std::io::Error| {
        vec![ScriptError {
            path: folder.into(),
            line: 0,
            what: format!("cannot be read: {e}"),
            allowed: "a folder with *.pkt files".into(),
        }]
    };
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
        .map_err(unreadable)?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "pkt"))
        .collect();
    paths.sort();
    load(&paths)
}

/// These scripts.
///
/// # Errors
/// All that cannot be read or parsed.
pub fn load(paths: &[PathBuf]) -> Result<Vec<Script>, Vec<ScriptError>> {
    let mut good = Vec::new();
    let mut bad = Vec::new();
    for path in paths {
        match parse_file(path) {
            Ok(script) => good.push(script),
            Err(e) => bad.push(e),
        }
    }
    if bad.is_empty() { Ok(good) } else { Err(bad) }
}
