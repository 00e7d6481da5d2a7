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
