//! The store of several nodes: etcd.
//!
//! Keys, after the prefix: `epochs/NODE`, the number of its life; `homes/NODE`, who serves, with a
//! lease; `scopes/ID…`, a published scope with its owner, which only a node writes whose lease holds.

use super::{Desk, Order};
use crate::config;
use crate::push::PushOrder;
use onym_etcd::{Compare, Entry, Etcd, EtcdError, Operation, Seat};
use onym_http::tls::Tls;
use onym_pubsub::{Kept, node};
use onym_wire::push::{Id, Label, Strategy};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Most scopes that are read; what is beyond comes back by its publishers only.
const SCOPES_MAX: usize = 10_000;
/// Most rendezvous nodes and topology managers.
const HOMES_MAX: usize = 1024;

/// etcd, asked from a thread that has nothing else to do.
#[derive(Debug)]
pub(crate) struct EtcdStore {
    etcd: Arc<Etcd>,
    runtime: Runtime,
    prefix: String,
    node: Label,
    lease: Duration,
    boot: u32,
    /// What is not written yet.
    batch: Option<Vec<Kept>>,
    wants_recall: bool,
    was_away: bool,
}

fn text(label: Label) -> String {
    format!("{:016x}", label.to_u64())
}

fn label(text: &str) -> Option<Label> {
    u64::from_str_radix(text, 16).ok().map(Label::from_u64)
}

impl EtcdStore {
    pub(super) fn new(
        config: &config::Push,
        node: &node::Config,
        base: &Path,
    ) -> Result<Self, String> {
        let lease = Duration::from_millis(config.etcd_lease_ms);
        let read = |key: &str, file: &str| {
            std::fs::read(base.join(file)).map_err(|e| format!("push.{key}: {file}: {e}"))
        };
        let identity = match (config.etcd_cert.as_str(), config.etcd_key.as_str()) {
            ("", _) | (_, "") => None,
            (cert, key) => Some((read("etcd_cert", cert)?, read("etcd_key", key)?)),
        };
        let identity = identity.as_ref().map(|(c, k)| (c.as_slice(), k.as_slice()));
        let tls = match config.etcd_ca.as_str() {
            "" => None,
            file => {
                let tls = Tls::new(&read("etcd_ca", file)?, identity);
                Some(tls.map_err(|e| format!("push.etcd_ca: {e}"))?)
            }
        };
        let etcd = Etcd::new(&config.etcd, tls.as_ref(), lease);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        Ok(Self {
            etcd: Arc::new(etcd.map_err(|e| format!("push.etcd: {e}"))?),
            runtime: runtime.map_err(|e| format!("push.etcd: {e}"))?,
            prefix: config.etcd_prefix.clone(),
            node: node.node,
            lease,
            boot: node.boot,
            batch: None,
            wants_recall: false,
            was_away: false,
        })
    }

    /// Without etcd the number that was drawn has to do.
    pub(super) fn begin(&mut self, drawn: u32) -> u32 {
        let key = format!("{}epochs/{}", self.prefix, text(self.node));
        let epoch = self.runtime.block_on(next_epoch(&self.etcd, &key, drawn));
        self.boot = epoch.unwrap_or_else(|error| {
            tracing::warn!(%error, "the epoch is drawn from the clock");
            drawn
        });
        self.boot
    }

    pub(super) fn run(mut self, desk: &Desk) {
        let key = format!("{}homes/{}", self.prefix, text(self.node));
        let value = self.boot.to_string().into_bytes();
        let mut seat = Seat::new(Arc::clone(&self.etcd), &key, value, self.lease);
        let mut next = Instant::now();
        loop {
            match desk.inbox.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Order::Keep(batch)) => self.batch = Some(batch),
                Ok(Order::Recall) => self.wants_recall = true,
                Err(RecvTimeoutError::Timeout) => next = Instant::now() + self.lease / 5,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let beaten = {
                let (etcd, prefix) = (Arc::clone(&self.etcd), self.prefix.clone());
                self.runtime.block_on(beat(&etcd, &prefix, &mut seat))
            };
            let done = beaten.and_then(|roster| {
                desk.port.tell(PushOrder::Roster(roster));
                self.write(&seat, desk)?;
                self.recall(desk)
            });
            self.tell(done.err());
        }
        let left = self.runtime.block_on(seat.leave());
        self.tell(left.err());
    }

    fn tell(&mut self, error: Option<EtcdError>) {
        match (&error, self.was_away) {
            (Some(error), false) => tracing::warn!(%error, "etcd: what it holds stays as it is"),
            (None, true) => tracing::info!("etcd answers again"),
            _ => {}
        }
        self.was_away = error.is_some();
    }

    /// Writes what waits, when this node's lease holds.
    fn write(&mut self, seat: &Seat, desk: &Desk) -> Result<(), EtcdError> {
        let (Some(batch), Some(guard)) = (&self.batch, seat.guard()) else { return Ok(()) };
        let operations: Vec<Operation> = batch.iter().map(|k| self.operation(k)).collect();
        let done = self.runtime.block_on(self.etcd.transact(&[guard], &operations, &[]))?;
        if done.is_done {
            self.batch = None;
            desk.done();
        }
        Ok(())
    }

    fn operation(&self, kept: &Kept) -> Operation {
        let key = format!("{}scopes{}", self.prefix, kept.id);
        if kept.publishers.is_empty() {
            return Operation::Delete { key };
        }
        let publishers: Vec<String> = kept.publishers.iter().copied().map(text).collect();
        let value = json!({
            "owner": text(self.node),
            "strategy": kept.strategy.0,
            "publishers": publishers,
        });
        Operation::Put { key, value: value.to_string().into_bytes(), lease: None }
    }

    /// Gives the rendezvous what is there; it takes what is its own.
    fn recall(&mut self, desk: &Desk) -> Result<(), EtcdError> {
        if !self.wants_recall {
            return Ok(());
        }
        let prefix = format!("{}scopes", self.prefix);
        let listing = self.runtime.block_on(self.etcd.list(&prefix, SCOPES_MAX))?;
        self.wants_recall = false;
        if listing.is_more {
            tracing::warn!("more than {SCOPES_MAX} scopes: the rest comes back by its publishers");
        }
        let kept: Vec<Kept> = listing.entries.iter().filter_map(|e| scope(&prefix, e)).collect();
        desk.port.tell(PushOrder::Recall(kept));
        Ok(())
    }
}

/// Renews the node's lease and says who serves.
async fn beat(etcd: &Etcd, prefix: &str, seat: &mut Seat) -> Result<BTreeSet<Label>, EtcdError> {
    seat.sit().await?;
    let prefix = format!("{prefix}homes/");
    let listing = etcd.list(&prefix, HOMES_MAX).await?;
    let nodes = listing.entries.iter().filter_map(|e| label(e.key.strip_prefix(&prefix)?));
    Ok(nodes.collect())
}

async fn next_epoch(etcd: &Etcd, key: &str, drawn: u32) -> Result<u32, EtcdError> {
    let before = etcd.get(key).await?;
    let number = |e: &Entry| std::str::from_utf8(&e.value).ok()?.parse::<u32>().ok();
    let used = before.as_ref().and_then(number);
    let epoch = used.map_or(drawn, |used| drawn.max(used.wrapping_add(1)).max(1));
    let when = Compare::Modified(key.to_owned(), before.map_or(0, |e| e.modified));
    let value = epoch.to_string().into_bytes();
    let put = Operation::Put { key: key.to_owned(), value, lease: None };
    if etcd.transact(&[when], &[put], &[]).await?.is_done {
        return Ok(epoch);
    }
    Err(EtcdError::Refused("another node with this push.node starts at the same time".into()))
}

fn scope(prefix: &str, entry: &Entry) -> Option<Kept> {
    let id: Id = entry.key.strip_prefix(prefix)?.parse().ok()?;
    let value: Value = serde_json::from_slice(&entry.value).ok()?;
    let publishers = value["publishers"].as_array()?.iter();
    Some(Kept {
        id,
        strategy: Strategy(u8::try_from(value["strategy"].as_u64()?).ok()?),
        publishers: publishers.filter_map(|p| label(p.as_str()?)).collect(),
    })
}
