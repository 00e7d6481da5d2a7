//! What has to be done between the disk and the bucket: a segment put there, brought back, removed.
//! Errands wait for the network and touch neither index nor log; the writer gives them out, one at a
//! time, and hears how they ended.

use crate::disk::{DiskFile, read_exact};
use crate::far::Far;
use crate::scan::scan_all;
use crate::segment::file_name;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The object that says whose the bucket is.
const OWNER: &str = "owner";
/// Octets of what it says.
pub(crate) const ID_LEN: usize = 32;
/// Octets that are read and compared at once.
const PART: usize = 4 << 20;

/// Something to do for the writer.
#[derive(Debug)]
pub struct Errand {
    pub(crate) what: What,
    /// Whose the bucket must be.
    pub(crate) id: String,
    pub(crate) far: Arc<Far>,
    /// Ends it early.
    pub(crate) stop: Arc<AtomicBool>,
}

/// What an errand does to a segment.
#[derive(Debug, Clone)]
pub(crate) enum What {
    /// Puts it there, from its file.
    Put { segment: u32, len: u64, file: Arc<dyn DiskFile> },
    /// Brings it back, into a file.
    Bring { segment: u32, len: u64, crc: Option<u32>, file: Arc<dyn DiskFile> },
    /// Removes it there.
    Remove { segment: u32 },
}

impl What {
    pub(crate) fn segment(&self) -> u32 {
        match self {
            Self::Put { segment, .. } | Self::Bring { segment, .. } | Self::Remove { segment } => {
                *segment
            }
        }
    }
}

/// How an errand ended.
#[derive(Debug)]
pub struct Ended {
    pub(crate) what: What,
    /// The checksum of the segment, where it has one.
    pub(crate) done: io::Result<u32>,
}

impl Ended {
    /// Whether it was done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done.is_ok()
    }
}

/// Octets of a file, as far as they count.
struct Octets<'a> {
    file: &'a dyn DiskFile,
    at: u64,
    end: u64,
    crc: u32,
    stop: &'a AtomicBool,
}

impl Read for Octets<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        ends(self.stop)?;
        let len = usize::try_from(self.end - self.at).unwrap_or(usize::MAX).min(out.len());
        let out = &mut out[..len];
        read_exact(self.file, self.at, out)?;
        self.crc = crc32c::crc32c_append(self.crc, out);
        self.at += len as u64;
        Ok(len)
    }
}

fn ends(stop: &AtomicBool) -> io::Result<()> {
    if stop.load(Ordering::Relaxed) {
        return Err(io::Error::other("the store is being closed"));
    }
    Ok(())
}

fn wrong(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Whose the bucket is; none when it is nobody's, or what says so is not whole.
pub(crate) fn owner_of(far: &Far) -> io::Result<Option<String>> {
    match far.bucket.read(OWNER, 0, ID_LEN * 2) {
        Ok(id) => Ok(String::from_utf8(id).ok().filter(|id| id.len() == ID_LEN)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The bucket is that of the store `id` from now on.
pub(crate) fn claim(far: &Far, id: &str) -> io::Result<()> {
    far.bucket.put(OWNER, &mut id.as_bytes(), id.len() as u64)
}

impl Errand {
    /// Does it. Waits for the network.
    #[must_use]
    pub fn run(self) -> Ended {
        let done = self.check_owner().and_then(|()| match &self.what {
            What::Put { segment, len, file } => self.put(*segment, *len, &**file),
            What::Bring { segment, len, crc, file } => self.bring(*segment, *len, *crc, file),
            What::Remove { segment } => self.far.bucket.remove(&file_name(*segment)).map(|()| 0),
        });
        Ended { what: self.what, done }
    }

    fn check_owner(&self) -> io::Result<()> {
        match owner_of(&self.far)? {
            Some(id) if id == self.id => Ok(()),
            None => claim(&self.far, &self.id),
            Some(_) => {
                Err(wrong("the bucket belongs to another store: nothing is put there".into()))
            }
        }
    }

    /// Puts a segment there, unless it is, and compares what the bucket then has, octet for octet.
    fn put(&self, segment: u32, len: u64, file: &dyn DiskFile) -> io::Result<u32> {
        let name = file_name(segment);
        let mut from = Octets { file, at: 0, end: len, crc: 0, stop: &self.stop };
        let is_there = self.far.bucket.len(&name)? == Some(len);
        if is_there {
            let mut part = vec![0; PART];
            while from.read(&mut part)? > 0 {}
            if self.crc_there(&name, len, &mut |_, _| Ok(()))? == from.crc {
                return Ok(from.crc);
            }
            from = Octets { file, at: 0, end: len, crc: 0, stop: &self.stop };
        }
        self.far.bucket.put(&name, &mut from, len)?;
        if from.at != len {
            return Err(wrong(format!("the bucket took {} octets of {name}", from.at)));
        }
        let crc = from.crc;
        match self.far.bucket.len(&name)? {
            Some(there) if there == len => {}
            there => {
                let there = there.map_or("nothing".to_owned(), |n| format!("{n} octets"));
                let why =
                    format!("the bucket has {there} of {name}, of which {len} were put there");
                self.far.lied(why.clone());
                return Err(wrong(why));
            }
        }
        self.compare(&name, self.crc_there(&name, len, &mut |_, _| Ok(()))? == crc)?;
        Ok(crc)
    }

    fn compare(&self, name: &str, is_right: bool) -> io::Result<()> {
        if is_right {
            return Ok(());
        }
        let why = format!("the bucket gives other octets of {name} than were put there");
        self.far.lied(why.clone());
        Err(wrong(why))
    }

    fn bring(
        &self,
        segment: u32,
        len: u64,
        crc: Option<u32>,
        file: &Arc<dyn DiskFile>,
    ) -> io::Result<u32> {
        let name = file_name(segment);
        let theirs = self.crc_there(&name, len, &mut |at, part| file.write_at(at, part))?;
        let is_right = match crc {
            Some(crc) => crc == theirs,
            // It was found there: its records say whether they are whole.
            None => scan_all(Arc::clone(file), segment, len)?.1 == 0,
        };
        self.compare(&name, is_right)?;
        file.sync()?;
        Ok(theirs)
    }

    /// The checksum of an object; each part of it is given to `take`.
    fn crc_there(
        &self,
        name: &str,
        len: u64,
        take: &mut dyn FnMut(u64, &[u8]) -> io::Result<()>,
    ) -> io::Result<u32> {
        let (mut at, mut crc) = (0, 0);
        while at < len {
            ends(&self.stop)?;
            let want = usize::try_from(len - at).unwrap_or(usize::MAX).min(PART);
            let part = self.far.bucket.read(name, at, want)?;
            if part.len() != want {
                let why =
                    format!("the bucket gave {} octets of {name} in place of {want}", part.len());
                return Err(wrong(why));
            }
            take(at, &part)?;
            crc = crc32c::crc32c_append(crc, &part);
            at += part.len() as u64;
        }
        Ok(crc)
    }
}
