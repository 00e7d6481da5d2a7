//! Spans on their way to a collector: a thread takes them from the shards, holds them, and posts them
//! by OTLP over HTTP.
//!
//! What finds no room is lost and counted; no shard and no packet waits for the collector.

mod otlp;

use crate::config::{Config, Telemetry};
use crate::control::request::Request;
use crate::exported::{Exported, add};
use crate::remote::{NodeError, Remote};
use crate::self_name::self_name;
use onym_engine::Clock;
use onym_http::client::{Body, Client, HttpError, Method};
use onym_watch::Span;
use otlp::{Moment, Resource};
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// How often spans are taken from the shards.
const EACH: Duration = Duration::from_secs(1);
/// Spans that wait for the collector.
const HELD_MAX: usize = 8192;
/// Spans of one request.
const BATCH: usize = 512;
/// How long the collector may take for a request.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same when the node stops.
const LAST_PATIENCE: Duration = Duration::from_secs(1);
/// How long a collector that failed is left alone at most; at first [`EACH`].
const REST_MAX: Duration = Duration::from_secs(30);

/// The thread; when dropped it posts what there is and ends.
#[derive(Debug)]
pub(crate) struct Exporter {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Exporter {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the configuration says of it, before the node runs.
#[derive(Debug)]
pub(crate) struct Exporting {
    collector: String,
    /// What the node is called.
    name: String,
    exported: Arc<Exported>,
}

impl Exporting {
    pub(crate) fn of(config: &Config) -> Self {
        let Telemetry { collector, name, .. } = &config.telemetry;
        let name = match name.as_str() {
            "" => self_name(config).to_string(),
            name => name.to_owned(),
        };
        Self { collector: collector.clone(), name, exported: Arc::default() }
    }

    /// What will be counted.
    pub(crate) fn counts(&self) -> Arc<Exported> {
        Arc::clone(&self.exported)
    }

    /// Begins to post the spans of the node that `remote` asks, where there is a collector.
    ///
    /// # Errors
    /// [`NodeError`]: the collector is no URL, or there is no thread.
    pub(crate) fn start(self, remote: Remote, clock: Clock) -> Result<Option<Exporter>, NodeError> {
        if self.collector.is_empty() {
            return Ok(None);
        }
        let client = Client::of_url(&self.collector, None, PATIENCE);
        let client = client.map_err(|e| NodeError::Setup(format!("telemetry.collector: {e}")))?;
        let system = |source| NodeError::System { doing: "starting a thread", source };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(system)?;
        let (stop, stopped) = oneshot::channel();
        let post = Post {
            client: client.keeping(),
            resource: Resource { name: self.name },
            held: VecDeque::new(),
            rest: Duration::ZERO,
            again: None,
            exported: self.exported,
        };
        let run = move || runtime.block_on(post.run(remote, clock, stopped));
        let thread = std::thread::Builder::new().name("onym-spans".into()).spawn(run);
        Ok(Some(Exporter { stop: Some(stop), thread: Some(thread.map_err(system)?) }))
    }
}

/// Spans on their way to the collector.
struct Post {
    client: Client,
    resource: Resource,
    held: VecDeque<Span>,
    /// How long the collector was left alone when it failed last; zero while it answers.
    rest: Duration,
    /// When it is tried again.
    again: Option<Instant>,
    exported: Arc<Exported>,
}

impl Post {
    async fn run(mut self, remote: Remote, clock: Clock, mut stopped: oneshot::Receiver<()>) {
        let mut is_last = false;
        while !is_last {
            tokio::select! {
                () = tokio::time::sleep(EACH) => {}
                _ = &mut stopped => is_last = true,
            }
            let Ok(spans) = remote.ask(|reply| Request::Spans { reply }) else { return };
            let moment = Moment::of(clock);
            spans.iter().for_each(tell);
            self.hold(spans);
            if is_last {
                self.client = self.client.clone().within(LAST_PATIENCE);
                self.again = None;
            }
            self.post(moment).await;
        }
        add(&self.exported.lost, self.held.len());
    }

    /// Keeps spans until the collector takes them, those for which there is room.
    fn hold(&mut self, mut spans: Vec<Span>) {
        let room = HELD_MAX.saturating_sub(self.held.len());
        add(&self.exported.lost, spans.len().saturating_sub(room));
        spans.truncate(room);
        if self.held.is_empty() {
            // Nothing is moved.
            self.held = spans.into();
        } else {
            self.held.extend(spans);
        }
    }

    /// Posts what is held, unless the collector is left alone.
    async fn post(&mut self, moment: Moment) {
        if self.again.is_some_and(|again| Instant::now() < again) {
            return;
        }
        while !self.held.is_empty() {
            let count = self.held.len().min(BATCH);
            let body = otlp::body(&self.resource, self.held.range(..count), moment);
            let body = Body::Octets("application/json", body.into());
            match self.client.ask(Method::POST, "/v1/traces", body).await {
                Ok(answer) => {
                    let refused = otlp::rejected(&answer).min(count);
                    add(&self.exported.taken, count - refused);
                    add(&self.exported.refused, refused);
                }
                Err(error) if is_final(&error) => {
                    tracing::warn!(%error, spans = count, "the collector refuses spans");
                    add(&self.exported.refused, count);
                }
                Err(error) => return self.leave_alone(&error),
            }
            self.held.drain(..count);
            (self.rest, self.again) = (Duration::ZERO, None);
        }
    }

    fn leave_alone(&mut self, error: &HttpError) {
        if self.rest.is_zero() {
            tracing::warn!(%error, "the collector does not take spans; they are kept while there is room");
        }
        self.rest = (self.rest * 2).clamp(EACH, REST_MAX);
        self.again = Some(Instant::now() + self.rest);
    }
}

/// Whether to send the same again is of no use.
fn is_final(error: &HttpError) -> bool {
    // What OTLP says may be tried again.
    const AGAIN: [u16; 4] = [429, 502, 503, 504];
    matches!(error, HttpError::Refused { status, .. } if !AGAIN.contains(status))
}

/// A line of the log with the numbers of the trace.
fn tell(span: &Span) {
    let took_us = span.ended.since(span.began).as_micros();
    tracing::debug!(
        target: "onym_node::spans",
        trace_id = %format_args!("{:032x}", span.context.trace),
        span_id = %format_args!("{:016x}", span.context.span),
        name = %otlp::name_of(span),
        face = span.from.0,
        verdict = span.outcome.word,
        end = otlp::end_word(span),
        took_us,
        "interest"
    );
}
