//! The event log as server-sent events: for pages and for programs that only listen.

use super::{App, Refusal};
use crate::engine::{Event, Manager};
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::json;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};

/// Streams at once. Each has one of the connections of the listener, and these must not run out.
pub(super) const STREAMS_MAX: usize = 16;
/// A comment is sent after so long without an event, so that a reader that went away is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// One reader.
struct Reader {
    manager: Manager,
    last: watch::Receiver<u64>,
    after: u64,
    waiting: VecDeque<Event>,
    _place: OwnedSemaphorePermit,
}

/// The events after `after`, and those to come.
pub(super) fn open(app: &App, after: u64) -> Result<Response, Refusal> {
    let place = app.streams.clone().try_acquire_owned().map_err(|_| {
        let text =
            format!("{STREAMS_MAX} event streams are open; try again later, or use /v1/events");
        Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", text)
    })?;
    let last = app.manager.shared.journal.watch();
    let manager = app.manager.clone();
    let reader = Reader { manager, last, after, waiting: VecDeque::new(), _place: place };
    let body = Body::from_stream(stream::unfold(reader, |mut reader| async move {
        let text = reader.next().await;
        Some((Ok::<_, Infallible>(Bytes::from(text)), reader))
    }));
    let headers =
        [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, body).into_response())
}

impl Reader {
    /// What is sent next.
    async fn next(&mut self) -> String {
        if self.waiting.is_empty() {
            let after = self.after;
            let newer = self.last.wait_for(|last| *last > after);
            if tokio::time::timeout(HEARTBEAT, newer).await.is_err() {
                return ":\n\n".to_owned();
            }
            self.waiting = self.manager.shared.journal.after(after).into();
        }
        let Some(event) = self.waiting.pop_front() else { return ":\n\n".to_owned() };
        let lost = event.seq.saturating_sub(self.after + 1);
        self.after = event.seq;
        frame(&event, lost)
    }
}

/// One event; before it how many were forgotten since the last one that was sent, if any.
fn frame(event: &Event, lost: u64) -> String {
    let mut out = String::new();
    if lost > 0 {
        let _ = write!(out, "event: lost\ndata: {{\"lost\":{lost}}}\n\n");
    }
    // JSON on one line; kinds are words of ours.
    let _ = write!(out, "id: {}\nevent: {}\ndata: {}\n\n", event.seq, event.kind, json!(event));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_frame_with_its_number_and_what_was_lost_before_it() {
        let event = Event {
            seq: 7,
            at_ms: 1,
            kind: "started".into(),
            object: "cs".into(),
            text: "two\nlines".into(),
            detail: serde_json::Value::Null,
        };
        let text = frame(&event, 0);
        assert!(text.starts_with("id: 7\nevent: started\ndata: {"), "{text}");
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(frame(&event, 3).starts_with("event: lost\ndata: {\"lost\":3}\n\nid: 7\n"));
    }
}
