//! The push FIB of a shard: what a publication needs there, and nothing that takes long.
//!
//! For an item it has the application that publishes it, what comes before the payload in its
//! frames, and its numbers; for an identifier those who subscribed. The control plane changes it by
//! a [`Delta`] for each item and subscription, in one order with what it says otherwise. What a FIB
//! cannot do itself it passes to the control plane, and whatever belongs behind that follows it
//! there until the control plane is done (a fence): nothing is overtaken.

mod awaited;
mod numbers;
mod publish;
mod receive;
mod receivers;
#[cfg(test)]
mod tests;

pub use numbers::LOOKS_MAX;
pub(crate) use numbers::OPTION_LEN;
pub use receive::Received;

use crate::counters::Counters;
use crate::data::{Aliases, Handout, Place, Receivers as List};
use crate::names::{Hashing, Key, Names};
use crate::publication::{AppId, To};
use awaited::Awaited;
use numbers::{Heard, Numbers, Watched};
use onym_tables::Tick;
use onym_wire::push::{Id, Label, RouteBuf, Strategy};
use receivers::Receivers;
use smallvec::SmallVec;

/// Settings of a push FIB.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node.
    pub node: Label,
    /// Number of this life of it.
    pub boot: u32,
    /// The shard: a stream of numbers belongs to an item at a shard.
    pub shard: u16,
    /// Most octets of a frame.
    pub frame_max: usize,
    /// Octets that a signature needs in each frame; 0: nothing is signed.
    pub reserve: usize,
    /// Links that a publication may travel beyond the depth of its tree.
    pub spare_hops: u8,
    /// Whether signatures of what comes are checked.
    pub is_checked: bool,
    /// Most octets of a publication.
    pub octets_max: usize,
}

/// The way of an item to other nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// All names of the item.
    pub aliases: SmallVec<[Id; 1]>,
    /// The forwarding part; none: nobody elsewhere subscribed.
    pub route: Option<RouteBuf>,
    /// Links to the farthest subscriber.
    pub hops: u8,
}

/// A change of a push FIB, for one item or subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// The item goes where `way` says, none: it stays in this node under its one name; `app`, of
    /// this shard, publishes it.
    Started {
        /// The item.
        key: Key,
        /// Its publisher.
        app: AppId,
        /// Where it goes.
        way: Option<Box<Way>>,
    },
    /// The item has no subscribers any more.
    Stopped(Key, AppId),
    /// The application publishes the item no more.
    Withdrawn(Key, AppId),
    /// A subscription is asked for: what comes for it before the answer is kept.
    Awaiting(Key),
    /// The application has the subscription.
    Joined(Key, AppId),
    /// The subscription is answered, and its application told: what was kept is handed out.
    Answered(Key),
    /// The application has the subscription no more.
    Left(Key, AppId),
}

/// An item that an application of this shard publishes.
#[derive(Debug)]
struct Item {
    app: AppId,
    is_started: bool,
    way: Option<Box<Way>>,
    /// What comes before the payload in its frames under a strategy, made when it is first needed.
    head: Option<(Strategy, Vec<u8>)>,
    numbers: Numbers,
    /// The last publication that was passed to the control plane.
    fence: u64,
    /// What was found among the receivers when they were as many changes old.
    found: Option<(u64, Found)>,
}

/// Who gets an item.
#[derive(Debug)]
enum Found {
    Nobody,
    /// One list as it is.
    List(List),
}

/// What a push FIB leaves to the control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// Its number among all that the shard passed.
    pub number: u64,
    /// The place of the publication in its stream.
    pub place: Place,
    /// The item that says how far it is; none: a publication.
    pub item: Option<Id>,
}

/// What a publication needs beside its payload; the buffers are used again and again.
#[derive(Debug, Default)]
pub struct Effects {
    /// What comes before the payload in the frame that leaves; empty: none leaves.
    pub head: Vec<u8>,
    /// So many publications never came to these, who are told before they get this one.
    pub missed: SmallVec<[(AppId, u64); 1]>,
    /// Who gets it, by which identifier.
    pub to: SmallVec<[(To, Id); 1]>,
    /// What of it is for the control plane.
    pub pass: Option<Pass>,
}

impl Effects {
    fn clear(&mut self) {
        self.head.clear();
        self.missed.clear();
        self.to.clear();
        self.pass = None;
    }
}

/// A publication that waited for the answer to a subscription.
pub type Kept = (Box<[Id]>, Box<[u8]>);

/// The push FIB of a shard.
#[derive(Debug)]
pub struct Fib {
    config: Config,
    items: Names<Item>,
    receivers: Receivers,
    heard: Heard,
    watched: Watched,
    awaited: Awaited,
    /// Items that were started until now.
    streams: u64,
    /// What was passed to the control plane until now.
    passed: u64,
    /// So much of it the control plane is done with.
    done: u64,
    /// What was counted.
    pub counters: Counters,
}

impl Fib {
    /// A push FIB without entries; `hashing` is the control plane's.
    #[must_use]
    pub fn new(config: Config, hashing: &Hashing) -> Self {
        Self {
            config,
            items: Names::new(hashing),
            receivers: Receivers::new(hashing),
            heard: Heard::default(),
            watched: Watched::default(),
            awaited: Awaited::default(),
            streams: 0,
            passed: 0,
            done: 0,
            counters: Counters::default(),
        }
    }

    /// Installs a change. Returns what waited for it and is to be handed out.
    pub fn apply(&mut self, delta: Delta) -> Vec<Kept> {
        match delta {
            Delta::Started { key, app, way } => self.start(key, app, way),
            Delta::Stopped(key, app) => {
                if let Some(item) = self.items.get_mut(&key).filter(|item| item.app == app) {
                    item.is_started = false;
                }
            }
            Delta::Withdrawn(key, app) => {
                self.items.remove_if(&key, |item| item.app == app);
            }
            Delta::Awaiting(key) => self.receivers.await_answer(key),
            Delta::Joined(key, app) => self.receivers.join(key, app),
            Delta::Left(key, app) => {
                if self.receivers.leave(&key, app) {
                    self.heard.forget(&key);
                }
            }
            Delta::Answered(key) => {
                let is_gone = self.receivers.answered(&key);
                let kept = self.awaited.take(&key, &mut self.counters.unwanted);
                if is_gone {
                    self.heard.forget(&key);
                }
                return kept;
            }
        }
        Vec::new()
    }

    fn start(&mut self, key: Key, app: AppId, way: Option<Box<Way>>) {
        if let Some(item) = self.items.get_mut(&key) {
            (item.app, item.is_started, item.found) = (app, true, None);
            if item.way != way {
                (item.way, item.head) = (way, None);
            }
            return;
        }
        self.streams += 1;
        let Config { node, boot, shard, .. } = self.config;
        let numbers = Numbers::new(node, boot, self.streams, shard);
        let item = Item { app, is_started: true, way, head: None, numbers, fence: 0, found: None };
        self.items.insert(key, item);
    }

    /// The control plane is done with everything that was passed to it up to number `done`, and
    /// what it said about that came before this.
    pub fn done(&mut self, done: u64) {
        self.done = self.done.max(done);
    }

    /// Number of the last thing that was passed to the control plane.
    #[must_use]
    pub const fn passed(&self) -> u64 {
        self.passed
    }

    /// Hands out what the control plane put together, checked or kept; how many get it.
    pub fn hand_out(&mut self, handout: &Handout, effects: &mut Effects) -> usize {
        effects.clear();
        let Handout { ids, payload, is_deep, except, place } = handout;
        if payload.is_none() {
            self.given_up(ids, *place, effects);
            return 0;
        }
        if !self.note(ids, *place, effects) {
            return 0;
        }
        let count = self.receivers.find(ids, *is_deep, *except, effects);
        self.counters.delivered += count as u64;
        if count == 0 && except.is_none() {
            self.nobody_has(ids, payload.as_deref().unwrap_or_default());
        }
        count
    }

    /// When items that were published have to say how far they are.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Tick> {
        self.watched.next_timeout()
    }

    fn nobody_has(&mut self, ids: &[Id], payload: &[u8]) {
        self.counters.unwanted +=
            if self.receivers.is_awaited(ids) { self.awaited.keep(ids, payload) } else { 1 };
    }
}

impl Item {
    /// All names of the item, which is `id` itself.
    fn aliases<'a>(&'a self, id: &'a Id) -> &'a [Id] {
        self.way.as_ref().map_or(std::slice::from_ref(id), |way| &way.aliases)
    }

    /// The names of `label` beneath it.
    fn beneath(&self, id: &Id, label: Label) -> Aliases {
        self.aliases(id).iter().map(|alias| alias.child(label)).collect()
    }
}
