//! Keys and certificates on disk.
//!
//! A directory with one file for each key and certificate; the layout is drawn in the README.

mod defaults;
mod files;
mod kept;
mod protect;
mod records;

use crate::digest::hex;
use crate::{Certificate, Error, KeyType, PrivateKey, SafeBag, Signer, cert, sha256, text};
use defaults::Defaults;
pub use kept::Kept;
use onym_wire::{Name, NameRef};
use protect::{Body, KeyFile};
pub use protect::{Keeper, Loose, Protection, TokenPlace, check_key_file, loose, set_keeper};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// A key store in a directory.
#[derive(Debug, Clone)]
pub struct KeyStore {
    dir: PathBuf,
}

/// One key as listings show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyInfo {
    /// `/identity/KEY/key-id`.
    pub name: Name,
    /// Its kind.
    pub key_type: KeyType,
    /// How it is kept.
    pub protection: Protection,
    /// Whether it signs for its identity when no key is named.
    pub is_default_of_identity: bool,
    /// Whether it signs when nothing is named.
    pub is_default: bool,
    /// Names of its certificates, the preferred one first.
    pub certificates: Vec<Name>,
}

const KEY_HEADER: &str = "onym-key 1";

impl KeyStore {
    /// The store in `dir`, which is made when something is first stored.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// The store of this user: `$ONYM_KEYSTORE`, else `$XDG_DATA_HOME/onym/keys`, else
    /// `~/.local/share/onym/keys`.
    ///
    /// # Errors
    /// [`Error::NotFound`] when none of the variables is set.
    pub fn of_user() -> Result<Self, Error> {
        let var = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let dir = var("ONYM_KEYSTORE")
            .or_else(|| Some(var("XDG_DATA_HOME")?.join("onym/keys")))
            .or_else(|| Some(var("HOME")?.join(".local/share/onym/keys")))
            .ok_or_else(|| Error::NotFound("place: set ONYM_KEYSTORE or HOME".into()))?;
        Ok(Self::new(dir))
    }

    /// The directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn path_of(&self, name: NameRef<'_>, extension: &str) -> PathBuf {
        let mut wire = Vec::with_capacity(name.wire_len());
        name.write_tlv(&mut wire);
        self.dir.join(hex(&sha256(&[&wire]))).with_extension(extension)
    }

    fn change(&self) -> Result<files::Lock, Error> {
        files::make_dir(&self.dir)?;
        files::lock(&self.dir)
    }

    /// Stores `key` as `name`. The first key of an identity becomes its default, the first
    /// identity becomes the default one.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::Certificate`] when `name` is not the name of a key,
    /// [`Error::Store`].
    pub fn add_key(&self, name: NameRef<'_>, key: &PrivateKey) -> Result<(), Error> {
        self.add(name, key.key_type(), &Body::Plain(key.to_pkcs8()?))
    }

    fn add(&self, name: NameRef<'_>, kind: KeyType, body: &Body) -> Result<(), Error> {
        let identity = cert::identity_of_key(name)?;
        let _lock = self.change()?;
        let path = self.path_of(name, "key");
        if files::read(&path)?.is_some() {
            return Err(Error::Exists(format!("key {name}")));
        }
        files::replace(&path, KeyFile::write(name, kind, body).as_bytes())?;
        let mut defaults = Defaults::read(&self.dir)?;
        if defaults.add(identity, name) { defaults.write(&self.dir) } else { Ok(()) }
    }

    /// The key named `name`.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Store`] when the file is damaged.
    pub fn key(&self, name: NameRef<'_>) -> Result<PrivateKey, Error> {
        let path = self.path_of(name, "key");
        let text = files::read(&path)?.ok_or_else(|| Error::NotFound(format!("key {name}")))?;
        let text = Zeroizing::new(text);
        let damaged = |what: String| Error::Store { path: path.clone(), what };
        let file = KeyFile::parse(&text).map_err(damaged)?;
        if file.name != name {
            return Err(damaged(format!("holds the key {}, not {name}", file.name)));
        }
        file.open().map_err(|e| match e {
            e @ (Error::Locked { .. } | Error::Outside(_)) => e,
            e => damaged(e.to_string()),
        })
    }

    /// The public half of the key named `name`, as SubjectPublicKeyInfo; a protected key stays closed.
    fn spki(&self, name: NameRef<'_>) -> Result<Vec<u8>, Error> {
        let path = self.path_of(name, "key");
        let text = files::read(&path)?.ok_or_else(|| Error::NotFound(format!("key {name}")))?;
        match KeyFile::parse(&Zeroizing::new(text)) {
            Ok(KeyFile { body: Body::Sealed(_, spki) | Body::Token(_, spki), .. }) => Ok(spki),
            _ => Ok(self.key(name)?.spki().to_vec()),
        }
    }

    /// All keys, sorted by name.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn keys(&self) -> Result<Vec<KeyInfo>, Error> {
        let defaults = Defaults::read(&self.dir)?;
        let mut keys = Vec::new();
        for path in files::list(&self.dir, "key")? {
            // Gone since it was listed: another process deleted it.
            let Some(text) = files::read(&path)? else { continue };
            let damaged = |what: String| Error::Store { path: path.clone(), what };
            let file = KeyFile::parse(&Zeroizing::new(text)).map_err(damaged)?;
            let key_type = file.key_type().map_err(|e| damaged(e.to_string()))?;
            let (protection, name) = (file.protection(), file.name);
            let is_default_of_identity = defaults.is_default_of_identity(name.as_ref());
            let is_default = is_default_of_identity && defaults.is_of_default_identity(&name);
            let certificates = self.certificates_of(name.as_ref())?;
            let certificates = certificates.iter().map(|c| c.name().to_name()).collect();
            keys.push(KeyInfo {
                name,
                key_type,
                protection,
                is_default_of_identity,
                is_default,
                certificates,
            });
        }
        keys.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(keys)
    }

    /// Deletes the key named `name` and its certificates.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Store`].
    pub fn delete_key(&self, name: NameRef<'_>) -> Result<(), Error> {
        let _lock = self.change()?;
        for certificate in self.certificates_of(name)? {
            files::remove(&self.path_of(certificate.name(), "cert"))?;
        }
        if !files::remove(&self.path_of(name, "key"))? {
            return Err(Error::NotFound(format!("key {name}")));
        }
        let mut left: Vec<Name> = Vec::new();
        for path in files::list(&self.dir, "key")? {
            if let Some(text) = files::read(&path)? {
                left.extend(KeyFile::parse(&Zeroizing::new(text)).ok().map(|file| file.name));
            }
        }
        left.sort();
        let mut defaults = Defaults::read(&self.dir)?;
        defaults.remove(name, &left);
        defaults.write(&self.dir)
    }

    /// Stores a certificate. One of the same name is replaced. Its key need not be in the store,
    /// so that anchors and issuers' certificates can be kept beside.
    ///
    /// # Errors
    /// [`Error::Certificate`] when the store holds its private key and that is another one;
    /// [`Error::Store`].
    pub fn add_certificate(&self, certificate: &Certificate) -> Result<(), Error> {
        match self.spki(certificate.key_name()) {
            Ok(spki) if spki != certificate.public_key().spki() => {
                let what = format!("{} does not certify the key in the store", certificate.name());
                return Err(Error::Certificate(what));
            }
            Ok(_) | Err(Error::NotFound(_)) => {}
            Err(e) => return Err(e),
        }
        let _lock = self.change()?;
        let path = self.path_of(certificate.name(), "cert");
        files::replace(&path, text::encode(certificate.wire()).as_bytes())
    }

    /// The certificate named `name`.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Store`].
    pub fn certificate(&self, name: NameRef<'_>) -> Result<Certificate, Error> {
        let path = self.path_of(name, "cert");
        let missing = || Error::NotFound(format!("certificate {name}"));
        read_certificate(&path)?.ok_or_else(missing)
    }

    /// All certificates, sorted by name.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn certificates(&self) -> Result<Vec<Certificate>, Error> {
        let mut found = Vec::new();
        for path in files::list(&self.dir, "cert")? {
            found.extend(read_certificate(&path)?);
        }
        found.sort_by(|a, b| a.name().cmp(&b.name()));
        Ok(found)
    }

    /// The certificates of a key, the preferred one first: those that others issued before the
    /// self-signed, newer versions before older.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn certificates_of(&self, key: NameRef<'_>) -> Result<Vec<Certificate>, Error> {
        let mut found = self.certificates()?;
        found.retain(|c| c.key_name() == key);
        // Descending by (issued by another, version): the canonical order of the last component
        // is that of the version.
        found.sort_by(|a, b| {
            let rank = |c: &Certificate| !c.is_self_signed();
            rank(b).cmp(&rank(a)).then_with(|| b.name().last().cmp(&a.name().last()))
        });
        Ok(found)
    }

    /// Deletes the certificate named `name`.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Store`].
    pub fn delete_certificate(&self, name: NameRef<'_>) -> Result<(), Error> {
        let _lock = self.change()?;
        match files::remove(&self.path_of(name, "cert"))? {
            true => Ok(()),
            false => Err(Error::NotFound(format!("certificate {name}"))),
        }
    }

    /// The default identity.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn default_identity(&self) -> Result<Option<Name>, Error> {
        Ok(Defaults::read(&self.dir)?.identity().cloned())
    }

    /// Makes the key (or the identity with its default key) that `what` names the default.
    /// Returns the key's name.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Store`].
    pub fn set_default(&self, what: NameRef<'_>) -> Result<Name, Error> {
        let key = self.resolve(Some(what))?;
        let identity = cert::identity_of_key(key.as_ref())?.to_name();
        let _lock = self.change()?;
        let mut defaults = Defaults::read(&self.dir)?;
        defaults.set(identity.as_ref(), key.as_ref());
        defaults.write(&self.dir)?;
        Ok(key)
    }

    /// The name of the key that `what` means: a key, the key of a certificate, the default key of
    /// an identity; without `what` that of the default identity.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Store`].
    pub fn resolve(&self, what: Option<NameRef<'_>>) -> Result<Name, Error> {
        let defaults = Defaults::read(&self.dir)?;
        let name = match what {
            None => match defaults.identity() {
                Some(identity) => identity.clone(),
                None => return Err(Error::NotFound("default identity".into())),
            },
            Some(name) => name.to_name(),
        };
        let view = name.as_ref();
        let key = if cert::identity_of_key(view).is_ok() {
            view
        } else if let Ok(key) = cert::key_of_locator(view).ok_or(()) {
            key
        } else {
            let missing = || Error::NotFound(format!("key of the identity {view}"));
            return defaults.key_of(view).cloned().ok_or_else(missing);
        };
        match files::read(&self.path_of(key, "key"))? {
            Some(_) => Ok(key.to_name()),
            None => Err(Error::NotFound(format!("key {key}"))),
        }
    }

    /// What signs for `what` (as [`KeyStore::resolve`]); its locator is the preferred
    /// certificate's name, else the key's.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Store`].
    pub fn signer(&self, what: Option<NameRef<'_>>) -> Result<Signer, Error> {
        let name = self.resolve(what)?;
        let key = self.key(name.as_ref())?;
        let certificates = self.certificates_of(name.as_ref())?;
        let locator = certificates.first().map_or(name.as_ref(), Certificate::name).to_name();
        Ok(Signer::key(key, locator))
    }

    /// Stores the key and certificate of an opened safe bag. Returns the key's name.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::Store`].
    pub fn import(&self, bag: &SafeBag, passphrase: &[u8]) -> Result<Name, Error> {
        let key = bag.open(passphrase)?;
        let certificate = bag.certificate();
        self.add_key(certificate.key_name(), &key)?;
        self.add_certificate(certificate)?;
        Ok(certificate.key_name().to_name())
    }
}

fn read_certificate(path: &Path) -> Result<Option<Certificate>, Error> {
    let Some(text) = files::read(path)? else { return Ok(None) };
    let damaged = |e: Error| Error::Store { path: path.to_owned(), what: e.to_string() };
    Certificate::from_text(&text).map(Some).map_err(damaged)
}

#[cfg(test)]
mod tests;
