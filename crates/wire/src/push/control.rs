//! Control messages: what dispatchers, rendezvous and topology managers publish to each other.

use super::{Id, Label, RouteBuf, Status, Strategy, VERSION, field};
use crate::tlv::{self, Element, Malformed, Reader};

/// Kind of a message; unknown ones parse and are refused by who gets them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Kind(pub u8);

impl Kind {
    /// Publish a scope.
    pub const PUBLISH_SCOPE: Self = Self(0);
    /// Publish an item.
    pub const PUBLISH_ITEM: Self = Self(1);
    /// Take the publication of a scope back.
    pub const UNPUBLISH_SCOPE: Self = Self(2);
    /// Take the publication of an item back.
    pub const UNPUBLISH_ITEM: Self = Self(3);
    /// Subscribe to a scope.
    pub const SUBSCRIBE_SCOPE: Self = Self(4);
    /// Subscribe to an item.
    pub const SUBSCRIBE_ITEM: Self = Self(5);
    /// End the subscription to a scope.
    pub const UNSUBSCRIBE_SCOPE: Self = Self(6);
    /// End the subscription to an item.
    pub const UNSUBSCRIBE_ITEM: Self = Self(7);
    /// How rendezvous nodes and topology managers are reached.
    pub const HOMES: Self = Self(55);
    /// The item has subscribers now.
    pub const START: Self = Self(100);
    /// The item has none any more.
    pub const STOP: Self = Self(101);
    /// A scope came into being.
    pub const SCOPE_PUBLISHED: Self = Self(102);
    /// A scope is gone.
    pub const SCOPE_UNPUBLISHED: Self = Self(103);
    /// Publishers and subscribers of an item.
    pub const MATCH: Self = Self(105);
    /// Status of a request.
    pub const RESPONSE: Self = Self(106);
    /// The way to the subscribers is another one.
    pub const ROUTE: Self = Self(107);
    /// Received in order up to here.
    pub const ACK: Self = Self(160);
    /// The node lives and asserts what the digest says.
    pub const KEEP_ALIVE: Self = Self(161);
    /// Assert everything again.
    pub const ASSERT: Self = Self(162);
    /// Pass the body on to the dispatchers of these nodes.
    pub const RELAY: Self = Self(163);
    /// The links of a node.
    pub const LINK_STATE: Self = Self(164);
    /// A whole match is wanted.
    pub const MATCH_WANTED: Self = Self(165);
    /// A neighbour is there.
    pub const HELLO: Self = Self(166);
    /// Fragments are missing.
    pub const REPAIR: Self = Self(167);
    /// Paths to other domains.
    pub const DOMAIN_ROUTES: Self = Self(168);
    /// What a domain publishes and wants.
    pub const DOMAIN_FACTS: Self = Self(169);
    /// What nodes of the domain publish for others.
    pub const SHARED: Self = Self(170);
    /// Pass the body on to the neighbour domain at the end of a link.
    pub const DOMAIN_OUT: Self = Self(171);
    /// The body came from a neighbour domain.
    pub const DOMAIN_IN: Self = Self(172);
    /// Filters for frames that come from other domains.
    pub const BORDER: Self = Self(173);
    /// Several messages, each a body.
    pub const BUNDLE: Self = Self(174);
    /// A domain misses fragments of another one's publication.
    pub const DOMAIN_REPAIR: Self = Self(175);
    /// A message of a neighbour domain came.
    pub const DOMAIN_HEARD: Self = Self(176);
    /// What the caches of a node hold.
    pub const CACHED: Self = Self(177);
    /// What caches hold of an item is wanted.
    pub const WANTED: Self = Self(178);
    /// Send a late subscriber what the cache holds of these.
    pub const ANSWER: Self = Self(179);

    /// A way round a link, for when it is lost.
    pub const BACKUP: Self = Self(180);

    /// Whether it is a request for a rendezvous.
    #[must_use]
    pub const fn is_request(self) -> bool {
        self.0 <= Self::UNSUBSCRIBE_ITEM.0
    }

    /// Whether the request is about a scope.
    #[must_use]
    pub const fn is_of_scope(self) -> bool {
        self.is_request() && self.0 & 1 == 0
    }

    /// Whether the request is of a publisher.
    #[must_use]
    pub const fn is_of_publisher(self) -> bool {
        self.0 <= Self::UNPUBLISH_ITEM.0
    }

    /// Whether the request takes something back.
    #[must_use]
    pub const fn is_withdrawal(self) -> bool {
        matches!(self.0, 2 | 3 | 6 | 7)
    }

    /// The request that takes this one back.
    #[must_use]
    pub const fn withdrawal(self) -> Self {
        Self(self.0 | 2)
    }
}

/// Place of a message in its session (P-40); sequence 0 is outside of any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sequence {
    /// Number of the sender's session.
    pub session: u32,
    /// Number within the session, from 1.
    pub number: u32,
}

/// What a node does for its domain, as bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Role(pub u8);

impl Role {
    /// It is a rendezvous node.
    pub const RENDEZVOUS: Self = Self(1);
    /// It is a topology manager.
    pub const TOPOLOGY: Self = Self(2);
    /// It is what else is said only where nobody is that does not say this (P-84).
    pub const STANDBY: Self = Self(4);

    /// Whether all of `other` is in it.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One directed link of a link state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Link {
    /// The node at its end.
    pub neighbour: Label,
    /// Its number within the domain.
    pub number: u32,
    /// Its cost, at least 1.
    pub cost: u16,
}

/// How much of what a link carries is sent over it (P-90).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Load {
    /// Number of the link, one of the same link state.
    pub link: u32,
    /// What it carries, in kilobits per second.
    pub capacity: u32,
    /// How much of that is sent, in percent; 255 is that or more.
    pub percent: u8,
}

/// A rendezvous node or topology manager and the way to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// What it is.
    pub role: Role,
    /// Its node.
    pub node: Label,
    /// The way.
    pub route: RouteBuf,
}

/// A domain on a path, and the tag of the exit by which the path leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainHop {
    /// The domain.
    pub domain: Label,
    /// The tag, of the domain's own choice.
    pub exit: u64,
}

/// A path to another domain, as one domain tells it to a neighbour.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DomainRoute {
    /// Where it leads.
    pub destination: Label,
    /// The tag of delivery there.
    pub delivery: u64,
    /// Domains on the way with their exits, the one that tells first; empty when that is the
    /// destination.
    pub path: Vec<DomainHop>,
}

/// A control message. Fields that a kind does not use stay empty.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "the fields are those of the table in section 6")]
pub struct Control {
    pub kind: Kind,
    pub sender: Label,
    pub sequence: Sequence,
    pub ids: Vec<Id>,
    pub prefix: Id,
    pub strategy: Strategy,
    pub status: Option<Status>,
    pub route: Option<RouteBuf>,
    pub reply: Option<RouteBuf>,
    pub late: Option<RouteBuf>,
    pub word: Option<Box<str>>,
    pub publishers: Vec<Label>,
    pub subscribers: Vec<Label>,
    pub gone: Vec<Label>,
    pub nodes: Vec<Label>,
    pub item: Option<u64>,
    pub version: u64,
    pub is_full: bool,
    pub epoch: Option<u64>,
    pub number: u64,
    pub digest: u64,
    pub hops: u64,
    pub role: Role,
    pub request: Sequence,
    pub body: Vec<u8>,
    pub links: Vec<Link>,
    pub exits: Vec<Link>,
    pub loads: Vec<Load>,
    pub way: Vec<u32>,
    pub homes: Vec<Home>,
    pub missing: Vec<(u32, u32)>,
    pub domains: Vec<DomainRoute>,
}

/// Octets of the fixed part.
pub(super) const FIXED: usize = 18;

impl Control {
    /// A message of this kind from `sender`.
    #[must_use]
    pub fn new(kind: Kind, sender: Label) -> Self {
        Self { kind, sender, ..Self::default() }
    }

    /// Reads a message; the MAC, if it has one, is not checked.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(octets: &[u8]) -> Result<Self, Malformed> {
        let (fixed, fields) = octets.split_first_chunk::<FIXED>().ok_or(Malformed::Truncated)?;
        let [version, kind, a, b, c, d, e, f, g, h, s, t, u, v, w, x, y, z] = *fixed;
        if version != VERSION {
            return Err(Malformed::Value(u32::from(version)));
        }
        let mut message = Self::new(Kind(kind), Label([a, b, c, d, e, f, g, h]));
        message.sequence = Sequence {
            session: u32::from_be_bytes([s, t, u, v]),
            number: u32::from_be_bytes([w, x, y, z]),
        };
        for element in Reader::new(fields) {
            message.read(element?)?;
        }
        Ok(message)
    }

    fn read(&mut self, element: Element<'_>) -> Result<(), Malformed> {
        let value = element.value;
        match element.typ {
            field::ID => self.ids.push(id(element)?),
            field::PREFIX => self.prefix = id(element)?,
            field::STRATEGY => self.strategy = Strategy(octet(element)?),
            field::STATUS => self.status = Some(Status(octet(element)?)),
            field::ROUTE => self.route = Some(RouteBuf::parse(value)?),
            field::REPLY => self.reply = Some(RouteBuf::parse(value)?),
            field::LATE => self.late = Some(RouteBuf::parse(value)?),
            field::WORD => self.word = word(element),
            field::PUBLISHER => labels(element, &mut self.publishers)?,
            field::SUBSCRIBER => labels(element, &mut self.subscribers)?,
            field::GONE => labels(element, &mut self.gone)?,
            field::NODE => labels(element, &mut self.nodes)?,
            field::ITEM => self.item = Some(element.nni()?),
            field::VERSION => self.version = element.nni()?,
            field::EPOCH => self.epoch = Some(element.nni()?),
            field::NUMBER => self.number = element.nni()?,
            field::DIGEST => self.digest = element.nni()?,
            field::HOPS => self.hops = element.nni()?,
            field::ROLE => self.role = Role(octet(element)?),
            field::REQUEST => {
                let (session, number) = pair(element)?;
                self.request = Sequence { session, number };
            }
            field::FULL => self.is_full = true,
            field::BODY => self.body = value.to_vec(),
            field::LINK => self.links.push(link(element)?),
            field::EXIT => self.exits.push(link(element)?),
            field::LOAD => self.loads.push(load(element)?),
            field::WAY => self.way = numbers(element)?,
            field::HOME => self.homes.push(home(element)?),
            field::MISSING => self.missing.push(pair(element)?),
            field::DOMAIN => self.domains.push(domain_route(element)?),
            field::MAC => {}
            other if tlv::is_critical(other) => return Err(Malformed::UnknownCritical(other)),
            _ => {}
        }
        Ok(())
    }

    /// Appends the message, without a MAC.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[VERSION, self.kind.0]);
        out.extend_from_slice(&self.sender.0);
        out.extend_from_slice(&self.sequence.session.to_be_bytes());
        out.extend_from_slice(&self.sequence.number.to_be_bytes());
        self.ids.iter().for_each(|id| tlv::put_tlv(out, field::ID, id.octets()));
        if self.kind.is_request() {
            tlv::put_tlv(out, field::PREFIX, self.prefix.octets());
        }
        if self.kind.is_request() || self.kind == Kind::MATCH {
            tlv::put_tlv(out, field::STRATEGY, &[self.strategy.0]);
        }
        if let Some(word) = &self.word {
            tlv::put_tlv(out, field::WORD, word.as_bytes());
        }
        if let Some(status) = self.status {
            tlv::put_tlv(out, field::STATUS, &[status.0]);
        }
        let routes =
            [(field::ROUTE, &self.route), (field::REPLY, &self.reply), (field::LATE, &self.late)];
        for (typ, route) in routes {
            if let Some(route) = route {
                tlv::put_tlv(out, typ, route.octets());
            }
        }
        for (typ, labels) in [
            (field::PUBLISHER, &self.publishers),
            (field::SUBSCRIBER, &self.subscribers),
            (field::GONE, &self.gone),
            (field::NODE, &self.nodes),
        ] {
            put_labels(out, typ, labels);
        }
        self.write_numbers(out);
        if !self.body.is_empty() {
            tlv::put_tlv(out, field::BODY, &self.body);
        }
        self.links.iter().for_each(|link| put_link(out, field::LINK, link));
        self.exits.iter().for_each(|link| put_link(out, field::EXIT, link));
        self.loads.iter().for_each(|load| put_load(out, load));
        if !self.way.is_empty() {
            tlv::put_head(out, field::WAY, 4 * self.way.len());
            self.way.iter().for_each(|link| out.extend_from_slice(&link.to_be_bytes()));
        }
        for home in &self.homes {
            tlv::put_head(out, field::HOME, 9 + home.route.octets().len());
            out.push(home.role.0);
            out.extend_from_slice(&home.node.0);
            out.extend_from_slice(home.route.octets());
        }
        self.missing.iter().for_each(|(a, b)| put_pair(out, field::MISSING, *a, *b));
        self.domains.iter().for_each(|route| put_domain_route(out, route));
    }

    fn write_numbers(&self, out: &mut Vec<u8>) {
        if let Some(item) = self.item {
            tlv::put_nni_tlv(out, field::ITEM, item);
        }
        if let Some(epoch) = self.epoch {
            tlv::put_nni_tlv(out, field::EPOCH, epoch);
        }
        for (typ, number) in [
            (field::VERSION, self.version),
            (field::NUMBER, self.number),
            (field::DIGEST, self.digest),
            (field::HOPS, self.hops),
        ] {
            if number != 0 {
                tlv::put_nni_tlv(out, typ, number);
            }
        }
        if self.role != Role::default() {
            tlv::put_tlv(out, field::ROLE, &[self.role.0]);
        }
        if self.request != Sequence::default() {
            put_pair(out, field::REQUEST, self.request.session, self.request.number);
        }
        if self.is_full {
            tlv::put_tlv(out, field::FULL, &[]);
        }
    }

    /// The message as octets.
    #[must_use]
    pub fn octets(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// Splits a message into what its MAC is made of and the MAC; `None` when its last field is no
    /// MAC.
    #[must_use]
    pub fn split_mac(octets: &[u8]) -> Option<(&[u8], &[u8; 16])> {
        let (body, [typ, len, mac @ ..]) = octets.split_last_chunk::<18>()?;
        (u32::from(*typ) == field::MAC && *len == 16).then_some((body, mac))
    }

    /// Appends the MAC to a written message.
    pub fn put_mac(out: &mut Vec<u8>, mac: &[u8; 16]) {
        tlv::put_tlv(out, field::MAC, mac);
    }
}

fn id(element: Element<'_>) -> Result<Id, Malformed> {
    Id::from_octets(element.value).ok_or(Malformed::Length(element.typ))
}

/// What is no word is as if it were not there.
fn word(element: Element<'_>) -> Option<Box<str>> {
    std::str::from_utf8(element.value).ok().filter(|text| super::is_word(text)).map(Box::from)
}

fn octet(element: Element<'_>) -> Result<u8, Malformed> {
    match element.value {
        [octet] => Ok(*octet),
        _ => Err(Malformed::Length(element.typ)),
    }
}

fn labels(element: Element<'_>, to: &mut Vec<Label>) -> Result<(), Malformed> {
    match element.value.as_chunks() {
        (labels, []) => {
            to.extend(labels.iter().copied().map(Label));
            Ok(())
        }
        _ => Err(Malformed::Length(element.typ)),
    }
}

fn pair(element: Element<'_>) -> Result<(u32, u32), Malformed> {
    match *element.value {
        [a, b, c, d, e, f, g, h] => {
            Ok((u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h])))
        }
        _ => Err(Malformed::Length(element.typ)),
    }
}

fn link(element: Element<'_>) -> Result<Link, Malformed> {
    match *element.value {
        [a, b, c, d, e, f, g, h, n, o, p, q, x, y] => Ok(Link {
            neighbour: Label([a, b, c, d, e, f, g, h]),
            number: u32::from_be_bytes([n, o, p, q]),
            cost: u16::from_be_bytes([x, y]).max(1),
        }),
        _ => Err(Malformed::Length(element.typ)),
    }
}

fn load(element: Element<'_>) -> Result<Load, Malformed> {
    match *element.value {
        [n, o, p, q, c, d, e, f, percent] => Ok(Load {
            link: u32::from_be_bytes([n, o, p, q]),
            capacity: u32::from_be_bytes([c, d, e, f]),
            percent,
        }),
        _ => Err(Malformed::Length(element.typ)),
    }
}

fn numbers(element: Element<'_>) -> Result<Vec<u32>, Malformed> {
    match element.value.as_chunks() {
        (numbers, []) => Ok(numbers.iter().copied().map(u32::from_be_bytes).collect()),
        _ => Err(Malformed::Length(element.typ)),
    }
}

fn home(element: Element<'_>) -> Result<Home, Malformed> {
    match element.value {
        [role, a, b, c, d, e, f, g, h, route @ ..] => Ok(Home {
            role: Role(*role),
            node: Label([*a, *b, *c, *d, *e, *f, *g, *h]),
            route: RouteBuf::parse(route)?,
        }),
        _ => Err(Malformed::Length(element.typ)),
    }
}

fn domain_route(element: Element<'_>) -> Result<DomainRoute, Malformed> {
    let wrong = Malformed::Length(element.typ);
    let (destination, rest) = element.value.split_first_chunk().ok_or(wrong)?;
    let (delivery, rest) = rest.split_first_chunk().ok_or(wrong)?;
    let (hops, []) = rest.as_chunks::<16>() else { return Err(wrong) };
    let hop = |hop: &[u8; 16]| {
        let (domain, exit) = hop.split_first_chunk::<8>()?;
        let exit = u64::from_be_bytes(*exit.first_chunk()?);
        Some(DomainHop { domain: Label(*domain), exit })
    };
    let path = hops.iter().map(hop).collect::<Option<Vec<_>>>().ok_or(wrong)?;
    let delivery = u64::from_be_bytes(*delivery);
    Ok(DomainRoute { destination: Label(*destination), delivery, path })
}

fn put_domain_route(out: &mut Vec<u8>, route: &DomainRoute) {
    tlv::put_head(out, field::DOMAIN, 16 + 16 * route.path.len());
    out.extend_from_slice(&route.destination.0);
    out.extend_from_slice(&route.delivery.to_be_bytes());
    for hop in &route.path {
        out.extend_from_slice(&hop.domain.0);
        out.extend_from_slice(&hop.exit.to_be_bytes());
    }
}

fn put_labels(out: &mut Vec<u8>, typ: u32, labels: &[Label]) {
    if labels.is_empty() {
        return;
    }
    tlv::put_head(out, typ, 8 * labels.len());
    labels.iter().for_each(|label| out.extend_from_slice(&label.0));
}

fn put_pair(out: &mut Vec<u8>, typ: u32, a: u32, b: u32) {
    tlv::put_head(out, typ, 8);
    out.extend_from_slice(&a.to_be_bytes());
    out.extend_from_slice(&b.to_be_bytes());
}

fn put_link(out: &mut Vec<u8>, typ: u32, link: &Link) {
    tlv::put_head(out, typ, 14);
    out.extend_from_slice(&link.neighbour.0);
    out.extend_from_slice(&link.number.to_be_bytes());
    out.extend_from_slice(&link.cost.to_be_bytes());
}

fn put_load(out: &mut Vec<u8>, load: &Load) {
    tlv::put_head(out, field::LOAD, 9);
    out.extend_from_slice(&load.link.to_be_bytes());
    out.extend_from_slice(&load.capacity.to_be_bytes());
    out.push(load.percent);
}
