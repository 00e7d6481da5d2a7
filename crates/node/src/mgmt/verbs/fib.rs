//! `fib/add-nexthop`, `fib/remove-nexthop`.

use super::super::host::Host;
use super::{face_of, name_of, table_error};
use onym_tables::FaceId;
use onym_tables::fib::NextHop;
use onym_wire::mgmt::{ControlParameters, ControlResponse};

pub(super) fn add(p: &ControlParameters, from: FaceId, host: &mut dyn Host) -> ControlResponse {
    let name = match name_of(p) {
        Ok(name) => name,
        Err(refusal) => return refusal.into(),
    };
    let (face, cost) = (face_of(p.face_id, from), p.cost.unwrap_or(0));
    if host.face(face).is_none() {
        return ControlResponse::new(410, "Face not found");
    }
    if let Err(error) = host.fib_add(name.as_ref(), NextHop { face, cost }) {
        return table_error(&error);
    }
    ControlResponse::ok(ControlParameters {
        name: Some(name.clone()),
        face_id: Some(u64::from(face.0)),
        cost: Some(cost),
        ..ControlParameters::default()
    })
}

pub(super) fn remove(p: &ControlParameters, from: FaceId, host: &mut dyn Host) -> ControlResponse {
    let face = face_of(p.face_id, from);
    // What is not there needs no removing: always done.
    if let Ok(name) = name_of(p) {
        host.fib_remove(name.as_ref(), face);
    }
    ControlResponse::ok(ControlParameters {
        name: p.name.clone(),
        face_id: Some(p.face_id.filter(|id| *id != 0).unwrap_or_else(|| u64::from(face.0))),
        ..ControlParameters::default()
    })
}
