//! Names in JSON and in tables.

use crate::refusal::Refusal;
use onym_tables::hash::component_count;
use onym_tables::{HashKey, Prefix};
use onym_wire::NAME_COMPONENTS_MAX;
use onym_wire::name::{Name, NameRef};

/// The name that `text` writes.
pub(crate) fn name(field: &str, text: &str) -> Result<Name, Refusal> {
    text.parse().map_err(|e| Refusal::field(field, format!("{text:?} is not a name: {e}")))
}

/// The name that `text` writes, short enough for the tables.
pub(crate) fn prefix(field: &str, text: &str) -> Result<Name, Refusal> {
    let name = name(field, text)?;
    if name.len() > NAME_COMPONENTS_MAX {
        let limit = format!("a prefix has at most {NAME_COMPONENTS_MAX} components");
        return Err(Refusal::field(field, limit));
    }
    Ok(name)
}

/// A name's value as a key of the tables.
pub(crate) fn key<'a>(hash: &HashKey, value: &'a [u8]) -> Prefix<'a> {
    Prefix { bytes: value, len: component_count(value), hash: hash.name(value) }
}

/// The URI of a name's value.
pub(crate) fn uri(value: &[u8]) -> String {
    NameRef::parse_value(value).map(|n| n.to_string()).unwrap_or_default()
}
