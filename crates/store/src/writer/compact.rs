//! In the background: expiry, compaction, scrubbing.

use super::recover::entry_of;
use super::{Group, Writer};
use crate::Error;
use crate::disk::{DiskFile, read_exact};
use crate::entry::Entry;
use crate::record::{HEADER, Kind, Place, Record, note_parts, padded};
use crate::scan::{Scan, scan_all};
use crate::tally::InSegment;
use onym_wire::data::Data;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A segment that is being copied.
#[derive(Debug)]
pub(super) struct Compaction {
    pub(super) segment: u32,
    scan: Scan,
}

/// What a pass over a segment found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scrubbed {
    /// Records that are whole and undamaged.
    pub records: u64,
    /// Octets that belong to no valid record.
    pub damaged_octets: u64,
    /// Packets that were taken out of the index.
    pub lost: u64,
    /// Octets that the bucket gave and that belong to no valid record.
    pub wrong_octets: u64,
}

/// What is due at once, at most.
const DUE_MAX: usize = 1024;
/// Octets that are copied at once.
const COPY: usize = 1 << 20;
/// Entries that are looked at in one transaction.
const LOOKS: usize = 16_384;

impl Writer {
    /// Takes out packets whose time is over, and freshness that has ended; whether there may be more.
    ///
    /// # Errors
    /// [`Error::Index`] when the disk fails.
    pub fn expire(&mut self, now_ms: u64) -> Result<bool, Error> {
        if self.read_only {
            return Ok(false);
        }
        let taken = self.group(0, false, |group| {
            let due = group.tables.take_due(now_ms, DUE_MAX)?;
            for one in &due {
                group.moved |= group.tables.carry_out(group.tally, one)?;
            }
            Ok(due.len())
        });
        Ok(taken.map_err(Error::Index)? == DUE_MAX)
    }

    /// The segment with the smallest share of living octets, if that is below `share`. One that is in
    /// the bucket only is called back, unless nothing in it is alive.
    fn victim(&mut self, share: f64) -> Option<u32> {
        let open = self.log.open_segment();
        let oldest = self.log.oldest();
        // Deletions are dropped with the oldest segment only.
        let alive = |segment: u32| {
            let deletions = Some(segment) != oldest;
            let of = |u: &InSegment| u.octets + if deletions { u.deletions } else { 0 };
            self.tally.segments.get(&segment).map_or(0, of)
        };
        let busy = |segment: u32| self.afar.as_ref().is_some_and(|side| side.is_busy(segment));
        let mut below: Vec<(f64, u32)> = self
            .log
            .segments()
            .into_iter()
            .filter(|segment| Some(*segment) != open && !busy(*segment))
            .map(|segment| {
                (alive(segment) as f64 / self.log.len_of(segment).max(1) as f64, segment)
            })
            .filter(|(living, _)| *living < share)
            .collect();
        below.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (living, segment) in below {
            if self.log.is_near(segment) || living == 0.0 {
                return Some(segment);
            }
            if let Some(side) = &mut self.afar {
                side.want(segment);
            }
        }
        None
    }

    /// A step of compaction: copies up to 1 MiB of a segment of which less than `share` is alive.
    /// Whether there may be more to do.
    ///
    /// # Errors
    /// [`Error::Disk`] and [`Error::Index`]; the segment stays.
    pub fn compact(&mut self, now_ms: u64, share: f64) -> Result<bool, Error> {
        if self.read_only {
            return Ok(false);
        }
        let mut compaction = match self.compaction.take() {
            Some(compaction) => compaction,
            None => {
                let Some(segment) = self.victim(share) else { return Ok(false) };
                let Some(file) = self.log.file(segment) else {
                    self.remove_segment(segment)?;
                    return Ok(true);
                };
                let len = self.log.len_of(segment);
                Compaction { segment, scan: Scan::new(file, segment, 0, len) }
            }
        };
        let is_oldest = self.log.oldest() == Some(compaction.segment);
        let scan = &mut compaction.scan;
        let mut read_failed = None;
        let ended = self.group(COPY + (2 << 20), false, |group| {
            while group.parts.len() < COPY {
                match scan.next() {
                    Ok(Some((place, record))) => group.copy(now_ms, place, &record, is_oldest)?,
                    Ok(None) => return Ok(true),
                    Err(error) => {
                        read_failed = Some(error);
                        return Ok(true);
                    }
                }
            }
            Ok(false)
        });
        if let Some(error) = read_failed {
            return Err(error.into());
        }
        if !ended.map_err(Error::Index)? {
            self.compaction = Some(compaction);
            return Ok(true);
        }
        self.remove_segment(compaction.segment)?;
        Ok(true)
    }

    /// Everything alive was copied: what is still said to be there is damaged.
    pub(super) fn remove_segment(&mut self, segment: u32) -> Result<(), Error> {
        if self.tally.segments.get(&segment).is_some_and(|u| u.packets > 0) {
            self.drop_unreadable(segment)?;
        }
        let behind = self.log.place().segment;
        let condemned = self.afar.as_ref().and_then(|side| side.condemned(segment, behind));
        // The copies, and that the segment is gone, are durable before the file is.
        let removed = self.group(0, true, |group| {
            group.tables.remove_segment(segment)?;
            if condemned.is_some() {
                group.tables.put_far(segment, condemned.as_ref())?;
            }
            group.tally.segments.remove(&segment);
            group.moved = true;
            Ok(())
        });
        removed.map_err(Error::Index)?;
        if let (Some(side), Some(condemned)) = (&mut self.afar, condemned) {
            side.is(segment, condemned);
            self.log.condemn(segment);
        }
        self.log.remove(segment)?;
        Ok(())
    }

    /// Takes packets of `segment` out of the index that cannot be read; how many.
    fn drop_unreadable(&mut self, segment: u32) -> Result<u64, Error> {
        let Some(file) = self.log.file(segment) else { return Ok(0) };
        let lost = self.drop_those(segment, |entry| {
            let mut octets = vec![0; HEADER + entry.len as usize];
            !(read_exact(&*file, u64::from(entry.place.offset), &mut octets).is_ok()
                && Record::read(&octets, entry.place).is_some())
        })?;
        self.shared.damaged.fetch_add(lost, Ordering::Relaxed);
        Ok(lost)
    }

    /// Takes those packets of `segment` out of the index; how many.
    pub(super) fn drop_those(
        &mut self,
        segment: u32,
        goes: impl Fn(&Entry) -> bool,
    ) -> Result<u64, Error> {
        let mut after = Vec::new();
        let mut lost = 0;
        loop {
            let step = self.group(0, false, |group| {
                let (found, last) = group.tables.names_in(segment, &after, LOOKS)?;
                let mut dropped = Vec::new();
                for (name, entry) in found {
                    if goes(&entry) {
                        group.tables.remove(group.tally, &name)?;
                        group.moved = true;
                        dropped.push(name);
                    }
                }
                Ok((dropped, last))
            });
            let (dropped, last) = step.map_err(Error::Index)?;
            lost += dropped.len() as u64;
            self.tell_gone(&dropped);
            match last {
                Some(last) => after = last,
                None => break,
            }
        }
        Ok(lost)
    }

    /// The segments there are, oldest first: what a scrubber goes through.
    #[must_use]
    pub fn segments(&self) -> Vec<u32> {
        self.log.segments()
    }

    /// Reads and checks a whole segment on the disk; what is damaged is taken out of the index.
    ///
    /// # Errors
    /// [`Error::Disk`] and [`Error::Index`].
    pub fn scrub(&mut self, segment: u32) -> Result<Scrubbed, Error> {
        let Some(file) = self.log.file(segment) else { return Ok(Scrubbed::default()) };
        let len = self.log.len_of(segment);
        let (records, damaged_octets) = scan_all(file, segment, len)?;
        let mut found = Scrubbed { records, damaged_octets, ..Scrubbed::default() };
        if found.damaged_octets > 0 && !self.read_only {
            found.lost = self.drop_unreadable(segment)?;
        }
        Ok(found)
    }
}

/// Reads and checks a segment that is in the bucket only. What is wrong there stays in the index: it
/// may be right another time.
pub(crate) fn scrub_far(
    file: Arc<dyn DiskFile>,
    segment: u32,
    len: u64,
) -> Result<Scrubbed, Error> {
    let all = scan_all(file, segment, len);
    let (records, wrong_octets) = all.map_err(|error| Error::Bucket(error.to_string()))?;
    Ok(Scrubbed { records, wrong_octets, ..Scrubbed::default() })
}

impl Group<'_, '_, '_> {
    /// Copies a record of an old segment if it still counts.
    fn copy(
        &mut self,
        now_ms: u64,
        place: Place,
        record: &Record<'_>,
        is_oldest: bool,
    ) -> Result<(), Error> {
        let to = self.place();
        match record.kind {
            Kind::Packet => return self.copy_packet(now_ms, place, record),
            Kind::Delete => {
                if is_oldest || self.tables.entry(record.body)?.is_some() {
                    return Ok(());
                }
                self.tally.deletion_is(to.segment, padded(record.body.len()));
            }
            Kind::Note => {
                let Some((key, value)) = note_parts(record.body) else { return Ok(()) };
                let now_at = self.tables.note_place(key)?;
                let is_alive = match value {
                    Some(_) => now_at == Some(place),
                    None => !is_oldest && now_at.is_none(),
                };
                if !is_alive {
                    return Ok(());
                }
                self.tables.put_note(self.tally, key, value, to)?;
            }
        }
        self.parts.copy(record, to);
        Ok(())
    }

    fn copy_packet(&mut self, now_ms: u64, place: Place, record: &Record<'_>) -> Result<(), Error> {
        let Ok(data) = Data::parse(record.body) else { return Ok(()) };
        let name = data.name.value();
        let Some(entry) = self.tables.entry(name)?.filter(|e| e.place == place) else {
            return Ok(());
        };
        if entry.is_expired(now_ms) {
            self.tables.remove(self.tally, name)?;
            return Ok(());
        }
        let to = self.place();
        self.parts.copy(record, to);
        self.tables.put(self.tally, data.name, &entry_of(to, record, &data))?;
        self.moved = true;
        Ok(())
    }
}

const _: () = assert!(padded(crate::record::BODY_MAX) < 2 << 20);
