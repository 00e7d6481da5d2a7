//! Persistent state of a rendezvous or topology node (P-44): its epoch, the published scopes, and,
//! with several nodes, which nodes serve. In a file for one node, in etcd for several.
//!
//! A separate thread does the I/O, so no request waits for it. The push thread hands it a batch of
//! changed scopes when the previous batch is written; scopes that change meanwhile stay marked in
//! the rendezvous, each once. Failed writes are retried.

mod etcd;
mod file;

use super::{PushOrder, PushPort};
use crate::config;
use onym_pubsub::{Kept, node};
use onym_wire::push::Role;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

/// Scopes of one batch: a transaction of etcd holds 128 operations.
const BATCH: usize = 64;

/// A store that was opened.
#[derive(Debug)]
pub(crate) enum Store {
    File(file::FileStore),
    Etcd(Box<etcd::EtcdStore>),
}

impl Store {
    /// Opens what is configured, when the node has a role; `base` is the directory that paths of
    /// files start at.
    ///
    /// # Errors
    /// A sentence with the key and what is wrong.
    pub(crate) fn open(
        config: &config::Push,
        node: &node::Config,
        base: &Path,
    ) -> Result<Option<Self>, String> {
        if node.role == Role::default() {
            return Ok(None);
        }
        if !config.etcd.is_empty() {
            let store = etcd::EtcdStore::new(config, node, base)?;
            return Ok(Some(Self::Etcd(Box::new(store))));
        }
        if config.state.is_empty() {
            return Ok(None);
        }
        let store = file::FileStore::open(&base.join(&config.state));
        store.map(|s| Some(Self::File(s))).map_err(|e| format!("push.state: {e}"))
    }

    /// The number of this life of the node: `drawn`, or more when that was used before.
    ///
    /// # Errors
    /// A sentence: the store cannot be written.
    pub(crate) fn begin(&mut self, drawn: u32) -> Result<u32, String> {
        match self {
            Self::File(file) => file.begin(drawn).map_err(|e| format!("push.state: {e}")),
            Self::Etcd(etcd) => Ok(etcd.begin(drawn)),
        }
    }

    /// Scopes of the life before, where they are at hand.
    ///
    /// # Errors
    /// A sentence: the store cannot be read.
    pub(crate) fn scopes(&self) -> Result<Vec<Kept>, String> {
        match self {
            Self::File(file) => file.scopes().map_err(|e| format!("push.state: {e}")),
            Self::Etcd(_) => Ok(Vec::new()),
        }
    }
}

/// What the thread is told.
enum Order {
    Keep(Vec<Kept>),
    /// Roots came to this node: their scopes are wanted.
    Recall,
}

/// The thread of a store, as the push thread sees it.
#[derive(Debug)]
pub(crate) struct Keeper {
    orders: Sender<Order>,
    /// A batch is being written.
    is_busy: Arc<AtomicBool>,
}

impl Keeper {
    /// Starts the thread; it ends when this is dropped.
    ///
    /// # Errors
    /// No thread is to be had.
    pub(crate) fn start(store: Store, port: PushPort) -> std::io::Result<Self> {
        let (orders, inbox) = mpsc::channel();
        let is_busy = Arc::new(AtomicBool::new(false));
        let desk = Desk { inbox, is_busy: Arc::clone(&is_busy), port };
        let work = move || match store {
            Store::File(file) => file.run(&desk),
            Store::Etcd(etcd) => etcd.run(&desk),
        };
        std::thread::Builder::new().name("onym-push-store".into()).spawn(work)?;
        Ok(Self { orders, is_busy })
    }

    /// Hands over what the rendezvous has to keep.
    pub(crate) fn keep(&self, plane: &mut onym_pubsub::ControlPlane) {
        let Some(rendezvous) = &mut plane.rendezvous else { return };
        if rendezvous.take_recall_wanted() {
            let _ = self.orders.send(Order::Recall);
        }
        if !rendezvous.has_news() || self.is_busy.load(Ordering::Acquire) {
            return;
        }
        let batch = rendezvous.news(BATCH);
        if !batch.is_empty() {
            self.is_busy.store(true, Ordering::Release);
            let _ = self.orders.send(Order::Keep(batch));
        }
    }
}

/// The other side of it.
struct Desk {
    inbox: Receiver<Order>,
    is_busy: Arc<AtomicBool>,
    port: PushPort,
}

impl Desk {
    /// A batch is written; the push thread may have another one.
    fn done(&self) {
        self.is_busy.store(false, Ordering::Release);
        self.port.tell(PushOrder::Stored);
    }
}
