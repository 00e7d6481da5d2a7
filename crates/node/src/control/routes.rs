//! The RIB and what follows from it for the FIB of every shard.

use super::faces::Faces;
use super::shards::{Shards, name_of};
use super::target::resolve;
use crate::config::{Config, StaticRoute, gone};
use crate::mgmt::host::{RouteSpec, TableError};
use crate::mgmt::{Policy, Privilege, is_reserved, remaining_ms};
use crate::rib::{COST_PREFIX_ANNOUNCEMENT, ORIGIN_PREFIX_ANNOUNCEMENT};
use crate::rib::{Rib, RibUpdate, Route};
use onym_frame::Buf;
use onym_tables::{FaceId, Tick};
use onym_wire::cert::PrefixAnnouncement;
use onym_wire::name::{Name, NameRef};
use onym_wire::{Data, NAME_COMPONENTS_MAX};
use std::collections::HashMap;
use std::time::Duration;

/// How long a route learned from Data lasts at most, in milliseconds.
const LEARNED_MS_MAX: u64 = 600_000;

/// Names whose routes one registration looks at.
const LOOKED_AT_MAX: usize = 65_536;

/// Origin of routes that the configuration makes (NFD's `static`).
const ORIGIN_STATIC: u16 = 255;

/// The routes, and who may announce.
#[derive(Debug)]
pub(super) struct Routes {
    rib: Rib,
    /// For the announcements that Data brings.
    pub(super) policy: Policy,
    /// Routes of the configuration over faces that are not there yet, by where they lead.
    waiting: HashMap<String, Vec<StaticRoute>>,
}

impl Routes {
    /// No routes, with the bound of the configuration.
    pub(super) fn new(config: &Config, policy: Policy) -> Self {
        let rib = Rib::new(config.tables.rib_routes_max);
        Self { rib, policy, waiting: HashMap::new() }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.rib.len()
    }

    /// Changes since the start, those of routing apart.
    pub(super) fn changes(&self) -> u64 {
        self.rib.changes()
    }

    /// Changes the bound; routes that are there stay.
    pub(super) fn set_max(&mut self, routes_max: usize) {
        self.rib.set_routes_max(routes_max);
    }

    /// Adds or changes a route; the FIB of every shard follows before this returns.
    ///
    /// # Errors
    /// [`TableError`]: the name is too long, the RIB or the FIB full.
    pub(super) fn add(
        &mut self,
        shards: &Shards,
        faces: &Faces,
        now: Tick,
        spec: RouteSpec,
        announcement: Option<Buf>,
    ) -> Result<(), TableError> {
        let expiry = spec.expiration_ms.map_or(Tick::NEVER, |ms| now + Duration::from_millis(ms));
        let route = Route {
            face: spec.face,
            origin: u16::try_from(spec.origin).unwrap_or(u16::MAX),
            flags: u8::try_from(spec.flags & 3).unwrap_or(0),
            cost: spec.cost,
            expiry,
            announcement,
        };
        self.register(shards, faces, spec.name.as_ref(), route)
    }

    /// Enters a route into the RIB; what changes by it is added to `updates`.
    fn enter(
        &mut self,
        faces: &Faces,
        name: NameRef<'_>,
        route: Route,
        updates: &mut Vec<RibUpdate>,
    ) -> Result<(), TableError> {
        if name.len() > NAME_COMPONENTS_MAX {
            return Err(TableError::NameTooLong);
        }
        // A route may name a face that is closing: it is accepted, as by other forwarders, and
        // leads nowhere.
        if !faces.is_next_hop(route.face) {
            return Err(TableError::FaceNotFound);
        }
        self.rib.register(name, route, updates).map_err(|_| TableError::Full)
    }

    fn register(
        &mut self,
        shards: &Shards,
        faces: &Faces,
        name: NameRef<'_>,
        route: Route,
    ) -> Result<(), TableError> {
        let mut updates = Vec::new();
        let (face, origin) = (route.face, route.origin);
        self.enter(faces, name, route, &mut updates)?;
        let done = shards.rib_updates(faces, updates);
        if done.is_err() {
            let mut undo = Vec::new();
            self.rib.unregister(name, face, origin, &mut undo);
            let _ = shards.rib_updates(faces, undo);
        }
        done
    }

    /// Removes a route, if it is there.
    pub(super) fn remove(
        &mut self,
        shards: &Shards,
        faces: &Faces,
        name: NameRef<'_>,
        face: FaceId,
        origin: u64,
    ) {
        let Ok(origin) = u16::try_from(origin) else { return };
        let mut updates = Vec::new();
        self.rib.unregister(name, face, origin, &mut updates);
        let _ = shards.rib_updates(faces, updates);
    }

    /// Removes the routes of a face that is gone.
    pub(super) fn remove_face(&mut self, shards: &Shards, faces: &Faces, face: FaceId) {
        let mut updates = Vec::new();
        self.rib.remove_face(face, &mut updates);
        let _ = shards.rib_updates(faces, updates);
    }

    pub(super) fn poll_timeout(&self) -> Tick {
        self.rib.poll_timeout()
    }

    /// Removes expired routes.
    pub(super) fn handle_timeout(&mut self, shards: &Shards, faces: &Faces, now: Tick) {
        if self.rib.poll_timeout() <= now {
            let mut updates = Vec::new();
            self.rib.handle_timeout(now, &mut updates);
            let _ = shards.rib_updates(faces, updates);
        }
    }

    /// The RIB, by name.
    pub(super) fn list(&self, now: Tick) -> Vec<RouteSpec> {
        let left = |expiry: Tick| {
            let ms = || u64::try_from(expiry.since(now).as_millis()).unwrap_or(u64::MAX);
            (expiry != Tick::NEVER).then(ms)
        };
        let mut list = Vec::new();
        for (name, routes) in self.rib.iter() {
            list.extend(routes.iter().map(|route| RouteSpec {
                name: name_of(name).to_name(),
                face: route.face,
                origin: route.origin.into(),
                cost: route.cost,
                flags: route.flags.into(),
                expiration_ms: left(route.expiry),
            }));
        }
        list
    }

    // ----- who may

    /// Whether `face`, which asks for a route to itself, has its share of `routes_max` already.
    pub(super) fn has_its_share(&self, name: NameRef<'_>, face: FaceId, routes_max: usize) -> bool {
        self.rib.len_of_face(face) >= routes_max
            && !self.rib.get(name).iter().any(|route| route.face == face)
    }

    /// Whether a route at or under `name` leads to another user than the one behind `from`. What
    /// has more names under it than [`LOOKED_AT_MAX`] counts as of others.
    pub(super) fn is_of_others(&self, faces: &Faces, name: NameRef<'_>, from: FaceId) -> bool {
        let own = faces.user(from);
        let is_own = |face: FaceId| face == from || faces.user(face).is(own);
        let is_others = |routes: &[Route]| !routes.iter().all(|route| is_own(route.face));
        let mut under = self.rib.under(name);
        under.by_ref().take(LOOKED_AT_MAX).any(|(_, routes)| is_others(routes))
            || under.next().is_some()
    }

    /// Whether an application on this machine may have a route for `name` to itself.
    fn may_announce(&self, faces: &Faces, name: NameRef<'_>, face: FaceId) -> bool {
        let user = faces.user(face);
        self.policy.lets(user, Privilege::Rib)
            || self.policy.lets(user, Privilege::Register)
                && !is_reserved(name)
                && !self.is_of_others(faces, name, face)
    }

    // ----- announcements with Data

    /// A strategy saw a prefix announcement with Data that answered a discovery; who is not local
    /// is believed by management.
    pub(super) fn learn(
        &mut self,
        shards: &Shards,
        faces: &Faces,
        now: Tick,
        announcement: &Buf,
        face: FaceId,
    ) {
        let is_local = faces.is_local(face);
        let Ok(data) = Data::parse(announcement) else { return };
        let Ok(parsed) = PrefixAnnouncement::parse(&data) else { return };
        let name = parsed.prefix.to_name();
        let Some(left_ms) = remaining_ms(&parsed, onym_engine::clock::unix_ms()) else { return };
        if is_local && !self.may_announce(faces, name.as_ref(), face) {
            tracing::debug!(%name, face = face.0, "an announced prefix is not this user's to take");
            return;
        }
        let route = Route {
            face,
            origin: ORIGIN_PREFIX_ANNOUNCEMENT,
            flags: Route::CHILD_INHERIT,
            cost: COST_PREFIX_ANNOUNCEMENT,
            expiry: now + Duration::from_millis(left_ms.min(LEARNED_MS_MAX)),
            announcement: Some(announcement.clone()),
        };
        if let Err(error) = self.register(shards, faces, name.as_ref(), route) {
            tracing::debug!(%name, ?error, "an announced prefix was not taken");
        }
    }

    /// A learned route failed: it is taken back.
    pub(super) fn unlearn(
        &mut self,
        shards: &Shards,
        faces: &Faces,
        name: NameRef<'_>,
        face: FaceId,
    ) {
        let learned = |r: &Route| r.face == face && r.origin == ORIGIN_PREFIX_ANNOUNCEMENT;
        let mut prefixes = (0..=name.len()).rev().map(|len| name.prefix(len));
        if let Some(prefix) = prefixes.find(|p| self.rib.get(*p).iter().any(learned)) {
            self.remove(shards, faces, prefix, face, ORIGIN_PREFIX_ANNOUNCEMENT.into());
        }
    }

    // ----- the configuration

    /// Registers the routes of the configuration whose faces exist; the others wait for theirs.
    pub(super) fn apply(&mut self, shards: &Shards, faces: &Faces, config: &Config) {
        self.waiting.clear();
        let mut there = Vec::new();
        for route in &config.route {
            let Ok(uri) = resolve(&route.via).map(|uri| uri.to_string()) else { continue };
            match faces.to(&uri) {
                Some(face) => there.push((route, face)),
                None => self.waiting.entry(uri).or_default().push(route.clone()),
            }
        }
        self.add_static(shards, faces, &there);
    }

    /// A face of the configuration is there: registers the routes that wait for it.
    pub(super) fn arrived(&mut self, shards: &Shards, faces: &Faces, face: FaceId) {
        let record = faces.get(face);
        let waiting = record.and_then(|record| self.waiting.remove(&record.remote));
        let waiting = waiting.unwrap_or_default();
        let there: Vec<_> = waiting.iter().map(|route| (route, face)).collect();
        self.add_static(shards, faces, &there);
    }

    /// Registers routes of the configuration, each over its face, all together: the FIB follows
    /// before this returns. One that is refused is told, and the others are there.
    fn add_static(&mut self, shards: &Shards, faces: &Faces, routes: &[(&StaticRoute, FaceId)]) {
        let (mut updates, mut entered) = (Vec::new(), Vec::new());
        for (route, face) in routes {
            let Ok(name) = route.prefix.parse::<Name>() else { continue };
            let new = Route {
                face: *face,
                origin: ORIGIN_STATIC,
                flags: u8::from(route.inherit) | u8::from(route.capture) << 1,
                cost: route.cost,
                expiry: Tick::NEVER,
                announcement: None,
            };
            match self.enter(faces, name.as_ref(), new, &mut updates) {
                Ok(()) => entered.push((updates.len(), *route, name, *face)),
                Err(error) => tell_refused(route, &error),
            }
        }
        let mut undo = Vec::new();
        let mut refused = shards.rib_changes(faces, updates).into_iter().peekable();
        for (end, route, name, face) in entered {
            let Some((_, error)) = refused.next_if(|(at, _)| *at < end) else { continue };
            while refused.next_if(|(at, _)| *at < end).is_some() {}
            tell_refused(route, &error);
            self.rib.unregister(name.as_ref(), face, ORIGIN_STATIC, &mut undo);
        }
        let _ = shards.rib_updates(faces, undo);
    }

    /// Removes the routes of `old` that `new` does not have.
    pub(super) fn withdraw(&mut self, shards: &Shards, faces: &Faces, old: &Config, new: &Config) {
        let mut updates = Vec::new();
        for route in gone(&old.route, &new.route, |route| (&route.prefix, &route.via)) {
            let to = resolve(&route.via).ok().and_then(|uri| faces.to(&uri.to_string()));
            if let (Some(face), Ok(name)) = (to, route.prefix.parse::<Name>()) {
                self.rib.unregister(name.as_ref(), face, ORIGIN_STATIC, &mut updates);
            }
        }
        let _ = shards.rib_updates(faces, updates);
    }
}

fn tell_refused(route: &StaticRoute, error: &TableError) {
    tracing::error!(prefix = %route.prefix, via = %route.via, ?error, "route refused");
}
