//! The keys that a service knows, each bound to the prefixes that it may sign for.
//!
//! Bounded by [`KEYS_MAX`]; a set beyond is refused.

mod key;
mod read;

pub use key::Key;

use crate::control::{Answer, Changed, KeySpec, Merged, SetRequest};
use crate::names;
use crate::refusal::Refusal;
use onym_crypto::Certificate;
use onym_crypto::cert::key_of_locator;
use onym_wire::name::NameRef;
use std::collections::BTreeMap;

/// Most keys.
pub const KEYS_MAX: usize = 4096;

/// Keys by name.
#[derive(Debug, Default)]
pub struct KeySet {
    /// By the value of the key's name.
    keys: BTreeMap<Vec<u8>, Key>,
    next: u64,
}

impl KeySet {
    /// Keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The key that a KeyLocator names: by the key's name or that of a certificate of it.
    #[must_use]
    pub fn of_locator(&self, locator: NameRef<'_>) -> Option<&Key> {
        let direct = self.keys.get(locator.value());
        direct.or_else(|| self.keys.get(key_of_locator(locator)?.value()))
    }

    /// Counts a packet whose signature by this key is valid.
    pub fn count_verified(&mut self, number: u64) {
        self.numbered(number).into_iter().for_each(|key| key.verified += 1);
    }

    /// Counts a packet whose signature by this key is not.
    pub fn count_failed(&mut self, number: u64) {
        self.numbered(number).into_iter().for_each(|key| key.failed += 1);
    }

    fn numbered(&mut self, number: u64) -> Option<&mut Key> {
        self.keys.values_mut().find(|key| key.number == number)
    }

    /// Adds the key of a certificate that was verified; false at the bound.
    pub fn add_certificate(&mut self, certificate: &Certificate) -> bool {
        let name = certificate.key_name().to_name();
        if self.keys.len() >= KEYS_MAX {
            return false;
        }
        let spec = KeySpec {
            name: name.to_string(),
            certificate: Some(crate::table::encode(certificate.wire())),
            ..KeySpec::default()
        };
        let Ok(key) = self.parse("certificate", &spec) else { return false };
        self.keys.insert(name.value().to_vec(), key);
        true
    }

    /// The resource `keys` of the control interface.
    ///
    /// # Errors
    /// What is wrong with a key; then nothing was changed.
    pub fn control(&mut self, request: SetRequest<KeySpec, String>) -> Result<Answer, Refusal> {
        match request {
            SetRequest::List => {
                Ok(Answer::Keys { keys: self.keys.values().map(Key::info).collect() })
            }
            SetRequest::Replace(keys) => {
                let named = self.parse_all("keys", &keys)?;
                let keep: Vec<Vec<u8>> = named.iter().map(|k| k.name.value().to_vec()).collect();
                let gone = |name: &&Vec<u8>| !keep.contains(name);
                let remove: Vec<Vec<u8>> = self.keys.keys().filter(gone).cloned().collect();
                Ok(self.change(named, &remove)?.into())
            }
            SetRequest::Change { add, remove } => {
                let add = self.parse_all("add", &add)?;
                let name = |(at, text): (usize, &String)| {
                    Ok(names::name(&format!("remove/{at}"), text)?.value().to_vec())
                };
                let remove: Result<Vec<_>, Refusal> = remove.iter().enumerate().map(name).collect();
                Ok(self.change(add, &remove?)?.into())
            }
        }
    }

    /// Every key as it can be added again.
    #[must_use]
    pub fn specs(&self) -> Vec<KeySpec> {
        self.keys.values().map(|key| key.spec.clone()).collect()
    }

    /// Adds keys that another instance exported.
    ///
    /// # Errors
    /// What is wrong with a key; then nothing was changed.
    pub fn import(&mut self, keys: &[KeySpec]) -> Result<Answer, Refusal> {
        let add = self.parse_all("entries", keys)?;
        Ok(Merged::from(self.change(add, &[])?).into())
    }

    fn parse_all(&mut self, list: &str, keys: &[KeySpec]) -> Result<Vec<Key>, Refusal> {
        let parse = |(at, spec)| self.parse(&format!("{list}/{at}"), spec);
        keys.iter().enumerate().map(parse).collect()
    }

    fn parse(&mut self, field: &str, spec: &KeySpec) -> Result<Key, Refusal> {
        let key = Key::read(self.next + 1, field, spec)?;
        self.next += 1;
        Ok(key)
    }

    fn change(&mut self, add: Vec<Key>, remove: &[Vec<u8>]) -> Result<Changed, Refusal> {
        let new = add.iter().filter(|k| !self.keys.contains_key(k.name.value())).count();
        if self.keys.len() + new > KEYS_MAX + remove.len() {
            return Err(Refusal::field("keys", format!("at most {KEYS_MAX} keys are kept")));
        }
        let removed = remove.iter().filter(|n| self.keys.remove(*n).is_some()).count() as u64;
        let (mut added, mut unchanged) = (0, 0);
        for key in add {
            let at = key.name.value().to_vec();
            if self.keys.get(&at).is_some_and(|known| known.spec == key.spec) {
                unchanged += 1;
            } else {
                self.keys.insert(at, key);
                added += 1;
            }
        }
        Ok(Changed::new(added, removed, unchanged))
    }
}
