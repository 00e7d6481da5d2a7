//! The push FIB of a shard: all that a publication needs there, and nothing that takes long.
//!
//! For each item it has the publishing application, the head of its frames, and its numbers; for
//! each identifier the subscribers of this shard and which other shards have some. The control
//! plane changes it by one [`Delta`] per item and subscription. What a FIB cannot do itself is
//! passed to the control plane, and so is everything that must stay behind that, until the control
//! plane is done with it (a fence), so the order is kept.

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
use crate::data::{Above, Aliases, Handout, Place, Receivers as List};
use crate::names::{Hashing, Key, Names};
use crate::publication::{AppId, To};
use awaited::Awaited;
use numbers::{Heard, Numbers, Watched};
use onym_tables::Tick;
use onym_wire::push::{Id, Label, RouteBuf, Strategy};
use receivers::Receivers;
use smallvec::SmallVec;
use std::sync::Arc;

/// Most shards of a node.
pub const SHARDS_MAX: u16 = 64;

/// Settings of a push FIB.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node.
    pub node: Label,
    /// Number of this life of it.
    pub boot: u32,
    /// The shard: a stream of numbers belongs to an item at a shard.
    pub shard: u16,
    /// How many shards the node has, at most [`SHARDS_MAX`].
    pub shards: u16,
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
    /// The last publications of the item, which the application publishes, are retained from now
    /// on, or not any more: it goes by the control plane, whether it is started or not.
    Retains(Key, AppId, bool),
    /// A subscription is asked for by the application: what comes for it before the answer is kept.
    Awaiting(Key, AppId),
    /// The application has the subscription.
    Joined(Key, AppId),
    /// The subscription is answered, and the application told: what was kept is handed out.
    Answered(Key, AppId),
    /// The application has the subscription no more.
    Left(Key, AppId),
    /// Another shard gets what is published for the identifier, for one reason more.
    There(Key, Other),
    /// It does for one reason less.
    NotThere(Key, Other),
}

/// Another shard, as one is told of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Other {
    /// The one that is told.
    pub at: u16,
    /// The other one.
    pub shard: u16,
}

impl Delta {
    /// Whether it stands before all that announces it, at every shard (decision 0012): an item's
    /// way, and which shards have receivers. What an application gets changes with what it is told.
    #[must_use]
    pub const fn is_first(&self) -> bool {
        !matches!(self, Self::Joined(..) | Self::Left(..) | Self::Answered(..))
    }

    /// The shard, of so many, whose push FIB changes.
    #[must_use]
    pub const fn shard(&self, shards: u16) -> u16 {
        match self {
            Self::There(_, other) | Self::NotThere(_, other) => other.at,
            Self::Started { app, .. }
            | Self::Stopped(_, app)
            | Self::Withdrawn(_, app)
            | Self::Retains(_, app, _)
            | Self::Awaiting(_, app)
            | Self::Joined(_, app)
            | Self::Answered(_, app)
            | Self::Left(_, app) => app.shard(shards),
        }
    }
}

/// An item that an application of this shard publishes.
#[derive(Debug)]
struct Item {
    app: AppId,
    /// It may be published here; never while it is retained.
    is_started: bool,
    /// Its last publications are retained: whether it would be started otherwise.
    retains: Option<bool>,
    way: Option<Box<Way>>,
    /// What comes before the payload in its frames under a strategy, made when it is first needed.
    head: Option<(Strategy, Vec<u8>)>,
    numbers: Numbers,
    /// The last publication that was passed to the control plane.
    fence: u64,
    /// What was found among the receivers when they were as many changes old.
    found: Option<(u64, Found)>,
    /// Its names, as other shards are told them, once they were.
    names: Option<Arc<[Id]>>,
}

/// Who gets an item: at most one list as it is, and other shards.
#[derive(Debug, Clone, Default)]
struct Found {
    list: Option<List>,
    there: There,
}

/// Other shards that get a publication.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct There {
    /// Which, a bit for each.
    shards: u64,
    /// Subscriptions there.
    count: usize,
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
    /// A publication of an item of which the last ones are retained: nobody got it here.
    pub is_retained: bool,
}

/// What a publication needs beside its payload; the buffers are used again and again.
#[derive(Debug, Default)]
pub struct Effects {
    /// What comes before the payload in the frame that leaves; empty: none leaves.
    pub head: Vec<u8>,
    /// So many publications never came to these, who are told before they get this one.
    pub missed: SmallVec<[(AppId, u64); 1]>,
    /// The one list that gets it here, mostly: kept, as the next publication is mostly for the same.
    list: Option<List>,
    is_list: bool,
    /// Who gets it here, by which identifier, where that is no list.
    to: SmallVec<[(To, Id); 1]>,
    /// Other shards that get it, a bit for each, by the names in `names`.
    pub shards: u64,
    /// Which identifiers above count there.
    pub above: Above,
    /// The strategy without rendezvous that it came by.
    pub came_by: Option<Strategy>,
    /// So many publications never came, which other shards are told.
    pub lost: u64,
    /// Names of the item, where there are such shards.
    pub names: Option<Arc<[Id]>>,
    /// What of it is for the control plane.
    pub pass: Option<Pass>,
    /// Which shards are told that.
    lost_at: u64,
    /// Subscriptions at the shards that get it.
    there: usize,
}

impl Effects {
    #[inline]
    fn clear(&mut self) {
        self.head.clear();
        self.is_list = false;
        let is_used = !self.to.is_empty() || !self.missed.is_empty() || self.pass.is_some();
        if is_used || self.shards | self.lost_at != 0 || self.came_by.is_some() {
            self.reset();
        }
    }

    #[cold]
    fn reset(&mut self) {
        self.to.clear();
        self.missed.clear();
        (self.shards, self.there, self.lost, self.lost_at) = (0, 0, 0, 0);
        (self.names, self.pass, self.above) = (None, None, Above::Parent);
        self.came_by = None;
    }

    /// The one list that gets it here, if that is so.
    #[inline]
    #[must_use]
    pub fn list(&self) -> Option<&List> {
        self.list.as_ref().filter(|_| self.is_list)
    }

    /// Whether nobody gets it here.
    #[must_use]
    pub fn is_nobodys(&self) -> bool {
        !self.is_list && self.to.is_empty()
    }

    /// Takes those who get it here, with the identifier by which they do.
    pub fn drain(&mut self) -> impl Iterator<Item = (To, Id)> {
        let list = if std::mem::take(&mut self.is_list) { self.list.take() } else { None };
        let list = list.map(|(apps, id)| (To::All(apps), id));
        list.into_iter().chain(self.to.drain(..))
    }

    /// Those who get it here where that is no list, taken.
    pub fn drain_others(&mut self) -> impl Iterator<Item = (To, Id)> {
        self.to.drain(..)
    }

    /// What was found gets it; how many that are.
    #[inline]
    fn take(&mut self, found: &Found) -> usize {
        let mut count = 0;
        if let Some(list) = &found.list {
            let is_same = |known: &List| Arc::ptr_eq(&known.0, &list.0) && known.1 == list.1;
            if !self.list.as_ref().is_some_and(is_same) {
                self.list = Some(list.clone());
            }
            (self.is_list, count) = (true, list.0.len());
        }
        if found.there.shards != 0 {
            self.add(found.there);
        }
        count
    }

    /// A list gets it; how many that are.
    fn take_list(&mut self, list: Option<List>) -> usize {
        let count = list.as_ref().map_or(0, |(apps, _)| apps.len());
        self.is_list = list.is_some();
        self.list = list;
        count
    }

    /// Other shards get it.
    #[inline]
    fn add(&mut self, there: There) {
        self.shards |= there.shards;
        self.there += there.count;
    }

    /// Other shards hear these names, and which of those above count.
    #[inline]
    fn name(&mut self, ids: &[Id], above: Above) {
        if self.shards != 0 {
            (self.names, self.above) = (Some(ids.into()), above);
        }
    }

    /// The other shards that get it.
    pub fn others(&self) -> impl Iterator<Item = u16> + use<> {
        shards_of(self.shards)
    }

    /// The other shards that are told of what never came.
    pub fn of_lost(&self) -> impl Iterator<Item = u16> + use<> {
        shards_of(self.lost_at)
    }
}

/// The shards whose bits are set.
fn shards_of(mut left: u64) -> impl Iterator<Item = u16> {
    std::iter::from_fn(move || {
        let shard = u16::try_from(left.trailing_zeros()).ok();
        left &= left.wrapping_sub(1);
        shard.filter(|shard| *shard < SHARDS_MAX)
    })
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
                    item.set_started(false);
                }
            }
            Delta::Retains(key, app, is_retained) => self.retain(key, app, is_retained),
            Delta::Withdrawn(key, app) => {
                self.items.remove_if(&key, |item| item.app == app);
            }
            Delta::Awaiting(key, _) => self.receivers.await_answer(key),
            Delta::Joined(key, app) => self.receivers.join(key, app),
            Delta::Left(key, app) => {
                if self.receivers.leave(&key, app) {
                    self.heard.forget(&key);
                }
            }
            Delta::There(key, other) => self.receivers.there(key, other.shard),
            Delta::NotThere(key, other) => {
                if self.receivers.not_there(&key, other.shard) {
                    self.heard.forget(&key);
                }
            }
            Delta::Answered(key, _) => {
                let Some(is_gone) = self.receivers.answered(&key) else { return Vec::new() };
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
            if item.app != app {
                item.retains = None;
            }
            (item.app, item.found) = (app, None);
            item.set_started(true);
            if item.way != way {
                (item.way, item.head, item.names) = (way, None, None);
            }
            return;
        }
        let numbers = self.new_numbers();
        self.items.insert(key, Item { way, ..Item::new(app, numbers) });
    }

    fn new_numbers(&mut self) -> Numbers {
        self.streams += 1;
        let Config { node, boot, shard, .. } = self.config;
        Numbers::new(node, boot, self.streams, shard)
    }

    /// Publications of an item go by the control plane from now on, or not any more. Its numbers
    /// begin anew: who followed them here, or there, does not know of the others.
    fn retain(&mut self, key: Key, app: AppId, is_retained: bool) {
        let numbers = self.new_numbers();
        let item =
            self.items.get_or_insert(key, || Item { is_started: false, ..Item::new(app, numbers) });
        if item.app != app {
            (item.app, item.retains, item.is_started) = (app, None, false);
        }
        match (is_retained, item.retains) {
            (true, None) => item.retains = Some(std::mem::take(&mut item.is_started)),
            (false, Some(is_started)) => (item.is_started, item.retains) = (is_started, None),
            _ => return,
        }
        (item.numbers, item.head, item.found) = (numbers, None, None);
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

    /// Whether the control plane is done with everything that was passed to it.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.done >= self.passed
    }

    /// Hands out what the control plane put together, checked or kept; how many get it.
    pub fn hand_out(&mut self, handout: &Handout, effects: &mut Effects) -> usize {
        effects.clear();
        let Handout { ids, payload, came_by, except, place, .. } = handout;
        if payload.is_none() {
            self.given_up(ids, *place, effects);
            return 0;
        }
        if !self.note(ids, *place, effects) {
            return 0;
        }
        let above = if came_by.is_some() { Above::All } else { Above::Parent };
        let count = self.receivers.find(ids, above, *except, effects);
        effects.came_by = *came_by;
        effects.name(ids, above);
        self.counters.delivered += count as u64;
        if count == 0 && except.is_none() && effects.shards == 0 {
            self.nobody_has(ids, payload.as_deref().unwrap_or_default());
        }
        count + effects.there
    }

    /// Who gets here what another shard hands out, under these names; how many.
    pub fn arrive(&mut self, names: &[Id], above: Above, effects: &mut Effects) -> usize {
        effects.clear();
        self.receivers.find_here(names, above, effects)
    }

    /// Who is told here that so many publications never came, which another shard found out.
    pub fn arrive_missed(&mut self, names: &[Id], count: u64, effects: &mut Effects) {
        effects.clear();
        self.receivers.note_missed(names, count, effects);
    }

    /// So many publications of another shard were handed out here.
    pub fn delivered(&mut self, count: usize) {
        self.counters.delivered += count as u64;
    }

    /// A publication of another shard, which nobody has here: kept for who is about to.
    pub fn nobody(&mut self, names: &[Id], payload: &[u8]) {
        self.nobody_has(names, payload);
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
    const fn new(app: AppId, numbers: Numbers) -> Self {
        Self {
            app,
            is_started: true,
            retains: None,
            way: None,
            head: None,
            numbers,
            fence: 0,
            found: None,
            names: None,
        }
    }

    const fn set_started(&mut self, is_started: bool) {
        match &mut self.retains {
            Some(would_be) => *would_be = is_started,
            None => self.is_started = is_started,
        }
    }

    /// All names of the item, which is `id` itself.
    fn aliases<'a>(&'a self, id: &'a Id) -> &'a [Id] {
        self.way.as_ref().map_or(std::slice::from_ref(id), |way| &way.aliases)
    }

    /// The same, for other shards.
    fn names(&mut self, id: &Id) -> Arc<[Id]> {
        let Self { way, names, .. } = self;
        let aliases = || way.as_ref().map_or(std::slice::from_ref(id), |way| &way.aliases).into();
        Arc::clone(names.get_or_insert_with(aliases))
    }

    /// The names of `label` beneath it.
    fn beneath(&self, id: &Id, label: Label) -> Aliases {
        self.aliases(id).iter().map(|alias| alias.child(label)).collect()
    }
}
