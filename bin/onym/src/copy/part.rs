//! A file that is not whole yet: beside its place, under a name that says of which version it is.

use onym_crypto::digest::hex;
use onym_crypto::sha256;
use onym_repo::file::FileMetadata;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileTimes};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// How the name of a part ends.
pub(super) const END: &[u8] = b".onym-part";
/// A longer name of a file is not part of that of its part.
const NAME_MAX: usize = 180;
const BUFFER: usize = 256 << 10;

/// A file on its way.
pub(super) struct Part {
    file: BufWriter<File>,
    path: PathBuf,
    to: PathBuf,
    metadata: FileMetadata,
    octets: u64,
}

impl Part {
    /// Opens the part of the version that `metadata` describes, with what an interrupted copy left
    /// of it. Parts of other versions are removed.
    pub(super) fn open(to: &Path, metadata: &FileMetadata) -> io::Result<Self> {
        let folder = to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = to.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let (stem, own) = names(name, metadata);
        for entry in fs::read_dir(folder)? {
            let other = entry?.file_name();
            if other != own && is_part_of(&other, &stem) {
                fs::remove_file(folder.join(other))?;
            }
        }
        let path = folder.join(own);
        let file = open(&path, metadata)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| io::Error::other("another copy of it is under way"))?;
        let mut part = Self {
            file: BufWriter::with_capacity(BUFFER, file),
            path,
            to: to.to_owned(),
            metadata: metadata.clone(),
            octets: 0,
        };
        part.octets = part.whole_segments()?;
        part.file.get_ref().set_len(part.octets)?;
        part.file.seek(SeekFrom::Start(part.octets))?;
        Ok(part)
    }

    /// Octets of segments that are there as a whole.
    fn whole_segments(&self) -> io::Result<u64> {
        let len = self.file.get_ref().metadata()?.len();
        let whole = match (self.metadata.segment_size, self.metadata.size) {
            (_, Some(size)) if len == size => size,
            (Some(segment), Some(size)) if segment > 0 && len < size => len - len % segment,
            _ => 0,
        };
        Ok(whole)
    }

    /// Octets that are there.
    pub(super) fn octets(&self) -> u64 {
        self.octets
    }

    /// The segment to go on with; `None` when all are there.
    pub(super) fn next_segment(&self) -> Option<u64> {
        let is_whole = self.octets > 0 && self.metadata.size == Some(self.octets);
        let segment = self.metadata.segment_size.filter(|size| *size > 0).unwrap_or(u64::MAX);
        (!is_whole).then(|| self.octets / segment)
    }

    pub(super) fn sink(&mut self) -> &mut dyn Write {
        &mut self.file
    }

    /// Leaves what came for the next time.
    pub(super) fn keep(mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// Gives the file its name, and the time of its last change. How long it is.
    pub(super) fn finish(mut self) -> io::Result<u64> {
        self.file.flush()?;
        let file = self.file.get_ref();
        let octets = file.metadata()?.len();
        if let Some(size) = self.metadata.size
            && size != octets
        {
            fs::remove_file(&self.path)?;
            let why = format!("{octets} octets came, its producer announced {size}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        if self.metadata.mtime_ns > 0 {
            file.set_times(FileTimes::new().set_modified(modified(&self.metadata)))?;
        }
        fs::rename(&self.path, &self.to)?;
        Ok(octets)
    }
}

/// When the file changed, as its producer says.
pub(super) fn modified(metadata: &FileMetadata) -> std::time::SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_nanos(metadata.mtime_ns)).unwrap_or(UNIX_EPOCH)
}

/// How the names of the parts of the file `name` begin, and the name of this version's.
fn names(name: &OsStr, metadata: &FileMetadata) -> (Vec<u8>, OsString) {
    let name = name.as_bytes();
    let digest = hex(&sha256(&[name])[..16]);
    let name = if name.len() > NAME_MAX { digest.as_bytes() } else { name };
    let stem = [b".", name, b"."].concat();
    let version = hex(&sha256(&[metadata.name.as_ref().value()])[..8]);
    let own = [&stem, version.as_bytes(), END].concat();
    (stem, OsString::from_vec(own))
}

fn is_part_of(other: &OsStr, stem: &[u8]) -> bool {
    let version = other.as_bytes().strip_prefix(stem).and_then(|rest| rest.strip_suffix(END));
    version.is_some_and(|v| v.len() == 16 && v.iter().all(u8::is_ascii_hexdigit))
}

/// Opens the part at `path`; what is there and is not this user's own is not gone on with.
fn open(path: &Path, metadata: &FileMetadata) -> io::Result<File> {
    // Whether it may be executed is all that is taken over of the mode.
    let mode = if metadata.mode & 0o100 == 0 { 0o666 } else { 0o777 };
    let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let there = File::options().write(true).custom_flags(no_link).open(path);
    if let Ok(file) = there {
        let found = file.metadata()?;
        let own = found.uid() == rustix::process::geteuid().as_raw();
        if found.is_file() && own && found.nlink() == 1 {
            return Ok(file);
        }
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    File::options().write(true).create_new(true).mode(mode).open(path)
}
