//! The thread that reads and writes the second level of the content store (`onym_store::Shelf`).

use crate::config::{Cs, CsDisk};
use crate::shard::{
    DiskAnswer, DiskJob, DiskSide, KEEPING_MAX, Order, Shard, ShardPort, WAITING_MAX,
};
use onym_engine::Reply;
use onym_engine::reply::reply;
use onym_forward::stage::Offers;
use onym_store::{Filter, Folder, Found, Shelf, ShelfGauge, ShelfOptions, ShelfStats};
use onym_wire::interest::Interest;
use onym_wire::name::{Name, NameRef};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Questions that are answered together.
const TOGETHER: usize = 64;
/// Packets that are written together.
const WRITTEN: usize = 64;
/// How long a packet waits for others to be written with, and how soon the disk is tried again with what
/// it had no room for. Each write waits for the disk.
const GATHER: Duration = Duration::from_millis(20);
/// How often it is looked how much there is, and a shelf that could not be opened is tried again.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const OPEN_EVERY: Duration = Duration::from_secs(10);
/// How long management waits for the disk.
const ERASE_WAIT: Duration = Duration::from_secs(1);

/// What the disk thread tells.
#[derive(Debug)]
enum State {
    /// The shelf is open.
    Open(ShelfGauge),
    /// It is not; why, in a sentence, if it was tried.
    Closed(Option<String>),
}

type Told = Arc<Mutex<State>>;

/// The disk as the control thread has it.
#[derive(Debug)]
pub(crate) struct Disk {
    jobs: SyncSender<DiskJob>,
    told: Told,
}

impl Disk {
    /// What is counted of the disk.
    pub(crate) fn stats(&self) -> ShelfStats {
        match &*self.told.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Open(gauge) => gauge.stats(),
            State::Closed(trouble) => {
                ShelfStats { trouble: trouble.clone(), ..ShelfStats::default() }
            }
        }
    }

    /// Erases at most `limit` packets under `name`; how many, and whether there are more. A disk that
    /// does not answer erases them when it does.
    pub(crate) fn erase(&self, name: NameRef<'_>, limit: usize) -> (usize, bool) {
        let (reply, answer) = reply();
        let job = DiskJob::Erase { name: name.to_name(), limit, reply };
        if self.jobs.try_send(job).is_err() {
            return (0, false);
        }
        answer.wait_for(ERASE_WAIT).unwrap_or_default()
    }
}

/// The disk before its thread runs.
#[derive(Debug)]
pub(crate) struct Prepared {
    folder: PathBuf,
    settings: CsDisk,
    filter: Arc<Filter>,
    jobs: SyncSender<DiskJob>,
    queue: Receiver<DiskJob>,
    keeping: Arc<AtomicUsize>,
}

impl Prepared {
    /// What the configuration asks for; relative paths start at `base`.
    pub(crate) fn of(cs: &Cs, base: &Path, shards: usize) -> Option<Self> {
        let settings = cs.disk.clone();
        if settings.folder.is_empty() {
            return None;
        }
        let (jobs, queue) = sync_channel(KEEPING_MAX + 2 * shards * WAITING_MAX);
        Some(Self {
            folder: base.join(&settings.folder),
            filter: Arc::new(Filter::new(settings.packets_max)),
            settings,
            jobs,
            queue,
            keeping: Arc::default(),
        })
    }

    /// Gives a shard, of so many, its side.
    pub(crate) fn add_to(&self, shard: &mut Shard, cs: &Cs, shards: usize) {
        let (filter, keeping) = (Arc::clone(&self.filter), Arc::clone(&self.keeping));
        let side = DiskSide::new(filter, self.jobs.clone(), keeping, self.settings.wait_ms);
        let prefixes = self.settings.prefixes.iter().filter_map(|prefix| prefix.parse().ok());
        // Whoever comes again before four times the store has passed is remembered.
        let remembered = self.settings.second_hit.then(|| 4 * cs.packets_max.div_ceil(shards));
        shard.set_disk(side, Offers::new(prefixes.collect(), remembered));
    }

    /// Starts the thread. It ends when nobody can ask it any more.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(crate) fn start(
        self,
        ports: Vec<ShardPort>,
        threads: &mut Vec<JoinHandle<()>>,
    ) -> io::Result<Disk> {
        let told = Arc::new(Mutex::new(State::Closed(None)));
        let Self { folder, settings, filter, jobs, queue, keeping } = self;
        let worker = Worker {
            folder,
            settings,
            filter,
            keeping,
            answers: ports.iter().map(|_| Vec::new()).collect(),
            ports,
            shelf: None,
            open_at: Instant::now(),
            look_at: Instant::now(),
            waiting: Vec::new(),
            write_at: Instant::now(),
            is_full: false,
            told: Arc::clone(&told),
        };
        let run = move || worker.run(&queue);
        threads.push(std::thread::Builder::new().name("onym-cs-disk".into()).spawn(run)?);
        Ok(Disk { jobs, told })
    }
}

struct Worker {
    folder: PathBuf,
    settings: CsDisk,
    filter: Arc<Filter>,
    keeping: Arc<AtomicUsize>,
    ports: Vec<ShardPort>,
    /// By shard.
    answers: Vec<Vec<DiskAnswer>>,
    /// None while it cannot be opened.
    shelf: Option<Shelf>,
    open_at: Instant,
    look_at: Instant,
    /// What is to be written, and when at the latest.
    waiting: Vec<Found>,
    write_at: Instant,
    /// Whether the shelf had no room for it.
    is_full: bool,
    told: Told,
}

impl Worker {
    fn run(mut self, queue: &Receiver<DiskJob>) {
        loop {
            self.open();
            let patience = match self.waiting.is_empty() {
                true => LOOK_EVERY,
                false => self.write_at.saturating_duration_since(Instant::now()),
            };
            match queue.recv_timeout(patience) {
                Ok(job) => {
                    self.take(job);
                    queue.try_iter().take(TOGETHER).for_each(|job| self.take(job));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.answer();
            let is_enough = self.waiting.len() >= WRITTEN && !self.is_full;
            if is_enough || Instant::now() >= self.write_at {
                self.write();
            }
            self.look();
        }
        // The shelf waits for what it took.
        self.write();
    }

    /// Opens the shelf, or says why it cannot be.
    fn open(&mut self) {
        if self.shelf.is_some() || Instant::now() < self.open_at {
            return;
        }
        let options = ShelfOptions {
            octets_max: self.settings.bytes_max,
            packets_max: self.settings.packets_max,
            free_min_octets: self.settings.free_min_bytes,
        };
        let opened = Folder::open(&self.folder).map_err(onym_store::Error::from);
        match opened.and_then(|folder| Shelf::open(folder, options, &self.filter)) {
            Ok(shelf) => {
                self.tell(State::Open(shelf.gauge()));
                self.shelf = Some(shelf);
            }
            Err(error) => {
                let folder = self.folder.display();
                tracing::warn!(%folder, %error, "cs-disk-not-opened");
                self.tell(State::Closed(Some(format!("{folder}: {error}"))));
                self.open_at = Instant::now() + OPEN_EVERY;
            }
        }
    }

    fn tell(&self, state: State) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    fn take(&mut self, job: DiskJob) {
        match job {
            DiskJob::Find { shard, number, interest } => {
                let found = self.find(&interest);
                if let Some(answers) = self.answers.get_mut(usize::from(shard)) {
                    answers.push(DiskAnswer { number, found });
                }
            }
            DiskJob::Keep(offer) => {
                self.keeping.fetch_sub(1, Ordering::Relaxed);
                match &self.shelf {
                    Some(shelf) if self.waiting.len() >= KEEPING_MAX => shelf.gave_up(1),
                    Some(_) => {
                        if self.waiting.is_empty() {
                            self.write_at = Instant::now() + GATHER;
                        }
                        let fresh_ms = offer.fresh_ms;
                        self.waiting.push(Found { packet: offer.bytes, fresh_ms });
                    }
                    None => {}
                }
            }
            DiskJob::Erase { name, limit, reply } => self.erase(&name, limit, reply),
        }
    }

    fn find(&mut self, interest: &[u8]) -> Option<Found> {
        let interest = Interest::parse(interest).ok()?;
        match self.shelf.as_mut()?.find(&interest) {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(name = %interest.name, %error, "cs-disk-not-read");
                None
            }
        }
    }

    /// Answers the shards.
    fn answer(&mut self) {
        for (port, answers) in self.ports.iter().zip(&mut self.answers) {
            if !answers.is_empty() {
                port.tell(Order::Disk(std::mem::take(answers)));
            }
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

    fn erase(&mut self, name: &Name, limit: usize, reply: Reply<(usize, bool)>) {
        // What waits would come back.
        self.waiting.retain(|found| {
            onym_wire::Data::parse(&found.packet)
                .is_ok_and(|data| !name.as_ref().is_prefix_of(data.name))
        });
        let erased = self.shelf.as_mut().map(|shelf| shelf.erase(name.as_ref(), limit));
        reply.send(match erased {
            Some(Ok(erased)) => erased,
            Some(Err(error)) => {
                tracing::warn!(%name, %error, "cs-disk-not-erased");
                (0, false)
            }
            None => (0, false),
        });
    }

    /// Looks how much there is.
    fn look(&mut self) {
        let Some(shelf) = &self.shelf else { return };
        if Instant::now() >= self.look_at {
            self.look_at = Instant::now() + LOOK_EVERY;
            shelf.look();
        }
    }
}
