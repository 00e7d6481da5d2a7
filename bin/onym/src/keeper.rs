//! Opens protected keys for this program: by the kernel's keyring, by passphrases and by tokens.

use crate::passphrase;
use linux_keyutils::{Key, KeyPermissionsBuilder, KeyRing, KeyRingIdentifier, Permission};
use onym_crypto::digest::hex;
use onym_crypto::store::{Keeper, TokenPlace, set_keeper};
use onym_crypto::{Error, PrivateKey, sha256};
use onym_token::Place;
use onym_wire::NameRef;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use zeroize::Zeroizing;

/// File whose first line is the passphrase of protected keys.
pub(crate) const PASSPHRASE_FILE: &str = "ONYM_KEY_PASSPHRASE_FILE";
/// File whose first line is the PIN of tokens.
pub(crate) const PIN_FILE: &str = "ONYM_TOKEN_PIN_FILE";

/// Names this program's keeper.
pub(crate) fn install() {
    set_keeper(Box::new(Asking::default()));
}

/// What an unlocked key is called in the kernel's keyring: names may be longer than that allows.
fn description(key: NameRef<'_>) -> String {
    let mut wire = Vec::new();
    key.write_tlv(&mut wire);
    format!("onym:{}", hex(&sha256(&[&wire])))
}

fn ring() -> Result<KeyRing, linux_keyutils::KeyError> {
    KeyRing::from_special_id(KeyRingIdentifier::User, false)
}

fn kernel(key: NameRef<'_>, error: linux_keyutils::KeyError) -> Error {
    Error::Locked { name: key.to_string(), why: format!("the kernel's keyring: {error}") }
}

/// Keeps a key in the memory of the kernel for `seconds`: this user's programs sign without being
/// asked.
pub(crate) fn unlock(key: NameRef<'_>, pkcs8: &[u8], seconds: usize) -> Result<(), Error> {
    let put = || -> Result<(), linux_keyutils::KeyError> {
        let entry = ring()?.add_key(&description(key), pkcs8)?;
        // Also programs of this user that were not begun from this session, such as a daemon.
        let own = Permission::VIEW | Permission::READ | Permission::SEARCH | Permission::SETATTR;
        let perms = KeyPermissionsBuilder::builder().posessor(Permission::ALL).user(own).build();
        entry.set_perms(perms)?;
        entry.set_timeout(seconds)
    };
    put().map_err(|error| kernel(key, error))
}

/// Forgets what [`unlock`] kept; whether there was something.
pub(crate) fn lock(key: NameRef<'_>) -> Result<bool, Error> {
    match kept(key) {
        None => Ok(false),
        Some(entry) => entry.invalidate().map(|()| true).map_err(|error| kernel(key, error)),
    }
}

fn kept(key: NameRef<'_>) -> Option<Key> {
    ring().and_then(|ring| ring.search(&description(key))).ok()
}

/// Asks on the terminal what no file says.
#[derive(Default)]
struct Asking {
    /// PINs of tokens that took them, for further keys of the same.
    pins: Mutex<BTreeMap<String, Zeroizing<String>>>,
}

/// The first line of the file that a variable names.
fn line_of(variable: &str) -> Option<Result<Zeroizing<String>, String>> {
    let path = std::env::var_os(variable).filter(|path| !path.is_empty())?;
    let read = crate::key_files::read_text(path.as_ref()).map_err(|e| format!("{variable}: {e:#}"));
    Some(read.map(|text| {
        let text = Zeroizing::new(text);
        Zeroizing::new(text.lines().next().unwrap_or_default().to_owned())
    }))
}

/// What a variable's file says, else the answer to a question.
fn secret(key: NameRef<'_>, variable: &str, question: &str) -> Result<Zeroizing<String>, Error> {
    let locked = |why: String| Error::Locked { name: key.to_string(), why };
    match line_of(variable) {
        Some(read) => read.map_err(locked),
        None => passphrase::ask(question).map(Zeroizing::new).map_err(|_| {
            locked(format!(
                "there is no terminal to ask on: name a file in {variable}, or `onym key unlock` it"
            ))
        }),
    }
}

impl Keeper for Asking {
    fn unlocked(&self, key: NameRef<'_>) -> Option<Zeroizing<Vec<u8>>> {
        kept(key)?.read_to_vec().ok().map(Zeroizing::new)
    }

    fn passphrase(&self, key: NameRef<'_>) -> Result<Zeroizing<String>, Error> {
        secret(key, PASSPHRASE_FILE, &format!("Passphrase of {key}: "))
    }

    fn token(&self, key: NameRef<'_>, at: &TokenPlace, spki: &[u8]) -> Result<PrivateKey, Error> {
        let pins = || self.pins.lock().unwrap_or_else(PoisonError::into_inner);
        let known = pins().get(&at.token).cloned();
        let pin = match known {
            Some(pin) => pin,
            None => pin(key, &at.token)?,
        };
        let opened = onym_token::open(&place(at), &pin, spki);
        let opened = opened.map_err(|error| Error::Outside(error.to_string()))?;
        pins().insert(at.token.clone(), pin);
        Ok(opened)
    }
}

/// The PIN of a token, for the key of that name.
pub(crate) fn pin(key: NameRef<'_>, token: &str) -> Result<Zeroizing<String>, Error> {
    secret(key, PIN_FILE, &format!("PIN of the token {token}: "))
}

/// The same place, in the words of tokens.
pub(crate) fn place(at: &TokenPlace) -> Place {
    Place { module: at.module.clone(), token: at.token.clone(), object: at.object.clone() }
}
