//! The keys that a service knows, each bound to the prefixes that it may sign for.
//!
//! Bounded by [`KEYS_MAX`]; a set beyond is refused.

use crate::control::{Answer, Changed, KeyInfo, KeySpec, Merged, SetRequest};
use crate::element::Refusal;
use crate::names;
use crate::table::decode;
use crate::verify::Secret;
use onym_crypto::cert::{identity_of_key, key_of_locator};
use onym_crypto::{Certificate, PublicKey};
use onym_wire::cert::ValidityPeriod;
use onym_wire::name::{Name, NameRef};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most keys.
pub const KEYS_MAX: usize = 4096;

/// Fewest octets of a shared secret.
const SECRET_LEN_MIN: usize = 16;

/// One key.
#[derive(Debug, Clone)]
pub struct Key {
    /// Its name.
    pub name: Name,
    /// Full name of the certificate that it came with.
    pub certificate: Option<Name>,
    /// When it counts, where a certificate says so.
    validity: Option<ValidityPeriod>,
    /// What it verifies with.
    pub secret: Arc<Secret>,
    /// What it may sign for.
    pub prefixes: Vec<Name>,
    /// Signatures found right and wrong.
    pub verified: u64,
    /// Signatures found wrong.
    pub failed: u64,
    number: u64,
    spec: KeySpec,
}

impl Key {
    /// Whether it may sign for `name`.
    #[must_use]
    pub fn may_sign(&self, name: NameRef<'_>) -> bool {
        self.prefixes.iter().any(|p| p.as_ref().is_prefix_of(name))
    }

    /// Whether its certificate is valid at this moment, in milliseconds since the Unix epoch; a key
    /// without one always is.
    #[must_use]
    pub fn is_valid_at(&self, now_ms: u64) -> bool {
        let second = i64::try_from(now_ms / 1000).unwrap_or(i64::MAX);
        self.validity.is_none_or(|validity| validity.contains(second))
    }

    /// Its number in the set, never used again.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    fn info(&self) -> KeyInfo {
        let kind = match &*self.secret {
            Secret::Public(key) => key.key_type().word(),
            Secret::Hmac(_) => "hmac",
        };
        KeyInfo {
            name: self.name.to_string(),
            kind,
            prefixes: self.prefixes.iter().map(ToString::to_string).collect(),
            verified: self.verified,
            failed: self.failed,
        }
    }
}

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

    fn parse(&mut self, field: &str, spec: &KeySpec) -> Result<Key, Refusal> {
        let bad = |what: &str, why: String| Refusal::field(format!("{field}/{what}"), why);
        let mut name = spec.name.clone();
        let (mut of, mut validity) = (None, None);
        let given = [&spec.spki, &spec.pem, &spec.certificate, &spec.hmac];
        if given.iter().filter(|g| g.is_some()).count() != 1 {
            return Err(bad("", "exactly one of spki, pem, certificate and hmac is given".into()));
        }
        let public = |what: &str, der: &[u8]| {
            PublicKey::from_spki(der).map(Secret::Public).map_err(|e| bad(what, e.to_string()))
        };
        let secret = if let Some(text) = &spec.spki {
            public("spki", &decode(field, text)?)?
        } else if let Some(text) = &spec.pem {
            let body = text.lines().filter(|l| !l.starts_with("-----")).collect::<String>();
            public("pem", &decode(field, &body)?)?
        } else if let Some(text) = &spec.certificate {
            let wire = decode(field, text)?;
            let parsed = Certificate::parse(&wire);
            let certificate = parsed.map_err(|e| bad("certificate", e.to_string()))?;
            if name.is_empty() {
                name = certificate.key_name().to_string();
            }
            of = Some(certificate.name().to_name());
            validity = Some(certificate.validity());
            Secret::Public(certificate.public_key().clone())
        } else {
            let secret = decode(field, spec.hmac.as_deref().unwrap_or_default())?;
            if secret.len() < SECRET_LEN_MIN {
                let text = format!("a secret has at least {SECRET_LEN_MIN} octets");
                return Err(bad("hmac", text));
            }
            Secret::Hmac(secret)
        };
        let name = names::name(&format!("{field}/name"), &name)?;
        let mut prefixes = Vec::new();
        for text in &spec.prefixes {
            prefixes.push(names::name(&format!("{field}/prefixes"), text)?);
        }
        if prefixes.is_empty() {
            let identity = identity_of_key(name.as_ref()).map(NameRef::to_name);
            prefixes.push(identity.unwrap_or_else(|_| name.clone()));
        }
        self.next += 1;
        let (number, spec) = (self.next, spec.clone());
        let (secret, verified, failed) = (Arc::new(secret), 0, 0);
        let certificate = of;
        Ok(Key { name, certificate, validity, secret, prefixes, verified, failed, number, spec })
    }
}
