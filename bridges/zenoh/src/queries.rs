//! Queries of Zenoh, answered by what Onym retains. An application of its own subscribes to what they ask
//! for, as long as it takes to hear it: the bridge may be subscribed to it already, and hears nothing then.

use anyhow::Result;
use onym_client::push::{App, Event};
use onym_topics::{Items, Topics};
use onym_wire::push::{Id, Path, Strategy};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zenoh::Wait;
use zenoh::key_expr::KeyExpr;
use zenoh::query::Query;

/// What is retained comes within so long.
const WITHIN: Duration = Duration::from_secs(1);
/// Most queries under way.
pub(crate) const QUERIES_MAX: usize = 256;
/// Most topics that answer a query.
const TOPICS_MAX: usize = 1024;
/// Most topics that are being read.
const READING_MAX: usize = 4096;
/// Events of the node taken at once.
const EVENTS: usize = 256;

/// A topic that is being read.
#[derive(Debug)]
struct Reading {
    key: KeyExpr<'static>,
    items: Items,
    until: Instant,
    /// The last value that came.
    value: Option<Vec<u8>>,
    /// Who waits for it.
    queries: Vec<u64>,
}

/// A query under way, and the topics that are being read for it.
#[derive(Debug)]
struct Asked {
    query: Query,
    left: usize,
}

/// Which item of a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Value,
    Retained,
}

#[derive(Debug)]
pub(crate) struct Queries {
    /// Its application.
    pub(crate) own: Topics,
    /// Octets that values of topics may have that are being read.
    octets_max: usize,
    octets: usize,
    reading: BTreeMap<Arc<str>, Reading>,
    items: BTreeMap<Id, (Arc<str>, Of)>,
    asked: BTreeMap<u64, Asked>,
    last: u64,
    /// Topics that answered.
    pub(crate) answered: u64,
    /// Queries, topics of them, and values for which there was no room.
    pub(crate) refused: u64,
}

/// What a query hears that is not answered, or not wholly. A querier that is gone hears nothing.
pub(crate) fn refuse(query: &Query, why: &str) {
    let _ = query.reply_err(why).wait();
}

impl Queries {
    pub(crate) fn new(app: App, root: &Path, strategy: Strategy, octets_max: usize) -> Self {
        let own = Topics::silent(app, root, strategy);
        let (reading, items, asked) = Default::default();
        let (octets, last, answered, refused) = (0, 0, 0, 0);
        Self { own, octets_max, octets, reading, items, asked, last, answered, refused }
    }

    /// A query asks for these topics.
    pub(crate) fn ask<'a>(
        &mut self,
        now: Instant,
        query: Query,
        topics: impl Iterator<Item = (&'a Arc<str>, &'a KeyExpr<'static>, &'a Items)>,
    ) -> Result<()> {
        if self.asked.len() >= QUERIES_MAX {
            self.refused += 1;
            refuse(&query, "too many queries");
            return Ok(());
        }
        self.last += 1;
        let (mut left, mut beyond) = (0, 0);
        for (topic, key, items) in topics {
            let has_room = self.reading.len() < READING_MAX || self.reading.contains_key(topic);
            if left >= TOPICS_MAX || !has_room {
                beyond += 1;
                continue;
            }
            left += 1;
            self.read(now, topic, key, items)?;
        }
        if beyond > 0 {
            self.refused += beyond;
            refuse(&query, "more topics match than are answered");
        }
        if left > 0 {
            self.asked.insert(self.last, Asked { query, left });
        }
        Ok(())
    }

    /// The query that came last waits for a topic.
    fn read(
        &mut self,
        now: Instant,
        topic: &Arc<str>,
        key: &KeyExpr<'static>,
        items: &Items,
    ) -> Result<()> {
        if !self.reading.contains_key(topic) {
            for (item, of) in [(&items.value, Of::Value), (&items.retained, Of::Retained)] {
                self.items.insert(item.id.clone(), (Arc::clone(topic), of));
                self.own.subscribe(item)?;
            }
            let (items, until) = (items.clone(), now + WITHIN);
            let reading = Reading { key: key.clone(), items, until, value: None, queries: vec![] };
            self.reading.insert(Arc::clone(topic), reading);
        }
        if let Some(reading) = self.reading.get_mut(topic) {
            reading.queries.push(self.last);
        }
        Ok(())
    }

    /// Takes what the node says; publications that were missed.
    pub(crate) fn turn(&mut self, now: Instant) -> Result<u64> {
        let mut missed = 0;
        for _ in 0..EVENTS {
            let Some(event) = self.own.app.event(Some(Duration::ZERO))? else { break };
            match event {
                Event::Data { id, payload, .. } => self.came(&id, &payload)?,
                Event::Missed(count) | Event::Lost(count) => missed += count,
                event => self.own.heard(&event)?,
            }
        }
        self.own.answered()?;
        let over = self.reading.iter().filter(|(_, reading)| reading.until <= now);
        let over: Vec<Arc<str>> = over.map(|(topic, _)| Arc::clone(topic)).collect();
        for topic in over {
            self.end(&topic)?;
        }
        Ok(missed)
    }

    /// A value of a topic: one that a bridge retains is the only one there is.
    fn came(&mut self, id: &Id, payload: &[u8]) -> Result<()> {
        let Some((topic, of)) = self.items.get(id).cloned() else { return Ok(()) };
        let Some(reading) = self.reading.get_mut(&topic) else { return Ok(()) };
        let before = reading.value.as_ref().map_or(0, Vec::len);
        let octets = self.octets - before + payload.len();
        if octets > self.octets_max {
            self.refused += 1;
            return Ok(());
        }
        (self.octets, reading.value) = (octets, Some(payload.to_vec()));
        if of == Of::Retained { self.end(&topic) } else { Ok(()) }
    }

    /// A topic answers whoever waits for it with what came.
    fn end(&mut self, topic: &Arc<str>) -> Result<()> {
        let Some(reading) = self.reading.remove(topic) else { return Ok(()) };
        let Reading { key, items, value, queries, .. } = reading;
        self.octets -= value.as_ref().map_or(0, Vec::len);
        for item in [&items.value, &items.retained] {
            self.items.remove(&item.id);
            self.own.unsubscribe(item)?;
        }
        self.answered += u64::from(value.is_some());
        for number in queries {
            let Some(asked) = self.asked.get_mut(&number) else { continue };
            // An empty one says that nothing is retained.
            if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
                let _ = asked.query.reply(&key, value.as_slice()).wait();
            }
            asked.left -= 1;
            if asked.left == 0 {
                // Its querier hears that this is all.
                self.asked.remove(&number);
            }
        }
        Ok(())
    }
}
