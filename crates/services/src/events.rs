//! Events for a manager. How they are written down is the shell's business.

use crate::ports::{Port, Side};
use crate::rule::Rule;
use onym_tables::FaceId;
use serde::Serialize;

/// One event, by the kinds of spec/services.md, section 6; the shell adds its number and its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// A face is connected.
    FaceUp(FaceEvent),
    /// A face has no connection any more.
    FaceDown(FaceEvent),
    /// A producer registered a prefix.
    Registered(RouteEvent),
    /// A registered route ended.
    Unregistered(RouteEvent),
    /// A registration was refused.
    RegistrationRefused {
        /// The face of the producer.
        face: u32,
        /// Its label.
        label: String,
        /// What it asked for, where that could be read.
        prefix: Option<String>,
        /// The key that signed, where one did.
        key: Option<String>,
        /// Why.
        reason: String,
    },
    /// A face of producers is gone, and with it its registrations.
    ProducerDisconnected {
        /// Its number.
        face: u32,
        /// Its label.
        label: String,
        /// What was registered there.
        prefixes: Vec<String>,
    },
    /// Data was dropped for its signature.
    InvalidSignature {
        /// Names, each once.
        names: Vec<String>,
        /// How many packets; 0 in the further parts of one report.
        count: u64,
        /// Label of the face that they came from.
        face: String,
    },
    /// A filter has a new rule.
    RuleAdded {
        /// The rule.
        rule: Rule,
    },
    /// The lifetime of a rule is over.
    RuleExpired {
        /// The rule.
        rule: Rule,
    },
    /// A strategy forwarder uses another face.
    Failover {
        /// Label of the face before.
        from: String,
        /// Label of the face now.
        to: String,
    },
    /// A side is frozen.
    Frozen {
        /// Which.
        side: Side,
    },
    /// A side is frozen no more.
    Unfrozen {
        /// Which.
        side: Side,
        /// Packets that were kept and are sent now.
        sent: u64,
    },
}

/// What is said of a face.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FaceEvent {
    /// Its number.
    pub face: u32,
    /// Its label.
    pub label: String,
    /// The far end.
    pub uri: String,
    /// What lies beyond it.
    pub side: Side,
    /// Why it went down; empty where it came up.
    pub reason: String,
}

impl FaceEvent {
    /// Of `port`, whose far end is `uri`.
    #[must_use]
    pub fn new(port: &Port, uri: &str, reason: &str) -> Self {
        Self {
            face: port.id.0,
            label: port.label.clone(),
            uri: uri.to_owned(),
            side: port.side,
            reason: reason.to_owned(),
        }
    }
}

/// What is said of a registered route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RouteEvent {
    /// The face of the producer.
    pub face: u32,
    /// Its label.
    pub label: String,
    /// The prefix.
    pub prefix: String,
    /// Its cost, in the answer to a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// When it ends by itself.
    pub expires_ms: Option<u64>,
    /// The key that signed, where one did.
    pub key: Option<String>,
    /// `expired` where no command ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

impl RouteEvent {
    pub(crate) fn expired(face: FaceId, label: &str, prefix: String) -> Self {
        let label = label.to_owned();
        let reason = Some("expired");
        Self { face: face.0, label, prefix, cost: None, expires_ms: None, key: None, reason }
    }
}
