//! What callers of a fetch see.

use super::discovery::Find;
use super::pipeline::{PipelineCounters, PipelineOptions};
use crate::request::Unanswered;
use crate::verify::Verify;
use onym_wire::NackReason;
use onym_wire::name::Name;
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
    #[error("segment {segment} of {name} did not come after {tries} Interests")]
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
    /// The metadata cannot be read.
    #[error("the metadata {name} is not understood")]
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
    /// The connection is gone for good.
    #[error("the connection to the node is gone")]
    Disconnected,
}

/// How far a fetch is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The versioned name, once known.
    pub name: Option<Name>,
    /// Segments handed out.
    pub segments: u64,
    /// Segments in all, once known.
    pub segments_total: Option<u64>,
    /// Octets of content handed out.
    pub bytes: u64,
    /// Segments handed out whose signature nobody checked.
    pub unverified: u64,
    /// What the pipeline counted.
    pub counters: PipelineCounters,
    /// Least, mean and greatest round trip.
    pub rtt: Option<(Duration, Duration, Duration)>,
    /// Window, in segments.
    pub window: f64,
}
