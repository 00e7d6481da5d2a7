//! Answering Interests.

use onym_frame::Buf;
use onym_tables::pit::Token;
use onym_wire::NackReason;
use onym_wire::data::{self, Data};
use onym_wire::interest::Interest;
use onym_wire::name::Name;
use std::fmt;

/// An Interest that arrived, checked; kept by an application that answers later.
#[derive(Debug, Clone)]
pub struct Incoming {
    pub(crate) bytes: Buf,
    /// Goes back with the answer, unchanged.
    pub(crate) token: Token,
}

impl Incoming {
    /// An Interest that came some other way than over an endpoint; `None` when it is malformed.
    #[must_use]
    pub fn of(bytes: Buf) -> Option<Self> {
        Interest::parse(&bytes).ok()?;
        Some(Self { bytes, token: Token::default() })
    }

    /// The view of the Interest.
    #[must_use]
    pub fn interest(&self) -> Interest<'_> {
        Interest::parse(&self.bytes).expect("invariant: checked when it arrived")
    }

    /// Whether the Data element `wire` answers it: name, CanBePrefix, implicit digest. Freshness is
    /// a matter of caches, not of producers.
    #[must_use]
    pub fn is_answered_by(&self, wire: &[u8]) -> bool {
        let digest = || onym_crypto::digest::implicit_digest(wire);
        Data::parse(wire).is_ok_and(|data| data::matches(&self.interest(), &data, digest))
    }
}

/// What a responder does with an Interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The Data that was appended to the buffer.
    Written,
    /// This Data, which is shared and not copied.
    Shared(Buf),
    /// A Nack with this reason.
    Nack(NackReason),
    /// Nothing now: the application answers by itself, or somebody else may.
    Nothing,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Written | Self::Shared(_) => f.write_str("data"),
            Self::Nack(reason) => write!(f, "nack {reason}"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

/// Answers the Interests under a prefix. Called from the thread that owns the endpoint, so it
/// should take microseconds; for more, return [`Answer::Nothing`] and reply later.
pub trait Respond: Send {
    /// Answers `incoming`: appends a Data element to `out`, or returns it otherwise.
    fn respond(&mut self, incoming: &Incoming, out: &mut Vec<u8>) -> Answer;
}

impl<F: FnMut(&Incoming, &mut Vec<u8>) -> Answer + Send> Respond for F {
    fn respond(&mut self, incoming: &Incoming, out: &mut Vec<u8>) -> Answer {
        self(incoming, out)
    }
}

/// Identifies a responder of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResponderId(pub(crate) u64);

/// Responders of one endpoint, at most.
pub const RESPONDERS_MAX: usize = 4096;

struct Responder {
    id: ResponderId,
    prefix: Name,
    respond: Box<dyn Respond>,
}

/// The prefix table of a producer: the longest prefix that matches an Interest answers it.
#[derive(Default)]
pub(crate) struct Responders {
    /// Longest prefix first.
    list: Vec<Responder>,
    next: u64,
}

impl fmt::Debug for Responders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.list.iter().map(|r| &r.prefix)).finish()
    }
}

impl Responders {
    /// `None` when the table is full.
    pub(crate) fn add(&mut self, prefix: Name, respond: Box<dyn Respond>) -> Option<ResponderId> {
        if self.list.len() >= RESPONDERS_MAX {
            return None;
        }
        let id = ResponderId(self.next);
        self.next += 1;
        let at = self.list.partition_point(|r| r.prefix.len() >= prefix.len());
        self.list.insert(at, Responder { id, prefix, respond });
        Some(id)
    }

    pub(crate) fn remove(&mut self, id: ResponderId) {
        self.list.retain(|r| r.id != id);
    }

    pub(crate) fn answer(&mut self, incoming: &Incoming, out: &mut Vec<u8>) -> Answer {
        let name = incoming.interest().name;
        let found = self.list.iter_mut().find(|r| r.prefix.as_ref().is_prefix_of(name));
        found.map_or(Answer::Nothing, |r| r.respond.respond(incoming, out))
    }
}
