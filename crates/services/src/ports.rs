//! The faces of a service as its element sees them: a side each, and what they counted.

use crate::origin::{Origin, TAG_LEN};
use onym_tables::{FaceId, HashKey};
use onym_wire::mgmt::{LinkType, Scope};
use serde::{Deserialize, Serialize};

/// What lies beyond a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Those who ask.
    Consumer,
    /// Those who answer.
    Producer,
}

impl Side {
    /// The other one.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Consumer => Self::Producer,
            Self::Producer => Self::Consumer,
        }
    }

    /// The word of the control interface.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Consumer => "consumer",
            Self::Producer => "producer",
        }
    }
}

/// Who is at the other end of a face.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FarEnd {
    /// Anybody: what it says of a chain is ignored, and it is told nothing of one.
    #[default]
    Any,
    /// A service of the same chain, which is told origins and next hops and believed.
    Service,
}

impl FarEnd {
    /// The word of the control interface.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Service => "service",
        }
    }
}

/// Packets by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Interests.
    pub interests: u64,
    /// Data.
    pub data: u64,
    /// Nacks.
    pub nacks: u64,
}

impl Counts {
    /// Adds the counts of another face.
    pub fn add(&mut self, other: &Self) {
        self.interests += other.interests;
        self.data += other.data;
        self.nacks += other.nacks;
    }
}

/// One face.
#[derive(Debug, Clone)]
pub struct Port {
    /// Its number.
    pub id: FaceId,
    /// Its name in the control interface.
    pub label: String,
    /// What lies beyond it.
    pub side: Side,
    /// Share under weighted strategies.
    pub weight: u32,
    /// Order under failover, lowest first.
    pub rank: u32,
    /// No new Interests leave by it.
    pub draining: bool,
    /// Connected.
    pub up: bool,
    /// The peer is a program of this machine.
    pub local: bool,
    /// NextHopFaceId is honoured, IncomingFaceId is told.
    pub local_fields: bool,
    /// How many peers hear what is sent.
    pub link: LinkType,
    /// Who is at the other end; the shell keeps what they may not say from the element.
    pub far_end: FarEnd,
    /// What packets that come here said of where they entered the chain.
    pub origin: Option<Origin>,
    /// Packets received.
    pub received: Counts,
    /// Packets sent.
    pub sent: Counts,
    check: u8,
}

impl Port {
    /// A face that was just made.
    #[must_use]
    pub fn new(id: FaceId, label: impl Into<String>, side: Side) -> Self {
        Self {
            id,
            label: label.into(),
            side,
            weight: 1,
            rank: 0,
            draining: false,
            up: true,
            local: false,
            local_fields: false,
            link: LinkType::PointToPoint,
            far_end: FarEnd::Any,
            origin: None,
            received: Counts::default(),
            sent: Counts::default(),
            check: 0,
        }
    }

    /// What packets from here are told of by, where they say nothing themselves; `key` tells the
    /// faces of this service apart from those of others.
    #[must_use]
    pub fn entrance(&self, key: &HashKey) -> Origin {
        let scope = if self.local { Scope::Local } else { Scope::NonLocal };
        Origin::of(key, self.id, self.link, scope)
    }

    fn is_open(&self) -> bool {
        self.up
    }
}

/// The faces of a service. Bounded by the shell, which refuses connections beyond its limit.
#[derive(Debug)]
pub struct Ports {
    /// In the order of their numbers, which only grow.
    list: Vec<Port>,
    sides: [Vec<FaceId>; 2],
    /// Whether the ranks of a side tell its faces apart.
    ranked: [bool; 2],
    key: HashKey,
}

impl Ports {
    /// No faces. `key` makes the checks of tags.
    #[must_use]
    pub fn new(key: HashKey) -> Self {
        Self { list: Vec::new(), sides: [Vec::new(), Vec::new()], ranked: [false; 2], key }
    }

    /// Adds a face; its number must be above all earlier ones.
    pub fn add(&mut self, mut port: Port) {
        // The lowest octet, on purpose.
        #[allow(clippy::cast_possible_truncation)]
        {
            port.check = self.key.words([u64::from(port.id.0), 0x7461_6767]) as u8;
        }
        let at = self.list.partition_point(|p| p.id < port.id);
        self.list.insert(at, port);
        self.index();
    }

    /// Takes a face out.
    pub fn remove(&mut self, id: FaceId) -> Option<Port> {
        let at = self.position(id)?;
        let port = self.list.remove(at);
        self.index();
        Some(port)
    }

    /// Notes that a face is connected.
    pub fn connected(&mut self, id: FaceId) {
        self.note(id, true);
    }

    /// Notes that a face is connected no longer.
    pub fn disconnected(&mut self, id: FaceId) {
        self.note(id, false);
    }

    fn note(&mut self, id: FaceId, up: bool) {
        if let Some(port) = self.get_mut(id) {
            port.up = up;
        }
        self.index();
    }

    fn index(&mut self) {
        for side in [Side::Consumer, Side::Producer] {
            let ids = self.list.iter().filter(|p| p.side == side && p.is_open()).map(|p| p.id);
            self.sides[side as usize] = ids.collect();
            let of_side = || self.list.iter().filter(|p| p.side == side && p.is_open());
            let mut ranks: Vec<u32> = of_side().map(|p| p.rank).collect();
            let count = ranks.len();
            ranks.sort_unstable();
            ranks.dedup();
            self.ranked[side as usize] = ranks.len() == count;
        }
    }

    fn position(&self, id: FaceId) -> Option<usize> {
        self.list.binary_search_by_key(&id, |p| p.id).ok()
    }

    /// The face with this number.
    #[must_use]
    pub fn get(&self, id: FaceId) -> Option<&Port> {
        self.position(id).map(|at| &self.list[at])
    }

    /// The face with this number, to change. [`Ports::connected`] and [`Ports::disconnected`] change its state.
    pub fn get_mut(&mut self, id: FaceId) -> Option<&mut Port> {
        self.position(id).map(|at| &mut self.list[at])
    }

    /// The face with this label, or with this number written out.
    #[must_use]
    pub fn find(&self, label: &str) -> Option<&Port> {
        self.list.iter().find(|p| p.label == label).or_else(|| {
            let id = label.parse().ok()?;
            self.get(FaceId(id))
        })
    }

    /// All faces, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Port> {
        self.list.iter()
    }

    /// Connected faces of a side, oldest first.
    #[must_use]
    pub fn side(&self, side: Side) -> &[FaceId] {
        &self.sides[side as usize]
    }

    /// Changes weight, rank or draining of a face; false when it is gone.
    pub fn change(&mut self, id: FaceId, change: impl FnOnce(&mut Port)) -> bool {
        let Some(at) = self.position(id) else { return false };
        change(&mut self.list[at]);
        self.index();
        true
    }

    /// Which connected face of `side` takes names with this hash, draining ones left out. Faces
    /// are told apart by their ranks where these differ, so that neighbours agree whatever the
    /// order in which they connected; else by their order.
    #[must_use]
    pub fn choose(&self, side: Side, hash: u64) -> Option<FaceId> {
        let by_rank = self.ranked[side as usize];
        let open = self.sides[side as usize].iter().enumerate().filter_map(|(at, id)| {
            let port = self.get(*id).filter(|p| !p.draining)?;
            let key = if by_rank { u64::from(port.rank) } else { at as u64 };
            Some((*id, key, port.weight))
        });
        let at =
            crate::rendezvous::choose(hash, open.clone().map(|(_, key, weight)| (key, weight)));
        open.map(|(id, ..)| id).nth(at?)
    }

    /// The label of a face, empty when it is gone.
    #[must_use]
    pub fn label(&self, id: FaceId) -> &str {
        self.get(id).map_or("", |p| &p.label)
    }

    /// What stands in front of the token of an Interest from `id`, so that its answer finds back.
    #[must_use]
    pub fn tag(&self, id: FaceId) -> Option<[u8; TAG_LEN]> {
        let port = self.get(id)?;
        let low = id.0.to_be_bytes();
        Some([low[2], low[3], port.check])
    }

    /// The face that a tag names, and what follows it.
    #[must_use]
    pub fn untag<'a>(&self, token: &'a [u8], side: Side) -> Option<(FaceId, &'a [u8])> {
        let (&[high, low, check], rest) = token.split_first_chunk()?;
        let slot = u32::from(u16::from_be_bytes([high, low]));
        let fits = |p: &&Port| p.id.0 & 0xffff == slot && p.check == check && p.side == side;
        self.list.iter().find(fits).map(|p| (p.id, rest))
    }
}
