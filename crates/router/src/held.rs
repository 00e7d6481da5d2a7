//! Neighbours held down: a file with a name a line, so that it outlives the router and whoever may
//! write there decides.

use crate::state::write_whole;
use onym_wire::Name;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// The name of the file in the folder of a router.
pub const FILE: &str = "held";
/// Octets of the file, at most.
const LEN_MAX: u64 = 64 * 1024;

/// The neighbours that the file `path` holds down; none when it is not there.
///
/// # Errors
/// When it cannot be read, has a line that is no name, or more than 64 KiB.
pub fn read(path: &Path) -> io::Result<BTreeSet<Name>> {
    let mut text = String::new();
    match File::open(path) {
        Ok(file) => file.take(LEN_MAX + 1).read_to_string(&mut text)?,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        Err(e) => return Err(e),
    };
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    if text.len() as u64 > LEN_MAX {
        return Err(bad("the list of neighbours held down is too long"));
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| line.parse().map_err(|_| bad(&format!("{line:?} is no name")))).collect()
}

/// Writes the neighbours that are held down.
///
/// # Errors
/// Those of the file system.
pub fn write(path: &Path, held: &BTreeSet<Name>) -> io::Result<()> {
    let text: String = held.iter().map(|name| format!("{name}\n")).collect();
    write_whole(path, text.as_bytes(), 0o644)
}

/// The file of a router that runs.
#[derive(Debug)]
pub(crate) struct Watched {
    path: PathBuf,
    /// What tells one writing of it from another.
    seen: Option<(u64, i64, i64, u64)>,
}

impl Watched {
    /// The file, and who is held down now.
    pub(crate) fn open(path: PathBuf) -> io::Result<(Self, BTreeSet<Name>)> {
        let seen = mark(&path);
        let held = read(&path)?;
        Ok((Self { path, seen }, held))
    }

    /// Who is held down, when the file was written since the last look. One that cannot be read changes
    /// nothing.
    pub(crate) fn look(&mut self) -> Option<BTreeSet<Name>> {
        let mark = mark(&self.path);
        if mark == self.seen {
            return None;
        }
        self.seen = mark;
        match read(&self.path) {
            Ok(held) => Some(held),
            Err(error) => {
                let path = self.path.display();
                tracing::error!(target: "onym::route", "{path}: {error}; nothing changes");
                None
            }
        }
    }
}

fn mark(path: &Path) -> Option<(u64, i64, i64, u64)> {
    let about = fs::metadata(path).ok()?;
    Some((about.ino(), about.mtime(), about.mtime_nsec(), about.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_seen_once_and_nonsense_changes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join(FILE);
        let (mut watched, held) = Watched::open(path.clone()).unwrap();
        assert!(held.is_empty() && watched.look().is_none());
        let held = BTreeSet::from(["/net/b".parse().unwrap(), "/net/c".parse().unwrap()]);
        write(&path, &held).unwrap();
        assert_eq!(watched.look(), Some(held));
        assert_eq!(watched.look(), None);
        fs::write(&path, "not a name at all/%\n").unwrap();
        assert_eq!(watched.look(), None);
        fs::write(&path, "/net/a\n".repeat(20_000)).unwrap();
        assert!(read(&path).is_err(), "too long");
        fs::remove_file(&path).unwrap();
        assert_eq!(watched.look(), Some(BTreeSet::new()));
    }
}
