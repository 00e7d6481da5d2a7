//! What the node would do with an Interest, and which table decides.

use super::faces::Faces;
use super::plane::Plane;
use super::shards::Shards;
use crate::shard::Order;
use onym_forward::{Explanation, Verdict};
use onym_tables::FaceId;
use onym_wire::name::{Name, NameRef};
use serde_json::{Value, json};

/// Answers what would be done with an Interest.
pub(super) struct Explainer<'a> {
    shards: &'a Shards,
    faces: &'a Faces,
    cs_serves: bool,
    /// Where the Interest would come from.
    ingress: FaceId,
}

/// How an Interest asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// For exactly this name.
    Exact,
    /// With CanBePrefix.
    Prefix,
}

impl<'a> Explainer<'a> {
    pub(super) fn of(plane: &'a Plane) -> Self {
        let cs_serves = plane.settings.config.cs.serve;
        let ingress = FaceId::NULL;
        Self { shards: &plane.shards, faces: &plane.faces, cs_serves, ingress }
    }

    /// The same for an Interest for exactly `name` that the face `from` brings: how it would end,
    /// whether an application here is asked, and the members of the explanation.
    pub(super) fn for_face(mut self, name: &Name, from: FaceId) -> Option<(Verdict, bool, Value)> {
        self.ingress = from;
        let asked = name.clone();
        let home = self.shards.ask(0, |reply| Order::Home { name: asked, reply })?;
        let e = self.explain_in(home, name, Asking::Exact)?;
        let is_here = e.chosen.iter().any(|face| self.faces.is_local(*face));
        Some((e.verdict, is_here, self.told(name, e.verdict, &e)))
    }

    /// `/localhost/onym/explain`: JSON. Its members are listed in the README of this crate.
    pub(super) fn explain(&self, name: NameRef<'_>) -> String {
        let owned = name.to_name();
        let asked = owned.clone();
        let home = self.shards.ask(0, |reply| Order::Home { name: asked, reply }).unwrap_or(0);
        let exact = self.explain_in(home, &owned, Asking::Exact);
        // An Interest with CanBePrefix waits in shard 0, and is answered from every shard's cache.
        let each: Vec<Explanation> = (0..self.shards.len())
            .filter_map(|shard| self.explain_in(shard, &owned, Asking::Prefix))
            .collect();
        let Some(exact) = exact else {
            let sentence = "the name is empty: no Interest can have it";
            return json!({ "name": "/", "verdict": "malformed", "decides": "name",
                "sentence": sentence })
            .to_string();
        };
        let cached = each.iter().any(|e| e.cs_hit);
        let discovery = match each.first() {
            Some(_) if cached => self.told(&owned, Verdict::CsHit, &each[0]),
            Some(e) => self.told(&owned, e.verdict, e),
            None => self.told(&owned, exact.verdict, &exact),
        };
        let mut told = self.told(&owned, exact.verdict, &exact);
        let Some(members) = told.as_object_mut() else { return told.to_string() };
        members.insert("name".into(), owned.to_string().into());
        members.insert("scope".into(), scope_of(name).into());
        members.insert("shard".into(), home.into());
        members.insert("cs_serves".into(), self.cs_serves.into());
        members.insert(
            "discovery".into(),
            json!({
                "verdict": discovery["verdict"], "decides": discovery["decides"],
                "sentence": discovery["sentence"],
            }),
        );
        told.to_string()
    }

    fn explain_in(&self, shard: usize, name: &Name, asking: Asking) -> Option<Explanation> {
        let (name, can_be_prefix) = (name.clone(), asking == Asking::Prefix);
        let ingress = self.ingress;
        self.shards
            .ask(shard, |reply| Order::Explain { name, can_be_prefix, ingress, reply })
            .flatten()
    }

    /// One explanation as JSON, when the Interest ends in `verdict`.
    fn told(&self, name: &Name, verdict: Verdict, e: &Explanation) -> Value {
        let hops: Vec<Value> = e.next_hops.iter().map(|h| self.hop(h)).collect();
        let chosen: Vec<u32> = e.chosen.iter().map(|face| face.0).collect();
        let decides = if self.are_down(verdict, e) { "faces" } else { decides(verdict) };
        json!({
            "verdict": verdict.label(),
            "decides": decides,
            "sentence": self.sentence(name, verdict, e),
            "because": e.because,
            "cached": verdict == Verdict::CsHit,
            "pending": e.pending.as_ref().map(|p| p.iter().map(|face| face.0).collect::<Vec<_>>()),
            "asked": e.asked.iter().map(|face| face.0).collect::<Vec<_>>(),
            "fib_prefix": e.fib_prefix.as_ref().map(ToString::to_string),
            "next_hops": hops,
            "strategy_prefix": e.strategy_prefix.to_string(),
            "strategy": e.strategy.to_string(),
            "chosen": chosen,
        })
    }

    /// Whether the Interest is sent to faces that are down, and to no other.
    fn are_down(&self, verdict: Verdict, e: &Explanation) -> bool {
        verdict == Verdict::Forwarded
            && e.chosen.iter().all(|id| self.faces.get(*id).is_some_and(|r| !r.up))
    }

    fn hop(&self, hop: &onym_forward::Hop) -> Value {
        let (id, cost) = (hop.hop.face, hop.hop.cost);
        let record = self.faces.get(id);
        let uri = record.map_or("internal://", |r| r.remote.as_str());
        let is_local = record.is_none() || self.faces.is_local(id);
        json!({
            "face": id.0, "cost": cost, "uri": uri, "up": record.is_none_or(|r| r.up),
            "scope": if is_local { "local" } else { "non-local" }, "barred": hop.barred,
        })
    }

    /// What happens, why, and what to do about it.
    fn sentence(&self, name: &Name, verdict: Verdict, e: &Explanation) -> String {
        let prefix = e.fib_prefix.as_ref().map_or_else(|| "/".to_owned(), ToString::to_string);
        let strategy = format!("{} (set at {})", e.strategy, e.strategy_prefix);
        let faces = self.shown(&e.chosen);
        match verdict {
            Verdict::CsHit => format!("{name} is answered at once from the content store"),
            Verdict::Forwarded if self.are_down(verdict, e) => format!(
                "the route {prefix} leads to {faces}, which is down: the Interest is lost until \
                 the face is up again"
            ),
            Verdict::Forwarded => format!(
                "the longest route is {prefix}; strategy {strategy} sends the Interest to {faces}"
            ),
            Verdict::Delivered => format!("the route {prefix} leads to the node's own management"),
            Verdict::NoRoute => format!(
                "no route covers {name}: a Nack NoRoute is returned; add a route with \
                 `onym route add PREFIX --via URI`, or start the producer"
            ),
            Verdict::NoEligibleNextHop => {
                let why = |hop: &onym_forward::Hop| {
                    let id = hop.hop.face.0;
                    format!("face {id}: {}", hop.barred.unwrap_or("the strategy leaves it out"))
                };
                let each: Vec<String> = e.next_hops.iter().map(why).collect();
                format!("the route {prefix} has no next hop for it ({})", each.join("; "))
            }
            Verdict::Aggregated | Verdict::Suppressed => {
                format!("the same Interest is pending at {}: {}", self.shown(&e.asked), e.because)
            }
            _ => format!("{name}: {}", e.because),
        }
    }

    fn shown(&self, faces: &[FaceId]) -> String {
        let each = faces.iter().map(|id| match self.faces.get(*id) {
            Some(record) => format!("face {} ({})", id.0, record.remote),
            None => format!("face {}", id.0),
        });
        each.collect::<Vec<_>>().join(", ")
    }
}

/// The table that a verdict comes from.
fn decides(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::CsHit => "cs",
        Verdict::Aggregated => "pit",
        Verdict::Delivered | Verdict::NoRoute | Verdict::NoEligibleNextHop => "fib",
        Verdict::Forwarded | Verdict::Suppressed | Verdict::StrategyRejected => "strategy",
        Verdict::Scope => "scope",
        _ => "packet",
    }
}

fn scope_of(name: NameRef<'_>) -> &'static str {
    match name.get(0).map(|c| c.value) {
        Some(b"localhost") => "localhost: never leaves this machine",
        Some(b"localhop") => "localhop: goes one hop at most",
        _ => "global",
    }
}
