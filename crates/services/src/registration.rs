//! Registration commands of producers: who may register what, and the answer.
//!
//! Commands are those of NFD's RIB management under `/localhost/nfd` and `/localhop/nfd`, signed
//! in either format. Each gets an answer; a route is in the table before its answer leaves.

use crate::config::RegistrationPolicy;
use crate::cx::Cx;
use crate::events::{Event, RouteEvent};
use crate::keys::KeySet;
use crate::stats::Registrations;
use crate::verify::Secret;
use onym_crypto::replay::{ReplayGuard, ReplayPolicy};
use onym_crypto::signer::write_digest_data;
use onym_crypto::verify::Signed;
use onym_frame::Buf;
use onym_link::Packet;
use onym_tables::FaceId;
use onym_wire::data::DataBuilder;
use onym_wire::interest::Interest;
use onym_wire::mgmt::{
    Block as _, ControlParameters, ControlResponse, ORIGIN_APP, ROUTE_CHILD_INHERIT, parameters_of,
};
use onym_wire::name::{Name, NameRef};
use onym_wire::{NAME_COMPONENTS_MAX, types};

/// How long answers are fresh, in milliseconds: a cache on the way must not keep them.
const FRESHNESS_MS: u64 = 0;

/// A registration that was judged good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// The prefix.
    pub prefix: Name,
    /// The face it is for: that of the command.
    pub face: FaceId,
    /// Cost of the route.
    pub cost: u64,
    /// Milliseconds until it ends by itself.
    pub expires_ms: Option<u64>,
    /// The key that signed it.
    pub key: Option<Name>,
    /// Whether it is taken back.
    pub is_removal: bool,
    parameters: ControlParameters,
}

/// Judges commands.
#[derive(Debug)]
pub struct Registrar {
    /// How.
    pub policy: RegistrationPolicy,
    /// Known keys.
    pub keys: KeySet,
    /// What happened.
    pub counters: Registrations,
    replay: ReplayGuard,
}

impl Default for Registrar {
    fn default() -> Self {
        Self {
            policy: RegistrationPolicy::default(),
            keys: KeySet::default(),
            counters: Registrations::default(),
            replay: ReplayGuard::new(ReplayPolicy::default()),
        }
    }
}

/// Whether `name` is under `/localhost` or `/localhop`.
#[must_use]
pub fn is_local_scope(name: NameRef<'_>) -> bool {
    let first = name.get(0);
    first.is_some_and(|c| c.is_generic() && (c.value == b"localhost" || c.value == b"localhop"))
}

/// Whether `name` asks the RIB for something: `/localhost/nfd/rib/…`, `/localhop/nfd/rib/…`.
#[must_use]
pub fn is_command(name: NameRef<'_>) -> bool {
    let is =
        |at: usize, word: &[u8]| name.get(at).is_some_and(|c| c.is_generic() && c.value == word);
    is_local_scope(name) && is(1, b"nfd") && is(2, b"rib") && name.len() >= 5
}

impl Registrar {
    /// Judges a command that came on a face. What is refused was answered and told.
    pub fn judge(&mut self, cx: &mut Cx<'_>, packet: &Packet) -> Option<Registration> {
        let Ok(interest) = Interest::parse(&packet.bytes) else { return None };
        match self.check(cx, &interest, packet.face) {
            Ok(registration) => Some(registration),
            Err((code, text, prefix)) => {
                self.counters.refused += 1;
                let label = cx.ports.label(packet.face).to_owned();
                let key = Signed::interest(&interest).ok().and_then(|s| s.signer());
                cx.events.push(Event::RegistrationRefused {
                    face: packet.face.0,
                    label,
                    prefix,
                    key: key.map(|k| k.to_string()),
                    reason: text.clone(),
                });
                respond(cx, packet, &ControlResponse::new(code, text));
                None
            }
        }
    }

    fn check(
        &mut self,
        cx: &Cx<'_>,
        interest: &Interest<'_>,
        from: FaceId,
    ) -> Result<Registration, (u64, String, Option<String>)> {
        let name = interest.name;
        let fail = |code: u64, text: &str| (code, text.to_owned(), None);
        let is_removal = match name.get(3).map(|c| c.value) {
            Some(b"register") => false,
            Some(b"unregister") => true,
            _ => return Err(fail(501, "rib has the verbs register and unregister here")),
        };
        let component = name.get(4).ok_or_else(|| fail(400, "there are no ControlParameters"))?;
        let parameters =
            parameters_of(component).map_err(|e| fail(400, &format!("ControlParameters: {e}")))?;
        let Some(prefix) = parameters.name.clone() else {
            return Err(fail(400, "Name is missing"));
        };
        let shown = Some(prefix.to_string());
        let fail = |code: u64, text: &str| (code, text.to_owned(), shown.clone());
        if prefix.len() > NAME_COMPONENTS_MAX {
            let text = format!("a prefix has at most {NAME_COMPONENTS_MAX} components");
            return Err(fail(414, &text));
        }
        if is_local_scope(prefix.as_ref()) {
            return Err(fail(403, "names under /localhost and /localhop are not routed here"));
        }
        let other = |id: u64| id != 0 && id != u64::from(from.0);
        if parameters.face_id.is_some_and(other) {
            return Err(fail(403, "a producer registers for its own face; leave FaceId out"));
        }
        let key = self.signer(cx, interest, prefix.as_ref()).map_err(|text| fail(403, &text))?;
        Ok(Registration {
            face: from,
            cost: parameters.cost.unwrap_or(0),
            expires_ms: parameters.expiration_period_ms,
            prefix,
            key,
            is_removal,
            parameters,
        })
    }

    /// The key that signed, when it may.
    fn signer(
        &mut self,
        cx: &Cx<'_>,
        interest: &Interest<'_>,
        prefix: NameRef<'_>,
    ) -> Result<Option<Name>, String> {
        if self.policy == RegistrationPolicy::Off {
            return Err("registration is off".into());
        }
        let signed = Signed::interest(interest).map_err(|e| e.to_string())?;
        if signed.signature_type == types::SIGNATURE_DIGEST_SHA256 {
            signed.verify_digest().map_err(|e| e.to_string())?;
            return match self.policy {
                RegistrationPolicy::Open => Ok(None),
                _ => Err("the command must be signed with a key; a digest proves nothing".into()),
            };
        }
        if self.policy == RegistrationPolicy::Open {
            return Ok(signed.signer().map(NameRef::to_name));
        }
        let locator = signed.signer().ok_or("the signature names no key")?;
        let Some(key) = self.keys.of_locator(locator) else {
            return Err(format!("the key {locator} is unknown; add it first"));
        };
        let result = match &*key.secret {
            Secret::Public(key) => signed.verify_key(key),
            Secret::Hmac(secret) => signed.verify_hmac(secret),
        };
        let (number, name) = (key.number(), key.name.clone());
        let bound = key.may_sign(prefix);
        match &result {
            Ok(()) => self.keys.count_verified(number),
            Err(_) => self.keys.count_failed(number),
        }
        result.map_err(|e| e.to_string())?;
        if !bound {
            return Err(format!("the key {name} may not register {prefix}"));
        }
        let signer = name.value();
        let now = cx.unix_ms;
        self.replay.check(signer, signed.replay, now).map_err(|e| e.to_string())?;
        self.replay.record(signer, signed.replay, now);
        Ok(Some(name))
    }

    /// Answers a registration that was carried out and tells of it.
    pub fn accept(&mut self, cx: &mut Cx<'_>, packet: &Packet, done: &Registration) {
        self.counters.accepted += 1;
        let mut body = ControlParameters {
            name: Some(done.prefix.clone()),
            face_id: Some(u64::from(done.face.0)),
            origin: Some(done.parameters.origin.unwrap_or(ORIGIN_APP)),
            ..ControlParameters::default()
        };
        if !done.is_removal {
            body.cost = Some(done.cost);
            body.flags = Some(done.parameters.flags.unwrap_or(ROUTE_CHILD_INHERIT));
            body.expiration_period_ms = done.expires_ms;
        }
        respond(cx, packet, &ControlResponse::ok(body));
        let route = RouteEvent {
            face: done.face.0,
            label: cx.ports.label(done.face).to_owned(),
            prefix: done.prefix.to_string(),
            cost: Some(done.cost),
            expires_ms: done.expires_ms,
            key: done.key.as_ref().map(ToString::to_string),
            reason: None,
        };
        let is_removal = done.is_removal;
        cx.events.push(if is_removal {
            Event::Unregistered(route)
        } else {
            Event::Registered(route)
        });
    }

    /// Answers that it could not be carried out.
    pub fn refuse(&mut self, cx: &mut Cx<'_>, packet: &Packet, code: u64, text: &str) {
        self.counters.refused += 1;
        respond(cx, packet, &ControlResponse::new(code, text));
    }
}

/// Answers the command in `packet`.
fn respond(cx: &mut Cx<'_>, packet: &Packet, response: &ControlResponse) {
    let Ok(interest) = Interest::parse(&packet.bytes) else { return };
    let content = response.to_wire();
    let data =
        DataBuilder { freshness_ms: FRESHNESS_MS, ..DataBuilder::new(interest.name, &content) };
    let mut wire = Vec::new();
    write_digest_data(&data, &mut wire);
    cx.answer(packet, Buf::copy_from(&wire));
}
