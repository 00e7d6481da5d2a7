//! Laws of the elements, and the defects of the reference code that must not come back.

mod defects;
mod laws;
mod routers;
mod verifier;

use crate::config::{Config, KindConfig};
use crate::control::{Answer, Entries, Import, Page, Request, SetRequest, Table, TrustSource};
use crate::effect::{Effect, RulesForFilter};
use crate::events::Event;
use crate::function::{Function, Now};
use crate::kind::Kind;
use crate::ports::{Port, Side};
use crate::refusal::{Reason, Refusal};
use crate::rule::{Match, Rule};
use crate::verdict::Verdict;
use onym_crypto::{KeyType, PrivateKey, Signer};
use onym_frame::Buf;
use onym_link::{LpIn, Outbox, Packet, PacketKind, Transmit};
use onym_tables::pit::Token;
use onym_tables::{FaceId, HashKey, Tick};
use onym_wire::data::{Data, DataBuilder};
use onym_wire::interest::{Interest, InterestBuilder};
use onym_wire::lp::NackReason;
use onym_wire::mgmt::{ControlParameters, command_name};
use onym_wire::name::Name;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Unix time at the start.
const UNIX_MS: u64 = 1_700_000_000_000;

/// What left.
#[derive(Debug, Clone, PartialEq)]
struct Sent {
    face: u32,
    form: PacketKind,
    name: String,
    nonce: Option<u32>,
    token: Vec<u8>,
    reason: Option<u64>,
}

/// One service with virtual time.
struct Bed {
    function: Function,
    ms: u64,
    events: Vec<Event>,
    effects: Vec<Effect>,
    out: Outbox,
}

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn interest_of(uri: &str, nonce: u32, change: impl FnOnce(&mut InterestBuilder<'_>)) -> Buf {
    let name = name(uri);
    let mut builder =
        InterestBuilder { nonce: Some(nonce.to_be_bytes()), ..InterestBuilder::new(name.as_ref()) };
    change(&mut builder);
    let mut wire = Vec::new();
    builder.write(&mut wire);
    Buf::copy_from(&wire)
}

fn data_by(signer: &Signer, uri: &str, fresh: u64, content: &[u8]) -> Buf {
    let name = name(uri);
    let builder = DataBuilder { freshness_ms: fresh, ..DataBuilder::new(name.as_ref(), content) };
    let mut wire = Vec::new();
    signer.sign_data(&builder, &mut wire).unwrap();
    Buf::copy_from(&wire)
}

fn data_of(uri: &str, fresh: u64) -> Buf {
    data_by(&Signer::digest(), uri, fresh, b"content")
}

/// A signer with a key of this name, and its public half in base64.
fn signer(kind: KeyType, key: &str) -> (Signer, String) {
    let private = PrivateKey::generate(kind).unwrap();
    let spki = crate::table::encode(private.spki());
    (Signer::key(private, name(key)), spki)
}

fn packet(face: u32, bytes: Buf, token: &[u8], nack: Option<u64>) -> Packet {
    let pit_token = Token::try_from(token).unwrap();
    Packet {
        face: FaceId(face),
        bytes,
        lp: LpIn { pit_token, nack: nack.map(NackReason), ..LpIn::default() },
    }
}

impl Bed {
    /// A service with faces: numbers below 300 are of the consumer side.
    fn new(kind: Kind, faces: &[u32]) -> Self {
        let function = Function::new(kind, HashKey::new(1, 2), 3);
        let (events, effects) = (Vec::new(), Vec::new());
        let mut bed = Self { function, ms: 1000, events, effects, out: Outbox::default() };
        for face in faces {
            bed.face(*face);
        }
        bed
    }

    fn face(&mut self, number: u32) {
        let side = if number < 300 { Side::Consumer } else { Side::Producer };
        let port = Port::new(FaceId(number), format!("f{number}"), side);
        let now = self.now();
        self.function.face_added(now, port, &mut self.out);
        self.collect();
    }

    fn gone(&mut self, number: u32) {
        let now = self.now();
        self.function.face_removed(now, FaceId(number), &mut self.out);
        self.collect();
    }

    fn now(&self) -> Now {
        Now { tick: Tick::from_ms(self.ms), unix_ms: UNIX_MS + self.ms }
    }

    fn collect(&mut self) {
        self.events.extend(self.function.take_events());
        self.effects.extend(self.function.take_effects());
    }

    /// Hands a packet in: its verdict, and what left.
    fn take(&mut self, packet: Packet) -> (Verdict, Vec<Sent>) {
        let now = self.now();
        let mut verdict = self.function.receive(now, packet, &mut self.out);
        for mut job in std::mem::take(self.function.jobs()) {
            job.run();
            verdict = self.function.verified(now, job, &mut self.out).or(verdict);
        }
        self.collect();
        (verdict.unwrap(), self.sent())
    }

    fn interest(&mut self, face: u32, uri: &str, nonce: u32) -> (Verdict, Vec<Sent>) {
        self.take(packet(face, interest_of(uri, nonce, |_| ()), &[], None))
    }

    fn data(&mut self, face: u32, uri: &str) -> (Verdict, Vec<Sent>) {
        self.take(packet(face, data_of(uri, 10_000), &[], None))
    }

    /// Lets time go by; what left meanwhile.
    fn wait(&mut self, ms: u64) -> Vec<Sent> {
        let end = self.ms + ms;
        while self.ms < end {
            let due = self.function.poll_timeout().0.div_ceil(1_000_000);
            self.ms = due.clamp(self.ms + 1, end);
            let now = self.now();
            self.function.handle_timeout(now, &mut self.out);
        }
        self.collect();
        self.sent()
    }

    fn sent(&mut self) -> Vec<Sent> {
        let read = |item: &Transmit| {
            let bytes = self.out.bytes(item);
            let (form, lp) = item.as_pull().expect("services send packets of the pull half");
            let (name, nonce) = match Interest::parse(bytes) {
                Ok(i) => (i.name.to_string(), i.nonce.map(u32::from_be_bytes)),
                Err(_) => (Data::parse(bytes).unwrap().name.to_string(), None),
            };
            let token = lp.pit_token.to_vec();
            Sent {
                face: item.face.0,
                form,
                name,
                nonce,
                token,
                reason: lp.nack.map(|reason| reason.0),
            }
        };
        let all = self.out.items.iter().map(read).collect();
        self.out.clear();
        all
    }

    /// Changes some keys of the configuration.
    fn set(&mut self, patch: Value) {
        let mut config = serde_json::to_value(self.function.config()).unwrap();
        config.as_object_mut().unwrap().extend(patch.as_object().unwrap().clone());
        let config = config_of(self.function.kind(), config);
        let now = self.now();
        self.function.configure(now, config, &mut self.out).unwrap();
        self.collect();
    }

    fn ask(&mut self, request: Request) -> Result<Answer, Refusal> {
        let now = self.now();
        let answer = self.function.control(now, request, &mut self.out);
        self.collect();
        answer
    }

    /// Makes these the members of a set.
    fn put(&mut self, resource: &str, mut body: Value) -> Value {
        let members = body[resource].take();
        self.get(match resource {
            "routes" => Request::Routes(SetRequest::Replace(of(members))),
            "keys" => Request::Keys(SetRequest::Replace(of(members))),
            _ => Request::Rules(SetRequest::Replace(of(members))),
        })
    }

    /// Adds members to a set and takes others away, where that is allowed.
    fn try_post(&mut self, resource: &str, mut body: Value) -> Result<Value, Refusal> {
        let mut take = |list: &str| body.get_mut(list).map_or(json!([]), Value::take);
        let (add, remove) = (take("add"), take("remove"));
        self.ask(match resource {
            "routes" => Request::Routes(SetRequest::Change { add: of(add), remove: of(remove) }),
            "keys" => Request::Keys(SetRequest::Change { add: of(add), remove: of(remove) }),
            _ => Request::Rules(SetRequest::Change { add: of(add), remove: of(remove) }),
        })
        .map(|answer| serde_json::to_value(answer).unwrap())
    }

    fn post(&mut self, resource: &str, body: Value) -> Value {
        self.try_post(resource, body).unwrap()
    }

    fn get(&mut self, request: Request) -> Value {
        serde_json::to_value(self.ask(request).unwrap()).unwrap()
    }

    /// The whole table.
    fn export(&mut self) -> Table {
        let Answer::Table(table) = self.ask(Request::Export(Page::default())).unwrap() else {
            panic!("a table was asked for");
        };
        table
    }

    /// Merges a table of another instance.
    fn import(&mut self, table: &Table, faces: &[(&str, &str)]) -> Value {
        let faces = faces.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let entries = table.entries.clone();
        self.get(Request::Import(Import { entries, faces }))
    }

    fn stats(&mut self) -> Value {
        let now = self.now();
        serde_json::to_value(self.function.stats(now)).unwrap()
    }

    /// The events of a kind, as a manager reads them.
    fn event(&self, kind: &str) -> Vec<Value> {
        let all = self.events.iter().map(|e| serde_json::to_value(e).unwrap());
        all.filter(|e| e["kind"] == kind).collect()
    }

    /// A registration command of a producer.
    fn register(&mut self, face: u32, signer: &Signer, verb: &str, prefix: &str) -> (Verdict, u64) {
        let parameters =
            ControlParameters { name: Some(name(prefix)), ..ControlParameters::default() };
        let command = command_name(name("/localhost/nfd").as_ref(), "rib", verb, &parameters);
        let builder =
            InterestBuilder { nonce: Some([9, 9, 9, 9]), ..InterestBuilder::new(command.as_ref()) };
        self.ms += 1;
        let fresh = onym_crypto::signer::Freshness {
            time_ms: Some(UNIX_MS + self.ms),
            nonce: Some(self.ms.to_be_bytes()),
            ..onym_crypto::signer::Freshness::default()
        };
        let mut wire = Vec::new();
        signer.sign_interest(&builder, &[], fresh, &mut wire).unwrap();
        let now = self.now();
        let incoming = packet(face, Buf::copy_from(&wire), &[7], None);
        let verdict = self.function.receive(now, incoming, &mut self.out).unwrap();
        self.collect();
        let answer = self.out.items.first().map(|item| {
            let (_, lp) = item.as_pull().expect("an answer");
            assert_eq!(&*lp.pit_token, &[7], "the answer returns the token");
            let data = Data::parse(self.out.bytes(item)).unwrap();
            let content: onym_wire::mgmt::ControlResponse =
                onym_wire::mgmt::Block::parse(data.content).unwrap();
            content.code
        });
        self.out.clear();
        (verdict, answer.unwrap_or(0))
    }
}

fn of<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap_or_else(|e| panic!("{e}"))
}

/// The configuration that `value` writes.
fn config_of(kind: Kind, value: Value) -> Config {
    let (common, own): (Map<String, Value>, Map<String, Value>) =
        of::<Map<String, Value>>(value).into_iter().partition(|(key, _)| {
            ["return", "hash_components", "queue_bytes_max", "report_ms"].contains(&key.as_str())
        });
    let own = Value::Object(own);
    let own = match kind {
        Kind::NameRouter => KindConfig::NameRouter(of(own)),
        Kind::BackwardRouter => KindConfig::BackwardRouter(of(own)),
        Kind::PacketDispatcher => KindConfig::PacketDispatcher(of(own)),
        Kind::ContentStore => KindConfig::ContentStore(of(own)),
        Kind::StrategyForwarder => KindConfig::StrategyForwarder(of(own)),
        Kind::SignatureVerifier => KindConfig::SignatureVerifier(of(own)),
        Kind::NameFilter => KindConfig::NameFilter(of(own)),
        Kind::Forwarder => KindConfig::Forwarder(of(own)),
    };
    Config { own, common: of(Value::Object(common)) }
}

fn faces(sent: &[Sent]) -> Vec<u32> {
    sent.iter().map(|s| s.face).collect()
}

#[test]
fn the_reference_of_verdicts_is_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verdicts-services.md");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let written = crate::verdict::reference();
    assert_eq!(text, written, "docs/verdicts-services.md is stale; it should be:\n{written}");
}

#[test]
fn every_kind_has_the_statistics_and_the_configuration_that_it_is_said_to_have() {
    for kind in Kind::ALL {
        let mut bed = Bed::new(kind, &[]);
        let member = kind.word().replace('-', "_");
        assert!(bed.stats()[&member].is_object(), "{member}");
        let config = serde_json::to_value(bed.function.config()).unwrap();
        assert_eq!(config["return"], "token", "{member}");
        let before = bed.function.config();
        bed.set(config);
        assert_eq!(bed.function.config(), before, "{member}: it is read as it is written");
    }
}
