//! The table of operations, from which routes and `spec/openapi.json` are made.

use axum::http::Method;

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table says what each one does")]
pub enum Operation {
    Apply,
    ApplyPreset,
    ChangeKeys,
    Decisions,
    Delete,
    Deploy,
    Description,
    Down,
    Events,
    EventStream,
    Function,
    Health,
    Insert,
    Keys,
    Link,
    Metrics,
    Network,
    OpenApi,
    Page,
    Policies,
    Presets,
    Samples,
    Scale,
    ServiceState,
    Session,
    SetPolicies,
    Trace,
    Unlink,
}

impl Operation {
    /// Whether it is answered without a token.
    #[must_use]
    pub fn is_open(self) -> bool {
        matches!(self, Self::Health | Self::OpenApi | Self::Session)
    }
}

/// One operation.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    method: &'static str,
    /// The path, with `{names}`.
    pub path: &'static str,
    /// What it does.
    pub operation: Operation,
    /// For people.
    pub summary: &'static str,
    /// Names of query parameters, with what they mean.
    pub query: &'static [(&'static str, &'static str)],
    /// Name of the schema of the request, or its media type.
    pub body: Option<&'static str>,
    /// Name of the schema of the answer, or its media type.
    pub answer: &'static str,
}

impl Row {
    /// The method.
    #[must_use]
    pub fn method(&self) -> Method {
        Method::from_bytes(self.method.as_bytes()).unwrap_or_default()
    }
}

const STRATEGY: (&str, &str) =
    ("strategy", "make-before-break (default), break-and-buffer or break-and-drop");
const DRY: (&str, &str) = ("dry_run", "true: only say what would be done");

const CONFIRM: (&str, &str) =
    ("confirm", "true: more than half of the functions may be removed; else 409 says which");

macro_rules! row {
    ($method:literal $path:literal $operation:ident, $summary:literal, [$($query:expr),*], $body:expr, $answer:literal) => {
        Row {
            method: $method,
            path: $path,
            operation: Operation::$operation,
            summary: $summary,
            query: &[$($query),*],
            body: $body,
            answer: $answer,
        }
    };
}

/// All operations.
pub const TABLE: &[Row] = &[
    row!("GET" "/v1/health" Health, "Whether the manager runs.", [], None, "Health"),
    row!("GET" "/v1/network" Network, "The network as it runs, with rates.", [], None, "View"),
    row!("GET" "/v1/description" Description, "The description that is wanted.", [("form", "toml, yaml, tosca or json (default)")], None, "Description"),
    row!("PUT" "/v1/description" Apply, "Make the network as described.", [("form", "toml, yaml, tosca or json; else by the media type"), STRATEGY, DRY, CONFIRM], Some("text/plain"), "Done"),
    row!("DELETE" "/v1/description" Down, "Stop everything and forget the description.", [CONFIRM], None, "Done"),
    row!("GET" "/v1/presets" Presets, "Networks that come with the manager.", [], None, "Presets"),
    row!("PUT" "/v1/presets/{name}" ApplyPreset, "Make one of them.", [STRATEGY, DRY, CONFIRM], None, "Done"),
    row!("GET" "/v1/functions/{name}" Function, "One function as it runs.", [], None, "FunctionView"),
    row!("PUT" "/v1/functions/{name}" Deploy, "Add a function without links.", [], Some("Function"), "Done"),
    row!("DELETE" "/v1/functions/{name}" Delete, "Take a function away.", [STRATEGY, ("join", "true: join its neighbours")], None, "Done"),
    row!("GET" "/v1/functions/{name}/samples" Samples, "Its statistics over time.", [], None, "Samples"),
    row!("GET" "/v1/functions/{name}/state/{part}" ServiceState, "What the service says itself: faces, routes, config, stats, rules, sessions, keys, events.", [], None, "Any"),
    row!("PUT" "/v1/functions/{name}/instances" Scale, "Have so many instances of it.", [], Some("Instances"), "Done"),
    row!("PUT" "/v1/links" Link, "Add a link.", [], Some("LinkOrder"), "Done"),
    row!("DELETE" "/v1/links" Unlink, "Remove a link.", [("from", "who opened it"), ("to", "where it ends"), ("side", "consumer (default) or producer")], None, "Done"),
    row!("POST" "/v1/insert" Insert, "Put a function on a link.", [], Some("InsertOrder"), "Done"),
    row!("GET" "/v1/keys" Keys, "Keys by name.", [], None, "Keys"),
    row!("POST" "/v1/keys" ChangeKeys, "Add and remove keys.", [], Some("KeysOrder"), "Done"),
    row!("GET" "/v1/policies" Policies, "When to scale and when to verify.", [], None, "Policies"),
    row!("PUT" "/v1/policies" SetPolicies, "Change that.", [], Some("Policies"), "Done"),
    row!("GET" "/v1/decisions" Decisions, "What the manager decided by itself.", [], None, "Decisions"),
    row!("GET" "/v1/events" Events, "What happened.", [("after", "number of the last event that is known"), ("wait_ms", "wait for the next one, at most 30000")], None, "Events"),
    row!("GET" "/v1/events/stream" EventStream, "What happened and happens, as server-sent events.", [("after", "number of the last event that is known; Last-Event-ID goes before it")], None, "text/event-stream"),
    row!("GET" "/v1/trace" Trace, "Which functions an Interest would cross.", [("start", "the function it enters by"), ("name", "its name")], None, "Edges"),
    row!("POST" "/v1/page" Page, "An address of the page that lets one browser in, once.", [], None, "PageAddress"),
    row!("POST" "/v1/session" Session, "A token for the code in such an address.", [], Some("SessionOrder"), "Session"),
    row!("GET" "/metrics" Metrics, "Metrics, in the text format of OpenMetrics.", [], None, "application/openmetrics-text"),
    row!("GET" "/openapi.json" OpenApi, "This description.", [], None, "Any"),
];
