//! A host without a node, for fuzzing: every face exists and is local, every table takes
//! everything and keeps nothing.

use super::host::{
    Creation, CsView, FaceCounters, FaceError, FaceProps, FaceSpec, FaceView, Host, NodeView,
    RouteSpec, TableError, Ticket, User,
};
use onym_tables::FaceId;
use onym_tables::fib::NextHop;
use onym_wire::mgmt::{LinkType, Persistency, Scope};
use onym_wire::name::{Name, NameRef};

/// The host without a node.
#[derive(Debug, Default, Clone, Copy)]
pub struct Blank {
    /// What its clock shows, in milliseconds of Unix time.
    pub unix_ms: u64,
}

fn face(id: FaceId) -> FaceView {
    FaceView {
        id,
        remote_uri: "fd://1".into(),
        local_uri: "unix:///nowhere".into(),
        expiration_ms: None,
        scope: Scope::Local,
        persistency: Persistency::OnDemand,
        link_type: LinkType::PointToPoint,
        congestion_interval_ns: None,
        congestion_threshold: None,
        mtu: None,
        flags: 0,
        up: true,
        counters: FaceCounters::default(),
    }
}

impl Host for Blank {
    fn unix_ms(&self) -> u64 {
        self.unix_ms
    }
    fn faces(&mut self) -> Vec<FaceView> {
        vec![face(FaceId::FIRST)]
    }
    fn face(&mut self, id: FaceId) -> Option<FaceView> {
        Some(face(id))
    }
    fn user(&mut self, _id: FaceId) -> User {
        User { uid: Some(0), is_operator: true }
    }
    fn is_of_others(&mut self, _name: NameRef<'_>, _from: FaceId) -> bool {
        false
    }
    fn channels(&mut self) -> Vec<String> {
        Vec::new()
    }
    fn face_create(&mut self, _ticket: Ticket, _spec: FaceSpec) -> Creation {
        Creation::Pending
    }
    fn face_update(&mut self, id: FaceId, _props: &FaceProps) -> Result<FaceView, FaceError> {
        Ok(face(id))
    }
    fn face_destroy(&mut self, _id: FaceId) -> bool {
        true
    }
    fn fib_add(&mut self, _name: NameRef<'_>, _hop: NextHop) -> Result<(), TableError> {
        Ok(())
    }
    fn fib_remove(&mut self, _name: NameRef<'_>, _face: FaceId) {}
    fn fib(&mut self) -> Vec<(Name, Vec<NextHop>)> {
        Vec::new()
    }
    fn rib_register(&mut self, _from: FaceId, _route: RouteSpec) -> Result<(), TableError> {
        Ok(())
    }
    fn rib_unregister(&mut self, _name: NameRef<'_>, _face: FaceId, _origin: u64) {}
    fn rib(&mut self) -> Vec<RouteSpec> {
        Vec::new()
    }
    fn cs(&mut self) -> CsView {
        CsView::default()
    }
    fn cs_config(
        &mut self,
        _capacity: Option<u64>,
        _admit: Option<bool>,
        _serve: Option<bool>,
    ) -> CsView {
        CsView::default()
    }
    fn cs_erase(&mut self, _name: NameRef<'_>, count: u64) -> (u64, bool) {
        (count, true)
    }
    fn strategy_set(
        &mut self,
        _name: NameRef<'_>,
        strategy: NameRef<'_>,
    ) -> Result<Name, TableError> {
        Ok(strategy.to_name())
    }
    fn strategy_unset(&mut self, _name: NameRef<'_>) {}
    fn strategies(&mut self) -> Vec<(Name, Name)> {
        Vec::new()
    }
    fn node(&mut self) -> NodeView {
        NodeView::default()
    }
    fn status_json(&mut self) -> String {
        "{}".into()
    }
    fn explain_json(&mut self, name: NameRef<'_>) -> String {
        name.to_string()
    }
}
