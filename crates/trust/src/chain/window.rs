//! When a whole chain is valid: the common part of the periods of its elements.

use super::refusal::{Element, Refusal};
use onym_crypto::Certificate;
use onym_wire::Name;
use onym_wire::cert::CertTime;

/// One end of a window, and whose it is.
#[derive(Debug, Clone)]
struct End {
    at: CertTime,
    element: Element,
    name: Name,
}

/// From when until when all elements of a chain are valid. Empty when they never are together.
#[derive(Debug, Clone, Default)]
pub(super) struct Window {
    from: Option<End>,
    until: Option<End>,
}

impl Window {
    /// The period of one certificate.
    pub(super) fn of(certificate: &Certificate, element: Element) -> Self {
        let validity = certificate.validity();
        let end = |at| Some(End { at, element, name: certificate.name().to_name() });
        Self { from: end(validity.not_before), until: end(validity.not_after) }
    }

    /// No end: for an anchor whose period does not count.
    pub(super) const fn always() -> Self {
        Self { from: None, until: None }
    }

    /// What both have in common.
    pub(super) fn within(self, other: &Self) -> Self {
        let later = |a: Option<End>, b: Option<End>| match (a, b) {
            (Some(a), Some(b)) => Some(if b.at > a.at { b } else { a }),
            (a, b) => a.or(b),
        };
        let earlier = |a: Option<End>, b: Option<End>| match (a, b) {
            (Some(a), Some(b)) => Some(if b.at < a.at { b } else { a }),
            (a, b) => a.or(b),
        };
        Self {
            from: later(self.from, other.from.clone()),
            until: earlier(self.until, other.until.clone()),
        }
    }

    /// Checks a moment in milliseconds since the Unix epoch; both ends count as valid.
    pub(super) fn check(&self, moment_ms: u64) -> Result<(), Refusal> {
        let second = i64::try_from(moment_ms / 1000).unwrap_or(i64::MAX);
        if let Some(end) = self.until.as_ref().filter(|end| second > end.at.0) {
            let (element, name) = (end.element, end.name.clone());
            return Err(Refusal::Expired { element, name, not_after: end.at.to_string() });
        }
        if let Some(end) = self.from.as_ref().filter(|end| second < end.at.0) {
            let (element, name) = (end.element, end.name.clone());
            return Err(Refusal::NotYetValid { element, name, not_before: end.at.to_string() });
        }
        Ok(())
    }
}
