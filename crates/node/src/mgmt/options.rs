//! Options of management, set at start and by a reload.

use super::policy::{Localhop, Policy, Rule, certificate};
use crate::config::{Config, ConfigError};
use onym_crypto::Certificate;
use onym_wire::name::Name;
use std::path::Path;

/// Rules and names of management.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Who may do what.
    pub policy: Policy,
    /// Names answered under `/localhop/nfd/rib/routable-prefixes`; none: no answer.
    pub routable_prefixes: Vec<Name>,
}

impl Options {
    /// The options that `config` states. Certificates are read: relative paths start at `base`,
    /// the directory of the file `origin`, which names the configuration in errors.
    ///
    /// # Errors
    /// [`ConfigError::Value`] for the first entry that cannot be read.
    pub fn from_config(config: &Config, origin: &str, base: &Path) -> Result<Self, ConfigError> {
        let read = Read { origin, base };
        let keys = &config.management;
        let mut policy = match keys.open {
            true => Policy::open(&keys.group),
            false => Policy::of_group(&keys.group),
        };
        let rules = config.authorize.iter().enumerate().map(|(i, entry)| {
            Rule::parse(&entry.who, &entry.may, &entry.prefixes, base).map_err(|e| {
                let key = format!("authorize[{i}]");
                read.wrong(&key, &entry.who, &e.to_string())
            })
        });
        if !config.authorize.is_empty() {
            policy.rules = rules.collect::<Result<_, _>>()?;
        }
        let rib = &config.rib;
        if rib.localhop {
            policy.localhop = Some(match rib.localhop_anchors.as_slice() {
                [any] if any == "any" => Localhop::Any,
                files => Localhop::Anchors(read.certificates("rib.localhop_anchors", files)?),
            });
        }
        policy.announcement_anchors =
            read.certificates("rib.announcement_anchors", &rib.announcement_anchors)?;
        let key = "rib.routable_prefixes";
        let names = rib
            .routable_prefixes
            .iter()
            .map(|text| text.parse::<Name>().map_err(|e| read.wrong(key, text, &e.to_string())));
        Ok(Self { policy, routable_prefixes: names.collect::<Result<_, _>>()? })
    }
}

/// Where values were read.
struct Read<'a> {
    origin: &'a str,
    base: &'a Path,
}

impl Read<'_> {
    fn wrong(&self, key: &str, value: &str, why: &str) -> ConfigError {
        ConfigError::Value {
            origin: self.origin.to_owned(),
            key: key.to_owned(),
            value: format!("`{value}`"),
            allowed: why.to_owned(),
        }
    }

    fn certificates(&self, key: &str, list: &[String]) -> Result<Vec<Certificate>, ConfigError> {
        let one = |text: &String| {
            certificate(text, self.base).map_err(|why| {
                let allowed =
                    format!("{why}; allowed are paths of certificate files and key:/NAME");
                self.wrong(key, text, &allowed)
            })
        };
        list.iter().map(one).collect()
    }
}
