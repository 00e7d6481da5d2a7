//! Errors reported to the applicant.

use crate::Error;
use crate::error::ErrorCode;
use onym_crypto::PublicKey;
use onym_crypto::verify::Signed;
use onym_wire::interest::Interest;

/// A code, and why.
pub(super) type Refusal = (ErrorCode, String);

pub(super) fn refuse<T>(code: ErrorCode, why: impl Into<String>) -> Result<T, Refusal> {
    Err((code, why.into()))
}

/// What failed here, and could not be foreseen by who asked.
pub(super) fn internal(error: Error) -> Refusal {
    (ErrorCode::INVALID, error.to_string())
}

/// Checks the signature of an Interest with `key`.
pub(super) fn check_signature(interest: &Interest<'_>, key: &PublicKey) -> Result<(), Refusal> {
    let checked = Signed::interest(interest).and_then(|signed| signed.verify_key(key));
    checked.map_err(|error| (ErrorCode::BAD_SIGNATURE, error.to_string()))
}
