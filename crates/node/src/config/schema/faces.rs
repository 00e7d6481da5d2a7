//! Keys of faces and listeners.

use onym_wire::mgmt::Persistency;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use std::path::PathBuf;

/// Faces and their listeners.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Faces {
    /// Most faces at a time; further ones are refused. An eighth is kept from peers that make a
    /// face by sending something; when they have the rest, those idle for 30 s give way.
    pub count_max: u32,
    /// Bound of the send queue of one face, in octets; frames beyond it are dropped as `queue_full`.
    pub queue_bytes_max: usize,
    /// How long an application is waited for that asks for Data and does not read it, in
    /// milliseconds: with its queue half full nothing is read from it while it takes anything, and
    /// for so long while it takes nothing. Meanwhile its queue may hold four times its bound. Then
    /// its Data is marked, and dropped as `queue_full`, until the queue is below half. 0: not at all.
    pub hold_ms: u64,
    /// An on-demand datagram face without traffic for this long is closed, in seconds.
    pub idle_timeout_s: u64,
    /// First delay before a permanent stream face connects again, in milliseconds; doubles up to
    /// `reconnect_max_ms`.
    pub reconnect_min_ms: u64,
    /// Longest delay before a permanent stream face connects again, in milliseconds.
    pub reconnect_max_ms: u64,
    /// Longest wait for a connection to be made, in milliseconds.
    pub connect_timeout_ms: u64,
    /// Congestion marking.
    pub congestion: Congestion,
    /// Unix stream socket for local applications.
    pub unix: Unix,
    /// UDP.
    pub udp: Udp,
    /// TCP.
    pub tcp: Tcp,
    /// WebSocket.
    pub websocket: WebSocket,
    /// QUIC.
    pub quic: Quic,
    /// Ethernet.
    pub ether: Ether,
    /// Shared memory for local applications.
    pub shm: Shm,
}

impl Default for Faces {
    fn default() -> Self {
        Self {
            count_max: 16_384,
            queue_bytes_max: 4 << 20,
            hold_ms: 250,
            idle_timeout_s: 600,
            reconnect_min_ms: 1000,
            reconnect_max_ms: 300_000,
            connect_timeout_ms: 4000,
            congestion: Congestion::default(),
            unix: Unix::default(),
            udp: Udp::default(),
            tcp: Tcp::default(),
            websocket: WebSocket::default(),
            quic: Quic::default(),
            ether: Ether::default(),
            shm: Shm::default(),
        }
    }
}

/// Congestion marking (NDNLPv2), for faces that do not say otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Congestion {
    /// Mark packets when the send queue stays long, and Data that came through a UDP receive
    /// buffer more than a quarter full. Ethernet and WebSocket faces mark only when they are asked
    /// to.
    pub marking: bool,
    /// How long the queue must stay above the threshold before the first mark, in milliseconds.
    pub base_ms: u64,
    /// Queue length that counts as congested, in octets.
    pub threshold_bytes: u64,
}

impl Default for Congestion {
    fn default() -> Self {
        Self { marking: true, base_ms: 100, threshold_bytes: 65_536 }
    }
}

/// Unix stream socket for local applications.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Unix {
    /// Path of the socket. `auto`: `/run/nfd/nfd.sock` as root, else `$XDG_RUNTIME_DIR/onym/nfd.sock`,
    /// else `/tmp/onym-<uid>/nfd.sock`. Empty: no socket.
    pub path: UnixPath,
}

/// Path of the Unix socket; `auto` is the default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct UnixPath(pub String);

impl Default for UnixPath {
    fn default() -> Self {
        Self("auto".to_owned())
    }
}

/// A list that may also be written as one string; an empty string is the empty list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct OneOrMany(pub Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = OneOrMany;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a list of strings, or one string with commas between")
            }
            fn visit_str<E>(self, text: &str) -> Result<OneOrMany, E> {
                let parts = text.split(',').map(str::trim).filter(|p| !p.is_empty());
                Ok(OneOrMany(parts.map(str::to_owned).collect()))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> Result<OneOrMany, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = seq.next_element()? {
                    list.push(item);
                }
                Ok(OneOrMany(list))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl OneOrMany {
    /// The list of these strings.
    #[must_use]
    pub fn of(items: &[&str]) -> Self {
        Self(items.iter().map(|s| (*s).to_owned()).collect())
    }
}

/// UDP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Udp {
    /// Addresses where peers are accepted. Empty: no listener.
    pub listen: OneOrMany,
    /// Largest frame sent in one datagram, in octets, 64 to 8800; longer packets are fragmented.
    pub mtu: usize,
    /// Whether faces to one peer find the longest frame that arrives there, once they send long packets
    /// to a peer that answers their probes. Those whose own `mtu` was set do not.
    pub find_mtu: bool,
    /// Multicast groups with their port, such as `224.0.23.170:56363` or `[ff02::1234]:56363`.
    /// Each makes one face per interface.
    pub multicast: OneOrMany,
    /// Interfaces used for multicast. Empty: all that are up and can multicast.
    pub multicast_interfaces: OneOrMany,
    /// Whether the multicast link is ad hoc: an Interest may leave where it came from.
    pub multicast_ad_hoc: bool,
    /// Socket receive buffer asked for, in octets; the kernel gives at most its own limit unless
    /// the node may pass it.
    pub receive_buffer_bytes: usize,
    /// Socket send buffer asked for, in octets.
    pub send_buffer_bytes: usize,
}

impl Default for Udp {
    fn default() -> Self {
        Self {
            listen: OneOrMany::of(&["0.0.0.0:6363", "[::]:6363"]),
            mtu: 8800,
            find_mtu: true,
            multicast: OneOrMany::default(),
            multicast_interfaces: OneOrMany::default(),
            multicast_ad_hoc: false,
            receive_buffer_bytes: 8 << 20,
            send_buffer_bytes: 4 << 20,
        }
    }
}

/// TCP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tcp {
    /// Addresses where peers are accepted. Empty: no listener.
    pub listen: OneOrMany,
    /// A face whose two addresses are in these subnets is local (may use `/localhost`).
    pub local: OneOrMany,
}

impl Default for Tcp {
    fn default() -> Self {
        Self {
            listen: OneOrMany::of(&["0.0.0.0:6363", "[::]:6363"]),
            local: OneOrMany::of(&["127.0.0.0/8", "::1/128"]),
        }
    }
}

/// WebSocket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WebSocket {
    /// Addresses where browsers are accepted. Empty: no listener.
    pub listen: OneOrMany,
    /// The same with TLS (`wss`), as pages that came by HTTPS ask for. Empty: no listener.
    pub tls_listen: OneOrMany,
    /// The certificate shown there, with its chain, a PEM file. It is read again when it changes; what
    /// cannot be used is logged, and the one before holds.
    pub tls_certificate: Option<PathBuf>,
    /// Its key, a PEM file.
    pub tls_key: Option<PathBuf>,
    /// Pages that may connect, by their origin: `loopback` (pages of this machine), `any`, `null`
    /// (pages without an origin, such as files), or `scheme://host[:port]` as browsers write it.
    /// Programs that are no browsers send no origin and are not asked for one.
    pub origins: OneOrMany,
    /// Names by which browsers may look for the node, beside its addresses and `localhost`: a host
    /// name without port, or `any`. Other names may have been pointed here after a page was loaded.
    pub hosts: OneOrMany,
    /// Whether a face whose two addresses are loopback is local (may use `/localhost`). A proxy on
    /// this machine that does not say for whom it speaks makes everybody local then.
    pub local: bool,
}

impl Default for WebSocket {
    fn default() -> Self {
        Self {
            listen: OneOrMany::of(&["0.0.0.0:9696", "[::]:9696"]),
            tls_listen: OneOrMany::default(),
            tls_certificate: None,
            tls_key: None,
            origins: OneOrMany::of(&["loopback"]),
            hosts: OneOrMany::default(),
            local: false,
        }
    }
}

/// QUIC, in programs that were built with it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Quic {
    /// Addresses where nodes are accepted by QUIC, and browsers by WebTransport over HTTP/3: pages that
    /// `faces.websocket.origins` and `faces.websocket.hosts` let in. Port 6367 is the usual one. Empty:
    /// no listener.
    pub listen: OneOrMany,
    /// The certificate shown there, with its chain, a PEM file. It is read again when it changes; what
    /// cannot be used is logged, and the one before holds.
    pub certificate: Option<PathBuf>,
    /// Its key, a PEM file.
    pub key: Option<PathBuf>,
    /// Certificates of the nodes that faces of the scheme `quic` lead to, a PEM file, read at each
    /// connection: one that shows another certificate is not connected to. Without it whoever answers
    /// is believed, as with UDP.
    pub peers: Option<PathBuf>,
}

/// Ethernet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ether {
    /// Interfaces with a multicast face and a listener for unicast peers; needs the privilege for
    /// raw sockets. Empty: off.
    pub interfaces: OneOrMany,
    /// The multicast group.
    pub multicast: String,
}

impl Default for Ether {
    fn default() -> Self {
        Self { interfaces: OneOrMany::default(), multicast: "01:00:5e:00:17:aa".to_owned() }
    }
}

/// Shared memory for local applications.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Shm {
    /// Whether an application on the Unix socket may ask for rings.
    pub enabled: bool,
    /// Longest ring of one direction, in octets, a power of two; an application costs two of them.
    pub ring_bytes: usize,
    /// Most applications with rings at a time; further ones are refused and may use the socket.
    pub count_max: usize,
}

impl Default for Shm {
    fn default() -> Self {
        Self { enabled: true, ring_bytes: 256 << 10, count_max: 256 }
    }
}

/// One face made at start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StaticFace {
    /// The remote end, such as `udp4://192.0.2.1:6363`; host names are looked up at start.
    pub uri: String,
    /// The local end: the interface of Ethernet, `dev://eth0`; the listener that a UDP face speaks
    /// from, `udp4://192.0.2.1:6363`, by default the one with the address that the system would take,
    /// and from a hello with the MAC of `push.key` on the one where that arrived.
    #[serde(default)]
    pub local: Option<String>,
    /// How long it lives: `persistent` or `permanent`.
    #[serde(default = "permanent", with = "persistency")]
    #[schemars(schema_with = "persistency::schema")]
    pub persistency: Persistency,
    /// Largest frame, in octets.
    #[serde(default)]
    pub mtu: Option<usize>,
    /// Whether frames are acknowledged and sent again (NDNLPv2 reliability).
    #[serde(default)]
    pub reliability: bool,
    /// Congestion marking, where it differs from `faces.congestion.marking`.
    #[serde(default)]
    pub congestion_marking: Option<bool>,
    /// Bound of the send queue, in octets, where it differs from `faces.queue_bytes_max`.
    #[serde(default)]
    pub queue_bytes_max: Option<usize>,
    /// Faults to inject, for experiments.
    #[serde(default)]
    pub fault: Option<Fault>,
    /// File that receives a capture of every frame, in pcapng.
    #[serde(default)]
    pub pcap: Option<String>,
    /// How frames are laid out, for UDP and Ethernet: `packets`, or `old-push`, the framing of old
    /// Blackadder nodes (UDP, usually port 55555, or EtherType 0x080A), which carries frames of the
    /// push half only.
    #[serde(default)]
    pub framing: Framing,
}

/// How frames are laid out on a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Framing {
    /// One packet each.
    #[default]
    Packets,
    /// As Blackadder nodes do.
    OldPush,
}

/// [`Persistency`] by its word.
mod persistency {
    use onym_wire::mgmt::Persistency;
    use schemars::{Schema, SchemaGenerator, json_schema};
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn serialize<S: Serializer>(value: &Persistency, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(value.word())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Persistency, D::Error> {
        let word = String::deserialize(from)?;
        Persistency::from_word(&word).ok_or_else(|| {
            let expected = "`persistent`, `on-demand` or `permanent`";
            de::Error::custom(format_args!("unknown variant `{word}`, expected {expected}"))
        })
    }

    pub(super) fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"oneOf": [
            {"const": "persistent", "type": "string", "description": "Until its socket fails."},
            {"const": "on-demand", "type": "string",
                "description": "Made by a peer's first packet; closed when idle."},
            {"const": "permanent", "type": "string",
                "description": "Survives failures: a stream connects again."},
        ]})
    }
}

fn permanent() -> Persistency {
    Persistency::Permanent
}

/// Faults to inject on a face, repeatable by their seed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fault {
    /// Share of frames lost in each direction, 0 to 1.
    pub loss: f64,
    /// Delay added in each direction, in milliseconds.
    pub delay_ms: f64,
    /// Most octets per second in each direction; 0 without limit.
    pub rate_bytes: u64,
    /// Seed of the losses.
    pub seed: u64,
}

impl StaticFace {
    /// A permanent face to `uri` with the default options.
    #[must_use]
    pub fn permanent(uri: &str) -> Self {
        Self {
            uri: uri.to_owned(),
            local: None,
            persistency: Persistency::Permanent,
            mtu: None,
            reliability: false,
            congestion_marking: None,
            queue_bytes_max: None,
            fault: None,
            pcap: None,
            framing: Framing::Packets,
        }
    }
}
