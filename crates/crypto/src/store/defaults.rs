//! The file of defaults: the default identity, and the default key of each identity.

use super::files;
use crate::{Error, cert};
use onym_wire::{Name, NameRef};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// The defaults of a store: a line `identity NAME`, and a line `key NAME` for each identity.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Defaults {
    identity: Option<Name>,
    /// Identity to key.
    keys: BTreeMap<Name, Name>,
}

impl Defaults {
    pub(super) fn read(dir: &Path) -> Result<Self, Error> {
        let path = dir.join("defaults");
        let mut defaults = Self::default();
        let Some(text) = files::read(&path)? else { return Ok(defaults) };
        for line in text.lines() {
            let bad = |why: String| Error::Store {
                path: path.clone(),
                what: format!("line {line:?}: {why}"),
            };
            let (word, uri) = line.split_once(' ').ok_or_else(|| bad("two words".into()))?;
            let name: Name = uri.parse().map_err(|e| bad(format!("{e}")))?;
            match word {
                "identity" => defaults.identity = Some(name),
                "key" => {
                    let identity = cert::identity_of_key(name.as_ref())
                        .map_err(|e| bad(e.to_string()))?
                        .to_name();
                    defaults.keys.insert(identity, name);
                }
                _ => return Err(bad("allowed are `identity NAME` and `key NAME`".into())),
            }
        }
        Ok(defaults)
    }

    pub(super) fn write(&self, dir: &Path) -> Result<(), Error> {
        let mut text = String::new();
        if let Some(identity) = &self.identity {
            let _ = writeln!(text, "identity {identity}");
        }
        for key in self.keys.values() {
            let _ = writeln!(text, "key {key}");
        }
        files::replace(&dir.join("defaults"), text.as_bytes())
    }

    pub(super) fn identity(&self) -> Option<&Name> {
        self.identity.as_ref()
    }

    pub(super) fn key_of(&self, identity: NameRef<'_>) -> Option<&Name> {
        self.keys.get(identity.value())
    }

    pub(super) fn is_default_of_identity(&self, key: NameRef<'_>) -> bool {
        self.keys.values().any(|k| *k == key)
    }

    pub(super) fn is_of_default_identity(&self, key: &Name) -> bool {
        let identity = cert::identity_of_key(key.as_ref()).ok();
        identity.is_some() && identity == self.identity.as_ref().map(Name::as_ref)
    }

    /// Notes a new key; whether that changed a default.
    pub(super) fn add(&mut self, identity: NameRef<'_>, key: NameRef<'_>) -> bool {
        let first_key = !self.keys.contains_key(identity.value());
        if first_key {
            self.keys.insert(identity.to_name(), key.to_name());
        }
        let first_identity = self.identity.is_none();
        if first_identity {
            self.identity = Some(identity.to_name());
        }
        first_key || first_identity
    }

    pub(super) fn set(&mut self, identity: NameRef<'_>, key: NameRef<'_>) {
        self.identity = Some(identity.to_name());
        self.keys.insert(identity.to_name(), key.to_name());
    }

    /// Forgets a deleted key; another one of `left` takes its place where there is one.
    pub(super) fn remove(&mut self, key: NameRef<'_>, left: &[Name]) {
        let Ok(identity) = cert::identity_of_key(key) else { return };
        if self.key_of(identity).is_some_and(|k| *k == key) {
            self.keys.remove(identity.value());
            let is_heir =
                |k: &&Name| cert::identity_of_key(k.as_ref()).is_ok_and(|i| i == identity);
            if let Some(heir) = left.iter().find(is_heir) {
                self.keys.insert(identity.to_name(), heir.clone());
            }
        }
        let lost = self.identity.as_ref().is_some_and(|i| !self.keys.contains_key(i.value()));
        if lost {
            self.identity = self.keys.keys().next().cloned();
        }
    }
}
