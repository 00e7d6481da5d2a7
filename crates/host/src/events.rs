//! The latest events, numbered.

use onym_services::Event;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// Events that are kept; older ones are lost and counted.
const KEPT: usize = 4096;

#[derive(Debug, Default)]
struct Ring {
    /// The number of the first.
    first: u64,
    events: VecDeque<Value>,
}

/// An event as the control interface writes it.
#[derive(Debug, Serialize)]
struct Row<'a> {
    seq: u64,
    at_ms: u64,
    #[serde(flatten)]
    event: &'a Event,
}

/// The log, shared by all threads of a service.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    ring: Mutex<Ring>,
    news: Notify,
    boot: u64,
}

impl EventLog {
    pub(crate) fn new(boot: u64) -> Self {
        let ring = Ring { first: 1, events: VecDeque::new() };
        Self { ring: Mutex::new(ring), news: Notify::new(), boot }
    }

    pub(crate) fn push(&self, at_ms: u64, event: &Event) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let seq = ring.first + ring.events.len() as u64;
        let row = Row { seq, at_ms, event };
        ring.events.push_back(serde_json::to_value(row).unwrap_or_default());
        if ring.events.len() > KEPT {
            ring.events.pop_front();
            ring.first += 1;
        }
        drop(ring);
        self.news.notify_waiters();
    }

    /// What is newer than `after`.
    pub(crate) fn since(&self, after: u64) -> Value {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let last = ring.first + ring.events.len() as u64 - 1;
        let skip = usize::try_from((after + 1).saturating_sub(ring.first)).unwrap_or(usize::MAX);
        let lost = ring.first.saturating_sub(after + 1);
        let events: Vec<&Value> = ring.events.iter().skip(skip).collect();
        json!({ "events": events, "last": last, "lost": lost, "boot": self.boot })
    }

    /// As [`EventLog::since`], waiting until there is something or the time is over.
    pub(crate) async fn wait(&self, after: u64, patience: std::time::Duration) -> Value {
        let end = tokio::time::Instant::now() + patience;
        loop {
            // Before looking: what comes in between must wake us.
            let news = self.news.notified();
            tokio::pin!(news);
            news.as_mut().enable();
            let found = self.since(after);
            let is_empty = found["events"].as_array().is_none_or(Vec::is_empty);
            if !is_empty || tokio::time::timeout_at(end, news).await.is_err() {
                return if is_empty { self.since(after) } else { found };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_services::Side;

    #[test]
    fn old_events_are_lost_and_counted_and_numbers_go_on() {
        let log = EventLog::new(7);
        for _ in 0..KEPT + 10 {
            log.push(1, &Event::Frozen { side: Side::Consumer });
        }
        let all = log.since(0);
        assert_eq!(
            (all["lost"].as_u64(), all["last"].as_u64()),
            (Some(10), Some(KEPT as u64 + 10))
        );
        assert_eq!(all["events"][0]["seq"], 11);
        let last = log.since(KEPT as u64 + 9);
        assert_eq!(last["events"].as_array().map(Vec::len), Some(1));
        assert_eq!(log.since(KEPT as u64 + 10)["events"].as_array().map(Vec::len), Some(0));
    }
}
