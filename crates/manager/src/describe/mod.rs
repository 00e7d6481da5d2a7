//! Descriptions: a network as text, in TOML or YAML.
//!
//! ```toml
//! network = "nfd"
//! links = ["pd -> cs -> br -> nr", "pd => nr"]
//!
//! [functions.pd]
//! kind = "PD"
//! listen = "tcp4://127.0.0.1:6363"
//! # …
//! ```
//!
//! `->` goes to the consumer side, `=>` to the producer side of a name router; a chain of `->` is
//! a link for each arrow. An error names the line, the object, and what to do.

mod decode;
mod read;
mod tree;
mod write;

pub use read::read;
pub use write::{to_toml, to_yaml};

use crate::network::{Fault, Network};
use crate::policy::Policies;
use onym_trust::conf::{Rules, no_include};
use onym_trust::lvs;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// Everything that someone asks of the manager for one network.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Description {
    /// Name of the network.
    pub network: String,
    /// What is done about loops.
    pub loops: Loops,
    /// Functions and links.
    #[serde(flatten)]
    pub graph: Network,
    /// Keys that may register prefixes and sign Data, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, Key>,
    /// Rules of signature verifiers about which key may sign what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// When to scale and when to verify.
    pub policies: Policies,
}

impl Description {
    /// What a description of a whole network must have and this one has not: one that came out
    /// empty must not stop what runs.
    #[must_use]
    pub fn lacks(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        if self.network.trim().is_empty() {
            let next = "write network = \"NAME\" at the top (TOSCA: metadata.template_name)";
            faults.push(Fault::new("network", "the description has no name", next));
        }
        if self.graph.functions.is_empty() {
            let next = "`onym net down` stops a network";
            faults.push(Fault::new("network", "the description has no functions", next));
        }
        faults
    }
}

/// What is done about loops of Interests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Loops {
    /// A backward router is placed on a link that closes one.
    #[default]
    Guard,
    /// They are refused.
    Deny,
}

/// A public key. One of `spki`, `pem` and `certificate` is given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// SubjectPublicKeyInfo, base64 of DER.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spki: Option<String>,
    /// `BEGIN PUBLIC KEY`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pem: Option<String>,
    /// A named-data certificate, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate: Option<String>,
    /// Prefixes it may sign for; none given: the identity of its name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<String>,
}

/// A trust schema for all signature verifiers. One of `lightversec` and `validator` is given.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// LightVerSec, as text. Rules see the names of certificates, so keys are given as such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lightversec: Option<String>,
    /// Validator configuration of ndn-cxx, as text; its anchors do not count here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validator: Option<String>,
    /// Where in the configuration the rules are, with dots.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub section: String,
}

impl Trust {
    /// Checks that it is a schema.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<(), String> {
        match (&self.lightversec, &self.validator) {
            (Some(text), None) => {
                let model = lvs::compile(text, lvs::Mode::Strict).map_err(|e| e.to_string())?;
                let schema = lvs::Schema::new(model, lvs::Functions::default());
                schema.map(|_| ()).map_err(|e| e.to_string())
            }
            (None, Some(text)) => {
                let rules = Rules::parse(text, &self.section, &mut no_include);
                rules.map(|_| ()).map_err(|e| e.to_string())
            }
            _ => Err("it needs exactly one of lightversec and validator".to_owned()),
        }
    }
}

/// A form of descriptions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Form {
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
    /// TOSCA Simple Profile 1.3 in YAML.
    Tosca,
}

impl Form {
    /// The form of a file, by how its name ends.
    #[must_use]
    pub fn of_file(path: &std::path::Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let ends = |end: &str| name.ends_with(end);
        if ends(".tosca.yaml") || ends(".tosca.yml") || ends(".tosca") {
            return Some(Self::Tosca);
        }
        if ends(".toml") {
            return Some(Self::Toml);
        }
        (ends(".yaml") || ends(".yml")).then_some(Self::Yaml)
    }
}

/// A description and where its objects are written.
#[derive(Debug, Clone)]
pub struct Described {
    /// What is asked for.
    pub description: Description,
    /// Lines of objects, by the names that [`Fault`] uses.
    lines: BTreeMap<String, usize>,
}

impl Described {
    /// Adds to each fault the line of its object.
    #[must_use]
    pub fn locate(&self, mut faults: Vec<Fault>) -> Vec<Fault> {
        for fault in &mut faults {
            fault.line = fault.line.or_else(|| self.lines.get(&fault.object).copied());
        }
        faults
    }
}

/// Why a description was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DescribeError {
    /// It is not TOML or YAML.
    #[error("line {line}: {message}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// What the reader says.
        message: String,
    },
    /// It asks for what cannot be.
    #[error("{}", lines(.0))]
    Faults(Vec<Fault>),
}

fn lines(faults: &[Fault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A plain value as YAML.
pub(crate) fn write_yaml(value: &serde_json::Value, out: &mut String) {
    write::yaml(value, 0, out);
}

/// Reads YAML to a plain value, for formats that have no decoder with lines of their own.
pub(crate) fn yaml_value(text: &str) -> Result<serde_json::Value, DescribeError> {
    Ok(tree::from_yaml(text)?.to_json())
}

/// A description without lines, from a format that does not tell them.
pub(crate) fn without_lines(description: Description) -> Described {
    Described { description, lines: BTreeMap::new() }
}

#[cfg(test)]
mod tests;
