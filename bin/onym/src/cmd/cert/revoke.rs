//! `onym cert revoke`: records that a certificate is believed no longer, and entries of a list.

use super::{failure, find, read};
use crate::exit::{Exit, Failure};
use crate::output::Context;
use onym_crypto::cert::key_of_locator;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::KeyStore;
use onym_crypto::{Certificate, Error, PublicKey};
use onym_trust::chain::{Revoked, Revoker, record};
use onym_wire::Name;
use onym_wire::data::DataBuilder;
use onym_wire::types::CONTENT_KEY;
use serde::Serialize;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// How long caches answer with a record as fresh, in milliseconds: it is not taken back.
const FRESH_MS: u64 = 3_600_000;

/// Why a certificate is revoked, with the numbers of ndnrevoke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Reason {
    /// No reason is given.
    Unspecified = 0,
    /// Somebody else may have the key.
    KeyCompromise = 1,
    /// Somebody else may have the issuer's key.
    CaCompromise = 2,
    /// Another certificate took its place.
    Superseded = 4,
}

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The certificate: a file, or the name of a certificate, key or identity in the key store.
    what: String,
    /// Who revokes it: an identity or key of the key store, the issuer or the key itself. Without it
    /// the issuer when the store has that key, else the key itself.
    #[arg(long, value_name = "NAME")]
    signer: Option<Name>,
    /// Why.
    #[arg(long, value_enum, default_value_t = Reason::Unspecified)]
    reason: Reason,
    /// Also add it to this list, which `revoked` of a trust entry and --revoked name. Without a
    /// key that can revoke it, only that.
    #[arg(long, value_name = "FILE")]
    list: Option<PathBuf>,
    /// Also write the record here, as base64.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Done {
    certificate: String,
    /// Name of the record; none when it is on a list only.
    record: Option<String>,
    by: Option<String>,
    list: Option<String>,
}

pub(super) fn run(args: &Args, store: &KeyStore, cx: &Context) -> anyhow::Result<()> {
    let certificate = chosen(&args.what, store)?;
    let made = match signer(args, store, &certificate) {
        Ok((key, by)) => Some((make(store, &certificate, &key, by, args.reason)?, by)),
        Err(_) if args.list.is_some() && args.signer.is_none() => None,
        Err(error) => return Err(error),
    };
    if let Some(list) = &args.list {
        enter(list, &certificate)?;
    }
    if let Some(((_, wire), _)) = &made {
        store.add_record(wire).map_err(failure)?;
        if let Some(path) = &args.output {
            crate::target::write(path, onym_crypto::text::encode(wire).as_bytes())?;
        }
    }
    let done = Done {
        certificate: certificate.name().to_string(),
        record: made.as_ref().map(|((name, _), _)| name.to_string()),
        by: made.as_ref().map(|(_, by)| by.to_string()),
        list: args.list.as_ref().map(|path| path.display().to_string()),
    };
    cx.print(&done, |done| {
        let mut text = format!("revoked {}", done.certificate);
        if let (Some(record), Some(by)) = (&done.record, &done.by) {
            text += &format!("\n  record by its {by}  {record}\n  `onym cert serve` serves it");
        }
        if let Some(list) = &done.list {
            text += &format!("\n  listed in {list}");
        }
        text
    })
}

fn chosen(what: &str, store: &KeyStore) -> anyhow::Result<Certificate> {
    let path = Path::new(what);
    if path.exists() || !what.starts_with('/') {
        return read(path);
    }
    let name: Name = what.parse().map_err(|e| {
        Failure::new(Exit::Usage, format!("{what} is neither a file nor a name")).why(e)
    })?;
    find(store, Some(name.as_ref()))
}

/// The key of the store that may revoke the certificate, and as who.
fn signer(
    args: &Args,
    store: &KeyStore,
    certificate: &Certificate,
) -> anyhow::Result<(Name, Revoker)> {
    let name = certificate.name();
    if certificate.is_self_signed() {
        return Err(Failure::new(Exit::Failed, format!("{name} is self-signed"))
            .why("nobody vouches for it, so nobody looks its record up")
            .next("add it to a list (--list), or take its file away where it is an anchor")
            .into());
    }
    let candidates: Vec<Name> = match &args.signer {
        Some(signer) => vec![store.resolve(Some(signer.as_ref())).map_err(failure)?],
        None => {
            let issuer = certificate.issuer().and_then(key_of_locator);
            issuer.into_iter().chain([certificate.key_name()]).map(|key| key.to_name()).collect()
        }
    };
    for key in candidates {
        let public = match store.key(key.as_ref()).and_then(|private| private.public_key()) {
            Err(Error::NotFound(_)) => continue,
            other => other.map_err(failure)?,
        };
        if let Some(by) = role(&public, certificate) {
            return Ok((key, by));
        }
    }
    let issuer = certificate.issuer().map_or_else(|| "unknown".to_owned(), |n| n.to_string());
    Err(Failure::new(Exit::NotFound, format!("no key here can revoke {name}"))
        .why(format!("only its issuer's ({issuer}) and its own key can"))
        .next("run this where one of them is, or add it to a list: --list FILE")
        .into())
}

/// What this key is to the certificate.
fn role(key: &PublicKey, certificate: &Certificate) -> Option<Revoker> {
    if certificate.verify(key).is_ok() {
        return Some(Revoker::Issuer);
    }
    (key.spki() == certificate.public_key().spki()).then_some(Revoker::Owner)
}

/// The record, signed: its name and Data.
fn make(
    store: &KeyStore,
    certificate: &Certificate,
    key: &Name,
    by: Revoker,
    reason: Reason,
) -> anyhow::Result<(Name, Vec<u8>)> {
    let no_name = || Failure::new(Exit::Failed, "the certificate's name has no issuer");
    let (name, content) =
        record(certificate, by, reason as u64, unix_now_ms()).ok_or_else(no_name)?;
    let signer = store.signer(Some(key.as_ref())).map_err(failure)?;
    let data = DataBuilder {
        content_type: CONTENT_KEY,
        freshness_ms: FRESH_MS,
        ..DataBuilder::new(name.as_ref(), &content)
    };
    let mut wire = Vec::new();
    signer.sign_data(&data, &mut wire).map_err(failure)?;
    Ok((name, wire))
}

/// Adds a certificate to a list, which must be one; nothing when it is there.
fn enter(list: &Path, certificate: &Certificate) -> anyhow::Result<()> {
    let cannot = |why: String| {
        Failure::new(Exit::Failed, format!("{} is not changed", list.display())).why(why)
    };
    let mut text = match fs::read_to_string(list) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        Err(error) => return Err(cannot(error.to_string()).into()),
    };
    let before = Revoked::parse(&text).map_err(|e| cannot(e.to_string()))?;
    let mut after = before.clone();
    after.add(certificate.name());
    if after == before {
        return Ok(());
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text += &format!("{}\n", certificate.name());
    crate::target::write(list, text.as_bytes())
}
