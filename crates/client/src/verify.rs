//! How a consumer verifies Data.

use onym_crypto::{Error, PublicKey, verify};
use onym_wire::data::Data;
use onym_wire::types;
use std::fmt;
use std::sync::Arc;

/// Checks one Data.
pub trait Verifier: Send + Sync {
    /// Fails when `data` is not to be believed.
    ///
    /// # Errors
    /// Why not.
    fn verify(&self, data: &Data<'_>) -> Result<(), Error>;
}

impl Verifier for PublicKey {
    fn verify(&self, data: &Data<'_>) -> Result<(), Error> {
        verify::data(data, self)
    }
}

/// How Data are verified.
#[derive(Clone, Default)]
pub enum Verify {
    /// Not at all.
    Off,
    /// Digests are checked; signatures by keys are counted as unverified (the default).
    #[default]
    Integrity,
    /// Every Data must pass.
    With(Arc<dyn Verifier>),
}

impl fmt::Debug for Verify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "Off",
            Self::Integrity => "Integrity",
            Self::With(_) => "With(..)",
        })
    }
}

/// What a check that did not fail says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verified {
    /// The signature was checked.
    Yes,
    /// Nobody checked.
    No,
}

impl Verify {
    /// Checks `data`.
    ///
    /// # Errors
    /// Why it is not to be believed.
    pub fn check(&self, data: &Data<'_>) -> Result<Verified, Error> {
        match self {
            Self::Off => Ok(Verified::No),
            Self::With(verifier) => verifier.verify(data).map(|()| Verified::Yes),
            Self::Integrity if data.signature_info().kind == types::SIGNATURE_DIGEST_SHA256 => {
                verify::integrity(data).map(|()| Verified::Yes)
            }
            Self::Integrity => Ok(Verified::No),
        }
    }
}
