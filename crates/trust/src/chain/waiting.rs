//! The table of what waits for certificates, by the locator that it waits for.

use super::claim::{Context, OwnedClaim};
use onym_crypto::Certificate;
use onym_wire::Name;
use std::collections::BTreeMap;

/// All that waits, by the locator that it waits for.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pub(super) wanted: BTreeMap<Name, Wanted>,
    pub(super) by_id: BTreeMap<u64, Name>,
    pub(super) last_id: u64,
    pub(super) packets: usize,
    pub(super) octets: usize,
}

/// A certificate that is wanted.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) id: u64,
    pub(super) state: State,
    pub(super) waiters: Vec<Waiter>,
    /// Most certificates that wait below it, one for the other.
    pub(super) below: usize,
    pub(super) asked_ms: u64,
    /// Where the packet came from that it is for first.
    pub(super) via: Option<u64>,
}

#[derive(Debug)]
pub(super) enum State {
    /// Asked for.
    Fetching,
    /// It came; its issuer's certificate is wanted.
    Issuer { certificate: Certificate, issuer: Name },
}

#[derive(Debug)]
pub(super) enum Waiter {
    Packet {
        ticket: u64,
        claim: OwnedClaim,
        context: Context,
    },
    /// The certificate that is wanted under this locator.
    Certificate(Name),
}

impl Waiting {
    pub(super) fn locator_of(&self, id: u64) -> Option<Name> {
        let name = self.by_id.get(&id)?;
        let wanted = self.wanted.get(name)?;
        matches!(wanted.state, State::Fetching).then(|| name.clone())
    }

    /// Fetches that were asked for before this moment.
    pub(super) fn overdue(&self, before_ms: u64) -> Vec<u64> {
        let late = self.wanted.values().filter(|wanted| {
            matches!(wanted.state, State::Fetching) && wanted.asked_ms < before_ms
        });
        late.map(|wanted| wanted.id).collect()
    }

    /// What `from` waits for, upwards, itself not counted.
    pub(super) fn above(&self, from: &Name) -> Vec<Name> {
        let mut found = Vec::new();
        let mut at = from;
        while let Some(State::Issuer { issuer, .. }) = self.wanted.get(at.value()).map(|w| &w.state)
        {
            found.push(issuer.clone());
            at = issuer;
        }
        found
    }
}
