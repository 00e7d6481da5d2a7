//! The resource `routes` and the table that routers hand over.

use super::{Routes, Spec};
use crate::chain::Origin;
use crate::element::{Cx, Method, Reason, Refusal, Request, read};
use crate::names;
use crate::table::{self, Merged};
use onym_tables::{FaceId, Tick};
use onym_wire::name::Name;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

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
