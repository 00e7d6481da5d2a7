//! The configuration applied to a running node: at start, and again by a reload.

use super::connect::{Target, resolve, static_new, static_target};
use super::{Asked, Control, Purpose};
use crate::config::{Changes, Config, StaticFace, StaticRoute, changes};
use crate::names;
use crate::shard::{Order, ask_all};
use onym_tables::FaceId;
use onym_wire::mgmt::Persistency;
use onym_wire::name::Name;

/// Cost of the route to management under `/localhop/nfd` while that is off for others.
const COST_LOCALHOP_OFF: u64 = u32::MAX as u64;

/// Origin of routes that the configuration makes (NFD's `static`).
pub(crate) const ORIGIN_STATIC: u64 = 255;

impl Control {
    /// Applies the whole configuration to a node that just started.
    ///
    /// # Errors
    /// A sentence with the key and what is wrong.
    pub(crate) fn apply(&mut self) -> Result<(), String> {
        self.apply_regions();
        self.apply_strategies(&Config::default())?;
        for prefix in ["/localhost/nfd", "/localhost/onym"] {
            self.route_internal(prefix, 0);
        }
        self.apply_localhop();
        for face in self.config.face.clone() {
            self.apply_face(&face)?;
        }
        for route in self.config.route.clone() {
            self.apply_route_face(&route)?;
        }
        self.apply_routes();
        self.apply_push_links()
    }

    fn route_internal(&mut self, prefix: &str, cost: u64) {
        let Ok(name) = prefix.parse::<Name>() else { return };
        if let Err(error) = self.fib_set(name.as_ref(), (FaceId::INTERNAL, cost)) {
            tracing::error!(prefix, ?error, "no route to management");
        }
    }

    /// Local applications may register under `/localhop/nfd` too. Others may when the
    /// configuration says so; else management turns them away, and a route to a gateway that an
    /// application registered under that name goes first.
    fn apply_localhop(&mut self) {
        let cost = if self.config.rib.localhop { 0 } else { COST_LOCALHOP_OFF };
        self.route_internal("/localhop/nfd", cost);
    }

    fn apply_regions(&mut self) {
        let regions = self.config.forward.network_regions.0.iter();
        let regions: Vec<Name> = regions.filter_map(|r| r.parse().ok()).collect();
        ask_all(&self.ports, |reply| Order::Regions { regions: regions.clone(), reply });
    }

    /// Sets the strategies of the configuration and unsets those that only `old` has.
    fn apply_strategies(&mut self, old: &Config) -> Result<(), String> {
        let new = self.config.strategy.clone();
        for prefix in old.strategy.keys().filter(|p| !new.contains_key(*p)) {
            if let Ok(name) = prefix.parse::<Name>() {
                if name.as_ref().is_empty() {
                    self.strategy_by_text("/", "best-route")?;
                } else {
                    self.strategy_clear(name.as_ref());
                }
            }
        }
        for (prefix, strategy) in &new {
            self.strategy_by_text(prefix, strategy)?;
        }
        Ok(())
    }

    fn strategy_by_text(&mut self, prefix: &str, strategy: &str) -> Result<(), String> {
        let wrong = |why: &dyn std::fmt::Display| {
            format!("strategy.\"{prefix}\": {strategy}: {why}; {}", names::STRATEGIES_ALLOWED)
        };
        let name: Name = prefix.parse().map_err(|e| wrong(&e))?;
        let full = names::strategy_name(strategy).ok_or_else(|| wrong(&"there is no such one"))?;
        let full: Name = full.parse().map_err(|e| wrong(&e))?;
        let set = self.strategy_change(name.as_ref(), full.as_ref());
        set.map(|_| ()).map_err(|e| wrong(&format!("{e:?}")))
    }

    pub(super) fn apply_face(&mut self, face: &StaticFace) -> Result<(), String> {
        let uri = resolve(&face.uri).map_err(|e| format!("face: {e}"))?;
        if let Some(id) = self.face_by_remote(&uri.to_string()) {
            self.face_keep(id, face.persistency, Target::of(uri));
            return Ok(());
        }
        // Not before: it begins a new capture file.
        let target = static_target(face).map_err(|e| format!("face: {e}"))?;
        let new = static_new(face, &target);
        if face.persistency == Persistency::Permanent {
            // Its record comes first; the transport follows when the other end is there.
            self.face_add(new)?;
            let now = self.clock.now();
            self.face_timers(now);
            return Ok(());
        }
        let purpose = Purpose::Make { asked: Asked::Config, new: Box::new(new) };
        self.connect(target, purpose).map_err(|e| format!("face: {}: {e:?}", face.uri))
    }

    /// A route over a URI that is no face yet makes a permanent one.
    fn apply_route_face(&mut self, route: &StaticRoute) -> Result<(), String> {
        let uri = resolve(&route.via).map_err(|e| format!("route: {e}"))?.to_string();
        if self.face_by_remote(&uri).is_some() {
            return Ok(());
        }
        let known =
            self.config.face.iter().any(|f| resolve(&f.uri).is_ok_and(|u| u.to_string() == uri));
        if known {
            return Ok(());
        }
        self.apply_face(&StaticFace::permanent(&route.via))
    }

    /// Registers the routes of the configuration whose faces exist.
    pub(crate) fn apply_routes(&mut self) {
        for route in self.config.route.clone() {
            let face = resolve(&route.via).ok().and_then(|u| self.face_by_remote(&u.to_string()));
            let (Some(face), Ok(name)) = (face, route.prefix.parse::<Name>()) else { continue };
            let flags = u64::from(route.inherit) | u64::from(route.capture) << 1;
            let spec = crate::mgmt::host::RouteSpec {
                name,
                face,
                origin: ORIGIN_STATIC,
                cost: route.cost,
                flags,
                expiration_ms: None,
            };
            if let Err(error) = self.route_add(spec, None) {
                tracing::error!(prefix = %route.prefix, via = %route.via, ?error, "route refused");
            }
        }
    }

    /// Takes over a new configuration; which keys took effect and which wait for a restart.
    ///
    /// # Errors
    /// A sentence; keys before the one that is wrong have taken effect.
    pub(crate) fn reload(&mut self, new: Config) -> Result<Changes, String> {
        // What names files is read before anything changes.
        let options = self.management_options(&new)?;
        for uri in new.face.iter().map(|f| &f.uri).chain(new.route.iter().map(|r| &r.via)) {
            resolve(uri)?;
        }
        let found = changes(&self.config, &new);
        // What waits for a restart stays as it runs, so that what is shown is what is so.
        let new = new.keeping(&self.config, &found.restart);
        let old = std::mem::replace(&mut self.config, new);
        if old.cs != self.config.cs {
            self.cs_apply();
        }
        self.tcp_local = super::local_subnets(&self.config);
        self.operators = super::Operators::of_group(&self.config.management.group);
        self.rib.set_routes_max(self.config.tables.rib_routes_max);
        let default_hop_limit = self.config.forward.default_hop_limit;
        let is_fair = self.config.forward.fairness;
        ask_all(&self.ports, |reply| Order::Forwarding { default_hop_limit, is_fair, reply });
        self.apply_regions();
        self.apply_localhop();
        self.apply_strategies(&old)?;
        self.next_idle_check = self.clock.now();
        self.reload_routes(&old);
        self.reload_faces(&old);
        self.reload_push_links(&old);
        for face in self.config.face.clone() {
            self.apply_face(&face)?;
        }
        for route in self.config.route.clone() {
            self.apply_route_face(&route)?;
        }
        self.apply_routes();
        self.apply_push_links()?;
        self.manage_reload(options);
        Ok(found)
    }

    fn reload_routes(&mut self, old: &Config) {
        for route in old.route.iter().filter(|r| !self.config.route.contains(r)).collect::<Vec<_>>()
        {
            let face = resolve(&route.via).ok().and_then(|u| self.face_by_remote(&u.to_string()));
            if let (Some(face), Ok(name)) = (face, route.prefix.parse::<Name>()) {
                self.route_remove(name.as_ref(), face, ORIGIN_STATIC);
            }
        }
    }

    fn reload_faces(&mut self, old: &Config) {
        let gone = old.face.iter().filter(|f| !self.config.face.contains(f));
        let gone: Vec<String> =
            gone.filter_map(|f| Some(resolve(&f.uri).ok()?.to_string())).collect();
        for uri in gone {
            if let Some(id) = self.face_by_remote(&uri) {
                self.face_remove(id, "no longer in the configuration");
            }
        }
    }
}
