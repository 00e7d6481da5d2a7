//! Routes: which faces a prefix leads to.

mod control;

use crate::chain::Origin;
use crate::config::Matching;
use crate::names;
use crate::registration::Registration;
use onym_tables::hash::{NameHashes, component_count};
use onym_tables::prefix_map::PrefixMap;
use onym_tables::{FaceId, HashKey, Tick};
use onym_wire::NAME_COMPONENTS_MAX;
use onym_wire::name::{Name, NameRef};
use std::ops::ControlFlow;

/// One route of a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Spec {
    pub(crate) face: FaceId,
    /// Who is meant of those that stand behind the face.
    pub(crate) via: Option<Origin>,
    pub(crate) cost: u64,
    /// Made by the control interface, not by a producer.
    pub(crate) is_static: bool,
    pub(crate) key: Option<Name>,
    pub(crate) until: Tick,
}

impl Spec {
    pub(crate) fn registered(done: &Registration, via: Option<Origin>, now: Tick) -> Self {
        Self {
            face: done.face,
            via,
            cost: done.cost,
            is_static: false,
            key: done.key.clone(),
            until: done.expires_ms.map_or(Tick::NEVER, |ms| now.plus_ms(ms)),
        }
    }
}

#[derive(Debug, Default, Clone)]
struct Route {
    /// At most one static and one registered route of each face.
    specs: Vec<Spec>,
    interests: u64,
    data: u64,
    bytes: u64,
}

/// Prefixes with their routes.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    map: PrefixMap<Route>,
    count: usize,
    /// When the next route ends.
    end: Option<Tick>,
}

impl Routes {
    /// Routes there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// The faces for a name (its value), each once, in the order of prefixes and costs.
    pub(crate) fn faces(
        &mut self,
        key: &HashKey,
        name: &[u8],
        matching: Matching,
        out: &mut Vec<FaceId>,
    ) {
        let hashes = NameHashes::new(key, name, self.map.lengths());
        self.map.walk_mut(&hashes, name, |_, route| {
            route.interests += 1;
            for spec in &route.specs {
                if !out.contains(&spec.face) {
                    out.push(spec.face);
                }
            }
            match matching {
                Matching::Longest => ControlFlow::Break(()),
                Matching::AllPrefixes => ControlFlow::Continue(()),
            }
        });
    }

    /// Who stands behind `face` and has a route for the longest prefix of the name that leads there,
    /// each once with its lowest cost, the cheapest first; and the components of that prefix.
    pub(crate) fn behind(
        &mut self,
        key: &HashKey,
        name: NameRef<'_>,
        face: FaceId,
    ) -> (usize, Vec<(Origin, u64)>) {
        let hashes = NameHashes::new(key, name.value(), self.map.lengths());
        let mut found = (0, Vec::new());
        self.map.walk_mut(&hashes, name.value(), |components, route| {
            // Ascending by cost: the first of who has two routes is the cheaper one.
            for spec in route.specs.iter().filter(|spec| spec.face == face) {
                if let Some(via) = spec.via
                    && !found.1.iter().any(|(known, _)| *known == via)
                {
                    found.1.push((via, spec.cost));
                }
            }
            if found.1.is_empty() {
                return ControlFlow::Continue(());
            }
            route.interests += 1;
            found.0 = components;
            ControlFlow::Break(())
        });
        found
    }

    /// Whether `face` (or who is meant behind it) has a route for the name (its value); counts the
    /// Data there.
    pub(crate) fn count_data(
        &mut self,
        key: &HashKey,
        name: &[u8],
        face: FaceId,
        via: Option<Origin>,
        octets: u64,
    ) -> bool {
        let hashes = NameHashes::new(key, name, self.map.lengths());
        let mut is_known = false;
        self.map.walk_mut(&hashes, name, |_, route| {
            let leads = |s: &Spec| s.face == face && (s.via.is_none() || s.via == via);
            if !route.specs.iter().any(leads) {
                return ControlFlow::Continue(());
            }
            route.data += 1;
            route.bytes += octets;
            is_known = true;
            ControlFlow::Break(())
        });
        is_known
    }

    /// Adds or changes a route: whether that made a difference.
    ///
    /// # Errors
    /// A sentence, at a bound.
    pub(crate) fn add(
        &mut self,
        key: &HashKey,
        prefix: &[u8],
        spec: Spec,
        max: usize,
    ) -> Result<bool, String> {
        if component_count(prefix) > NAME_COMPONENTS_MAX {
            return Err(format!("a prefix has at most {NAME_COMPONENTS_MAX} components"));
        }
        let at = names::key(key, prefix);
        let same =
            |s: &&mut Spec| (s.face, s.via, s.is_static) == (spec.face, spec.via, spec.is_static);
        if let Some(known) = self.map.get_mut(&at).and_then(|r| r.specs.iter_mut().find(same)) {
            let changed = (known.cost, &known.key) != (spec.cost, &spec.key);
            self.end = sooner(self.end, spec.until);
            *known = spec;
            self.sort(key, prefix);
            return Ok(changed);
        }
        if self.count >= max {
            return Err(format!("the router holds its limit of {max} routes (routes_max)"));
        }
        self.end = sooner(self.end, spec.until);
        match self.map.get_mut(&at) {
            Some(route) => route.specs.push(spec),
            None => {
                self.map.insert(&at, Route { specs: vec![spec], ..Route::default() });
            }
        }
        self.count += 1;
        self.sort(key, prefix);
        Ok(true)
    }

    fn sort(&mut self, key: &HashKey, prefix: &[u8]) {
        if let Some(route) = self.map.get_mut(&names::key(key, prefix)) {
            route.specs.sort_by_key(|s| (s.cost, s.face));
        }
    }

    fn note_end(&mut self) {
        let all = self.map.iter().flat_map(|(_, r)| r.specs.iter().map(|s| s.until));
        self.end = all.min().filter(|t| *t != Tick::NEVER);
    }

    /// Takes one registered route away; whether it was there. Other faces keep theirs.
    pub(crate) fn remove(
        &mut self,
        key: &HashKey,
        prefix: &[u8],
        face: FaceId,
        via: Option<Origin>,
    ) -> bool {
        self.take_away(key, prefix, face, via, false)
    }

    fn take_away(
        &mut self,
        key: &HashKey,
        prefix: &[u8],
        face: FaceId,
        via: Option<Origin>,
        is_static: bool,
    ) -> bool {
        if component_count(prefix) > NAME_COMPONENTS_MAX {
            return false;
        }
        let at = names::key(key, prefix);
        let Some(route) = self.map.get_mut(&at) else { return false };
        let before = route.specs.len();
        route.specs.retain(|s| (s.face, s.via, s.is_static) != (face, via, is_static));
        let gone = before - route.specs.len();
        if route.specs.is_empty() {
            self.map.remove(&at);
        }
        self.count -= gone;
        gone > 0
    }

    /// Takes the routes for which `gone` holds away: their prefixes and faces, and whether static.
    fn remove_where(&mut self, gone: impl Fn(&Spec) -> bool) -> Vec<(String, FaceId, bool)> {
        let mut out = Vec::new();
        self.map.retain(|prefix, route| {
            route.specs.retain(|s| {
                if gone(s) {
                    out.push((names::uri(prefix), s.face, s.is_static));
                    return false;
                }
                true
            });
            !route.specs.is_empty()
        });
        self.count -= out.len();
        self.note_end();
        out
    }

    /// Takes the routes of a face away: their prefixes, and how many producers had registered.
    pub(crate) fn remove_face(&mut self, _: &HashKey, face: FaceId) -> (Vec<String>, u64) {
        let gone = self.remove_where(|s| s.face == face);
        let registered = gone.iter().filter(|(_, _, is_static)| !is_static).count() as u64;
        (gone.into_iter().map(|(prefix, ..)| prefix).collect(), registered)
    }

    pub(crate) fn next_end(&self) -> Option<Tick> {
        self.end
    }

    /// Takes away what is over.
    pub(crate) fn expire(&mut self, _: &HashKey, now: Tick) -> Vec<(String, FaceId)> {
        if self.end.is_none_or(|end| end > now) {
            return Vec::new();
        }
        let gone = self.remove_where(|s| s.until <= now);
        gone.into_iter().map(|(prefix, face, _)| (prefix, face)).collect()
    }

    /// Every route with its prefix (a name's value).
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &Spec)> {
        self.map.iter().flat_map(|(prefix, r)| r.specs.iter().map(move |s| (prefix, s)))
    }
}

/// The earlier of a moment that may be and one that may be never.
fn sooner(known: Option<Tick>, new: Tick) -> Option<Tick> {
    if new == Tick::NEVER { known } else { Some(known.map_or(new, |k| k.min(new))) }
}
