//! The log where a part of it is in a bucket.

use super::{At, Log};
use crate::disk::DiskFile;
use crate::far::{Far, FarSegment};
use crate::segment::file_name;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a segment that comes back is called until it is whole.
fn part_name(segment: u32) -> String {
    format!("{segment:08x}.part")
}

impl Log {
    /// A segment of `len` octets is in the bucket, and counts from there unless the disk has it whole.
    pub(crate) fn is_far(&mut self, segment: u32, len: u64, far: &Arc<Far>) {
        self.highest = self.highest.max(segment);
        if !self.files.is_near(segment) || self.len_of(segment) < len {
            let there = Arc::new(FarSegment::new(segment, len, far));
            self.files.insert(segment, At::Far(there));
        }
        self.lens.insert(segment, len);
    }

    /// A segment is to be removed from the bucket.
    pub(crate) fn condemn(&mut self, segment: u32) {
        self.highest = self.highest.max(segment);
        self.condemned.insert(segment);
    }

    /// It was removed there.
    pub(crate) fn is_nowhere(&mut self, segment: u32) {
        self.condemned.remove(&segment);
    }

    pub(crate) fn is_near(&self, segment: u32) -> bool {
        self.files.is_near(segment)
    }

    /// Octets of the log on the disk.
    pub(crate) fn near_octets(&self) -> u64 {
        self.lens.iter().filter(|(segment, _)| self.is_near(**segment)).map(|(_, len)| len).sum()
    }

    /// Segments on the disk, what was used longest ago first.
    pub(crate) fn near_by_use(&self) -> Vec<u32> {
        let mut near: Vec<u32> =
            self.lens.keys().copied().filter(|segment| self.is_near(*segment)).collect();
        near.sort_by_key(|segment| (self.files.used(*segment), *segment));
        near
    }

    /// Segments in the bucket only that are read much.
    pub(crate) fn hot(&self) -> Vec<u32> {
        self.files.hot()
    }

    /// What is read from now on is used later than what was.
    pub(crate) fn turn(&self) {
        self.files.turn.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a segment off the disk that the bucket has.
    pub(crate) fn leave(&mut self, segment: u32, far: &Arc<Far>) -> io::Result<()> {
        let there = Arc::new(FarSegment::new(segment, self.len_of(segment), far));
        self.files.insert(segment, At::Far(there));
        self.disk.remove(&file_name(segment))
    }

    /// A new file for a segment that comes back.
    pub(crate) fn part(&self, segment: u32) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(&part_name(segment), true)?;
        file.set_len(0)?;
        Ok(file)
    }

    /// The segment did not come back.
    pub(crate) fn stayed_away(&mut self, segment: u32, far: &Arc<Far>) -> io::Result<()> {
        // It begins to count anew how much is read of it.
        self.is_far(segment, self.len_of(segment), far);
        self.disk.remove(&part_name(segment))
    }

    /// The segment came back, whole.
    pub(crate) fn came(&mut self, segment: u32) -> io::Result<()> {
        self.disk.rename(&part_name(segment), &file_name(segment))?;
        self.disk.sync()?;
        let file = self.disk.open(&file_name(segment), false)?;
        self.files.insert(segment, At::Near(file));
        Ok(())
    }

    /// Removes what was on its way back when the process ended.
    pub(crate) fn forget_parts(&self) -> io::Result<()> {
        for name in self.disk.list()? {
            if name.ends_with(".part") {
                self.disk.remove(&name)?;
            }
        }
        Ok(())
    }
}
