//! What the thread that writes is asked.

use crate::change::{Change, Done, Refused};
use crate::writer::Writer;
use std::sync::mpsc::{SyncSender, channel};

pub(crate) type Answers = Vec<Result<Done, Refused>>;
pub(crate) type OnDone = Box<dyn FnOnce(Answers) + Send>;
type OnWriter = Box<dyn FnOnce(&mut Writer) + Send>;

pub(crate) enum Job {
    Apply(Vec<Change>, OnDone),
    With(OnWriter),
    End,
}

/// Has the thread that writes do something, and waits for it; none when there is none any more.
pub(crate) fn with<R: Send + 'static>(
    jobs: &SyncSender<Job>,
    ask: impl FnOnce(&mut Writer) -> R + Send + 'static,
) -> Option<R> {
    let (say, hear) = channel();
    let job = Job::With(Box::new(move |writer| {
        let _ = say.send(ask(writer));
    }));
    jobs.send(job).ok()?;
    hear.recv().ok()
}
