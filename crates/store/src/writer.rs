//! The one writer of a store: groups of changes, and what is done in the background.

mod apply;
mod compact;
mod far;
mod recover;
mod ring;

pub use compact::Scrubbed;
pub(crate) use compact::scrub_far;
pub use recover::Recovery;
pub use ring::Gone;

use crate::Error;
use crate::change::OwnerId;
use crate::disk::Disk;
use crate::index::{Index, Note, Tables};
use crate::log::Log;
use crate::options::Options;
use crate::parts::Parts;
use crate::reader::Reader;
use crate::shared::Shared;
use crate::tally::{Stats, Tally};
use compact::Compaction;
use far::FarSide;
use onym_wire::name::{Name, NameRef};
use redb::Durability;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Writes a store. For threads there is [`Store`](crate::Store); this is what it drives, and what
/// tests drive step by step.
#[derive(Debug)]
pub struct Writer {
    disk: Arc<dyn Disk>,
    options: Options,
    read_only: bool,
    /// `None` after it failed, until it was opened again.
    index: Option<Index>,
    log: Log,
    shared: Arc<Shared>,
    tally: Tally,
    owners: BTreeMap<u16, Name>,
    /// Octets of log since the index was durable.
    since_checkpoint: u64,
    /// Octets that may be written before the disk is asked again how much is free.
    free_credit: u64,
    compaction: Option<Compaction>,
    buffer: Vec<u8>,
    trouble: Option<String>,
    /// Who hears what goes; what is oldest gives way then.
    gone: Option<Gone>,
    /// The bucket, where there is one.
    afar: Option<FarSide>,
}

/// A group of changes that is being made.
pub(crate) struct Group<'g, 't, 'p> {
    tables: &'g mut Tables<'t>,
    tally: &'g mut Tally,
    /// What goes to the log.
    parts: &'g mut Parts<'p>,
    start: crate::record::Place,
    /// Whether something that readers may remember was removed or moved.
    moved: bool,
}

impl Group<'_, '_, '_> {
    /// Where the next record goes.
    fn place(&self) -> crate::record::Place {
        let offset = self.start.offset + u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        crate::record::Place { offset, ..self.start }
    }
}

/// Why a group failed.
enum Failed {
    /// The log: the index is as before.
    Log(std::io::Error),
    /// The index: it has to be opened again.
    Index(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Index(error)
    }
}

impl Writer {
    /// Makes a group of changes durable, or none of it. `checkpoint` makes the index durable, too.
    fn group<'p, R>(
        &mut self,
        octets: usize,
        checkpoint: bool,
        make: impl FnOnce(&mut Group<'_, '_, 'p>) -> Result<R, Error>,
    ) -> Result<R, String> {
        match self.try_group(octets, checkpoint, make) {
            Ok(done) => {
                self.tally.keep();
                self.trouble = None;
                Ok(done)
            }
            Err(failed) => {
                self.tally.revert();
                let why = match failed {
                    Failed::Log(error) => {
                        self.log.give_up_segment();
                        error.to_string()
                    }
                    Failed::Index(error) => {
                        self.log.give_up_segment();
                        self.index = None;
                        self.shared.set_db(None);
                        error.to_string()
                    }
                };
                tracing::warn!(%why, "store-write-failed");
                self.trouble = Some(why.clone());
                Err(why)
            }
        }
    }

    fn try_group<'p, R>(
        &mut self,
        octets: usize,
        checkpoint: bool,
        make: impl FnOnce(&mut Group<'_, '_, 'p>) -> Result<R, Error>,
    ) -> Result<R, Failed> {
        if self.index.is_none() {
            self.reopen_index()?;
        }
        let start = match octets {
            0 => self.log.place(),
            octets => self.log.ready(octets).map_err(Failed::Log)?,
        };
        let Some(index) = &self.index else { return Err(Failed::Index(Error::Closed)) };
        let durable =
            checkpoint || self.since_checkpoint + octets as u64 > self.options.checkpoint_octets;
        let mut txn = index.db.begin_write().map_err(Error::from)?;
        let durability = if durable { Durability::Immediate } else { Durability::None };
        txn.set_durability(durability).map_err(Error::from)?;
        txn.set_quick_repair(durable);
        let mut parts = Parts::in_buffer(std::mem::take(&mut self.buffer));
        let mut tables = Tables::open(&txn)?;
        let tally = &mut self.tally;
        let mut group =
            Group { tables: &mut tables, tally, parts: &mut parts, start, moved: false };
        let made = make(&mut group);
        let moved = group.moved;
        let written = match (&made, parts.is_empty()) {
            (Ok(_), false) => self.log.write(&parts),
            _ => Ok(()),
        };
        let len = parts.len() as u64;
        self.buffer = parts.into_buffer();
        let made = made?;
        written.map_err(Failed::Log)?;
        self.tally.touch(self.log.place().segment);
        tables.note_progress(&self.tally, self.log.place())?;
        drop(tables);
        txn.commit().map_err(Error::from)?;
        self.since_checkpoint = if durable { 0 } else { self.since_checkpoint + len };
        if moved {
            self.shared.moves.fetch_add(1, Ordering::SeqCst);
        }
        self.shared.commits.fetch_add(1, Ordering::SeqCst);
        Ok(made)
    }

    /// Makes the index durable up to here, so that the next start has nothing to apply.
    ///
    /// # Errors
    /// [`Error::Index`] when the disk fails.
    pub fn checkpoint(&mut self) -> Result<(), Error> {
        if self.read_only {
            return Ok(());
        }
        self.group(0, true, |_| Ok(())).map_err(Error::Index)
    }

    /// Whether a checkpoint would make anything durable.
    #[must_use]
    pub fn is_checkpoint_due(&self) -> bool {
        self.since_checkpoint > 0 && !self.read_only
    }

    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// A reader, for any thread.
    #[must_use]
    pub fn reader(&self) -> Reader {
        Reader::new(Arc::clone(&self.shared))
    }

    /// The owner called `name`, which is remembered.
    ///
    /// # Errors
    /// [`Error::Index`] when there are 65,535 owners, or the disk fails.
    pub fn owner(&mut self, now_ms: u64, name: NameRef<'_>) -> Result<OwnerId, Error> {
        if let Some((id, _)) = self.owners.iter().find(|(_, known)| known.as_ref() == name) {
            return Ok(OwnerId(*id));
        }
        let next = self.owners.keys().next_back().map_or(Some(1), |last| last.checked_add(1));
        let Some(id) = next else { return Err(Error::Index("too many owners".into())) };
        let note = apply::owner_note(id, name);
        match self.apply(now_ms, vec![note]).pop() {
            Some(Ok(_)) => {
                self.owners.insert(id, name.to_name());
                Ok(OwnerId(id))
            }
            Some(Err(why)) => Err(Error::Index(why.to_string())),
            None => Err(Error::Closed),
        }
    }

    /// The names of owners.
    pub fn owners(&self) -> impl Iterator<Item = (OwnerId, NameRef<'_>)> {
        self.owners.iter().map(|(id, name)| (OwnerId(*id), name.as_ref()))
    }

    /// The value of a note.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub fn note(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.index.as_ref().map_or(Ok(None), |index| index.note(key))
    }

    /// Notes whose keys begin with `prefix`.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub fn notes(&self, prefix: &[u8]) -> Result<Vec<Note>, Error> {
        self.index.as_ref().map_or(Ok(Vec::new()), |index| index.notes(prefix))
    }

    /// What there is.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            total: self.tally.total,
            owners: self.tally.owners.iter().map(|(id, usage)| (OwnerId(*id), *usage)).collect(),
            segments: self.log.segments().len() as u64,
            log_octets: self.log.octets(),
            damaged: self.shared.damaged.load(Ordering::Relaxed),
            read_only: self.read_only,
            trouble: self.trouble.clone(),
            afar: self.afar_stats(),
        }
    }
}
