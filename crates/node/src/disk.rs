//! The thread that reads and writes the second level of the content store (`onym_store::Level`).

use crate::config::{Cs, CsDisk};
use crate::shard::{
    DiskAnswer, DiskJob, DiskSide, KEEPING_MAX, Order, Shard, ShardPort, WAITING_MAX,
};
use onym_engine::reply::reply;
use onym_forward::stage::Offers;
use onym_store::{Filter, Found, Level, LevelGauge, ShelfOptions, ShelfStats};
use onym_wire::interest::Interest;
use onym_wire::name::NameRef;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Questions that are answered together.
const TOGETHER: usize = 64;
/// How long management waits for the disk.
const ERASE_WAIT: Duration = Duration::from_secs(1);

/// The disk as the control thread has it.
#[derive(Debug)]
pub(crate) struct Disk {
    jobs: SyncSender<DiskJob>,
    gauge: LevelGauge,
}

impl Disk {
    /// What is counted of the disk.
    pub(crate) fn stats(&self) -> ShelfStats {
        self.gauge.stats()
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
        let Self { folder, settings, filter, jobs, queue, keeping } = self;
        let options = ShelfOptions {
            octets_max: settings.bytes_max,
            packets_max: settings.packets_max,
            free_min_octets: settings.free_min_bytes,
        };
        let level = Level::new(folder, options, filter);
        let gauge = level.gauge();
        let answers = ports.iter().map(|_| Vec::new()).collect();
        let worker = Worker { level, keeping, answers, ports };
        let run = move || worker.run(&queue);
        threads.push(std::thread::Builder::new().name("onym-cs-disk".into()).spawn(run)?);
        Ok(Disk { jobs, gauge })
    }
}

struct Worker {
    level: Level,
    keeping: Arc<AtomicUsize>,
    ports: Vec<ShardPort>,
    /// By shard.
    answers: Vec<Vec<DiskAnswer>>,
}

impl Worker {
    fn run(mut self, queue: &Receiver<DiskJob>) {
        loop {
            self.level.open();
            match queue.recv_timeout(self.level.patience()) {
                Ok(job) => {
                    self.take(job);
                    queue.try_iter().take(TOGETHER).for_each(|job| self.take(job));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            self.answer();
            self.level.tend();
        }
    }

    fn take(&mut self, job: DiskJob) {
        match job {
            DiskJob::Find { shard, number, interest } => {
                let interest = Interest::parse(&interest).ok();
                let found = interest.and_then(|interest| self.level.find(&interest));
                if let Some(answers) = self.answers.get_mut(usize::from(shard)) {
                    answers.push(DiskAnswer { number, found });
                }
            }
            DiskJob::Keep(offer) => {
                self.keeping.fetch_sub(1, Ordering::Relaxed);
                self.level.keep(Found { packet: offer.bytes, fresh_ms: offer.fresh_ms });
            }
            DiskJob::Erase { name, limit, reply } => {
                reply.send(self.level.erase(name.as_ref(), limit));
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
}
