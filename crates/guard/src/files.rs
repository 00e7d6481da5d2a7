//! Files of certificates, and whether they changed.

use onym_crypto::Certificate;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Longest file of a certificate that is read, in octets.
const CERTIFICATE_MAX: u64 = 64 << 10;
/// Most files of a folder that are looked at.
const FILES_MAX: usize = 1024;

/// What is known about files without reading them: whether they changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stamp(Vec<(PathBuf, Option<[i64; 4]>)>);

fn numbers(metadata: &Metadata) -> [i64; 4] {
    let whole = |n: u64| n.cast_signed();
    [whole(metadata.len()), whole(metadata.ino()), metadata.mtime(), metadata.mtime_nsec()]
}

impl Stamp {
    /// That of one file, or of a folder with its files.
    #[must_use]
    pub fn of(path: &Path) -> Self {
        let one = |path: &Path| (path.to_owned(), fs::metadata(path).ok().as_ref().map(numbers));
        let mut all = vec![one(path)];
        if path.is_dir() {
            let files = in_folder(path).unwrap_or_default();
            all.extend(files.iter().map(|file| one(file)));
        }
        Self(all)
    }
}

/// Reads a file of at most `max` octets.
pub(crate) fn octets(path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let mut octets = Vec::new();
    File::open(path)?.take(max + 1).read_to_end(&mut octets)?;
    if octets.len() as u64 > max {
        return Err(io::Error::other(format!("it is longer than {max} octets")));
    }
    Ok(octets)
}

/// Reads a text of at most `max` octets.
pub(crate) fn text(path: &Path, max: u64) -> io::Result<String> {
    String::from_utf8(octets(path, max)?).map_err(|_| io::Error::other("the file is no text"))
}

fn in_folder(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(path)?.take(FILES_MAX) {
        paths.push(entry?.path());
    }
    paths.sort();
    paths.retain(|path| path.is_file());
    Ok(paths)
}

/// The certificate of a file, or those of a folder, in which other files are passed over.
pub(crate) fn certificates(path: &Path) -> io::Result<Vec<Certificate>> {
    let one = |path: &Path| {
        let text = text(path, CERTIFICATE_MAX)?;
        Certificate::from_text(&text).map_err(io::Error::other)
    };
    if path.is_dir() {
        return Ok(in_folder(path)?.iter().filter_map(|file| one(file).ok()).collect());
    }
    one(path).map(|certificate| vec![certificate])
}
