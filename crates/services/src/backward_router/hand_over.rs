//! Export and import of pending Interests, for another instance.

use super::BackwardRouter;
use crate::chain::Origin;
use crate::element::{Cx, Refusal, Request, read};
use crate::table::{self, Merged};
use onym_forward::stage::Waiting;
use onym_tables::pit::{InRecord, Token};
use onym_wire::interest::Interest;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Debug, Deserialize)]
struct Downstream {
    face: String,
    #[serde(default)]
    token: String,
    nonce: u32,
    remaining_ms: u64,
    /// Who stands behind the face.
    #[serde(default)]
    origin: Option<u64>,
}

#[derive(Debug, Deserialize)]
struct Entry {
    interest: String,
    downstreams: Vec<Downstream>,
}

impl BackwardRouter {
    pub(super) fn export(&self, cx: &Cx<'_>, request: &Request<'_>) -> Value {
        let mut all: Vec<Waiting<'_>> = self.fw.pending().iter().collect();
        all.sort_by_key(|waiting| std::cmp::Reverse(waiting.since));
        table::export(request, "backward-router", &all, |waiting| {
            let left = |r: &InRecord| {
                u64::try_from(r.expiry.since(cx.now).as_millis()).unwrap_or(u64::MAX)
            };
            let one = |r: &InRecord| {
                let client = self.clients.of(r.face);
                json!({
                    "face": cx.ports.label(client.map_or(r.face, |c| c.link)), "nonce": r.nonce,
                    "origin": client.map(|c| c.origin.told()),
                    "token": onym_crypto::digest::hex(&r.token), "remaining_ms": left(r),
                })
            };
            let downstreams: Vec<Value> = waiting.downstreams.iter().map(one).collect();
            let remaining = waiting.downstreams.iter().map(left).max().unwrap_or(0);
            let interest = table::encode(waiting.interest);
            Some(json!({
                "interest": interest, "remaining_ms": remaining, "downstreams": downstreams,
            }))
        })
    }

    pub(super) fn import(
        &mut self,
        cx: &mut Cx<'_>,
        request: &Request<'_>,
    ) -> Result<Value, Refusal> {
        let chunk = table::chunk(request, "backward-router")?;
        let mut done = Merged::default();
        for value in &chunk.entries {
            let entry: Entry = read(value.clone())?;
            let wire = table::decode("entries/interest", &entry.interest)?;
            let known = self.import_one(cx, &wire, &entry.downstreams, &chunk.faces)?;
            match known {
                None => done.refused += 1,
                Some(true) => done.merged += 1,
                Some(false) => done.new += 1,
            }
        }
        Ok(done.to_json())
    }

    /// Whether the entry was there already; `None` when it cannot be taken.
    fn import_one(
        &mut self,
        cx: &mut Cx<'_>,
        wire: &[u8],
        downstreams: &[Downstream],
        faces: &BTreeMap<String, String>,
    ) -> Result<Option<bool>, Refusal> {
        let Ok(interest) = Interest::parse(wire) else { return Ok(None) };
        let mut records = Vec::new();
        for d in downstreams {
            let label = faces.get(&d.face).unwrap_or(&d.face);
            let Some(link) = cx.ports.find(label).map(|port| port.id) else { continue };
            let token = Token::try_from(unhex(&d.token)?.as_slice())
                .map_err(|e| Refusal::field("entries/downstreams/token", e.to_string()))?;
            let origin = d.origin.and_then(Origin::of_number);
            let face = origin.map_or(link, |origin| self.client(link, origin));
            let expiry = cx.now.plus_ms(d.remaining_ms);
            records.push(InRecord { face, nonce: d.nonce, expiry, token, non_discovery: false });
        }
        if records.is_empty() {
            return Ok(None);
        }
        Ok(self.fw.pending_mut().join(cx.now, &interest, records))
    }
}

fn unhex(text: &str) -> Result<Vec<u8>, Refusal> {
    let bad = || Refusal::field("entries/downstreams/token", "pairs of hexadecimal digits");
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return Err(bad());
    }
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| bad()))
        .collect()
}
