//! `rib/register`, `rib/unregister`, `rib/announce`.

use super::super::command::Command;
use super::super::host::{Host, RouteSpec, TableError};
use super::{face_of, name_of, table_error, too_long};
use onym_tables::FaceId;
use onym_wire::NAME_COMPONENTS_MAX;
use onym_wire::cert::PrefixAnnouncement;
use onym_wire::mgmt::{
    ControlParameters, ControlResponse, ORIGIN_APP, ORIGIN_PREFIX_ANNOUNCEMENT, ROUTE_CHILD_INHERIT,
};

/// Cost of the route that an announcement makes.
const ANNOUNCEMENT_COST: u64 = 2048;

pub(super) fn register(
    p: &ControlParameters,
    from: FaceId,
    host: &mut dyn Host,
) -> ControlResponse {
    match name_of(p) {
        Ok(name) => add(
            RouteSpec {
                name: name.clone(),
                face: face_of(p.face_id, from),
                origin: p.origin.unwrap_or(ORIGIN_APP),
                cost: p.cost.unwrap_or(0),
                flags: p.flags.unwrap_or(ROUTE_CHILD_INHERIT),
                expiration_ms: p.expiration_period_ms,
            },
            |route| host.rib_register(from, route),
        ),
        Err(refusal) => refusal.into(),
    }
}

/// Registers a route; the answer has every field, which clients insist on.
fn add(
    route: RouteSpec,
    register: impl FnOnce(RouteSpec) -> Result<(), TableError>,
) -> ControlResponse {
    let body = ControlParameters {
        name: Some(route.name.clone()),
        face_id: Some(u64::from(route.face.0)),
        origin: Some(route.origin),
        cost: Some(route.cost),
        flags: Some(route.flags),
        expiration_period_ms: route.expiration_ms,
        ..ControlParameters::default()
    };
    match register(route) {
        Ok(()) => ControlResponse::ok(body),
        Err(error) => table_error(&error),
    }
}

pub(super) fn unregister(
    p: &ControlParameters,
    from: FaceId,
    host: &mut dyn Host,
) -> ControlResponse {
    let face = face_of(p.face_id, from);
    let origin = p.origin.unwrap_or(ORIGIN_APP);
    // What is not there needs no removing: always done.
    if let Ok(name) = name_of(p) {
        host.rib_unregister(name.as_ref(), face, origin);
    }
    ControlResponse::ok(ControlParameters {
        name: p.name.clone(),
        face_id: Some(p.face_id.filter(|id| *id != 0).unwrap_or_else(|| u64::from(face.0))),
        origin: Some(origin),
        ..ControlParameters::default()
    })
}

pub(super) fn announce(
    command: &Command<'_>,
    from: FaceId,
    host: &mut dyn Host,
) -> ControlResponse {
    let Some((data, announcement)) = &command.announcement else {
        return ControlResponse::new(400, "there is no announcement");
    };
    if announcement.prefix.len() > NAME_COMPONENTS_MAX {
        return too_long().into();
    }
    let Some(expiration_ms) = remaining_ms(announcement, host.unix_ms()) else {
        // 2 is the number of "expired" in the field's list of reasons.
        return ControlResponse::new(403, "Prefix announcement rejected: 2 (expired)");
    };
    let route = RouteSpec {
        name: announcement.prefix.to_name(),
        face: from,
        origin: ORIGIN_PREFIX_ANNOUNCEMENT,
        cost: ANNOUNCEMENT_COST,
        flags: ROUTE_CHILD_INHERIT,
        expiration_ms: Some(expiration_ms),
    };
    add(route, |route| host.rib_announce(route, data.wire))
}

/// How long the announcement counts from now, in milliseconds; `None` when it does not.
pub(crate) fn remaining_ms(announcement: &PrefixAnnouncement<'_>, now_ms: u64) -> Option<u64> {
    let Some(validity) = announcement.validity_period else {
        return Some(announcement.expiration_ms).filter(|ms| *ms > 0);
    };
    let now_s = i64::try_from(now_ms / 1000).ok()?;
    if !validity.contains(now_s) {
        return None;
    }
    // Both ends are included: the last second counts whole.
    let left_s = u64::try_from(validity.not_after.0 - now_s).ok()?.saturating_add(1);
    Some(announcement.expiration_ms.min(left_s.saturating_mul(1000))).filter(|ms| *ms > 0)
}
