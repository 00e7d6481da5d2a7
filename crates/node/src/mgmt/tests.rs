//! Management against a host in memory.

mod access;
mod announcements;
mod foreign;
mod hostile;
mod lists;
mod trace;
mod verbs;

use super::host::*;
use super::*;
use onym_crypto::{Freshness, Signer, SystemEntropy};
use onym_tables::fib::NextHop;
use onym_wire::interest::InterestBuilder;
use onym_wire::mgmt::{Block as _, ControlParameters, LinkType, Persistency, Scope, command_name};
use std::collections::BTreeMap;

const NOW_MS: u64 = 1_700_000_000_000;

/// An application on this machine.
const APP: FaceId = FaceId(300);
/// A neighbour.
const PEER: FaceId = FaceId(301);

fn view(id: FaceId, scope: Scope, remote: &str, local: &str) -> FaceView {
    FaceView {
        id,
        remote_uri: remote.into(),
        local_uri: local.into(),
        expiration_ms: None,
        scope,
        persistency: Persistency::OnDemand,
        link_type: LinkType::PointToPoint,
        congestion_interval_ns: Some(100_000_000),
        congestion_threshold: Some(65_536),
        mtu: None,
        flags: 0,
        up: true,
        counters: FaceCounters { in_interests: 7, ..FaceCounters::default() },
    }
}

/// A node that keeps what it was told.
struct FakeHost {
    unix_ms: u64,
    faces: BTreeMap<u32, FaceView>,
    routes: Vec<RouteSpec>,
    fib: BTreeMap<Name, Vec<NextHop>>,
    strategies: BTreeMap<Name, Name>,
    cs: CsView,
    cs_under: u64,
    creation: fn(&FaceSpec) -> Creation,
    created: Vec<(Ticket, FaceSpec)>,
    updated: Vec<(FaceId, FaceProps)>,
    users: BTreeMap<u32, User>,
    traced: Option<Traced>,
    tracers: Vec<FaceId>,
}

impl Default for FakeHost {
    fn default() -> Self {
        let app = view(APP, Scope::Local, "fd://20", "unix:///run/nfd/nfd.sock");
        let peer = view(PEER, Scope::NonLocal, "udp4://192.0.2.1:6363", "udp4://192.0.2.2:6363");
        Self {
            unix_ms: NOW_MS,
            faces: [(APP.0, app), (PEER.0, peer)].into(),
            routes: Vec::new(),
            fib: BTreeMap::new(),
            strategies: BTreeMap::new(),
            cs: CsView { capacity: 65_536, admit: true, serve: true, ..CsView::default() },
            cs_under: 0,
            creation: |spec| {
                let local = "udp4://192.0.2.2:40000";
                Creation::Made(view(FaceId(400), Scope::NonLocal, &spec.remote_uri, local))
            },
            created: Vec::new(),
            updated: Vec::new(),
            users: [(APP.0, User { uid: Some(0), is_operator: true })].into(),
            traced: None,
            tracers: Vec::new(),
        }
    }
}

impl Host for FakeHost {
    fn unix_ms(&self) -> u64 {
        self.unix_ms
    }
    fn faces(&mut self) -> Vec<FaceView> {
        self.faces.values().cloned().collect()
    }
    fn face(&mut self, id: FaceId) -> Option<FaceView> {
        self.faces.get(&id.0).cloned()
    }
    fn user(&mut self, id: FaceId) -> User {
        self.users.get(&id.0).copied().unwrap_or_default()
    }
    fn is_of_others(&mut self, name: NameRef<'_>, from: FaceId) -> bool {
        let (users, own) = (&self.users, self.users.get(&from.0).copied().unwrap_or_default());
        self.routes.iter().any(|r| {
            let user = users.get(&r.face.0).copied().unwrap_or_default();
            name.is_prefix_of(r.name.as_ref()) && r.face != from && !user.is(own)
        })
    }
    fn channels(&mut self) -> Vec<String> {
        vec!["udp4://0.0.0.0:6363".into(), "unix:///run/nfd/nfd.sock".into()]
    }
    fn face_create(&mut self, ticket: Ticket, spec: FaceSpec) -> Creation {
        let creation = (self.creation)(&spec);
        self.created.push((ticket, spec));
        creation
    }
    fn face_update(&mut self, id: FaceId, props: &FaceProps) -> Result<FaceView, FaceError> {
        self.updated.push((id, props.clone()));
        if props.mtu == Some(9000) {
            let bad = FaceProps { mtu: props.mtu, ..FaceProps::default() };
            return Err(FaceError::BadProperties(bad));
        }
        let face = self.faces.get_mut(&id.0).ok_or(FaceError::NoSuchFace)?;
        face.flags = face.flags & !props.mask | props.flags;
        face.persistency = props.persistency.unwrap_or(face.persistency);
        Ok(face.clone())
    }
    fn face_destroy(&mut self, id: FaceId) -> bool {
        self.faces.remove(&id.0).is_some()
    }
    fn fib_add(&mut self, name: NameRef<'_>, hop: NextHop) -> Result<(), TableError> {
        self.fib.entry(name.to_name()).or_default().push(hop);
        Ok(())
    }
    fn fib_remove(&mut self, name: NameRef<'_>, face: FaceId) {
        if let Some(hops) = self.fib.get_mut(name.value()) {
            hops.retain(|hop| hop.face != face);
        }
    }
    fn fib(&mut self) -> Vec<(Name, Vec<NextHop>)> {
        self.fib.clone().into_iter().collect()
    }
    fn rib_register(&mut self, _: FaceId, route: RouteSpec) -> Result<(), TableError> {
        if route.cost == 666 {
            return Err(TableError::Full);
        }
        self.routes.push(route);
        Ok(())
    }
    fn rib_unregister(&mut self, name: NameRef<'_>, face: FaceId, origin: u64) {
        self.routes.retain(|r| (r.name.as_ref(), r.face, r.origin) != (name, face, origin));
    }
    fn rib(&mut self) -> Vec<RouteSpec> {
        self.routes.clone()
    }
    fn cs(&mut self) -> CsView {
        self.cs
    }
    fn cs_config(
        &mut self,
        capacity: Option<u64>,
        admit: Option<bool>,
        serve: Option<bool>,
    ) -> CsView {
        self.cs.capacity = capacity.unwrap_or(self.cs.capacity);
        self.cs.admit = admit.unwrap_or(self.cs.admit);
        self.cs.serve = serve.unwrap_or(self.cs.serve);
        self.cs
    }
    fn cs_erase(&mut self, _name: NameRef<'_>, count: u64) -> (u64, bool) {
        let erased = self.cs_under.min(count);
        self.cs_under -= erased;
        (erased, self.cs_under > 0)
    }
    fn strategy_set(
        &mut self,
        name: NameRef<'_>,
        strategy: NameRef<'_>,
    ) -> Result<Name, TableError> {
        match strategy.to_string().as_str() {
            "/localhost/nfd/strategy/multicast" => {
                let full: Name = "/localhost/nfd/strategy/multicast/v=5".parse().unwrap();
                self.strategies.insert(name.to_name(), full.clone());
                Ok(full)
            }
            "/localhost/nfd/strategy/asf/v=9" => {
                Err(TableError::StrategyRefused("asf has versions up to 5".into()))
            }
            _ => Err(TableError::UnknownStrategy),
        }
    }
    fn strategy_unset(&mut self, name: NameRef<'_>) {
        self.strategies.remove(name.value());
    }
    fn strategies(&mut self) -> Vec<(Name, Name)> {
        self.strategies.clone().into_iter().collect()
    }
    fn node(&mut self) -> NodeView {
        NodeView { version: "onym 0.1.0".into(), now_ms: self.unix_ms, ..NodeView::default() }
    }
    fn status_json(&mut self) -> String {
        "{\"faces\":2}".into()
    }
    fn may_trace(&mut self, face: FaceId) -> bool {
        self.tracers.contains(&face)
    }
    fn traced(&mut self, _target: NameRef<'_>, _from: FaceId) -> Option<Traced> {
        self.traced.clone()
    }
    fn explain_json(&mut self, name: NameRef<'_>) -> String {
        format!("{{\"name\":\"{name}\"}}")
    }
}

/// Management and its host, and a clock.
struct World {
    management: Management,
    host: FakeHost,
    now: Tick,
    serial: u64,
}

impl Default for World {
    fn default() -> Self {
        Self::with(Options::default())
    }
}

impl World {
    fn with(options: Options) -> Self {
        let management = Management::new(options, Box::new(SystemEntropy));
        Self { management, host: FakeHost::default(), now: Tick::from_ms(1), serial: 0 }
    }

    fn policy(policy: Policy) -> Self {
        Self::with(Options { policy, ..Options::default() })
    }

    /// Hands an Interest over and takes everything that is sent.
    fn send(&mut self, wire: &[u8], from: FaceId) -> Vec<Output> {
        self.management.interest(wire, from, self.now, &mut self.host);
        std::iter::from_fn(|| self.management.poll_output()).collect()
    }

    /// A signed Interest of format v0.3; each has its own nonce and a later time.
    fn signed(&mut self, name: &Name, signer: &Signer) -> Vec<u8> {
        self.serial += 1;
        let freshness = Freshness {
            nonce: Some(self.serial.to_be_bytes()),
            time_ms: Some(self.host.unix_ms + self.serial),
            seq: None,
        };
        let mut wire = Vec::new();
        let interest = InterestBuilder::new(name.as_ref());
        signer.sign_interest(&interest, &[], freshness, &mut wire).unwrap();
        wire
    }

    /// The answer to a command that an application signs with a digest.
    fn command(&mut self, verb: &str, parameters: &ControlParameters) -> ControlResponse {
        let wire = self.signed(&name_of(verb, parameters), &Signer::digest());
        response(&self.send(&wire, APP)).expect("every command is answered")
    }

    fn pass_ms(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        self.host.unix_ms += ms;
        self.management.handle_timeout(self.now, &mut self.host);
    }
}

/// The name of a command, such as `rib/register`, under `/localhost/nfd`.
fn name_of(verb: &str, parameters: &ControlParameters) -> Name {
    name_under("/localhost/nfd", verb, parameters)
}

fn name_under(prefix: &str, verb: &str, parameters: &ControlParameters) -> Name {
    let prefix: Name = prefix.parse().unwrap();
    let (module, verb) = verb.split_once('/').unwrap();
    command_name(prefix.as_ref(), module, verb, parameters)
}

/// The ControlResponse in the one Data that was sent.
fn response(sent: &[Output]) -> Option<ControlResponse> {
    let [Output::Data { wire, .. }] = sent else { return None };
    let data = Data::parse(wire).unwrap();
    onym_crypto::verify::integrity(&data).unwrap();
    assert_eq!(data.freshness_ms, 1000);
    Some(ControlResponse::parse(data.content).unwrap())
}

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn named(uri: &str) -> ControlParameters {
    ControlParameters { name: Some(name(uri)), ..ControlParameters::default() }
}
