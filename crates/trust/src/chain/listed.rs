//! What lists of certificates say, and which of a key is the newest.

use onym_wire::Name;
use std::collections::{BTreeMap, VecDeque};

/// Keys whose newest list is remembered; for another one, the key of the oldest memory is forgotten.
const KEYS_MAX: usize = 1024;

/// What a list says: its version, and the certificates that are still to be tried.
#[derive(Debug, Clone)]
pub(super) struct Listed {
    pub(super) version: Option<u64>,
    pub(super) left: VecDeque<Name>,
}

/// The newest lists of keys, so that nobody brings back a certificate that its owner has taken off
/// the list. A key is remembered once a list of it led to an anchor: strangers take no room.
#[derive(Debug, Clone, Default)]
pub(super) struct Newest {
    by_key: BTreeMap<[u8; 32], Option<u64>>,
    order: VecDeque<[u8; 32]>,
}

impl Newest {
    /// Whether a list that the key signed counts. A list without version is older than any with one.
    pub(super) fn takes(&mut self, key: &[u8; 32], version: Option<u64>) -> bool {
        let Some(newest) = self.by_key.get_mut(key) else { return true };
        let is_taken = version >= *newest;
        *newest = version.max(*newest);
        is_taken
    }

    pub(super) fn remember(&mut self, key: [u8; 32], version: Option<u64>) {
        let newest = self.by_key.entry(key).or_insert_with(|| {
            self.order.push_back(key);
            version
        });
        *newest = version.max(*newest);
        if self.order.len() > KEYS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_key.remove(&oldest);
        }
    }
}
