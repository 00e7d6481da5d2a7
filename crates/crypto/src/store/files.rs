//! Files of the key store: private by mode, replaced whole, changed under a lock.

use crate::Error;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Longest file that is read, in octets; a key or certificate needs some kilobytes.
const FILE_LEN_MAX: u64 = 256 * 1024;

/// A failure at `path`: what was tried, and what the system said.
pub(super) fn failed(path: &Path, what: &str, error: &std::io::Error) -> Error {
    Error::Store { path: path.to_owned(), what: format!("cannot {what}: {error}") }
}

/// The lock of a store, held until dropped. Other processes wait.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

/// Takes the lock of the store at `dir`.
pub(super) fn lock(dir: &Path) -> Result<Lock, Error> {
    let path = dir.join("lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(|e| failed(&path, "open the lock", &e))?;
    file.lock().map_err(|e| failed(&path, "lock", &e))?;
    Ok(Lock { _file: file })
}

/// Makes `dir` and its parents, readable by the owner only.
pub(super) fn make_dir(dir: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|e| failed(dir, "make the directory", &e))
}

/// Replaces the file at `path` by one that holds `bytes`: readers see the old or the new one.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let fresh = path.with_extension("new");
    // Left by a writer that died; the lock says that no other one is at work.
    match fs::remove_file(&fresh) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(failed(&fresh, "remove", &e)),
        _ => {}
    }
    let written = OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(&fresh)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    written.map_err(|e| failed(&fresh, "write", &e))?;
    fs::rename(&fresh, path).map_err(|e| failed(path, "put in place", &e))?;
    // The rename is on disk only when the directory is.
    let parent = path.parent().unwrap_or(Path::new("."));
    File::open(parent).and_then(|d| d.sync_all()).map_err(|e| failed(parent, "sync", &e))
}

/// The text of the file at `path`; `None` when there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<String>, Error> {
    read_up_to(path, FILE_LEN_MAX)
}

/// The text of the file at `path`, which has at most `len_max` octets; `None` when there is no such
/// file.
pub(super) fn read_up_to(path: &Path, len_max: u64) -> Result<Option<String>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(failed(path, "open", &e)),
    };
    let mut text = String::new();
    let len =
        file.take(len_max + 1).read_to_string(&mut text).map_err(|e| failed(path, "read", &e))?;
    if len as u64 > len_max {
        let what = format!("longer than {len_max} octets");
        return Err(Error::Store { path: path.to_owned(), what });
    }
    Ok(Some(text))
}

/// The files of `dir` that end in `.extension`, sorted by name; none when there is no such
/// directory.
pub(super) fn list(dir: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(dir, "list", &e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| failed(dir, "list", &e))?.path();
        if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Removes the file at `path`; whether there was one.
pub(super) fn remove(path: &Path) -> Result<bool, Error> {
    match fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(failed(path, "remove", &e)),
    }
}
