//! Opening a store: the index at its last durable commit, then the log after it.

use super::apply::{OWN, fresh_until};
use super::{FarSide, Group, Shared, Writer};
use crate::Error;
use crate::bucket::Afar;
use crate::change::OwnerId;
use crate::disk::Disk;
use crate::entry::Entry;
use crate::index::Index;
use crate::log::{Files, Log};
use crate::options::Options;
use crate::parts::Parts;
use crate::record::{Kind, Place, Record, note_parts, padded};
use crate::scan::Scan;
use crate::tally::Tally;
use onym_wire::data::Data;
use onym_wire::name::NameRef;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, RwLock};

/// What a start found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Records that were applied.
    pub records: u64,
    /// Octets of log that were read.
    pub octets: u64,
    /// Octets between valid records that belong to none.
    pub damaged_octets: u64,
    /// Octets behind the last valid record, cut off.
    pub cut_octets: u64,
    /// The index was made again from all segments.
    pub rebuilt: bool,
}

/// Records that are applied in one transaction.
const STEP: usize = 4096;
const INDEX: &str = "index.redb";

impl Writer {
    /// Opens the store on `disk`, or begins one.
    ///
    /// # Errors
    /// [`Error::Locked`]; [`Error::Disk`] and [`Error::Index`] when even an empty index cannot be
    /// opened.
    pub fn open(
        disk: Arc<dyn Disk>,
        options: Options,
        now_ms: u64,
    ) -> Result<(Self, Recovery), Error> {
        Self::open_with(disk, None, options, now_ms)
    }

    /// As [`Writer::open`], with a bucket for full segments. Waits for the bucket when it is used for
    /// the first time, and when the index has to be made again.
    ///
    /// # Errors
    /// Those of [`Writer::open`]; [`Error::Bucket`] when the bucket has to be read and does not answer,
    /// or belongs to another store.
    pub fn open_with(
        disk: Arc<dyn Disk>,
        afar: Option<&Afar>,
        options: Options,
        now_ms: u64,
    ) -> Result<(Self, Recovery), Error> {
        if !disk.lock()? {
            return Err(Error::Locked);
        }
        let read_only = disk.is_read_only();
        let files = Arc::new(Files::default());
        let log = Log::find(Arc::clone(&disk), Arc::clone(&files), options.segment_octets)?;
        let shared = Arc::new(Shared {
            db: RwLock::new(None),
            files,
            commits: AtomicU64::new(0),
            moves: AtomicU64::new(0),
            damaged: AtomicU64::new(0),
        });
        let afar = afar.map(|afar| FarSide::open(&*disk, afar)).transpose()?;
        let mut writer = Self {
            disk,
            options,
            read_only,
            index: None,
            log,
            shared,
            tally: Tally::default(),
            owners: BTreeMap::new(),
            since_checkpoint: 0,
            free_credit: 0,
            compaction: None,
            buffer: Vec::new(),
            trouble: None,
            gone: None,
            afar,
        };
        let recovery = match writer.open_index(now_ms, true) {
            Err(Error::Index(why)) if !read_only => {
                tracing::warn!(%why, "store-index-made-again");
                writer.index = None;
                writer.shared.set_db(None);
                writer.disk.remove(INDEX)?;
                Recovery { rebuilt: true, ..writer.open_index(now_ms, true)? }
            }
            recovery => recovery?,
        };
        Ok((writer, recovery))
    }

    /// Opens the index again after it failed.
    pub(super) fn reopen_index(&mut self) -> Result<(), Error> {
        self.log.give_up_segment();
        self.open_index(0, false).map(|_| ())
    }

    /// `starts` when the segments may have more than was acknowledged.
    fn open_index(&mut self, now_ms: u64, starts: bool) -> Result<Recovery, Error> {
        let create = !self.read_only;
        let file = match self.disk.open(INDEX, create) {
            Ok(file) => Some(file),
            Err(_) if self.read_only => None,
            Err(error) => return Err(error.into()),
        };
        if create {
            self.disk.sync()?;
        }
        let cache = self.options.cache_octets;
        let index = match file {
            Some(file) if !self.read_only => Index::on_disk(file, cache)?,
            file => Index::in_memory(file, cache)?,
        };
        let (applied, tally) = index.load()?;
        self.find_far(&index, applied)?;
        self.tally = tally;
        self.compaction = None;
        self.since_checkpoint = 0;
        self.shared.set_db(Some(Arc::clone(&index.db)));
        self.index = Some(index);
        let recovery = self.replay(now_ms, applied, starts)?;
        self.load_owners()?;
        Ok(recovery)
    }

    fn load_owners(&mut self) -> Result<(), Error> {
        self.owners.clear();
        for (key, value) in self.notes(OWN)? {
            let id = key.get(OWN.len()..).and_then(<[u8]>::first_chunk);
            if let (Some(id), Ok(name)) = (id, NameRef::parse_value(&value)) {
                self.owners.insert(u16::from_be_bytes(*id), name.to_name());
            }
        }
        Ok(())
    }

    /// Applies what the log has behind `applied`.
    fn replay(
        &mut self,
        now_ms: u64,
        applied: Option<Place>,
        starts: bool,
    ) -> Result<Recovery, Error> {
        let mut recovery = Recovery::default();
        let applied = applied.unwrap_or(Place { segment: 0, offset: 0 });
        self.log.begin_behind(applied.segment);
        let segments = self.log.segments();
        for segment in &segments {
            // Compacted away, and the removal did not reach the disk.
            if *segment < applied.segment && !self.tally.segments.contains_key(segment) {
                if !self.read_only && self.log.is_near(*segment) {
                    self.log.remove(*segment)?;
                }
                continue;
            }
            if *segment < applied.segment {
                continue;
            }
            let from = if *segment == applied.segment { applied.offset } else { 0 };
            let end = self.replay_segment(now_ms, *segment, u64::from(from), &mut recovery)?;
            // What the bucket may have is not written on.
            let is_known = self.afar.as_ref().is_some_and(|side| side.knows(*segment));
            if segments.last() == Some(segment) && !self.read_only && starts && !is_known {
                recovery.cut_octets = self.log.len_of(*segment).saturating_sub(end);
                self.log.go_on(*segment, end)?;
            }
        }
        if !self.read_only && recovery.records > 0 {
            self.checkpoint()?;
        }
        Ok(recovery)
    }

    fn replay_segment(
        &mut self,
        now_ms: u64,
        segment: u32,
        from: u64,
        recovery: &mut Recovery,
    ) -> Result<u64, Error> {
        let far = || self.far_file(segment).map(|(file, _)| file);
        let Some(file) = self.log.file(segment).or_else(far) else { return Ok(from) };
        let mut scan = Scan::new(Arc::clone(&file), segment, from, self.log.len_of(segment));
        loop {
            let mut done = 0;
            let mut failed = None;
            self.replay_group(&mut scan, now_ms, segment, &mut done, &mut failed)?;
            match failed {
                Some(error) if self.log.is_near(segment) => return Err(Error::Disk(error)),
                Some(error) => return Err(Error::Bucket(error.to_string())),
                None => {}
            }
            recovery.records += done as u64;
            if done < STEP {
                break;
            }
        }
        if !self.read_only {
            // What was read may be in the memory of the operating system only.
            file.sync()?;
        }
        recovery.octets += scan.valid_end() - from;
        recovery.damaged_octets += scan.damaged_octets();
        Ok(scan.valid_end())
    }

    /// Applies up to [`STEP`] records.
    fn replay_group(
        &mut self,
        scan: &mut Scan,
        now_ms: u64,
        segment: u32,
        done: &mut usize,
        failed: &mut Option<std::io::Error>,
    ) -> Result<(), Error> {
        let Some(index) = &self.index else { return Err(Error::Closed) };
        let mut txn = index.db.begin_write()?;
        txn.set_durability(redb::Durability::None)?;
        let mut tables = crate::index::Tables::open(&txn)?;
        let mut parts = Parts::default();
        let start = Place { segment, offset: 0 };
        let tally = &mut self.tally;
        let mut group = Group { tables: &mut tables, tally, parts: &mut parts, start, moved: true };
        while *done < STEP {
            match scan.next() {
                Ok(Some((place, record))) => {
                    group.replay(now_ms, place, &record)?;
                    *done += 1;
                }
                Ok(None) => break,
                Err(error) => {
                    *failed = Some(error);
                    break;
                }
            }
        }
        let offset = u32::try_from(scan.valid_end()).unwrap_or(u32::MAX);
        self.tally.touch(segment);
        tables.note_progress(&self.tally, Place { segment, offset })?;
        drop(tables);
        txn.commit()?;
        self.tally.keep();
        Ok(())
    }
}

impl Group<'_, '_, '_> {
    fn replay(&mut self, now_ms: u64, place: Place, record: &Record<'_>) -> Result<(), Error> {
        match record.kind {
            Kind::Packet => {
                let Ok(data) = Data::parse(record.body) else { return Ok(()) };
                let entry = entry_of(place, record, &data);
                if entry.is_expired(now_ms) {
                    self.tables.remove(self.tally, data.name.value())?;
                } else {
                    self.tables.put(self.tally, data.name, &entry)?;
                }
            }
            Kind::Delete => {
                self.tally.deletion_is(place.segment, padded(record.body.len()));
                self.tables.remove(self.tally, record.body)?;
            }
            Kind::Note => {
                if let Some((key, value)) = note_parts(record.body) {
                    self.tables.put_note(self.tally, key, value, place)?;
                }
            }
        }
        Ok(())
    }
}

/// The entry of a packet whose record is at `place`.
pub(super) fn entry_of(place: Place, record: &Record<'_>, data: &Data<'_>) -> Entry {
    Entry {
        place,
        len: u32::try_from(record.body.len()).unwrap_or(u32::MAX),
        owner: OwnerId(record.owner),
        fresh_until_ms: fresh_until(data, record.arrival_ms),
        expires_ms: record.expires_ms,
    }
}
