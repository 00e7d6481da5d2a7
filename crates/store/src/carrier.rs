//! The thread that runs errands between the disk and the bucket, in the background.

use crate::job::{Job, with};
use crate::writer::Writer;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, SyncSender, channel};
use std::time::Duration;

/// How often it is looked whether there is something to do.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long it rests after an errand that failed: at first, and at most.
const REST: Duration = Duration::from_millis(500);
const REST_MAX: Duration = Duration::from_secs(60);

/// The thread, as long as it is wanted.
#[derive(Debug)]
pub(crate) struct Carrier {
    /// Dropped, it ends the thread.
    _wanted: Sender<()>,
}

impl Carrier {
    pub(crate) fn start(jobs: SyncSender<Job>) -> io::Result<Self> {
        let (wanted, ended) = channel::<()>();
        std::thread::Builder::new().name("onym-store-far".into()).spawn(move || {
            let mut rest = REST;
            loop {
                let wait = match step(&jobs) {
                    None => return,
                    Some(Step::Nothing) => LOOK_EVERY,
                    Some(Step::Done) => {
                        rest = REST;
                        Duration::ZERO
                    }
                    Some(Step::Failed) => {
                        let now = rest;
                        rest = (rest * 2).min(REST_MAX);
                        now
                    }
                };
                match ended.recv_timeout(wait) {
                    Err(RecvTimeoutError::Timeout) => {}
                    _ => return,
                }
            }
        })?;
        Ok(Self { _wanted: wanted })
    }
}

enum Step {
    Nothing,
    Done,
    Failed,
}

/// One errand, if there is one; none when the store is closed.
fn step(jobs: &SyncSender<Job>) -> Option<Step> {
    let errand = match with(jobs, Writer::next_errand)? {
        Ok(Some(errand)) => errand,
        Ok(None) => return Some(Step::Nothing),
        Err(error) => {
            tracing::warn!(%error, "store-errand-not-begun");
            return Some(Step::Failed);
        }
    };
    let ended = errand.run();
    let is_done = ended.is_done();
    if let Err(error) = with(jobs, move |writer| writer.errand_ended(ended))? {
        tracing::warn!(%error, "store-errand-not-noted");
        return Some(Step::Failed);
    }
    Some(if is_done { Step::Done } else { Step::Failed })
}
