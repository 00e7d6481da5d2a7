//! Content that is encrypted: what makes it readable when it came and was verified.

use onym_wire::data::Data;
use onym_wire::name::{Name, NameRef};
use std::fmt;
use std::io;

/// Makes of a Data what it holds. It is asked after the Data was verified, by whatever the fetch was
/// told to verify with: who decrypts must fetch with [`Verify::With`](crate::Verify::With).
pub trait Opener: fmt::Debug + Send + Sync {
    /// What the content holds; nothing when it is not encrypted.
    ///
    /// # Errors
    /// [`NotOpened`].
    fn open(&self, data: &Data<'_>) -> Result<Option<Vec<u8>>, NotOpened>;
}

/// Why a Data cannot be read.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{why}")]
pub struct NotOpened {
    /// The key that is to be had first, where that helps.
    pub needs: Option<Name>,
    /// In words.
    pub why: String,
}

/// Encrypts content before it is signed.
pub trait Seal: fmt::Debug + Send {
    /// The content of the Data `name` that holds `plain`.
    ///
    /// # Errors
    /// Why it cannot be encrypted.
    fn seal(&mut self, name: NameRef<'_>, plain: &[u8]) -> io::Result<Vec<u8>>;
}
