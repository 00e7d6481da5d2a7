//! Names of keys.
//!
//! `/<prefix>/NAC/<dataset>/KEK/<kid>`, `…/KDK/<kid>/ENCRYPTED-BY/<member key>`,
//! `/<ck prefix>/CK/<ckid>/ENCRYPTED-BY/<KEK name>`.

use crate::Error;
use onym_wire::{Component, Name, NameRef};

const NAC: Component<'static> = Component::generic(b"NAC");
const KEK: Component<'static> = Component::generic(b"KEK");
const KDK: Component<'static> = Component::generic(b"KDK");
const CK: Component<'static> = Component::generic(b"CK");
const ENCRYPTED_BY: Component<'static> = Component::generic(b"ENCRYPTED-BY");

/// The name of a group: `/<prefix>/NAC/<dataset>`.
#[must_use]
pub fn group(prefix: NameRef<'_>, dataset: NameRef<'_>) -> Name {
    prefix.to_name().with(NAC).join(dataset)
}

/// The name of a group's public key.
#[must_use]
pub fn kek(group: NameRef<'_>, kid: Component<'_>) -> Name {
    group.to_name().with(KEK).with(kid)
}

/// The name of a group's private key, encrypted for a member.
#[must_use]
pub fn kdk(group: NameRef<'_>, kid: Component<'_>, member_key: NameRef<'_>) -> Name {
    group.to_name().with(KDK).with(kid).with(ENCRYPTED_BY).join(member_key)
}

/// The name of a content key: what content says it is encrypted with.
#[must_use]
pub fn ck(prefix: NameRef<'_>, ckid: Component<'_>) -> Name {
    prefix.to_name().with(CK).with(ckid)
}

/// The name of a content key, encrypted for a group.
#[must_use]
pub fn ck_for(ck: NameRef<'_>, kek: NameRef<'_>) -> Name {
    ck.to_name().with(ENCRYPTED_BY).join(kek)
}

/// What stands before and behind the first ENCRYPTED-BY.
fn split(name: NameRef<'_>) -> Option<[NameRef<'_>; 2]> {
    let at = (0..name.len()).find(|at| name.get(*at) == Some(ENCRYPTED_BY))?;
    Some([name.prefix(at), name.suffix(at + 1)])
}

fn bad(name: NameRef<'_>) -> Error {
    Error::Name(name.to_name())
}

/// The id of a KEK of `group`.
///
/// # Errors
/// [`Error::Group`] when it is of another group, [`Error::Name`] when it is none.
pub fn kid<'a>(kek: NameRef<'a>, group: NameRef<'_>) -> Result<Component<'a>, Error> {
    if let Some(rest) = kek.strip_prefix(group)
        && rest.len() == 2
        && rest.get(0) == Some(KEK)
        && let Some(kid) = rest.get(1)
    {
        return Ok(kid);
    }
    let is_kek = kek.len() > 3 && kek.get(kek.len() - 2) == Some(KEK);
    Err(if is_kek {
        Error::Group { name: kek.to_name(), group: group.to_name() }
    } else {
        bad(kek)
    })
}

/// The id of the group key that a CK of this name is encrypted for, and the CK's own name.
///
/// # Errors
/// As [`kid`].
pub fn of_ck<'a>(
    name: NameRef<'a>,
    group: NameRef<'_>,
) -> Result<(NameRef<'a>, Component<'a>), Error> {
    let [own, kek] = split(name).ok_or_else(|| bad(name))?;
    let is_ck = own.len() >= 2 && own.get(own.len() - 2) == Some(CK);
    if !is_ck {
        return Err(bad(name));
    }
    Ok((own, kid(kek, group)?))
}

/// The group that a CK of this name is encrypted for.
///
/// # Errors
/// [`Error::Name`].
pub fn group_of_ck(name: NameRef<'_>) -> Result<NameRef<'_>, Error> {
    let [_, kek] = split(name).ok_or_else(|| bad(name))?;
    let group = kek.drop_last(2);
    let is_kek = kek.len() > 3 && kek.get(kek.len() - 2) == Some(KEK);
    if is_kek && is_group(group) { Ok(group) } else { Err(bad(name)) }
}

/// Whether `name` has the form of a group: something, NAC, and something.
#[must_use]
pub fn is_group(name: NameRef<'_>) -> bool {
    prefix_of(name).is_some()
}

/// Who has a group of this name: what stands in front of the last NAC.
#[must_use]
pub fn prefix_of(group: NameRef<'_>) -> Option<NameRef<'_>> {
    let at = (1..group.len().saturating_sub(1)).rev().find(|at| group.get(*at) == Some(NAC))?;
    Some(group.prefix(at))
}

/// A Data to be asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Its name, or a prefix of it.
    pub name: Name,
    /// Whether a longer name will do.
    pub can_be_prefix: bool,
}

/// What an Interest asks a group for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked<'a> {
    /// Its newest public key.
    Newest,
    /// Its public key of this id.
    Kek(Component<'a>),
    /// Its private key of this id, for the member with this key.
    Kdk(Component<'a>, NameRef<'a>),
}

/// What `group` is asked for; nothing when it is something else.
#[must_use]
pub fn asked<'a>(ask: &'a Ask, group: NameRef<'_>) -> Option<Asked<'a>> {
    let rest = ask.name.as_ref().strip_prefix(group)?;
    match (rest.get(0), rest.get(1)) {
        (None, _) | (Some(KEK), None) if ask.can_be_prefix => Some(Asked::Newest),
        (Some(KEK), Some(kid)) if rest.len() == 2 => Some(Asked::Kek(kid)),
        (Some(KDK), Some(kid)) if rest.len() > 3 && rest.get(2) == Some(ENCRYPTED_BY) => {
            Some(Asked::Kdk(kid, rest.suffix(3)))
        }
        _ => None,
    }
}

/// Checks that `name` is that of the private key `kid` of `group` for `member_key`.
///
/// # Errors
/// [`Error::Name`].
pub fn check_kdk(
    name: NameRef<'_>,
    group: NameRef<'_>,
    kid: Component<'_>,
    member_key: NameRef<'_>,
) -> Result<(), Error> {
    if kdk(group, kid, member_key) == name { Ok(()) } else { Err(bad(name)) }
}
