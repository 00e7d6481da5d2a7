//! How a key is protected at rest, and who opens it.

use super::{KEY_HEADER, KeyStore, files};
use crate::{Entropy, Error, KeyType, PrivateKey, cert, seal, text};
use onym_wire::{Name, NameRef};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// How a private key is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// By the mode of its file.
    Mode,
    /// Encrypted under a passphrase.
    Passphrase,
    /// In a token, which signs.
    Token,
}

impl Protection {
    /// The word for it in files and listings.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Mode => "mode",
            Self::Passphrase => "passphrase",
            Self::Token => "token",
        }
    }
}

/// Where in which token a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenPlace {
    /// The shared library of the token's maker (PKCS#11).
    pub module: PathBuf,
    /// The token's label.
    pub token: String,
    /// The object's id.
    pub object: Vec<u8>,
}

/// Opens protected keys for a program: asks for passphrases, and speaks to tokens.
pub trait Keeper: Send + Sync {
    /// The key as it was unlocked before, as PKCS#8; nothing when it was not.
    fn unlocked(&self, key: NameRef<'_>) -> Option<Zeroizing<Vec<u8>>>;

    /// The passphrase of a key.
    ///
    /// # Errors
    /// [`Error::Locked`].
    fn passphrase(&self, key: NameRef<'_>) -> Result<Zeroizing<String>, Error>;

    /// A key of a token, whose public half is `spki`.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::Outside`].
    fn token(&self, key: NameRef<'_>, at: &TokenPlace, spki: &[u8]) -> Result<PrivateKey, Error>;
}

static KEEPER: OnceLock<Box<dyn Keeper>> = OnceLock::new();

/// Names who opens protected keys in this program. The first one counts; without one they stay
/// closed.
pub fn set_keeper(keeper: Box<dyn Keeper>) {
    let _ = KEEPER.set(keeper);
}

fn keeper(key: NameRef<'_>) -> Result<&'static dyn Keeper, Error> {
    let locked =
        || Error::Locked { name: key.to_string(), why: "this program cannot open it".into() };
    KEEPER.get().map(|keeper| &**keeper).ok_or_else(locked)
}

/// What a file of a key says.
#[derive(Debug)]
pub(super) struct KeyFile {
    pub(super) name: Name,
    pub(super) body: Body,
}

#[derive(Debug)]
pub(super) enum Body {
    /// PKCS#8.
    Plain(Zeroizing<Vec<u8>>),
    /// Encrypted PKCS#8, and the public half.
    Sealed(Vec<u8>, Vec<u8>),
    /// In a token, and the public half.
    Token(TokenPlace, Vec<u8>),
}

fn flat(octets: &[u8]) -> String {
    text::encode(octets).replace('\n', "")
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let pairs = text
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    if text.is_ascii() && text.len().is_multiple_of(2) { pairs.collect() } else { None }
}

impl KeyFile {
    /// Reads a file of a key.
    pub(super) fn parse(file: &str) -> Result<Self, String> {
        let bad = || format!("is not a key file: {KEY_HEADER:?}, headers, an empty line, base64");
        let (head, body) = file.split_once("\n\n").ok_or_else(bad)?;
        let mut lines = head.lines();
        if lines.next() != Some(KEY_HEADER) {
            return Err(bad());
        }
        let value = |key: &str| head.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(": "));
        let name = value("name").ok_or_else(bad)?.parse::<Name>().map_err(|e| e.to_string())?;
        let octets = |text: &str| text::decode(text).map_err(|e| e.to_string());
        let public = || octets(value("public").ok_or_else(bad)?);
        let body = match value("protection") {
            None => Body::Plain(Zeroizing::new(octets(body)?)),
            Some("passphrase") => Body::Sealed(octets(body)?, public()?),
            Some("token") => {
                let object = value("object").and_then(hex).ok_or_else(bad)?;
                let module = value("module").ok_or_else(bad)?.into();
                let token = value("token").ok_or_else(bad)?.to_owned();
                Body::Token(TokenPlace { module, token, object }, public()?)
            }
            Some(other) => return Err(format!("is protected by {other}, which is not known")),
        };
        Ok(Self { name, body })
    }

    pub(super) fn write(name: NameRef<'_>, kind: KeyType, body: &Body) -> Zeroizing<String> {
        let kind = kind.word();
        let mut out = Zeroizing::new(format!("{KEY_HEADER}\nname: {name}\ntype: {kind}\n"));
        // Writing to a String does not fail.
        let _ = match body {
            Body::Plain(der) => {
                let der = Zeroizing::new(text::encode(der));
                write!(out, "\n{}", der.as_str())
            }
            Body::Sealed(sealed, public) => {
                let (public, sealed) = (flat(public), text::encode(sealed));
                write!(out, "protection: passphrase\npublic: {public}\n\n{sealed}")
            }
            Body::Token(at, public) => {
                let (module, token, public) = (at.module.display(), &at.token, flat(public));
                let object: String = at.object.iter().map(|octet| format!("{octet:02x}")).collect();
                write!(
                    out,
                    "protection: token\npublic: {public}\nmodule: {module}\ntoken: {token}\n\
                     object: {object}\n\n"
                )
            }
        };
        out
    }

    pub(super) fn protection(&self) -> Protection {
        match self.body {
            Body::Plain(_) => Protection::Mode,
            Body::Sealed(..) => Protection::Passphrase,
            Body::Token(..) => Protection::Token,
        }
    }

    /// The kind of the key, without opening it.
    pub(super) fn key_type(&self) -> Result<KeyType, Error> {
        match &self.body {
            Body::Plain(der) => Ok(PrivateKey::from_pkcs8(der)?.key_type()),
            Body::Sealed(_, public) | Body::Token(_, public) => {
                Ok(crate::PublicKey::from_spki(public)?.key_type())
            }
        }
    }

    /// The key.
    pub(super) fn open(&self) -> Result<PrivateKey, Error> {
        let name = self.name.as_ref();
        let (key, public) = match &self.body {
            Body::Plain(der) => return PrivateKey::from_pkcs8(der),
            Body::Token(at, public) => (keeper(name)?.token(name, at, public)?, public),
            Body::Sealed(sealed, public) => {
                let keeper = keeper(name)?;
                let der = match keeper.unlocked(name) {
                    Some(der) => der,
                    None => unseal(name, sealed, &keeper.passphrase(name)?)?,
                };
                (PrivateKey::from_pkcs8(&der)?, public)
            }
        };
        // The public half is not protected: who changed it is found out here.
        if key.spki() == public.as_slice() {
            return Ok(key);
        }
        Err(Error::Key(format!("{name} is another key than its file says")))
    }
}

fn unseal(name: NameRef<'_>, sealed: &[u8], passphrase: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
    seal::decrypt(sealed, passphrase.as_bytes()).map_err(|_| Error::Locked {
        name: name.to_string(),
        why: "this is not its passphrase, or its file is damaged".into(),
    })
}

impl KeyStore {
    /// Encrypts a key under a passphrase, from now on, or under another one.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Locked`], [`Error::Stays`] for a key of a token.
    pub fn protect(
        &self,
        name: NameRef<'_>,
        passphrase: &str,
        entropy: &mut dyn Entropy,
    ) -> Result<(), Error> {
        let key = self.key(name)?;
        let sealed = seal::encrypt(&key.to_pkcs8()?, passphrase.as_bytes(), entropy)?;
        self.rewrite(name, &key, &Body::Sealed(sealed, key.spki().to_vec()))
    }

    /// Takes the passphrase off a key.
    ///
    /// # Errors
    /// As [`protect`](Self::protect).
    pub fn unprotect(&self, name: NameRef<'_>) -> Result<(), Error> {
        let key = self.key(name)?;
        self.rewrite(name, &key, &Body::Plain(key.to_pkcs8()?))
    }

    /// Stores a new key under a passphrase: it is never on disk without.
    ///
    /// # Errors
    /// As [`add_key`](Self::add_key).
    pub fn add_protected_key(
        &self,
        name: NameRef<'_>,
        key: &PrivateKey,
        passphrase: &str,
        entropy: &mut dyn Entropy,
    ) -> Result<(), Error> {
        let sealed = seal::encrypt(&key.to_pkcs8()?, passphrase.as_bytes(), entropy)?;
        self.add(name, key.key_type(), &Body::Sealed(sealed, key.spki().to_vec()))
    }

    fn rewrite(&self, name: NameRef<'_>, key: &PrivateKey, body: &Body) -> Result<(), Error> {
        let _lock = self.change()?;
        let path = self.path_of(name, "key");
        files::replace(&path, KeyFile::write(name, key.key_type(), body).as_bytes())
    }

    /// Stores where a key is that stays in a token; its public half is `spki`.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::Certificate`], [`Error::Key`], [`Error::Store`].
    pub fn add_token_key(
        &self,
        name: NameRef<'_>,
        at: &TokenPlace,
        spki: &[u8],
    ) -> Result<(), Error> {
        cert::identity_of_key(name)?;
        let kind = crate::PublicKey::from_spki(spki)?.key_type();
        let is_line = |text: &str| !text.is_empty() && !text.contains(['\n', '\r']);
        if !is_line(&at.token) || !is_line(&at.module.to_string_lossy()) {
            return Err(Error::Key("module and token are lines of text".into()));
        }
        self.add(name, kind, &Body::Token(at.clone(), spki.to_vec()))
    }
}

/// Checks that `file` is the text of a key file; protected keys stay closed.
///
/// # Errors
/// What is wrong with it.
pub fn check_key_file(file: &str) -> Result<Name, String> {
    let file = KeyFile::parse(file)?;
    file.key_type().map_err(|e| e.to_string())?;
    Ok(file.name)
}

/// A file that others than its owner can read or change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loose {
    /// The file or folder.
    pub path: PathBuf,
    /// Its mode.
    pub mode: u32,
    /// What it should be at most.
    pub wanted: u32,
}

impl KeyStore {
    /// What others than the owner of the store can read or change.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn loose(&self) -> Result<Vec<Loose>, Error> {
        let mut paths = Vec::new();
        for extension in ["key", "reading", "group"] {
            paths.extend(files::list(&self.dir, extension)?);
        }
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let mut found: Vec<Loose> =
            paths.into_iter().filter_map(|path| loose(path, 0o600)).collect();
        found.extend(loose(self.dir.clone(), 0o700));
        Ok(found)
    }
}

/// Whether a file has a wider mode than `wanted`.
#[must_use]
pub fn loose(path: PathBuf, wanted: u32) -> Option<Loose> {
    use std::os::unix::fs::MetadataExt as _;
    let mode = std::fs::metadata(&path).ok()?.mode() & 0o777;
    (mode & !wanted & 0o077 != 0).then_some(Loose { path, mode, wanted })
}
