//! Where spans go.

use super::OneOrMany;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Spans of OpenTelemetry: some Interests are recorded at each node on their way, and what each node
/// did with them is told to a collector. The number of the trace travels in a link-layer field that
/// other forwarders ignore and do not pass on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Telemetry {
    /// The collector, by OTLP over HTTP: `http://address:port`, at whose `/v1/traces` spans are
    /// posted as JSON. Empty: nothing is recorded, and traces of others end here.
    pub collector: String,
    /// One of so many Interests that come without a trace begins one, on the average. 0: none does,
    /// and only traces of others are recorded.
    pub sample: u32,
    /// Whose traces are taken up, and to whom they are passed on: `local` (applications on this
    /// machine), addresses of peers such as `192.0.2.0/24`, or `any`. For other faces the field is
    /// ignored and not sent: they neither learn of traces nor cause work.
    pub trusted: OneOrMany,
    /// Spans a second, at most, whoever causes them; Interests beyond are not recorded, and counted.
    pub spans_per_second: u32,
    /// What this node is called (`service.instance.id`). Empty: as in `trace.name`.
    pub name: String,
}

impl Default for Telemetry {
    fn default() -> Self {
        Self {
            collector: String::new(),
            sample: 100,
            trusted: OneOrMany::of(&["local"]),
            spans_per_second: 1000,
            name: String::new(),
        }
    }
}
