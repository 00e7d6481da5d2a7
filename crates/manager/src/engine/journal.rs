//! The event log: what the manager saw and did, bounded, with readers that wait.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Mutex;
use tokio::sync::watch;

/// Events kept; older ones are forgotten, and a reader that was away sees how many it missed.
pub const EVENTS_MAX: usize = 4096;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// Its number, from 1.
    pub seq: u64,
    /// When, in milliseconds of the Unix epoch.
    pub at_ms: u64,
    /// What kind of thing: `started`, `gone`, `linked`, `scaled`, `alarm`, ….
    pub kind: String,
    /// What is concerned.
    pub object: String,
    /// For people.
    pub text: String,
    /// For programs.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub detail: Value,
}

/// The log.
#[derive(Debug)]
pub struct Journal {
    events: Mutex<VecDeque<Event>>,
    last: watch::Sender<u64>,
}

impl Default for Journal {
    fn default() -> Self {
        Self { events: Mutex::default(), last: watch::channel(0).0 }
    }
}

impl Journal {
    /// Notes an event.
    pub fn note(&self, kind: &str, object: &str, text: impl Into<String>, detail: Value) {
        let text = text.into();
        tracing::info!(kind, object, "{text}");
        let mut events = self.events.lock().expect("invariant: no panic under this lock");
        let seq = *self.last.borrow() + 1;
        if events.len() == EVENTS_MAX {
            events.pop_front();
        }
        events.push_back(Event {
            seq,
            at_ms: onym_crypto::edge::unix_now_ms(),
            kind: kind.to_owned(),
            object: object.to_owned(),
            text,
            detail,
        });
        self.last.send_replace(seq);
    }

    /// The events after `seq`.
    #[must_use]
    pub fn after(&self, seq: u64) -> Vec<Event> {
        let events = self.events.lock().expect("invariant: no panic under this lock");
        let from = events.partition_point(|e| e.seq <= seq);
        events.iter().skip(from).cloned().collect()
    }

    /// The number of the newest event, and a way to wait for the next.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }
}
