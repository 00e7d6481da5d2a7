//! Keys of the push half.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The push half: publish/subscribe (spec/push.md).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Push {
    /// Whether the node runs it.
    pub enabled: bool,
    /// Identifier of the node: 1 to 16 hexadecimal digits, another one than that of every other
    /// node of the domain. Empty: drawn at each start.
    pub node: String,
    /// Number of the node's inside, unique among all numbers of nodes and links of the domain.
    /// 0: drawn from the identifier of the node; then `scheme` must be `k`.
    pub inside: u32,
    /// What the node does for its domain. Some node of the domain has to be each.
    pub roles: Vec<PushRole>,
    /// Whether nodes of the same LAN that say so find each other, without links in the configuration:
    /// by hellos to the group 239.255.80.84 on every interface with an IPv4 address, and to ff12::5054
    /// on others, which name the first UDP listener of that kind. Who is found gets a face, which is a
    /// link; 64 at most. With `key` nobody is heard who does not have it. Needs the scheme `k` and
    /// `routing_links`.
    pub discover: PushDiscover,
    /// Secret that control messages of the domain are authenticated with, the same in all of its
    /// nodes. Empty: they are not authenticated.
    pub key: String,
    /// Label of the domain, 1 to 16 hexadecimal digits, other than those of all nodes and other
    /// domains: for links to other domains. Empty: there are none.
    pub domain: String,
    /// Secret that messages between domains are authenticated with. Empty: they are not.
    pub domain_key: String,
    /// Who signs what applications of the node publish for other nodes: an identity, key or
    /// certificate of the key store. Empty: it is not signed.
    pub sign_key: String,
    /// The entry of `trust` by whose rules publications of other nodes are delivered: the item
    /// `/LABEL/LABEL` is Data `/push/LABEL/LABEL` there, each label a component of 8 octets. Empty:
    /// everything is delivered.
    pub trust: String,
    /// Whether `trust` says whose control messages are obeyed, too, and this node signs its own with
    /// `sign_key`: a message to a part of a node (rendezvous, topology, dispatcher, repair,
    /// link-state, hello, domains) is Data `/push-control/PART/LABEL`, the label that of the node
    /// that sends it, for dispatcher and repair of the one that it is for, for domains of the domain.
    /// The same in the whole domain.
    pub trust_control: bool,
    /// Files and folders with the certificates of publishers, and those between them and the
    /// anchors: a publication names its key by digest, by which none can be fetched.
    pub publishers: Vec<String>,
    /// Octets of publications with a lifetime that are kept for who subscribes later, about: those
    /// with algorithmic identifiers, and those longer than a frame of strategies `domain-local` and
    /// `inter-domain`, which the nodes on their way keep, too (`onym publish --lifetime`). At the
    /// bound whoever holds most, an application or a neighbour, loses the oldest. 0: none are kept.
    pub cache_bytes_max: usize,
    /// How numbers of links become tags, the same in the whole domain: `bits` has no false
    /// positives up to 256 numbers, and numbers have to be given; `k` takes any numbers.
    pub scheme: PushScheme,
    /// Number that tags are drawn with, the same in the whole domain.
    pub seed: u64,
    /// Ones of a tag with the scheme `k`.
    pub k: u8,
    /// Tables of tags with the scheme `k`: the topology manager takes the one that serves best.
    pub tables: u8,
    /// Most ones of a filter, of 256; frames with more are dropped.
    pub fill_max: u32,
    /// Filters of several stages, one for each distance from the publisher: they have no false
    /// positives and carry larger trees.
    pub stages: PushStages,
    /// Secret of keyed tags (zFormation), the same in all nodes of the domain: data then goes by
    /// filters that serve one item, one way and one or two epochs. Empty: tags are not keyed.
    pub keyed_secret: String,
    /// How long an epoch of keyed tags lasts, in seconds; the same in the whole domain, whose
    /// clocks may differ by half of it.
    pub epoch_s: u64,
    /// Whether publishers and subscribers of node-local items are brought together on blackboards,
    /// at a socket beside the Unix socket (its path with `.boards`).
    pub boards: bool,
    /// Most octets of publications of items that are retained for who subscribes later
    /// (`onym publish --retain`), about: those of this node's applications, and those of other nodes
    /// that somebody here subscribed to. At the bound whoever holds most loses the oldest.
    pub retained_bytes_max: usize,
    /// Links to neighbours.
    pub link: Vec<PushLink>,
    /// Whether the neighbours that routing hears (`routing.network`) are links, too, at the costs that
    /// routing knows: then a link is named once. Needs the scheme `k`, which draws their numbers.
    pub routing_links: bool,
    /// Whether a topology manager tells nodes ways round their links that trees use (LIPSIN's
    /// backup filters): a node whose link is lost, or silent for 1.5 s, sends frames with a flat
    /// filter round it at once, until the trees moved. A fuller filter has more false positives.
    /// Only the setting of the topology manager counts.
    pub backups: bool,
    /// Most octets of a frame. Longer publications are cut, and what is lost of them is repaired;
    /// a frame that is longer than a link carries travels it in pieces, and is lost with any of
    /// them. At most 1400 where a link has the old framing, and better so where links lose much.
    pub frame_bytes_max: usize,
    /// Most octets of a publication.
    pub publication_bytes_max: usize,
    /// Most applications.
    pub apps_max: usize,
    /// Octets of publications that wait for an application at most; it misses what is beyond, and
    /// is told how many.
    pub app_queue_bytes_max: usize,
    /// How long publishers wait at a stretch for an application that does not keep up, in
    /// milliseconds; then it misses publications until it has caught up, and is told how many. For a
    /// neighbour on a stream they wait while it takes anything, and four times as long while it
    /// takes nothing. With `push.lease_ms` and more, subscriptions at other nodes lapse meanwhile.
    /// Publishers of retained items that ask for it (`onym publish --retain --wait`) wait as long.
    pub hold_ms: u64,
    /// Most scopes and items of a rendezvous; what applications of this node assert is bounded by
    /// the same number. Beyond half of it each application, beyond three quarters each node, has its
    /// share.
    pub vertices_max: usize,
    /// Most octets of a rendezvous, about; beyond three quarters of it each node has its share.
    pub graph_bytes_max: usize,
    /// Most octets of what other nodes say of their links, about; beyond three quarters of it each
    /// neighbour has its share.
    pub link_state_bytes_max: usize,
    /// Time after which a rendezvous forgets a node that is silent, in milliseconds.
    pub lease_ms: u64,
    /// File in which a rendezvous or topology node keeps its epoch and the published scopes, so
    /// that it is complete at once after a restart. Empty: they come back by those who published
    /// them.
    pub state: String,
    /// Members of etcd (`http://host:port`), where several rendezvous and topology nodes of a domain
    /// keep the same, and who of them serves: the same in all of them. Needs `push.node`; goes
    /// without `push.state`. While etcd is away, all goes on with who served before.
    pub etcd: Vec<String>,
    /// Before each key there: nodes of one domain have the same.
    pub etcd_prefix: String,
    /// File with the certificates of authorities that etcd's are signed by, for `https://`.
    pub etcd_ca: String,
    /// File with the certificate that is shown to etcd.
    pub etcd_cert: String,
    /// File with its key.
    pub etcd_key: String,
    /// Time after which a node that says nothing to etcd serves no more, in milliseconds.
    pub etcd_lease_ms: u64,
}

impl Default for Push {
    fn default() -> Self {
        Self {
            enabled: false,
            node: String::new(),
            inside: 0,
            roles: vec![PushRole::Rendezvous, PushRole::Topology],
            discover: PushDiscover::Off,
            key: String::new(),
            sign_key: String::new(),
            trust: String::new(),
            trust_control: false,
            publishers: Vec::new(),
            cache_bytes_max: 16 << 20,
            domain: String::new(),
            domain_key: String::new(),
            scheme: PushScheme::K,
            seed: 0,
            k: 5,
            tables: 8,
            fill_max: 179,
            stages: PushStages::WhereNeeded,
            keyed_secret: String::new(),
            epoch_s: 3600,
            boards: true,
            retained_bytes_max: 16 << 20,
            link: Vec::new(),
            routing_links: true,
            backups: false,
            frame_bytes_max: 8800,
            publication_bytes_max: 64 << 20,
            apps_max: 65_536,
            app_queue_bytes_max: 8 << 20,
            hold_ms: 250,
            vertices_max: 1_000_000,
            graph_bytes_max: 1 << 29,
            link_state_bytes_max: 16 << 20,
            lease_ms: 30_000,
            state: String::new(),
            etcd: Vec::new(),
            etcd_prefix: "onym/push/".to_owned(),
            etcd_ca: String::new(),
            etcd_cert: String::new(),
            etcd_key: String::new(),
            etcd_lease_ms: 3000,
        }
    }
}

/// What a node does for its domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PushRole {
    /// Matches publishers and subscribers.
    Rendezvous,
    /// Knows the map and makes the trees.
    Topology,
}

/// Whether nodes of the same LAN find each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PushDiscover {
    /// No.
    Off,
    /// Yes, and `roles` are for want of others: of several such nodes the one with the smallest
    /// identifier serves, while no other does.
    Standby,
    /// Yes, and `roles` are as anywhere else.
    Serve,
}

/// How numbers of links become tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PushScheme {
    /// One bit for each number below 256.
    Bits,
    /// Several bits for each number, in several tables.
    K,
}

/// When filters have stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PushStages {
    /// Where a flat filter has false positives or too many ones.
    WhereNeeded,
    /// Wherever they can be made.
    Always,
    /// Not at all.
    Never,
}

/// A link to a neighbour. The other node has one to this node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PushLink {
    /// The face: the URI of an entry of `face`, or of a face to be made. With scheme `tcp4` or
    /// `tcp6` and port 0 it is the connection that the neighbour makes from that address.
    pub face: String,
    /// Number of the link from here to there, unique as `push.inside` is. 0: drawn from the node
    /// and the face.
    #[serde(default)]
    pub number: u32,
    /// What crossing it costs. 0: what routing says of the neighbour at that face
    /// (`routing.neighbour.cost` and what it measures), so that a cost is configured once; 1 where
    /// routing knows none.
    #[serde(default)]
    pub cost: u16,
    /// What it carries from here to there, in megabits per second: then the node tells how much of
    /// that is used, by both halves together, and publications go round a link that is loaded while
    /// others are less so. 0: nobody knows, and its load counts nothing.
    #[serde(default)]
    pub capacity_mbit: u32,
    /// The label of the domain at its other end, when that is another one.
    #[serde(default)]
    pub domain: String,
}

impl PushLink {
    /// Whether a face that is the one link stays it as the other: what it costs and carries may differ.
    pub(crate) fn goes_on_as(&self, other: &Self) -> bool {
        let Self { face, number, cost: _, capacity_mbit: _, domain } = self;
        (face, number, domain) == (&other.face, &other.number, &other.domain)
    }
}
