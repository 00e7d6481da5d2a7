//! Threads that verify signatures. With one thread the data thread does it itself.

use onym_services::verify::Job;
use onym_sys::epoll::Waker;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Instant;

/// Most signatures in a batch: what is done comes back while the rest is verified, so that the next
/// Data are on their way meanwhile.
const BATCH_MAX: usize = 4;

/// The threads. They end with the handle.
#[derive(Debug)]
pub(crate) struct Verifiers {
    to: Vec<Sender<Vec<Job>>>,
    done: Receiver<Vec<Job>>,
    threads: Vec<JoinHandle<()>>,
    next: usize,
    under_way: usize,
}

impl Drop for Verifiers {
    fn drop(&mut self) {
        self.to.clear();
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
    /// Starts `threads` threads, none of their own for one.
    pub(crate) fn start(threads: usize, waker: &Arc<Waker>) -> io::Result<Self> {
        let (tell, done) = channel();
        let (mut to, mut handles) = (Vec::new(), Vec::new());
        for number in 0..if threads > 1 { threads } else { 0 } {
            let (send, jobs) = channel::<Vec<Job>>();
            let (tell, waker) = (tell.clone(), Arc::clone(waker));
            let run = move || {
                while let Ok(mut batch) = jobs.recv() {
                    batch.iter_mut().for_each(timed);
                    if tell.send(batch).is_err() {
                        return;
                    }
                    waker.wake();
                }
            };
            let name = format!("onym-verify-{number}");
            handles.push(std::thread::Builder::new().name(name).spawn(run)?);
            to.push(send);
        }
        Ok(Self { to, done, threads: handles, next: 0, under_way: 0 })
    }

    /// Jobs that the threads have.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way
    }

    /// Gives `jobs` to the threads, spread evenly. What is returned was done at once.
    pub(crate) fn submit(&mut self, mut jobs: Vec<Job>) -> Vec<Job> {
        if self.to.is_empty() {
            jobs.iter_mut().for_each(timed);
            return jobs;
        }
        let share = jobs.len().div_ceil(self.to.len()).clamp(1, BATCH_MAX);
        while !jobs.is_empty() {
            let rest = jobs.split_off(share.min(jobs.len()));
            let part = std::mem::replace(&mut jobs, rest);
            self.next = (self.next + 1) % self.to.len();
            self.under_way += part.len();
            // The thread lives as long as its sender.
            let _ = self.to[self.next].send(part);
        }
        Vec::new()
    }

    /// A batch that is done.
    pub(crate) fn finished(&mut self) -> Option<Vec<Job>> {
        let batch = self.done.try_recv().ok()?;
        self.under_way -= batch.len();
        Some(batch)
    }
}
