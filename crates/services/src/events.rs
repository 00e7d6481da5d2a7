//! Events for a manager.

use serde_json::{Value, json};

/// One event; the shell adds its number and its time.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// A word of spec/services.md, section 6.
    pub kind: &'static str,
    /// Further members, an object.
    pub body: Value,
}

impl Event {
    /// An event with these members.
    #[must_use]
    pub fn new(kind: &'static str, body: Value) -> Self {
        Self { kind, body }
    }

    /// The JSON of the control interface.
    #[must_use]
    pub fn to_json(&self, seq: u64, at_ms: u64) -> Value {
        let mut out = json!({ "seq": seq, "at_ms": at_ms, "kind": self.kind });
        if let (Some(out), Some(body)) = (out.as_object_mut(), self.body.as_object()) {
            out.extend(body.clone());
        }
        out
    }
}
