//! Stateless ingress rules, shared by a node and by the edge of a service chain.

use crate::Verdict;
use crate::faces::FaceInfo;
use crate::path::scope::is_localhost;
use onym_link::LpIn;
use onym_tables::HashKey;
use onym_wire::interest::{ForwardingHint, Interest};
use onym_wire::mgmt::Scope;
use onym_wire::name::{Name, NameRef};

/// Which link-layer fields an Interest from such a face may have.
///
/// # Errors
/// unexpected_field.
#[inline(always)]
pub fn interest_fields(lp: &LpIn, info: FaceInfo) -> Result<(), Verdict> {
    let unexpected = lp.no_cache
        || lp.prefix_announcement.is_some()
        || (lp.next_hop_face.is_some() && !info.local_fields);
    if unexpected { Err(Verdict::UnexpectedField) } else { Ok(()) }
}

/// Which Interest such a face may send, where taking it in counts as `hop` hops.
///
/// # Errors
/// hop_limit_zero, scope.
#[inline(always)]
pub fn interest(interest: &Interest<'_>, info: FaceInfo, hop: u8) -> Result<(), Verdict> {
    if interest.hop_limit == Some(0) && hop > 0 {
        return Err(Verdict::HopLimitZero);
    }
    scope(interest.name.value(), info)
}

/// Which link-layer fields a Data may have.
///
/// # Errors
/// unexpected_field.
#[inline(always)]
pub fn data_fields(lp: &LpIn) -> Result<(), Verdict> {
    let unexpected = lp.nack.is_some() || lp.next_hop_face.is_some() || lp.non_discovery;
    if unexpected { Err(Verdict::UnexpectedField) } else { Ok(()) }
}

/// Which Data such a face may send.
///
/// # Errors
/// scope.
#[inline(always)]
pub fn data(name: NameRef<'_>, info: FaceInfo) -> Result<(), Verdict> {
    scope(name.value(), info)
}

#[inline(always)]
fn scope(name: &[u8], info: FaceInfo) -> Result<(), Verdict> {
    if info.scope == Scope::NonLocal && is_localhost(name) { Err(Verdict::Scope) } else { Ok(()) }
}

/// What tells hints apart in the PIT: a hash of the delegations, never 0; 0 when one of them is a
/// prefix of one of the `regions` that this node is in, so that the Interest goes on by its own
/// name.
#[must_use]
pub fn hint_key(key: &HashKey, regions: &[Name], hint: &ForwardingHint<'_>) -> u64 {
    let mut reached = false;
    let mut hash = 1_u64;
    for delegation in hint.iter() {
        reached |= regions.iter().any(|region| delegation.is_prefix_of(region.as_ref()));
        hash = key.words([hash, key.name(delegation.value())]);
    }
    if reached { 0 } else { hash | 1 }
}
