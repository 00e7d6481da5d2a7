//! Keys that are more than a file: under a passphrase, in the kernel's keyring, in a token.

use super::row;
use crate::exit::{Exit, Failure};
use crate::keeper;
use crate::key_files::failure;
use crate::output::Context;
use anyhow::Context as _;
use onym_crypto::store::{KeyStore, Protection, TokenPlace};
use onym_crypto::{KeyType, PrivateKey, SystemEntropy};
use onym_wire::Name;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// The place of a new key in a token: its id there follows from its name.
pub(super) fn in_token(name: &Name, token: String, module: PathBuf) -> TokenPlace {
    let object = onym_crypto::sha256(&[name.value()])[..16].to_vec();
    TokenPlace { module, token, object }
}

/// A new key of a token.
pub(super) fn made_in_token(
    name: &Name,
    kind: KeyType,
    at: &TokenPlace,
) -> anyhow::Result<PrivateKey> {
    if kind != KeyType::Ecdsa {
        return Err(Failure::new(Exit::Usage, "tokens make keys of P-256 only")
            .next("leave --type out")
            .into());
    }
    let told = |error: onym_token::Error| {
        Failure::new(Exit::Failed, "the token makes no key")
            .why(error)
            .next("`softhsm2-util --show-slots` or `tpm2_ptool listtokens` show what there is")
    };
    let (place, pin) = (keeper::place(at), keeper::pin(name.as_ref(), &at.token).map_err(failure)?);
    let spki = onym_token::generate(&place, &pin).map_err(told)?;
    Ok(onym_token::open(&place, &pin, &spki).map_err(told)?)
}

pub(super) fn protect(
    cx: &Context,
    store: &KeyStore,
    name: &Name,
    secret: Option<Zeroizing<String>>,
) -> anyhow::Result<()> {
    let key = store.resolve(Some(name.as_ref())).map_err(failure)?;
    match secret {
        Some(secret) => store.protect(key.as_ref(), &secret, &mut SystemEntropy),
        None => store.unprotect(key.as_ref()),
    }
    .map_err(failure)?;
    keeper::lock(key.as_ref()).map_err(failure)?;
    cx.print(&row(store, key.as_ref())?, |row| match row.protection {
        "passphrase" => format!("{} is encrypted", row.name),
        _ => format!("{} is protected by the mode of its file alone", row.name),
    })
}

pub(super) fn unlock(
    cx: &Context,
    store: &KeyStore,
    name: &Name,
    hours: u32,
) -> anyhow::Result<()> {
    let key_name = store.resolve(Some(name.as_ref())).map_err(failure)?;
    let infos = store.keys().map_err(failure)?;
    let info = infos.iter().find(|k| k.name == key_name).context("the key is not in the store")?;
    if info.protection != Protection::Passphrase {
        let what = format!("{key_name} is not under a passphrase");
        return Err(Failure::new(Exit::Usage, what).next("`onym key protect` encrypts it").into());
    }
    let key = store.key(key_name.as_ref()).map_err(failure)?;
    let seconds = hours as usize * 3600;
    keeper::unlock(key_name.as_ref(), &key.to_pkcs8().map_err(failure)?, seconds)
        .map_err(failure)?;
    let row = serde_json::json!({ "unlocked": key_name.to_string(), "hours": hours });
    cx.print(&row, |_| format!("{key_name} signs without a passphrase for {hours} h"))
}

pub(super) fn lock(cx: &Context, store: &KeyStore, name: &Name) -> anyhow::Result<()> {
    let key = store.resolve(Some(name.as_ref())).map_err(failure)?;
    let was = keeper::lock(key.as_ref()).map_err(failure)?;
    let row = serde_json::json!({ "locked": key.to_string(), "was_unlocked": was });
    cx.print(&row, |_| match was {
        true => format!("{key} needs its passphrase again"),
        false => format!("{key} was not unlocked"),
    })
}
