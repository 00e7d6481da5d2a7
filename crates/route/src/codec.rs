//! The encoding of ndn-dv, with the fields that Onym adds.
//!
//! Numbers 201 to 214 mean different things in different places: decode by context.
//! Unknown critical elements refuse an advertisement; a list of prefix operations skips them, as the
//! deployed implementation does.

mod advert;
mod prefix;
mod status;
mod sync;

pub use advert::{AdvEntry, Advert, Request};
pub use prefix::{PrefixAdd, PrefixOps};
pub use status::Status;
pub use sync::{Delta, Heard, Hello};

use onym_wire::tlv::{self, Element, Malformed, Reader};
use onym_wire::{Name, NameRef, types};

pub(crate) const STATE_VECTOR: u32 = 201;
/// An entry of a state vector or of an advertisement.
pub(crate) const ENTRY: u32 = 202;
pub(crate) const DESTINATION: u32 = 204;
pub(crate) const NEXT_HOP: u32 = 206;
pub(crate) const COST: u32 = 208;
/// OtherCost in an advertisement; SeqNoEntry in a state vector.
pub(crate) const OTHER_COST: u32 = 210;
pub(crate) const BOOT: u32 = 212;
pub(crate) const SEQ: u32 = 214;
pub(crate) const RESET: u32 = 302;
pub(crate) const ADD: u32 = 304;
pub(crate) const REMOVE: u32 = 306;

// Ours, non-critical (spec/registry.md): peers that do not know them skip them.
pub(crate) const DEST_SEQ: u32 = 65280;
pub(crate) const METRIC: u32 = 65282;
pub(crate) const REQUEST: u32 = 65284;
pub(crate) const REQUEST_TO: u32 = 65286;
pub(crate) const DELTA: u32 = 65288;
pub(crate) const ADVERT_SEQ: u32 = 65290;
pub(crate) const REMOVED: u32 = 65292;
pub(crate) const HEARD: u32 = 65294;
pub(crate) const GOODBYE: u32 = 65296;
pub(crate) const THROUGH: u32 = 65298;
/// Networks that a prefix came through, at most.
pub const THROUGH_MAX: usize = 16;

/// Cost from which a destination is unreachable on the wire of ndn-dv.
pub const INFINITY: u64 = 16;

/// Refuses an element that is not known here when it is critical.
fn skip(typ: u32) -> Result<(), Malformed> {
    if tlv::is_critical(typ) { Err(Malformed::UnknownCritical(typ)) } else { Ok(()) }
}

/// The one Name that `value` is.
fn name(value: &[u8]) -> Result<NameRef<'_>, Malformed> {
    NameRef::parse(value)
}

/// The Name that the container `element` begins with; what follows must not be critical.
fn named<'a>(element: Element<'a>) -> Result<(NameRef<'a>, Reader<'a>), Malformed> {
    let mut reader = Reader::new(element.value);
    let first = reader.expect(types::NAME)?;
    Ok((NameRef::parse_value(first.value)?, reader))
}

fn put_named(out: &mut Vec<u8>, typ: u32, name: &Name) {
    tlv::put_nested(out, typ, |out| name.as_ref().write_tlv(out));
}

#[cfg(test)]
mod tests;
