//! What readers see: the network as it runs, with rates, and a function's statistics over time.

use crate::kind::Kind;
use crate::network::{Ends, Origin, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};

/// Samples of a function that are kept.
pub const SAMPLES_MAX: usize = 600;

/// The network as it runs.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct View {
    /// Its name; empty before the first description.
    pub network: String,
    /// The driver's word.
    pub driver: String,
    /// When this was seen, in milliseconds of the Unix epoch.
    pub at_ms: u64,
    /// Whether what runs is what must run.
    pub settled: bool,
    /// Functions by name.
    pub functions: BTreeMap<String, FunctionView>,
    /// Links.
    pub links: Vec<LinkView>,
    /// Prefixes registered at each router.
    pub registered: BTreeMap<String, std::collections::BTreeSet<String>>,
}

/// A function as it runs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FunctionView {
    /// What it does.
    pub kind: Kind,
    /// Why it is there.
    pub origin: Origin,
    /// `up`, `silent` (it runs and does not answer), `missing`.
    pub state: String,
    /// The start it is of.
    pub instance: String,
    /// How the engine knows it.
    pub handle: String,
    /// Its control interface.
    pub control: String,
    /// Where it listens, by label.
    pub listeners: BTreeMap<String, String>,
    /// Most processor time, in cores.
    pub quota: Option<f64>,
    /// Whether it may be cloned, and if not, why.
    pub scalable: Result<(), String>,
    /// The newest sample.
    pub sample: Sample,
    /// The statistics of the service as they came (`spec/services.md`, section 8).
    pub stats: Value,
}

/// Rates of a function over one period of watching.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// When, in milliseconds of the Unix epoch.
    pub at_ms: u64,
    /// Processor time, in cores.
    pub cores: f64,
    /// Processor time, of what the quota (or one core) allows.
    pub load: f64,
    /// Memory, in octets.
    pub memory: u64,
    /// Interests received a second.
    pub interests: f64,
    /// Data received a second.
    pub data: f64,
    /// Octets received a second.
    pub bytes: f64,
    /// Hits of all lookups of a content store; none without lookups.
    pub hit_ratio: Option<f64>,
}

/// A link as it runs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LinkView {
    /// Its ends.
    #[serde(flatten)]
    pub ends: Ends,
    /// What carries it.
    pub transport: Transport,
    /// `up`, `connecting`, `down`, `draining`, `missing`.
    pub state: String,
    /// Interests a second along the way that Interests go.
    pub interests: f64,
    /// Data a second the other way.
    pub data: f64,
    /// Octets a second, both ways.
    pub bytes: f64,
}

/// Statistics over time.
#[derive(Debug, Clone, Default)]
pub struct History {
    samples: BTreeMap<String, VecDeque<Sample>>,
}

impl History {
    /// Notes a sample.
    pub fn note(&mut self, name: &str, sample: Sample) {
        let ring = self.samples.entry(name.to_owned()).or_default();
        if ring.len() == SAMPLES_MAX {
            ring.pop_front();
        }
        ring.push_back(sample);
    }

    /// Forgets functions that are no more.
    pub fn keep(&mut self, names: &dyn Fn(&str) -> bool) {
        self.samples.retain(|name, _| names(name));
    }

    /// The samples of a function, oldest first.
    #[must_use]
    pub fn of(&self, name: &str) -> Vec<Sample> {
        self.samples.get(name).map(|r| r.iter().copied().collect()).unwrap_or_default()
    }
}
