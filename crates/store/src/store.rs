//! A store for threads: one of its own that writes, any number that read.

use crate::Error;
use crate::bucket::Afar;
use crate::carrier::Carrier;
use crate::change::{Change, OwnerId};
use crate::disk::Disk;
use crate::index::Note;
use crate::job::{self, Answers, Job, OnDone};
use crate::options::Options;
use crate::reader::Reader;
use crate::tally::Stats;
use crate::writer::{Gone, Recovery, Scrubbed, Writer, scrub_far};
use onym_crypto::edge::unix_now_ms;
use onym_wire::name::{Name, NameRef};
use std::sync::Arc;
use std::sync::mpsc::{
    Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel,
};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Octets and changes that are made in one group.
const GROUP_OCTETS: usize = 4 << 20;
const GROUP_CHANGES: usize = 8192;
/// After so long without a change, background work goes on.
const IDLE: Duration = Duration::from_millis(20);
/// At least so often, also under load.
const BACKGROUND_EVERY: Duration = Duration::from_secs(1);
/// How long the index may lag behind the log while nobody writes.
const CHECKPOINT_AFTER: Duration = Duration::from_secs(5);
/// A segment of which less is alive is compacted.
const COMPACT_BELOW: f64 = 0.5;
/// How often each segment is checked.
const SCRUB_ALL_EVERY: Duration = Duration::from_secs(7 * 86_400);

/// A store. Dropping it waits for what was asked, and makes the index durable.
#[derive(Debug)]
pub struct Store {
    jobs: SyncSender<Job>,
    reader: ReaderOf,
    recovery: Recovery,
    thread: Option<JoinHandle<()>>,
    carrier: Option<Carrier>,
}

/// Makes readers without asking the thread that writes.
struct ReaderOf(Box<dyn Fn() -> Reader + Send + Sync>);

impl std::fmt::Debug for ReaderOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReaderOf")
    }
}

impl Store {
    /// Opens the store on `disk`, or begins one, and starts the thread that writes it.
    ///
    /// # Errors
    /// Those of [`Writer::open`].
    pub fn open(disk: impl Disk + 'static, options: Options) -> Result<Self, Error> {
        let (writer, recovery) = Writer::open(Arc::new(disk), options, unix_now_ms())?;
        Self::start(writer, recovery, options)
    }

    /// As [`Store::open`], with a bucket for full segments, and a thread that brings them there.
    ///
    /// # Errors
    /// Those of [`Writer::open_with`].
    pub fn open_with(
        disk: impl Disk + 'static,
        afar: Option<&Afar>,
        options: Options,
    ) -> Result<Self, Error> {
        let (writer, recovery) = Writer::open_with(Arc::new(disk), afar, options, unix_now_ms())?;
        let mut store = Self::start(writer, recovery, options)?;
        if afar.is_some() {
            store.carrier = Some(Carrier::start(store.jobs.clone())?);
        }
        Ok(store)
    }

    /// As [`Store::open`], and what is oldest gives way ([`Writer::give_way`]).
    ///
    /// # Errors
    /// Those of [`Writer::open`].
    pub fn open_ring(
        disk: impl Disk + 'static,
        options: Options,
        gone: Gone,
    ) -> Result<Self, Error> {
        let (mut writer, recovery) = Writer::open(Arc::new(disk), options, unix_now_ms())?;
        writer.give_way(gone);
        Self::start(writer, recovery, options)
    }

    fn start(writer: Writer, recovery: Recovery, options: Options) -> Result<Self, Error> {
        let (jobs, queue) = sync_channel(options.queue_groups.max(1));
        let shared = writer.shared();
        let reader = ReaderOf(Box::new(move || Reader::new(Arc::clone(&shared))));
        let thread = std::thread::Builder::new()
            .name("onym-store".into())
            .spawn(move || Worker::new(writer, queue).run())?;
        Ok(Self { jobs, reader, recovery, thread: Some(thread), carrier: None })
    }

    /// What the start found.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        self.recovery
    }

    /// A reader, for any thread.
    #[must_use]
    pub fn reader(&self) -> Reader {
        (self.reader.0)()
    }

    /// Makes `changes` and waits until they are on the disk. Waits for room in the queue, too.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn apply(&self, changes: Vec<Change>) -> Result<Answers, Error> {
        let (say, hear) = channel();
        let done = Box::new(move |answers| {
            let _ = say.send(answers);
        });
        self.jobs.send(Job::Apply(changes, done)).map_err(|_| Error::Closed)?;
        hear.recv().map_err(|_| Error::Closed)
    }

    /// Asks for `changes`; `done` is called by the thread that writes once they are on the disk.
    ///
    /// # Errors
    /// The changes, when the queue is full or the store closed: ask again later.
    pub fn try_apply(
        &self,
        changes: Vec<Change>,
        done: impl FnOnce(Answers) + Send + 'static,
    ) -> Result<(), Vec<Change>> {
        match self.jobs.try_send(Job::Apply(changes, Box::new(done))) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => match job {
                Job::Apply(changes, _) => Err(changes),
                _ => Err(Vec::new()),
            },
        }
    }

    fn with<R: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Writer) -> R + Send + 'static,
    ) -> Result<R, Error> {
        job::with(&self.jobs, ask).ok_or(Error::Closed)
    }

    /// Has the thread that writes do something, when it comes to it; not when its queue is full.
    pub(crate) fn later(&self, ask: impl FnOnce(&mut Writer) + Send + 'static) {
        let _ = self.jobs.try_send(Job::With(Box::new(ask)));
    }

    /// The owner called `name`, which is remembered.
    ///
    /// # Errors
    /// Those of [`Writer::owner`].
    pub fn owner(&self, name: NameRef<'_>) -> Result<OwnerId, Error> {
        let name = name.to_name();
        self.with(move |writer| writer.owner(unix_now_ms(), name.as_ref()))?
    }

    /// The names of owners.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn owners(&self) -> Result<Vec<(OwnerId, Name)>, Error> {
        self.with(|writer| writer.owners().map(|(id, name)| (id, name.to_name())).collect())
    }

    /// Notes whose keys begin with `prefix`.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub fn notes(&self, prefix: &[u8]) -> Result<Vec<Note>, Error> {
        let prefix = prefix.to_vec();
        self.with(move |writer| writer.notes(&prefix))?
    }

    /// What there is.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub fn stats(&self) -> Result<Stats, Error> {
        self.with(|writer| writer.stats())
    }

    /// Compacts every segment of which less than `share` is alive; octets of log that were freed.
    ///
    /// # Errors
    /// [`Error::Disk`] and [`Error::Index`].
    pub fn collect(&self, share: f64) -> Result<u64, Error> {
        let before = self.stats()?.log_octets;
        while self.with(|writer| writer.expire(unix_now_ms()))?? {}
        while self.with(move |writer| writer.compact(unix_now_ms(), share))?? {}
        Ok(before.saturating_sub(self.stats()?.log_octets))
    }

    /// Reads and checks everything, segment by segment; what is in the bucket only, from there.
    ///
    /// # Errors
    /// [`Error::Disk`] and [`Error::Index`].
    pub fn scrub(&self) -> Result<Scrubbed, Error> {
        let mut found = Scrubbed::default();
        for segment in self.with(|writer| writer.segments())? {
            let one = match self.with(move |writer| writer.far_file(segment))? {
                Some((file, len)) => scrub_far(file, segment, len)?,
                None => self.with(move |writer| writer.scrub(segment))??,
            };
            found.records += one.records;
            found.damaged_octets += one.damaged_octets;
            found.lost += one.lost;
            found.wrong_octets += one.wrong_octets;
        }
        Ok(found)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // It ends when the writer has; an errand that is out gives up by itself.
        drop(self.carrier.take());
        let _ = self.jobs.send(Job::End);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    writer: Writer,
    queue: Receiver<Job>,
    background_at: Instant,
    checkpoint_at: Instant,
    scrub_at: Instant,
    scrubbed: u32,
}

impl Worker {
    fn new(writer: Writer, queue: Receiver<Job>) -> Self {
        let now = Instant::now();
        let scrub_at = now + SCRUB_ALL_EVERY / 100;
        let checkpoint_at = now + CHECKPOINT_AFTER;
        Self { writer, queue, background_at: now, checkpoint_at, scrub_at, scrubbed: 0 }
    }

    fn run(mut self) {
        let mut held = None;
        loop {
            let job = match held.take() {
                Some(job) => Ok(job),
                None => self.queue.recv_timeout(IDLE),
            };
            match job {
                Ok(Job::Apply(changes, done)) => held = self.group(changes, done),
                Ok(Job::With(ask)) => ask(&mut self.writer),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(Job::End) | Err(RecvTimeoutError::Disconnected) => break,
            }
            if held.is_none() && Instant::now() >= self.background_at {
                self.background();
            }
        }
        if let Err(error) = self.writer.checkpoint() {
            tracing::warn!(%error, "store-checkpoint-failed");
        }
    }

    /// Makes one group of what waits; returns a job of another kind that was met.
    fn group(&mut self, mut changes: Vec<Change>, done: OnDone) -> Option<Job> {
        let mut parts = vec![(changes.len(), done)];
        let mut octets: usize = changes.iter().map(Change::len).sum();
        let mut met = None;
        while octets < GROUP_OCTETS && changes.len() < GROUP_CHANGES {
            match self.queue.try_recv() {
                Ok(Job::Apply(more, done)) => {
                    octets += more.iter().map(Change::len).sum::<usize>();
                    parts.push((more.len(), done));
                    changes.extend(more);
                }
                Ok(other) => {
                    met = Some(other);
                    break;
                }
                Err(_) => break,
            }
        }
        let mut answers = self.writer.apply(unix_now_ms(), changes).into_iter();
        for (count, done) in parts {
            done(answers.by_ref().take(count).collect());
        }
        met
    }

    /// One step of each kind of background work that is due.
    fn background(&mut self) {
        let now = Instant::now();
        self.background_at = now + BACKGROUND_EVERY;
        if let Err(error) = self.background_step(now) {
            tracing::warn!(%error, "store-background-failed");
        }
    }

    fn background_step(&mut self, now: Instant) -> Result<(), Error> {
        let more = self.writer.expire(unix_now_ms())?
            | self.writer.compact(unix_now_ms(), COMPACT_BELOW)?;
        if more {
            self.background_at = now + IDLE;
        }
        if now >= self.checkpoint_at {
            self.checkpoint_at = now + CHECKPOINT_AFTER;
            if self.writer.is_checkpoint_due() {
                self.writer.checkpoint()?;
            }
        }
        if now >= self.scrub_at {
            let segments = self.writer.segments();
            let next = segments.iter().find(|s| **s > self.scrubbed).or(segments.first());
            if let Some(segment) = next {
                self.scrubbed = *segment;
                self.writer.scrub(*segment)?;
            }
            let share = u32::try_from(segments.len().max(1)).unwrap_or(u32::MAX);
            self.scrub_at = now + SCRUB_ALL_EVERY / share;
        }
        Ok(())
    }
}
