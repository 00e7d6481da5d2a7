//! Errors, and their codes in the protocol.

use onym_wire::Malformed;
use std::fmt;

/// Code of an error reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorCode(pub u64);

impl ErrorCode {
    /// The Interest is not one of the protocol.
    pub const BAD_INTEREST: Self = Self(1);
    /// The parameters cannot be read.
    pub const BAD_FORMAT: Self = Self(2);
    /// A signature is missing or wrong.
    pub const BAD_SIGNATURE: Self = Self(3);
    /// A parameter is wrong.
    pub const INVALID: Self = Self(4);
    /// The name may not be had, or not by this proof.
    pub const NAME: Self = Self(5);
    /// The validity period is not granted.
    pub const VALIDITY: Self = Self(6);
    /// No try is left.
    pub const TRIES: Self = Self(7);
    /// The time is over.
    pub const TIME: Self = Self(8);
    /// No name can be given for these parameters.
    pub const NO_NAME: Self = Self(9);
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Self::BAD_INTEREST => "the request is none of the protocol",
            Self::BAD_FORMAT => "the parameters cannot be read",
            Self::BAD_SIGNATURE => "the signature is missing or wrong",
            Self::INVALID => "a parameter is wrong",
            Self::NAME => "the name is not allowed",
            Self::VALIDITY => "the validity period is not granted",
            Self::TRIES => "no try is left",
            Self::TIME => "the time is over",
            Self::NO_NAME => "there is no name to give",
            Self(code) => return write!(f, "error {code}"),
        };
        f.write_str(text)
    }
}

/// A message or step that failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The octets are not the message that is expected.
    #[error("it cannot be read: {0}")]
    Malformed(#[from] Malformed),
    /// A text is not UTF-8 or too long.
    #[error("a text in it is not UTF-8 or too long")]
    Text,
    /// A point of the key exchange that is not on P-256 in the uncompressed form.
    #[error("the public point is not one of P-256, uncompressed")]
    Point,
    /// It was encrypted with another key, or changed on its way.
    #[error("it does not decrypt with the key of this request")]
    NotAuthentic,
    /// An initialization vector came twice.
    #[error("an initialization vector was used before")]
    IvReused,
    /// The other side uses our part of the initialization vectors.
    #[error("the initialization vector belongs to the other direction")]
    IvDirection,
    /// More messages than a request has.
    #[error("too many messages for one request")]
    TooMany,
    /// The cryptographic library refused.
    #[error("the cryptographic library refused")]
    Library,
    /// A certificate, key or signature.
    #[error(transparent)]
    Crypto(#[from] onym_crypto::Error),
    /// The answer has another name than the question.
    #[error("the answer belongs to another request")]
    WrongAnswer,
    /// The authority said no.
    #[error("the authority refused: {code}{}", shown(.info))]
    Refused {
        /// Its code.
        code: ErrorCode,
        /// Its words.
        info: String,
    },
    /// The step does not follow on what was before.
    #[error("{0}")]
    Order(&'static str),
    /// What was issued is not what was asked for.
    #[error("the certificate that was issued is not the one that was asked for: {0}")]
    WrongCertificate(String),
    /// A redirect that is not followed.
    #[error("the redirect is not followed: {0}")]
    Redirect(&'static str),
}

/// At most so many characters of a stranger's words are shown.
const INFO_SHOWN: usize = 200;

fn shown(info: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let words: String = info.chars().take(INFO_SHOWN).map(clean).collect();
    if words.is_empty() { words } else { format!(" ({words})") }
}
