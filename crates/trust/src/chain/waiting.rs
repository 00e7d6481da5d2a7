//! The table of what waits for certificates, by the locator that it waits for and the neighbour
//! that is asked.

use super::claim::{Context, OwnedClaim};
use super::listed::Listed;
use super::revocation::Revoker;
use onym_crypto::Certificate;
use onym_wire::Name;
use std::collections::BTreeMap;

/// A certificate by its locator, and where it is asked for: what one neighbour answers, or leaves
/// unanswered, says nothing about the others.
pub(super) type Want = (Option<u64>, Name);

/// All that waits.
#[derive(Debug, Clone, Default)]
pub(super) struct Waiting {
    pub(super) wanted: BTreeMap<Want, Wanted>,
    pub(super) by_id: BTreeMap<u64, Want>,
    pub(super) last_id: u64,
    pub(super) packets: usize,
    pub(super) octets: usize,
}

/// A certificate that is wanted.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) id: u64,
    pub(super) state: State,
    pub(super) waiters: Vec<Waiter>,
    /// Most certificates that wait below it, one for the other.
    pub(super) below: usize,
    pub(super) asked_ms: u64,
    /// The name that is asked for: the locator, or that of a record.
    pub(super) asked: Name,
}

#[derive(Debug, Clone)]
pub(super) enum State {
    /// Asked for.
    Fetching,
    /// It came; its issuer's certificate is wanted.
    Issuer {
        certificate: Certificate,
        issuer: Name,
        /// It is by its own key: `issuer` is a certificate of the same key from this list.
        listed: Option<Listed>,
    },
    /// It is by its own key; the list of its certificates is asked for.
    List { certificate: Certificate },
    /// Its signature is right; the record of this revoker is asked for.
    Record { certificate: Certificate, issuer: Name, revoker: Revoker },
}

impl State {
    /// Whether something is asked for.
    const fn is_asked(&self) -> bool {
        !matches!(self, Self::Issuer { .. })
    }

    /// Octets that it keeps.
    pub(super) fn octets(&self) -> usize {
        match self {
            Self::Fetching => 0,
            Self::Issuer { certificate, .. }
            | Self::List { certificate }
            | Self::Record { certificate, .. } => certificate.wire().len(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Waiter {
    Packet {
        ticket: u64,
        claim: OwnedClaim,
        context: Context,
    },
    /// The certificate that is wanted there.
    Certificate(Want),
}

impl Waiting {
    /// What a fetch under way is for.
    pub(super) fn of_fetch(&self, id: u64) -> Option<Want> {
        let want = self.by_id.get(&id)?;
        let state = &self.wanted.get(want)?.state;
        state.is_asked().then(|| want.clone())
    }

    /// Fetches whose time is over. One that was asked for at a moment far ahead is over, too: the
    /// clock was put right since.
    pub(super) fn overdue(&self, now_ms: u64, patience_ms: u64) -> Vec<u64> {
        let late = self.wanted.values().filter(|wanted| {
            wanted.state.is_asked() && now_ms.abs_diff(wanted.asked_ms) > patience_ms
        });
        late.map(|wanted| wanted.id).collect()
    }

    /// What is asked for now, at the end of what `from` waits for.
    pub(super) fn top(&self, from: &Want) -> Option<&Name> {
        let at = self.above(from).pop().unwrap_or_else(|| from.clone());
        self.wanted.get(&at).map(|wanted| &wanted.asked)
    }

    /// What `from` waits for, upwards, itself not counted.
    pub(super) fn above(&self, from: &Want) -> Vec<Want> {
        let mut found: Vec<Want> = Vec::new();
        let mut at = from.clone();
        while let Some(State::Issuer { issuer, .. }) = self.wanted.get(&at).map(|w| &w.state) {
            at = (at.0, issuer.clone());
            found.push(at.clone());
        }
        found
    }
}
