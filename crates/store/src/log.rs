//! The segments: which there are, and the one that is written.

use crate::disk::{Disk, DiskFile};
use crate::record::Place;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

/// The files of the segments, for readers as well.
#[derive(Debug, Default)]
pub(crate) struct Files(RwLock<HashMap<u32, Arc<dyn DiskFile>>>);

impl Files {
    pub(crate) fn get(&self, segment: u32) -> Option<Arc<dyn DiskFile>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(&segment).cloned()
    }

    fn insert(&self, segment: u32, file: Arc<dyn DiskFile>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(segment, file);
    }

    fn remove(&self, segment: u32) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(&segment);
    }
}

fn file_name(segment: u32) -> String {
    format!("{segment:08x}.log")
}

fn number_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".log")?;
    if digits.len() == 8 { u32::from_str_radix(digits, 16).ok() } else { None }
}

/// The log, as its one writer has it.
#[derive(Debug)]
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    files: Arc<Files>,
    /// Length of each segment.
    lens: BTreeMap<u32, u64>,
    /// The segment that is written.
    open: Option<(u32, Arc<dyn DiskFile>)>,
    end: u64,
    /// Largest number that a segment ever had.
    highest: u32,
    segment_octets: u64,
}

impl Log {
    /// Finds the segments; none is open for writing yet.
    pub(crate) fn find(
        disk: Arc<dyn Disk>,
        files: Arc<Files>,
        segment_octets: u32,
    ) -> io::Result<Self> {
        let mut lens = BTreeMap::new();
        for name in disk.list()? {
            if let Some(segment) = number_of(&name) {
                let file = disk.open(&name, false)?;
                lens.insert(segment, file.len()?);
                files.insert(segment, file);
            }
        }
        let segment_octets = u64::from(segment_octets.clamp(4096, 1 << 31));
        let highest = lens.keys().next_back().copied().unwrap_or(0);
        Ok(Self { disk, files, lens, open: None, end: 0, highest, segment_octets })
    }

    pub(crate) fn segments(&self) -> Vec<u32> {
        self.lens.keys().copied().collect()
    }

    pub(crate) fn oldest(&self) -> Option<u32> {
        self.lens.keys().next().copied()
    }

    pub(crate) fn len_of(&self, segment: u32) -> u64 {
        self.lens.get(&segment).copied().unwrap_or(0)
    }

    pub(crate) fn octets(&self) -> u64 {
        self.lens.values().sum()
    }

    pub(crate) fn file(&self, segment: u32) -> Option<Arc<dyn DiskFile>> {
        self.files.get(segment)
    }

    /// The segment that is written, if one is.
    pub(crate) fn open_segment(&self) -> Option<u32> {
        self.open.as_ref().map(|(segment, _)| *segment)
    }

    /// Goes on behind `end` in the last segment, from which the rest is cut off.
    pub(crate) fn go_on(&mut self, segment: u32, end: u64) -> io::Result<()> {
        let Some(file) = self.files.get(segment) else { return Ok(()) };
        if self.len_of(segment) > end {
            file.set_len(end)?;
        }
        // What was read may be in the memory of the operating system only.
        file.sync()?;
        self.lens.insert(segment, end);
        if end < self.segment_octets {
            self.open = Some((segment, file));
            self.end = end;
        }
        Ok(())
    }

    /// Where the next octets go; there is room for `octets` of them.
    pub(crate) fn ready(&mut self, octets: usize) -> io::Result<Place> {
        if self.open.is_some() && self.end + octets as u64 > self.segment_octets && self.end > 0 {
            self.open = None;
        }
        if self.open.is_none() {
            let next = self.highest + 1;
            let file = self.disk.open(&file_name(next), true)?;
            self.highest = next;
            self.disk.sync()?;
            self.files.insert(next, Arc::clone(&file));
            self.lens.insert(next, 0);
            self.open = Some((next, file));
            self.end = 0;
        }
        Ok(self.place())
    }

    /// Where the next octets go.
    pub(crate) fn place(&self) -> Place {
        let (segment, end) = match &self.open {
            Some((segment, _)) => (*segment, self.end),
            None => (self.highest, self.len_of(self.highest)),
        };
        Place { segment, offset: u32::try_from(end).unwrap_or(u32::MAX) }
    }

    /// No new segment gets a number up to `segment`.
    pub(crate) fn begin_behind(&mut self, segment: u32) {
        self.highest = self.highest.max(segment);
    }

    /// Writes `octets` and waits until they are on the disk.
    pub(crate) fn write(&mut self, octets: &[u8]) -> io::Result<()> {
        let Some((segment, file)) = &self.open else {
            return Err(io::Error::other("no segment is open"));
        };
        file.write_at(self.end, octets)?;
        file.sync()?;
        self.end += octets.len() as u64;
        self.lens.insert(*segment, self.end);
        Ok(())
    }

    /// A write failed: nothing is written behind it.
    pub(crate) fn give_up_segment(&mut self) {
        if let Some((_, file)) = self.open.take() {
            // What can be cut off cannot come back; what cannot is older than all that follows.
            let _ = file.set_len(self.end);
        }
    }

    /// Removes a segment that nothing alive is in.
    pub(crate) fn remove(&mut self, segment: u32) -> io::Result<()> {
        self.disk.remove(&file_name(segment))?;
        self.lens.remove(&segment);
        self.files.remove(segment);
        self.disk.sync()
    }
}
