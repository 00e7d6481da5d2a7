//! What the store asks of a disk: a folder of files. Production has [`Folder`]; tests have one that fails.

use rustix::fs::{FlockOperation, flock, statvfs};
use rustix::io::{Errno, pwritev};
use std::fmt::Debug;
use std::fs::File;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Parts that the operating system takes at once (`IOV_MAX` of Linux).
const PARTS_MAX: usize = 1024;

/// A folder of files, without folders in it.
pub trait Disk: Debug + Send + Sync {
    /// The names of the files.
    ///
    /// # Errors
    /// Those of the disk.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Opens a file to read, and to write unless the disk is read-only; `create` makes it.
    ///
    /// # Errors
    /// Those of the disk.
    fn open(&self, name: &str, create: bool) -> io::Result<Arc<dyn DiskFile>>;

    /// Removes a file. Who has it open reads on.
    ///
    /// # Errors
    /// Those of the disk.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Gives a file another name, over what has that one.
    ///
    /// # Errors
    /// Those of the disk.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Makes creations, removals and new names durable.
    ///
    /// # Errors
    /// Those of the disk.
    fn sync(&self) -> io::Result<()>;

    /// Octets that can still be written.
    ///
    /// # Errors
    /// Those of the disk.
    fn free(&self) -> io::Result<u64>;

    /// Keeps other processes out until dropped; `false` when one is in.
    ///
    /// # Errors
    /// Those of the disk.
    fn lock(&self) -> io::Result<bool>;

    /// Whether nothing can be written.
    fn is_read_only(&self) -> bool;
}

/// An open file.
pub trait DiskFile: Debug + Send + Sync {
    /// Its length.
    ///
    /// # Errors
    /// Those of the disk.
    fn len(&self) -> io::Result<u64>;

    /// Whether it has no octets.
    ///
    /// # Errors
    /// Those of the disk.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Reads as much as there is from `at` on, up to the length of `out`.
    ///
    /// # Errors
    /// Those of the disk.
    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize>;

    /// Writes all of `octets`. After an error any part of them may be written.
    ///
    /// # Errors
    /// Those of the disk.
    fn write_at(&self, at: u64, octets: &[u8]) -> io::Result<()>;

    /// Writes all of `parts`, one behind the other, as [`write_at`](Self::write_at) does.
    ///
    /// # Errors
    /// Those of the disk.
    fn write_parts_at(&self, at: u64, parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        let octets: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        self.write_at(at, &octets)
    }

    /// Cuts the file, or makes it longer with zeros.
    ///
    /// # Errors
    /// Those of the disk.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Makes everything that was written durable.
    ///
    /// # Errors
    /// Those of the disk. What was written before is then lost or not, and no later call tells.
    fn sync(&self) -> io::Result<()>;
}

/// Reads exactly `out`.
pub(crate) fn read_exact(file: &dyn DiskFile, mut at: u64, mut out: &mut [u8]) -> io::Result<()> {
    while !out.is_empty() {
        let n = file.read_at(at, out)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        at += n as u64;
        out = out.get_mut(n..).unwrap_or_default();
    }
    Ok(())
}

/// A folder of the operating system.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    read_only: bool,
    /// Holds the lock of the operating system while it is open.
    lock: Option<File>,
}

impl Folder {
    /// Opens `path`, and makes it when it is not there.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn open(path: &Path) -> io::Result<Self> {
        if let Err(error) = std::fs::create_dir_all(path)
            && !path.is_dir()
        {
            return Err(error);
        }
        let lock = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path.join("lock"));
        let (lock, read_only) = match lock {
            Ok(file) => (Some(file), false),
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
                ) =>
            {
                (File::open(path.join("lock")).ok(), true)
            }
            Err(error) => return Err(error),
        };
        Ok(Self { path: path.to_path_buf(), read_only, lock })
    }
}

impl Disk for Folder {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.path)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn open(&self, name: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let write = !self.read_only;
        let file = File::options()
            .read(true)
            .write(write)
            .create(create && write)
            .truncate(false)
            .open(self.path.join(name))?;
        Ok(Arc::new(OsFile(file)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn free(&self) -> io::Result<u64> {
        let stat = statvfs(&self.path)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn lock(&self) -> io::Result<bool> {
        let Some(file) = &self.lock else { return Ok(true) };
        let how = if self.read_only {
            FlockOperation::NonBlockingLockShared
        } else {
            FlockOperation::NonBlockingLockExclusive
        };
        match flock(file, how) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    fn is_read_only(&self) -> bool {
        self.read_only
    }
}

#[derive(Debug)]
struct OsFile(File);

impl DiskFile for OsFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read_at(out, at) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    fn write_at(&self, at: u64, octets: &[u8]) -> io::Result<()> {
        self.0.write_all_at(octets, at)
    }

    fn write_parts_at(&self, mut at: u64, mut parts: &mut [IoSlice<'_>]) -> io::Result<()> {
        // Empty ones at the front go.
        IoSlice::advance_slices(&mut parts, 0);
        while !parts.is_empty() {
            let some = parts.get(..parts.len().min(PARTS_MAX)).unwrap_or_default();
            match pwritev(&self.0, some, at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => {
                    at += n as u64;
                    IoSlice::advance_slices(&mut parts, n);
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}
