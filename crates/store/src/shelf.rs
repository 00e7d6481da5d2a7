//! A store that is a cache of packets: bounded, what is oldest gives way, and a filter says without
//! looking what may be in it.

use crate::Error;
use crate::change::{Change, Done, Refused};
use crate::disk::Disk;
use crate::filter::Filter;
use crate::options::{Bounds, Options};
use crate::reader::Reader;
use crate::store::Store;
use crate::writer::Gone;
use onym_crypto::edge::unix_now_ms;
use onym_frame::Buf;
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::name::{Name, NameRef};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How much a shelf has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShelfOptions {
    /// Octets of the log on the disk.
    pub octets_max: u64,
    /// Packets.
    pub packets_max: u64,
    /// Nothing is put on while less is free on the disk.
    pub free_min_octets: u64,
}

/// Segments that a full shelf has: one gives way at a time.
const SEGMENTS: u64 = 16;
const SEGMENT_OCTETS: std::ops::RangeInclusive<u64> = 1 << 16..=64 << 20;
/// Memory for pages of the index.
const CACHE_OCTETS: usize = 16 << 20;
/// Calls of [`Shelf::keep`] that wait for the disk.
const QUEUE: usize = 16;
/// Names that are read at once at the start.
const LOAD: usize = 4096;

/// A packet of the shelf.
#[derive(Debug, Clone)]
pub struct Found {
    /// The whole Data element.
    pub packet: Buf,
    /// How much longer it is fresh.
    pub fresh_ms: u64,
}

/// What a shelf tells about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShelfStats {
    /// Packets there are.
    pub packets: u64,
    /// Octets of the log on the disk.
    pub octets: u64,
    /// Packets that were put on it.
    pub kept: u64,
    /// Packets that were not: no room in the queue, on the disk, or it failed.
    pub refused: u64,
    /// Packets that gave way.
    pub gone: u64,
    /// Packets that were found damaged, and not served.
    pub damaged: u64,
    /// What is wrong, in a sentence.
    pub trouble: Option<String>,
}

/// What the thread that writes counts.
#[derive(Debug, Default)]
struct Counts {
    kept: AtomicU64,
    refused: AtomicU64,
    gone: AtomicU64,
    last: Mutex<ShelfStats>,
}

impl Counts {
    fn last(&self) -> std::sync::MutexGuard<'_, ShelfStats> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What became of packets that were to be kept.
    fn note(&self, answers: &[Result<Done, Refused>]) {
        let mut trouble = None;
        for answer in answers {
            match answer {
                Ok(Done::Had) => {}
                Ok(_) => {
                    self.kept.fetch_add(1, Ordering::Relaxed);
                }
                Err(why) => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    let is_of_packet = matches!(why, Refused::Malformed | Refused::NameTooLong);
                    trouble = Some(why).filter(|_| !is_of_packet).or(trouble);
                }
            }
        }
        self.last().trouble = trouble.map(ToString::to_string);
    }
}

/// A cache on a disk. One thread reads by it; one of its own writes.
#[derive(Debug)]
pub struct Shelf {
    store: Store,
    reader: Reader,
    filter: Arc<Filter>,
    counts: Arc<Counts>,
}

impl Shelf {
    /// Opens the shelf on `disk`, or begins one, and says to `filter` what is on it.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub fn open(
        disk: impl Disk + 'static,
        options: ShelfOptions,
        filter: &Arc<Filter>,
    ) -> Result<Self, Error> {
        let (min, max) = SEGMENT_OCTETS.into_inner();
        let segment = (options.octets_max / SEGMENTS).clamp(min, max);
        let options = Options {
            bounds: Bounds {
                octets_max: options.octets_max,
                packets_max: options.packets_max,
                free_min_octets: options.free_min_octets,
                ..Bounds::default()
            },
            segment_octets: u32::try_from(segment).expect("invariant: a segment is bounded"),
            cache_octets: CACHE_OCTETS,
            queue_groups: QUEUE,
            ..Options::default()
        };
        let counts = Arc::new(Counts::default());
        let (told, heard) = (Arc::clone(&counts), Arc::clone(filter));
        let gone = Gone(Box::new(move |name| {
            told.gone.fetch_add(1, Ordering::Relaxed);
            heard.remove(name);
        }));
        let store = Store::open_ring(disk, options, gone)?;
        let reader = store.reader();
        let mut shelf = Self { store, reader, filter: Arc::clone(filter), counts };
        shelf.load()?;
        Ok(shelf)
    }

    fn load(&mut self) -> Result<(), Error> {
        self.filter.clear();
        let filter = Arc::clone(&self.filter);
        self.each_name(|name| filter.add(name))?;
        self.filter.set_ready();
        self.look();
        Ok(())
    }

    /// Names every packet.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub fn each_name(&mut self, mut each: impl FnMut(NameRef<'_>)) -> Result<(), Error> {
        let mut after: Option<Name> = None;
        loop {
            let root = NameRef::default();
            let listed = self.reader.names(root, after.as_ref().map(Name::as_ref), LOAD)?;
            listed.iter().for_each(|one| each(one.name.as_ref()));
            match listed.last() {
                Some(last) if listed.len() == LOAD => after = Some(last.name.clone()),
                _ => return Ok(()),
            }
        }
    }

    /// The packet that answers `interest`, if there is one.
    ///
    /// # Errors
    /// [`Error::Index`] and [`Error::Disk`]; a damaged packet is none.
    pub fn find(&mut self, interest: &Interest<'_>) -> Result<Option<Found>, Error> {
        let now_ms = unix_now_ms();
        let found = self.reader.find_entry(now_ms, interest)?;
        Ok(found.map(|(packet, entry)| Found {
            packet,
            fresh_ms: entry.fresh_until_ms.saturating_sub(now_ms),
        }))
    }

    /// Puts packets on the shelf, each with the time for which it is still fresh. Does not wait.
    /// Gives them back when those that came before still wait for the disk.
    ///
    /// # Errors
    /// The packets.
    pub fn keep(&self, packets: Vec<Found>) -> Result<(), Vec<Found>> {
        let now_ms = unix_now_ms();
        let (mut changes, mut names) = (Vec::new(), Vec::new());
        for found in &packets {
            let Ok(data) = Data::parse(&found.packet) else { continue };
            names.push(data.name.to_name());
            // Fresh from then on, it is fresh as long as it still is.
            let age_ms = data.freshness_ms.saturating_sub(found.fresh_ms);
            let arrived_ms = now_ms.saturating_sub(age_ms).max(1);
            changes.push(Change::arrived(found.packet.to_vec(), arrived_ms));
        }
        let (counts, filter) = (Arc::clone(&self.counts), Arc::clone(&self.filter));
        let asked = self.store.try_apply(changes, move |answers| {
            counts.note(&answers);
            let new = answers.iter().zip(&names).filter(|(answer, _)| **answer == Ok(Done::New));
            new.for_each(|(_, name)| filter.add(name.as_ref()));
        });
        asked.map_err(|_| packets)
    }

    /// So many packets were given up before they reached the shelf.
    pub fn gave_up(&self, count: usize) {
        self.counts.refused.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Forgets at most `limit` packets under `prefix`, behind what was to be kept before; how many,
    /// and whether there are more.
    ///
    /// # Errors
    /// [`Error::Index`] and [`Error::Closed`].
    pub fn erase(&mut self, prefix: NameRef<'_>, limit: usize) -> Result<(usize, bool), Error> {
        // What waits is written first: then the index has it.
        self.store.apply(Vec::new())?;
        let mut names = self.reader.names(prefix, None, limit.saturating_add(1))?;
        let more = names.len() > limit;
        names.truncate(limit);
        let changes = names.iter().map(|one| Change::delete(one.name.clone())).collect();
        let answers = self.store.apply(changes)?;
        let mut erased = 0;
        for (answer, one) in answers.iter().zip(&names) {
            if *answer == Ok(Done::Deleted) {
                self.filter.remove(one.name.as_ref());
                erased += 1;
            }
        }
        Ok((erased, more && erased > 0))
    }

    /// Has the thread that writes say how much there is, for [`ShelfGauge::stats`].
    pub fn look(&self) {
        let counts = Arc::clone(&self.counts);
        self.store.later(move |writer| {
            let stats = writer.stats();
            let mut last = counts.last();
            (last.packets, last.octets) = (stats.total.packets, stats.log_octets);
            last.damaged = stats.damaged;
            if stats.read_only {
                last.trouble = Some(Refused::ReadOnly.to_string());
            }
        });
    }

    /// Tells what the shelf counts, in any thread.
    #[must_use]
    pub fn gauge(&self) -> ShelfGauge {
        ShelfGauge(Arc::clone(&self.counts))
    }
}

/// What a shelf counts.
#[derive(Debug, Clone)]
pub struct ShelfGauge(Arc<Counts>);

impl ShelfGauge {
    /// What there was when the thread that writes looked last, and what was counted.
    #[must_use]
    pub fn stats(&self) -> ShelfStats {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Counts { kept, refused, gone, .. } = &*self.0;
        let last = self.0.last().clone();
        ShelfStats { kept: of(kept), refused: of(refused), gone: of(gone), ..last }
    }
}
