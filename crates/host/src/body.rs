//! Reading of JSON into types.

use onym_services::{Reason, Refusal};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a body or a part of one.
///
/// # Errors
/// The member that is wrong, and what serde says of it.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, Refusal> {
    serde_path_to_error::deserialize(value).map_err(|e| Refusal {
        reason: Reason::Invalid,
        code: "invalid",
        field: Some(e.path().to_string()).filter(|path| path != "."),
        message: e.into_inner().to_string(),
    })
}
