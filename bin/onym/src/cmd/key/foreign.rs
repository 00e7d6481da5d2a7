//! `onym key import` and `export`: keys of other implementations.

use super::{row, write_private};
use crate::exit::{Exit, Failure};
use crate::key_files::{failure, read_text};
use crate::output::{self, Context};
use crate::passphrase;
use clap::ValueEnum;
use onym_crypto::foreign::{self, Item, pib, write};
use onym_crypto::store::{KeyStore, loose};
use onym_crypto::{Certificate, Error, PrivateKey, SafeBag, SystemEntropy, text};
use onym_wire::Name;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Files of a folder that are looked at, at most.
const FILES_MAX: usize = 10_000;
/// Longest file of a key that is read, in octets.
const FILE_MAX: u64 = 256 << 10;

/// The form of an exported key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum As {
    /// Encrypted, with its certificate: `ndnsec import`, python-ndn and NDNts read it.
    Safebag,
    /// NOT encrypted, with its certificate: a file for the folder of ndnd.
    Ndnd,
    /// NOT encrypted: a file for the folder of ndn-cxx's TPM (`ndnsec-key-file`).
    Tpm,
    /// NOT encrypted: PKCS#8, for OpenSSL and others.
    Pem,
}

/// What was found in a folder or file.
#[derive(Debug, Serialize)]
struct Imported {
    keys: Vec<String>,
    certificates: Vec<String>,
    /// Of what was there, what was not taken, and why.
    left: Vec<String>,
}

impl Imported {
    fn new() -> Self {
        Self { keys: Vec::new(), certificates: Vec::new(), left: Vec::new() }
    }

    fn text(&self) -> String {
        let mut lines: Vec<String> = Vec::new();
        lines.extend(self.keys.iter().map(|key| format!("imported {key}")));
        lines.extend(self.certificates.iter().map(|name| format!("  certificate {name}")));
        lines.extend(self.left.iter().map(|what| format!("left {what}")));
        if lines.is_empty() { "nothing to import".into() } else { lines.join("\n") }
    }

    fn key(&mut self, store: &KeyStore, name: &Name, key: &PrivateKey) -> anyhow::Result<()> {
        match store.add_key(name.as_ref(), key) {
            Ok(()) => self.keys.push(name.to_string()),
            Err(Error::Exists(_)) => self.left.push(format!("{name}: it is in the key store")),
            Err(error) => return Err(failure(error)),
        }
        Ok(())
    }

    fn certificate(&mut self, store: &KeyStore, certificate: &Certificate) -> anyhow::Result<()> {
        match store.add_certificate(certificate) {
            Ok(()) => self.certificates.push(certificate.name().to_string()),
            Err(Error::Certificate(why)) => self.left.push(why),
            Err(error) => return Err(failure(error)),
        }
        Ok(())
    }
}

pub(super) fn import(
    cx: &Context,
    store: &KeyStore,
    path: &Path,
    passphrase: &passphrase::Args,
) -> anyhow::Result<()> {
    if path.is_dir() {
        let imported = match path.join(pib::PIB).exists() {
            true => import_pib(store, path)?,
            false => import_folder(store, path)?,
        };
        return cx.print(&imported, Imported::text);
    }
    let text = Zeroizing::new(read_text(path)?);
    if text.contains("-----BEGIN NDN ") {
        let mut imported = Imported::new();
        take(store, foreign::ndnd(text.as_bytes()).map_err(failure)?, &mut imported)?;
        return cx.print(&imported, Imported::text);
    }
    let bag = text::decode(&text).and_then(|wire| SafeBag::parse(&wire)).map_err(failure)?;
    let secret = passphrase.read("Passphrase of the file: ")?;
    let key = store.import(&bag, secret.as_bytes()).map_err(failure)?;
    cx.print(&row(store, key.as_ref())?, |row| format!("imported {}", row.name))
}

/// Keys first: a certificate must be about the key that is there.
fn take(store: &KeyStore, items: Vec<Item>, imported: &mut Imported) -> anyhow::Result<()> {
    for item in &items {
        if let Item::Key(name, key) = item {
            imported.key(store, name, key)?;
        }
    }
    for item in &items {
        if let Item::Certificate(certificate) = item {
            imported.certificate(store, certificate)?;
        }
    }
    Ok(())
}

/// The folder of ndn-cxx or python-ndn: the PIB, and the TPM beside it.
fn import_pib(store: &KeyStore, folder: &Path) -> anyhow::Result<Imported> {
    let pib = pib::read_pib(&folder.join(pib::PIB)).map_err(failure)?;
    let tpm = tpm_of(&pib.tpm_locator, folder);
    let mut imported = Imported::new();
    for key in &pib.keys {
        let found = match pib::read_tpm(&tpm, key.name.as_ref()) {
            Ok(found) => found,
            Err(error) => {
                imported.left.push(format!("{}: {error}", key.name));
                continue;
            }
        };
        let Some(private) = found else {
            imported.left.push(format!("{}: {} does not have it", key.name, tpm.display()));
            continue;
        };
        warn_if_loose(tpm.join(foreign::tpm_file(key.name.as_ref())));
        imported.key(store, &key.name, &private)?;
        for certificate in &key.certificates {
            imported.certificate(store, certificate)?;
        }
    }
    for key in pib.keys.iter().filter(|key| key.is_default && key.is_default_identity) {
        // The first that was imported may be another one.
        if imported.keys.contains(&key.name.to_string()) && imported.keys.len() > 1 {
            let has_other = store.default_identity().map_err(failure)?.is_some_and(|identity| {
                !imported.keys.iter().any(|name| name.starts_with(&format!("{identity}/KEY/")))
            });
            if !has_other {
                store.set_default(key.name.as_ref()).map_err(failure)?;
            }
        }
    }
    Ok(imported)
}

/// The folder of the TPM: the usual one, or the one that python-ndn names with its path.
fn tpm_of(locator: &str, folder: &Path) -> PathBuf {
    let usual = folder.join(pib::TPM);
    let named = locator.strip_prefix("tpm-file:").filter(|path| path.starts_with('/'));
    match named.map(PathBuf::from) {
        // Where it was copied from may not be here.
        Some(named) if !usual.is_dir() && named.is_dir() => named,
        _ => usual,
    }
}

fn warn_if_loose(path: PathBuf) {
    if let Some(found) = loose(path, 0o600) {
        let (path, mode) = (found.path.display(), found.mode);
        output::tell(format_args!("onym: others can read {path} (mode {mode:o}): chmod 600"));
    }
}

/// The folder of ndnd: what is no key or certificate is passed over, and nothing is deleted.
fn import_folder(store: &KeyStore, folder: &Path) -> anyhow::Result<Imported> {
    let cannot = |e: std::io::Error| {
        Failure::new(Exit::Failed, format!("cannot read {}", folder.display())).why(e)
    };
    let mut imported = Imported::new();
    let mut items = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)?.take(FILES_MAX) {
        let path = entry.map_err(cannot)?.path();
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
        let small = fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() <= FILE_MAX);
        if !small || !matches!(extension, "key" | "cert" | "pem") {
            continue;
        }
        let octets = Zeroizing::new(fs::read(&path).map_err(cannot)?);
        match foreign::ndnd(&octets) {
            Ok(found) => {
                if found.iter().any(|item| matches!(item, Item::Key(..))) {
                    warn_if_loose(path);
                }
                items.extend(found);
            }
            Err(error) => imported.left.push(format!("{}: {error}", path.display())),
        }
    }
    imported.left.sort();
    take(store, items, &mut imported)?;
    if imported.keys.is_empty() && imported.certificates.is_empty() && imported.left.is_empty() {
        let what = format!("{} has no keys", folder.display());
        return Err(Failure::new(Exit::NotFound, what)
            .next("expected is the folder of a pib.db (~/.ndn), or of ndnd's *.key and *.cert")
            .into());
    }
    Ok(imported)
}

/// Writes a key for another implementation.
pub(super) fn export(
    cx: &Context,
    store: &KeyStore,
    name: Option<&Name>,
    form: As,
    output: Option<&Path>,
    passphrase: &passphrase::Args,
) -> anyhow::Result<()> {
    let key_name = store.resolve(name.map(Name::as_ref)).map_err(failure)?;
    let key = store.key(key_name.as_ref()).map_err(failure)?;
    let certificate = || certificate_for(store, name, &key_name);
    let text = match form {
        As::Safebag => {
            let certificate = certificate()?;
            // A key of a token does not leave: said before a passphrase is asked for.
            drop(key.to_pkcs8().map_err(failure)?);
            let secret = passphrase.read_new("Passphrase for the exported key: ")?;
            let bag = SafeBag::seal(certificate, &key, secret.as_bytes(), &mut SystemEntropy);
            Zeroizing::new(text::encode(bag.map_err(failure)?.wire()))
        }
        As::Ndnd => {
            write::ndnd(key_name.as_ref(), &key, certificate().ok().as_ref()).map_err(failure)?
        }
        As::Tpm => write::tpm(&key).map_err(failure)?,
        As::Pem => {
            let body = Zeroizing::new(text::encode(&key.to_pkcs8().map_err(failure)?));
            let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----");
            Zeroizing::new(format!("{begin}\n{}{end}\n", body.as_str()))
        }
    };
    if form == As::Tpm && output.is_none() {
        let file = foreign::tpm_file(key_name.as_ref());
        output::tell(format_args!("onym: the TPM has it as {file}"));
    }
    let Some(path) = output else { return output::write_line(&text) };
    write_private(path, &text)?;
    let row = serde_json::json!({ "key": key_name.to_string(), "file": path });
    cx.print(&row, |_| format!("exported {key_name} to {}", path.display()))
}

/// The certificate that is named, or the key's preferred one.
fn certificate_for(
    store: &KeyStore,
    name: Option<&Name>,
    key: &Name,
) -> anyhow::Result<Certificate> {
    if let Some(named) = name.and_then(|name| store.certificate(name.as_ref()).ok()) {
        return Ok(named);
    }
    let mut all = store.certificates_of(key.as_ref()).map_err(failure)?;
    if all.is_empty() {
        let failure = Failure::new(Exit::NotFound, format!("{key} has no certificate"));
        return Err(failure.next(format!("`onym cert self-sign {key}` makes one")).into());
    }
    Ok(all.swap_remove(0))
}
