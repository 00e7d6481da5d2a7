//! The index: which packet is where, what is fresh, what is due, who has how much, notes.

use crate::Error;
use crate::disk::DiskFile;
use crate::entry::{ENTRY, Entry};
use crate::overlay::{InMemory, OnDisk};
use crate::record::{Place, is_head, note_len, padded};
use crate::tally::{InBucket, InSegment, Tally, Usage};
use onym_wire::name::NameRef;
use redb::{
    Database, ReadableDatabase as _, ReadableTable as _, Table, TableDefinition, WriteTransaction,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) const PACKETS: TableDefinition<'_, &[u8], &[u8; ENTRY]> =
    TableDefinition::new("packets");
/// First packets of objects with a FreshnessPeriod: until when they are fresh.
pub(crate) const FRESH: TableDefinition<'_, &[u8], u64> = TableDefinition::new("fresh");
/// What happens when: the moment (8 octets, big-endian), what, the name.
const DUE: TableDefinition<'_, &[u8], ()> = TableDefinition::new("due");
const OWNERS: TableDefinition<'_, u16, &[u8; 16]> = TableDefinition::new("owners");
const SEGMENTS: TableDefinition<'_, u32, &[u8; 24]> = TableDefinition::new("segments");
/// Where the note is (8 octets), then its value.
const NOTES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("notes");
/// Segments of which something is in the bucket.
const FAR: TableDefinition<'_, u32, &[u8; 24]> = TableDefinition::new("far");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// Layout of the tables; another one is made again from the log.
const FORMAT: u64 = 1;

const STALE: u8 = 0;
const EXPIRED: u8 = 1;

/// Key and value of a note.
pub type Note = (Vec<u8>, Vec<u8>);

/// Names with their entries, and where to go on.
pub(crate) type Found = (Vec<(Vec<u8>, Entry)>, Option<Vec<u8>>);

/// An open index.
#[derive(Debug)]
pub(crate) struct Index {
    pub(crate) db: Arc<Database>,
    detached: Arc<AtomicBool>,
}

impl Drop for Index {
    /// Readers may hold the database longer: it must not write over its successor.
    fn drop(&mut self) {
        self.detached.store(true, Ordering::SeqCst);
    }
}

/// What is due now.
pub(crate) struct Due {
    key: Vec<u8>,
    pub(crate) expires: bool,
    when: u64,
}

impl Due {
    pub(crate) fn name(&self) -> &[u8] {
        self.key.get(9..).unwrap_or_default()
    }
}

fn builder(cache_octets: usize) -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(cache_octets);
    builder
}

impl Index {
    /// Opens the index in `file`, to read and write.
    pub(crate) fn on_disk(file: Arc<dyn DiskFile>, cache_octets: usize) -> Result<Self, Error> {
        let detached = Arc::new(AtomicBool::new(false));
        let backend = OnDisk { file, detached: Arc::clone(&detached) };
        // A damaged file makes redb panic in places: it is an index that cannot be opened like others.
        let open = || builder(cache_octets).create_with_backend(backend);
        let db = std::panic::catch_unwind(std::panic::AssertUnwindSafe(open))
            .map_err(|_| Error::Index("it is damaged".into()))??;
        Self::checked(db, detached)
    }

    /// An index in memory that begins as the one in `file`, which is not written.
    pub(crate) fn in_memory(
        file: Option<Arc<dyn DiskFile>>,
        cache_octets: usize,
    ) -> Result<Self, Error> {
        let db = builder(cache_octets).create_with_backend(InMemory::over(file)?)?;
        Self::checked(db, Arc::new(AtomicBool::new(false)))
    }

    fn checked(db: Database, detached: Arc<AtomicBool>) -> Result<Self, Error> {
        let index = Self { db: Arc::new(db), detached };
        index.check_format()?;
        Ok(index)
    }

    fn check_format(&self) -> Result<(), Error> {
        let txn = self.db.begin_write()?;
        let format = {
            let mut tables = Tables::open(&txn)?;
            let format = tables.meta.get("format")?.map(|v| v.value());
            if format.is_none() {
                tables.meta.insert("format", FORMAT)?;
            }
            format.unwrap_or(FORMAT)
        };
        txn.commit()?;
        if format != FORMAT {
            return Err(Error::Index(format!("its layout is {format}, not {FORMAT}")));
        }
        Ok(())
    }

    /// Up to where the log is applied, and how much there is.
    pub(crate) fn load(&self) -> Result<(Option<Place>, Tally), Error> {
        let txn = self.db.begin_read()?;
        let applied = txn.open_table(META)?.get("applied")?.map(|v| Place::of(v.value()));
        let mut tally = Tally::default();
        for row in txn.open_table(OWNERS)?.iter()? {
            let (owner, usage) = row?;
            let usage = Usage::decode(usage.value());
            tally.owners.insert(owner.value(), usage);
            tally.total.octets += usage.octets;
            tally.total.packets += usage.packets;
        }
        for row in txn.open_table(SEGMENTS)?.iter()? {
            let (segment, usage) = row?;
            tally.segments.insert(segment.value(), InSegment::decode(usage.value()));
        }
        Ok((applied, tally))
    }

    /// What is in the bucket.
    pub(crate) fn far(&self) -> Result<BTreeMap<u32, InBucket>, Error> {
        let far = self.db.begin_read()?.open_table(FAR)?;
        let mut found = BTreeMap::new();
        for row in far.iter()? {
            let (segment, there) = row?;
            found.insert(segment.value(), InBucket::decode(there.value()));
        }
        Ok(found)
    }

    /// Notes what a list of the bucket says, and nothing else of it.
    pub(crate) fn far_is(&self, listed: &BTreeMap<u32, InBucket>) -> Result<(), Error> {
        let txn = self.db.begin_write()?;
        {
            let mut tables = Tables::open(&txn)?;
            tables.far.retain(|_, _| false)?;
            for (segment, there) in listed {
                tables.far.insert(segment, &there.encode())?;
            }
        }
        Ok(txn.commit()?)
    }

    /// The value of a note.
    pub(crate) fn note(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let notes = self.db.begin_read()?.open_table(NOTES)?;
        Ok(notes.get(key)?.map(|v| note_value(v.value()).to_vec()))
    }

    /// Notes whose keys begin with `prefix`.
    pub(crate) fn notes(&self, prefix: &[u8]) -> Result<Vec<Note>, Error> {
        let notes = self.db.begin_read()?.open_table(NOTES)?;
        let mut found = Vec::new();
        for row in notes.range::<&[u8]>(prefix..)? {
            let (key, value) = row?;
            if !key.value().starts_with(prefix) {
                break;
            }
            found.push((key.value().to_vec(), note_value(value.value()).to_vec()));
        }
        Ok(found)
    }
}

/// The tables of an open transaction.
pub(crate) struct Tables<'t> {
    packets: Table<'t, &'static [u8], &'static [u8; ENTRY]>,
    fresh: Table<'t, &'static [u8], u64>,
    due: Table<'t, &'static [u8], ()>,
    owners: Table<'t, u16, &'static [u8; 16]>,
    segments: Table<'t, u32, &'static [u8; 24]>,
    notes: Table<'t, &'static [u8], &'static [u8]>,
    far: Table<'t, u32, &'static [u8; 24]>,
    meta: Table<'t, &'static str, u64>,
    key: Vec<u8>,
}

impl<'t> Tables<'t> {
    pub(crate) fn open(txn: &'t WriteTransaction) -> Result<Self, Error> {
        Ok(Self {
            packets: txn.open_table(PACKETS)?,
            fresh: txn.open_table(FRESH)?,
            due: txn.open_table(DUE)?,
            owners: txn.open_table(OWNERS)?,
            segments: txn.open_table(SEGMENTS)?,
            notes: txn.open_table(NOTES)?,
            far: txn.open_table(FAR)?,
            meta: txn.open_table(META)?,
            key: Vec::new(),
        })
    }

    pub(crate) fn entry(&self, name: &[u8]) -> Result<Option<Entry>, Error> {
        Ok(self.packets.get(name)?.map(|e| Entry::decode(e.value())))
    }

    fn due_at(&mut self, when: u64, what: u8, name: &[u8]) -> Result<(), Error> {
        self.key.clear();
        self.key.extend_from_slice(&when.to_be_bytes());
        self.key.push(what);
        self.key.extend_from_slice(name);
        self.due.insert(self.key.as_slice(), ())?;
        Ok(())
    }

    /// Notes that `name` is at `entry` now. Whether it was somewhere else before.
    pub(crate) fn put(
        &mut self,
        tally: &mut Tally,
        name: NameRef<'_>,
        entry: &Entry,
    ) -> Result<bool, Error> {
        let (is_head, name) = (is_head(name), name.value());
        let old = self.packets.insert(name, &entry.encode())?.map(|e| Entry::decode(e.value()));
        if let Some(old) = &old {
            tally.take(old);
        }
        tally.add(entry);
        let same_fresh = old.is_some_and(|o| o.fresh_until_ms == entry.fresh_until_ms);
        if is_head && !same_fresh {
            if entry.fresh_until_ms > 0 {
                self.fresh.insert(name, entry.fresh_until_ms)?;
                self.due_at(entry.fresh_until_ms, STALE, name)?;
            } else {
                self.fresh.remove(name)?;
            }
        }
        if entry.expires_ms > 0 && old.is_none_or(|o| o.expires_ms != entry.expires_ms) {
            self.due_at(entry.expires_ms, EXPIRED, name)?;
        }
        Ok(old.is_some())
    }

    /// Forgets `name`.
    pub(crate) fn remove(&mut self, tally: &mut Tally, name: &[u8]) -> Result<bool, Error> {
        let Some(old) = self.packets.remove(name)?.map(|e| Entry::decode(e.value())) else {
            return Ok(false);
        };
        tally.take(&old);
        self.fresh.remove(name)?;
        Ok(true)
    }

    /// Takes out up to `max` of what is due.
    pub(crate) fn take_due(&mut self, now_ms: u64, max: usize) -> Result<Vec<Due>, Error> {
        let end = now_ms.saturating_add(1).to_be_bytes();
        let mut due = Vec::new();
        for row in self.due.range::<&[u8]>(..end.as_slice())?.take(max) {
            let key = row?.0.value().to_vec();
            let when = key.first_chunk().map_or(0, |b| u64::from_be_bytes(*b));
            let expires = key.get(8) == Some(&EXPIRED);
            due.push(Due { key, expires, when });
        }
        for one in &due {
            self.due.remove(one.key.as_slice())?;
        }
        Ok(due)
    }

    /// Ends freshness, or the packet; whether the packet is gone.
    pub(crate) fn carry_out(&mut self, tally: &mut Tally, due: &Due) -> Result<bool, Error> {
        let name = due.name();
        if due.expires {
            let is_due = self.entry(name)?.is_some_and(|e| e.expires_ms == due.when);
            return Ok(is_due && self.remove(tally, name)?);
        }
        let is_due = self.fresh.get(name)?.is_some_and(|v| v.value() == due.when);
        if is_due {
            self.fresh.remove(name)?;
        }
        Ok(false)
    }

    /// Notes that `key` has `value`, and where that is written; no value forgets it.
    pub(crate) fn put_note(
        &mut self,
        tally: &mut Tally,
        key: &[u8],
        value: Option<&[u8]>,
        place: Place,
    ) -> Result<(), Error> {
        let octets = |value_len: usize| padded(note_len(key.len(), value_len));
        let row = value.map(|v| [&place.number().to_le_bytes(), v].concat());
        let old = match &row {
            Some(row) => self.notes.insert(key, row.as_slice())?,
            None => self.notes.remove(key)?,
        };
        if let Some(old) = old {
            let segment = note_place(old.value()).segment;
            tally.take_note(segment, octets(note_value(old.value()).len()));
        }
        match value {
            Some(value) => tally.add_note(place.segment, octets(value.len())),
            None => tally.deletion_is(place.segment, octets(0)),
        }
        Ok(())
    }

    /// Where the note `key` is written, if there is one.
    pub(crate) fn note_place(&self, key: &[u8]) -> Result<Option<Place>, Error> {
        Ok(self.notes.get(key)?.map(|v| note_place(v.value())))
    }

    /// Notes what is in the bucket of a segment; none forgets it.
    pub(crate) fn put_far(&mut self, segment: u32, there: Option<&InBucket>) -> Result<(), Error> {
        match there {
            Some(there) => self.far.insert(segment, &there.encode())?.map(drop),
            None => self.far.remove(segment)?.map(drop),
        };
        Ok(())
    }

    /// A segment that has nothing alive is forgotten.
    pub(crate) fn remove_segment(&mut self, segment: u32) -> Result<(), Error> {
        self.segments.remove(segment)?;
        Ok(())
    }

    /// Names with entries in `segment`, beginning behind `after`.
    pub(crate) fn names_in(
        &self,
        segment: u32,
        after: &[u8],
        looks: usize,
    ) -> Result<Found, Error> {
        let mut found = Vec::new();
        let mut last = None;
        for row in self.packets.range::<&[u8]>(after..)?.take(looks) {
            let (name, entry) = row?;
            let entry = Entry::decode(entry.value());
            if entry.place.segment == segment {
                found.push((name.value().to_vec(), entry));
            }
            let mut next = name.value().to_vec();
            next.push(0);
            last = Some(next);
        }
        Ok((found, last))
    }

    /// Writes what changed in the tally, and up to where the log is applied.
    pub(crate) fn note_progress(&mut self, tally: &Tally, applied: Place) -> Result<(), Error> {
        for owner in &tally.touched_owners {
            let usage = tally.owners.get(owner).copied().unwrap_or_default();
            self.owners.insert(owner, &usage.encode())?;
        }
        for segment in &tally.touched_segments {
            if let Some(usage) = tally.segments.get(segment) {
                self.segments.insert(segment, &usage.encode())?;
            }
        }
        self.meta.insert("applied", applied.number())?;
        Ok(())
    }
}

fn note_place(row: &[u8]) -> Place {
    Place::of(row.first_chunk().map_or(0, |b| u64::from_le_bytes(*b)))
}

fn note_value(row: &[u8]) -> &[u8] {
    row.get(8..).unwrap_or_default()
}

/// The first key behind all that begin with `prefix`; `None` when there is none.
pub(crate) fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return Some(end);
        }
    }
    None
}
