//! Data whose signature was checked.

use onym_crypto::{PublicKey, verify};
use onym_wire::{Data, NameRef};

/// A Data that may be believed.
#[derive(Debug, Clone, Copy)]
pub struct Trusted<'a>(Data<'a>);

impl<'a> Trusted<'a> {
    /// Checks its signature with `key`.
    ///
    /// # Errors
    /// [`onym_crypto::Error`].
    pub fn signed_by(data: Data<'a>, key: &PublicKey) -> Result<Self, onym_crypto::Error> {
        verify::data(&data, key).map(|()| Self(data))
    }

    /// One that the caller verified, by a schema for example. What is not verified must not come
    /// here: AES-CBC tells an attacker who may change ciphertexts what they hold.
    #[must_use]
    pub fn verified_by_caller(data: Data<'a>) -> Self {
        Self(data)
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> NameRef<'a> {
        self.0.name
    }

    /// The Data.
    #[must_use]
    pub fn wire(&self) -> &'a [u8] {
        self.0.wire
    }

    /// Its content.
    #[must_use]
    pub fn content(&self) -> &'a [u8] {
        self.0.content
    }
}
