//! What the parts publish, and what applications hear.

pub use crate::app::{AppId, To};
use crate::data::Handout;
use crate::fib::Delta;
use onym_crypto::sha256;
use onym_tables::{FaceId, SipKey};
use onym_wire::push::{Control, Flags, Id, Label, RouteBuf, Status, Strategy, reserved};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Where a publication goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The part of this node that listens at its identifier.
    Here,
    /// By a forwarding part.
    Route(RouteBuf),
    /// The neighbour at this face.
    Face(FaceId),
    /// All neighbours but the one at this face.
    Neighbours(Option<FaceId>),
}

/// A publication on its way between parts, or from an application to the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// Where it goes.
    pub target: Target,
    /// How it is disseminated.
    pub strategy: Strategy,
    /// Links that it may travel.
    pub hop_limit: u8,
    /// The shard by which it leaves, behind what left there before, when an application published it.
    pub by: Option<u16>,
    /// Names of the item.
    pub ids: Vec<Id>,
    /// Options of the frame, TLV.
    pub options: Vec<u8>,
    /// What is published.
    pub payload: Vec<u8>,
    /// What caches are told.
    pub mark: Mark,
}

/// What caches are told of a publication, and whether one sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    /// The flags of its frame.
    pub flags: Flags,
    /// Another node published it: it has the signature of that, or none.
    pub is_foreign: bool,
}

/// What a part of a node says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Said {
    /// To the part of this node that listens under `/root/node`: a message as it is, for nobody
    /// reads octets on its way.
    Here { root: Label, node: Label, message: Box<Control> },
    /// To other nodes.
    Publication(Publication),
}

impl Publication {
    /// A control message under `/root/node`.
    #[must_use]
    pub fn control(target: Target, root: Label, node: Label, message: &Control) -> Self {
        let strategy = match target {
            Target::Face(_) | Target::Neighbours(_) => Strategy::LINK_LOCAL,
            _ => Strategy::IMPLICIT,
        };
        let (ids, payload) = (vec![reserved::of(root, node)], message.octets());
        let (hop_limit, by, options, mark) = (HOPS_MAX, None, Vec::new(), Mark::default());
        Self { target, strategy, hop_limit, by, ids, options, payload, mark }
    }

    /// The way of a message to a node: nowhere to go means that it is this node.
    #[must_use]
    pub fn toward(route: Option<&RouteBuf>) -> Target {
        route.map_or(Target::Here, |route| Target::Route(route.clone()))
    }
}

/// Hop limit of control messages, and the most of any publication.
pub const HOPS_MAX: u8 = 255;

/// What an application hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The answer to the request with this tag.
    Status {
        /// The tag that the application gave.
        tag: u64,
        /// The answer.
        status: Status,
    },
    /// The item has subscribers: publish.
    StartPublish(Id),
    /// The item has none any more.
    StopPublish(Id),
    /// A scope came into being beneath one that is subscribed.
    ScopePublished(Id),
    /// A scope is gone.
    ScopeUnpublished(Id),
    /// So many publications never came.
    Missed(u64),
    /// So many publications that are retained were forgotten before the application had room for them.
    NoRoom(u64),
    /// Nothing came of the item within its deadline; to its publisher: nothing was published.
    Overdue {
        /// The id, of those of the item, that was subscribed.
        id: Id,
        /// The deadline.
        within: Duration,
    },
    /// No event: its shell says when the application has taken everything before
    /// ([`ControlPlane::took`](crate::ControlPlane::took)).
    Mark,
    /// No event: its shell reads nothing from the application until as many of these took that back
    /// as asked for it (P-93).
    Wait(bool),
    /// A publication.
    Data {
        /// The id, of those of the item, that was subscribed.
        id: Id,
        /// What was published; shared by everybody who gets it.
        payload: Arc<[u8]>,
        /// The strategy that it came by, one without rendezvous; none: that of the scope (P-74).
        came_by: Option<Strategy>,
    },
}

/// What the control plane tells shards, in this order where there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// The push FIB of a shard changes.
    Delta(Delta),
    /// An application hears an event.
    Tell(AppId, Event),
    /// A push FIB hands a publication out.
    Data(Box<Handout>),
}

impl Notice {
    /// Whether it is a change that stands before all that announces it, at every shard.
    #[must_use]
    pub const fn is_first(&self) -> bool {
        matches!(self, Self::Delta(delta) if delta.is_first())
    }
}

/// What the parts of a node have to say; the buffer is used again and again.
#[derive(Debug, Default)]
pub struct Outbox {
    /// Publications and messages within the node, in order.
    pub(crate) said: VecDeque<Said>,
    /// What shards are told, in order.
    pub notices: Vec<Notice>,
}

impl Outbox {
    /// Adds a publication.
    pub fn publish(&mut self, publication: Publication) {
        self.said.push_back(Said::Publication(publication));
    }

    /// Adds a control message under `/root/node`.
    pub fn control(&mut self, target: Target, root: Label, node: Label, message: Control) {
        if target != Target::Here {
            return self.publish(Publication::control(target, root, node, &message));
        }
        debug_assert_eq!(
            Control::parse(&message.octets()).as_ref(),
            Ok(&message),
            "within a node a message is what it would be on a link"
        );
        self.said.push_back(Said::Here { root, node, message: Box::new(message) });
    }

    /// Tells an application.
    pub fn tell(&mut self, app: AppId, event: Event) {
        self.notices.push(Notice::Tell(app, event));
    }

    /// Changes the push FIB of a shard.
    pub fn delta(&mut self, delta: Delta) {
        self.notices.push(Notice::Delta(delta));
    }

    /// What was said to an application that is gone is not heard.
    pub(crate) fn forget(&mut self, app: AppId) {
        self.notices.retain(|notice| !matches!(notice, Notice::Tell(to, _) if *to == app));
    }
}

/// Which of `nodes` is responsible for `what`: the highest random weight (P-42).
#[must_use]
pub fn responsible(what: Label, nodes: impl IntoIterator<Item = Label>) -> Option<Label> {
    let weight = |n: &Label| (SipKey::new(0, 0).words([what.to_u64(), n.to_u64()]), *n);
    nodes.into_iter().max_by_key(weight)
}

/// The scope of algorithmic identifiers of an item (section 5.1).
#[must_use]
pub fn algorithmic_scope(item: &Id) -> Id {
    let digest = sha256(&[item.octets()]);
    let mut label = [0; 8];
    label.copy_from_slice(&digest[..8]);
    Id::from_labels(item.parent()).child(Label(label))
}

/// What keyed filters of an item are made for (section 3.2).
#[must_use]
pub fn flow_of(id: &Id) -> u64 {
    let digest = sha256(&[id.octets()]);
    digest[..8].iter().fold(0, |n, octet| (n << 8) | u64::from(*octet))
}

/// The key that the control messages of a domain are authenticated with.
#[derive(Clone)]
pub struct DomainKey([u8; 64]);

impl std::fmt::Debug for DomainKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DomainKey(..)")
    }
}

impl DomainKey {
    /// From a shared secret.
    #[must_use]
    pub fn new(secret: &[u8]) -> Self {
        let mut key = [0; 64];
        if secret.len() > 64 {
            key[..32].copy_from_slice(&sha256(&[secret]));
        } else {
            key[..secret.len()].copy_from_slice(secret);
        }
        Self(key)
    }

    /// HMAC-SHA-256, its first 16 octets.
    fn mac(&self, octets: &[u8]) -> [u8; 16] {
        let inner = sha256(&[&self.0.map(|b| b ^ 0x36), octets]);
        let outer = sha256(&[&self.0.map(|b| b ^ 0x5c), &inner]);
        let mut mac = [0; 16];
        mac.copy_from_slice(&outer[..16]);
        mac
    }

    /// Appends the MAC of a message.
    pub fn seal(&self, message: &mut Vec<u8>) {
        let mac = self.mac(message);
        Control::put_mac(message, &mac);
    }

    /// Whether the message ends in its MAC.
    #[must_use]
    pub fn fits(&self, message: &[u8]) -> bool {
        Control::split_mac(message).is_some_and(|(body, mac)| {
            let own = self.mac(body);
            // Every octet is looked at: how many agree must not show in the time.
            own.iter().zip(mac).fold(0, |all, (a, b)| all | (a ^ b)) == 0
        })
    }
}
