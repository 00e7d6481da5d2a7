//! Scopes beneath those that applications of this node subscribed to (P-24, P-78).
//!
//! A rendezvous tells a node what is there when its first application subscribes; further ones hear
//! it from here. What a rendezvous that serves anew does not tell again within a lease is gone.

use super::{Dispatcher, Request};
use crate::publication::{AppId, Event, Outbox};
use onym_tables::{KeyedMap, Tick};
use onym_wire::push::{Id, Kind, Label};
use std::collections::{BTreeMap, BTreeSet};

/// How many are remembered.
#[derive(Debug)]
struct Bounds {
    /// Beneath one scope.
    each: usize,
    /// Beneath all together.
    all: usize,
    /// A scope with as many makes room first, so there are few to choose from.
    large: usize,
}

const BOUNDS: Bounds = Bounds { each: 65_536, all: 1 << 20, large: 1024 };

/// How sure it is that a scope is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    Told,
    /// By a rendezvous that does not serve any more, or forgot this node.
    Before,
}

/// What is beneath one scope.
#[derive(Debug, Default)]
struct Beneath {
    scopes: BTreeMap<Label, Known>,
    /// There are more than could be remembered: none are.
    is_partial: bool,
    /// When those told before are gone.
    due: Option<Tick>,
}

/// The scopes beneath each one that is subscribed to.
#[derive(Debug)]
pub(super) struct Children {
    bounds: Bounds,
    parents: KeyedMap<Id, Beneath>,
    /// Those with many.
    large: BTreeSet<Id>,
    due: BTreeSet<(Tick, Id)>,
    all: usize,
}

impl Default for Children {
    fn default() -> Self {
        Self::new(BOUNDS)
    }
}

impl Children {
    fn new(bounds: Bounds) -> Self {
        let (parents, large, due) = Default::default();
        Self { bounds, parents, large, due, all: 0 }
    }

    /// A scope is there; whether that is news.
    fn came(&mut self, parent: &Id, label: Label) -> bool {
        let beneath = self.parents.entry(parent.clone()).or_default();
        if beneath.is_partial {
            return true;
        }
        if let Some(known) = beneath.scopes.get_mut(&label) {
            *known = Known::Told;
            return false;
        }
        if beneath.scopes.len() >= self.bounds.each {
            self.let_go(parent);
            return true;
        }
        beneath.scopes.insert(label, Known::Told);
        if beneath.scopes.len() == self.bounds.large {
            self.large.insert(parent.clone());
        }
        self.all += 1;
        if self.all > self.bounds.all {
            let count = |parent: &&Id| self.parents.get(*parent).map_or(0, |b| b.scopes.len());
            let largest = self.large.iter().max_by_key(count).unwrap_or(parent).clone();
            self.let_go(&largest);
        }
        true
    }

    /// A scope is gone; whether that is news.
    fn went(&mut self, parent: &Id, label: Label) -> bool {
        let Some(beneath) = self.parents.get_mut(parent) else { return true };
        if beneath.is_partial {
            return true;
        }
        let was_there = beneath.scopes.remove(&label).is_some();
        self.all -= usize::from(was_there);
        self.tidy(parent);
        was_there
    }

    /// Nobody subscribes to the parent any more.
    pub(super) fn forget(&mut self, parent: &Id) {
        if self.parents.is_empty() {
            return;
        }
        if let Some(beneath) = self.parents.remove(parent) {
            self.all -= beneath.scopes.len();
            self.large.remove(parent);
            self.not_due(parent, beneath.due);
        }
    }

    /// Whether what is beneath the parent is remembered.
    pub(super) fn is_whole(&self, parent: &Id) -> bool {
        self.parents.is_empty() || self.parents.get(parent).is_none_or(|b| !b.is_partial)
    }

    /// A rendezvous heard of the subscription for the first time and tells what is there; what it has
    /// not told by `due` is gone.
    pub(super) fn doubt(&mut self, parent: &Id, due: Tick) {
        let Some(beneath) = self.parents.get_mut(parent).filter(|b| !b.is_partial) else { return };
        beneath.scopes.values_mut().for_each(|known| *known = Known::Before);
        let before = beneath.due.replace(due);
        self.not_due(parent, before);
        self.due.insert((due, parent.clone()));
    }

    /// When something is gone that was not told again.
    pub(super) fn next_timeout(&self) -> Option<Tick> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Scopes that are gone, with their parent.
    fn gone(&mut self, now: Tick) -> Option<(Id, Vec<Label>)> {
        let (due, parent) = self.due.pop_first()?;
        if due > now {
            self.due.insert((due, parent));
            return None;
        }
        let mut gone = Vec::new();
        if let Some(beneath) = self.parents.get_mut(&parent) {
            beneath.due = None;
            beneath.scopes.retain(|label, known| {
                gone.extend((*known == Known::Before).then_some(*label));
                *known == Known::Told
            });
            self.all -= gone.len();
        }
        self.tidy(&parent);
        Some((parent, gone))
    }

    fn not_due(&mut self, parent: &Id, due: Option<Tick>) {
        if let Some(due) = due {
            self.due.remove(&(due, parent.clone()));
        }
    }

    /// Remembers nothing beneath this one.
    fn let_go(&mut self, parent: &Id) {
        self.forget(parent);
        let beneath = Beneath { is_partial: true, ..Beneath::default() };
        self.parents.insert(parent.clone(), beneath);
    }

    /// After scopes beneath it went.
    fn tidy(&mut self, parent: &Id) {
        let Some(beneath) = self.parents.get(parent) else { return };
        let (count, is_due) = (beneath.scopes.len(), beneath.due.is_some());
        if count < self.bounds.large {
            self.large.remove(parent);
        }
        if count == 0 && !is_due && !beneath.is_partial {
            self.parents.remove(parent);
        }
    }
}

impl Dispatcher {
    /// A further application of this node subscribed: it hears what the node was told before.
    pub(super) fn tell_what_is_there(&mut self, app: AppId, request: &Request, out: &mut Outbox) {
        let full = request.prefix.child(request.id.last().unwrap_or_default());
        let beneath = self.children.parents.get(&full).filter(|_| request.kind.is_of_scope());
        for label in beneath.into_iter().flat_map(|beneath| beneath.scopes.keys()) {
            out.tell(app, Event::ScopePublished(full.child(*label)));
        }
        if self.keeps {
            self.tell_retained(app, &full, out);
            self.tell_cached(app, &full, out);
        }
    }

    /// Scopes came or went: who subscribed to the parent hears it, by that parent's id.
    pub(super) fn scopes(&mut self, kind: Kind, ids: &[Id], out: &mut Outbox) {
        let is_published = kind == Kind::SCOPE_PUBLISHED;
        for id in ids {
            let parent = Id::from_labels(id.parent());
            let Some(label) = id.last() else { continue };
            let Some(entry) = self.subscriptions.get(&parent).filter(|s| s.is_scope) else {
                continue;
            };
            let is_news = if is_published {
                self.children.came(&parent, label)
            } else {
                self.children.went(&parent, label)
            };
            for app in entry.subscribers.iter().filter(|_| is_news) {
                let event = if is_published {
                    Event::ScopePublished(id.clone())
                } else {
                    Event::ScopeUnpublished(id.clone())
                };
                out.tell(*app, event);
            }
        }
    }

    /// Tells what a rendezvous did not tell again.
    pub(super) fn children_timeout(&mut self, now: Tick, out: &mut Outbox) {
        while let Some((parent, gone)) = self.children.gone(now) {
            let Some(entry) = self.subscriptions.get(&parent) else { continue };
            for label in gone {
                for app in &entry.subscribers {
                    out.tell(*app, Event::ScopeUnpublished(parent.child(label)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parent(n: u64) -> Id {
        Id::root(Label::from_u64(n))
    }

    fn count(children: &Children) -> usize {
        children.parents.values().map(|beneath| beneath.scopes.len()).sum()
    }

    const SMALL: Bounds = Bounds { each: 40, all: 200, large: 10 };

    #[test]
    fn beneath_one_scope_so_many_are_remembered_and_beyond_none() {
        let mut children = Children::new(SMALL);
        for n in 0..40 {
            assert!(children.came(&parent(1), Label::from_u64(n)));
        }
        assert!(children.is_whole(&parent(1)) && children.all == 40);
        assert!(!children.came(&parent(1), Label::from_u64(7)), "it is known");
        assert!(children.came(&parent(1), Label::from_u64(40)));
        assert!(!children.is_whole(&parent(1)) && children.all == 0 && children.large.is_empty());
        // What comes and goes is told all the same.
        assert!(children.came(&parent(1), Label::from_u64(7)));
        assert!(children.went(&parent(1), Label::from_u64(7)));
        children.forget(&parent(1));
        assert!(children.is_whole(&parent(1)) && children.parents.is_empty());
    }

    #[test]
    fn at_the_bound_of_all_the_largest_makes_room_and_small_ones_stay() {
        let mut children = Children::new(SMALL);
        assert!(children.came(&parent(0), Label::from_u64(1)));
        for whose in 1..6 {
            for n in 0..40 - whose {
                children.came(&parent(whose), Label::from_u64(n));
            }
        }
        assert_eq!((children.all, children.large.len()), (186, 5));
        for n in 0..15 {
            assert!(children.came(&parent(9), Label::from_u64(n)));
        }
        let partial: Vec<u64> = (0..10).filter(|n| !children.is_whole(&parent(*n))).collect();
        assert_eq!((partial, children.all, count(&children)), (vec![1], 162, 162));
        // Where none is large who comes last gets nothing.
        let mut children = Children::new(SMALL);
        for whose in 0..=200 {
            children.came(&parent(whose), Label::from_u64(1));
        }
        assert!(!children.is_whole(&parent(200)) && children.all == 200);
    }

    #[test]
    fn what_is_not_told_again_is_gone_once() {
        let mut children = Children::default();
        for n in 0..2000 {
            children.came(&parent(1), Label::from_u64(n));
        }
        children.doubt(&parent(1), Tick(10));
        children.doubt(&parent(1), Tick(20));
        assert_eq!(children.next_timeout(), Some(Tick(20)));
        assert!(!children.came(&parent(1), Label::from_u64(3)), "who heard of it hears no more");
        assert!(children.came(&parent(1), Label::from_u64(5000)));
        assert_eq!(children.gone(Tick(19)), None);
        let (whose, gone) = children.gone(Tick(20)).unwrap();
        assert_eq!((whose, gone.len()), (parent(1), 1999));
        assert_eq!((children.gone(Tick(90)), children.next_timeout()), (None, None));
        assert_eq!((children.all, count(&children), children.large.len()), (2, 2, 0));
        children.went(&parent(1), Label::from_u64(3));
        children.went(&parent(1), Label::from_u64(5000));
        assert!(children.parents.is_empty());
    }
}
