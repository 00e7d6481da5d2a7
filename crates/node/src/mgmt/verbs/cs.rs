//! `cs/config`, `cs/erase`.

use super::super::command::bad_parameters;
use super::super::dataset::cs_flags;
use super::super::host::Host;
use onym_wire::mgmt::{CS_ADMIT, CS_SERVE, ControlParameters, ControlResponse};

/// Most packets that one command erases.
const ERASE_MAX: u64 = 256;

pub(super) fn config(p: &ControlParameters, host: &mut dyn Host) -> ControlResponse {
    let (flags, mask) = (p.flags.unwrap_or(0), p.mask.unwrap_or(0));
    let bit = |bit: u64| (mask & bit != 0).then_some(flags & bit != 0);
    let cs = host.cs_config(p.capacity, bit(CS_ADMIT), bit(CS_SERVE));
    ControlResponse::ok(ControlParameters {
        capacity: Some(cs.capacity),
        flags: Some(cs_flags(&cs)),
        ..ControlParameters::default()
    })
}

pub(super) fn erase(p: &ControlParameters, host: &mut dyn Host) -> ControlResponse {
    let Some(name) = &p.name else { return bad_parameters("Name is missing").into() };
    if p.count == Some(0) {
        return bad_parameters("Count must be above 0").into();
    }
    let count = p.count.unwrap_or(ERASE_MAX).min(ERASE_MAX);
    let (erased, more) = host.cs_erase(name.as_ref(), count);
    // Capacity in the answer says: there is more, ask again. Not when as many were asked for.
    let is_cut = more && p.count.is_none_or(|asked| asked > erased);
    ControlResponse::ok(ControlParameters {
        name: Some(name.clone()),
        count: Some(erased),
        capacity: is_cut.then_some(ERASE_MAX),
        ..ControlParameters::default()
    })
}
