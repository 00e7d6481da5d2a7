//! Pending Interests on their way to another instance.

use super::BackwardRouter;
use crate::element::{Cx, Refusal, Request, read};
use crate::table::{self, Merged};
use onym_tables::NameHashes;
use onym_tables::pit::{InRecord, Token};
use onym_wire::interest::Interest;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
struct Downstream {
    face: String,
    #[serde(default)]
    token: String,
    nonce: u32,
    remaining_ms: u64,
}

#[derive(Debug, Deserialize)]
struct Entry {
    interest: String,
    downstreams: Vec<Downstream>,
}

impl BackwardRouter {
    pub(super) fn export(&self, cx: &Cx<'_>, request: &Request<'_>) -> Value {
        let counts = |slot: u32, stamp: u64| {
            self.pit.is_live(slot) && self.pit.entry(slot).info.stamp == stamp
        };
        let all = self.recency.newest_first(counts);
        table::export(request, "backward-router", &all, |slot| {
            let entry = self.pit.entry(*slot);
            let left = |r: &InRecord| {
                u64::try_from(r.expiry.since(cx.now).as_millis()).unwrap_or(u64::MAX)
            };
            let downstreams: Vec<Value> = entry
                .ins
                .iter()
                .map(|r| {
                    json!({
                        "face": cx.ports.label(r.face), "nonce": r.nonce,
                        "token": onym_crypto::digest::hex(&r.token), "remaining_ms": left(r),
                    })
                })
                .collect();
            let remaining = entry.ins.iter().map(left).max().unwrap_or(0);
            let interest = table::encode(self.pit.interest(*slot));
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
        faces: &std::collections::BTreeMap<String, String>,
    ) -> Result<Option<bool>, Refusal> {
        let Ok(interest) = Interest::parse(wire) else { return Ok(None) };
        let mut records = Vec::new();
        for d in downstreams {
            let label = faces.get(&d.face).unwrap_or(&d.face);
            let Some(port) = cx.ports.find(label) else { continue };
            let token = Token::try_from(unhex(&d.token)?.as_slice())
                .map_err(|e| Refusal::field("entries/downstreams/token", e.to_string()))?;
            let expiry = cx.now.plus_ms(d.remaining_ms);
            let (face, nonce) = (port.id, d.nonce);
            records.push(InRecord { face, nonce, expiry, token, non_discovery: false });
        }
        if records.is_empty() {
            return Ok(None);
        }
        let hashes = NameHashes::new(cx.key, interest.name.value(), 0);
        let key = super::key_of(cx, &interest, &hashes);
        let look = self.pit.look(&key);
        let slot = match look.found {
            Some(slot) => slot,
            None => match self.pit.insert(&look, &key, wire) {
                Ok(slot) => {
                    self.counters.inserted += 1;
                    self.pit.entry_mut(slot).info.interval_ms = super::INTERVAL_MIN_MS;
                    self.pit.entry_mut(slot).info.sent = cx.now;
                    slot
                }
                Err(_) => return Ok(None),
            },
        };
        let mut all_known = look.found.is_some();
        for record in records {
            let same = |r: &InRecord| r.face == record.face && r.token == record.token;
            let known = self.pit.entry(slot).ins.iter().find(|r| same(r)).map(|r| r.expiry);
            all_known &= known.is_some();
            // The longer time counts.
            let expiry = record.expiry.max(known.unwrap_or_default());
            self.join_record(cx.now, slot, InRecord { expiry, ..record });
        }
        Ok(Some(all_known))
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
