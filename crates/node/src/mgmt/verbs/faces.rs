//! `faces/create`, `faces/update`, `faces/destroy`.

use super::super::command::bad_parameters;
use super::super::host::{Creation, FaceError, FaceProps, FaceSpec, FaceView, Host, Ticket};
use super::{Outcome, face_of};
use onym_tables::FaceId;
use onym_wire::faceuri::{Endpoint, FaceUri, Family};
use onym_wire::mgmt::{ControlParameters, ControlResponse, FACE_LOCAL_FIELDS, Persistency, Scope};

/// Smallest MTU, in octets: below, a fragment holds more header than packet.
const MTU_MIN: u64 = 64;

pub(super) fn create(p: &ControlParameters, ticket: Ticket, host: &mut dyn Host) -> Outcome {
    let spec = match spec(p) {
        Ok(spec) => spec,
        Err(error) => return Outcome::Done(Box::new(failed(error))),
    };
    match host.face_create(ticket, spec) {
        Creation::Made(face) => Outcome::Done(Box::new(created(&face))),
        Creation::Pending => Outcome::Pending,
        Creation::Refused(error) => Outcome::Done(Box::new(failed(error))),
    }
}

/// The face asked for, after the checks that need no knowledge of the node.
fn spec(p: &ControlParameters) -> Result<FaceSpec, FaceError> {
    let text = p.uri.as_deref().unwrap_or_default();
    let bad = |e: onym_wire::faceuri::FaceUriError| FaceError::BadUri(e.to_string());
    // An address and a port say which family is meant: clients write udp:// for udp4://.
    let uri = match text.parse::<FaceUri>().map_err(bad)? {
        FaceUri::Udp(end) if is_whole(&end) => FaceUri::Udp(end).canonical(),
        FaceUri::Tcp(end) if is_whole(&end) => FaceUri::Tcp(end).canonical(),
        _ => None,
    };
    let uri = match uri {
        Some(uri) => uri,
        None => FaceUri::parse_canonical(text).map_err(bad)?,
    };
    let remote = uri.to_string();
    let unsupported = |text: &str| Err(FaceError::Unsupported(text.to_owned()));
    if p.face_persistency == Some(Persistency::OnDemand) {
        return unsupported("outgoing faces cannot be on-demand");
    }
    if p.mtu.is_some_and(|mtu| mtu < MTU_MIN) {
        return unsupported("the MTU must be at least 64");
    }
    let ip = match &uri {
        FaceUri::Tcp(end) | FaceUri::Udp(end) | FaceUri::WebSocket(end, _) | FaceUri::Quic(end) => {
            end.ip()
        }
        _ => None,
    };
    let is_local = matches!(&uri, FaceUri::Tcp(_)) && ip.is_some_and(|ip| ip.is_loopback());
    match &uri {
        FaceUri::Udp(_) if ip.is_some_and(|ip| ip.is_multicast()) => {
            return unsupported("multicast faces are made by the configuration");
        }
        FaceUri::Udp(_) if p.local_uri.as_deref().is_some_and(|l| !is_udp(l)) => {
            return unsupported("LocalUri of a UDP face is the address of a listener");
        }
        FaceUri::Tcp(_) if p.local_uri.is_some() => {
            return unsupported("LocalUri cannot be chosen for TCP");
        }
        FaceUri::Tcp(_) if p.mtu.is_some() => {
            return unsupported("the MTU of a TCP face cannot be chosen");
        }
        FaceUri::Ether(address) => check_ether(*address, p.local_uri.as_deref())?,
        _ => {}
    }
    if props(p).flags & FACE_LOCAL_FIELDS != 0 && !is_local {
        return unsupported("local fields are for faces to this machine");
    }
    Ok(FaceSpec { remote_uri: remote, local_uri: p.local_uri.clone(), props: props(p) })
}

/// Whether only the family is left out of an address and a port.
fn is_whole(end: &Endpoint) -> bool {
    end.family == Family::Any && end.ip().is_some() && end.port.is_some()
}

/// Whether `text` is an address of this machine that UDP could be spoken from.
fn is_udp(text: &str) -> bool {
    matches!(FaceUri::parse_canonical(text), Ok(FaceUri::Udp(_)))
}

fn check_ether(address: [u8; 6], local_uri: Option<&str>) -> Result<(), FaceError> {
    let unsupported = |text: &str| Err(FaceError::Unsupported(text.to_owned()));
    if address[0] & 1 == 1 {
        return unsupported("multicast faces are made by the configuration");
    }
    match local_uri.map(str::parse) {
        Some(Ok(FaceUri::Dev(_))) => Ok(()),
        _ => unsupported("an Ethernet face needs LocalUri dev://INTERFACE"),
    }
}

fn props(p: &ControlParameters) -> FaceProps {
    let mask = p.mask.unwrap_or(0);
    FaceProps {
        persistency: p.face_persistency,
        flags: p.flags.unwrap_or(0) & mask,
        mask,
        congestion_interval_ns: p.base_congestion_marking_interval_ns,
        congestion_threshold: p.default_congestion_threshold,
        mtu: p.mtu,
    }
}

/// What an answer says about a face, its URIs left out.
fn describe(face: &FaceView) -> ControlParameters {
    ControlParameters {
        face_id: Some(u64::from(face.id.0)),
        flags: Some(face.flags),
        face_persistency: Some(face.persistency),
        base_congestion_marking_interval_ns: face.congestion_interval_ns,
        default_congestion_threshold: face.congestion_threshold,
        mtu: face.mtu,
        ..ControlParameters::default()
    }
}

fn with_uris(face: &FaceView) -> ControlParameters {
    ControlParameters {
        uri: Some(face.remote_uri.clone()),
        local_uri: Some(face.local_uri.clone()),
        ..describe(face)
    }
}

/// The answer when a face was made.
pub(in crate::mgmt) fn created(face: &FaceView) -> ControlResponse {
    ControlResponse::ok(with_uris(face))
}

/// The answer when a face was not made or not changed.
pub(in crate::mgmt) fn failed(error: FaceError) -> ControlResponse {
    match error {
        FaceError::BadUri(why) => ControlResponse::new(400, why),
        FaceError::Unsupported(why) => ControlResponse::new(406, why),
        FaceError::Exists(face) => ControlResponse {
            code: 409,
            text: "Face with remote URI already exists".to_owned(),
            body: Some(with_uris(&face)),
        },
        FaceError::BadProperties(props) => ControlResponse {
            code: 409,
            text: "Invalid properties specified".to_owned(),
            body: Some(offending(&props)),
        },
        FaceError::NoSuchFace => ControlResponse::new(404, "Specified face does not exist"),
        FaceError::ConnectFailed(why) => ControlResponse::new(504, why),
        FaceError::System(why) => ControlResponse::new(500, why),
    }
}

fn offending(props: &FaceProps) -> ControlParameters {
    let has_flags = props.mask != 0;
    ControlParameters {
        flags: has_flags.then_some(props.flags),
        mask: has_flags.then_some(props.mask),
        face_persistency: props.persistency,
        base_congestion_marking_interval_ns: props.congestion_interval_ns,
        default_congestion_threshold: props.congestion_threshold,
        mtu: props.mtu,
        ..ControlParameters::default()
    }
}

pub(super) fn update(p: &ControlParameters, from: FaceId, host: &mut dyn Host) -> ControlResponse {
    let id = face_of(p.face_id, from);
    let Some(face) = host.face(id) else { return failed(FaceError::NoSuchFace) };
    let props = props(p);
    let mut bad = FaceProps::default();
    if props.flags & FACE_LOCAL_FIELDS != 0 && face.scope == Scope::NonLocal {
        (bad.flags, bad.mask) = (FACE_LOCAL_FIELDS, FACE_LOCAL_FIELDS);
    }
    bad.mtu = props.mtu.filter(|mtu| *mtu < MTU_MIN);
    if bad != FaceProps::default() {
        return failed(FaceError::BadProperties(bad));
    }
    match host.face_update(id, &props) {
        Ok(face) => ControlResponse::ok(describe(&face)),
        Err(error) => failed(error),
    }
}

pub(super) fn destroy(p: &ControlParameters, host: &mut dyn Host) -> ControlResponse {
    let id = match p.face_id {
        None | Some(0) => return bad_parameters("FaceId must not be 0").into(),
        Some(id) => id,
    };
    // A face that is not there needs no closing; those below 256 belong to the node.
    if let Some(face) = u32::try_from(id).ok().map(FaceId).filter(|f| *f >= FaceId::FIRST) {
        host.face_destroy(face);
    }
    ControlResponse::ok(ControlParameters { face_id: Some(id), ..ControlParameters::default() })
}
