//! Where services run: one interface for processes, Docker and Kubernetes.

mod archive;
mod check;
mod docker;
mod kubeconfig;
mod kubernetes;
mod process;

pub use docker::{DockerDriver, DockerOptions};
pub use kubeconfig::Cluster;
pub use kubernetes::{KubernetesDriver, KubernetesOptions};
pub use process::{MARK, ProcessDriver, ProcessOptions, usable_cgroup};

use crate::network::Function;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use thiserror::Error;

/// A service that is to be started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Order {
    /// Name in the network.
    pub name: String,
    /// Tells one start of a name from another.
    pub instance: String,
    /// What it is.
    pub function: Function,
    /// Whether what lies beyond its listeners answers rather than asks (`spec/services.md`, section 2).
    pub reversed: bool,
    /// The secret of its control interface.
    pub token: String,
}

/// A service that runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Started {
    /// How the engine knows it.
    pub handle: String,
    /// Its control interface, as the manager reaches it.
    pub control: String,
    /// Where neighbours connect: listener URIs by label.
    pub listeners: BTreeMap<String, String>,
}

/// A service found by its mark.
#[derive(Debug, Clone)]
pub struct Found {
    /// What it was started with, the secret included.
    pub order: Order,
    /// How it is reached; none when it never became ready.
    pub started: Option<Started>,
    /// How the engine knows it.
    pub handle: String,
}

/// Processor time and memory of a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time since its start, in nanoseconds.
    pub cpu_ns: u64,
    /// Memory, in octets.
    pub memory: u64,
}

/// Why an engine did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DriverError {
    /// The engine is not there.
    #[error("{engine} cannot be reached: {why}; {next}")]
    Absent {
        /// Which engine.
        engine: &'static str,
        /// What was found.
        why: String,
        /// What to do.
        next: String,
    },
    /// A service did not start.
    #[error("{name} did not start: {why}")]
    Start {
        /// Its name.
        name: String,
        /// What it said.
        why: String,
    },
    /// The engine refused something else.
    #[error("{doing}: {why}")]
    Engine {
        /// What was done.
        doing: String,
        /// What the engine says.
        why: String,
    },
}

impl DriverError {
    pub(crate) fn engine(doing: impl Into<String>, why: impl std::fmt::Display) -> Self {
        Self::Engine { doing: doing.into(), why: why.to_string() }
    }

    pub(crate) fn start(name: &str, why: impl std::fmt::Display) -> Self {
        Self::Start { name: name.to_owned(), why: why.to_string() }
    }
}

/// What a driver answers.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, DriverError>> + Send + 'a>>;

/// An engine that runs services.
///
/// Every service carries the manager's mark, so that [`Driver::list`] finds it after the manager
/// was killed at any moment, whether or not its start was recorded.
pub trait Driver: Send + Sync + std::fmt::Debug {
    /// Its word: `process`, `docker`, `kubernetes`.
    fn word(&self) -> &'static str;

    /// Whether the engine is there; makes what every service needs and stays (an image).
    fn prepare(&self) -> Answer<'_, ()>;

    /// Takes away what services of this manager shared (a network); none runs any more. The next
    /// start makes it again.
    fn release(&self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Whether functions could be started now, as far as that can be told without starting them:
    /// nothing is changed. What `freed` names will be free by then.
    fn check<'a>(
        &'a self,
        _functions: &'a [(&'a str, &'a Function)],
        _freed: &'a BTreeSet<String>,
    ) -> Answer<'a, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Starts a service and waits until it is ready. What fails leaves nothing behind.
    fn start<'a>(&'a self, order: &'a Order) -> Answer<'a, Started>;

    /// All services with the manager's mark that run.
    fn list(&self) -> Answer<'_, Vec<Found>>;

    /// Whether a service runs.
    fn alive<'a>(&'a self, handle: &'a str) -> Answer<'a, bool>;

    /// What a service uses.
    fn usage<'a>(&'a self, handle: &'a str) -> Answer<'a, Usage>;

    /// Bounds the processor time of a service, in cores; none takes the bound away.
    fn limit<'a>(&'a self, handle: &'a str, cores: Option<f64>) -> Answer<'a, ()>;

    /// Stops a service and removes what it left.
    fn stop<'a>(&'a self, handle: &'a str) -> Answer<'a, ()>;

    /// The last words of a service, for an error.
    fn last_words<'a>(&'a self, handle: &'a str) -> Answer<'a, String>;
}

/// Period and quota of processor time in microseconds for a bound in cores. The kernel takes no
/// quota below a millisecond, so a small one has a long period.
fn quota_us(cores: f64) -> (u64, i64) {
    let period = if cores < 0.1 { 100_000.0 } else { 10_000.0 };
    (period as u64, (cores * period).max(1000.0) as i64)
}

/// Labels of the listeners for neighbours: for each ingress and transport.
#[must_use]
pub fn link_listeners(order: &Order) -> Vec<(String, &'static str, &'static str)> {
    let mut all = Vec::new();
    for ingress in order.function.kind.ingresses() {
        let producer = order.reversed || *ingress == "producer";
        let side = if producer { "producer" } else { "consumer" };
        for scheme in ["tcp4", "udp4"] {
            all.push((format!("{ingress}-{scheme}"), scheme, side));
        }
    }
    all
}

/// The words after `onym service KIND` for an order; neighbours connect to `host`.
#[must_use]
pub fn words(order: &Order, host: &str, control: &str, token_file: &str) -> Vec<String> {
    let function = &order.function;
    let mut words: Vec<String> = ["service", function.kind.word(), "--name", &order.name]
        .iter()
        .chain(&["--control", control, "--token-file", token_file])
        .map(ToString::to_string)
        .collect();
    if !control.starts_with("127.") {
        // On the engine's own network, which no other machine is on.
        words.push("--clear-text".into());
    }
    if function.kind != crate::kind::Kind::PacketDispatcher {
        for (label, scheme, side) in link_listeners(order) {
            words.push("--listen".into());
            // What comes by UDP may be from anybody (`spec/services.md`, section 2).
            let peer = if scheme == "tcp4" { ",peer=service" } else { "" };
            words.push(format!("{label}={scheme}://{host}:0,side={side}{peer}"));
        }
    }
    for (ingress, uris) in &function.listen {
        let producer = order.reversed || ingress == "producer";
        let side = if producer { "producer" } else { "consumer" };
        for (number, uri) in uris.iter().enumerate() {
            words.push("--listen".into());
            words.push(format!("{ingress}.{number}={uri},side={side}"));
        }
    }
    for (key, value) in &function.config {
        if crate::settings::is_start_only(key) {
            words.push("--set".into());
            words.push(format!("{key}={value}"));
        }
    }
    words
}

/// What a service says once it is open: `ready {…}` (`spec/services.md`, section 1).
#[must_use]
pub fn ready_line(text: &str) -> Option<(String, BTreeMap<String, String>)> {
    let line = text.lines().find_map(|l| l.strip_prefix("ready "))?;
    let value: serde_json::Value = serde_json::from_str(line).ok()?;
    let control = value["control"].as_str()?.to_owned();
    let listeners = value["listeners"].as_array()?.iter().filter_map(|row| {
        Some((row["label"].as_str()?.to_owned(), row["uri"].as_str()?.to_owned()))
    });
    Some((control, listeners.collect()))
}
