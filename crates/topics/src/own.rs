//! The bridge as an application of its node: what it publishes and subscribed to.
//!
//! Nothing waits here for an answer of the node: what is published to an item of which it is not known
//! whether somebody is subscribed waits a while, and then is nobody's.

use crate::names;
use onym_client::push::{App, Error, Event, Retain};
use onym_wire::push::{Id, Kind, Path, Status, Strategy};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a publication waits for the first subscriber of its item.
const PATIENCE: Duration = Duration::from_secs(2);
/// Octets of publications of an item that wait; the oldest make room.
const WAITING_MAX: usize = 256 << 10;
/// Publications of the directory that are kept for bridges that come later.
const DIRECTORY_MAX: u64 = 65_535;

/// What becomes of publications of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    /// They come to who is subscribed then.
    Passing,
    /// The last ones are kept for who comes later.
    Kept,
}

/// An item that the bridge publishes.
#[derive(Debug)]
struct Item {
    path: Path,
    life: Life,
    /// It may be published: it is retained, or somebody is subscribed.
    is_open: bool,
    /// Until when its publications wait for that.
    until: Option<Instant>,
    waiting: VecDeque<Arc<[u8]>>,
    octets: usize,
}

/// What an answer is about.
#[derive(Debug)]
enum Asked {
    /// A scope, which others may publish too.
    Scope,
    Subscription(Path),
    Item(Id),
    Retained(Id),
}

/// What a bridge publishes and subscribed to.
#[derive(Debug)]
pub struct Topics {
    /// Its application: to wait for, and for events.
    pub app: App,
    strategy: Strategy,
    items: BTreeMap<Id, Item>,
    scopes: BTreeSet<Id>,
    asked: BTreeMap<u32, Asked>,
    directory: Path,
    /// Publications for which nobody subscribed in time, or for which there was no room.
    pub unsent: u64,
}

impl Topics {
    /// What says nothing to other bridges, and hears nothing of them.
    #[must_use]
    pub fn silent(app: App, root: &Path, strategy: Strategy) -> Self {
        let directory = names::own_directory(root, app.token());
        let (items, scopes, asked) = Default::default();
        Self { app, strategy, items, scopes, asked, directory, unsent: 0 }
    }

    /// Publishes the scopes of a bridge of the topics beneath `root`, and subscribes to what other
    /// bridges say.
    ///
    /// # Errors
    /// [`Error`].
    pub fn begin(app: App, root: &Path, strategy: Strategy) -> Result<Self, Error> {
        let mut own = Self::silent(app, root, strategy);
        let scope = names::directory(root);
        let directory = own.directory.clone();
        own.publish_above(&directory)?;
        own.ask(Kind::SUBSCRIBE_SCOPE, &scope, Asked::Subscription(scope.clone()))?;
        own.item(&directory, Life::Kept)?;
        Ok(own)
    }

    fn ask(&mut self, kind: Kind, path: &Path, what: Asked) -> Result<(), Error> {
        let tag = self.app.ask_path(kind, path, self.strategy)?;
        self.asked.insert(tag, what);
        Ok(())
    }

    /// Publishes the scopes above a path that the bridge does not publish yet.
    fn publish_above(&mut self, path: &Path) -> Result<(), Error> {
        for scope in path.above() {
            if self.scopes.insert(scope.id.clone()) {
                self.ask(Kind::PUBLISH_SCOPE, &scope, Asked::Scope)?;
            }
        }
        Ok(())
    }

    /// The item of a path, which is published if it is not.
    fn item(&mut self, path: &Path, life: Life) -> Result<(), Error> {
        if self.items.contains_key(&path.id) {
            return Ok(());
        }
        self.publish_above(path)?;
        self.ask(Kind::PUBLISH_ITEM, path, Asked::Item(path.id.clone()))?;
        let (waiting, path) = (VecDeque::new(), path.clone());
        let id = path.id.clone();
        self.items.insert(id, Item { path, life, is_open: false, until: None, waiting, octets: 0 });
        Ok(())
    }

    /// Publishes to an item.
    ///
    /// # Errors
    /// [`Error`].
    pub fn publish(&mut self, now: Instant, item: &Path, payload: Arc<[u8]>) -> Result<(), Error> {
        self.item(item, Life::Passing)?;
        self.send(now, &item.id, payload)
    }

    /// Publishes to an item of which the last publication is kept.
    ///
    /// # Errors
    /// [`Error`].
    pub fn keep(&mut self, now: Instant, item: &Path, payload: Arc<[u8]>) -> Result<(), Error> {
        self.item(item, Life::Kept)?;
        self.send(now, &item.id, payload)
    }

    /// Says to other bridges that this topic is published here.
    ///
    /// # Errors
    /// [`Error`].
    pub fn announce(&mut self, now: Instant, topic: &str) -> Result<(), Error> {
        let id = self.directory.id.clone();
        self.send(now, &id, topic.as_bytes().into())
    }

    /// Nothing is kept of an item any more.
    ///
    /// # Errors
    /// [`Error`].
    pub fn forget(&mut self, item: &Path) -> Result<(), Error> {
        if self.items.remove(&item.id).is_some() {
            self.ask(Kind::UNPUBLISH_ITEM, item, Asked::Scope)?;
        }
        Ok(())
    }

    /// Subscribes to an item.
    ///
    /// # Errors
    /// [`Error`].
    pub fn subscribe(&mut self, item: &Path) -> Result<(), Error> {
        self.publish_above(item)?;
        self.ask(Kind::SUBSCRIBE_ITEM, item, Asked::Subscription(item.clone()))
    }

    /// Takes a subscription back.
    ///
    /// # Errors
    /// [`Error`].
    pub fn unsubscribe(&mut self, item: &Path) -> Result<(), Error> {
        self.ask(Kind::UNSUBSCRIBE_ITEM, item, Asked::Scope)
    }

    fn send(&mut self, now: Instant, id: &Id, payload: Arc<[u8]>) -> Result<(), Error> {
        let is_long = payload.len() as u64 > self.app.info().length_max;
        let Some(item) = self.items.get_mut(id) else { return Ok(()) };
        if is_long {
            // What a node takes at most may be less than what a bridge does.
            self.unsent += 1;
            return Ok(());
        }
        if item.is_open {
            return self.app.publish(id, self.strategy, &payload);
        }
        if item.life == Life::Kept && item.path.id != self.directory.id {
            // The last one is enough.
            (item.octets, _) = (0, item.waiting.clear());
        } else {
            item.until.get_or_insert(now + PATIENCE);
        }
        item.octets += payload.len();
        item.waiting.push_back(payload);
        while item.octets > WAITING_MAX
            && let Some(oldest) = item.waiting.pop_front()
        {
            item.octets -= oldest.len();
            self.unsent += 1;
        }
        Ok(())
    }

    /// What waits for an item leaves.
    fn open(&mut self, id: &Id) -> Result<(), Error> {
        let Some(item) = self.items.get_mut(id) else { return Ok(()) };
        (item.is_open, item.until, item.octets) = (true, None, 0);
        for payload in std::mem::take(&mut item.waiting) {
            self.app.publish(id, self.strategy, &payload)?;
        }
        Ok(())
    }

    /// An event of the node that is no publication.
    ///
    /// # Errors
    /// [`Error`].
    pub fn heard(&mut self, event: &Event) -> Result<(), Error> {
        match event {
            Event::StartPublish(id) => self.open(id),
            Event::StopPublish(id) | Event::Refused { id, .. } => {
                if let Some(item) = self.items.get_mut(id).filter(|item| item.life == Life::Passing)
                {
                    item.is_open = false;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes the answers of the node.
    ///
    /// # Errors
    /// [`Error`].
    pub fn answered(&mut self) -> Result<(), Error> {
        while let Some((tag, status)) = self.app.poll_answer() {
            let Some(asked) = self.asked.remove(&tag) else { continue };
            let is_good = matches!(status, Status::OK | Status::EXISTS);
            match asked {
                Asked::Item(id) if is_good => {
                    let item = self.items.get_mut(&id);
                    if item.is_some_and(|item| item.life == Life::Kept) {
                        let is_directory = id == self.directory.id;
                        let count = if is_directory { DIRECTORY_MAX } else { 1 };
                        let tag = self.app.ask_retain(&id, Retain::last(count))?;
                        self.asked.insert(tag, Asked::Retained(id));
                    }
                }
                Asked::Retained(id) if is_good => self.open(&id)?,
                Asked::Item(id) | Asked::Retained(id) => {
                    if let Some(item) = self.items.remove(&id) {
                        self.unsent += item.waiting.len() as u64;
                        tracing::warn!(item = %item.path, %status, "it is not published");
                    }
                }
                Asked::Subscription(path) if !is_good => {
                    tracing::warn!(item = %path, %status, "it is not subscribed");
                }
                Asked::Subscription(_) | Asked::Scope => {}
            }
        }
        Ok(())
    }

    /// What waited too long is nobody's.
    pub fn handle_timeout(&mut self, now: Instant) {
        let is_late = |item: &&mut Item| item.until.is_some_and(|until| until <= now);
        for item in self.items.values_mut().filter(is_late) {
            self.unsent += item.waiting.len() as u64;
            (item.until, item.octets) = (None, 0);
            item.waiting.clear();
        }
    }
}
