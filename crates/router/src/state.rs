//! What outlives a run: the bootstrap time and the keys.

use onym_crypto::cert::{Issue, validity_of_days};
use onym_crypto::{Certificate, Entropy as _, KeyType, PrivateKey, Signer, SystemEntropy};
use onym_wire::{Component, Name, NameRef};
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Days that a router's certificate holds.
const DAYS: u32 = 365;

/// The bootstrap time of this run, kept in `path`: later than that of every run before.
///
/// # Errors
/// When the file cannot be read or written: the next run could go backward then.
pub fn next_boot(path: Option<&Path>, unix_s: u64) -> io::Result<u64> {
    let Some(path) = path else { return Ok(unix_s) };
    let stored = match fs::read_to_string(path) {
        Ok(text) => text.trim().parse().ok(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(e),
    };
    let boot = onym_route::router::next_boot(unix_s, stored);
    write_whole(path, format!("{boot}\n").as_bytes(), 0o644)?;
    Ok(boot)
}

/// A new file, then a new name: a crash leaves the old one or the new one.
pub(crate) fn write_whole(path: &Path, octets: &[u8], mode: u32) -> io::Result<()> {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        fs::create_dir_all(folder)?;
    }
    // Nobody can have put a link there: the name is new.
    let mut number = [0; 8];
    SystemEntropy.fill(&mut number);
    let new = path.with_extension(format!("{:016x}.new", u64::from_be_bytes(number)));
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&new)?;
    let written = file.write_all(octets).and_then(|()| file.sync_all());
    let done = written.and_then(|()| fs::rename(&new, path));
    if done.is_err() {
        let _ = fs::remove_file(&new);
    }
    done
}

/// The keys of a router.
#[derive(Debug)]
pub struct Keys {
    /// The anchor.
    pub network: Certificate,
    /// What the router signs with.
    pub signer: Signer,
    /// Its certificate.
    pub certificate: Certificate,
}

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file.
    #[error("{0}: {1}")]
    File(String, #[source] io::Error),
    /// A key or certificate.
    #[error("{0}: {1}")]
    Key(String, #[source] onym_crypto::Error),
    /// A certificate of somebody else.
    #[error("{file} belongs to {got}; expected {expected}")]
    Wrong {
        /// The file.
        file: String,
        /// Whose it is.
        got: Name,
        /// Whose it should be.
        expected: Name,
    },
    /// The certificate cannot be made.
    #[error(
        "{0} has no router.cert, and no network.key to make one: copy it from the first router"
    )]
    NoAuthority(String),
}

impl Keys {
    /// Reads the keys of `router` in `network` from `folder`, and makes what is missing.
    ///
    /// # Errors
    /// [`KeysError`].
    pub fn open(
        folder: &Path,
        network: &Name,
        router: &Name,
        now_ms: u64,
    ) -> Result<Self, KeysError> {
        let anchor = folder.join("network.cert");
        let authority = folder.join("network.key");
        let mut identity = router.clone();
        identity.append_keyword("DV");
        if !anchor.exists() {
            let key = PrivateKey::generate(KeyType::Ed25519).map_err(|e| crypto(&authority, e))?;
            let name = key_name(network);
            let made = Certificate::self_signed(name.as_ref(), &key, now_ms);
            let made = made.map_err(|e| crypto(&anchor, e))?;
            write_key(&authority, &key)?;
            put(&anchor, made.to_text().as_bytes(), 0o644)?;
        }
        let network_cert = read_certificate(&anchor, network)?;
        let key_file = folder.join("router.key");
        if !key_file.exists() {
            let key = PrivateKey::generate(KeyType::Ed25519).map_err(|e| crypto(&key_file, e))?;
            write_key(&key_file, &key)?;
        }
        let file = folder.join("router.cert");
        if !file.exists() {
            if !authority.exists() {
                return Err(KeysError::NoAuthority(folder.display().to_string()));
            }
            let key = read_key(&key_file)?;
            let name = key_name(&identity);
            let request = Certificate::self_signed(name.as_ref(), &key, now_ms);
            let request = request.map_err(|e| crypto(&file, e))?;
            let locator = network_cert.name().to_name();
            let signer = Signer::key(read_key(&authority)?, locator);
            let validity = validity_of_days(now_ms, DAYS);
            let issue = Issue { issuer_id: Component::generic(b"NA"), now_ms, validity };
            let made = Certificate::issue(&request, &signer, &issue);
            put(&file, made.map_err(|e| crypto(&file, e))?.to_text().as_bytes(), 0o644)?;
        }
        Self::read(folder, network, &identity)
    }

    fn read(folder: &Path, network: &Name, identity: &Name) -> Result<Self, KeysError> {
        let network = read_certificate(&folder.join("network.cert"), network)?;
        let certificate = read_certificate(&folder.join("router.cert"), identity)?;
        // The full name: the one form that every implementation finds the certificate by.
        let locator = certificate.name().to_name();
        let signer = Signer::key(read_key(&folder.join("router.key"))?, locator);
        Ok(Self { network, signer, certificate })
    }

    /// Reads keys that changed while the router runs. They must belong together and count at
    /// `now_ms`: a router goes on with those that it has rather than with wrong ones.
    ///
    /// # Errors
    /// [`KeysError`], which names the certificate.
    pub(crate) fn again(
        folder: &Path,
        network: &Name,
        router: &Name,
        now_ms: u64,
    ) -> Result<Self, KeysError> {
        let mut identity = router.clone();
        identity.append_keyword("DV");
        let keys = Self::read(folder, network, &identity)?;
        let (own, anchor) = (&keys.certificate, &keys.network);
        let file = folder.join("router.cert");
        let key = read_key(&folder.join("router.key"))?;
        if own.public_key().spki() != key.spki() {
            let what = format!("{} is of another key than router.key", own.name());
            return Err(crypto(&file, onym_crypto::Error::Certificate(what)));
        }
        let counts = own.check_valid_at(now_ms).and_then(|()| anchor.check_valid_at(now_ms));
        counts.map_err(|e| crypto(&file, e))?;
        own.verify(anchor.public_key()).map_err(|e| {
            let what = format!("{} is not signed by {}: {e}", own.name(), anchor.name());
            crypto(&file, onym_crypto::Error::Certificate(what))
        })?;
        Ok(keys)
    }
}

fn key_name(identity: &Name) -> Name {
    let mut number = [0; 8];
    SystemEntropy.fill(&mut number);
    let mut name = identity.clone();
    name.append_generic("KEY").append_generic(number);
    name
}

fn crypto(file: &Path, error: onym_crypto::Error) -> KeysError {
    KeysError::Key(file.display().to_string(), error)
}

fn read(file: &Path) -> Result<Vec<u8>, KeysError> {
    fs::read(file).map_err(|e| KeysError::File(file.display().to_string(), e))
}

fn put(file: &Path, octets: &[u8], mode: u32) -> Result<(), KeysError> {
    write_whole(file, octets, mode).map_err(|e| KeysError::File(file.display().to_string(), e))
}

fn write_key(file: &Path, key: &PrivateKey) -> Result<(), KeysError> {
    let der = key.to_pkcs8().map_err(|e| crypto(file, e))?;
    put(file, &der, 0o600)
}

fn read_key(file: &Path) -> Result<PrivateKey, KeysError> {
    PrivateKey::from_pkcs8(&read(file)?).map_err(|e| crypto(file, e))
}

fn read_certificate(file: &Path, of: &Name) -> Result<Certificate, KeysError> {
    let text = String::from_utf8_lossy(&read(file)?).into_owned();
    let certificate = Certificate::from_text(&text).map_err(|e| crypto(file, e))?;
    let identity: NameRef<'_> = certificate.identity();
    if identity == *of {
        return Ok(certificate);
    }
    let (got, expected) = (identity.to_name(), of.clone());
    Err(KeysError::Wrong { file: file.display().to_string(), got, expected })
}
