//! Packets as server-sent events.

use crate::node::{Nodes, Tail, Tailed};
use crate::refused::{Kind, Refused};
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// Tails at once; the node has four viewers, and `onym dump` wants one, too.
pub const TAILS_MAX: usize = 2;
/// Packets a second that are told; the others are counted.
pub const TAIL_RATE: u32 = 400;
/// A comment is sent after so long without a packet, so that a reader that went away is noticed.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// The tails of a console.
#[derive(Clone)]
pub(crate) struct Tails {
    nodes: Arc<dyn Nodes>,
    places: Arc<Semaphore>,
}

impl Tails {
    pub(crate) fn new(nodes: Arc<dyn Nodes>) -> Self {
        Self { nodes, places: Arc::new(Semaphore::new(TAILS_MAX)) }
    }

    /// The packets to come that match `filter`.
    pub(crate) async fn open(&self, filter: Vec<(String, String)>) -> Result<Response, Refused> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| {
            let text = format!("{TAILS_MAX} live tails are open in this console; end one of them");
            Refused::new(Kind::Busy, text)
        })?;
        let nodes = Arc::clone(&self.nodes);
        let opened = tokio::task::spawn_blocking(move || nodes.tail(&filter));
        let gone = |_| Refused::new(Kind::Failed, "the console ends");
        let tail = opened.await.map_err(gone)??;
        // Few: a reader that is slow makes the node count, and not this program remember.
        let (tell, told) = mpsc::channel(2);
        tokio::task::spawn_blocking(move || follow(tail, &tell, place));
        let body = Body::from_stream(stream::unfold(told, |mut told| async move {
            let text: String = told.recv().await?;
            Some((Ok::<_, Infallible>(Bytes::from(text)), told))
        }));
        Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
    }
}

/// Tells what `tail` sees until nobody reads; its place is free then.
fn follow(mut tail: Box<dyn Tail>, tell: &mpsc::Sender<String>, place: OwnedSemaphorePermit) {
    let mut share = Share { second: Instant::now(), left: TAIL_RATE };
    let mut told = Instant::now();
    // The head of the answer leaves with it.
    let mut text = ":\n\n".to_owned();
    loop {
        if !text.is_empty() {
            told = Instant::now();
            if tell.blocking_send(std::mem::take(&mut text)).is_err() {
                break;
            }
        }
        match tail.next() {
            Ok(tailed) => {
                text = frames(tailed, &mut share);
                if text.is_empty() && told.elapsed() >= HEARTBEAT {
                    text.push_str(":\n\n");
                }
                if tell.is_closed() {
                    break;
                }
            }
            Err(refused) => {
                let why = serde_json::Value::from(refused.message);
                let _ = tell.blocking_send(format!("event: end\ndata: {why}\n\n"));
                break;
            }
        }
    }
    drop(tail);
    drop(place);
}

/// How many packets may still be told in this second.
struct Share {
    second: Instant,
    left: u32,
}

/// The packets as events, and how many were left out, if any.
fn frames(tailed: Tailed, share: &mut Share) -> String {
    if share.second.elapsed() >= Duration::from_secs(1) {
        *share = Share { second: Instant::now(), left: TAIL_RATE };
    }
    let count = tailed.packets.len();
    let shown = count.min(share.left as usize);
    share.left -= u32::try_from(shown).unwrap_or(share.left);
    let mut out = String::new();
    for packet in &tailed.packets[..shown] {
        // JSON on one line.
        let _ = write!(out, "data: {packet}\n\n");
    }
    let left_out = tailed.missed + (count - shown) as u64;
    if left_out > 0 {
        let _ = write!(out, "event: missed\ndata: {left_out}\n\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_rate_is_counted_and_told() {
        let mut share = Share { second: Instant::now(), left: TAIL_RATE };
        let tailed = |n: u32| Tailed { packets: vec!["{}".into(); n as usize], missed: 3 };
        let text = frames(tailed(TAIL_RATE + 7), &mut share);
        assert_eq!(text.matches("data: {}\n\n").count(), TAIL_RATE as usize);
        assert!(text.ends_with("event: missed\ndata: 10\n\n"), "{text}");
        let text = frames(tailed(2), &mut share);
        assert_eq!(text, "event: missed\ndata: 5\n\n", "nothing is left of this second");
        assert_eq!(frames(Tailed::default(), &mut share), "");
    }
}
