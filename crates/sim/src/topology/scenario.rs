//! The TOML form of a simulation: network, applications, seed and time.

use super::parse;
use super::values::{
    CATALOGUE_MAX, Fault, SIZE_DEFAULT, SIZE_MAX, at_least, at_most, duration, finite,
    milliseconds, name, rate, share,
};
use super::{AppSpec, LinkSpec, Shape, Topology};
use crate::app::{ConsumerConfig, FilesConfig, Names, ProducerConfig};
use crate::channel::ChannelConfig;
use crate::network::NodeConfig;
use crate::processor::{Load, ProcessorConfig};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// Most virtual time unless the scenario says otherwise.
const DURATION_DEFAULT: Duration = Duration::from_secs(60);

/// Most files of one application.
const FILES_MAX: usize = 100_000;

/// Why a text is not a scenario.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// No TOML, an unknown key, or a value of another kind.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// A value that is not allowed, with its place.
    #[error("{place}: {what}")]
    Value {
        /// Table and number of the entry, and the key.
        place: String,
        /// What is wrong and what is allowed.
        what: String,
    },
}

/// Everything that one run needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The network and its applications.
    pub topology: Topology,
    /// Seed of all randomness.
    pub seed: u64,
    /// Most virtual time; a run ends earlier when nothing is left to happen.
    pub duration: Duration,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default = "one")]
    seed: u64,
    duration: Option<String>,
    routes: Option<String>,
    generate: Option<String>,
    #[serde(default)]
    links: LinkText,
    #[serde(default)]
    strategy: BTreeMap<String, String>,
    #[serde(default)]
    node: Vec<NodeText>,
    #[serde(default)]
    link: Vec<EndsText>,
    #[serde(default)]
    route: Vec<RouteText>,
    #[serde(default)]
    producer: Vec<ProducerText>,
    #[serde(default)]
    consumer: Vec<ConsumerText>,
}

const fn one() -> u64 {
    1
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeText {
    name: String,
    cs: Option<usize>,
    pit: Option<usize>,
    cost: Option<String>,
    cpu: Option<String>,
    backlog: Option<usize>,
    load: Option<LoadText>,
    fairness: Option<bool>,
}

/// A program that competes for the processor.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LoadText {
    duty: String,
    on: String,
    off: String,
    phase: Option<String>,
}

/// How a link behaves; what is absent is as in the table `links`, then the default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkText {
    delay: Option<String>,
    rate: Option<String>,
    loss: Option<String>,
    jitter: Option<String>,
    duplicate: Option<String>,
    queue: Option<usize>,
    mtu: Option<usize>,
}

/// As [`LinkText`], with the ends. (`flatten` would take unknown keys.)
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndsText {
    between: [String; 2],
    #[serde(default)]
    down: Vec<[String; 2]>,
    delay: Option<String>,
    rate: Option<String>,
    loss: Option<String>,
    jitter: Option<String>,
    duplicate: Option<String>,
    queue: Option<usize>,
    mtu: Option<usize>,
}

/// One next hop by hand.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteText {
    node: String,
    prefix: String,
    via: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProducerText {
    node: String,
    prefix: String,
    size: Option<usize>,
    freshness: Option<String>,
    answers: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConsumerText {
    node: String,
    prefix: String,
    count: Option<u64>,
    window: Option<usize>,
    start: Option<String>,
    lifetime: Option<String>,
    retries: Option<u32>,
    catalogue: Option<u64>,
    zipf: Option<f64>,
    refresh: Option<String>,
    batch: Option<u64>,
    every: Option<String>,
    /// Nobody waits for its end.
    background: Option<bool>,
    /// So many files instead of one stream of names, `count` segments each.
    files: Option<usize>,
    /// Time between the beginnings of two files.
    spacing: Option<String>,
}

impl FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Self, ScenarioError> {
        Self::parse(text, None)
    }
}

impl Scenario {
    /// Reads a scenario; `seed` comes before the one in the text, for generated networks too.
    ///
    /// # Errors
    /// [`ScenarioError`], with the place of what is wrong.
    pub fn parse(text: &str, seed: Option<u64>) -> Result<Self, ScenarioError> {
        let mut text: Text = toml::from_str(text)?;
        text.seed = seed.unwrap_or(text.seed);
        let limit = text.duration.as_deref();
        let seed = text.seed;
        Ok(Self {
            duration: at("duration", limit.map_or(Ok(DURATION_DEFAULT), duration))?,
            topology: text.topology()?,
            seed,
        })
    }
}

/// Names the place of a fault.
fn at<T>(place: &str, result: Result<T, Fault>) -> Result<T, ScenarioError> {
    result.map_err(|what| ScenarioError::Value { place: place.to_owned(), what })
}

/// As [`at`], in the entry number `index` of an array.
fn at_entry<T>(
    table: &str,
    index: usize,
    result: Result<T, (&str, Fault)>,
) -> Result<T, ScenarioError> {
    result.map_err(|(key, what)| ScenarioError::Value {
        place: format!("{table} number {}, {key}", index + 1),
        what,
    })
}

impl Text {
    fn topology(self) -> Result<Topology, ScenarioError> {
        let base = at(
            "links",
            self.links
                .over(ChannelConfig::default())
                .map_err(|(key, what)| format!("{key}: {what}")),
        )?;
        let mut topology = match &self.generate {
            Some(shape) => {
                let shape: Shape = at("generate", shape.parse())?;
                shape.topology(base, self.seed)
            }
            None => Topology::default(),
        };
        if let Some(word) = &self.routes {
            topology.routing = at("routes", word.parse())?;
        }
        for (prefix, strategy) in self.strategy {
            let prefix = at(&format!("strategy {prefix:?}"), name(&prefix))?;
            topology.strategies.push((0, prefix, strategy));
        }
        for (index, entry) in self.node.into_iter().enumerate() {
            at_entry("node", index, entry.add(&mut topology))?;
        }
        for (index, entry) in self.link.into_iter().enumerate() {
            at_entry("link", index, entry.add(&mut topology, base))?;
        }
        for (index, entry) in self.route.into_iter().enumerate() {
            at_entry("route", index, entry.add(&mut topology))?;
        }
        for (index, entry) in self.producer.into_iter().enumerate() {
            at_entry("producer", index, entry.add(&mut topology))?;
        }
        for (index, entry) in self.consumer.into_iter().enumerate() {
            at_entry("consumer", index, entry.add(&mut topology))?;
        }
        Ok(topology)
    }
}

type Entry<'a, T> = Result<T, (&'a str, Fault)>;

/// Puts the key in front of a fault.
fn key<T>(key: &str, result: Result<T, Fault>) -> Entry<'_, T> {
    result.map_err(|what| (key, what))
}

/// The node that an application or a line names, which must have a link or a `node` entry.
fn existing(topology: &Topology, name: &str) -> Result<usize, Fault> {
    let found = topology.nodes.iter().position(|(known, _)| known == name);
    found.ok_or_else(|| {
        format!("{name:?} is no node: it has neither a link nor an entry of its own")
    })
}

impl NodeText {
    fn add(self, topology: &mut Topology) -> Entry<'static, ()> {
        let number = key("name", parse::node(topology, &self.name))?;
        let config: &mut NodeConfig = &mut topology.nodes[number].1;
        config.cs_packets_max = self.cs.unwrap_or(config.cs_packets_max);
        if let Some(pit) = self.pit {
            config.pit_entries_max = key("pit", at_least(1, pit))?;
        }
        config.fairness = self.fairness.unwrap_or(true);
        config.processor = self.processor()?;
        Ok(())
    }

    /// A node has a processor when it has a cost.
    fn processor(&self) -> Entry<'static, Option<ProcessorConfig>> {
        let Some(cost) = &self.cost else {
            if self.cpu.is_some() || self.backlog.is_some() || self.load.is_some() {
                return Err(("cpu, backlog, load", "only go with cost".to_owned()));
            }
            return Ok(None);
        };
        let mut config =
            ProcessorConfig { cost: key("cost", duration(cost))?, ..ProcessorConfig::default() };
        config.waiting_max = self.backlog.unwrap_or(config.waiting_max);
        if let Some(text) = &self.cpu {
            config.share = key("cpu", share(text).and_then(|share| at_least(0.001, share)))?;
        }
        if let Some(load) = &self.load {
            let duty = share(&load.duty).and_then(|duty| at_most(0.999, duty));
            let on = duration(&load.on).and_then(|on| {
                if on.is_zero() { Err("the duration must not be 0".to_owned()) } else { Ok(on) }
            });
            config.load = Some(Load {
                duty: key("load", duty)?,
                on: key("load", on)?,
                off: key("load", duration(&load.off))?,
                phase: key("load", load.phase.as_deref().map_or(Ok(Duration::ZERO), duration))?,
            });
        }
        Ok(Some(config))
    }
}

impl LinkText {
    fn over(&self, base: ChannelConfig) -> Entry<'static, ChannelConfig> {
        let mut config = base;
        if let Some(text) = &self.delay {
            config.delay = key("delay", duration(text))?;
        }
        if let Some(text) = &self.rate {
            config.rate_bps = Some(key("rate", rate(text))?);
        }
        if let Some(text) = &self.loss {
            config.loss = key("loss", share(text))?;
        }
        if let Some(text) = &self.jitter {
            config.jitter = key("jitter", duration(text))?;
        }
        if let Some(text) = &self.duplicate {
            config.duplicate = key("duplicate", share(text))?;
        }
        config.queue_max = self.queue.unwrap_or(config.queue_max);
        if let Some(mtu) = self.mtu {
            config.mtu = Some(key("mtu", at_least(64, mtu))?);
        }
        Ok(config)
    }
}

impl EndsText {
    fn add(self, topology: &mut Topology, base: ChannelConfig) -> Entry<'static, ()> {
        let [a, b] = &self.between;
        let ends =
            (key("between", parse::node(topology, a))?, key("between", parse::node(topology, b))?);
        if ends.0 == ends.1 {
            return Err(("between", format!("{a:?} cannot be linked to itself")));
        }
        let mut downs = Vec::new();
        for [from, until] in &self.down {
            let down = (key("down", duration(from))?, key("down", duration(until))?);
            if down.0 >= down.1 {
                return Err(("down", format!("{from} is not before {until}")));
            }
            downs.push(down);
        }
        let text = LinkText {
            delay: self.delay,
            rate: self.rate,
            loss: self.loss,
            jitter: self.jitter,
            duplicate: self.duplicate,
            queue: self.queue,
            mtu: self.mtu,
        };
        topology.links.push(LinkSpec { ends, config: text.over(base)?, downs });
        Ok(())
    }
}

impl RouteText {
    fn add(self, topology: &mut Topology) -> Entry<'static, ()> {
        let node = key("node", existing(topology, &self.node))?;
        let via = key("via", existing(topology, &self.via))?;
        let prefix = key("prefix", name(&self.prefix))?;
        topology.routes.push((node, prefix, via));
        Ok(())
    }
}

impl ProducerText {
    fn add(self, topology: &mut Topology) -> Entry<'static, ()> {
        let node = key("node", existing(topology, &self.node))?;
        let freshness = self.freshness.as_deref();
        let config = ProducerConfig {
            prefix: key("prefix", name(&self.prefix))?,
            size: key("size", at_most(SIZE_MAX, self.size.unwrap_or(SIZE_DEFAULT)))?,
            freshness_ms: key("freshness", freshness.map_or(Ok(0), milliseconds))?,
            answers: self.answers.unwrap_or(true),
        };
        topology.apps.push((node, AppSpec::Producer(config)));
        Ok(())
    }
}

impl ConsumerText {
    fn add(self, topology: &mut Topology) -> Entry<'static, ()> {
        let node = key("node", existing(topology, &self.node))?;
        let mut config = ConsumerConfig::new(key("prefix", name(&self.prefix))?);
        config.count = self.count.unwrap_or(config.count);
        config.retries_max = self.retries.unwrap_or(config.retries_max);
        config.window = key("window", at_least(1, self.window.unwrap_or(config.window)))?;
        if let Some(text) = &self.start {
            config.start = key("start", duration(text))?;
        }
        if let Some(text) = &self.lifetime {
            config.lifetime_ms =
                key("lifetime", milliseconds(text).and_then(|ms| at_least(1, ms)))?;
        }
        if let Some(text) = &self.refresh {
            config.refresh = Some(key("refresh", duration(text))?);
        }
        config.is_background = self.background.unwrap_or(false);
        config.batch = match (self.batch, &self.every) {
            (Some(batch), Some(every)) => {
                Some((key("batch", at_least(1, batch))?, key("every", duration(every))?))
            }
            (None, None) => None,
            _ => return Err(("batch", "goes with every, and every with batch".to_owned())),
        };
        if let Some(catalogue) = self.catalogue {
            let catalogue = at_least(1, catalogue).and_then(|n| at_most(CATALOGUE_MAX, n));
            let exponent = finite(&self.zipf.unwrap_or(1.0).to_string());
            config.names = Names::Zipf {
                catalogue: key("catalogue", catalogue)?,
                exponent: key("zipf", exponent)?,
            };
        } else if self.zipf.is_some() {
            return Err(("zipf", "only goes with catalogue, the number of names".to_owned()));
        }
        let spacing = self.spacing.as_deref().map_or(Ok(Duration::ZERO), duration);
        let every = key("spacing", spacing)?;
        let spec = match self.files {
            None if self.spacing.is_some() => {
                return Err(("spacing", "only goes with files, the number of files".to_owned()));
            }
            None => AppSpec::Consumer(config),
            Some(files) => {
                let files = key("files", at_most(FILES_MAX, files))?;
                AppSpec::Files(FilesConfig { each: config, files, every })
            }
        };
        topology.apps.push((node, spec));
        Ok(())
    }
}
