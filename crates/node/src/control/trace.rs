//! What this node tells about a name to whoever traces it, and who may.

use super::explain::Explainer;
use super::plane::Plane;
use super::target::ip_of;
use crate::mgmt::host::Traced;
use crate::self_name::self_name;
use crate::subnet::includes;
use onym_forward::Verdict;
use onym_tables::FaceId;
use onym_wire::faceuri::FaceUri;
use onym_wire::name::NameRef;
use onym_wire::trace;
use serde_json::{Value, json};

/// Faces and next hops that are told of each list.
const LISTED_MAX: usize = 16;
/// Octets of what is told beside the code.
const TOLD_MAX: usize = 4000;

/// The control plane asked by tracers.
pub(super) struct Tracer<'a> {
    plane: &'a Plane,
}

impl<'a> Tracer<'a> {
    pub(super) fn of(plane: &'a Plane) -> Self {
        Self { plane }
    }

    /// Whether the configuration lets this face trace.
    pub(super) fn admits(&self, face: FaceId) -> bool {
        let Some(record) = self.plane.faces.get(face) else { return false };
        let address = record.remote.parse::<FaceUri>().ok().and_then(|uri| ip_of(&uri));
        includes(&self.plane.settings.config.trace.from.0, record.scope, address)
    }

    /// What would be done with an Interest for `target` that the face `from` brings.
    pub(super) fn tell(&self, target: NameRef<'_>, from: FaceId) -> Option<Traced> {
        let explainer = Explainer::of(self.plane);
        let (verdict, is_here, mut told) = explainer.for_face(&target.to_name(), from)?;
        let code = match verdict {
            Verdict::Delivered => trace::FORWARDER,
            Verdict::CsHit => trace::OBJECT,
            _ if is_here => trace::APPLICATION,
            _ => trace::HOP_LIMIT,
        };
        if let Some(members) = told.as_object_mut() {
            for list in members.values_mut().filter_map(Value::as_array_mut) {
                list.truncate(LISTED_MAX);
            }
            members.insert("face".into(), from.0.into());
            let uri = self.plane.faces.get(from).map(|record| record.remote.as_str());
            members.insert("uri".into(), uri.into());
        }
        let mut more = told.to_string();
        if more.len() > TOLD_MAX {
            let (word, decides) = (&told["verdict"], &told["decides"]);
            more = json!({ "verdict": word, "decides": decides, "face": from.0 }).to_string();
        }
        Some(Traced { sender: self_name(&self.plane.settings.config), code, more })
    }
}
