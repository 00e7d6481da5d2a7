//! What requests and answers of the interface carry, beside descriptions and events.

use crate::describe::Key;
use crate::network::{Ends, Function, Side, Transport};
use crate::plan::Strategy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Instances of a function.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Instances {
    /// Itself counted.
    pub(super) instances: u32,
}

/// A link that is asked for.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LinkOrder {
    pub(super) from: String,
    pub(super) to: String,
    #[serde(default)]
    pub(super) side: Side,
    #[serde(default)]
    pub(super) transport: Transport,
}

/// A function that is to stand on a link.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InsertOrder {
    /// The link.
    pub(super) on: Ends,
    /// Name of the function.
    pub(super) name: String,
    /// What it is.
    pub(super) function: Function,
    #[serde(default)]
    pub(super) strategy: Strategy,
}

/// Keys to add and to remove.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KeysOrder {
    #[serde(default)]
    pub(super) add: BTreeMap<String, Key>,
    #[serde(default)]
    pub(super) remove: Vec<String>,
}

/// Where a browser finds the page.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct PageAddress {
    /// The address; the code in it is good for one browser.
    pub(super) url: String,
    /// How long.
    pub(super) expires_s: u64,
}

/// The code of such an address.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionOrder {
    pub(super) code: String,
}

/// What a browser carries from then on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(super) struct Session {
    pub(super) token: String,
}
