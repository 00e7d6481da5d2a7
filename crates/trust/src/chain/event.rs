//! What a validator asks for and answers.

use super::refusal::Refusal;
use onym_wire::Name;

/// A packet that is believed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trusted {
    /// The rule that allowed its key; empty where everything passes.
    pub rule: String,
    /// The certificate whose key signed it.
    pub key: Name,
    /// The trust anchor that the chain ends at.
    pub anchor: Name,
    /// Certificates between the packet and its anchor.
    pub depth: usize,
}

/// A certificate, or a record of revocation, to get. Each name is asked for once, whatever waits
/// for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Says which fetch an answer belongs to.
    pub id: u64,
    /// What to ask for: as the key locator has it.
    pub name: Name,
    /// Whether to set CanBePrefix and MustBeFresh: the name is that of a key, and the newest
    /// certificate of it is wanted.
    pub newest: bool,
    /// [`Context::via`](super::Context::via) of the packet that it is for first.
    pub via: Option<u64>,
}

/// Why a certificate does not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Nobody answered in time.
    TimedOut,
    /// The network answered that it cannot: a Nack with this reason.
    Nack(u64),
    /// The answer is longer than a packet may be.
    TooLong,
}

impl Failure {
    pub(super) fn words(self) -> String {
        match self {
            Self::TimedOut => "nobody answered".into(),
            Self::Nack(reason) => format!("the network answered with a Nack, reason {reason}"),
            Self::TooLong => "the answer is longer than 8800 octets".into(),
        }
    }
}

/// What a [`Validator`](super::Validator) wants done or tells.
#[derive(Debug, Clone)]
pub enum Event {
    /// Get a certificate, then call [`Validator::certificate`](super::Validator::certificate) or [`Validator::failed`](super::Validator::failed).
    Fetch(Fetch),
    /// A packet that waited is judged.
    Judged {
        /// What it was submitted with.
        ticket: u64,
        /// The answer.
        result: Result<Trusted, Refusal>,
    },
}

/// What a claim came to.
pub(super) enum Judged {
    Done(Result<Trusted, Refusal>),
    /// The certificate that the locator means is needed first.
    Unknown,
}
