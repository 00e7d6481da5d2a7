//! `onym cert serve`: certificates, and records of revocation, for whoever asks for them by name.

use super::failure;
use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::{session, stop};
use onym_client::blocking::Client;
use onym_client::{Answer, Incoming, RouteOptions};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::KeyStore;
use onym_crypto::{Certificate, Signer};
use onym_frame::Buf;
use onym_trust::chain::{Revoker, no_record_name, record_by};
use onym_wire::data::{Data, DataBuilder};
use onym_wire::types::CONTENT_NACK;
use onym_wire::{NackReason, Name, NameRef};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// The key store is looked at so often at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// It is read again after this also when it did not change: certificates end.
const READ_EVERY: Duration = Duration::from_secs(10);
/// How long caches answer with a statement as fresh, in milliseconds.
const STATEMENT_FRESH_MS: u64 = 60_000;
/// Statements that are signed within a second; who asks for more is not answered.
const STATEMENTS_MAX: u32 = 200;

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { prefixes: Vec<String>, certificates: usize, records: usize },
    Stopped { answered: u64 },
}

/// What is served, by the prefix to register.
type ByPrefix = BTreeMap<Name, Vec<Buf>>;

/// Who says that certificates under an identity are not revoked.
struct Voucher {
    identity: Name,
    signer: Signer,
}

#[derive(Default)]
struct Desk {
    by_prefix: ByPrefix,
    vouchers: Vec<Voucher>,
    answered: u64,
    /// Since when statements are counted, and how many were signed.
    statements: Option<(Instant, u32)>,
}

fn lock(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn run(
    store: &KeyStore,
    identities: Vec<Name>,
    vouch: &[Name],
    cx: &Context,
) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let vouchers = vouch.iter().map(|identity| voucher(store, identity));
    let vouchers = vouchers.collect::<anyhow::Result<Vec<_>>>()?;
    let shelf = Shelf { store: store.clone(), identities, vouch: vouch.to_vec() };
    let mut read_at = (shelf.changed(), Instant::now());
    let by_prefix = shelf.read()?;
    let ready = ready(&by_prefix);
    let prefixes: Vec<Name> = by_prefix.keys().cloned().collect();
    let desk = Arc::new(Mutex::new(Desk { by_prefix, vouchers, ..Desk::default() }));
    let mut client = session::open_forever(cx)?;
    for prefix in prefixes {
        respond(&mut client, &desk, &prefix)?;
        client.register(prefix, RouteOptions::default()).map_err(session::failure)?;
    }
    cx.event(&ready, text)?;
    while !stop.is_set() {
        session::serve_for(&mut client, &stop, LOOK_EVERY)?;
        let changed = shelf.changed();
        if changed == read_at.0 && read_at.1.elapsed() < READ_EVERY {
            continue;
        }
        read_at = (changed, Instant::now());
        // What cannot be read now stays as it is.
        let Ok(now) = shelf.read() else { continue };
        let is_new = |prefix: &&Name| !lock(&desk).by_prefix.contains_key(*prefix);
        let new: Vec<Name> = now.keys().filter(is_new).cloned().collect();
        lock(&desk).by_prefix.extend(now);
        for prefix in new {
            respond(&mut client, &desk, &prefix)?;
            client
                .endpoint()
                .register(prefix, RouteOptions::default())
                .map_err(|e| session::failure(e.into()))?;
        }
    }
    let answered = lock(&desk).answered;
    cx.event(&Line::Stopped { answered }, text)
}

/// Answers under `prefix` from the desk.
fn respond(client: &mut Client, desk: &Arc<Mutex<Desk>>, prefix: &Name) -> anyhow::Result<()> {
    let (desk, under) = (Arc::clone(desk), prefix.clone());
    let answer = move |incoming: &Incoming, _: &mut Vec<u8>| lock(&desk).answer(&under, incoming);
    client.respond(prefix.clone(), Box::new(answer)).map_err(|e| session::failure(e.into()))?;
    Ok(())
}

fn voucher(store: &KeyStore, identity: &Name) -> anyhow::Result<Voucher> {
    let signer = store.signer(Some(identity.as_ref())).map_err(failure)?;
    Ok(Voucher { identity: identity.clone(), signer })
}

impl Desk {
    fn answer(&mut self, prefix: &Name, incoming: &Incoming) -> Answer {
        let name = incoming.interest().name;
        let by = record_by(name);
        let held = self.by_prefix.get(prefix).into_iter().flatten();
        let mut found = held.clone().find(|wire| incoming.is_answered_by(wire)).cloned();
        if found.is_none() && by == Some(Revoker::Issuer) {
            found = self.state(name);
        }
        match found {
            Some(wire) => {
                self.answered += 1;
                Answer::Shared(wire)
            }
            // There is no such record: who asks need not wait for it.
            None if by.is_some() => Answer::Nack(NackReason::NO_ROUTE),
            None => Answer::Nothing,
        }
    }

    /// Says now that there is no such record, where somebody here vouches for that.
    fn state(&mut self, record: NameRef<'_>) -> Option<Buf> {
        let at = self.vouchers.iter().position(|v| v.identity.as_ref().is_prefix_of(record))?;
        let (since, count) = self.statements.unwrap_or_else(|| (Instant::now(), 0));
        let (since, count) = match since.elapsed() < Duration::from_secs(1) {
            true => (since, count),
            false => (Instant::now(), 0),
        };
        if count >= STATEMENTS_MAX {
            return None;
        }
        self.statements = Some((since, count + 1));
        let name = no_record_name(record, unix_now_ms());
        let data = DataBuilder {
            content_type: CONTENT_NACK,
            freshness_ms: STATEMENT_FRESH_MS,
            ..DataBuilder::new(name.as_ref(), b"")
        };
        let mut wire = Vec::new();
        self.vouchers.get(at)?.signer.sign_data(&data, &mut wire).ok()?;
        Some(Buf::copy_from(&wire))
    }
}

/// Where what is served comes from.
struct Shelf {
    store: KeyStore,
    identities: Vec<Name>,
    vouch: Vec<Name>,
}

impl Shelf {
    /// When something was put into the key store or taken out of it.
    fn changed(&self) -> Option<SystemTime> {
        std::fs::metadata(self.store.dir()).and_then(|m| m.modified()).ok()
    }

    fn is_served(&self, identity: NameRef<'_>) -> bool {
        self.identities.is_empty() || self.identities.iter().any(|i| *i == identity.to_name())
    }

    /// Certificates and records by the prefix to register. Who asks for any certificate of a key gets
    /// the first: valid ones come before others, those that others signed before self-signed ones,
    /// which lead nowhere, newer ones before older.
    fn read(&self) -> anyhow::Result<ByPrefix> {
        let mut all = self.store.certificates().map_err(failure)?;
        let now_ms = unix_now_ms();
        let rank = |c: &Certificate| (c.check_valid_at(now_ms).is_err(), c.is_self_signed());
        all.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| b.name().cmp(&a.name())));
        let mut by_prefix = ByPrefix::new();
        for certificate in all.iter().filter(|c| self.is_served(c.identity())) {
            let prefix = certificate.name().prefix(certificate.identity().len() + 1).to_name();
            by_prefix.entry(prefix).or_default().push(Buf::copy_from(certificate.wire()));
        }
        self.check(&by_prefix)?;
        for record in self.store.records().map_err(failure)? {
            let Some(prefix) = self.prefix_of(&record) else { continue };
            by_prefix.entry(prefix).or_default().push(Buf::copy_from(&record));
        }
        for identity in &self.vouch {
            by_prefix.entry(identity.clone()).or_default();
        }
        Ok(by_prefix)
    }

    /// Where a record is served, when it is.
    fn prefix_of(&self, record: &[u8]) -> Option<Name> {
        let data = Data::parse(record).ok()?;
        record_by(data.name)?;
        let identity = data.name.drop_last(5);
        let is_vouched = self.vouch.iter().any(|of| of.as_ref().is_prefix_of(identity));
        let is_served = self.is_served(identity) || is_vouched;
        is_served.then(|| data.name.drop_last(4).to_name())
    }

    fn check(&self, by_prefix: &ByPrefix) -> anyhow::Result<()> {
        let has = |name: &&Name| by_prefix.keys().any(|p| name.as_ref().is_prefix_of(p.as_ref()));
        let absent = self.identities.iter().find(|name| !has(name)).map(ToString::to_string);
        let absent = absent.or_else(|| by_prefix.is_empty().then(|| "the key store".to_owned()));
        absent.map_or(Ok(()), |what| {
            Err(Failure::new(Exit::NotFound, format!("{what} has no certificate"))
                .next("see `onym cert list`; `onym key new IDENTITY` makes a key and a certificate")
                .into())
        })
    }
}

fn ready(by_prefix: &ByPrefix) -> Line {
    let is_record = |wire: &&Buf| Data::parse(wire).is_ok_and(|d| record_by(d.name).is_some());
    let all = by_prefix.values().flatten();
    let records = all.clone().filter(is_record).count();
    Line::Ready {
        prefixes: by_prefix.keys().map(ToString::to_string).collect(),
        certificates: all.count() - records,
        records,
    }
}

fn text(line: &Line) -> String {
    match line {
        Line::Ready { prefixes, certificates, records: 0 } => {
            format!("ready: {certificates} certificates under {}", prefixes.join(" "))
        }
        Line::Ready { prefixes, certificates, records } => format!(
            "ready: {certificates} certificates, {records} records under {}",
            prefixes.join(" ")
        ),
        Line::Stopped { answered } => format!("stopped: {answered} certificates sent"),
    }
}
