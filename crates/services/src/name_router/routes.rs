//! Routes: which faces a prefix leads to.

use crate::chain::Origin;
use crate::config::Matching;
use crate::element::{Cx, Method, Reason, Refusal, Request, read};
use crate::names;
use crate::registration::Registration;
use crate::table::{self, Merged};
use onym_tables::hash::{NameHashes, component_count};
use onym_tables::prefix_map::PrefixMap;
use onym_tables::{FaceId, HashKey, Tick};
use onym_wire::NAME_COMPONENTS_MAX;
use onym_wire::name::{Name, NameRef};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

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

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    prefix: String,
    face: String,
    #[serde(default)]
    via: Option<String>,
    #[serde(default)]
    cost: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    routes: Vec<Written>,
}

#[derive(Debug, Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Change {
    add: Vec<Written>,
    remove: Vec<Written>,
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
        let mut lengths = self.map.lengths() & hashes.lengths();
        // From the longest down.
        while lengths != 0 {
            let len = 63 - lengths.leading_zeros();
            lengths &= !(1 << len);
            let Some(prefix) = hashes.prefix(name, len as usize) else { continue };
            let Some(route) = self.map.get_mut(&prefix) else { continue };
            route.interests += 1;
            for spec in &route.specs {
                if !out.contains(&spec.face) {
                    out.push(spec.face);
                }
            }
            if matching == Matching::Longest {
                return;
            }
        }
    }

    /// Those who stand behind `face` and have a route for the name, each once with its lowest cost,
    /// the cheapest first; and the components of the longest prefix that leads to one of them.
    pub(crate) fn behind(
        &mut self,
        key: &HashKey,
        name: NameRef<'_>,
        face: FaceId,
        matching: Matching,
    ) -> (usize, Vec<(Origin, u64)>) {
        let hashes = NameHashes::new(key, name.value(), self.map.lengths());
        let mut lengths = self.map.lengths() & hashes.lengths();
        let mut found = (0, Vec::<(Origin, u64)>::new());
        while lengths != 0 && (matching != Matching::Longest || found.1.is_empty()) {
            let len = 63 - lengths.leading_zeros();
            lengths &= !(1 << len);
            let Some(prefix) = hashes.prefix(name.value(), len as usize) else { continue };
            let Some(route) = self.map.get_mut(&prefix) else { continue };
            route.interests += 1;
            for spec in route.specs.iter().filter(|s| s.face == face) {
                let Some(via) = spec.via else { continue };
                if found.1.is_empty() {
                    found.0 = len as usize;
                }
                match found.1.iter_mut().find(|(known, _)| *known == via) {
                    Some((_, cost)) => *cost = spec.cost.min(*cost),
                    None => found.1.push((via, spec.cost)),
                }
            }
        }
        found.1.sort_by_key(|(_, cost)| *cost);
        found
    }

    /// Whether `face` (or who is meant behind it) has a route for the name (its value); counts the Data there.
    pub(crate) fn count_data(
        &mut self,
        key: &HashKey,
        name: &[u8],
        face: FaceId,
        via: Option<Origin>,
        octets: u64,
    ) -> bool {
        let hashes = NameHashes::new(key, name, self.map.lengths());
        let mut lengths = self.map.lengths() & hashes.lengths();
        while lengths != 0 {
            let len = 63 - lengths.leading_zeros();
            lengths &= !(1 << len);
            let Some(prefix) = hashes.prefix(name, len as usize) else { continue };
            let Some(route) = self.map.get_mut(&prefix) else { continue };
            if route.specs.iter().any(|s| s.face == face && (s.via.is_none() || s.via == via)) {
                route.data += 1;
                route.bytes += octets;
                return true;
            }
        }
        false
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

    fn list(&self, cx: &Cx<'_>) -> Value {
        let mut routes: Vec<(String, Value)> = Vec::new();
        for (prefix, route) in self.map.iter() {
            for s in &route.specs {
                let prefix = names::uri(prefix);
                let value = json!({
                    "prefix": prefix, "face": cx.ports.label(s.face), "id": s.face.0,
                    "via": s.via.map(Origin::to_hex),
                    "cost": s.cost, "origin": origin(s.is_static),
                    "key": s.key.as_ref().map(ToString::to_string),
                    "expires_ms": left_ms(s.until, cx.now),
                    "interests": route.interests, "data": route.data, "bytes": route.bytes,
                });
                routes.push((prefix, value));
            }
        }
        routes.sort_by(|a, b| a.0.cmp(&b.0));
        json!({ "routes": routes.into_iter().map(|(_, v)| v).collect::<Vec<_>>() })
    }

    fn parse(cx: &Cx<'_>, field: &str, w: &Written) -> Result<(Name, Spec), Refusal> {
        let prefix = names::prefix(&format!("{field}/prefix"), &w.prefix)?;
        let Some(port) = cx.ports.find(&w.face) else {
            let message = format!("there is no face {:?}; GET /v1/faces lists them", w.face);
            let field = Some(format!("{field}/face"));
            return Err(Refusal { reason: Reason::Invalid, code: "face_unknown", message, field });
        };
        let (face, cost, until) = (port.id, w.cost, Tick::NEVER);
        let via = via(&format!("{field}/via"), w.via.as_deref())?;
        Ok((prefix, Spec { face, via, cost, is_static: true, key: None, until }))
    }

    /// The resource `routes`: static ones are made and taken away, all are listed.
    pub(crate) fn control(
        &mut self,
        cx: &mut Cx<'_>,
        request: &Request<'_>,
        max: usize,
    ) -> Result<Value, Refusal> {
        let (mut add, mut remove) = (Vec::new(), Vec::new());
        match request.method {
            Method::Get => return Ok(self.list(cx)),
            Method::Put => {
                let whole: Whole = read(request.body.clone())?;
                for (at, w) in whole.routes.iter().enumerate() {
                    add.push(Self::parse(cx, &format!("routes/{at}"), w)?);
                }
                let wanted: BTreeSet<(&[u8], FaceId, Option<Origin>)> =
                    add.iter().map(|(n, s): &(Name, Spec)| (n.value(), s.face, s.via)).collect();
                let gone =
                    |(p, s): &(&[u8], &Spec)| s.is_static && !wanted.contains(&(*p, s.face, s.via));
                for (p, s) in self.iter().filter(gone) {
                    remove.push((p.to_vec(), s.face, s.via));
                }
            }
            Method::Post => {
                let change: Change = read(request.body.clone())?;
                for (at, w) in change.add.iter().enumerate() {
                    add.push(Self::parse(cx, &format!("add/{at}"), w)?);
                }
                for (at, w) in change.remove.iter().enumerate() {
                    let prefix = names::prefix(&format!("remove/{at}/prefix"), &w.prefix)?;
                    // A face that is gone took its routes along.
                    if let Some(port) = cx.ports.find(&w.face) {
                        let via = via(&format!("remove/{at}/via"), w.via.as_deref())?;
                        remove.push((prefix.value().to_vec(), port.id, via));
                    }
                }
            }
        }
        if self.count + add.len() > max + remove.len() {
            let message = format!("the router holds at most {max} routes (routes_max)");
            return Err(Refusal::conflict("full", message));
        }
        let mut removed = 0;
        for (prefix, face, via) in remove {
            removed += u64::from(self.take_away(cx.key, &prefix, face, via, true));
        }
        let (mut added, mut unchanged) = (0_u64, 0_u64);
        for (prefix, spec) in add {
            match self.add(cx.key, prefix.value(), spec, max) {
                Ok(true) => added += 1,
                _ => unchanged += 1,
            }
        }
        Ok(json!({
            "changed": added + removed > 0, "added": added, "removed": removed,
            "unchanged": unchanged,
        }))
    }

    pub(crate) fn export(&self, cx: &Cx<'_>, request: &Request<'_>) -> Value {
        let mut all: Vec<(&[u8], &Spec)> = self.iter().collect();
        all.sort_by_key(|(prefix, s)| (*prefix, s.face));
        table::export(request, "name-router", &all, |(prefix, s)| {
            Some(json!({
                "prefix": names::uri(prefix), "face": cx.ports.label(s.face), "cost": s.cost,
                "via": s.via.map(Origin::to_hex), "origin": origin(s.is_static), "key": s.key.as_ref().map(ToString::to_string),
                "expires_ms": left_ms(s.until, cx.now),
            }))
        })
    }

    pub(crate) fn import(
        &mut self,
        cx: &mut Cx<'_>,
        request: &Request<'_>,
        max: usize,
    ) -> Result<Value, Refusal> {
        #[derive(Deserialize)]
        struct Entry {
            prefix: String,
            face: String,
            #[serde(default)]
            via: Option<String>,
            #[serde(default)]
            cost: u64,
            #[serde(default)]
            origin: String,
            key: Option<String>,
            expires_ms: Option<u64>,
        }
        let chunk = table::chunk(request, "name-router")?;
        let mut done = Merged::default();
        for value in chunk.entries {
            let entry: Entry = read(value)?;
            let prefix = names::prefix("entries/prefix", &entry.prefix)?;
            let label = chunk.faces.get(&entry.face).unwrap_or(&entry.face);
            let Some(face) = cx.ports.find(label).map(|p| p.id) else {
                done.refused += 1;
                continue;
            };
            let key = entry.key.map(|k| names::name("entries/key", &k)).transpose()?;
            let until = entry.expires_ms.map_or(Tick::NEVER, |ms| cx.now.plus_ms(ms));
            let is_static = entry.origin != "registered";
            let via = via("entries/via", entry.via.as_deref())?;
            let spec = Spec { face, via, cost: entry.cost, is_static, key, until };
            match self.add(cx.key, prefix.value(), spec, max) {
                Ok(true) => done.new += 1,
                Ok(false) => done.merged += 1,
                Err(_) => done.refused += 1,
            }
        }
        Ok(done.to_json())
    }
}

/// Who a route leads to behind its face, as the control interface writes it.
fn via(field: &str, text: Option<&str>) -> Result<Option<Origin>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let origin = u64::from_str_radix(text, 16).ok().and_then(Origin::of_number);
    origin.map(Some).ok_or_else(|| Refusal::field(field, "an origin: hexadecimal digits"))
}

fn origin(is_static: bool) -> &'static str {
    if is_static { "static" } else { "registered" }
}

fn left_ms(until: Tick, now: Tick) -> Option<u64> {
    (until != Tick::NEVER).then(|| u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX))
}

/// The earlier of a moment that may be and one that may be never.
fn sooner(known: Option<Tick>, new: Tick) -> Option<Tick> {
    if new == Tick::NEVER { known } else { Some(known.map_or(new, |k| k.min(new))) }
}
