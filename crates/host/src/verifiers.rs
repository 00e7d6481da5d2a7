//! Verifying signatures: in threads, or, with one thread, by the data thread in small pieces.

use onym_services::verify::Job;
use onym_sys::epoll::Waker;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

/// Signatures after which those that are done are sent on: few, so that the next Data are on their
/// way while the rest is verified, and several, so that each is not a wake-up of its own.
const BATCH: usize = 8;

/// Without threads: how long the data thread verifies between two rounds, in nanoseconds. A round
/// has a fixed cost, which a few signatures of RSA do not outweigh; and it must come often enough
/// that the other packets of a window are on their way meanwhile.
const PIECE_NS: u64 = 300_000;

/// What waits and what is done; the threads take what waits one by one, so that none of them is
/// without work while another has some left.
#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<Job>,
    done: VecDeque<Job>,
    /// Threads that wait for work.
    idle: usize,
    /// The data thread was woken and has not come yet.
    woken: bool,
    over: bool,
}

#[derive(Debug, Default)]
struct Common {
    queue: Mutex<Queue>,
    work: Condvar,
}

impl Common {
    /// Nothing panics while it holds the queue, which is whole between two statements anyway.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Verifies until the handle is dropped.
    fn run(&self, waker: &Waker) {
        let mut queue = self.queue();
        while !queue.over {
            let Some(mut job) = queue.waiting.pop_front() else {
                queue.idle += 1;
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
                continue;
            };
            drop(queue);
            timed(&mut job);
            queue = self.queue();
            queue.done.push_back(job);
            let enough = queue.done.len() >= BATCH || queue.waiting.is_empty();
            if enough && !std::mem::replace(&mut queue.woken, true) {
                drop(queue);
                waker.wake();
                queue = self.queue();
            }
        }
    }
}

/// The threads; they end with the handle. The queue has at most what the element allows under way.
#[derive(Debug)]
pub struct Verifiers {
    common: Arc<Common>,
    threads: Vec<JoinHandle<()>>,
    under_way: usize,
}

impl Drop for Verifiers {
    fn drop(&mut self) {
        self.common.queue().over = true;
        self.common.work.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn timed(job: &mut Job) {
    let begin = Instant::now();
    job.run();
    job.took_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
}

impl Verifiers {
    /// Starts `threads` threads, none of their own for one; they wake `waker` when something is done.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(threads: usize, waker: &Arc<Waker>) -> io::Result<Self> {
        let common = Arc::new(Common::default());
        let mut handles = Vec::new();
        for number in 0..if threads > 1 { threads } else { 0 } {
            let (common, waker) = (Arc::clone(&common), Arc::clone(waker));
            let name = format!("onym-verify-{number}");
            let thread = std::thread::Builder::new().name(name);
            handles.push(thread.spawn(move || common.run(&waker))?);
        }
        Ok(Self { common, threads: handles, under_way: 0 })
    }

    /// Jobs that are not finished.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.under_way
    }

    /// Whether [`Verifiers::finished`] has work of its own to do.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.threads.is_empty() && self.under_way > 0
    }

    /// Takes jobs.
    pub fn submit(&mut self, jobs: &mut Vec<Job>) {
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
    pub fn finished(&mut self, jobs: &mut Vec<Job>) {
        if self.under_way == 0 {
            return;
        }
        let mut queue = self.common.queue();
        queue.woken = false;
        if self.threads.is_empty() {
            let mut spent = 0;
            while spent < PIECE_NS
                && let Some(mut job) = queue.waiting.pop_front()
            {
                timed(&mut job);
                spent += job.took_ns;
                jobs.push(job);
            }
        } else {
            jobs.extend(queue.done.drain(..));
        }
        self.under_way -= jobs.len();
    }
}
