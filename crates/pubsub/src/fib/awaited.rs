//! Publications that arrive before the answer to their subscription (P-25). A rendezvous answers
//! the subscriber and starts the publisher at the same time, and the publication may be faster, or
//! the answer may be lost and repeated.

use super::Kept;
use crate::data::names_above;
use onym_wire::push::Id;
use std::collections::VecDeque;

/// Publications that are kept at most, and their octets; at the bound the oldest is nobody's.
const PUBLICATIONS_MAX: usize = 256;
const OCTETS_MAX: usize = 1 << 20;

/// What waits for the answer.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    kept: VecDeque<Kept>,
    octets: usize,
}

impl Awaited {
    /// Keeps a publication; how many had to go for it.
    pub(super) fn keep(&mut self, ids: &[Id], payload: &[u8]) -> u64 {
        self.kept.push_back((ids.into(), payload.into()));
        self.octets += payload.len();
        let mut gone = 0;
        while self.kept.len() > PUBLICATIONS_MAX || self.octets > OCTETS_MAX {
            let Some((_, payload)) = self.kept.pop_front() else { break };
            self.octets -= payload.len();
            gone += 1;
        }
        gone
    }

    /// Takes what waited for the subscription `name`.
    pub(super) fn take(&mut self, name: &Id, unwanted: &mut u64) -> Vec<Kept> {
        if self.kept.is_empty() {
            return Vec::new();
        }
        let is_of = |id: &Id| names_above(id, false).any(|above| above == name.octets());
        let all = std::mem::take(self).kept;
        let (taken, left): (Vec<Kept>, _) =
            all.into_iter().partition(|(ids, _)| ids.iter().any(is_of));
        left.into_iter().for_each(|(ids, payload)| *unwanted += self.keep(&ids, &payload));
        taken
    }
}
