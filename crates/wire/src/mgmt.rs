//! The structures of the NFD management protocol: commands, datasets, notifications.
//!
//! Written in the canonical order that strict decoders need. Read in any order; unknown elements
//! are ignored; a required field that is missing is an error.

mod dataset;
mod field;
#[cfg(test)]
mod tests;

pub use dataset::{
    ChannelStatus, CsInfo, FaceEventNotification, FaceQueryFilter, FaceStatus, FibEntry,
    ForwarderStatus, NextHopRecord, RibEntry, Route, StrategyChoice,
};

use crate::name::{Component, Name, NameRef};
use crate::tlv::{self, Element, Malformed, Reader};
use crate::types;
use field::{Field, enumeration, structure};

/// A structure that is one TLV element.
pub trait Block: Sized {
    /// Its TLV type.
    const TYPE: u32;

    /// Reads its VALUE.
    ///
    /// # Errors
    /// [`Malformed`] when a required field is missing or a field cannot be read.
    fn parse_value(value: &[u8]) -> Result<Self, Malformed>;

    /// Appends its VALUE.
    fn write_value(&self, out: &mut Vec<u8>);

    /// Reads the whole element.
    ///
    /// # Errors
    /// As [`Block::parse_value`], and when `wire` is another element.
    fn parse(wire: &[u8]) -> Result<Self, Malformed> {
        Self::parse_value(Element::parse_as(wire, Self::TYPE)?.value)
    }

    /// Appends the whole element.
    fn write(&self, out: &mut Vec<u8>) {
        tlv::put_nested(out, Self::TYPE, |out| self.write_value(out));
    }

    /// The whole element.
    fn to_wire(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

/// Reads a dataset: elements of one type, one after the other.
///
/// # Errors
/// [`Malformed`] when one cannot be read; unknown elements that are not critical are skipped.
pub fn parse_list<T: Block>(content: &[u8]) -> Result<Vec<T>, Malformed> {
    let mut list = Vec::new();
    for element in Reader::new(content) {
        let element = element?;
        if element.typ == T::TYPE {
            list.push(T::parse_value(element.value)?);
        } else if tlv::is_critical(element.typ) {
            return Err(Malformed::Unexpected(element.typ));
        }
    }
    Ok(list)
}

enumeration! {
    /// Where the other end of a face is.
    Scope {
        /// Another node, as far as is known.
        #[default] NonLocal = 0 "non-local",
        /// An application on this host.
        Local = 1 "local"
    }
}

enumeration! {
    /// How long a face lives.
    Persistency {
        /// Until its socket fails.
        #[default] Persistent = 0 "persistent",
        /// Made by a peer's first packet; closed when idle.
        OnDemand = 1 "on-demand",
        /// Survives failures: a stream connects again.
        Permanent = 2 "permanent"
    }
}

enumeration! {
    /// How many peers hear what a face sends.
    LinkType {
        /// One.
        #[default] PointToPoint = 0 "point-to-point",
        /// Several, which hear each other.
        MultiAccess = 1 "multi-access",
        /// Several, which may not hear each other: a packet may go back where it came from.
        AdHoc = 2 "ad-hoc"
    }
}

enumeration! {
    /// What happened to a face.
    FaceEventKind {
        #[default] Created = 1 "created", Destroyed = 2 "destroyed", Up = 3 "up", Down = 4 "down",
        /// The network said that nobody is there (spec/registry.md). Anybody can forge that.
        Refused = 128 "refused"
    }
}

/// Face flag: IncomingFaceId, NextHopFaceId and CachePolicy are used on the face.
pub const FACE_LOCAL_FIELDS: u64 = 1;
/// Face flag: link reliability.
pub const FACE_RELIABILITY: u64 = 2;
/// Face flag: congestion marking.
pub const FACE_CONGESTION_MARKING: u64 = 4;
/// CS flag: Data may be inserted.
pub const CS_ADMIT: u64 = 1;
/// CS flag: Data may be served.
pub const CS_SERVE: u64 = 2;
/// Route flag: longer names inherit the route.
pub const ROUTE_CHILD_INHERIT: u64 = 1;
/// Route flag: the name inherits no routes.
pub const ROUTE_CAPTURE: u64 = 2;
/// Route origin: an application.
pub const ORIGIN_APP: u64 = 0;
/// Route origin: automatic registration for new faces.
pub const ORIGIN_AUTOREG: u64 = 64;
/// Route origin: a client (also what is propagated).
pub const ORIGIN_CLIENT: u64 = 65;
/// Route origin: automatic configuration.
pub const ORIGIN_AUTOCONF: u64 = 66;
/// Route origin: the routing protocol.
pub const ORIGIN_NLSR: u64 = 128;
/// Route origin: a prefix announcement.
pub const ORIGIN_PREFIX_ANNOUNCEMENT: u64 = 129;
/// Route origin: configuration by hand.
pub const ORIGIN_STATIC: u64 = 255;

structure! {
    /// The parameters of a command, and the body of its answer.
    pub struct ControlParameters = types::CONTROL_PARAMETERS => {
        /// Name, a prefix.
        name: Option<Name> = types::NAME,
        /// FaceId.
        face_id: Option<u64> = types::FACE_ID,
        /// Remote FaceUri.
        uri: Option<String> = types::URI,
        /// Local FaceUri.
        local_uri: Option<String> = types::LOCAL_URI,
        /// Route origin.
        origin: Option<u64> = types::ORIGIN,
        /// Cost.
        cost: Option<u64> = types::COST,
        /// Capacity of the content store, in packets.
        capacity: Option<u64> = types::CAPACITY,
        /// How many.
        count: Option<u64> = types::COUNT,
        /// Bits.
        flags: Option<u64> = types::FLAGS,
        /// Which bits of `flags` count.
        mask: Option<u64> = types::MASK,
        /// Name of a strategy instance.
        strategy: Option<Name> = types::STRATEGY,
        /// Milliseconds until a route ends.
        expiration_period_ms: Option<u64> = types::EXPIRATION_PERIOD,
        /// FacePersistency.
        face_persistency: Option<Persistency> = types::FACE_PERSISTENCY,
        /// Base interval of congestion marking, in nanoseconds.
        base_congestion_marking_interval_ns: Option<u64> = types::BASE_CONGESTION_MARKING_INTERVAL,
        /// Queue length above which congestion is marked, in octets.
        default_congestion_threshold: Option<u64> = types::DEFAULT_CONGESTION_THRESHOLD,
        /// MTU, in octets.
        mtu: Option<u64> = types::MTU,
    }
}

/// The answer to a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ControlResponse {
    /// Status code, below 400 for success.
    pub code: u64,
    /// What happened, for people.
    pub text: String,
    /// What was done; not with every answer.
    pub body: Option<ControlParameters>,
}

impl ControlResponse {
    /// An answer without body.
    #[must_use]
    pub fn new(code: u64, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), body: None }
    }

    /// Status 200 with `body`.
    #[must_use]
    pub fn ok(body: ControlParameters) -> Self {
        Self { code: 200, text: "OK".to_owned(), body: Some(body) }
    }

    /// Whether the command was carried out.
    #[must_use]
    pub const fn is_success(&self) -> bool {
        self.code < 400
    }
}

impl Block for ControlResponse {
    const TYPE: u32 = types::CONTROL_RESPONSE;

    fn parse_value(value: &[u8]) -> Result<Self, Malformed> {
        field::check(value)?;
        let body = match field::find(value, ControlParameters::TYPE) {
            Some(element) => Some(ControlParameters::parse_value(element.value)?),
            None => None,
        };
        Ok(Self {
            code: u64::read(value, types::STATUS_CODE)?,
            text: Option::<String>::read(value, types::STATUS_TEXT)?.unwrap_or_default(),
            body,
        })
    }

    fn write_value(&self, out: &mut Vec<u8>) {
        self.code.put(types::STATUS_CODE, out);
        self.text.put(types::STATUS_TEXT, out);
        if let Some(body) = &self.body {
            body.write(out);
        }
    }
}

/// The name of a command without its signature: `<prefix>/<module>/<verb>/<ControlParameters>`,
/// where `prefix` is `/localhost/nfd` or `/localhop/nfd`.
#[must_use]
pub fn command_name(
    prefix: NameRef<'_>,
    module: &str,
    verb: &str,
    parameters: &ControlParameters,
) -> Name {
    let mut name = prefix.to_name();
    name.append_generic(module).append_generic(verb).append_generic(parameters.to_wire());
    name
}

/// The ControlParameters in a name component, as commands carry them.
///
/// # Errors
/// [`Malformed`] when the component is not generic or holds something else.
pub fn parameters_of(component: Component<'_>) -> Result<ControlParameters, Malformed> {
    if !component.is_generic() {
        return Err(Malformed::Unexpected(u32::from(component.typ)));
    }
    ControlParameters::parse(component.value)
}
