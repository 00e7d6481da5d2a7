//! The RIB and what follows from it for the FIB of every shard.

use super::Control;
use crate::mgmt::host::{RouteSpec, TableError, User};
use crate::mgmt::{Localhop, Privilege, is_reserved, remaining_ms};
use crate::rib::{COST_PREFIX_ANNOUNCEMENT, ORIGIN_PREFIX_ANNOUNCEMENT};
use crate::rib::{NameValue, Rib, RibUpdate, Route};
use crate::shard::{TableOrder, ask_all};
use onym_crypto::Certificate;
use onym_crypto::verify::Signed;
use onym_frame::Buf;
use onym_tables::{FaceId, Tick};
use onym_wire::cert::PrefixAnnouncement;
use onym_wire::mgmt::Scope;
use onym_wire::name::{Name, NameRef};
use onym_wire::{Data, NAME_COMPONENTS_MAX};
use std::time::Duration;

/// How long a route learned from Data lasts at most, in milliseconds.
const LEARNED_MS_MAX: u64 = 600_000;

/// Names whose routes one registration looks at.
const LOOKED_AT_MAX: usize = 65_536;

impl Control {
    /// Adds or changes a route; the FIB of every shard follows before this returns.
    ///
    /// # Errors
    /// [`TableError`]: the name is too long, the RIB or the FIB full.
    pub(crate) fn route_add(
        &mut self,
        spec: RouteSpec,
        announcement: Option<Buf>,
    ) -> Result<(), TableError> {
        let now = self.clock.now();
        let expiry = spec.expiration_ms.map_or(Tick::NEVER, |ms| now + Duration::from_millis(ms));
        let route = Route {
            face: spec.face,
            origin: u16::try_from(spec.origin).unwrap_or(u16::MAX),
            flags: u8::try_from(spec.flags & 3).unwrap_or(0),
            cost: spec.cost,
            expiry,
            announcement,
        };
        self.route_register(spec.name.as_ref(), route)
    }

    /// Whether `face`, which asks for a route to itself, has its share of the table already.
    pub(crate) fn has_its_share(&self, name: NameRef<'_>, face: FaceId) -> bool {
        self.rib.len_of_face(face) >= self.config.tables.rib_routes_per_face_max
            && !self.rib.get(name).iter().any(|route| route.face == face)
    }

    /// Whether a route at or under `name` leads to another user than the one behind `from`. What
    /// has more names under it than [`LOOKED_AT_MAX`] counts as of others.
    pub(crate) fn route_is_of_others(&self, name: NameRef<'_>, from: FaceId) -> bool {
        let own = self.faces.get(&from).map_or(User::UNKNOWN, |record| record.user);
        let is_own = |face: FaceId| {
            face == from || self.faces.get(&face).is_some_and(|record| record.user.is(own))
        };
        let is_others = |routes: &[Route]| !routes.iter().all(|route| is_own(route.face));
        let mut under = self.rib.under(name);
        under.by_ref().take(LOOKED_AT_MAX).any(|(_, routes)| is_others(routes))
            || under.next().is_some()
    }

    fn route_register(&mut self, name: NameRef<'_>, route: Route) -> Result<(), TableError> {
        if name.len() > NAME_COMPONENTS_MAX {
            return Err(TableError::NameTooLong);
        }
        // A route may name a face that is closing: it is accepted, as by other forwarders, and
        // leads nowhere.
        if !self.faces.contains_key(&route.face) && route.face != FaceId::NULL {
            return Err(TableError::FaceNotFound);
        }
        let mut updates = Vec::new();
        let (face, origin) = (route.face, route.origin);
        self.rib.register(name, route, &mut updates).map_err(|_| TableError::Full)?;
        let done = self.rib_updates(updates);
        if done.is_err() {
            let mut undo = Vec::new();
            self.rib.unregister(name, face, origin, &mut undo);
            let _ = self.rib_updates(undo);
        }
        done
    }

    /// Removes a route, if it is there.
    pub(crate) fn route_remove(&mut self, name: NameRef<'_>, face: FaceId, origin: u64) {
        let Ok(origin) = u16::try_from(origin) else { return };
        let mut updates = Vec::new();
        self.rib.unregister(name, face, origin, &mut updates);
        let _ = self.rib_updates(updates);
    }

    /// Removes the routes of a face that is gone.
    pub(crate) fn routes_of_face_remove(&mut self, face: FaceId) {
        let mut updates = Vec::new();
        self.rib.remove_face(face, &mut updates);
        let _ = self.rib_updates(updates);
    }

    /// Removes expired routes.
    pub(crate) fn route_timers(&mut self, now: Tick) {
        if self.rib.poll_timeout() <= now {
            let mut updates = Vec::new();
            self.rib.handle_timeout(now, &mut updates);
            let _ = self.rib_updates(updates);
        }
    }

    /// Applies changes to every shard; the first one that was refused.
    fn rib_updates(&mut self, updates: Vec<RibUpdate>) -> Result<(), TableError> {
        let mut result = Ok(());
        for update in updates {
            let done = match update {
                RibUpdate::AddNextHop { name, face, cost } => {
                    self.fib_set(view(&name), (face, cost))
                }
                RibUpdate::RemoveNextHop { name, face } => {
                    self.fib_unset(view(&name), face);
                    Ok(())
                }
                RibUpdate::Announcement { name, data } => {
                    let name: Name = view(&name).to_name();
                    ask_all(&self.ports, |reply| TableOrder::Announcement {
                        name: name.clone(),
                        data: data.clone(),
                        reply,
                    });
                    Ok(())
                }
            };
            result = result.and(done);
        }
        result
    }

    /// The RIB, by name.
    pub(crate) fn route_list(&self) -> Vec<RouteSpec> {
        let now = self.clock.now();
        let left = |expiry: Tick| {
            let ms = || u64::try_from(expiry.since(now).as_millis()).unwrap_or(u64::MAX);
            (expiry != Tick::NEVER).then(ms)
        };
        let mut list = Vec::new();
        for (name, routes) in self.rib.iter() {
            list.extend(routes.iter().map(|route| RouteSpec {
                name: view(name).to_name(),
                face: route.face,
                origin: route.origin.into(),
                cost: route.cost,
                flags: route.flags.into(),
                expiration_ms: left(route.expiry),
            }));
        }
        list
    }

    /// A strategy saw a prefix announcement with Data that answered a discovery.
    pub(crate) fn route_learned(&mut self, announcement: &Buf, face: FaceId) {
        let is_local = self.faces.get(&face).is_some_and(|r| r.scope == Scope::Local);
        let Some((name, expires_ms)) = self.announced(announcement, is_local) else { return };
        if is_local && !self.may_announce(name.as_ref(), face) {
            tracing::debug!(%name, face = face.0, "an announced prefix is not this user's to take");
            return;
        }
        let route = Route {
            face,
            origin: ORIGIN_PREFIX_ANNOUNCEMENT,
            flags: Route::CHILD_INHERIT,
            cost: COST_PREFIX_ANNOUNCEMENT,
            expiry: self.clock.now() + Duration::from_millis(expires_ms),
            announcement: Some(announcement.clone()),
        };
        if let Err(error) = self.route_register(name.as_ref(), route) {
            tracing::debug!(%name, ?error, "an announced prefix was not taken");
        }
    }

    /// Whether an application on this machine may have a route for `name` to itself.
    fn may_announce(&self, name: NameRef<'_>, face: FaceId) -> bool {
        let user = self.faces.get(&face).map_or(User::UNKNOWN, |record| record.user);
        self.policy.lets(user, Privilege::Rib)
            || self.policy.lets(user, Privilege::Register)
                && !is_reserved(name)
                && !self.route_is_of_others(name, face)
    }

    /// A learned route failed: it is taken back.
    pub(crate) fn route_unlearned(&mut self, name: NameRef<'_>, face: FaceId) {
        for len in (0..=name.len()).rev() {
            let prefix = name.prefix(len);
            let learned = |r: &Route| r.face == face && r.origin == ORIGIN_PREFIX_ANNOUNCEMENT;
            if self.rib.get(prefix).iter().any(learned) {
                self.route_remove(prefix, face, ORIGIN_PREFIX_ANNOUNCEMENT.into());
                return;
            }
        }
    }
}

impl Control {
    /// The prefix of an announcement that may be believed, and how long it lasts, in milliseconds.
    /// That of another node must be signed by a certificate of `rib.announcement_anchors`, or
    /// without those come from whom `rib.localhop_anchors` lets register.
    fn announced(&self, announcement: &Buf, is_local: bool) -> Option<(Name, u64)> {
        let data = Data::parse(announcement).ok()?;
        let parsed = PrefixAnnouncement::parse(&data).ok()?;
        let by_any = |anchors: &[Certificate]| anchors.iter().any(|c| is_signed_by(&data, c));
        let trusted = match (self.policy.announcement_anchors.as_slice(), &self.policy.localhop) {
            ([], Some(Localhop::Any)) => true,
            ([], Some(Localhop::Anchors(anchors))) => by_any(anchors),
            (anchors, _) => by_any(anchors),
        };
        if !is_local && !trusted {
            tracing::debug!(prefix = %parsed.prefix, "announcement by nobody who is trusted");
            return None;
        }
        let left_ms = remaining_ms(&parsed, onym_engine::clock::unix_ms())?;
        Some((parsed.prefix.to_name(), left_ms.min(LEARNED_MS_MAX)))
    }
}

fn is_signed_by(data: &Data<'_>, certificate: &Certificate) -> bool {
    let signed = Signed::data(data);
    certificate.check_valid_at(onym_engine::clock::unix_ms()).is_ok()
        && signed.verify_key(certificate.public_key()).is_ok()
}

/// Names in the RIB came from checked ones.
fn view(name: &NameValue) -> NameRef<'_> {
    NameRef::parse_value(name).unwrap_or_default()
}

/// An empty RIB with the bound of the configuration.
pub(crate) fn rib(config: &crate::config::Config) -> Rib {
    Rib::new(config.tables.rib_routes_max)
}
