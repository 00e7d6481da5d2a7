//! Settings of an authority, and its orders to the shell.

use crate::{RequestId, Secret};
use onym_crypto::Certificate;
use onym_wire::Name;

/// A challenge that an authority offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A code that the operator hands over, or the token of an invitation.
    Pin,
    /// A code by mail.
    Email,
    /// A certificate that is still valid.
    Possession,
    /// A TXT record.
    Dns,
}

impl Kind {
    /// Its word on the wire.
    #[must_use]
    pub fn word(self) -> &'static str {
        use crate::number as n;
        match self {
            Self::Pin => n::PIN,
            Self::Email => n::EMAIL,
            Self::Possession => n::POSSESSION,
            Self::Dns => n::DNS,
        }
    }

    /// The challenge of this word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        [Self::Pin, Self::Email, Self::Possession, Self::Dns].into_iter().find(|k| k.word() == word)
    }
}

/// Sends those who ask on to another authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirect {
    /// Full name of its certificate, with implicit digest.
    pub authority: Name,
    /// The parameter of the probe that decides.
    pub key: String,
    /// Its value; of an address the part behind the `@`. Case does not matter.
    pub value: String,
}

/// Who may have a certificate by a token that is good once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The identity that it is for.
    pub identity: Name,
    /// SHA-256 of the token.
    pub digest: [u8; 32],
    /// When it ends, in seconds since the Unix epoch.
    pub until_s: u64,
}

/// Bounds against strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Requests that are open. At the bound the oldest gives way, those without a challenge first.
    pub requests_max: usize,
    /// Replies kept for Interests that come again.
    pub replies_max: usize,
    /// How long they are kept, in milliseconds.
    pub reply_ms: u64,
    /// Certificates kept to be fetched; the oldest are forgotten.
    pub issued_max: usize,
    /// Replies that are signed each second, at most; what is asked beyond is not answered.
    pub replies_per_s: u32,
    /// Wrong codes in an hour, of all requests together; then nobody may choose a challenge with a
    /// code, invitations excepted.
    pub wrong_codes_per_hour: u32,
    /// Lookups of records that wait at a time; what is asked beyond is not answered.
    pub lookups_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            requests_max: 1024,
            replies_max: 2048,
            reply_ms: 60_000,
            issued_max: 1000,
            replies_per_s: 200,
            wrong_codes_per_hour: 1000,
            lookups_max: 16,
        }
    }
}

/// What an authority is told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its words about itself.
    pub info: String,
    /// Keys of parameters that a probe needs.
    pub probe_keys: Vec<String>,
    /// Longest validity, in seconds.
    pub max_validity_s: u64,
    /// Most components of an identity behind the prefix.
    pub max_suffix: usize,
    /// Challenges, the preferred one first.
    pub challenges: Vec<Kind>,
    /// Whose certificates are proof beside its own.
    pub anchors: Vec<Certificate>,
    /// Other authorities.
    pub redirects: Vec<Redirect>,
    /// Bounds.
    pub limits: Limits,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            info: String::new(),
            probe_keys: Vec::new(),
            max_validity_s: 90 * 86_400,
            max_suffix: 4,
            challenges: vec![Kind::Pin, Kind::Possession],
            anchors: Vec::new(),
            redirects: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// Why an Interest is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Silence {
    /// It is no Interest of the protocol.
    NotForUs,
    /// Its parameters digest is wrong.
    Damaged,
    /// [`Limits::replies_per_s`].
    Throttled,
    /// [`Limits::lookups_max`].
    Lookups,
    /// A reply could not be signed.
    Failed,
}

/// What becomes of an Interest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// This Data answers it. What [`Authority::poll_order`](super::Authority::poll_order) gives is to
    /// be done before it is sent.
    Data(Vec<u8>),
    /// It is answered by [`Authority::records`](super::Authority::records) for this request.
    Later(RequestId),
    /// It is not answered.
    Nothing(Silence),
}

/// What the shell is to do.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Order {
    /// Show this code to the operator, who gives it to the applicant if the identity is theirs.
    Show {
        /// The identity that is asked for.
        identity: Name,
        /// The code.
        code: Secret,
    },
    /// Send this code by mail.
    Mail {
        /// The address.
        address: String,
        /// The code.
        code: Secret,
        /// The identity that is asked for.
        identity: Name,
    },
    /// Look up TXT records; the answer goes to [`Authority::records`](super::Authority::records).
    Lookup {
        /// Whose challenge it is.
        id: RequestId,
        /// Name of the records.
        name: String,
    },
    /// An invitation was used: it must never count again.
    Spent(Invitation),
    /// A certificate was issued.
    Issued(Certificate),
}
