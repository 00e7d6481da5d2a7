#![doc = include_str!("../README.md")]

mod der;

use cryptoki::context::{CInitializeArgs, CInitializeFlags, Pkcs11};
use cryptoki::error::{Error as TokenError, RvError};
use cryptoki::mechanism::Mechanism;
use cryptoki::object::{Attribute, AttributeType, ObjectClass, ObjectHandle};
use cryptoki::session::{Session, UserType};
use cryptoki::slot::Slot;
use cryptoki::types::AuthPin;
use onym_crypto::{KeyType, Outside, PrivateKey, sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Where a key is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The shared library of the token's maker.
    pub module: PathBuf,
    /// The token's label.
    pub token: String,
    /// The object's id (CKA_ID), of the private and the public half alike.
    pub object: Vec<u8>,
}

/// Why a key cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The module.
    #[error("the module {0} does not load: {1}")]
    Module(PathBuf, String),
    /// No such token.
    #[error("no token labelled {0:?} is there")]
    NoToken(String),
    /// No such key.
    #[error("the token {0:?} has no such key")]
    NoKey(String),
    /// The PIN.
    #[error("the token {0:?} does not take the PIN")]
    Pin(String),
    /// Something else that the token says.
    #[error("the token {0:?}: {1}")]
    Token(String, String),
    /// What the token says cannot be used.
    #[error(
        "the token {0:?} has a key that is not of P-256, or another one than the key store says"
    )]
    Key(String),
}

/// Modules that were loaded, by their paths: a second load of one would disturb the first.
static MODULES: Mutex<BTreeMap<PathBuf, Pkcs11>> = Mutex::new(BTreeMap::new());

fn module(path: &Path) -> Result<Pkcs11, Error> {
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(module) = modules.get(path) {
        return Ok(module.clone());
    }
    let bad = |e: TokenError| Error::Module(path.to_owned(), e.to_string());
    let module = Pkcs11::new(path).map_err(bad)?;
    match module.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
        Ok(()) | Err(TokenError::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => {}
        Err(error) => return Err(bad(error)),
    }
    modules.insert(path.to_owned(), module.clone());
    Ok(module)
}

impl Place {
    fn failed(&self, error: &TokenError) -> Error {
        let token = self.token.clone();
        match error {
            TokenError::Pkcs11(
                RvError::PinIncorrect
                | RvError::PinLocked
                | RvError::PinInvalid
                | RvError::PinLenRange,
                _,
            ) => Error::Pin(token),
            other => Error::Token(token, other.to_string()),
        }
    }

    fn slot(&self, module: &Pkcs11) -> Result<Slot, Error> {
        let slots = module.get_slots_with_token().map_err(|e| self.failed(&e))?;
        let is_it = |slot: &Slot| {
            module.get_token_info(*slot).is_ok_and(|info| info.label().trim_end() == self.token)
        };
        slots.into_iter().find(is_it).ok_or_else(|| Error::NoToken(self.token.clone()))
    }

    /// A session with somebody logged in.
    fn session(&self, pin: &str, access: Access) -> Result<Session, Error> {
        let module = module(&self.module)?;
        let slot = self.slot(&module)?;
        let opened = match access {
            Access::Read => module.open_ro_session(slot),
            Access::Write => module.open_rw_session(slot),
        };
        let session = opened.map_err(|e| self.failed(&e))?;
        let pin = AuthPin::new(pin.into());
        match session.login(UserType::User, Some(&pin)) {
            // Another key of this token in this process.
            Ok(()) | Err(TokenError::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(session),
            Err(error) => Err(self.failed(&error)),
        }
    }

    fn find(&self, session: &Session, class: ObjectClass) -> Result<ObjectHandle, Error> {
        let wanted = [Attribute::Class(class), Attribute::Id(self.object.clone())];
        let found = session.find_objects(&wanted).map_err(|e| self.failed(&e))?;
        found.first().copied().ok_or_else(|| Error::NoKey(self.token.clone()))
    }

    fn spki(&self, session: &Session, public: ObjectHandle) -> Result<Vec<u8>, Error> {
        let attributes = session.get_attributes(public, &[AttributeType::EcPoint]);
        let attributes = attributes.map_err(|e| self.failed(&e))?;
        let point = attributes.iter().find_map(|attribute| match attribute {
            Attribute::EcPoint(point) => Some(point.as_slice()),
            _ => None,
        });
        point.and_then(der::spki).ok_or_else(|| Error::Key(self.token.clone()))
    }
}

#[derive(Clone, Copy)]
enum Access {
    Read,
    Write,
}

/// Makes a key in a token; its public half as DER SubjectPublicKeyInfo.
///
/// # Errors
/// [`Error`].
pub fn generate(place: &Place, pin: &str) -> Result<Vec<u8>, Error> {
    let session = place.session(pin, Access::Write)?;
    let id = || Attribute::Id(place.object.clone());
    let label = || Attribute::Label(b"onym".to_vec());
    let public = [
        Attribute::Token(true),
        Attribute::Private(false),
        Attribute::Verify(true),
        Attribute::EcParams(der::P256.to_vec()),
        id(),
        label(),
    ];
    let private = [
        Attribute::Token(true),
        Attribute::Private(true),
        Attribute::Sensitive(true),
        Attribute::Extractable(false),
        Attribute::Sign(true),
        id(),
        label(),
    ];
    let made = session.generate_key_pair(&Mechanism::EccKeyPairGen, &public, &private);
    let (public, _) = made.map_err(|e| place.failed(&e))?;
    place.spki(&session, public)
}

/// A key of a token, ready to sign; its public half must be `spki`.
///
/// # Errors
/// [`Error`].
pub fn open(place: &Place, pin: &str, spki: &[u8]) -> Result<PrivateKey, Error> {
    let session = place.session(pin, Access::Read)?;
    let private = place.find(&session, ObjectClass::PRIVATE_KEY)?;
    let public = place.find(&session, ObjectClass::PUBLIC_KEY)?;
    let other = || Error::Key(place.token.clone());
    if place.spki(&session, public)? != spki {
        return Err(other());
    }
    let key = Key {
        token: place.token.clone(),
        session: Mutex::new(session),
        private,
        spki: spki.to_vec(),
    };
    PrivateKey::outside(Box::new(key)).map_err(|_| other())
}

struct Key {
    token: String,
    session: Mutex<Session>,
    private: ObjectHandle,
    spki: Vec<u8>,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key(in {:?})", self.token)
    }
}

impl Outside for Key {
    fn key_type(&self) -> KeyType {
        KeyType::Ecdsa
    }

    fn spki(&self) -> &[u8] {
        &self.spki
    }

    fn sign(&self, parts: &[&[u8]]) -> Result<Vec<u8>, onym_crypto::Error> {
        let failed = |why: String| onym_crypto::Error::Outside(format!("{:?}: {why}", self.token));
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let signed = session.sign(&Mechanism::Ecdsa, self.private, &sha256(parts));
        let signature = signed.map_err(|e| failed(e.to_string()))?;
        der::signature(&signature).ok_or_else(|| failed("its signature has another form".into()))
    }
}
