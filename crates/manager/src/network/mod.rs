//! The network as a directed graph of functions.
//!
//! A link `a -> b` means that `a` opens a connection to `b`: Interests go along it and Data comes
//! back. A link `a => b` (producer side) ends at the registration side of a name router:
//! Interests come out of `b` towards `a`, Data goes along it.

mod check;
mod loops;

pub use check::{Fault, check, reversed};
pub use loops::{Guard, guards, interest_edges};

use crate::kind::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Most functions in one network, declared and automatic together.
pub const FUNCTIONS_MAX: usize = 512;
/// Most links in one network.
pub const LINKS_MAX: usize = 4096;

/// Settings of one service, as its control interface takes them.
pub type Settings = serde_json::Map<String, serde_json::Value>;

/// Why a function is there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "why", content = "of")]
pub enum Origin {
    /// Someone asked for it.
    #[default]
    Declared,
    /// Spreads what goes to the clones of a function.
    Balancer(String),
    /// One more instance of a function.
    Clone(String),
    /// Joins what comes back from the clones of a function.
    Collector(String),
    /// Stands in a loop, on the link named.
    Guard(String),
    /// Verifies what reaches a content store that was poisoned.
    Verifier(String),
}

/// One service of the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Function {
    /// What it does.
    pub kind: Kind,
    /// Settings handed to the service.
    #[serde(default, skip_serializing_if = "Settings::is_empty")]
    pub config: Settings,
    /// Where clients connect: listener URIs by ingress (`in`, `clients` of a dispatcher, `consumer` and `producer` of a name router).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub listen: BTreeMap<String, Vec<String>>,
    /// Most processor time, in cores; none means no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<f64>,
    /// Whether the manager may add clones of it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub scalable: bool,
    /// Most instances, itself counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instances_max: Option<u32>,
    /// Several neighbours on a side that tells one apart are meant: every packet goes to all.
    #[serde(default, skip_serializing_if = "is_false")]
    pub multicast: bool,
    /// Why it is there.
    #[serde(default)]
    pub origin: Origin,
}

impl Function {
    /// A function of `kind` with nothing set.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            config: Settings::new(),
            listen: BTreeMap::new(),
            quota: None,
            scalable: false,
            instances_max: None,
            multicast: false,
            origin: Origin::Declared,
        }
    }

    /// The same, there for the reason `origin`.
    #[must_use]
    pub fn automatic(kind: Kind, origin: Origin) -> Self {
        Self { origin, ..Self::new(kind) }
    }

    /// Sets one setting.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.config.insert(key.to_owned(), value.into());
        self
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if hands a reference"
)]
fn is_false(value: &bool) -> bool {
    !*value
}

/// Which side of its target a link ends at.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Interests go in.
    #[default]
    Consumer,
    /// Registrations and Data go in, Interests come out; the target is a name router or a forwarder.
    Producer,
}

/// What carries a link.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// A TCP connection.
    #[default]
    Tcp,
    /// UDP datagrams.
    Udp,
}

impl Transport {
    /// What both ends of a link say of each other: a TCP listener sees who connects, a UDP listener
    /// cannot tell who sends (`spec/services.md`, section 2).
    #[must_use]
    pub fn peer(self) -> &'static str {
        match self {
            Self::Tcp => "service",
            Self::Udp => "any",
        }
    }
}

/// The ends of a link; there is at most one link with the same ends.
#[derive(
    Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Ends {
    /// Who opens it.
    pub from: String,
    /// Who is connected to.
    pub to: String,
    /// The side of the target.
    #[serde(default)]
    pub side: Side,
}

impl Ends {
    /// A link on the consumer side.
    #[must_use]
    pub fn consumer(from: &str, to: &str) -> Self {
        Self { from: from.to_owned(), to: to.to_owned(), side: Side::Consumer }
    }

    /// A link on the producer side.
    #[must_use]
    pub fn producer(from: &str, to: &str) -> Self {
        Self { from: from.to_owned(), to: to.to_owned(), side: Side::Producer }
    }

    /// The label of the face at `from`: function names are in lower case, so `.P` is in none.
    #[must_use]
    pub fn label(&self) -> String {
        match self.side {
            Side::Consumer => self.to.clone(),
            Side::Producer => format!("{}.P", self.to),
        }
    }

    /// Interests go from the first to the second.
    #[must_use]
    pub fn interests(&self) -> (&str, &str) {
        match self.side {
            Side::Consumer => (&self.from, &self.to),
            Side::Producer => (&self.to, &self.from),
        }
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let arrow = if self.side == Side::Producer { "=>" } else { "->" };
        write!(f, "{} {arrow} {}", self.from, self.to)
    }
}

/// Functions by name, and the links between them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Network {
    /// Functions by name.
    pub functions: BTreeMap<String, Function>,
    /// What carries each link.
    #[serde(with = "links")]
    #[schemars(with = "Vec<links::Row>")]
    pub links: BTreeMap<Ends, Transport>,
}

impl Network {
    /// The links that `name` opens.
    pub fn out_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Ends, Transport)> {
        self.links.iter().filter(move |(e, _)| e.from == name).map(|(e, t)| (e, *t))
    }

    /// The links that end at `name`.
    pub fn into_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = (&'a Ends, Transport)> {
        self.links.iter().filter(move |(e, _)| e.to == name).map(|(e, t)| (e, *t))
    }

    /// Adds a link, carried by TCP unless said otherwise.
    pub fn link(&mut self, ends: Ends, transport: Transport) {
        self.links.insert(ends, transport);
    }

    /// Removes a function with all its links.
    pub fn remove(&mut self, name: &str) -> Option<Function> {
        self.links.retain(|e, _| e.from != name && e.to != name);
        self.functions.remove(name)
    }

    /// The kind of `name`, when it is there.
    #[must_use]
    pub fn kind(&self, name: &str) -> Option<Kind> {
        self.functions.get(name).map(|f| f.kind)
    }
}

/// JSON has no maps with structures for keys: links are a list.
mod links {
    use super::{Ends, Transport};
    use schemars::JsonSchema;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::collections::BTreeMap;

    /// A link as it is written.
    #[derive(Serialize, Deserialize, JsonSchema)]
    pub(super) struct Row {
        #[serde(flatten)]
        ends: Ends,
        #[serde(default)]
        transport: Transport,
    }

    pub(super) fn serialize<S: Serializer>(
        links: &BTreeMap<Ends, Transport>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(links.iter().map(|(e, t)| Row { ends: e.clone(), transport: *t }))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<Ends, Transport>, D::Error> {
        let rows = Vec::<Row>::deserialize(deserializer)?;
        Ok(rows.into_iter().map(|r| (r.ends, r.transport)).collect())
    }
}
