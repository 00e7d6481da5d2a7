//! One interface for both kinds of rules.

use onym_wire::NameRef;
use std::fmt;

/// What kind of packet is judged: rules may be for one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Data, certificates among them.
    Data,
    /// A signed Interest; its name comes without what belongs to the signature.
    Interest,
}

/// What is judged.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// Its name. Of an Interest in the form of v0.3 without the parameters digest; of one in the
    /// old form without the SignatureInfo and SignatureValue components.
    pub name: NameRef<'a>,
    /// Data or Interest.
    pub kind: Kind,
    /// Number of its signature type; `None` when only names are asked about.
    pub signature_type: Option<u64>,
}

impl<'a> Subject<'a> {
    /// A Data of this name, whatever its signature.
    #[must_use]
    pub const fn data(name: NameRef<'a>) -> Self {
        Self { name, kind: Kind::Data, signature_type: None }
    }

    /// An Interest of this name (see [`Subject::name`]), whatever its signature.
    #[must_use]
    pub const fn interest(name: NameRef<'a>) -> Self {
        Self { name, kind: Kind::Interest, signature_type: None }
    }

    /// The same, signed with this type.
    #[must_use]
    pub const fn signed(self, signature_type: u64) -> Self {
        Self { signature_type: Some(signature_type), ..self }
    }
}

/// The answer to "may this key sign this?".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Yes, by the rule of this name.
    Allowed {
        /// The rule that the packet's name follows.
        rule: String,
    },
    /// No.
    Denied(Denial),
}

impl Verdict {
    /// Whether it is yes.
    #[must_use]
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed { .. })
    }

    /// The reason, when it is no.
    #[must_use]
    pub const fn denial(&self) -> Option<&Denial> {
        match self {
            Self::Allowed { .. } => None,
            Self::Denied(denial) => Some(denial),
        }
    }
}

/// Why a key may not sign: the first rule that fails, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// What fails.
    pub cause: Cause,
    /// The rule that fails first, when one comes close.
    pub rule: Option<String>,
    /// One line for a person.
    pub text: String,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.rule {
            Some(rule) => write!(f, "{rule}: {}", self.text),
            None => f.write_str(&self.text),
        }
    }
}

/// What makes a packet and a key not go together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// No rule is about a packet of this name.
    NoRule,
    /// The packet's name is that of a trust anchor: nobody signs it.
    AnchorOnly,
    /// The key's name is not one that may sign this packet.
    Key,
    /// The signature's type is not the one that the rule asks for.
    SignatureType,
    /// The question costs more than [`STEPS_MAX`](crate::lvs::STEPS_MAX) allows.
    TooCostly,
}

/// How the key's name is written when a policy is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyForm {
    /// The full name of the certificate.
    Certificate,
    /// The KeyLocator as it stands in the packet, of which the certificate's name is a
    /// continuation.
    Locator,
}

/// Rules about which keys may sign what. Both engines implement it: [`lvs::Schema`] and
/// [`conf::Rules`].
///
/// [`lvs::Schema`]: crate::lvs::Schema
/// [`conf::Rules`]: crate::conf::Rules
pub trait Policy: fmt::Debug + Send + Sync {
    /// Whether the key of this name may sign the packet.
    fn check(&self, subject: &Subject<'_>, key: NameRef<'_>) -> Verdict;

    /// Which name of the key [`Policy::check`] is asked with.
    fn key_form(&self) -> KeyForm;

    /// Whether a certificate of this name may be a trust anchor.
    ///
    /// # Errors
    /// [`Denial`] says why not.
    fn anchor(&self, certificate: NameRef<'_>) -> Result<(), Denial>;

    /// Whether a packet may pass with a digest in place of a signature (DigestSha256), which says
    /// nothing about who made it.
    fn allows_digest(&self, subject: &Subject<'_>) -> bool;

    /// Whether everything passes, verified or not: a configuration that turns trust off.
    fn allows_anything(&self) -> bool {
        false
    }

    /// All that the rules say about a name: which rules it follows, and what may sign it.
    fn explain(&self, subject: &Subject<'_>) -> Vec<String>;
}
