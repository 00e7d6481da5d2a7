//! Where a guard's files are, as configurations state it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Rules about who may say what, with the anchors that they start from. Other keys name an entry
/// by its `name`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// What other keys call it.
    pub name: String,
    /// File of the schema: LightVerSec as text or model, or validator configuration of ndn-cxx.
    /// Empty: a key may sign what is under its identity.
    #[serde(default)]
    pub schema: String,
    /// Where in a validator configuration the rules are, with dots, such as `security.validator`.
    #[serde(default)]
    pub section: String,
    /// Whether the schema is about objects: segment, version and metadata are taken off names first,
    /// as ndnd has it.
    #[serde(default)]
    pub objects: bool,
    /// Trust anchors: files of certificates, and folders of such files. Those that a validator
    /// configuration names itself are added.
    #[serde(default)]
    pub anchors: Vec<String>,
    /// File of what is believed no longer: on each line the name of a certificate or key, or
    /// `sha256:` and the digest of a public key. Empty: there is none.
    #[serde(default)]
    pub revoked: String,
    /// Seconds between two looks at these files. 0: they are read once.
    #[serde(default = "refresh_s")]
    pub refresh_s: u64,
    /// Identities whose certificates count only after a look at their records of revocation
    /// (ndnrevoke). Empty: records are not asked for.
    #[serde(default)]
    pub records: Vec<String>,
    /// Whether a certificate under `records` is refused while nobody answers for its record.
    #[serde(default)]
    pub records_needed: bool,
    /// Seconds for which the answer about a record counts.
    #[serde(default = "records_s")]
    pub records_s: u64,
    /// Most certificates between a packet and its anchor.
    #[serde(default = "depth")]
    pub depth: usize,
    /// Whether anchors count beyond their validity period.
    #[serde(default)]
    pub expired_anchors: bool,
    /// Whether signed invitations (CrossSchema) that come with Data let in what the schema refuses:
    /// when they are signed by a key that may sign that Data itself.
    #[serde(default = "yes")]
    pub invitations: bool,
    /// Whether a self-signed certificate that is no anchor counts when its owner's list
    /// (`KEY/32=auth`) names another one of the same public key that leads to an anchor.
    #[serde(default)]
    pub certificate_lists: bool,
}

const fn yes() -> bool {
    true
}

const fn refresh_s() -> u64 {
    60
}

const fn records_s() -> u64 {
    3600
}

const fn depth() -> usize {
    16
}

impl Settings {
    /// Rules and anchors from these files, everything else as it is by default.
    #[must_use]
    pub fn of(schema: &str, anchors: Vec<String>) -> Self {
        Self {
            name: String::new(),
            schema: schema.to_owned(),
            section: String::new(),
            objects: false,
            anchors,
            revoked: String::new(),
            refresh_s: refresh_s(),
            records: Vec::new(),
            records_needed: false,
            records_s: records_s(),
            depth: depth(),
            expired_anchors: false,
            invitations: true,
            certificate_lists: false,
        }
    }
}
