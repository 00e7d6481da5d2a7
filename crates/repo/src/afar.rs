//! Interests for what is in the bucket only: they wait while threads fetch it, and are answered then.
//! Nothing else waits for them.

use onym_client::producer::Incoming;
use onym_store::FarRange;
use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Interests that wait.
const WAITING_MAX: usize = 256;
/// Ranges that are fetched at the same time.
const THREADS: usize = 4;
/// Ranges that one Interest may need, one after the other.
const TRIES_MAX: u32 = 4;

/// An Interest that waits.
#[derive(Debug)]
pub(crate) struct Late {
    pub(crate) incoming: Incoming,
    /// Ranges that were fetched for it.
    pub(crate) tries: u32,
}

type Number = (u32, u64);

/// Who waits for what.
#[derive(Debug)]
pub(crate) struct Waits {
    waiting: Mutex<HashMap<Number, Vec<Late>>>,
    jobs: SyncSender<FarRange>,
    came: Mutex<Receiver<(Number, bool)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Waits {
    /// Starts the threads; they end with it.
    ///
    /// # Errors
    /// Those of the operating system.
    pub(crate) fn start() -> io::Result<Arc<Self>> {
        let (jobs, queue) = sync_channel(WAITING_MAX);
        let (say, came) = channel();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..THREADS {
            let (queue, say) = (Arc::clone(&queue), say.clone());
            let run = move || fetch(&queue, &say);
            std::thread::Builder::new().name("onym-repo-far".into()).spawn(run)?;
        }
        Ok(Arc::new(Self { waiting: Mutex::default(), jobs, came: Mutex::new(came) }))
    }

    /// Whether an Interest waits for `range` now. Not when too many do.
    pub(crate) fn wait(&self, range: FarRange, incoming: &Incoming, tries: u32) -> bool {
        let mut waiting = lock(&self.waiting);
        let count: usize = waiting.values().map(Vec::len).sum();
        if count >= WAITING_MAX || tries >= TRIES_MAX {
            return false;
        }
        let number = range.number();
        if !waiting.contains_key(&number) && self.jobs.try_send(range).is_err() {
            return false;
        }
        let late = Late { incoming: incoming.clone(), tries: tries + 1 };
        waiting.entry(number).or_default().push(late);
        true
    }

    /// Those for whom something was fetched, and whether it came.
    pub(crate) fn take(&self) -> Option<(Vec<Late>, bool)> {
        let (number, is_there) = lock(&self.came).try_recv().ok()?;
        Some((lock(&self.waiting).remove(&number).unwrap_or_default(), is_there))
    }

    /// Whether anybody waits.
    pub(crate) fn is_any(&self) -> bool {
        !lock(&self.waiting).is_empty()
    }
}

fn fetch(queue: &Mutex<Receiver<FarRange>>, say: &Sender<(Number, bool)>) {
    loop {
        let Ok(range) = lock(queue).recv() else { return };
        // What went wrong is told by the store.
        let is_there = range.fetch().is_ok();
        if say.send((range.number(), is_there)).is_err() {
            return;
        }
    }
}
