//! What threads of Zenoh leave for the bridge: bounded, and it wakes it.

use crate::queries::{QUERIES_MAX, refuse};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zenoh::query::Query;

/// What a value takes beside its octets, about.
const OVERHEAD: usize = 64;

/// Whether a topic has subscribers in Zenoh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interest {
    Some,
    None,
}

#[derive(Debug)]
pub(crate) struct Inbox {
    left: Mutex<Left>,
    wake: OwnedFd,
    octets_max: usize,
}

/// What is there.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Topics with values.
    pub(crate) values: VecDeque<(Arc<str>, Vec<u8>)>,
    /// Topics whose subscribers in Zenoh came or went.
    pub(crate) matched: BTreeMap<Arc<str>, Interest>,
    pub(crate) queries: Vec<Query>,
    octets: usize,
    dropped: u64,
}

fn octets(topic: &str, payload: &[u8]) -> usize {
    OVERHEAD + topic.len() + payload.len()
}

impl Inbox {
    pub(crate) fn new(octets_max: usize) -> std::io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { left: Mutex::default(), wake, octets_max })
    }

    fn left(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // Full: it is awake.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Leaves a value; it is dropped and counted where there is no room.
    pub(crate) fn value(&self, topic: &str, payload: Vec<u8>) {
        let mut left = self.left();
        let more = octets(topic, &payload);
        if left.octets + more > self.octets_max {
            left.dropped += 1;
            return;
        }
        left.octets += more;
        left.values.push_back((topic.into(), payload));
        drop(left);
        self.wake();
    }

    /// Whether a topic has subscribers in Zenoh, from now on.
    pub(crate) fn matched(&self, topic: &Arc<str>, interest: Interest) {
        self.left().matched.insert(Arc::clone(topic), interest);
        self.wake();
    }

    /// Leaves a query; one for which there is no room is told so, and counted.
    pub(crate) fn query(&self, query: Query) {
        let mut left = self.left();
        if left.queries.len() >= QUERIES_MAX {
            left.dropped += 1;
            drop(left);
            return refuse(&query, "too many queries");
        }
        left.queries.push(query);
        drop(left);
        self.wake();
    }

    /// To wait on.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// Everything that is there.
    pub(crate) fn take(&self) -> Left {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
        let mut left = self.left();
        let dropped = left.dropped;
        std::mem::replace(&mut *left, Left { dropped, ..Left::default() })
    }

    /// Values and queries for which there was no room.
    pub(crate) fn dropped(&self) -> u64 {
        self.left().dropped
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    #[test]
    fn who_puts_more_than_is_taken_loses_the_newest_and_it_is_counted() {
        let inbox = Inbox::new(1000).unwrap();
        (0..100_u8).for_each(|number| inbox.value("a", vec![number; 10]));
        // Empty ones take room, too.
        (0..100).for_each(|_| inbox.value("a", Vec::new()));
        let left = inbox.take();
        assert!(left.values.len() >= 1000 / octets("a", &[0; 10]) && left.values.len() < 20);
        assert_eq!(left.values[0].1, [0; 10]);
        assert_eq!(inbox.dropped(), 200 - left.values.len() as u64);
        inbox.value("a", vec![1]);
        assert_eq!(inbox.take().values.len(), 1, "there is room again");
    }

    #[test]
    fn of_a_topic_only_the_last_word_on_its_subscribers_is_kept() {
        let inbox = Inbox::new(0).unwrap();
        let topic: Arc<str> = "a".into();
        for _ in 0..1000 {
            inbox.matched(&topic, Interest::Some);
            inbox.matched(&topic, Interest::None);
        }
        assert_eq!(inbox.take().matched, BTreeMap::from([(topic, Interest::None)]));
        assert!(inbox.take().matched.is_empty());
    }
}
