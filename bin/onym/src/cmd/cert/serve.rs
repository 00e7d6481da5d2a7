//! `onym cert serve`: certificates for whoever asks for them by name.

use super::failure;
use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::{session, stop};
use onym_client::{Answer, Incoming, RouteOptions};
use onym_crypto::Certificate;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::KeyStore;
use onym_frame::Buf;
use onym_wire::Name;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The key store is read again so often at most.
const READ_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { prefixes: Vec<String>, certificates: usize },
    Stopped { answered: u64 },
}

pub(super) fn run(store: &KeyStore, identities: Vec<Name>, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let by_prefix = chosen(store, &identities)?;
    let ready = Line::Ready {
        prefixes: by_prefix.keys().map(ToString::to_string).collect(),
        certificates: by_prefix.values().map(Vec::len).sum(),
    };
    let answered = Arc::new(AtomicU64::new(0));
    let mut client = session::open_forever(cx)?;
    for (prefix, mut certificates) in by_prefix {
        let count = Arc::clone(&answered);
        let (store, of, under) = (store.clone(), identities.clone(), prefix.clone());
        let mut read_at = Instant::now();
        let respond = move |incoming: &Incoming, _: &mut Vec<u8>| {
            // Renewed certificates are served beside those of before.
            if read_at.elapsed() >= READ_EVERY {
                read_at = Instant::now();
                let now = chosen(&store, &of).ok().and_then(|mut all| all.remove(&under));
                certificates = now.unwrap_or_else(|| std::mem::take(&mut certificates));
            }
            let Some(wire) = certificates.iter().find(|wire| incoming.is_answered_by(wire)) else {
                return Answer::Nothing;
            };
            count.fetch_add(1, Ordering::Relaxed);
            Answer::Shared(wire.clone())
        };
        client
            .respond(prefix.clone(), Box::new(respond))
            .map_err(|e| session::failure(e.into()))?;
        client.register(prefix, RouteOptions::default()).map_err(session::failure)?;
    }
    cx.event(&ready, text)?;
    session::serve_until(&mut client, &stop)?;
    cx.event(&Line::Stopped { answered: answered.load(Ordering::Relaxed) }, text)
}

/// Certificates by the prefix to register. Who asks for any of a key gets the first: valid ones come
/// before others, those that others signed before self-signed ones, which lead nowhere, newer ones
/// before older.
fn chosen(store: &KeyStore, identities: &[Name]) -> anyhow::Result<BTreeMap<Name, Vec<Buf>>> {
    let mut all = store.certificates().map_err(failure)?;
    let now_ms = unix_now_ms();
    let rank = |c: &Certificate| (c.check_valid_at(now_ms).is_err(), c.is_self_signed());
    all.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| b.name().cmp(&a.name())));
    let mut by_prefix = BTreeMap::<Name, Vec<Buf>>::new();
    for certificate in &all {
        let identity = certificate.identity().to_name();
        if identities.is_empty() || identities.contains(&identity) {
            let prefix = certificate.name().prefix(identity.len() + 1).to_name();
            by_prefix.entry(prefix).or_default().push(Buf::copy_from(certificate.wire()));
        }
    }
    let is_served = |name: &&Name| by_prefix.keys().any(|p| name.as_ref().is_prefix_of(p.as_ref()));
    let absent = identities.iter().find(|name| !is_served(name)).map(ToString::to_string);
    let absent = absent.or_else(|| by_prefix.is_empty().then(|| "the key store".to_owned()));
    match absent {
        None => Ok(by_prefix),
        Some(what) => Err(Failure::new(Exit::NotFound, format!("{what} has no certificate"))
            .next("see `onym cert list`; `onym key new IDENTITY` makes a key and a certificate")
            .into()),
    }
}

fn text(line: &Line) -> String {
    match line {
        Line::Ready { prefixes, certificates } => {
            format!("ready: {certificates} certificates under {}", prefixes.join(" "))
        }
        Line::Stopped { answered } => format!("stopped: {answered} certificates sent"),
    }
}
