//! Commands for the forwarder, and what it tells about faces.

use onym_crypto::signer::{Freshness, Signer};
use onym_endpoint::{Endpoint, Packet, Request, RequestId};
use onym_route::Command;
use onym_route::router::CommandError;
use onym_tables::Tick;
use onym_wire::InterestBuilder;
use onym_wire::Name;
use onym_wire::mgmt::{
    self, Block, ControlParameters, ControlResponse, FACE_LOCAL_FIELDS, FaceEventNotification,
    ORIGIN_APP, ORIGIN_NLSR, Persistency,
};
use onym_wire::tlv::Element;
use std::collections::BTreeMap;
use std::time::Duration;

const LIFETIME: Duration = Duration::from_secs(2);
const TRIES: u32 = 3;
/// How long a question for face events waits before it is asked again.
const EVENTS_LIFETIME: Duration = Duration::from_secs(30);
/// A forwarder that tells no events is asked again after this time.
const EVENTS_AGAIN_MS: u64 = 5_000;

/// What the forwarder is told.
#[derive(Debug, Clone)]
pub(crate) enum Order {
    /// What the router wants.
    Routing(Command),
    /// A unicast face, permanent.
    Make { uri: String, local: Option<String>, mtu: Option<u64> },
    /// No face any more.
    Destroy { face: u64 },
}

/// Who waits for the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Whose {
    Router(u64),
    /// The meeting of the network with this number.
    Meet(usize, u64),
    Nobody,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) face: Option<u64>,
    /// The face was not there before.
    pub(crate) is_new: bool,
}

/// What became of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) whose: Whose,
    pub(crate) result: Result<Done, CommandError>,
}

struct Waiting {
    whose: Whose,
    order: Order,
    tries: u32,
}

/// Commands that wait for their answers, and the question for the next event.
pub(crate) struct Commands {
    signer: Signer,
    last_ms: u64,
    waiting: BTreeMap<RequestId, Waiting>,
    events: Option<RequestId>,
    events_at: Tick,
    next_event: Option<Name>,
}

impl Commands {
    pub(crate) fn new() -> Self {
        Self {
            signer: Signer::digest(),
            last_ms: 0,
            waiting: BTreeMap::new(),
            events: None,
            events_at: Tick(0),
            next_event: None,
        }
    }

    /// Sends `order`. `Some` is an answer at once: there are too many, or it cannot be signed.
    pub(crate) fn send(
        &mut self,
        now: Tick,
        unix_ms: u64,
        endpoint: &mut Endpoint,
        whose: Whose,
        order: Order,
    ) -> Option<Answer> {
        self.try_once(now, unix_ms, endpoint, Waiting { whose, order, tries: TRIES })
    }

    fn try_once(
        &mut self,
        now: Tick,
        unix_ms: u64,
        endpoint: &mut Endpoint,
        mut waiting: Waiting,
    ) -> Option<Answer> {
        waiting.tries -= 1;
        let request = Request { lifetime: LIFETIME, ..Request::new(Name::new()) };
        let sent = self
            .encode(unix_ms, &waiting.order)
            .and_then(|wire| endpoint.express_encoded(now, wire, &request).ok());
        match sent {
            Some(id) => {
                self.waiting.insert(id, waiting);
                None
            }
            None => Some(Answer { whose: waiting.whose, result: Err(CommandError::Silent) }),
        }
    }

    /// The signed Interest. Each try has a later time: forwarders refuse a repetition.
    fn encode(&mut self, unix_ms: u64, order: &Order) -> Option<Vec<u8>> {
        let (module, verb, parameters) = spell(order);
        let prefix: Name = "/localhost/nfd".parse().ok()?;
        let name = mgmt::command_name(prefix.as_ref(), module, verb, &parameters);
        self.last_ms = unix_ms.max(self.last_ms + 1);
        let fresh = Freshness {
            nonce: Some(self.last_ms.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes()),
            time_ms: Some(self.last_ms),
            seq: None,
        };
        let builder = InterestBuilder {
            nonce: Some([0; 4]),
            lifetime_ms: Some(2000),
            ..InterestBuilder::new(name.as_ref())
        };
        let mut wire = Vec::new();
        self.signer.sign_interest(&builder, &[], fresh, &mut wire).ok()?;
        Some(wire)
    }

    /// Whether no command waits for its answer.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }

    /// A Data answered `id`: a command's answer, or nothing of a command.
    pub(crate) fn answered(&mut self, id: RequestId, packet: &Packet) -> Option<Answer> {
        let waiting = self.waiting.remove(&id)?;
        let data = packet.data();
        let response = Element::parse_as(data.content, ControlResponse::TYPE)
            .and_then(|element| ControlResponse::parse_value(element.value));
        let face = |r: &ControlResponse| r.body.as_ref().and_then(|body| body.face_id);
        let result = match response {
            Ok(response) if response.code < 400 => Ok(Done { face: face(&response), is_new: true }),
            // The face is there already, which is as good.
            Ok(response) if response.code == 409 => match face(&response) {
                Some(face) => Ok(Done { face: Some(face), is_new: false }),
                None => Err(CommandError::Refused(409)),
            },
            Ok(response) => {
                tracing::debug!(code = response.code, "the forwarder refused {:?}", waiting.order);
                Err(CommandError::Refused(response.code))
            }
            Err(_) => Err(CommandError::Silent),
        };
        Some(Answer { whose: waiting.whose, result })
    }

    /// Nothing answered `id`. It is tried again, or that is the answer.
    pub(crate) fn unanswered(
        &mut self,
        now: Tick,
        unix_ms: u64,
        endpoint: &mut Endpoint,
        id: RequestId,
    ) -> Option<Answer> {
        if self.events == Some(id) {
            self.events = None;
            self.next_event = None;
            self.events_at = now.plus_ms(EVENTS_AGAIN_MS);
            return None;
        }
        let waiting = self.waiting.remove(&id)?;
        if waiting.tries == 0 {
            return Some(Answer { whose: waiting.whose, result: Err(CommandError::Silent) });
        }
        self.try_once(now, unix_ms, endpoint, waiting)
    }

    // --- events of faces

    /// Asks for the next event of faces, when that is not asked yet.
    pub(crate) fn watch_faces(&mut self, now: Tick, endpoint: &mut Endpoint) {
        if self.events.is_some() || now < self.events_at {
            return;
        }
        let newest = self.next_event.is_none();
        let all = || "/localhost/nfd/faces/events".parse().unwrap_or_default();
        let request = Request {
            can_be_prefix: newest,
            must_be_fresh: newest,
            lifetime: EVENTS_LIFETIME,
            ..Request::new(self.next_event.clone().unwrap_or_else(all))
        };
        self.events = endpoint.express(now, &request).ok();
    }

    /// The event in `packet`, if `id` asked for one.
    pub(crate) fn event(
        &mut self,
        now: Tick,
        id: RequestId,
        packet: &Packet,
    ) -> Option<FaceEventNotification> {
        if self.events != Some(id) {
            return None;
        }
        self.events = None;
        let data = packet.data();
        let number = data.name.last().and_then(onym_wire::Component::as_sequence_num);
        self.next_event = number.map(|number| {
            let mut next = data.name.drop_last(1).to_name();
            next.append_sequence_num(number + 1);
            next
        });
        let element = Element::parse_as(data.content, FaceEventNotification::TYPE);
        let event = element.and_then(|e| FaceEventNotification::parse_value(e.value)).ok();
        if event.is_none() {
            // A refusal: this forwarder has no events.
            self.next_event = None;
            self.events_at = now.plus_ms(EVENTS_AGAIN_MS);
        }
        event
    }
}

fn spell(order: &Order) -> (&'static str, &'static str, ControlParameters) {
    let none = ControlParameters::default;
    match order.clone() {
        Order::Routing(command) => spell_routing(command),
        Order::Make { uri, local, mtu } => {
            let face_persistency = Some(Persistency::Permanent);
            let (uri, local_uri) = (Some(uri), local);
            let parameters = ControlParameters { uri, local_uri, mtu, face_persistency, ..none() };
            ("faces", "create", parameters)
        }
        Order::Destroy { face } => {
            ("faces", "destroy", ControlParameters { face_id: Some(face), ..none() })
        }
    }
}

fn spell_routing(command: Command) -> (&'static str, &'static str, ControlParameters) {
    let none = ControlParameters::default;
    match command {
        Command::LocalFields => {
            let bit = Some(FACE_LOCAL_FIELDS);
            ("faces", "update", ControlParameters { flags: bit, mask: bit, ..none() })
        }
        Command::Serve { prefix } => {
            let (name, cost, origin) = (Some(prefix), Some(0), Some(ORIGIN_APP));
            ("rib", "register", ControlParameters { name, cost, origin, ..none() })
        }
        Command::Multicast { prefix } => {
            let strategy = "/localhost/nfd/strategy/multicast".parse().ok();
            let parameters = ControlParameters { name: Some(prefix), strategy, ..none() };
            ("strategy-choice", "set", parameters)
        }
        Command::CreateFace { uri, mtu } => {
            let face_persistency = Some(Persistency::Permanent);
            let parameters = ControlParameters { uri: Some(uri), mtu, face_persistency, ..none() };
            ("faces", "create", parameters)
        }
        Command::Register { prefix, face, cost } => {
            let parameters = ControlParameters {
                name: Some(prefix),
                face_id: Some(face),
                origin: Some(ORIGIN_NLSR),
                cost: Some(cost),
                ..none()
            };
            ("rib", "register", parameters)
        }
        Command::Unregister { prefix, face } => {
            let parameters = ControlParameters {
                name: Some(prefix),
                face_id: Some(face),
                origin: Some(ORIGIN_NLSR),
                ..none()
            };
            ("rib", "unregister", parameters)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_crypto::signer::write_digest_data;
    use onym_endpoint::{Event, Inbound, Limits};
    use onym_wire::{DataBuilder, Interest};

    /// ndnd answers so.
    #[test]
    fn a_forwarder_that_refuses_to_tell_events_is_asked_again_after_a_while_only() {
        let (mut endpoint, mut commands) = (Endpoint::new(7, Limits::default()), Commands::new());
        let mut refusal = Vec::new();
        ControlResponse::new(501, "Unknown verb").write(&mut refusal);
        let mut asked = 0;
        for now in (0..11_000).map(Tick::from_ms) {
            commands.watch_faces(now, &mut endpoint);
            while let Some(transmit) = endpoint.poll_transmit() {
                asked += 1;
                let name = Interest::parse(&transmit.wire).unwrap().name;
                let builder =
                    DataBuilder { freshness_ms: 1000, ..DataBuilder::new(name, &refusal) };
                let mut data = Vec::new();
                write_digest_data(&builder, &mut data);
                endpoint.receive(now, &Inbound::bare(&data));
            }
            while let Some(event) = endpoint.poll_event() {
                let Event::Data { id, packet, .. } = event else { continue };
                assert!(commands.event(now, id, &packet).is_none());
            }
        }
        assert_eq!(asked, 3, "once in five seconds");
    }
}
