//! Names of an authority, and what an Interest asks it for.

use crate::id::RequestId;
use onym_wire::{Component, Name, NameRef};

/// The component behind the prefix of an authority.
pub const CA: Component<'static> = Component::generic(b"CA");

/// `/<prefix>/CA`.
#[must_use]
pub fn base(prefix: NameRef<'_>) -> Name {
    prefix.to_name().with(CA)
}

/// `/<prefix>/CA/<verb>`.
#[must_use]
pub fn step_name(prefix: NameRef<'_>, verb: &str) -> Name {
    base(prefix).with(Component::generic(verb.as_bytes()))
}

/// `/<prefix>/CA/CHALLENGE/<request>`.
#[must_use]
pub fn challenge_name(prefix: NameRef<'_>, id: RequestId) -> Name {
    step_name(prefix, "CHALLENGE").with(Component::generic(&id.0))
}

/// What a name asks an authority for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Its profile: the metadata that tells the version.
    Metadata,
    /// Its profile.
    Info,
    /// Which names there are.
    Probe,
    /// A certificate.
    New,
    /// The next step of a challenge.
    Challenge(RequestId),
    /// Something else.
    Other,
}

/// Reads a name under `/<prefix>/CA`, parameters digest included.
#[must_use]
pub fn step(prefix: NameRef<'_>, name: NameRef<'_>) -> Step {
    let Some(rest) = name.strip_prefix(base(prefix).as_ref()) else { return Step::Other };
    let Some(verb) = rest.get(0).filter(|c| c.is_generic()) else { return Step::Other };
    let digest_at = |at: usize| {
        rest.len() == at + 1 && rest.get(at).is_some_and(Component::is_parameters_digest)
    };
    match verb.value {
        b"INFO" if rest.get(1).is_some_and(|c| c.is_keyword(b"metadata")) => Step::Metadata,
        b"INFO" => Step::Info,
        b"PROBE" if digest_at(1) => Step::Probe,
        b"NEW" if digest_at(1) => Step::New,
        b"CHALLENGE" if digest_at(2) => {
            let id = rest.get(1).filter(|c| c.is_generic());
            id.and_then(|c| RequestId::read(c.value)).map_or(Step::Other, Step::Challenge)
        }
        _ => Step::Other,
    }
}
