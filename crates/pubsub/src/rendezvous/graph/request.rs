//! The eight requests: checks in the order of the table in section 4, then the effect.

use super::{Changes, Graph, Held};
use onym_wire::push::{Id, Kind, Label, Status, Strategy};

/// A request of a node.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which of the eight.
    pub kind: Kind,
    /// One label, or a whole identifier when something is published once more.
    pub id: Id,
    /// The parent.
    pub prefix: Id,
    /// The strategy.
    pub strategy: Strategy,
}

/// Where a new child goes.
struct Place {
    full: Id,
    label: Label,
    parent: Option<usize>,
}

/// How a vertex is held.
struct Rule {
    /// By a subscription, else by a publication.
    is_subscription: bool,
    /// The answer when it is not there.
    missing: Status,
}

impl Graph {
    /// Does what `node` asks; a refused request changes nothing.
    ///
    /// # Errors
    /// The status that is not [`Status::OK`].
    pub fn request(&mut self, node: Label, request: &Request) -> Result<Changes, Status> {
        let mut changes = Changes::default();
        let label = request.id.last().ok_or(Status::WRONG_IDS)?;
        let is_again = request.id.len() > 1;
        if is_again && !matches!(request.kind, Kind::PUBLISH_SCOPE | Kind::PUBLISH_ITEM) {
            return Err(Status::WRONG_IDS);
        }
        let full = request.prefix.child(label);
        let strategy = request.strategy;
        match request.kind {
            Kind::PUBLISH_SCOPE if is_again => {
                self.publish_scope_again(node, &request.id, &request.prefix, strategy, &mut changes)
            }
            Kind::PUBLISH_SCOPE => self.scope_request(node, full, strategy, false, &mut changes),
            Kind::SUBSCRIBE_SCOPE => self.scope_request(node, full, strategy, true, &mut changes),
            Kind::PUBLISH_ITEM if request.prefix.is_empty() => Err(Status::WRONG_IDS),
            Kind::SUBSCRIBE_ITEM if request.prefix.is_empty() => Err(Status::WRONG_IDS),
            Kind::PUBLISH_ITEM if is_again => {
                self.publish_item_again(node, &request.id, &request.prefix, strategy, &mut changes)
            }
            Kind::PUBLISH_ITEM => self.publish_item(node, full, strategy, &mut changes),
            Kind::SUBSCRIBE_ITEM => self.subscribe_item(node, full, strategy, &mut changes),
            Kind::UNPUBLISH_SCOPE => self.unpublish_scope(node, &full, strategy, &mut changes),
            Kind::UNSUBSCRIBE_SCOPE => self.unsubscribe_scope(node, &full, strategy, &mut changes),
            Kind::UNPUBLISH_ITEM => self.leave_item(node, &full, strategy, false, &mut changes),
            Kind::UNSUBSCRIBE_ITEM => self.leave_item(node, &full, strategy, true, &mut changes),
            _ => Err(Status::UNKNOWN),
        }?;
        Ok(changes)
    }

    /// Takes back everything that `node` asserts.
    pub fn forget(&mut self, node: Label) -> Changes {
        let mut changes = Changes::default();
        let mut all: Vec<Held> = self.held(node).cloned().collect();
        all.sort_unstable();
        for held in all {
            // Taking a scope back takes items along.
            if self.is_held(node, &held) {
                self.take_back(node, &held, &mut changes);
            }
        }
        changes
    }

    /// Takes back one thing that `node` asserts.
    pub fn take_back(&mut self, node: Label, held: &Held, changes: &mut Changes) {
        let Some(v) = self.index.get(&held.id).copied() else { return };
        let strategy = self.at(v).strategy;
        let done = match (held.is_scope, held.is_subscription) {
            (true, false) => self.unpublish_scope(node, &held.id, strategy, changes),
            (true, true) => self.unsubscribe_scope(node, &held.id, strategy, changes),
            (false, is_subscription) => {
                self.leave_item(node, &held.id, strategy, is_subscription, changes)
            }
        };
        debug_assert_eq!(done, Ok(()), "what is held can be taken back");
    }

    /// Parent of a child with this full id; a root has none.
    fn place(&self, full: Id) -> Result<Place, Status> {
        let label = full.last().ok_or(Status::WRONG_IDS)?;
        let parent = match full.parent() {
            [] => None,
            parent => Some(self.scope_at(parent.as_flattened()).ok_or(Status::NO_PARENT)?),
        };
        Ok(Place { full, label, parent })
    }

    /// Makes the vertex of a place.
    fn make_at(
        &mut self,
        node: Label,
        place: &Place,
        is_scope: bool,
        strategy: Strategy,
    ) -> Result<usize, Status> {
        let paths = place.parent.map_or(1, |f| self.at(f).paths.len());
        if place.parent.is_some_and(|f| self.at(f).strategy != strategy) {
            return Err(Status::STRATEGY);
        }
        if paths > self.limits.ids_max || !self.has_room_for(node) {
            return Err(Status::FULL);
        }
        let v = self.make(is_scope, strategy)?;
        self.attach(v, place.parent, place.label);
        Ok(v)
    }

    /// Strategy, room and that `node` does not do so already.
    fn may_join(
        &self,
        v: usize,
        id: &Id,
        node: Label,
        strategy: Strategy,
        is_subscription: bool,
    ) -> Result<(), Status> {
        if self.at(v).strategy != strategy {
            return Err(Status::STRATEGY);
        }
        let path = self.at(v).path(id).ok_or(Status::WRONG_IDS)?;
        let set = if is_subscription { &path.subscribers } else { &path.publishers };
        if set.contains(node) {
            Err(Status::EXISTS)
        } else if !self.has_room_for(node) {
            Err(Status::FULL)
        } else {
            Ok(())
        }
    }

    fn scope_request(
        &mut self,
        node: Label,
        full: Id,
        strategy: Strategy,
        is_subscription: bool,
        changes: &mut Changes,
    ) -> Result<(), Status> {
        if self.item(&full).is_some() {
            return Err(Status::IS_ITEM);
        }
        let place = self.place(full)?;
        let Some(v) = self.scope(&place.full) else {
            let v = self.make_at(node, &place, true, strategy)?;
            self.scope_came(place.parent, self.child_ids(place.parent, place.label), changes);
            self.hold(v, &place.full, node, is_subscription);
            return Ok(());
        };
        self.may_join(v, &place.full, node, strategy, is_subscription)?;
        if is_subscription {
            self.join_scope(v, &place.full, node, changes);
        }
        self.hold(v, &place.full, node, is_subscription);
        Ok(())
    }

    /// What a new subscriber of a scope is told: the direct scopes, then the direct items.
    fn join_scope(&self, v: usize, full: &Id, node: Label, changes: &mut Changes) {
        for (label, child) in &self.at(v).children {
            if self.at(*child).is_scope {
                let ids = vec![full.child(Label(*label))];
                let nodes = vec![node];
                changes.scopes.push(super::ScopeNews { is_published: true, ids, nodes });
            } else if !self.is_served(*child, node) {
                changes.subscriber_came(self, *child, node);
            }
        }
    }

    fn publish_scope_again(
        &mut self,
        node: Label,
        id: &Id,
        prefix: &Id,
        strategy: Strategy,
        changes: &mut Changes,
    ) -> Result<(), Status> {
        let label = id.last().ok_or(Status::WRONG_IDS)?;
        let target = prefix.child(label);
        if prefix.is_empty() {
            return Err(Status::WRONG_IDS);
        }
        if self.item(&target).is_some() {
            return Err(Status::IS_ITEM);
        }
        let parent = self.scope(prefix).ok_or(Status::NO_PARENT)?;
        let v = self.scope(id).ok_or(Status::NO_SCOPE)?;
        if self.is_above(v, parent) {
            return Err(Status::WRONG_IDS);
        }
        match self.scope(&target) {
            Some(there) if there != v => return Err(Status::IS_SCOPE),
            Some(_) => self.may_join(v, &target, node, strategy, false)?,
            None => {
                self.may_attach(v, parent, node, strategy)?;
                self.attach(v, Some(parent), label);
                self.scope_came(Some(parent), self.child_ids(Some(parent), label), changes);
            }
        }
        self.hold(v, &target, node, false);
        Ok(())
    }

    fn may_attach(
        &self,
        v: usize,
        parent: usize,
        node: Label,
        strategy: Strategy,
    ) -> Result<(), Status> {
        let (above, own) = (self.at(parent), self.at(v));
        if above.strategy != strategy || own.strategy != strategy {
            return Err(Status::STRATEGY);
        }
        let deepest = above.paths.iter().map(|p| p.id.len()).max().unwrap_or(0);
        if self.has_room_for(node) && self.may_grow(v, above.paths.len(), deepest + 1) {
            Ok(())
        } else {
            Err(Status::FULL)
        }
    }

    fn publish_item(
        &mut self,
        node: Label,
        full: Id,
        strategy: Strategy,
        changes: &mut Changes,
    ) -> Result<(), Status> {
        let place = self.place(full)?;
        let v = match self.item_or_none(&place.full)? {
            Some(v) => {
                self.may_join(v, &place.full, node, strategy, false)?;
                v
            }
            None => self.make_item(node, &place, strategy, changes)?,
        };
        self.advertise(v, &place.full, node, changes);
        Ok(())
    }

    /// A new item: the subscribers of its parent are its own.
    fn make_item(
        &mut self,
        node: Label,
        place: &Place,
        strategy: Strategy,
        changes: &mut Changes,
    ) -> Result<usize, Status> {
        let v = self.make_at(node, place, false, strategy)?;
        for subscriber in self.effective_subscribers(v).iter() {
            changes.subscriber_came(self, v, *subscriber);
        }
        Ok(v)
    }

    fn advertise(&mut self, v: usize, full: &Id, node: Label, changes: &mut Changes) {
        if !self.at(v).has_publisher(node) {
            changes.publisher_came(self, v, node);
        }
        self.hold(v, full, node, false);
    }

    fn publish_item_again(
        &mut self,
        node: Label,
        id: &Id,
        prefix: &Id,
        strategy: Strategy,
        changes: &mut Changes,
    ) -> Result<(), Status> {
        let label = id.last().ok_or(Status::WRONG_IDS)?;
        let target = prefix.child(label);
        let there = self.item_or_none(&target)?;
        let parent = self.scope(prefix).ok_or(Status::NO_PARENT)?;
        let v = self.item(id).ok_or(Status::NO_ITEM)?;
        match there {
            Some(there) if there != v => return Err(Status::IS_ITEM),
            Some(_) => self.may_join(v, &target, node, strategy, false)?,
            None => {
                self.may_attach(v, parent, node, strategy)?;
                let served = self.effective_subscribers(v);
                self.attach(v, Some(parent), label);
                changes.renamed(self, v);
                let subscribers = self.effective_subscribers(v);
                for subscriber in subscribers.iter().filter(|s| !served.contains(**s)) {
                    changes.subscriber_came(self, v, *subscriber);
                }
            }
        }
        self.advertise(v, &target, node, changes);
        Ok(())
    }

    fn subscribe_item(
        &mut self,
        node: Label,
        full: Id,
        strategy: Strategy,
        changes: &mut Changes,
    ) -> Result<(), Status> {
        let place = self.place(full)?;
        let v = match self.item_or_none(&place.full)? {
            Some(v) => {
                self.may_join(v, &place.full, node, strategy, true)?;
                v
            }
            None => self.make_item(node, &place, strategy, changes)?,
        };
        if !self.is_served(v, node) {
            changes.subscriber_came(self, v, node);
        }
        self.hold(v, &place.full, node, true);
        Ok(())
    }

    /// The vertex at `full` when `node` holds it so; `missing` when there is none.
    fn holder(
        &self,
        v: Option<usize>,
        full: &Id,
        node: Label,
        strategy: Strategy,
        rule: Rule,
    ) -> Result<usize, Status> {
        let Rule { is_subscription, missing } = rule;
        let v = v.ok_or(missing)?;
        if self.at(v).strategy != strategy {
            return Err(Status::STRATEGY);
        }
        let path = self.at(v).path(full).ok_or(missing)?;
        let set = if is_subscription { &path.subscribers } else { &path.publishers };
        if set.contains(node) { Ok(v) } else { Err(Status::NOT_THERE) }
    }

    fn unpublish_scope(
        &mut self,
        node: Label,
        full: &Id,
        strategy: Strategy,
        changes: &mut Changes,
    ) -> Result<(), Status> {
        let rule = Rule { is_subscription: false, missing: Status::NO_SCOPE };
        let v = self.holder(self.scope(full), full, node, strategy, rule)?;
        let items: Vec<usize> =
            self.at(v).children.values().copied().filter(|c| !self.at(*c).is_scope).collect();
        for item in items {
            let own: Vec<Id> = self
                .at(item)
                .paths
                .iter()
                .filter(|p| p.publishers.contains(node))
                .map(|p| p.id.clone())
                .collect();
            for id in own {
                // The item may be gone with the id before.
                if self.item(&id) == Some(item) {
                    self.leave_item(node, &id, strategy, false, changes)?;
                }
            }
        }
        if self.scope(full) == Some(v) {
            self.let_go(v, full, node, false);
            self.tidy_at(v, full, changes);
        }
        Ok(())
    }

    /// Tidies the branch of `v` that `full` belongs to.
    fn tidy_at(&mut self, v: usize, full: &Id, changes: &mut Changes) {
        if let Some(parent) = self.at(v).path(full).map(|p| p.parent) {
            self.tidy(v, parent, changes);
        }
    }

    fn unsubscribe_scope(
        &mut self,
        node: Label,
        full: &Id,
        strategy: Strategy,
        changes: &mut Changes,
    ) -> Result<(), Status> {
        let rule = Rule { is_subscription: true, missing: Status::NO_SCOPE };
        let v = self.holder(self.scope(full), full, node, strategy, rule)?;
        self.let_go(v, full, node, true);
        let items: Vec<usize> =
            self.at(v).children.values().copied().filter(|c| !self.at(*c).is_scope).collect();
        for item in items {
            if !self.is_served(item, node) {
                changes.subscriber_went(self, item, node);
            }
        }
        self.tidy_at(v, full, changes);
        Ok(())
    }

    fn leave_item(
        &mut self,
        node: Label,
        full: &Id,
        strategy: Strategy,
        is_subscription: bool,
        changes: &mut Changes,
    ) -> Result<(), Status> {
        let rule = Rule { is_subscription, missing: Status::NO_ITEM };
        let v = self.holder(self.item(full), full, node, strategy, rule)?;
        self.let_go(v, full, node, is_subscription);
        if is_subscription {
            if !self.is_served(v, node) {
                changes.subscriber_went(self, v, node);
            }
        } else if !self.at(v).has_publisher(node) {
            changes.publisher_went(self, v, node);
        }
        self.tidy_at(v, full, changes);
        Ok(())
    }
}
