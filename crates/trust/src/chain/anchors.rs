//! Trust anchors.

use crate::policy::{Denial, Policy};
use onym_crypto::Certificate;
use onym_crypto::cert::key_of_locator;
use onym_wire::NameRef;
use std::collections::BTreeMap;

/// Most anchors.
const ANCHORS_MAX: usize = 1024;

/// The group of anchors that are set once.
const STATIC: &str = "";

/// Why an anchor is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AnchorError {
    /// The rules know no root of trust with such a name.
    #[error("it cannot be a trust anchor: {0}")]
    Denied(Denial),
    /// There are too many.
    #[error("there are {ANCHORS_MAX} trust anchors already")]
    Full,
}

/// What a look at a file or folder of anchors changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupChange {
    /// Anchors that are new, or whose octets changed under the same name.
    pub added: usize,
    /// Anchors that are gone, or changed.
    pub removed: usize,
    /// Certificates that may be no anchors by the rules, or are too many.
    pub refused: usize,
}

/// Trust anchors, each in a group: the file or folder that it came from.
#[derive(Debug, Clone, Default)]
pub struct Anchors {
    groups: BTreeMap<String, Vec<Certificate>>,
}

impl Anchors {
    /// All anchors.
    pub fn iter(&self) -> impl Iterator<Item = &Certificate> {
        self.groups.values().flatten()
    }

    fn len(&self) -> usize {
        self.groups.values().map(Vec::len).sum()
    }

    pub(super) fn add(
        &mut self,
        certificate: Certificate,
        policy: &dyn Policy,
    ) -> Result<(), AnchorError> {
        policy.anchor(certificate.name()).map_err(AnchorError::Denied)?;
        if self.iter().any(|known| *known == certificate) {
            return Ok(());
        }
        if self.len() >= ANCHORS_MAX {
            return Err(AnchorError::Full);
        }
        self.groups.entry(STATIC.to_owned()).or_default().push(certificate);
        Ok(())
    }

    /// Keeps the anchors that `policy` has a root for.
    ///
    /// # Errors
    /// When that is none of them; then all are kept.
    pub(super) fn retain(&mut self, policy: &dyn Policy) -> Result<(), AnchorError> {
        let denied = |c: &Certificate| policy.anchor(c.name()).err();
        let first = self.iter().next().and_then(denied);
        if let Some(denial) = first.filter(|_| self.iter().all(|c| denied(c).is_some())) {
            return Err(AnchorError::Denied(denial));
        }
        for group in self.groups.values_mut() {
            group.retain(|anchor| denied(anchor).is_none());
        }
        self.groups.retain(|_, group| !group.is_empty());
        Ok(())
    }

    pub(super) fn replace(
        &mut self,
        group: &str,
        certificates: Vec<Certificate>,
        policy: &dyn Policy,
    ) -> GroupChange {
        let old = self.groups.remove(group).unwrap_or_default();
        let mut change = GroupChange::default();
        let mut new: Vec<Certificate> = Vec::new();
        for certificate in certificates {
            let is_full = self.len() + new.len() >= ANCHORS_MAX;
            if is_full || policy.anchor(certificate.name()).is_err() {
                change.refused += 1;
            } else if !new.contains(&certificate) {
                new.push(certificate);
            }
        }
        change.added = new.iter().filter(|c| !old.contains(c)).count();
        change.removed = old.iter().filter(|c| !new.contains(c)).count();
        if !new.is_empty() {
            self.groups.insert(group.to_owned(), new);
        }
        change
    }

    /// The anchor that a locator means: of the same key name, the named certificate preferred,
    /// then one that is valid. Its key decides; a name proves nothing.
    pub(super) fn find(&self, locator: NameRef<'_>, now_ms: u64) -> Option<&Certificate> {
        let key = key_of_locator(locator)?;
        let same = || self.iter().filter(move |anchor| anchor.key_name() == key);
        let named = || same().filter(move |anchor| locator.is_prefix_of(anchor.name()));
        let valid = |anchor: &&Certificate| anchor.check_valid_at(now_ms).is_ok();
        named()
            .find(valid)
            .or_else(|| same().find(valid))
            .or_else(|| named().next())
            .or_else(|| same().next())
    }
}
