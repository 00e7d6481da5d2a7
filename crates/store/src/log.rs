//! The segments: which there are, and the one that is written.

mod far;

use crate::disk::{Disk, DiskFile};
use crate::far::FarSegment;
use crate::parts::Parts;
use crate::record::Place;
use crate::segment::{file_name, number_of};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Where a segment is.
#[derive(Debug, Clone)]
pub(crate) enum At {
    /// On the disk.
    Near(Arc<dyn DiskFile>),
    /// In the bucket only.
    Far(Arc<FarSegment>),
}

#[derive(Debug)]
struct Segment {
    at: At,
    /// The turn in which it was read last.
    used: AtomicU64,
}

/// The segments, for readers as well.
#[derive(Debug, Default)]
pub(crate) struct Files {
    segments: RwLock<HashMap<u32, Segment>>,
    turn: AtomicU64,
}

impl Files {
    /// The file of a segment that is on the disk.
    pub(crate) fn get(&self, segment: u32) -> Option<Arc<dyn DiskFile>> {
        match self.find(segment) {
            Some(At::Near(file)) => Some(file),
            _ => None,
        }
    }

    /// Where a segment is, for one who reads it.
    pub(crate) fn find(&self, segment: u32) -> Option<At> {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let found = segments.get(&segment)?;
        found.used.store(self.turn.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(found.at.clone())
    }

    /// Those in the bucket only of which so much was read that they should come back.
    fn hot(&self) -> Vec<u32> {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        let is_hot = |one: &Segment| matches!(&one.at, At::Far(far) if far.is_hot());
        segments.iter().filter(|(_, one)| is_hot(one)).map(|(segment, _)| *segment).collect()
    }

    fn is_near(&self, segment: u32) -> bool {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        segments.get(&segment).is_some_and(|one| matches!(one.at, At::Near(_)))
    }

    /// The turn in which a segment was read last.
    fn used(&self, segment: u32) -> u64 {
        let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
        segments.get(&segment).map_or(0, |one| one.used.load(Ordering::Relaxed))
    }

    fn insert(&self, segment: u32, at: At) {
        let one = Segment { at, used: AtomicU64::new(self.turn.load(Ordering::Relaxed)) };
        self.segments.write().unwrap_or_else(PoisonError::into_inner).insert(segment, one);
    }

    fn remove(&self, segment: u32) {
        self.segments.write().unwrap_or_else(PoisonError::into_inner).remove(&segment);
    }
}

/// The log, as its one writer has it.
#[derive(Debug)]
pub(crate) struct Log {
    disk: Arc<dyn Disk>,
    files: Arc<Files>,
    /// Length of each segment, wherever it is.
    lens: BTreeMap<u32, u64>,
    /// Segments that are still to be removed from the bucket, and nowhere else.
    condemned: BTreeSet<u32>,
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
                files.insert(segment, At::Near(file));
            }
        }
        let segment_octets = u64::from(segment_octets.clamp(4096, 1 << 31));
        let highest = lens.keys().next_back().copied().unwrap_or(0);
        let condemned = BTreeSet::new();
        Ok(Self { disk, files, lens, condemned, open: None, end: 0, highest, segment_octets })
    }

    pub(crate) fn segments(&self) -> Vec<u32> {
        self.lens.keys().copied().collect()
    }

    /// The oldest segment whose records anybody may find again.
    pub(crate) fn oldest(&self) -> Option<u32> {
        let here = self.lens.keys().next().copied();
        let condemned = self.condemned.first().copied();
        here.into_iter().chain(condemned).min()
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
            self.files.insert(next, At::Near(Arc::clone(&file)));
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

    /// Writes `parts` and waits until they are on the disk.
    pub(crate) fn write(&mut self, parts: &Parts<'_>) -> io::Result<()> {
        let Some((segment, file)) = &self.open else {
            return Err(io::Error::other("no segment is open"));
        };
        file.write_parts_at(self.end, &mut parts.slices())?;
        file.sync()?;
        self.end += parts.len() as u64;
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
        if self.files.is_near(segment) {
            self.disk.remove(&file_name(segment))?;
        }
        self.lens.remove(&segment);
        self.files.remove(segment);
        self.disk.sync()
    }
}
