//! How a verifier decides trust, as the control interface writes it.

use serde::{Deserialize, Serialize};

/// A rule of expressions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustRule {
    /// Regular expression over the URI of the Data's name.
    pub data: String,
    /// The key's name starts with this.
    pub key: String,
}

/// What decides which key may sign which Data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TrustSource {
    /// The first rule whose expression matches; none matches: any known key.
    Rules {
        /// In order.
        rules: Vec<TrustRule>,
    },
    /// A schema in LightVerSec.
    LightVerSec {
        /// Its text.
        lightversec: String,
    },
    /// Rules of a validator configuration of ndn-cxx, whose anchors do not count here.
    Validator {
        /// Its text.
        validator: String,
        /// Where in the configuration the rules are.
        section: String,
    },
}
