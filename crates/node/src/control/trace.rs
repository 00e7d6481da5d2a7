//! What this node tells about a name to whoever traces it, and who may.

use super::explain::Explainer;
use super::plane::Plane;
use super::target::ip_of;
use crate::mgmt::host::Traced;
use crate::push::PushOrder;
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

    /// What would be done with what `target` names, when the face `from` brings it.
    pub(super) fn tell(&self, target: NameRef<'_>, from: FaceId) -> Option<Traced> {
        let (code, mut told) = match trace::Publication::of(target) {
            Some(asked) => self.publication(&asked, from)?,
            None => self.interest(target, from)?,
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

    /// An Interest: code and members.
    fn interest(&self, target: NameRef<'_>, from: FaceId) -> Option<(u16, Value)> {
        let explainer = Explainer::of(self.plane);
        let (verdict, is_here, told) = explainer.for_face(&target.to_name(), from)?;
        let code = match verdict {
            Verdict::Delivered => trace::FORWARDER,
            Verdict::CsHit => trace::OBJECT,
            _ if is_here => trace::APPLICATION,
            _ => trace::HOP_LIMIT,
        };
        Some((code, told))
    }

    /// A publication: code and members.
    fn publication(&self, asked: &trace::Publication<'_>, from: FaceId) -> Option<(u16, Value)> {
        let faces = self.plane.faces.iter();
        let asked = Box::new(crate::push::Traced {
            item: asked.item.to_vec(),
            frame: asked.frame.map(<[u8]>::to_vec),
            from,
            faces: faces.map(|record| (record.id, record.remote.clone(), record.up)).collect(),
        });
        let push = self.plane.push.as_ref()?;
        let told = push.port.ask(|reply| PushOrder::Trace { asked, reply }).flatten()?;
        let is_here = told["subscribers"].as_u64().unwrap_or_default() > 0;
        Some((if is_here { trace::APPLICATION } else { trace::HOP_LIMIT }, told))
    }
}
