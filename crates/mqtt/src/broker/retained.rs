//! What clients here had retained: a node gives no application what that published itself, so the bridge
//! keeps it for who subscribes here later.

use super::holder::Holder;
use super::{Action, Broker};
use crate::packet::Level;
use onym_tables::shares::Shares;
use onym_topics::items;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug)]
struct Kept {
    payload: Arc<[u8]>,
    level: Level,
    /// Whose share it is of, and the number that it has there.
    holder: Holder,
    serial: u64,
}

#[derive(Debug, Default)]
pub(super) struct Retained {
    kept: BTreeMap<Arc<str>, Kept>,
    shares: Shares<Holder, Arc<str>>,
}

/// What a message counts for.
fn octets(topic: &Arc<str>, payload: &[u8]) -> usize {
    size_of::<Kept>() + topic.len() + payload.len()
}

impl Retained {
    /// The message that was retained of a topic.
    pub(super) fn get(&self, topic: &str) -> Option<(Arc<[u8]>, Level)> {
        self.kept.get(topic).map(|kept| (kept.payload.clone(), kept.level))
    }

    fn insert(&mut self, topic: &Arc<str>, payload: Arc<[u8]>, level: Level, holder: Holder) {
        self.remove(topic);
        let serial = self.shares.add(holder, topic.clone(), octets(topic, &payload));
        self.kept.insert(topic.clone(), Kept { payload, level, holder, serial });
    }

    /// Octets of all.
    pub(super) fn octets(&self) -> usize {
        self.shares.octets()
    }

    /// Whether there was one.
    fn remove(&mut self, topic: &Arc<str>) -> bool {
        let Some(kept) = self.kept.remove(topic) else { return false };
        self.shares.remove(kept.holder, kept.serial, octets(topic, &kept.payload));
        true
    }
}

impl Broker {
    /// A client here has a message retained; an empty one takes back what is.
    pub(super) fn retain(
        &mut self,
        topic: &Arc<str>,
        payload: &Arc<[u8]>,
        level: Level,
        holder: Holder,
    ) {
        if payload.is_empty() {
            return self.retain_nothing(topic);
        }
        self.retained.insert(topic, payload.clone(), level, holder);
        self.say_retained(topic, payload);
        while self.retained.octets() > self.limits.retained
            && let Some(oldest) = self.retained.shares.oldest().cloned()
        {
            self.unretained += 1;
            self.retain_nothing(&oldest);
        }
    }

    /// Nothing of a topic is retained here any more: bridges that have it hear so by an empty message.
    fn retain_nothing(&mut self, topic: &Arc<str>) {
        if let Some(wanted) = self.wanted.get_mut(topic) {
            wanted.kept = None;
        }
        if self.retained.remove(topic) {
            self.say_retained(topic, &Arc::from([]));
            let items = items(&self.root, topic);
            self.actions.extend(items.map(|items| Action::Forget(items.retained)));
        }
    }

    fn say_retained(&mut self, topic: &str, payload: &Arc<[u8]>) {
        let item = items(&self.root, topic).map(|items| items.retained);
        let say = |item| Action::Publish { item, payload: payload.clone(), is_kept: true };
        self.actions.extend(item.map(say));
    }
}
