//! Options of management, set at start and by a reload.

use super::authorize::{ANNOUNCEMENTS, LOCALHOP};
use super::guards::{Guards, by_hierarchy};
use super::policy::{Announcers, Localhop, Policy, Rule, Who, certificate};
use crate::config::{Config, ConfigError};
use onym_crypto::Certificate;
use onym_crypto::edge::unix_now_ms;
use onym_guard::Guard;
use onym_wire::name::Name;
use std::path::Path;

/// Rules and names of management.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Who may do what.
    pub policy: Policy,
    /// Whose signatures count beyond the keys that rules name.
    pub trust: Guards,
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
        let mut trust = read.guards(config)?;
        read.localhop(config, &mut policy, &mut trust)?;
        read.announcers(config, &mut policy, &mut trust)?;
        let named = policy.rules.iter().filter_map(|rule| match &rule.who {
            Who::Trusted(name) => Some(name),
            _ => None,
        });
        for name in named {
            read.known("authorize.who", name, &trust)?;
        }
        for entry in &config.cs.verify {
            read.known("cs.verify.trust", &entry.trust, &trust)?;
        }
        let rib = &config.rib;
        let key = "rib.routable_prefixes";
        let names = rib
            .routable_prefixes
            .iter()
            .map(|text| text.parse::<Name>().map_err(|e| read.wrong(key, text, &e.to_string())));
        Ok(Self { policy, trust, routable_prefixes: names.collect::<Result<_, _>>()? })
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

    /// The entries of `trust`, opened.
    fn guards(&self, config: &Config) -> Result<Guards, ConfigError> {
        let mut guards = Guards::default();
        for (i, entry) in config.trust.iter().enumerate() {
            let key = format!("trust[{i}]");
            let guard = Guard::open(entry.clone(), self.base, unix_now_ms());
            let guard = guard.map_err(|e| self.wrong(&key, &entry.name, &e.to_string()))?;
            guards.0.insert(entry.name.clone(), guard);
        }
        Ok(guards)
    }

    /// That an entry of `trust` has this name.
    fn known(&self, key: &str, name: &str, trust: &Guards) -> Result<(), ConfigError> {
        if trust.0.contains_key(name) && !name.contains('.') {
            return Ok(());
        }
        let names = trust.0.keys().filter(|name| !name.contains('.'));
        let names: Vec<&str> = names.map(String::as_str).collect();
        let allowed = match names.as_slice() {
            [] => "the name of an entry of `trust`, of which there is none".to_owned(),
            names => format!("the name of an entry of `trust`: {}", names.join(", ")),
        };
        Err(self.wrong(key, name, &allowed))
    }

    fn localhop(
        &self,
        config: &Config,
        policy: &mut Policy,
        trust: &mut Guards,
    ) -> Result<(), ConfigError> {
        let rib = &config.rib;
        if !rib.localhop {
            return Ok(());
        }
        policy.localhop = Some(match rib.localhop_anchors.as_slice() {
            _ if !rib.localhop_trust.is_empty() => {
                self.known("rib.localhop_trust", &rib.localhop_trust, trust)?;
                Localhop::Trust(rib.localhop_trust.clone())
            }
            [any] if any == "any" => Localhop::Any,
            files => {
                let anchors = self.certificates("rib.localhop_anchors", files)?;
                trust.0.insert(LOCALHOP.to_owned(), by_hierarchy(anchors));
                Localhop::Anchors
            }
        });
        Ok(())
    }

    fn announcers(
        &self,
        config: &Config,
        policy: &mut Policy,
        trust: &mut Guards,
    ) -> Result<(), ConfigError> {
        let rib = &config.rib;
        if !rib.announcement_trust.is_empty() {
            self.known("rib.announcement_trust", &rib.announcement_trust, trust)?;
            policy.announcers = Announcers::Trust(rib.announcement_trust.clone());
        } else if !rib.announcement_anchors.is_empty() {
            let files = &rib.announcement_anchors;
            let anchors = self.certificates("rib.announcement_anchors", files)?;
            trust.0.insert(ANNOUNCEMENTS.to_owned(), by_hierarchy(anchors));
            policy.announcers = Announcers::Anchors;
        }
        Ok(())
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
