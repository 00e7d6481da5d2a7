//! Output files of commands: a file appears under its name only when it is complete.

use anyhow::Context as _;
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

const BUFFER: usize = 256 << 10;

/// Where content goes.
pub(crate) enum Target {
    Stdout(io::Stdout),
    /// Something that exists and is no regular file, such as a pipe or /dev/null.
    Special(BufWriter<File>),
    File(Whole),
}

/// A regular file on its way. What is there under its name stays until it is whole; then its mode,
/// and as root its owner, pass on.
pub(crate) struct Whole {
    file: BufWriter<File>,
    /// The name of the part, empty for a file without one.
    part: PathBuf,
    path: PathBuf,
}

impl Target {
    /// Opens `path`, or standard output without one.
    pub(crate) fn open(path: Option<&Path>) -> anyhow::Result<Self> {
        let Some(path) = path else { return Ok(Self::Stdout(io::stdout())) };
        let cannot = || format!("cannot write {}", path.display());
        if fs::metadata(path).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            let file = File::options().write(true).open(path).with_context(cannot)?;
            return Ok(Self::Special(BufWriter::with_capacity(BUFFER, file)));
        }
        Whole::open(path).map(Self::File).with_context(cannot)
    }

    pub(crate) fn sink(&mut self) -> &mut dyn Write {
        match self {
            Self::Stdout(out) => out,
            Self::Special(file) => file,
            Self::File(whole) => &mut whole.file,
        }
    }

    /// Gives a file its name; everything was written.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Stdout(mut out) => out.flush().context("cannot write to standard output"),
            Self::Special(mut file) => file.flush().context("cannot write"),
            Self::File(whole) => {
                let path = whole.path.clone();
                whole.finish().with_context(|| format!("cannot write {}", path.display()))
            }
        }
    }
}

/// Writes `octets` as the whole file `path`.
pub(crate) fn write(path: &Path, octets: &[u8]) -> anyhow::Result<()> {
    let mut target = Target::open(Some(path))?;
    let written = target.sink().write_all(octets);
    written.with_context(|| format!("cannot write {}", path.display()))?;
    target.finish()
}

impl Whole {
    fn open(path: &Path) -> io::Result<Self> {
        // What a symbolic link leads to is replaced, not the link.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let there = fs::metadata(&path).ok();
        if there.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let Some(name) = path.file_name() else { return Err(io::ErrorKind::InvalidInput.into()) };
        let name = name.to_string_lossy();
        let part = path.with_file_name(format!(".{name}.part-{}", std::process::id()));
        // Never wider than what it replaces, also before it is whole.
        let mode = there.as_ref().map_or(0o666, |m| m.mode() & 0o777);
        let (file, part) = match nameless(&path, mode) {
            Some(file) => (file, PathBuf::new()),
            None => (named(&part, mode)?, part),
        };
        let whole = Self { file: BufWriter::with_capacity(BUFFER, file), part, path };
        if let Some(there) = there {
            let file = whole.file.get_ref();
            if rustix::process::geteuid().is_root() {
                fchown(file, Some(there.uid()), Some(there.gid()))?;
            }
            file.set_permissions(Permissions::from_mode(there.mode() & 0o7777))?;
        }
        Ok(whole)
    }

    fn finish(mut self) -> io::Result<()> {
        self.file.flush()?;
        if self.part.as_os_str().is_empty() {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy();
            let part = self.path.with_file_name(format!(".{name}.part-{}", std::process::id()));
            let _ = fs::remove_file(&part);
            let open = format!("/proc/self/fd/{}", self.file.get_ref().as_raw_fd());
            rustix::fs::linkat(CWD, open, CWD, &part, AtFlags::SYMLINK_FOLLOW)?;
            self.part = part;
        }
        fs::rename(&self.part, &self.path)?;
        self.part.clear();
        Ok(())
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if !self.part.as_os_str().is_empty() {
            // A half file is of no use to anybody.
            let _ = fs::remove_file(&self.part);
        }
    }
}

/// A file beside `path` that has no name yet: nothing is left of it whatever ends the program.
/// `None` where the file system has no such files.
fn nameless(path: &Path, mode: u32) -> Option<File> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(folder, flags, Mode::from_raw_mode(mode)).ok()?;
    // Giving it a name goes through /proc.
    Path::new("/proc/self/fd").exists().then(|| file.into())
}

fn named(part: &Path, mode: u32) -> io::Result<File> {
    File::options().write(true).create(true).truncate(true).mode(mode).open(part)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_file_appears_only_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("f");
        let files = || fs::read_dir(directory.path()).unwrap().count();
        let mut target = Target::open(Some(&path)).unwrap();
        target.sink().write_all(b"half").unwrap();
        drop(target);
        assert_eq!(files(), 0);
        write(&path, b"whole").unwrap();
        assert_eq!((files(), fs::read(&path).unwrap()), (1, b"whole".to_vec()));
    }

    #[test]
    fn the_mode_of_what_is_replaced_stays_and_links_are_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (path, link) = (directory.path().join("f"), directory.path().join("l"));
        fs::write(&path, "old").unwrap();
        for mode in [0o600, 0o640, 0o755] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            write(&path, b"new").unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
        }
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write(&link, b"newer").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"newer");
    }

    #[test]
    fn where_files_have_names_at_once_a_part_is_removed_too() {
        let directory = tempfile::tempdir().unwrap();
        let part = directory.path().join(".f.part");
        let file = BufWriter::new(named(&part, 0o600).unwrap());
        drop(Whole { file, part, path: directory.path().join("f") });
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
