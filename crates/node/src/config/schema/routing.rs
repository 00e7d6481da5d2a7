//! Keys of routing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Routing: the node finds ways to other nodes of its network and their prefixes, by the protocol
/// of ndn-dv. It is an application of the node, run by the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Routing {
    /// Name of the network, one to three components. Empty: no routing.
    pub network: String,
    /// Name of this router: the network and one more component. Empty: the network and the host's
    /// name.
    pub router: String,
    /// Links to neighbours. One end of a link is enough.
    pub neighbour: Vec<RoutingNeighbour>,
    /// Prefixes that other routers of the network may announce, and all under them. Empty: any.
    pub accept: Vec<String>,
    /// Further networks of this node, which is then a border between networks.
    pub area: Vec<RoutingArea>,
    /// What one network hears of another. Nothing is told between networks without an entry.
    pub export: Vec<RoutingExport>,
    /// Time between two look-ups of host names of neighbours, in milliseconds.
    pub resolve_interval_ms: u64,
    /// Look for neighbours on links with several peers: on the multicast faces of this node, which
    /// are made of `faces.udp.multicast` and `faces.ether.interfaces`; when both are empty, the usual
    /// groups of UDP are joined on all interfaces.
    pub discover: bool,
    /// Folder of `network.cert`, `router.key`, `router.cert`, the bootstrap time and the neighbours
    /// held down; what is missing is made. Empty: `/var/lib/onym/routing` for root, else `onym/routing` in the user's
    /// state folder.
    pub folder: String,
    /// Believe whoever reaches the node, without keys: for laboratories.
    pub insecure: bool,
    /// The entry of `trust` whose rules say who may sign what in routing. Empty: those of deployed
    /// routers, from the anchor `network.cert`, less what the file `revoked` in the folder names.
    pub trust: String,
    /// Which routes of applications are announced: `client` (origin client, as other routers do)
    /// or `all` (whatever an application registers).
    pub announce: String,
    /// Announce what self-learning found and applications announced with a signature, too, as long
    /// as the routes of these prefix announcements last; not what leads to other routers.
    pub announce_learned: bool,
    /// A link costs one more for each of these milliseconds of its round-trip time, as measured; 0:
    /// time adds nothing. Between routers of this kind only.
    pub cost_rtt_ms: u64,
    /// A link costs one more for each so many of a hundred probes that are lost; 0: loss adds
    /// nothing.
    pub cost_loss_percent: u32,
    /// Time between two signs of life, in milliseconds.
    pub advertise_interval_ms: u64,
    /// A neighbour that is silent for so long is dead, in milliseconds; at least twice the
    /// interval.
    pub dead_interval_ms: u64,
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            network: String::new(),
            router: String::new(),
            neighbour: Vec::new(),
            accept: Vec::new(),
            area: Vec::new(),
            export: Vec::new(),
            resolve_interval_ms: 30_000,
            discover: false,
            folder: String::new(),
            insecure: false,
            trust: String::new(),
            announce: "client".to_owned(),
            announce_learned: true,
            cost_rtt_ms: 0,
            cost_loss_percent: 0,
            advertise_interval_ms: 5_000,
            dead_interval_ms: 30_000,
        }
    }
}

/// A link to a neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutingNeighbour {
    /// Its URI, such as `udp4://192.0.2.1:6363`. A host name in place of the address,
    /// `udp://router.example`, is looked up again and again (`routing.resolve_interval_ms`), and the link
    /// follows it.
    pub uri: String,
    /// MTU of the face, in octets.
    #[serde(default)]
    pub mtu: Option<u64>,
    /// Cost of the link.
    #[serde(default = "one")]
    pub cost: u64,
}

/// A further network of this node: it has a router of its own there, with keys of its own. A link is in
/// one network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutingArea {
    /// Name of the network, one to three components.
    pub network: String,
    /// Name of this router in it. Empty: the network and the host's name.
    #[serde(default)]
    pub router: String,
    /// Links to neighbours in it.
    #[serde(default)]
    pub neighbour: Vec<RoutingNeighbour>,
    /// Look for neighbours in it, as `routing.discover` does in the first network. A neighbour that is in
    /// several networks of this node gets a link in the one where it is met first.
    #[serde(default)]
    pub discover: bool,
    /// What its routers may announce, as `routing.accept`: at a border they cannot draw what belongs to
    /// another network then.
    #[serde(default)]
    pub accept: Vec<String>,
    /// Folder of its keys, as `routing.folder`. Empty: a folder in that one.
    #[serde(default)]
    pub folder: String,
    /// The entry of `trust` for it, as `routing.trust`.
    #[serde(default)]
    pub trust: String,
}

/// What is announced of one network in another, at a border.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutingExport {
    /// The network that reaches it.
    pub from: String,
    /// The network that hears of it.
    pub to: String,
    /// Prefixes in place of all under them.
    #[serde(default)]
    pub summary: Vec<RoutingSummary>,
    /// Whether prefixes under no summary are announced one by one.
    #[serde(default = "yes")]
    pub others: bool,
}

/// One prefix in place of many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoutingSummary {
    /// What is announced.
    pub prefix: String,
    /// At what cost, whatever is under it.
    #[serde(default = "one")]
    pub cost: u64,
    /// Whether it is announced at all times, not only while something under it is reached.
    #[serde(default)]
    pub always: bool,
}

fn yes() -> bool {
    true
}

fn one() -> u64 {
    1
}
