//! The push half in the daemon.
//!
//! One thread works for dispatcher, rendezvous, topology manager and link state
//! (`onym_pubsub::Node`). Shards pass frames of neighbours on by themselves, with copies of the
//! forwarder; what is for this node, and the messages of applications, crosses to the thread in
//! batches, as packets cross between shards, and what it sends crosses back. Data that needs no
//! more than a look at tables is done by the shard itself where nobody else is at it (`in_place`).

mod apps;
mod in_place;
pub(crate) mod old;
mod run;
mod settings;
mod store;
mod thread;
mod view;

pub(crate) use in_place::{Rest, Shared, is_data};
pub(crate) use run::Runner;
pub(crate) use settings::Settings;
pub(crate) use store::{Keeper, Store};
pub(crate) use thread::{Parts, PushThread};
pub(crate) use view::may_use_board;

use crate::cross::Bell;
use onym_tables::FaceId;
use onym_wire::push::Label;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// Work for the push thread.
pub(crate) struct PushOrder(pub(crate) Box<dyn FnOnce(&mut PushThread) + Send>);

/// The push thread as the control thread sees it.
#[derive(Debug, Clone)]
pub(crate) struct PushPort {
    pub(crate) orders: Sender<PushOrder>,
    pub(crate) bell: Arc<Bell>,
}

/// A thread that does not answer for so long is broken, or has a graph of millions to show.
pub(crate) const ANSWER_MAX: Duration = Duration::from_secs(10);

impl std::fmt::Debug for PushOrder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PushOrder")
    }
}

impl PushPort {
    /// Has `work` done, without waiting for it.
    pub(crate) fn tell(&self, work: impl FnOnce(&mut PushThread) + Send + 'static) {
        // A thread that ended takes no orders; nothing depends on it any more.
        let _ = self.orders.send(PushOrder(Box::new(work)));
        self.bell.ring();
    }

    /// Has `work` done and returns its result; `None` when the thread ended.
    pub(crate) fn ask<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut PushThread) -> R + Send + 'static,
    ) -> Option<R> {
        self.ask_for(ANSWER_MAX, work)
    }

    /// As [`PushPort::ask`]; `None` also when the thread does not answer within `patience`.
    pub(crate) fn ask_for<R: Send + 'static>(
        &self,
        patience: Duration,
        work: impl FnOnce(&mut PushThread) -> R + Send + 'static,
    ) -> Option<R> {
        let (tx, rx) = mpsc::sync_channel(1);
        self.tell(move |push| {
            let _ = tx.send(work(push));
        });
        rx.recv_timeout(patience).ok()
    }
}

/// A link of the push half, ready to be used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    pub(crate) face: FaceId,
    pub(crate) number: u32,
    pub(crate) cost: u16,
    /// A connection, of which the end is told.
    pub(crate) is_connected: bool,
    /// The domain at its other end, when it is another one.
    pub(crate) domain: Option<Label>,
}
