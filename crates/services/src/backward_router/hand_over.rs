//! Export and import of pending Interests, for another instance.

use super::BackwardRouter;
use crate::chain::Origin;
use crate::control::{Answer, Downstream, Entries, Import, Merged, Page, PendingEntry};
use crate::cx::Cx;
use crate::refusal::Refusal;
use crate::table;
use onym_forward::stage::Waiting;
use onym_tables::pit::{InRecord, Token};
use onym_wire::interest::Interest;
use std::collections::BTreeMap;

impl BackwardRouter {
    pub(super) fn export(&self, cx: &Cx<'_>, page: Page) -> Answer {
        let mut all: Vec<Waiting<'_>> = self.fw.pending().iter().collect();
        all.sort_by_key(|waiting| std::cmp::Reverse(waiting.since));
        let left =
            |r: &InRecord| u64::try_from(r.expiry.since(cx.now).as_millis()).unwrap_or(u64::MAX);
        let downstream = |r: &InRecord| {
            let client = self.clients.of(r.face);
            Downstream {
                face: cx.ports.label(client.map_or(r.face, |c| c.link)).to_owned(),
                token: onym_crypto::digest::hex(&r.token),
                nonce: r.nonce,
                remaining_ms: left(r),
                origin: client.map(|c| c.origin.told().get()),
            }
        };
        let entry = |waiting: &Waiting<'_>| PendingEntry {
            interest: table::encode(waiting.interest),
            remaining_ms: waiting.downstreams.iter().map(left).max().unwrap_or(0),
            downstreams: waiting.downstreams.iter().map(downstream).collect(),
        };
        table::export(page, &all, entry, Entries::Pending)
    }

    pub(super) fn import(&mut self, cx: &mut Cx<'_>, table: Import) -> Result<Answer, Refusal> {
        let Entries::Pending(entries) = table.entries else { return Err(Refusal::no_path()) };
        let mut done = Merged::default();
        for entry in entries {
            let wire = table::decode("entries/interest", &entry.interest)?;
            match self.import_one(cx, &wire, &entry.downstreams, &table.faces)? {
                None => done.refused += 1,
                Some(true) => done.add_known(),
                Some(false) => done.add_new(),
            }
        }
        Ok(done.into())
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
            records.push(InRecord {
                face,
                nonce: d.nonce,
                expiry,
                token,
                non_discovery: false,
                repeats: false,
            });
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
