//! How an item is retained, as its publisher wants it, and what becomes of its promise that the next
//! publication follows within so long (P-79, P-82, P-83).

use super::source::Source;
use crate::data::{Keep, Told};
use onym_tables::Tick;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Most publications of one item.
pub const DEPTH_MAX: u32 = 65_535;
/// The longest time after which a publication is forgotten for its age, and the longest deadline.
pub const LIFETIME_MAX: Duration = Duration::from_secs(3600);
/// The highest priority.
pub const PRIORITY_MAX: u8 = 7;

/// How the publications of an item are retained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Terms {
    /// So many of the last ones; none: not any more.
    pub(super) depth: u32,
    /// Each for no longer than this.
    pub(super) lifetime: Option<Duration>,
    /// The next one follows within so long.
    pub(super) deadline: Option<Duration>,
    /// What an application that is behind in several items is told first.
    pub(super) priority: u8,
    /// Its publisher waits for who is behind (P-93).
    pub(super) waits: bool,
}

impl Terms {
    /// What an application wants, unless it is more than there may be.
    pub(super) fn wanted(keep: Keep) -> Option<Self> {
        let depth = u32::try_from(keep.count).ok().filter(|depth| *depth <= DEPTH_MAX)?;
        let (lifetime, deadline) = (time(keep.lifetime_ms), time(keep.deadline_ms.into()));
        let is_long = |time: Option<Duration>| time.is_some_and(|time| time > LIFETIME_MAX);
        let Keep { priority, waits, .. } = keep;
        let is_fit = !is_long(lifetime) && !is_long(deadline) && priority <= PRIORITY_MAX;
        is_fit.then_some(Self { depth, lifetime, deadline, priority, waits })
    }

    /// What the frames of an item of another node say.
    pub(super) fn told(told: Told) -> Self {
        Self {
            depth: told.depth.min(DEPTH_MAX),
            // Of each publication by itself.
            lifetime: None,
            deadline: time(told.deadline_ms.into()).map(|time| time.min(LIFETIME_MAX)),
            priority: told.priority.min(PRIORITY_MAX),
            // Its publisher does not hear of readers here.
            waits: false,
        }
    }
}

fn time(ms: u64) -> Option<Duration> {
    (ms > 0).then(|| Duration::from_millis(ms))
}

/// What was promised of histories.
#[derive(Debug, Default)]
pub(super) struct Promises {
    /// When the next publication is late.
    due: BTreeMap<Source, Tick>,
    by_time: BTreeSet<(Tick, Source)>,
    /// Publications that did not come in time.
    pub(super) overdue: u64,
}

impl Promises {
    /// A publication came: the next one follows within so long, or when it will.
    pub(super) fn came(&mut self, now: Tick, source: &Source, deadline: Option<Duration>) {
        self.forget(source);
        if let Some(deadline) = deadline {
            self.due.insert(source.clone(), now + deadline);
            self.by_time.insert((now + deadline, source.clone()));
        }
    }

    pub(super) fn forget(&mut self, source: &Source) {
        if let Some(due) = self.due.remove(source) {
            self.by_time.remove(&(due, source.clone()));
        }
    }

    /// The next history of which nothing came in time. It is told once, until something comes.
    pub(super) fn broken(&mut self, now: Tick) -> Option<Source> {
        let (_, source) = self.by_time.first().filter(|(due, _)| *due <= now).cloned()?;
        self.forget(&source);
        self.overdue += 1;
        Some(source)
    }

    pub(super) fn next_timeout(&self) -> Option<Tick> {
        self.by_time.first().map(|(due, _)| *due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_there_may_be_is_refused() {
        let (lifetime_ms, deadline_ms, priority) = (3_600_000, 3_600_000, 7);
        let keep = Keep { count: 65_535, lifetime_ms, deadline_ms, priority, waits: true };
        assert!(Terms::wanted(keep).is_some());
        for refused in [
            Keep { count: 65_536, ..keep },
            Keep { lifetime_ms: 3_600_001, ..keep },
            Keep { deadline_ms: 3_600_001, ..keep },
            Keep { priority: 8, ..keep },
        ] {
            assert_eq!(Terms::wanted(refused), None);
        }
        // Another node says what it likes.
        let told =
            Told { depth: u32::MAX, first: 0, lifetime_ms: 0, deadline_ms: u32::MAX, priority: 99 };
        let terms = Terms::told(told);
        assert_eq!((terms.depth, terms.deadline, terms.priority), (65_535, Some(LIFETIME_MAX), 7));
    }

    #[test]
    fn a_promise_is_broken_once_until_something_comes() {
        let mut promises = Promises::default();
        let (source, deadline) = (Source::Stream(1), Some(Duration::from_millis(100)));
        promises.came(Tick(0), &source, deadline);
        promises.came(Tick::from_ms(50), &source, deadline);
        assert_eq!(promises.next_timeout(), Some(Tick::from_ms(150)));
        assert_eq!(promises.broken(Tick::from_ms(149)), None);
        assert_eq!(promises.broken(Tick::from_ms(150)), Some(source.clone()));
        assert_eq!((promises.broken(Tick::from_ms(999)), promises.next_timeout()), (None, None));
        promises.came(Tick::from_ms(1000), &source, deadline);
        promises.came(Tick::from_ms(1050), &source, None);
        assert_eq!((promises.next_timeout(), promises.overdue), (None, 1));
    }
}
