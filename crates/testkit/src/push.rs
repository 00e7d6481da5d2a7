//! Push scripts (`spec/conformance/FORMAT.md`, "Push scripts"): whole networks in virtual time.

mod daemon;
mod run;
mod script;
mod step;

pub use daemon::run as run_daemons;
pub use run::{run, run_drawn};
pub use script::{Line, PushScript, parse, parse_file};

use crate::script::ScriptError;
use std::path::Path;

/// All push scripts of a folder, by name.
///
/// # Errors
/// All that cannot be read or parsed.
pub fn load_all(folder: &Path) -> Result<Vec<PushScript>, Vec<ScriptError>> {
    let unreadable = |e: std::io::Error| {
        let (path, what) = (folder.into(), format!("cannot be read: {e}"));
        vec![ScriptError { path, line: 0, what, allowed: "a folder with *.pkt files".into() }]
    };
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let mut paths: Vec<_> = entries
        .filter_map(|e| e.ok().map(|e| e.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "pkt"))
        .collect();
    paths.sort();
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for path in paths {
        match parse_file(&path) {
            Ok(script) => good.push(script),
            Err(error) => bad.push(error),
        }
    }
    if bad.is_empty() { Ok(good) } else { Err(bad) }
}
