//! What other threads ask of the push thread: a protocol of typed orders.

use crate::config::PushLink;
use crate::counts::PushCounts;
use crate::shard::PushState;
use onym_engine::{Port, Reply};
use onym_pubsub::Kept;
use onym_tables::FaceId;
use onym_wire::push::Label;
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// An order to the push thread. Those with a reply are answered when they are done.
#[derive(Debug)]
pub(crate) enum PushOrder {
    /// A face is there, and `shard` does its I/O. It comes before the first frame.
    FaceAdd { face: FaceId, shard: usize },
    /// A face is gone, with its link.
    FaceRemove(FaceId),
    /// The transport of a link ended; it comes again, or the face goes.
    FaceDown(FaceId),
    /// The network refused what was sent over a link: once per second and face at most.
    FaceRefused(FaceId),
    /// A face is a link of the domain; one that is it already costs this from now on.
    LinkAdd(NewLink),
    /// Octets that were sent by faces since they are there: of links that have a capacity, once a second.
    LinksSent(Vec<(FaceId, u64)>),
    /// A face is no link of the domain any more.
    LinkRemove(FaceId),
    /// What the push half counted, without what shards counted.
    Counts { reply: Reply<PushCounts> },
    /// A dataset; none: there is no such one.
    Show { question: Box<Question>, reply: Reply<Option<String>> },
    /// What would be done with a publication, for who traces it; none: that is no identifier.
    Trace { asked: Box<Traced>, reply: Reply<Option<Value>> },
    /// Which rendezvous nodes and topology managers serve, by the store.
    Roster(BTreeSet<Label>),
    /// Scopes come back from the store.
    Recall(Vec<Kept>),
    /// The store has written a batch of scopes: it takes another one.
    Stored,
    /// The thread ends after this round.
    Stop,
    /// Keeps the thread at something until the other end is dropped.
    #[cfg(test)]
    Occupy(std::sync::mpsc::Receiver<()>),
}

/// A face that the configuration makes a link.
#[derive(Debug)]
pub(crate) struct NewLink {
    pub(crate) face: FaceId,
    pub(crate) link: Box<PushLink>,
    /// A connection, of which the end is told.
    pub(crate) is_connected: bool,
}

/// What a dataset of the push half is made of.
#[derive(Debug)]
pub(crate) struct Question {
    /// The dataset.
    pub(crate) what: String,
    /// An identifier, where it needs one.
    pub(crate) argument: Vec<u8>,
    /// What each shard counted.
    pub(crate) shards: Vec<PushState>,
    /// Where each face leads.
    pub(crate) faces: Vec<(FaceId, String)>,
}

/// A publication on its way, and the node at which somebody looks.
#[derive(Debug)]
pub(crate) struct Traced {
    /// Octets of the identifier of the item.
    pub(crate) item: Vec<u8>,
    /// The frame as the node before sends it; none: as this node does.
    pub(crate) frame: Option<Vec<u8>>,
    /// The face that it would come by.
    pub(crate) from: FaceId,
    /// Where each face leads, and whether it is up.
    pub(crate) faces: Vec<(FaceId, String, bool)>,
}

/// The push thread as other threads see it.
#[derive(Debug, Clone)]
pub(crate) struct PushPort {
    pub(crate) port: Port<PushOrder>,
}

/// Orders that wait at most.
pub(crate) const ORDERS_MAX: usize = 1024;

/// A thread that does not answer for so long is broken, or has a graph of millions to show.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(10);

impl PushPort {
    /// Has an order carried out, without waiting for it.
    pub(crate) fn tell(&self, order: PushOrder) {
        // A thread that ended takes no orders; nothing depends on it any more.
        let _ = self.port.send(order);
    }

    /// Has an order carried out and returns the answer; `None` when the thread ended.
    pub(crate) fn ask<R>(&self, order: impl FnOnce(Reply<R>) -> PushOrder) -> Option<R> {
        self.ask_for(ANSWER_MAX, order)
    }

    /// As [`PushPort::ask`]; `None` also when the thread does not answer within `patience`.
    pub(crate) fn ask_for<R>(
        &self,
        patience: Duration,
        order: impl FnOnce(Reply<R>) -> PushOrder,
    ) -> Option<R> {
        self.port.ask(order).ok()?.wait_for(patience)
    }
}
