//! What callers of a fetch see.

use super::discovery::Find;
use super::pipeline::{PipelineCounters, PipelineOptions};
use crate::open::{NotOpened, Opener};
use crate::request::Unanswered;
use crate::verify::Verify;
use onym_wire::NackReason;
use onym_wire::name::Name;
use std::sync::Arc;
use std::time::Duration;

/// How to fetch.
#[derive(Debug, Clone, Default)]
pub struct FetchOptions {
    /// Window, timeouts, bounds.
    pub pipeline: PipelineOptions,
    /// How the version is found.
    pub find: Find,
    /// Caches answer with fresh segments only.
    pub must_be_fresh: bool,
    /// How segments are verified.
    pub verify: Verify,
    /// What makes encrypted segments readable; without it content is handed out as it is.
    pub open: Option<Arc<dyn Opener>>,
    /// What the producer can make of it at most.
    pub bounds: FetchBounds,
    /// Which segments.
    pub segments: Segments,
}

/// The segments of an object that a fetch hands out; by default all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Segments {
    /// The first one.
    pub first: u64,
    /// The last one; the object may end before it. `None` is the end of the object.
    pub last: Option<u64>,
    /// Octets of content that each has, but the last one of the object or of these: a fetch ends
    /// with [`FetchError::Uneven`] when another has not.
    pub size: Option<u64>,
}

/// What a fetch takes from its producer at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchBounds {
    /// Octets of content. A segment before the last one counts as [`SEGMENT_OCTETS_MIN`] at least,
    /// so that empty ones have an end too.
    pub size_max: u64,
    /// Times that the end of the object (FinalBlockId) may move.
    pub end_moves_max: u32,
    /// Metadata that nobody verified may lead outside the name asked for.
    pub follow: bool,
}

/// What a segment before the last one counts as at least, against [`FetchBounds::size_max`].
pub const SEGMENT_OCTETS_MIN: u64 = 64;

impl Default for FetchBounds {
    fn default() -> Self {
        Self { size_max: 4_000_000_000, end_moves_max: 16, follow: false }
    }
}

/// Identifies a fetch of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FetchId(pub(crate) u64);

/// Why a fetch ended without its object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// Neither metadata nor a segment answered.
    #[error("nothing found under {name}: {why}")]
    NotFound {
        /// The name asked for.
        name: Name,
        /// The last answer.
        why: Unanswered,
    },
    /// A segment did not come although asked for as often as allowed.
    #[error("no answer for segment {segment} of {name} after {tries} Interests")]
    Exhausted {
        /// The versioned name.
        name: Name,
        /// The segment.
        segment: u64,
        /// Interests sent for it.
        tries: u32,
    },
    /// A segment was refused.
    #[error("segment {segment} of {name} was refused: Nack {reason}")]
    Refused {
        /// The versioned name.
        name: Name,
        /// The segment.
        segment: u64,
        /// Why.
        reason: NackReason,
    },
    /// The producer says that it has no such Data (ContentType Nack).
    #[error("the producer has no {name}")]
    ProducerNack {
        /// The name of its answer.
        name: Name,
    },
    /// A Data that does not verify.
    #[error("{name} does not verify: {source}")]
    NotVerified {
        /// The name of the Data.
        name: Name,
        /// Why.
        source: onym_crypto::Error,
    },
    /// A Data that cannot be decrypted.
    #[error("{name} cannot be read: {source}")]
    NotOpened {
        /// The name of the Data.
        name: Name,
        /// Why.
        source: NotOpened,
    },
    /// The metadata cannot be read.
    #[error("the metadata {name} cannot be parsed")]
    Metadata {
        /// The name of the metadata.
        name: Name,
    },
    /// The end of the object moved before a segment that was handed out.
    #[error("{name} ends before segment {segment}, which was received")]
    EndMoved {
        /// The versioned name.
        name: Name,
        /// The segment.
        segment: u64,
    },
    /// The object is larger than [`FetchBounds::size_max`].
    #[error("{name} is larger than {size_max} octets{}", announced(*last))]
    TooLarge {
        /// The versioned name.
        name: Name,
        /// The bound.
        size_max: u64,
        /// The last segment, where the producer named one.
        last: Option<u64>,
    },
    /// A segment is not as long as [`Segments::size`] says.
    #[error("segment {segment} of {name} has {octets} octets of content, {size} were announced")]
    Uneven {
        /// The versioned name.
        name: Name,
        /// The segment.
        segment: u64,
        /// What it has.
        octets: u64,
        /// What it should have.
        size: u64,
    },
    /// The end of the object moved more often than [`FetchBounds::end_moves_max`] allows.
    #[error("the end of {name} moved {moves} times")]
    EndUnsettled {
        /// The versioned name.
        name: Name,
        /// How often.
        moves: u32,
    },
    /// Metadata that nobody verified leads outside the name asked for.
    #[error("the metadata of {name} points to another name, {to}")]
    Redirected {
        /// The name asked for.
        name: Name,
        /// Where it leads.
        to: Name,
    },
    /// The connection is gone for good.
    #[error("the connection to the node was lost")]
    Disconnected,
}

fn announced(last: Option<u64>) -> String {
    last.map_or_else(String::new, |last| {
        format!(": its producer announces segment {last} as the last")
    })
}

/// How far a fetch is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The versioned name, once known.
    pub name: Option<Name>,
    /// Segments handed out.
    pub segments: u64,
    /// Segments in all that were asked for, once known.
    pub segments_total: Option<u64>,
    /// Octets of content handed out.
    pub bytes: u64,
    /// Segments handed out whose signature nobody checked.
    pub unverified: u64,
    /// Longest time between two segments that came.
    pub gap: Duration,
    /// What the pipeline counted.
    pub counters: PipelineCounters,
    /// Least, mean and greatest round trip.
    pub rtt: Option<(Duration, Duration, Duration)>,
    /// Window, in segments.
    pub window: f64,
}
