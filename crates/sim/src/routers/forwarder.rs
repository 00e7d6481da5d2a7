//! The forwarder of a node: routes, pending Interests, and the two syncs that are flooded.

use super::FACE;
use onym_route::Names;
use onym_wire::{Interest, Name, NameRef};
use std::collections::{BTreeMap, BTreeSet};

/// Nonces that are remembered; those of before the last so many are forgotten.
const NONCES: usize = 10_000;

/// What becomes of a packet.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// Faces that it goes to, with our token.
    pub(super) on: Vec<(u64, u64)>,
    /// It goes to this node's routers, which give this token back.
    pub(super) own: Option<Vec<u8>>,
}

/// Prefixes of one network of routing.
#[derive(Debug)]
struct Places {
    prefixes: Name,
    sync: Name,
    own: Name,
}

#[derive(Debug)]
pub(super) struct Forwarder {
    routes: BTreeMap<Name, Vec<(u64, u64)>>,
    places: Vec<Places>,
    /// Interests passed on: our token, then face and token of who asked.
    pending: BTreeMap<u64, (u64, u64)>,
    /// Nonces of sync Interests: new ones, and those before.
    seen: (BTreeSet<[u8; 4]>, BTreeSet<[u8; 4]>),
    token: u64,
}

impl Forwarder {
    pub(super) fn new(names: &[Names]) -> Self {
        let places = |names: &Names| Places {
            prefixes: names.prefix_group.clone(),
            sync: names.prefix_sync.clone(),
            own: names.prefixes_of(names.router.as_ref()),
        };
        Self {
            routes: BTreeMap::new(),
            places: names.iter().map(places).collect(),
            pending: BTreeMap::new(),
            seen: (BTreeSet::new(), BTreeSet::new()),
            token: 0,
        }
    }

    /// Routes and what is pending are gone.
    pub(super) fn restart(&mut self) {
        self.routes.clear();
        self.pending.clear();
    }

    pub(super) fn face_down(&mut self, face: u64) {
        self.routes.values_mut().for_each(|hops| hops.retain(|(hop, _)| *hop != face));
    }

    /// Registers a route, or removes it.
    pub(super) fn register(&mut self, prefix: &Name, face: u64, cost: Option<u64>) {
        let hops = self.routes.entry(prefix.clone()).or_default();
        hops.retain(|(hop, _)| *hop != face);
        hops.extend(cost.map(|cost| (face, cost)));
        hops.sort_by_key(|(face, cost)| (*cost, *face));
        if hops.is_empty() {
            self.routes.remove(prefix);
        }
    }

    /// Next hops of exactly `prefix`, best first.
    pub(super) fn hops(&self, prefix: &Name) -> &[(u64, u64)] {
        self.routes.get(prefix).map_or(&[], Vec::as_slice)
    }

    /// Next hops of the longest prefix of `name`, best first.
    pub(super) fn lookup(&self, name: NameRef<'_>) -> &[(u64, u64)] {
        let lengths = (0..=name.len()).rev();
        let mut found = lengths.filter_map(|len| self.routes.get(name.prefix(len).value()));
        found.next().map_or(&[], Vec::as_slice)
    }

    /// Components of the longest prefix of `name` that has routes.
    pub(super) fn longest(&self, name: NameRef<'_>) -> usize {
        let mut lengths = (0..=name.len()).rev();
        lengths.find(|len| self.routes.contains_key(name.prefix(*len).value())).unwrap_or(0)
    }

    /// How many prefixes have routes.
    pub(super) fn len(&self) -> usize {
        self.routes.len()
    }

    fn token(&mut self) -> u64 {
        self.token += 1;
        self.token
    }

    fn is_new(&mut self, nonce: [u8; 4]) -> bool {
        if self.seen.0.len() >= NONCES {
            self.seen.1 = std::mem::take(&mut self.seen.0);
        }
        !self.seen.1.contains(&nonce) && self.seen.0.insert(nonce)
    }

    /// A packet came by `face` with `token`.
    pub(super) fn arrive(&mut self, face: u64, wire: &[u8], token: u64) -> Sent {
        let Ok(interest) = Interest::parse(wire) else {
            return match self.pending.remove(&token) {
                Some(back) => Sent { on: vec![back], own: None },
                None => Sent { on: Vec::new(), own: Some(Vec::new()) },
            };
        };
        let mut back = face.to_be_bytes().to_vec();
        back.extend(token.to_be_bytes());
        let name = interest.name;
        let place = self.places.iter().find(|place| place.prefixes.as_ref().is_prefix_of(name));
        match place {
            Some(place) if place.sync.as_ref().is_prefix_of(name) => {
                if !self.is_new(interest.nonce.unwrap_or_default()) {
                    return Sent::default();
                }
                let faces = self.lookup(name).iter().map(|(next, _)| *next);
                let on = faces.filter(|next| *next != face).map(|next| (next, 0)).collect();
                Sent { on, own: Some(back) }
            }
            Some(place) if !place.own.as_ref().is_prefix_of(name) => {
                let next = self.lookup(name).first().map(|(next, _)| *next);
                let Some(next) = next.filter(|next| *next >= FACE) else { return Sent::default() };
                let ours = self.token();
                self.pending.insert(ours, (face, token));
                Sent { on: vec![(next, ours)], own: None }
            }
            _ => Sent { on: Vec::new(), own: Some(back) },
        }
    }

    /// A packet of this node's routers: the faces that it goes to.
    pub(super) fn originate(
        &mut self,
        wire: &[u8],
        token: &[u8],
        face: Option<u64>,
    ) -> Vec<(u64, u64)> {
        // A reply goes back where its Interest came from: the token says it.
        if let Some((face, token)) = token.split_first_chunk::<8>() {
            let token = token.first_chunk::<8>().copied().unwrap_or_default();
            return vec![(u64::from_be_bytes(*face), u64::from_be_bytes(token))];
        }
        if let Some(face) = face {
            return vec![(face, self.token())];
        }
        let Ok(interest) = Interest::parse(wire) else { return Vec::new() };
        let name = interest.name;
        let single = self.places.iter().any(|place| {
            place.prefixes.as_ref().is_prefix_of(name) && !place.sync.as_ref().is_prefix_of(name)
        });
        let faces = self.lookup(name).iter().map(|(face, _)| *face).filter(|face| *face >= FACE);
        let faces: Vec<u64> = faces.take(if single { 1 } else { usize::MAX }).collect();
        faces.into_iter().map(|face| (face, self.token())).collect()
    }
}
