//! Long work, done by threads of its own or, without any, by the engine's thread in small pieces
//! between two rounds.

use crate::bell::{Bell, Wake};
use crate::sync::thread::{Builder, JoinHandle};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use std::{fmt, io};

/// Jobs after which those that are done are handed back: few, so that what waits for them goes on
/// while the rest is worked at, and several, so that each is not a wake-up of its own.
const BATCH: usize = 8;

/// Without threads: how long the engine's thread works between two rounds. A round has a fixed
/// cost, which a few jobs do not outweigh; and it must come often enough that the other packets of
/// a window are on their way meanwhile.
const PIECE: Duration = Duration::from_micros(300);

/// What waits and what is done; the threads take what waits one by one, so that none of them is
/// without work while another has some left.
#[derive(Debug)]
struct Queue<J> {
    waiting: VecDeque<J>,
    done: VecDeque<J>,
    /// Threads that wait for work.
    idle: usize,
    is_over: bool,
}

impl<J> Queue<J> {
    /// Whether what is done is enough to be handed back.
    fn is_due(&self) -> bool {
        self.done.len() >= BATCH || self.waiting.is_empty() && !self.done.is_empty()
    }
}

struct Common<J> {
    queue: Mutex<Queue<J>>,
    work: Condvar,
    run: fn(&mut J),
}

impl<J> Common<J> {
    /// The queue is whole between two statements, whoever panicked.
    fn queue(&self) -> MutexGuard<'_, Queue<J>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until the handle is dropped.
    fn work<W: Wake>(&self, bell: &Bell<W>) {
        let mut queue = self.queue();
        while !queue.is_over {
            let Some(mut job) = queue.waiting.pop_front() else {
                queue.idle += 1;
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
                continue;
            };
            drop(queue);
            (self.run)(&mut job);
            queue = self.queue();
            queue.done.push_back(job);
            if queue.is_due() {
                drop(queue);
                bell.ring();
                queue = self.queue();
            }
        }
    }
}

/// The threads; they end with the handle. As many jobs are under way as its owner submits: it bounds
/// them by not receiving ([`crate::Driver::may_receive`]).
pub struct Jobs<J> {
    common: Arc<Common<J>>,
    threads: Vec<JoinHandle<()>>,
    under_way: usize,
}

impl<J> fmt::Debug for Jobs<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("under_way", &self.under_way).finish_non_exhaustive()
    }
}

impl<J> Drop for Jobs<J> {
    fn drop(&mut self) {
        self.common.queue().is_over = true;
        self.common.work.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl<J: Send + 'static> Jobs<J> {
    /// Starts `threads` threads, none of their own for one, that do `run` with each job; they ring
    /// `bell` when enough is done.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start<W>(threads: usize, bell: &Arc<Bell<W>>, run: fn(&mut J)) -> io::Result<Self>
    where
        W: Wake + Send + Sync + 'static,
    {
        let (waiting, done) = (VecDeque::new(), VecDeque::new());
        let queue = Mutex::new(Queue { waiting, done, idle: 0, is_over: false });
        let common = Arc::new(Common { queue, work: Condvar::new(), run });
        let mut jobs = Self { common, threads: Vec::new(), under_way: 0 };
        for number in 0..if threads > 1 { threads } else { 0 } {
            let (common, bell) = (Arc::clone(&jobs.common), Arc::clone(bell));
            let thread = Builder::new().name(format!("onym-job-{number}"));
            jobs.threads.push(thread.spawn(move || common.work(&bell))?);
        }
        Ok(jobs)
    }
}

impl<J> Jobs<J> {
    /// Jobs that were not handed back.
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Whether [`Jobs::finished`] has something to hand back or to do.
    pub fn has_work(&self) -> bool {
        self.under_way > 0 && (self.threads.is_empty() || self.common.queue().is_due())
    }

    /// Takes jobs.
    pub fn submit(&mut self, jobs: &mut Vec<J>) {
        self.under_way += jobs.len();
        let mut queue = self.common.queue();
        let wanted = queue.idle.min(jobs.len());
        queue.waiting.extend(jobs.drain(..));
        drop(queue);
        for _ in 0..wanted {
            self.common.work.notify_one();
        }
    }

    /// Appends what is done to `jobs`; without threads a few are done here.
    pub fn finished(&mut self, jobs: &mut Vec<J>) {
        if self.under_way == 0 {
            return;
        }
        let before = jobs.len();
        let mut queue = self.common.queue();
        if self.threads.is_empty() {
            let begin = Instant::now();
            while let Some(mut job) = queue.waiting.pop_front() {
                (self.common.run)(&mut job);
                jobs.push(job);
                if begin.elapsed() >= PIECE {
                    break;
                }
            }
        } else {
            jobs.extend(queue.done.drain(..));
        }
        drop(queue);
        self.under_way -= jobs.len() - before;
    }
}
