//! The interface through which the management protocol changes and reads the node.
//!
//! All calls are made by the control thread. A call that changes the tables of the shards returns
//! after every shard has acknowledged the change, so a response describes what is in force.

use super::look::{DumpQuestion, Sight, TopQuestion};
use onym_tables::FaceId;
use onym_tables::fib::NextHop;
use onym_wire::mgmt::{LinkType, Persistency, Scope};
use onym_wire::name::{Name, NameRef};

/// Who is behind a face, as far as its door tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct User {
    /// The user; none at doors that do not tell, whose users are all others to each other.
    pub uid: Option<u32>,
    /// Whether it may operate the node: root, the node's user, a member of the group.
    pub is_operator: bool,
}

impl User {
    /// Nobody that is known.
    pub const UNKNOWN: Self = Self { uid: None, is_operator: false };

    /// Whether both are the same user for certain.
    #[must_use]
    pub fn is(self, other: Self) -> bool {
        self.uid.is_some() && self.uid == other.uid
    }
}

/// Packets and octets of one face since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FaceCounters {
    /// Interests received.
    pub in_interests: u64,
    /// Data received.
    pub in_data: u64,
    /// Nacks received.
    pub in_nacks: u64,
    /// Interests sent.
    pub out_interests: u64,
    /// Data sent.
    pub out_data: u64,
    /// Nacks sent.
    pub out_nacks: u64,
    /// Octets of the link layer received.
    pub in_bytes: u64,
    /// Octets of the link layer sent.
    pub out_bytes: u64,
    /// Longest frame that was found to arrive at the peer. Not a count.
    pub path_mtu: Option<u64>,
}

/// One face as management shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceView {
    /// Its number.
    pub id: FaceId,
    /// FaceUri of the other end.
    pub remote_uri: String,
    /// FaceUri of this end.
    pub local_uri: String,
    /// Milliseconds until it is closed when it stays idle; on-demand datagram faces only.
    pub expiration_ms: Option<u64>,
    /// Where the other end is.
    pub scope: Scope,
    /// How long it lives.
    pub persistency: Persistency,
    /// How many are at the other end.
    pub link_type: LinkType,
    /// Base congestion marking interval, in nanoseconds.
    pub congestion_interval_ns: Option<u64>,
    /// Default congestion threshold, in octets.
    pub congestion_threshold: Option<u64>,
    /// Largest frame, in octets; `None` without limit.
    pub mtu: Option<u64>,
    /// See `FACE_LOCAL_FIELDS` and others of [`onym_wire::mgmt`].
    pub flags: u64,
    /// Whether packets can be sent: a permanent face that connects again is not up.
    pub up: bool,
    /// Its counters.
    pub counters: FaceCounters,
}

/// Properties asked for when a face is made or changed; `None` leaves the default or the old value.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FaceProps {
    /// How long it lives.
    pub persistency: Option<Persistency>,
    /// New values of the flag bits in `mask`.
    pub flags: u64,
    /// The flag bits to change.
    pub mask: u64,
    /// Base congestion marking interval, in nanoseconds.
    pub congestion_interval_ns: Option<u64>,
    /// Default congestion threshold, in octets.
    pub congestion_threshold: Option<u64>,
    /// Largest frame, in octets.
    pub mtu: Option<u64>,
}

/// A face to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceSpec {
    /// Canonical FaceUri of the other end.
    pub remote_uri: String,
    /// FaceUri of this end, where the scheme needs it (`dev://eth0` for Ethernet).
    pub local_uri: Option<String>,
    /// Its properties.
    pub props: FaceProps,
}

/// Number that pairs a request that takes time with its end.
pub type Ticket = u64;

/// Answer of [`Host::face_create`].
#[derive(Debug)]
pub enum Creation {
    /// It is there.
    Made(FaceView),
    /// A connection is being made; `Management::face_created` is called with the ticket.
    Pending,
    /// It cannot be.
    Refused(FaceError),
}

/// Why a face was not made or not changed. Each has its code in the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FaceError {
    /// 400: not a FaceUri, or not canonical.
    BadUri(String),
    /// 406: the scheme or a property is not supported.
    Unsupported(String),
    /// 409: the face exists already.
    Exists(Box<FaceView>),
    /// 409: these properties cannot be changed so; offending ones are set in `props`.
    BadProperties(FaceProps),
    /// 404: no such face.
    NoSuchFace,
    /// 504: the connection was not made.
    ConnectFailed(String),
    /// 500: the system refused (out of descriptors, limit of faces).
    System(String),
}

/// Why a table was not changed. Each has its code in the protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableError {
    /// 410: no such face.
    FaceNotFound,
    /// 414: more components than a table keeps.
    NameTooLong,
    /// 507: the table is full.
    Full,
    /// 507: the face that asks for routes to itself has its share of the table.
    FaceFull,
    /// 404: no such strategy.
    UnknownStrategy,
    /// 409: the strategy refuses its version or parameters; the text says why.
    StrategyRefused(String),
}

/// A route to register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteSpec {
    /// Name prefix.
    pub name: Name,
    /// Next hop.
    pub face: FaceId,
    /// Who registered it.
    pub origin: u64,
    /// Cost.
    pub cost: u64,
    /// Route flags: 1 child-inherit, 2 capture.
    pub flags: u64,
    /// Milliseconds until it ends; `None` never.
    pub expiration_ms: Option<u64>,
}

/// State of the content store, all shards together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CsView {
    /// Most packets kept.
    pub capacity: u64,
    /// Whether Data is put in.
    pub admit: bool,
    /// Whether Interests are answered.
    pub serve: bool,
    /// Packets kept.
    pub entries: u64,
    /// Answers.
    pub hits: u64,
    /// Look-ups without answer.
    pub misses: u64,
}

/// State of the node, all shards together (`status/general`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeView {
    /// Name and version of the program.
    pub version: String,
    /// When the node started, in milliseconds of Unix time.
    pub start_ms: u64,
    /// Now, in milliseconds of Unix time.
    pub now_ms: u64,
    /// Names that tables refer to.
    pub name_tree_entries: u64,
    /// FIB entries.
    pub fib_entries: u64,
    /// PIT entries.
    pub pit_entries: u64,
    /// Measurements entries.
    pub measurements_entries: u64,
    /// Packets in the content store.
    pub cs_entries: u64,
    /// Packets, all faces together.
    pub counters: FaceCounters,
    /// Interests answered.
    pub satisfied_interests: u64,
    /// Interests that ended without Data.
    pub unsatisfied_interests: u64,
}

/// What a node tells about a name to whoever traces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    /// What the node is called.
    pub sender: Name,
    /// A code of [`onym_wire::trace`].
    pub code: u16,
    /// What would be done with an Interest for the name, as JSON.
    pub more: String,
}

/// What the management protocol asks of the node.
pub trait Host {
    /// Unix time, in milliseconds.
    fn unix_ms(&self) -> u64;
    /// All faces, by number.
    fn faces(&mut self) -> Vec<FaceView>;
    /// One face.
    fn face(&mut self, id: FaceId) -> Option<FaceView>;
    /// Whether a face leads to an application on this machine; asked for each Interest.
    fn is_local(&mut self, id: FaceId) -> bool {
        self.face(id).is_some_and(|face| face.scope == Scope::Local)
    }
    /// Who is behind a face of this machine; asked for each command.
    fn user(&mut self, id: FaceId) -> User;
    /// Whether a route at or under `name` leads to another user than the one behind `from`.
    fn is_of_others(&mut self, name: NameRef<'_>, from: FaceId) -> bool;
    /// FaceUris of the listeners.
    fn channels(&mut self) -> Vec<String>;
    /// Makes a face; `ticket` names the request when it takes time.
    fn face_create(&mut self, ticket: Ticket, spec: FaceSpec) -> Creation;
    /// Changes a face and returns how it then is.
    ///
    /// # Errors
    /// [`FaceError`].
    fn face_update(&mut self, id: FaceId, props: &FaceProps) -> Result<FaceView, FaceError>;
    /// Closes a face; whether there was one.
    fn face_destroy(&mut self, id: FaceId) -> bool;
    /// Adds or changes a next hop in the FIB.
    ///
    /// # Errors
    /// [`TableError`].
    fn fib_add(&mut self, name: NameRef<'_>, hop: NextHop) -> Result<(), TableError>;
    /// Removes a next hop from the FIB, if it is there.
    fn fib_remove(&mut self, name: NameRef<'_>, face: FaceId);
    /// The FIB, by name.
    fn fib(&mut self) -> Vec<(Name, Vec<NextHop>)>;
    /// Adds or changes a route in the RIB, asked for by the face `from`.
    ///
    /// # Errors
    /// [`TableError`].
    fn rib_register(&mut self, from: FaceId, route: RouteSpec) -> Result<(), TableError>;
    /// As [`Host::rib_register`] for a route to the asking face itself that a prefix announcement (one Data) makes; the
    /// announcement is kept for strategies that pass it on.
    ///
    /// # Errors
    /// [`TableError`].
    fn rib_announce(&mut self, route: RouteSpec, announcement: &[u8]) -> Result<(), TableError> {
        let _ = announcement;
        self.rib_register(route.face, route)
    }
    /// Removes a route from the RIB, if it is there.
    fn rib_unregister(&mut self, name: NameRef<'_>, face: FaceId, origin: u64);
    /// The RIB, by name; `expiration_ms` is what remains.
    fn rib(&mut self) -> Vec<RouteSpec>;
    /// The content store.
    fn cs(&mut self) -> CsView;
    /// Changes the content store and returns how it then is.
    fn cs_config(
        &mut self,
        capacity: Option<u64>,
        admit: Option<bool>,
        serve: Option<bool>,
    ) -> CsView;
    /// Erases at most `count` packets under `name`; how many were, and whether more remain.
    fn cs_erase(&mut self, name: NameRef<'_>, count: u64) -> (u64, bool);
    /// Sets the strategy of a prefix and returns its full name (with version).
    ///
    /// # Errors
    /// [`TableError::UnknownStrategy`], [`TableError::StrategyRefused`], [`TableError::NameTooLong`],
    /// [`TableError::Full`].
    fn strategy_set(
        &mut self,
        name: NameRef<'_>,
        strategy: NameRef<'_>,
    ) -> Result<Name, TableError>;
    /// Removes the strategy of a prefix; it then has that of the next shorter one.
    fn strategy_unset(&mut self, name: NameRef<'_>);
    /// The strategies, by prefix.
    fn strategies(&mut self) -> Vec<(Name, Name)>;
    /// The state of the node.
    fn node(&mut self) -> NodeView;
    /// `/localhost/onym/status/node`: the state as JSON.
    fn status_json(&mut self) -> String;
    /// `/localhost/onym/explain`: what the node would do with an Interest for `name`, as JSON.
    fn explain_json(&mut self, name: NameRef<'_>) -> String;

    /// The dataset `what` of the push half, about the identifier `argument` where it is about one;
    /// none when there is no such dataset.
    fn push_json(&mut self, what: &str, argument: &[u8]) -> Option<String> {
        let _ = (what, argument);
        None
    }
    /// `/localhost/onym/dump`: what was kept of packets for a viewer since it asked last, as records
    /// of [`onym_watch::record`].
    ///
    /// # Errors
    /// A sentence: too many viewers.
    fn dump(&mut self, question: &DumpQuestion) -> Result<Vec<u8>, String> {
        let _ = question;
        Err("this program shows no packets".to_owned())
    }
    /// `/localhost/onym/top`: what goes on, as JSON, since the viewer asked last.
    ///
    /// # Errors
    /// A sentence: too many viewers.
    fn top(&mut self, question: &TopQuestion, sight: Sight) -> Result<String, String> {
        let _ = (question, sight);
        Err("this program shows no traffic".to_owned())
    }
    /// `/localhost/onym/history`: the rows after the moment `since`, as JSON; none where nothing is
    /// kept.
    fn history_json(&mut self, since: u64) -> Option<String> {
        let _ = since;
        None
    }
    /// Whether the face may trace names through this node.
    fn may_trace(&mut self, face: FaceId) -> bool {
        let _ = face;
        false
    }
    /// What would be done with an Interest for `target` from the face `from`; none when the shards
    /// do not answer.
    fn traced(&mut self, target: NameRef<'_>, from: FaceId) -> Option<Traced> {
        let _ = (target, from);
        None
    }
    /// `/localhost/onym/log/lines`: the log as JSON; `None` when the program keeps none.
    fn log_json(&mut self) -> Option<String> {
        None
    }
    /// Sets the filter of the log.
    ///
    /// # Errors
    /// What is wrong with it and what is allowed.
    fn log_set(&mut self, _filter: &str) -> Result<(), String> {
        Err("this program has no log to configure".to_owned())
    }
}
