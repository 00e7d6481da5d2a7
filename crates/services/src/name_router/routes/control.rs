//! The resource `routes` and the table that routers hand over.

use super::{Routes, Spec};
use crate::chain::Origin;
use crate::control::{
    Answer, Changed, Entries, Import, Merged, Page, RouteEntry, RouteInfo, RouteOrigin, RouteSpec,
    SetRequest,
};
use crate::cx::Cx;
use crate::names;
use crate::refusal::{Reason, Refusal};
use crate::table;
use onym_tables::{FaceId, Tick};
use onym_wire::name::Name;
use std::collections::BTreeSet;

/// Who a route leads to behind its face, as the control interface writes it.
fn via(field: &str, text: Option<&str>) -> Result<Option<Origin>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let origin = u64::from_str_radix(text, 16).ok().and_then(Origin::of_number);
    origin.map(Some).ok_or_else(|| Refusal::field(field, "an origin: hexadecimal digits"))
}

fn origin(spec: &Spec) -> RouteOrigin {
    if spec.is_static { RouteOrigin::Static } else { RouteOrigin::Registered }
}

fn left_ms(until: Tick, now: Tick) -> Option<u64> {
    (until != Tick::NEVER).then(|| u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX))
}

impl Routes {
    fn list(&self, cx: &Cx<'_>) -> Vec<RouteInfo> {
        let mut all = Vec::new();
        for (prefix, route) in self.map.iter() {
            let prefix = names::uri(prefix);
            all.extend(route.specs.iter().map(|s| RouteInfo {
                prefix: prefix.clone(),
                face: cx.ports.label(s.face).to_owned(),
                id: s.face.0,
                via: s.via.map(Origin::to_hex),
                cost: s.cost,
                origin: origin(s),
                key: s.key.as_ref().map(ToString::to_string),
                expires_ms: left_ms(s.until, cx.now),
                interests: route.interests,
                data: route.data,
                bytes: route.bytes,
            }));
        }
        all.sort_by(|a, b| a.prefix.cmp(&b.prefix));
        all
    }

    fn parse(cx: &Cx<'_>, field: &str, spec: &RouteSpec) -> Result<(Name, Spec), Refusal> {
        let prefix = names::prefix(&format!("{field}/prefix"), &spec.prefix)?;
        let Some(port) = cx.ports.find(&spec.face) else {
            let message = format!("there is no face {:?}; GET /v1/faces lists them", spec.face);
            let field = Some(format!("{field}/face"));
            return Err(Refusal { reason: Reason::Invalid, code: "face_unknown", message, field });
        };
        let (face, cost, until) = (port.id, spec.cost, Tick::NEVER);
        let via = via(&format!("{field}/via"), spec.via.as_deref())?;
        Ok((prefix, Spec { face, via, cost, is_static: true, key: None, until }))
    }

    /// The resource `routes`: static ones are made and taken away, all are listed.
    pub(crate) fn control(
        &mut self,
        cx: &mut Cx<'_>,
        request: SetRequest<RouteSpec>,
        max: usize,
    ) -> Result<Answer, Refusal> {
        let (mut add, mut remove) = (Vec::new(), Vec::new());
        match request {
            SetRequest::List => return Ok(Answer::Routes { routes: self.list(cx) }),
            SetRequest::Replace(routes) => {
                for (at, spec) in routes.iter().enumerate() {
                    add.push(Self::parse(cx, &format!("routes/{at}"), spec)?);
                }
                let wanted: BTreeSet<(&[u8], FaceId, Option<Origin>)> =
                    add.iter().map(|(n, s): &(Name, Spec)| (n.value(), s.face, s.via)).collect();
                let gone =
                    |(p, s): &(&[u8], &Spec)| s.is_static && !wanted.contains(&(*p, s.face, s.via));
                for (p, s) in self.iter().filter(gone) {
                    remove.push((p.to_vec(), s.face, s.via));
                }
            }
            SetRequest::Change { add: new, remove: old } => {
                for (at, spec) in new.iter().enumerate() {
                    add.push(Self::parse(cx, &format!("add/{at}"), spec)?);
                }
                for (at, spec) in old.iter().enumerate() {
                    let prefix = names::prefix(&format!("remove/{at}/prefix"), &spec.prefix)?;
                    // A face that is gone took its routes along.
                    if let Some(port) = cx.ports.find(&spec.face) {
                        let via = via(&format!("remove/{at}/via"), spec.via.as_deref())?;
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
        Ok(Changed::new(added, removed, unchanged).into())
    }

    pub(crate) fn export(&self, cx: &Cx<'_>, page: Page) -> Answer {
        let mut all: Vec<(&[u8], &Spec)> = self.iter().collect();
        all.sort_by_key(|(prefix, s)| (*prefix, s.face));
        let entry = |(prefix, s): &(&[u8], &Spec)| RouteEntry {
            prefix: names::uri(prefix),
            face: cx.ports.label(s.face).to_owned(),
            via: s.via.map(Origin::to_hex),
            cost: s.cost,
            origin: origin(s),
            key: s.key.as_ref().map(ToString::to_string),
            expires_ms: left_ms(s.until, cx.now),
        };
        table::export(page, &all, entry, Entries::Routes)
    }

    pub(crate) fn import(
        &mut self,
        cx: &mut Cx<'_>,
        table: Import,
        max: usize,
    ) -> Result<Answer, Refusal> {
        let Entries::Routes(entries) = table.entries else { return Err(Refusal::no_path()) };
        let mut done = Merged::default();
        for entry in entries {
            let prefix = names::prefix("entries/prefix", &entry.prefix)?;
            let label = table.faces.get(&entry.face).unwrap_or(&entry.face);
            let Some(face) = cx.ports.find(label).map(|p| p.id) else {
                done.refused += 1;
                continue;
            };
            let key = entry.key.map(|k| names::name("entries/key", &k)).transpose()?;
            let until = entry.expires_ms.map_or(Tick::NEVER, |ms| cx.now.plus_ms(ms));
            let is_static = entry.origin == RouteOrigin::Static;
            let via = via("entries/via", entry.via.as_deref())?;
            let spec = Spec { face, via, cost: entry.cost, is_static, key, until };
            match self.add(cx.key, prefix.value(), spec, max) {
                Ok(true) => done.add_new(),
                Ok(false) => done.add_known(),
                Err(_) => done.refused += 1,
            }
        }
        Ok(done.into())
    }
}
