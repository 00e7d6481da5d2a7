//! Messages between an application of the push half and its node.

use crate::error::Error as ClientError;
use onym_frame::Buf;
use onym_wire::push::app::{Message, kind};
use onym_wire::push::{Id, Label, Role, RouteBuf, Status, Strategy};
use std::time::Duration;

/// Why an operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No node, or its name is wrong.
    #[error(transparent)]
    Node(#[from] ClientError),
    /// The application wants to end ([`App::stop_when`](super::App::stop_when)).
    #[error("stopped")]
    Stopped,
    /// The connection ended.
    #[error("the connection to the node was lost: {0}")]
    Gone(String),
    /// The node refused.
    #[error("{what}: {status}")]
    Refused {
        /// What was asked for.
        what: String,
        /// The answer.
        status: Status,
    },
    /// The node does not answer: it has no push half, or is of another kind.
    #[error("the node does not answer {0}")]
    Silent(String),
    /// The node sent what is no message.
    #[error("the node sent a message that cannot be parsed: {0}")]
    Malformed(String),
    /// The application does not take what it is told, and no more can be kept.
    #[error("too many {0} are waiting: the application does not take them")]
    NotTaken(&'static str),
}

/// What the node says of itself when an application registers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeInfo {
    /// Its identifier.
    pub node: Label,
    /// What it does for its domain.
    pub role: Role,
    /// Number of the application.
    pub number: u64,
    /// Most octets of a publication.
    pub length_max: u64,
    /// Number of this life of the node.
    pub epoch: u64,
    /// Its program, for people.
    pub text: String,
}

/// What an application hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The item has subscribers: publish.
    StartPublish(Id),
    /// The item has none any more.
    StopPublish(Id),
    /// A scope came into being beneath one that is subscribed.
    ScopePublished(Id),
    /// A scope is gone.
    ScopeUnpublished(Id),
    /// A publication.
    Data {
        /// The id, of those of the item, that was subscribed.
        id: Id,
        /// What was published.
        payload: Buf,
        /// The strategy that it came by, where that is one without rendezvous: link-local, broadcast,
        /// implicit or algorithmic; none: that of the scope that is subscribed.
        came_by: Option<Strategy>,
    },
    /// So many publications were not delivered, because the application did not keep up; also when it
    /// waited for room or for an answer and did not take its events.
    Missed(u64),
    /// So many publications were lost on their way to the node of this application, whatever the
    /// application did: a node or link between failed, or had no room.
    Lost(u64),
    /// Nothing came of the item within the deadline that its publisher gave it; to the publisher:
    /// it published nothing. Told once, until something comes.
    Overdue {
        /// The id, of those of the item, that was subscribed.
        id: Id,
        /// The deadline.
        within: Duration,
    },
    /// Data that was published without waiting for an answer was refused.
    Refused {
        /// The item.
        id: Id,
        /// Why.
        status: Status,
    },
}

/// A publication.
#[derive(Debug, Clone)]
pub struct Publication<'a> {
    /// Its full identifier.
    pub id: &'a Id,
    /// Its strategy.
    pub strategy: Strategy,
    /// What is published.
    pub payload: &'a [u8],
    /// The filter, for the implicit strategy.
    pub route: Option<&'a RouteBuf>,
    /// The neighbour, for the link-local strategy.
    pub node: Option<Label>,
    /// The item whose subscribers are meant, for algorithmic strategies.
    pub about: Option<&'a Id>,
    /// Milliseconds for which caches may answer with it: under algorithmic strategies, and under
    /// domain-local and inter-domain where it is longer than a frame; 0: not.
    pub lifetime_ms: u64,
}

impl<'a> Publication<'a> {
    /// A publication that needs no more than identifier and strategy.
    #[must_use]
    pub const fn new(id: &'a Id, strategy: Strategy, payload: &'a [u8]) -> Self {
        Self { id, strategy, payload, route: None, node: None, about: None, lifetime_ms: 0 }
    }

    pub(super) fn message(&self, tag: u32) -> Message<'a> {
        Message {
            id: self.id.octets(),
            strategy: self.strategy,
            route: self.route.map(RouteBuf::octets),
            node: self.node,
            about: self.about.map_or(&[], Id::octets),
            payload: self.payload,
            lifetime_ms: self.lifetime_ms,
            ..Message::new(kind::PUBLISH, tag)
        }
    }
}

/// How an item is delivered, as its publisher chooses.
///
/// Without a history the publisher waits for who is behind, as long as `push.hold_ms` says, and who
/// is slower loses what is new. With one the oldest goes, and nobody waits unless the publisher
/// [`waits`](Retain::waits). Either is told as [`Event::Missed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retain {
    /// So many of the last publications are kept for who subscribes later and who is behind, 65,535
    /// at most; none: not any more, whatever else is here.
    pub count: u64,
    /// Each for so long, an hour at most; none: whatever its age.
    pub lifetime: Option<Duration>,
    /// The publisher promises that the next publication follows within so long, an hour at most:
    /// otherwise subscribers and publisher hear [`Event::Overdue`].
    pub deadline: Option<Duration>,
    /// What an application that is behind in several items is told first: 0, the last one, to 7.
    pub priority: u8,
    /// The publisher waits for applications of its node that are behind, before the oldest goes: the
    /// node takes nothing from it, as long as `push.hold_ms` says at a stretch. Who is slower loses
    /// the oldest until it has caught up. Nobody waits for subscribers at other nodes, and a node of an
    /// earlier version for none: there the oldest goes.
    pub waits: bool,
}

impl Retain {
    /// The last publications, whatever their age and without promises.
    #[must_use]
    pub fn last(count: u64) -> Self {
        Self { count, ..Self::default() }
    }

    pub(super) fn message<'a>(&self, id: &'a Id, tag: u32) -> Message<'a> {
        // Part of a millisecond is one: none would be for ever.
        let ms = |time: Duration| time.as_micros().div_ceil(1000).max(1);
        Message {
            id: id.octets(),
            number: self.count,
            lifetime_ms: self.lifetime.map_or(0, |time| ms(time).try_into().unwrap_or(u64::MAX)),
            deadline_ms: self.deadline.map_or(0, |time| ms(time).try_into().unwrap_or(u32::MAX)),
            priority: self.priority,
            waits: self.waits,
            ..Message::new(kind::RETAIN, tag)
        }
    }
}

/// What became of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Applications of the same node that got it.
    pub local: u64,
    /// Frames that left for other nodes.
    pub frames: u64,
}
