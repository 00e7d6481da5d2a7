//! Which prefixes came to routers, and the routes that follow.

use super::super::Core;
use super::ORPHANS_KEPT;
use crate::network::{Network, Side};
use crate::routes::Routes;
use std::collections::BTreeSet;

/// Whether `name` reaches `through` by links, or is it; only where something stands between.
fn behind(network: &Network, through: &str, name: &str) -> bool {
    let mut seen = BTreeSet::from([through]);
    let mut wave = vec![through];
    while let Some(at) = wave.pop() {
        for (ends, _) in network.into_of(at) {
            if ends.from == name {
                return true;
            }
            if seen.insert(&ends.from) {
                wave.push(&ends.from);
            }
        }
    }
    false
}

impl Core {
    /// Notes which prefixes came to routers, and by which neighbour.
    pub(super) fn inherit(&mut self) {
        let running = self.running();
        self.registered.clear();
        for (name, observed) in &self.observed {
            let registered = observed.routes.iter().filter(|r| r.origin == "registered");
            let prefixes: BTreeSet<String> = registered.clone().map(|r| r.prefix.clone()).collect();
            for (ends, _) in running.into_of(name).filter(|(e, _)| e.side == Side::Producer) {
                let Some(label) = self.accepted(ends) else { continue };
                let own: BTreeSet<String> = registered
                    .clone()
                    .filter(|r| r.face == label)
                    .map(|r| r.prefix.clone())
                    .collect();
                // By a link of its own the neighbour itself says what is registered.
                let by = self.inherited.entry(name.clone()).or_default();
                if own.is_empty() {
                    by.remove(&ends.from);
                } else {
                    by.insert(ends.from.clone(), own);
                }
            }
            if observed.state.stats.is_object() || !prefixes.is_empty() {
                self.registered.insert(name.clone(), prefixes);
            }
        }
        for (router, (since, orphans)) in &mut self.orphans {
            let registered = self.registered.get(router);
            orphans.retain(|p| registered.is_none_or(|r| !r.contains(p)));
            if since.elapsed() > ORPHANS_KEPT {
                orphans.clear();
            }
        }
        self.orphans.retain(|_, (_, orphans)| !orphans.is_empty());
        for (router, (_, orphans)) in &self.orphans {
            self.registered.entry(router.clone()).or_default().extend(orphans.iter().cloned());
        }
        for (router, prefixes) in &mut self.registered {
            prefixes.extend(
                self.inherited.get(router).into_iter().flat_map(|h| h.values().flatten().cloned()),
            );
        }
    }

    /// The static routes that `router` must have: those toward other routers, and those that
    /// lead to neighbours on its producer side by something that was put between.
    pub(in crate::engine) fn routes_of(&self, router: &str, wanted: &Network) -> Routes {
        let all = crate::routes::wanted(wanted, &self.registered);
        let mut routes = all.get(router).cloned().unwrap_or_default();
        let faces = self.observed.get(router).into_iter().flat_map(|o| o.state.faces.values());
        if let Some((_, orphans)) = self.orphans.get(router) {
            for face in faces.filter(|f| !f.created && f.side == "producer") {
                routes.entry(face.label.clone()).or_default().extend(orphans.iter().cloned());
            }
        }
        let Some(inherited) = self.inherited.get(router) else { return routes };
        for (ends, _) in wanted.into_of(router).filter(|(e, _)| e.side == Side::Producer) {
            let Some(label) = self.accepted(ends) else { continue };
            for (neighbour, prefixes) in inherited {
                if behind(wanted, &ends.from, neighbour) {
                    routes.entry(label.clone()).or_default().extend(prefixes.iter().cloned());
                }
            }
        }
        routes
    }
}
