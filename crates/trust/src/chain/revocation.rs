//! Revocation: a list of the operator, and records of issuers and owners.
//!
//! A record is Data of ndnrevoke: `/<identity>/REVOKE/<key id>/<issuer>/<version>/<revoker>`, where
//! the revoker is the issuer's id, signed by the issuer's key, or `self`, signed by the key itself.
//! That there is none says Data of the same name, longer by `nack` and a timestamp.

use onym_crypto::verify::Signed;
use onym_crypto::{Certificate, PublicKey};
use onym_wire::cert::{CertName, ISSUER_SELF};
use onym_wire::data::Data;
use onym_wire::name::Component;
use onym_wire::tlv::{Reader, is_critical, put_nni_tlv, put_tlv};
use onym_wire::{Name, NameRef, types};
use std::collections::BTreeSet;

/// Most entries of a list.
const ENTRIES_MAX: usize = 65_536;
/// How far a clock may be ahead of ours, in milliseconds.
const AHEAD_MS: u64 = 120_000;
/// The component behind the identity.
const REVOKE: Component<'static> = Component::generic(b"REVOKE");
/// The component behind the name of a record that is not there.
const NACK: Component<'static> = Component::generic(b"nack");

const TIMESTAMP: u32 = 201;
const KEY_DIGEST: u32 = 202;
const REASON: u32 = 203;
const NOT_BEFORE: u32 = 205;

/// An entry of a list that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line}: {text:?} is neither the name of a key or certificate nor sha256:HEX of a public key"
)]
pub struct ListError {
    /// Line, from 1.
    pub line: usize,
    /// What stands there.
    pub text: String,
}

/// Certificates and keys that are believed no longer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Revoked {
    names: BTreeSet<Name>,
    keys: BTreeSet<[u8; 32]>,
}

impl Revoked {
    /// Reads a list: on each line the name of a certificate, the name of a key with all its
    /// certificates, or `sha256:` and the digest of a public key (SubjectPublicKeyInfo) in
    /// hexadecimal digits. What is behind `#` is a comment.
    ///
    /// # Errors
    /// [`ListError`] for the first line that is none of these, or is beyond the bound.
    pub fn parse(text: &str) -> Result<Self, ListError> {
        let mut list = Self::default();
        for (number, line) in text.lines().enumerate() {
            let entry = line.split('#').next().unwrap_or_default().trim();
            if entry.is_empty() {
                continue;
            }
            let bad = || ListError { line: number + 1, text: entry.to_owned() };
            if list.len() >= ENTRIES_MAX {
                return Err(bad());
            }
            match entry.strip_prefix("sha256:") {
                Some(hex) => {
                    list.keys.insert(digest(hex).ok_or_else(bad)?);
                }
                None => {
                    let name: Name = entry.parse().map_err(|_| bad())?;
                    if onym_crypto::cert::key_of_locator(name.as_ref()).is_none() {
                        return Err(bad());
                    }
                    list.names.insert(name);
                }
            }
        }
        Ok(list)
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len() + self.keys.len()
    }

    /// Whether nothing is revoked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty() && self.keys.is_empty()
    }

    /// Adds a certificate, or a key with all its certificates.
    pub fn add(&mut self, name: NameRef<'_>) {
        self.names.insert(name.to_name());
    }

    /// Adds a key by the SHA-256 of its SubjectPublicKeyInfo.
    pub fn add_key(&mut self, digest: [u8; 32]) {
        self.keys.insert(digest);
    }

    pub(super) fn has(&self, certificate: &Certificate) -> bool {
        let names = [certificate.name(), certificate.key_name()];
        names.iter().any(|name| self.names.contains(name.value()))
            || (!self.keys.is_empty() && self.keys.contains(&certificate.public_key().key_digest()))
    }
}

fn digest(hex: &str) -> Option<[u8; 32]> {
    let hex = hex.as_bytes();
    let mut out = [0; 32];
    if hex.len() != 64 {
        return None;
    }
    for (octet, pair) in out.iter_mut().zip(hex.chunks_exact(2)) {
        let text = std::str::from_utf8(pair).ok().filter(|t| !t.starts_with('+'))?;
        *octet = u8::from_str_radix(text, 16).ok()?;
    }
    Some(out)
}

/// Which certificates' records are looked up before they are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Records {
    /// Certificates of keys whose identity is under one of these.
    pub prefixes: Vec<Name>,
    /// How long an answer counts, in milliseconds; then it is asked for again.
    pub keep_ms: u64,
    /// Whether a certificate is refused while its issuer's answer cannot be had. Otherwise whoever
    /// keeps the answer away keeps a revoked certificate alive.
    pub needed: bool,
}

impl Default for Records {
    fn default() -> Self {
        Self { prefixes: Vec::new(), keep_ms: 3_600_000, needed: false }
    }
}

impl Records {
    pub(super) fn are_about(&self, certificate: &Certificate) -> bool {
        self.prefixes.iter().any(|prefix| prefix.as_ref().is_prefix_of(certificate.identity()))
    }
}

/// Who may say that a certificate is revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revoker {
    /// Who issued it.
    Issuer,
    /// The key itself.
    Owner,
}

impl std::fmt::Display for Revoker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Issuer => "issuer",
            Self::Owner => "owner",
        })
    }
}

/// Name of the record by which `revoker` revokes the certificate of this full name.
#[must_use]
pub fn record_name(certificate: NameRef<'_>, revoker: Revoker) -> Option<Name> {
    let parts = CertName::parse(certificate)?;
    let by = match revoker {
        Revoker::Issuer => parts.issuer_id,
        Revoker::Owner => ISSUER_SELF,
    };
    let name = parts.identity.to_name().with(REVOKE);
    Some(name.with(parts.key_id).with(parts.issuer_id).with(parts.version).with(by))
}

/// Name of the issuer's statement at `now_ms` that there is no record of this name.
#[must_use]
pub fn no_record_name(record: NameRef<'_>, now_ms: u64) -> Name {
    let mut name = record.to_name().with(NACK);
    name.append_timestamp(now_ms.saturating_mul(1000));
    name
}

/// Whether `name` is that of a record, and by whom it would be made.
#[must_use]
pub fn record_by(name: NameRef<'_>) -> Option<Revoker> {
    let identity = name.len().checked_sub(5)?;
    let mut tail = name.components().skip(identity);
    let is_record = tail.next() == Some(REVOKE);
    let by = if tail.last() == Some(ISSUER_SELF) { Revoker::Owner } else { Revoker::Issuer };
    is_record.then_some(by)
}

/// What a record or its absence says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Revoked { reason: u64 },
    NotRevoked,
}

/// Reads what came for the record of `certificate`, which must be signed with `key`.
///
/// # Errors
/// What is wrong with it, in words.
pub(super) fn read(
    wire: &[u8],
    certificate: &Certificate,
    revoker: Revoker,
    key: &PublicKey,
    now_ms: u64,
    keep_ms: u64,
) -> Result<Answer, String> {
    let data = Data::parse(wire).map_err(|e| e.to_string())?;
    let record = record_name(certificate.name(), revoker).ok_or("it is no certificate")?;
    let tail = data.name.strip_prefix(record.as_ref()).ok_or("it has another name")?;
    Signed::data(&data).verify_key(key).map_err(|e| e.to_string())?;
    if tail.is_empty() && data.content_type == types::CONTENT_KEY {
        return content(data.content, certificate, now_ms);
    }
    let mut tail = tail.components();
    let (nack, time) = (tail.next(), tail.next().and_then(Component::as_timestamp));
    if nack != Some(NACK) || tail.next().is_some() || data.content_type != types::CONTENT_NACK {
        return Err("it is neither a record nor a statement that there is none".into());
    }
    let at_ms = time.ok_or("the statement has no timestamp")? / 1000;
    if at_ms > now_ms.saturating_add(AHEAD_MS) || now_ms.saturating_sub(at_ms) > keep_ms {
        return Err("the statement that there is no record is not of now".into());
    }
    Ok(Answer::NotRevoked)
}

fn content(content: &[u8], certificate: &Certificate, now_ms: u64) -> Result<Answer, String> {
    let (mut digest, mut reason, mut not_before_ms, mut made_ms) = (None, 0, 0, None);
    for element in Reader::new(content) {
        let element = element.map_err(|e| e.to_string())?;
        let number = || element.nni().map_err(|e| e.to_string());
        match element.typ {
            TIMESTAMP => made_ms = Some(number()?),
            KEY_DIGEST => digest = Some(element.value),
            REASON => reason = number()?,
            NOT_BEFORE => not_before_ms = number()?,
            typ if is_critical(typ) => return Err(format!("it has an element of type {typ}")),
            _ => {}
        }
    }
    if made_ms.is_none() {
        return Err("the record says not when it was made".into());
    }
    if digest != Some(certificate.public_key().key_digest().as_slice()) {
        return Err("the record is about another key".into());
    }
    let is_revoked = not_before_ms <= now_ms;
    Ok(if is_revoked { Answer::Revoked { reason } } else { Answer::NotRevoked })
}

/// The words for a reason's number.
pub(super) const fn reason_words(reason: u64) -> &'static str {
    match reason {
        1 => "the key is in wrong hands",
        2 => "the authority's key is in wrong hands",
        4 => "another certificate took its place",
        _ => "without a reason",
    }
}

/// A record, before it is signed: its name and content.
#[must_use]
pub fn record(
    certificate: &Certificate,
    revoker: Revoker,
    reason: u64,
    now_ms: u64,
) -> Option<(Name, Vec<u8>)> {
    let name = record_name(certificate.name(), revoker)?;
    let mut content = Vec::new();
    put_nni_tlv(&mut content, TIMESTAMP, now_ms);
    put_nni_tlv(&mut content, REASON, reason);
    put_tlv(&mut content, KEY_DIGEST, &certificate.public_key().key_digest());
    Some((name, content))
}
