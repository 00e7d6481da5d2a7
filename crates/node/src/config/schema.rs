//! Every key of the configuration, with its default and meaning.
//!
//! The doc comments of the fields are the text of docs/config.md.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod faces;
mod gateway;
mod limits;
mod push;
mod routing;
mod telemetry;

pub use crate::mgmt::policy::Privilege;
pub use faces::{
    Congestion, Ether, Faces, Fault, Framing, OneOrMany, Quic, Shm, StaticFace, Tcp, Udp, Unix,
    WebSocket,
};
pub use gateway::{Gateway, GatewayMap};
pub use limits::{
    Cs, CsDisk, CsPolicy, CsVerify, Fib, Forward, Pit, Reassembly, Tables, Unsolicited,
};
use onym_guard::Settings;
pub use push::{Push, PushDiscover, PushLink, PushRole, PushScheme, PushStages};
pub use routing::{Routing, RoutingArea, RoutingExport, RoutingNeighbour, RoutingSummary};
pub use telemetry::Telemetry;

/// The whole configuration of a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub struct Config {
    /// Forwarding threads. 0 takes half of the processors, at least one; at most 64.
    pub shards: u16,
    /// Faces and their listeners.
    pub faces: Faces,
    /// The content store.
    pub cs: Cs,
    /// The table of pending Interests.
    pub pit: Pit,
    /// The table of routes.
    pub fib: Fib,
    /// The smaller tables of the data path.
    pub tables: Tables,
    /// What the data path does to packets.
    pub forward: Forward,
    /// Reassembly of fragments, per face.
    pub reassembly: Reassembly,
    /// Strategy by prefix: `"/prefix" = "name"`, with parameters as in
    /// `"/prefix" = "/localhost/nfd/strategy/asf/v=5/probing-interval~30000"`. Names without a slash
    /// are looked for under `/localhost/nfd/strategy`. `"/"` is for all other names: `best-route` without
    /// it, and `best-route/v=5/equal~flow` in a node with routing, where equal ways share what there is.
    pub strategy: BTreeMap<String, String>,
    /// Registration of prefixes.
    pub rib: Rib,
    /// Who operates the node.
    pub management: Management,
    /// Rules about who may say what, with their anchors. Entries are named, and other keys name
    /// them; files are looked at again while the node runs.
    pub trust: Vec<Settings>,
    /// Who may use the management modules; an entry grants, none refuses. When the list is
    /// empty, operators may do everything, other local applications `register` and `own-face`, and
    /// others nothing.
    pub authorize: Vec<Authorize>,
    /// Faces made at start and kept by the configuration.
    pub face: Vec<StaticFace>,
    /// Routes made at start.
    pub route: Vec<StaticRoute>,
    /// The push half: publish/subscribe.
    pub push: Push,
    /// The gateway between push and pull.
    pub gateway: Gateway,
    /// Routing.
    pub routing: Routing,
    /// Who may trace names through this node.
    pub trace: Trace,
    /// Metrics over HTTP.
    pub metrics: Metrics,
    /// Spans of OpenTelemetry.
    pub telemetry: Telemetry,
    /// Log output.
    pub log: Log,
    /// Starting and stopping.
    pub daemon: Daemon,
}

/// Registration of prefixes (`rib/register` and its kin).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
pub struct Rib {
    /// Accept registrations under `/localhop/nfd` from faces that are not local. The signature must
    /// then be by a certificate of `localhop_anchors`.
    pub localhop: bool,
    /// Files of the certificates whose signatures are accepted on `/localhop` registrations;
    /// `any` accepts every well-formed signed command.
    pub localhop_anchors: Vec<String>,
    /// The entry of `trust` whose rules say who may register under `/localhop/nfd`, in place of
    /// `localhop_anchors`. LightVerSec is asked about `/localhop/nfd/rib/register/PREFIX`,
    /// a validator configuration about the name of the Interest, as in NFD.
    pub localhop_trust: String,
    /// Files of the certificates whose prefix announcements are accepted from faces that are not
    /// local.
    pub announcement_anchors: Vec<String>,
    /// The entry of `trust` whose rules say who may sign prefix announcements, in place of
    /// `announcement_anchors`.
    pub announcement_trust: String,
    /// Names told to whoever asks for `/localhop/nfd/rib/routable-prefixes`. Empty: no answer.
    pub routable_prefixes: Vec<String>,
    /// Tell routes of origin client to the routing program on this machine that takes commands under
    /// `/localhost/nlsr`, such as NLSR. The router of `routing.network` needs no telling.
    pub tell_nlsr: bool,
    /// Register routes of origin client at the hub to which `/localhop/nfd` leads: under the shortest
    /// identity of the key store that is a prefix of them, signed by it (automatic prefix
    /// propagation).
    pub tell_hub: bool,
}

/// Who operates the node. Without `[[authorize]]` operators may do everything; other applications
/// on this machine register prefixes for themselves that are nobody else's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Management {
    /// The group whose members are operators, beside root and the user of the node, when they
    /// connect to the Unix socket. Empty, or not in `/etc/group`: there are no further ones.
    pub group: String,
    /// Whether every application on this machine may do everything, whoever runs it.
    pub open: bool,
    /// Who is shown the state of this node from elsewhere: certificates whose keys sign the
    /// question, `key:/NAME` (in the key store) or paths of files. The node then answers under its
    /// name (`trace.name`, else the router's) and the component `32=status`, which its router
    /// announces; others are refused. Empty: nobody.
    pub shown_to: Vec<String>,
}

impl Default for Management {
    fn default() -> Self {
        Self { group: "onym".to_owned(), open: false, shown_to: Vec::new() }
    }
}

/// One rule of management. Rules only grant: a command is carried out when one of them fits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Authorize {
    /// To whom: `local` (applications on this machine), `operators` (see `management`), `any` (also others, through `/localhop`
    /// when that is on), `trust:NAME` (whoever signs with a key that the rules of this entry of
    /// `trust` let sign the command), `key:/NAME` (whoever signs with this key, whose certificate is in the key
    /// store) or the path of a certificate (relative to the configuration file).
    pub who: String,
    /// The modules that they may use: `cs`, `faces`, `fib`, `log`, `rib`, `strategy-choice`;
    /// `register` is `rib` for the requester's own face and, unless it is an operator, for
    /// names that are nobody else's; `own-face` is `faces` for that face, without `create`.
    pub may: Vec<Privilege>,
    /// Limits commands that carry a name to names under these. Empty: no limit.
    #[serde(default)]
    pub prefixes: Vec<String>,
}

/// One route made at start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StaticRoute {
    /// The name prefix, as an NDN URI.
    pub prefix: String,
    /// The face: the URI of an entry of `face`, or of a face to be made.
    pub via: String,
    /// Cost of the next hop.
    #[serde(default)]
    pub cost: u64,
    /// Whether longer names with routes of their own also use this one.
    #[serde(default = "yes")]
    pub inherit: bool,
    /// Whether routes of shorter names are kept out of this one.
    #[serde(default)]
    pub capture: bool,
}

fn yes() -> bool {
    true
}

/// Trace requests (RFC 9507): what this node does with a name, told to whoever may ask. Who may
/// trace learns faces, routes and strategies, and may send requests on by a face of its choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Trace {
    /// Who is answered: `local` (applications on this machine), addresses of peers such as
    /// `192.0.2.0/24`, or `any`; others hear nothing. A face makes 20 requests a second. Empty:
    /// nobody.
    pub from: OneOrMany,
    /// What this node is called in its replies; routed to it, the name is answered to echo requests
    /// (RFC 9508), too. Empty: the router's name, else one made of the host's name.
    pub name: String,
}

impl Default for Trace {
    fn default() -> Self {
        Self { from: OneOrMany::of(&["local"]), name: String::new() }
    }
}

/// Metrics over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// Addresses of the HTTP server for `/metrics` (Prometheus text), `/healthz` (its threads
    /// answer) and `/readyz` (it is also open for newcomers). Empty: no server.
    pub listen: OneOrMany,
}

/// Log output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// What is logged to standard error: `error`, `warn`, `info`, `debug`, `trace`, also per module
    /// as in `info,onym_face=debug`.
    pub filter: String,
    /// How lines are written.
    pub format: LogFormat,
}

/// How lines of the log are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line: `time`, `level`, `target`, `message`, and the fields of the event by
    /// their names, such as `trace_id` and `span_id`.
    Json,
}

impl Default for Log {
    fn default() -> Self {
        Self { filter: "info".to_owned(), format: LogFormat::default() }
    }
}

/// Starting and stopping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Daemon {
    /// After SIGTERM, how long queued frames may take to leave, in milliseconds.
    pub drain_ms: u64,
    /// Raise the soft limit of open files to the hard limit at start.
    pub raise_nofile: bool,
}

impl Default for Daemon {
    fn default() -> Self {
        Self { drain_ms: 2000, raise_nofile: true }
    }
}
