//! The key store of ndn-cxx and python-ndn: a PIB in an SQLite file, and a TPM in a folder. Both are
//! read and never changed: nothing is "repaired", whatever the PIB says of where the TPM is.

use super::sqlite::{File, Row};
use super::{tpm, tpm_file};
use crate::cert::identity_of_key;
use crate::{Certificate, Error, PrivateKey};
use onym_wire::{Name, NameRef};
use std::fs;
use std::io::Read as _;
use std::path::Path;

/// The file of the PIB in its folder.
pub const PIB: &str = "pib.db";
/// The folder of the TPM beside it.
pub const TPM: &str = "ndnsec-key-file";
/// Longest file of a key that is read, in octets.
const KEY_LEN_MAX: u64 = 64 << 10;

/// One key of a PIB.
#[derive(Debug)]
pub struct PibKey {
    /// `/identity/KEY/key-id`.
    pub name: Name,
    /// Whether it signs for its identity.
    pub is_default: bool,
    /// Whether its identity is the default one.
    pub is_default_identity: bool,
    /// Its certificates, the default one first; what is no certificate is left out.
    pub certificates: Vec<Certificate>,
}

/// Why a file is no PIB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct Damaged(super::sqlite::Bad);

/// What a PIB says.
#[derive(Debug)]
pub struct Pib {
    /// Where it says that the TPM is, such as `tpm-file:`; python-ndn adds a path.
    pub tpm_locator: String,
    /// Its keys.
    pub keys: Vec<PibKey>,
}

fn bad(path: &Path, what: impl std::fmt::Display) -> Error {
    Error::Store { path: path.to_owned(), what: what.to_string() }
}

/// At most `len_max` octets of a file.
fn read(path: &Path, len_max: u64) -> Result<Vec<u8>, Error> {
    let mut octets = Vec::new();
    let file = fs::File::open(path).map_err(|e| bad(path, e))?;
    file.take(len_max + 1).read_to_end(&mut octets).map_err(|e| bad(path, e))?;
    if octets.len() as u64 > len_max {
        return Err(bad(path, "it is too long"));
    }
    Ok(octets)
}

fn name_of(octets: &[u8]) -> Option<Name> {
    NameRef::parse(octets).ok().map(NameRef::to_name)
}

/// Reads the PIB in `file`.
///
/// # Errors
/// [`Error::Store`] when it is no PIB, or damaged.
pub fn read_pib(file: &Path) -> Result<Pib, Error> {
    parse_pib(&read(file, super::sqlite::FILE_LEN_MAX as u64)?).map_err(|e| bad(file, e))
}

/// Reads a PIB out of the octets of its file.
///
/// # Errors
/// [`Damaged`] when it is no PIB.
pub fn parse_pib(octets: &[u8]) -> Result<Pib, Damaged> {
    let tables = File::open(octets).map_err(Damaged)?;
    let rows = |name| tables.table(name).map_err(Damaged);
    let info = rows("tpmInfo")?;
    let locator = info.first().map(|row| row.value(0).octets().to_vec()).unwrap_or_default();
    // Columns: id, identity, is_default; id, identity_id, key_name, key_bits, is_default;
    // id, key_id, certificate_name, certificate_data, is_default.
    let identities = rows("identities")?;
    let certificates = rows("certificates")?;
    let mut keys = Vec::new();
    for row in rows("keys")? {
        let Some(name) = name_of(row.value(2).octets()) else { continue };
        if identity_of_key(name.as_ref()).is_err() {
            continue;
        }
        let identity = row.value(1).number();
        let owner = identities.iter().find(|of| Some(of.id) == identity);
        let mut own: Vec<&Row> =
            certificates.iter().filter(|of| of.value(1).number() == Some(row.id)).collect();
        own.sort_by_key(|of| !is_default(of, 4));
        let read = |of: &&Row| Certificate::parse(of.value(3).octets()).ok();
        keys.push(PibKey {
            is_default: is_default(&row, 4),
            is_default_identity: owner.is_some_and(|of| is_default(of, 2)),
            certificates: own.iter().filter_map(read).filter(|c| c.key_name() == name).collect(),
            name,
        });
    }
    Ok(Pib { tpm_locator: String::from_utf8_lossy(&locator).into_owned(), keys })
}

fn is_default(row: &Row, at: usize) -> bool {
    row.value(at).number() == Some(1)
}

/// The private key of that name in the folder of a TPM; nothing when the folder has none.
///
/// # Errors
/// [`Error::Store`] when the file cannot be read or holds no key.
pub fn read_tpm(folder: &Path, key: NameRef<'_>) -> Result<Option<PrivateKey>, Error> {
    let path = folder.join(tpm_file(key));
    if !path.exists() {
        return Ok(None);
    }
    let text = zeroize::Zeroizing::new(read(&path, KEY_LEN_MAX)?);
    let text = std::str::from_utf8(&text).map_err(|_| bad(&path, "it is no text"))?;
    tpm(text).map(Some).map_err(|e| bad(&path, e))
}
