//! Orders of the control interface to a data thread: a typed protocol, executed between two packets.

use super::{Arrival, Made};
use onym_engine::{Load, Port};
use onym_face::Face;
use onym_services::freeze::Limits;
use onym_services::ports::Counts;
use onym_services::stats::Stats;
use onym_services::{Answer, FarEnd, Refusal, Request, Side};
use onym_tables::FaceId;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::sync::oneshot::{self, error::TryRecvError};

/// A thread that does not answer for so long is broken.
const PATIENCE: Duration = Duration::from_secs(5);

/// As [`PATIENCE`], while the service ends.
const ASK_NOW: Duration = Duration::from_secs(1);

/// The way back for the answer to an order. Who asked may have given up by then.
#[derive(Debug)]
pub(crate) struct Reply<T>(oneshot::Sender<T>);

impl<T> Reply<T> {
    pub(crate) fn send(self, answer: T) {
        let _ = self.0.send(answer);
    }
}

/// How a face is to change.
#[derive(Debug, Default, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FaceChange {
    pub(crate) weight: Option<u32>,
    pub(crate) rank: Option<u32>,
    pub(crate) draining: Option<bool>,
}

/// A face by one of its names.
#[derive(Debug, Clone)]
pub(crate) enum Which {
    Label(String),
    Number(FaceId),
}

/// A face that the control interface wants.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) label: String,
    pub(crate) uri: String,
    pub(crate) side: Side,
    pub(crate) far_end: FarEnd,
    pub(crate) change: FaceChange,
}

/// A face that was made or found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) id: FaceId,
    pub(crate) is_new: bool,
    pub(crate) is_changed: bool,
}

/// What becomes of a freeze.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FreezeChange {
    Start(Limits),
    End,
}

/// What a data thread, or several together, have counted.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) stats: Stats,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) frames_dropped: u64,
}

impl Counted {
    /// Adds what another thread has counted.
    pub(crate) fn add_thread(mut self, other: &Self) -> Self {
        self.stats.add_thread(&other.stats);
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.frames_dropped += other.frames_dropped;
        self
    }

    /// The body of `/v1/stats`, without what the process as a whole counts.
    pub(crate) fn to_json(&self) -> Value {
        let mut stats = serde_json::to_value(&self.stats).unwrap_or_default();
        stats["received"]["bytes"] = self.received_bytes.into();
        stats["sent"]["bytes"] = self.sent_bytes.into();
        stats["frames_dropped"] = self.frames_dropped.into();
        stats
    }
}

/// What one face has counted.
#[derive(Debug)]
pub(crate) struct FaceCounts {
    pub(crate) label: String,
    pub(crate) side: Side,
    pub(crate) received: Counts,
    pub(crate) sent: Counts,
}

/// An order about a face, or all.
#[derive(Debug)]
pub(crate) enum FaceOrder {
    /// All faces.
    List(Reply<Vec<Value>>),
    /// One face, if it is here.
    Show { which: Which, reply: Reply<Option<Value>> },
    /// Takes over a connection that another thread accepted.
    Accepted { io: Box<dyn Face>, from: Arrival },
    /// Makes a face, or finds it.
    Make { wanted: Wanted, reply: Reply<Result<Found, Refusal>> },
    /// Changes a face, if it is here; whether that made a difference, and what it is now.
    Change { label: String, change: FaceChange, reply: Reply<Option<(bool, Value)>> },
    /// Changes several faces between two packets; how many of them.
    ChangeMany { changes: BTreeMap<String, FaceChange>, reply: Reply<u64> },
    /// Takes a face out, if it is here; frames that were not sent.
    Remove { label: String, reply: Reply<Option<usize>> },
}

/// An order to a data thread. Those with a reply are answered when they are done.
#[derive(Debug)]
pub(crate) enum Order {
    /// Nothing: the thread is alive when it answers.
    Health(Reply<()>),
    /// Why the service is not ready; none when it is.
    NotReady(Reply<Option<String>>),
    /// The listeners.
    Listeners(Reply<Vec<Value>>),
    /// About a face.
    Face(FaceOrder),
    /// The state of a freeze, after a change.
    Freeze { side: Side, change: Option<FreezeChange>, reply: Reply<Value> },
    /// How far draining is; `change` switches it.
    Drain { change: Option<bool>, reply: Reply<Value> },
    /// The configuration.
    Config(Reply<Value>),
    /// Changes the configuration; the keys that changed.
    Configure { patch: Map<String, Value>, reply: Reply<Result<Vec<String>, Refusal>> },
    /// What was counted.
    Stats(Reply<Counted>),
    /// What each face counted.
    FaceCounts(Reply<Vec<FaceCounts>>),
    /// Something of the element's own.
    Element { request: Request, reply: Reply<Result<Answer, Refusal>> },
    /// The thread ends after this round.
    Stop,
}

impl From<FaceOrder> for Order {
    fn from(order: FaceOrder) -> Self {
        Self::Face(order)
    }
}

/// Gives orders to a data thread.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    port: Port<Order>,
}

impl Remote {
    pub(crate) fn new(port: Port<Order>) -> Self {
        Self { port }
    }

    /// Has an order carried out, without waiting for anything; false: the thread takes no more.
    pub(crate) fn tell(&self, order: impl Into<Order>) -> bool {
        self.port.try_send(order.into()).is_ok()
    }

    /// Sends an order; where its answer comes. None when the thread takes no more.
    pub(crate) fn begin<T, O: Into<Order>>(
        &self,
        order: impl FnOnce(Reply<T>) -> O,
    ) -> Option<oneshot::Receiver<T>> {
        let (tell, told) = oneshot::channel();
        self.tell(order(Reply(tell))).then_some(told)
    }

    /// Has an order carried out and waits for its answer, at most 5 s.
    pub(crate) async fn ask<T, O: Into<Order>>(
        &self,
        order: impl FnOnce(Reply<T>) -> O,
    ) -> Option<T> {
        tokio::time::timeout(PATIENCE, self.begin(order)?).await.ok()?.ok()
    }

    /// As [`Remote::ask`], for a thread that may wait: at most 1 s.
    pub(crate) fn ask_now<T>(&self, order: impl FnOnce(Reply<T>) -> Order) -> Option<T> {
        let mut told = self.begin(order)?;
        let end = Instant::now() + ASK_NOW;
        loop {
            match told.try_recv() {
                Ok(answer) => return Some(answer),
                Err(TryRecvError::Empty) if Instant::now() < end => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(_) => return None,
            }
        }
    }

    /// Ends the thread after its round; waits for room in its mailbox.
    pub(crate) fn stop(&self) {
        let _ = self.port.send(Order::Stop);
    }

    /// What the thread did so far.
    pub(crate) fn load(&self) -> &Load {
        self.port.load()
    }
}

impl Wanted {
    /// Whether a face that was made so is the wanted one.
    pub(super) fn is(&self, uri: &str, made: Made) -> bool {
        self.uri == uri && made == Made::Created
    }
}
