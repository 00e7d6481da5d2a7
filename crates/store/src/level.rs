//! A level of a cache on a disk, as the one thread that has it works: the shelf is opened when the disk
//! lets it, what is to be written is gathered, and what is wrong is a sentence.

use crate::Error;
use crate::disk::Folder;
use crate::filter::Filter;
use crate::shelf::{Found, Shelf, ShelfGauge, ShelfOptions, ShelfStats};
use onym_wire::Data;
use onym_wire::interest::Interest;
use onym_wire::name::NameRef;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Packets that wait to be written, at most.
const WAITING_MAX: usize = 512;
/// Packets that are written together.
const WRITTEN: usize = 64;
/// How long a packet waits for others to be written with, and how soon the disk is tried again with what
/// it had no room for. Each write waits for the disk.
const GATHER: Duration = Duration::from_millis(20);
/// How often it is looked how much there is, and a shelf that could not be opened is tried again.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const OPEN_EVERY: Duration = Duration::from_secs(10);

/// What the thread of the disk tells.
#[derive(Debug)]
enum State {
    /// The shelf is open.
    Open(ShelfGauge),
    /// It is not; why, in a sentence, if it was tried.
    Closed(Option<String>),
}

/// What a level counts, in any thread.
#[derive(Debug, Clone)]
pub struct LevelGauge(Arc<Mutex<State>>);

impl LevelGauge {
    /// What there is, what was counted, and what is wrong.
    #[must_use]
    pub fn stats(&self) -> ShelfStats {
        match &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Open(gauge) => gauge.stats(),
            State::Closed(trouble) => {
                ShelfStats { trouble: trouble.clone(), ..ShelfStats::default() }
            }
        }
    }

    fn tell(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

/// A level of a cache on a disk.
#[derive(Debug)]
pub struct Level {
    folder: PathBuf,
    options: ShelfOptions,
    filter: Arc<Filter>,
    /// None while it cannot be opened.
    shelf: Option<Shelf>,
    open_at: Instant,
    look_at: Instant,
    /// What is to be written, and when at the latest.
    waiting: Vec<Found>,
    write_at: Instant,
    /// Whether the shelf had no room for it.
    is_full: bool,
    gauge: LevelGauge,
}

impl Level {
    /// A level in `folder`, which is not opened yet; `filter` will say what may be there.
    #[must_use]
    pub fn new(folder: PathBuf, options: ShelfOptions, filter: Arc<Filter>) -> Self {
        Self {
            folder,
            options,
            filter,
            shelf: None,
            open_at: Instant::now(),
            look_at: Instant::now(),
            waiting: Vec::new(),
            write_at: Instant::now(),
            is_full: false,
            gauge: LevelGauge(Arc::new(Mutex::new(State::Closed(None)))),
        }
    }

    /// Tells what is counted.
    #[must_use]
    pub fn gauge(&self) -> LevelGauge {
        self.gauge.clone()
    }

    /// Opens the shelf, or says why it cannot be. Whether this call opened it.
    pub fn open(&mut self) -> bool {
        if self.shelf.is_some() || Instant::now() < self.open_at {
            return false;
        }
        let opened = Folder::open(&self.folder).map_err(Error::from);
        match opened.and_then(|folder| Shelf::open(folder, self.options, &self.filter)) {
            Ok(shelf) => {
                self.gauge.tell(State::Open(shelf.gauge()));
                self.shelf = Some(shelf);
            }
            Err(error) => {
                let folder = self.folder.display();
                tracing::warn!(%folder, %error, "cs-disk-not-opened");
                self.gauge.tell(State::Closed(Some(format!("{folder}: {error}"))));
                self.open_at = Instant::now() + OPEN_EVERY;
            }
        }
        self.shelf.is_some()
    }

    /// How long its thread may rest.
    #[must_use]
    pub fn patience(&self) -> Duration {
        match self.waiting.is_empty() {
            true => LOOK_EVERY,
            false => self.write_at.saturating_duration_since(Instant::now()),
        }
    }

    /// The packet that answers `interest`, if there is one.
    pub fn find(&mut self, interest: &Interest<'_>) -> Option<Found> {
        match self.shelf.as_mut()?.find(interest) {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(name = %interest.name, %error, "cs-disk-not-read");
                None
            }
        }
    }

    /// Takes a packet that is to be written, if there is room.
    pub fn keep(&mut self, found: Found) {
        match &self.shelf {
            Some(shelf) if self.waiting.len() >= WAITING_MAX => shelf.gave_up(1),
            Some(_) => {
                if self.waiting.is_empty() {
                    self.write_at = Instant::now() + GATHER;
                }
                self.waiting.push(found);
            }
            None => {}
        }
    }

    /// Writes what has waited long enough, and looks how much there is.
    pub fn tend(&mut self) {
        let is_enough = self.waiting.len() >= WRITTEN && !self.is_full;
        if is_enough || Instant::now() >= self.write_at {
            self.write();
        }
        if let Some(shelf) = &self.shelf
            && Instant::now() >= self.look_at
        {
            self.look_at = Instant::now() + LOOK_EVERY;
            shelf.look();
        }
    }

    /// Hands what waits to the shelf, as far as it has room.
    fn write(&mut self) {
        let Some(shelf) = &self.shelf else { return };
        while !self.waiting.is_empty() {
            let rest = self.waiting.split_off(self.waiting.len().min(WRITTEN));
            let now = std::mem::replace(&mut self.waiting, rest);
            if let Err(mut back) = shelf.keep(now) {
                back.append(&mut self.waiting);
                self.waiting = back;
                self.write_at = Instant::now() + GATHER;
                self.is_full = true;
                return;
            }
            self.is_full = false;
        }
    }

    /// Forgets at most `limit` packets under `prefix`; how many, and whether there are more.
    pub fn erase(&mut self, prefix: NameRef<'_>, limit: usize) -> (usize, bool) {
        // What waits would come back.
        self.waiting.retain(|found| {
            Data::parse(&found.packet).is_ok_and(|data| !prefix.is_prefix_of(data.name))
        });
        let Some(shelf) = &mut self.shelf else { return (0, false) };
        shelf.erase(prefix, limit).unwrap_or_else(|error| {
            tracing::warn!(name = %prefix, %error, "cs-disk-not-erased");
            (0, false)
        })
    }

    /// Names every packet.
    pub fn each_name(&mut self, each: impl FnMut(NameRef<'_>)) {
        let Some(shelf) = &mut self.shelf else { return };
        if let Err(error) = shelf.each_name(each) {
            tracing::debug!(%error, "cs-disk-not-read");
        }
    }
}

/// The shelf waits for what it took.
impl Drop for Level {
    fn drop(&mut self) {
        self.write();
    }
}
