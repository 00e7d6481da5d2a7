//! What management asks of the node, done.

use super::Io;
use super::dial::Asked;
use super::explain::Explainer;
use super::faces::NewFace;
use super::listeners;
use super::onlook::Onlooker;
use super::plane::Plane;
use super::status::Survey;
use super::target::{Target, ip_of};
use super::trace::Tracer;
use crate::log::LogControl;
use crate::mgmt::Host;
use crate::mgmt::host::{
    Creation, CsView, FaceCounters, FaceError, FaceProps, FaceSpec, FaceView, NodeView, RouteSpec,
    TableError, Ticket, Traced, User,
};
use crate::mgmt::look::{DumpQuestion, Sight, TopQuestion};
use onym_engine::clock::unix_ms;
use onym_face::Transport;
use onym_frame::Buf;
use onym_link::PathMtu;
use onym_tables::FaceId;
use onym_tables::fib::NextHop;
use onym_wire::faceuri::FaceUri;
use onym_wire::mgmt::{FACE_LOCAL_FIELDS, LinkType, Persistency, Scope};
use onym_wire::name::{Name, NameRef};
use std::time::Duration;

/// Smallest frame that a face may be told to send.
const MTU_MIN: u64 = 64;

/// The node while management is at work: everything of the control thread but management.
pub(super) struct ManagementHost<'a> {
    pub(super) plane: &'a mut Plane,
    pub(super) io: &'a mut Io,
    pub(super) log: Option<&'a dyn LogControl>,
}

impl Host for ManagementHost<'_> {
    fn unix_ms(&self) -> u64 {
        unix_ms()
    }

    fn faces(&mut self) -> Vec<FaceView> {
        let mut faces = self.plane.face_views();
        faces.push(null_face());
        faces
    }

    fn face(&mut self, id: FaceId) -> Option<FaceView> {
        if id == FaceId::NULL {
            return Some(null_face());
        }
        self.plane.face_view(id)
    }

    fn is_local(&mut self, id: FaceId) -> bool {
        self.plane.faces.is_local(id)
    }

    fn user(&mut self, id: FaceId) -> User {
        self.plane.faces.user(id)
    }

    fn is_of_others(&mut self, name: NameRef<'_>, from: FaceId) -> bool {
        self.plane.routes.is_of_others(&self.plane.faces, name, from)
    }

    fn channels(&mut self) -> Vec<String> {
        listeners::uris(self.io)
    }

    fn face_create(&mut self, ticket: Ticket, spec: FaceSpec) -> Creation {
        match self.creation(ticket, &spec) {
            Ok(creation) => creation,
            Err(error) => Creation::Refused(error),
        }
    }

    fn face_update(&mut self, id: FaceId, props: &FaceProps) -> Result<FaceView, FaceError> {
        let Some(record) = self.plane.faces.get_mut(id) else { return Err(FaceError::NoSuchFace) };
        let mut bad = FaceProps::default();
        let wants_local = props.flags & props.mask & FACE_LOCAL_FIELDS != 0;
        if wants_local && record.scope == Scope::NonLocal {
            bad.flags |= FACE_LOCAL_FIELDS;
            bad.mask |= FACE_LOCAL_FIELDS;
        }
        // Neither a face that a peer's connection made nor one without an address can be made again.
        let is_connection = record.transport == Transport::Quic || !record.is_datagram();
        let again = record.target.is_some() || !is_connection;
        match props.persistency {
            Some(Persistency::OnDemand) if record.persistency != Persistency::OnDemand => {
                bad.persistency = props.persistency;
            }
            Some(Persistency::Permanent) if !again => bad.persistency = props.persistency,
            _ => {}
        }
        if props.mtu.is_some_and(|m| m < MTU_MIN || record.mtu.is_none()) {
            bad.mtu = props.mtu;
        }
        if bad != FaceProps::default() {
            return Err(FaceError::BadProperties(bad));
        }
        if let Some(persistency) = props.persistency {
            record.persistency = persistency;
        }
        record.flags = record.flags & !props.mask | props.flags & props.mask;
        if let Some(ns) = props.congestion_interval_ns {
            record.congestion.base_interval = Duration::from_nanos(ns);
        }
        if let Some(octets) = props.congestion_threshold {
            record.congestion.threshold = usize::try_from(octets).unwrap_or(usize::MAX);
        }
        if let Some(mtu) = props.mtu {
            let mtu = usize::try_from(mtu).unwrap_or(usize::MAX);
            record.mtu = Some(mtu.min(record.transport_mtu));
            if record.path == PathMtu::Find {
                record.path = PathMtu::Answer;
            }
        }
        self.plane.face_changed(id);
        self.face(id).ok_or(FaceError::NoSuchFace)
    }

    fn face_destroy(&mut self, id: FaceId) -> bool {
        self.plane.face_remove(id, "asked for by management")
    }

    fn fib_add(&mut self, name: NameRef<'_>, hop: NextHop) -> Result<(), TableError> {
        self.plane.shards.fib_set(&self.plane.faces, name, hop)
    }

    fn fib_remove(&mut self, name: NameRef<'_>, face: FaceId) {
        self.plane.shards.fib_unset(name, face);
    }

    fn fib(&mut self) -> Vec<(Name, Vec<NextHop>)> {
        self.plane.shards.fib_list()
    }

    fn rib_register(&mut self, from: FaceId, route: RouteSpec) -> Result<(), TableError> {
        if route.face == from && self.has_its_share(route.name.as_ref(), from) {
            return Err(TableError::FaceFull);
        }
        self.route_add(route, None)
    }

    fn rib_announce(&mut self, route: RouteSpec, announcement: &[u8]) -> Result<(), TableError> {
        if self.has_its_share(route.name.as_ref(), route.face) {
            return Err(TableError::FaceFull);
        }
        self.route_add(route, Some(Buf::copy_from(announcement)))
    }

    fn rib_unregister(&mut self, name: NameRef<'_>, face: FaceId, origin: u64) {
        let plane = &mut *self.plane;
        plane.routes.remove(&plane.shards, &plane.faces, name, face, origin);
    }

    fn rib(&mut self) -> Vec<RouteSpec> {
        self.plane.routes.list(self.io.now)
    }

    fn cs(&mut self) -> CsView {
        self.plane.shards.cs_view(&self.plane.settings.config.cs)
    }

    fn cs_config(
        &mut self,
        capacity: Option<u64>,
        admit: Option<bool>,
        serve: Option<bool>,
    ) -> CsView {
        let cs = &mut self.plane.settings.config.cs;
        if let Some(capacity) = capacity {
            cs.packets_max = usize::try_from(capacity).unwrap_or(usize::MAX).min(1 << 26);
        }
        cs.admit = admit.unwrap_or(cs.admit);
        cs.serve = serve.unwrap_or(cs.serve);
        self.plane.shards.cs_apply(cs);
        self.plane.shards.cs_view(cs)
    }

    fn cs_erase(&mut self, name: NameRef<'_>, count: u64) -> (u64, bool) {
        let erased = self.plane.shards.cs_erase(name, count);
        let Some(disk) = &self.plane.disk else { return (erased.count, erased.more) };
        // A packet may be on both levels, and is one packet; what is left on one comes back to the other.
        let limit = usize::try_from(count).unwrap_or(usize::MAX);
        let (on_disk, more) = disk.erase(name, limit);
        (erased.count.max(on_disk as u64), erased.more || more)
    }

    fn strategy_set(
        &mut self,
        name: NameRef<'_>,
        strategy: NameRef<'_>,
    ) -> Result<Name, TableError> {
        self.plane.shards.strategy_set(name, strategy)
    }

    fn strategy_unset(&mut self, name: NameRef<'_>) {
        self.plane.shards.strategy_unset(name);
    }

    fn strategies(&mut self) -> Vec<(Name, Name)> {
        self.plane.shards.strategy_list()
    }

    fn node(&mut self) -> NodeView {
        Survey { plane: self.plane, io: self.io }.view()
    }

    fn status_json(&mut self) -> String {
        Survey { plane: self.plane, io: self.io }.json()
    }

    fn push_json(&mut self, what: &str, argument: &[u8]) -> Option<String> {
        let plane = &*self.plane;
        super::push::dataset(plane.push.as_ref(), &plane.shards, &plane.faces, what, argument)
    }

    fn explain_json(&mut self, name: NameRef<'_>) -> String {
        Explainer::of(self.plane).explain(name)
    }

    fn dump(&mut self, question: &DumpQuestion) -> Result<Vec<u8>, String> {
        Onlooker { plane: self.plane, io: self.io }.dump(question)
    }

    fn top(&mut self, question: &TopQuestion, sight: Sight) -> Result<String, String> {
        Onlooker { plane: self.plane, io: self.io }.top(question, sight)
    }

    fn history_json(&mut self, since: u64) -> Option<String> {
        let Plane { history, faces, start_ms, .. } = &*self.plane;
        Some(history.json(since, *start_ms, |id| faces.get(id).map(|face| face.remote.clone())))
    }

    fn may_trace(&mut self, face: FaceId) -> bool {
        Tracer::of(self.plane).admits(face)
    }

    fn traced(&mut self, target: NameRef<'_>, from: FaceId) -> Option<Traced> {
        Tracer::of(self.plane).tell(target, from)
    }

    fn log_json(&mut self) -> Option<String> {
        self.log.map(crate::log::json)
    }

    fn log_set(&mut self, filter: &str) -> Result<(), String> {
        match self.log {
            Some(log) => log.set_filter(filter),
            None => Err("this program has no log to configure".to_owned()),
        }
    }
}

/// The face that leads nowhere: a next hop that drops, as scripts for NFD use it.
fn null_face() -> FaceView {
    FaceView {
        id: FaceId::NULL,
        remote_uri: FaceUri::Null.to_string(),
        local_uri: FaceUri::Null.to_string(),
        expiration_ms: None,
        scope: Scope::NonLocal,
        persistency: Persistency::Permanent,
        link_type: LinkType::PointToPoint,
        congestion_interval_ns: None,
        congestion_threshold: None,
        mtu: None,
        flags: 0,
        up: true,
        counters: FaceCounters::default(),
    }
}

impl ManagementHost<'_> {
    fn route_add(&mut self, route: RouteSpec, announcement: Option<Buf>) -> Result<(), TableError> {
        let Plane { routes, shards, faces, .. } = &mut *self.plane;
        routes.add(shards, faces, self.io.now, route, announcement)
    }

    fn has_its_share(&self, name: NameRef<'_>, face: FaceId) -> bool {
        let routes_max = self.plane.settings.config.tables.rib_routes_per_face_max;
        self.plane.routes.has_its_share(name, face, routes_max)
    }

    fn creation(&mut self, ticket: Ticket, spec: &FaceSpec) -> Result<Creation, FaceError> {
        let bad = |e: onym_wire::faceuri::FaceUriError| FaceError::BadUri(e.to_string());
        let uri = FaceUri::parse_canonical(&spec.remote_uri).map_err(bad)?;
        let local = spec.local_uri.as_deref().map(str::parse::<FaceUri>).transpose();
        let local = local.map_err(bad)?;
        if uri == FaceUri::Null {
            return Err(FaceError::Exists(Box::new(null_face())));
        }
        check_creation(&uri, local.as_ref(), &spec.props)?;
        if let Some(id) = self.plane.faces.to(&uri.to_string()) {
            let view = self.plane.face_view(id).ok_or(FaceError::NoSuchFace)?;
            return Err(FaceError::Exists(Box::new(view)));
        }
        let persistency = spec.props.persistency.unwrap_or_default();
        let new = NewFace { props: spec.props.clone(), ..NewFace::of(None, persistency) };
        let target = Target { local, ..Target::of(uri) };
        let asked = Asked::Management(ticket);
        match self.plane.face_create(self.io, target, asked, new)? {
            None => Ok(Creation::Pending),
            Some(id) => self.plane.created(id).map(Creation::Made),
        }
    }
}

/// What the protocol refuses whatever the system would say.
fn check_creation(
    uri: &FaceUri,
    local: Option<&FaceUri>,
    props: &FaceProps,
) -> Result<(), FaceError> {
    let no = |text: &str| Err(FaceError::Unsupported(text.to_owned()));
    match uri {
        FaceUri::Udp(_) if local.is_some_and(|l| !matches!(l, FaceUri::Udp(_))) => {
            return no("LocalUri of a UDP face is the address of a listener");
        }
        FaceUri::Tcp(_) | FaceUri::WebSocket(..) | FaceUri::Quic(_) if local.is_some() => {
            return no("LocalUri is for Ethernet and UDP only");
        }
        FaceUri::Ether(_) if !matches!(local, Some(FaceUri::Dev(_))) => {
            return no("Ethernet needs LocalUri dev://INTERFACE");
        }
        FaceUri::Ether(mac) if mac[0] & 1 == 1 => {
            return no("a multicast group is set with faces.ether.interfaces");
        }
        FaceUri::Udp(_)
        | FaceUri::Tcp(_)
        | FaceUri::WebSocket(..)
        | FaceUri::Quic(_)
        | FaceUri::Ether(_) => {}
        _ => return no("only udp4, udp6, tcp4, tcp6, ws, quic and ether faces can be created"),
    }
    let is_datagram = matches!(uri, FaceUri::Udp(_) | FaceUri::Quic(_) | FaceUri::Ether(_));
    if props.persistency == Some(Persistency::OnDemand) {
        return no("on-demand faces are made by peers");
    }
    if props.mtu.is_some_and(|m| m < MTU_MIN) {
        return no("the MTU must be at least 64");
    }
    if props.mtu.is_some() && !is_datagram {
        return no("a stream face has no MTU");
    }
    let loopback = ip_of(uri).is_some_and(|ip| ip.is_loopback());
    if props.flags & props.mask & FACE_LOCAL_FIELDS != 0 && (is_datagram || !loopback) {
        return no("local fields are for local faces");
    }
    Ok(())
}
