//! The folder of a network: its anchor and keys, in the files that the router reads.

use crate::exit::{Exit, Failure};
use crate::key_files::{failure, read_text};
use onym_crypto::{Certificate, PrivateKey};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use zeroize::Zeroizing;

/// The anchor.
pub(crate) const ANCHOR: &str = "network.cert";
/// Its private key: who has it is the authority.
pub(crate) const AUTHORITY_KEY: &str = "network.key";
/// The router's private key.
pub(crate) const ROUTER_KEY: &str = "router.key";
/// The router's certificate.
pub(crate) const ROUTER_CERT: &str = "router.cert";
/// The trust schema.
pub(crate) const SCHEMA: &str = "network.lvs";
/// Configuration for `onym daemon --config`.
pub(crate) const CONFIG: &str = "onym.toml";

/// Longest private key that is read, in octets.
const KEY_MAX: u64 = 16 << 10;

fn cannot(what: &str, path: &Path, error: impl std::fmt::Display) -> Failure {
    Failure::new(Exit::Failed, format!("cannot {what} {}", path.display())).why(error)
}

/// Makes the folder, which only its owner reads.
pub(crate) fn make(folder: &Path) -> anyhow::Result<()> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    Ok(made.map_err(|e| cannot("make", folder, e))?)
}

/// Writes a file that was not there, under a name that it gets when it is whole.
pub(crate) fn write_new(path: &Path, octets: &[u8], mode: u32) -> anyhow::Result<()> {
    if path.exists() {
        return Err(Failure::new(Exit::Failed, format!("{} exists already", path.display()))
            .next("choose another folder with --folder, or move this one away")
            .into());
    }
    write(path, octets, mode)
}

/// Writes a file, in place of one that may be there.
pub(crate) fn write(path: &Path, octets: &[u8], mode: u32) -> anyhow::Result<()> {
    let part = path.with_extension("part");
    let whole = || -> io::Result<()> {
        match fs::remove_file(&part) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&part)?;
        file.write_all(octets)?;
        file.sync_all()?;
        fs::rename(&part, path)
    };
    Ok(whole().map_err(|e| cannot("write", path, e))?)
}

/// Writes a private key, for its owner only.
pub(crate) fn write_key(path: &Path, key: &PrivateKey) -> anyhow::Result<()> {
    let der = key.to_pkcs8().map_err(failure)?;
    write_new(path, &der, 0o600)
}

/// Reads a private key.
pub(crate) fn read_key(path: &Path) -> anyhow::Result<PrivateKey> {
    let small = fs::metadata(path).map_err(|e| cannot("read", path, e))?.len() <= KEY_MAX;
    if !small {
        return Err(cannot("read", path, "it is too long for a key").into());
    }
    let der = Zeroizing::new(fs::read(path).map_err(|e| cannot("read", path, e))?);
    PrivateKey::from_pkcs8(&der).map_err(|e| cannot("read", path, e).into())
}

/// Reads a certificate.
pub(crate) fn read_certificate(path: &Path) -> anyhow::Result<Certificate> {
    Certificate::from_text(&read_text(path)?).map_err(|e| cannot("read", path, e).into())
}

/// Certificate and key of the network's authority.
pub(crate) fn authority(folder: &Path) -> anyhow::Result<(Certificate, PrivateKey)> {
    let key = folder.join(AUTHORITY_KEY);
    if !key.exists() {
        return Err(Failure::new(Exit::NotFound, format!("{} does not exist", key.display()))
            .why("only the machine on which the network was created has it")
            .next(
                "create a network with `onym network init /NAME`, or name its folder with --folder",
            )
            .into());
    }
    let certificate = read_certificate(&folder.join(ANCHOR))?;
    let key = read_key(&key)?;
    if certificate.public_key().spki() != key.spki() {
        let what = format!("{} and {AUTHORITY_KEY} do not match", certificate.name());
        return Err(Failure::new(Exit::Failed, what).next("restore both files together").into());
    }
    Ok((certificate, key))
}
