//! What applications publish, and what becomes of it.

use crate::publication::AppId;
use onym_tables::FaceId;
use onym_wire::push::{Frame, Id, Options, RouteBuf, Strategy};
use smallvec::SmallVec;
use std::sync::Arc;

/// A publication of an application.
#[derive(Debug, Clone)]
pub struct Data<'a> {
    /// Its full identifier.
    pub id: Id,
    /// Its strategy.
    pub strategy: Strategy,
    /// What is published.
    pub payload: &'a [u8],
    /// The filter, for the implicit strategy.
    pub route: Option<RouteBuf>,
    /// The link, for the link-local strategy.
    pub face: Option<FaceId>,
    /// The item whose subscribers are meant, for algorithmic strategies.
    pub about: Option<Id>,
    /// Milliseconds for which caches may answer with it; 0: not.
    pub lifetime_ms: u64,
}

impl<'a> Data<'a> {
    /// A publication that needs no more than identifier and strategy.
    #[must_use]
    pub const fn new(id: Id, strategy: Strategy, payload: &'a [u8]) -> Self {
        Self { id, strategy, payload, route: None, face: None, about: None, lifetime_ms: 0 }
    }
}

/// What became of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Applications of this node that got it.
    pub local: usize,
    /// Frames for the network.
    pub frames: usize,
}

/// Why something was not published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The application does not publish this item.
    #[error("publish the item before its data")]
    NotPublisher,
    /// There are no subscribers, or another application of this node was started.
    #[error("the item is stopped: wait for start publish")]
    Stopped,
    /// The identifier is empty, too long or reserved.
    #[error("an identifier that applications may not publish under")]
    Id,
    /// The strategy needs a filter, a link or an item that is not given, or is unknown.
    #[error("the strategy lacks what it needs")]
    Unfit,
    /// Longer than a frame, under a strategy that does not cut publications.
    #[error("longer than one frame")]
    TooLong,
    /// Longer than the bound of fragmentation.
    #[error("longer than the bound of publications")]
    TooLarge,
}

/// Names of an item: mostly its own.
pub(crate) type Aliases = SmallVec<[Id; 1]>;

/// Those who get a publication, and the id that they subscribed to.
pub type Receivers = (Arc<[AppId]>, Id);

/// The place of a publication in the numbers of its stream (P-59).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// It has none.
    #[default]
    None,
    /// The stream and its number.
    Number(u64, u32),
    /// It is none, and says what number the next one of the stream will have.
    Reached(u64, u32),
}

impl Place {
    /// What the options of a frame say.
    #[must_use]
    pub fn of(frame: &Frame<'_>) -> Self {
        match (frame.options.number, frame.options.reached) {
            (Some((stream, number)), _) => Self::Number(stream, number),
            (None, Some((stream, next))) => Self::Reached(stream, next),
            (None, None) => Self::None,
        }
    }
}

/// What an application wants to be retained of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Keep {
    /// So many of the last publications; none: not any more.
    pub count: u64,
    /// Milliseconds after which one is forgotten; 0: not for its age.
    pub lifetime_ms: u64,
    /// Milliseconds within which the next one follows; 0: there is no such promise.
    pub deadline_ms: u32,
    /// What an application that is behind in several items is told first: 0 to 7.
    pub priority: u8,
    /// Its publisher waits for applications of its node that are behind, instead of their losing the
    /// oldest (P-93).
    pub waits: bool,
}

impl From<u64> for Keep {
    fn from(count: u64) -> Self {
        Self { count, ..Self::default() }
    }
}

/// What frames say of what is retained of their item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    /// How many publications at most.
    pub depth: u32,
    /// The number of the first.
    pub first: u32,
    /// Milliseconds after which this one is forgotten; 0: not for its age.
    pub lifetime_ms: u64,
    /// Milliseconds within which the next one follows; 0: there is no such promise.
    pub deadline_ms: u32,
    /// What an application that is behind in several items is told first.
    pub priority: u8,
}

impl Told {
    /// What the options of a frame say.
    #[must_use]
    pub fn of(options: &Options<'_>) -> Option<Self> {
        let (depth, first) = options.retained?;
        let (priority, deadline_ms) = options.terms().unwrap_or_default();
        let lifetime_ms = options.lifetime_ms.unwrap_or(0);
        Some(Self { depth, first, lifetime_ms, deadline_ms, priority })
    }
}

/// A publication that the control plane put together, checked or kept: a push FIB hands it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Handout {
    /// The shard whose push FIB it is.
    pub shard: u16,
    /// Names of the item.
    pub ids: SmallVec<[Id; 2]>,
    /// What was published; nothing of it came where it was given up.
    pub payload: Option<Arc<[u8]>>,
    /// The strategy without rendezvous that it came by: then every identifier above counts (P-28).
    pub came_by: Option<Strategy>,
    /// The application of this node that published it.
    pub except: Option<AppId>,
    /// Its place among the publications of its stream.
    pub place: Place,
    /// What its frame says of what is retained of the item.
    pub retained: Option<Told>,
}

/// What the control plane did of a publication.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Published {
    /// Frames for the network.
    pub frames: usize,
    /// Applications of this node that got it from the control plane.
    pub local: usize,
    /// What the push FIB that passed it is to hand out.
    pub handout: Option<Handout>,
}

/// The octets of a subscription's identifier.
pub(crate) type Name<'a> = &'a [u8];

/// Which identifiers above that of a publication count (P-28).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Above {
    /// Its parent.
    #[default]
    Parent,
    /// All, under strategies without rendezvous.
    All,
}

/// Subscriptions that get what is published under an id: to it and to its parent, or to everything
/// above it.
pub(crate) fn names_above(id: &Id, is_deep: bool) -> impl Iterator<Item = Name<'_>> {
    let above = if is_deep { id.len() } else { 2 };
    (1..=id.len()).rev().take(above).map(|depth| id.labels()[..depth].as_flattened())
}

/// Whether publications of this strategy go where an item goes, numbered where they leave the node.
#[must_use]
pub const fn is_of_item(strategy: Strategy) -> bool {
    matches!(strategy, Strategy::NODE_LOCAL | Strategy::DOMAIN_LOCAL | Strategy::INTER_DOMAIN)
}

impl Handout {
    /// A publication that waited for the answer to a subscription; its number was looked at.
    #[must_use]
    pub fn kept(ids: &[Id], payload: &[u8]) -> Self {
        let (ids, payload) = (SmallVec::from(ids), Some(payload.into()));
        let (place, retained, came_by) = (Place::None, None, None);
        Self { shard: 0, ids, payload, came_by, except: None, place, retained }
    }
}
