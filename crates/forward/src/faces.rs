//! The faces as forwarding sees them: scope, link type, and what is counted per face.

use crate::fairness::load::Load;
use onym_tables::FaceId;
use onym_tables::index::HashIndex;
use onym_wire::mgmt::{LinkType, Scope};

/// What forwarding must know of a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaceInfo {
    /// Local or not.
    pub scope: Scope,
    /// Kind of link.
    pub link: LinkType,
    /// Whether local fields are enabled: NextHopFaceId is honoured, IncomingFaceId is written.
    pub local_fields: bool,
}

impl FaceInfo {
    /// An application on this host.
    #[must_use]
    pub const fn local() -> Self {
        Self { scope: Scope::Local, link: LinkType::PointToPoint, local_fields: false }
    }

    /// One other node.
    #[must_use]
    pub const fn point_to_point() -> Self {
        Self { scope: Scope::NonLocal, link: LinkType::PointToPoint, local_fields: false }
    }
}

/// Packets counted per face, as the face dataset lists them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct FaceCounters {
    pub in_interests: u64,
    pub in_data: u64,
    pub in_nacks: u64,
    pub out_interests: u64,
    pub out_data: u64,
    pub out_nacks: u64,
    /// Interests of this face that Data satisfied, and that ended without.
    pub satisfied: u64,
    pub unsatisfied: u64,
    pub in_hop_limit_zero: u64,
    pub out_hop_limit_zero: u64,
}

/// One face in the table.
#[derive(Debug)]
pub struct Face {
    /// Its number.
    pub id: FaceId,
    /// What it is.
    pub info: FaceInfo,
    /// What was counted.
    pub counters: FaceCounters,
    /// What it has pending, and uses.
    pub load: Load,
    /// Whether it may be used.
    pub(crate) live: bool,
}

impl Face {
    /// Whether this face leads to this host only.
    #[inline]
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.info.scope == Scope::Local
    }
}

/// The faces of a forwarder.
#[derive(Debug, Default)]
pub struct Faces {
    /// Slots of faces with small numbers, which are nearly all: one load instead of a search.
    direct: Vec<u32>,
    /// Slots of the others.
    index: HashIndex,
    slots: Vec<Face>,
    free: Vec<u32>,
}

/// Where a face is in the table, as long as no face is added or taken out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FaceSlot(u32);

/// Face numbers below this one are looked up in a table of 256 KiB at most.
const DIRECT: u32 = 1 << 16;
const NONE: u32 = u32::MAX;

/// Spreads face numbers, which are our own and small, over the index.
#[inline(always)]
fn spread(id: FaceId) -> u64 {
    u64::from(id.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Faces {
    /// Where the face numbered `id` is.
    #[inline]
    pub(crate) fn slot(&self, id: FaceId) -> Option<FaceSlot> {
        if let Some(&slot) = self.direct.get(id.0 as usize) {
            return (slot != NONE).then_some(FaceSlot(slot));
        }
        self.rare_slot(id)
    }

    #[cold]
    fn rare_slot(&self, id: FaceId) -> Option<FaceSlot> {
        self.index.find(spread(id), |s| self.slots[s as usize].id == id).map(FaceSlot)
    }

    /// The face in `slot`.
    #[inline]
    pub(crate) fn at(&self, slot: FaceSlot) -> &Face {
        &self.slots[slot.0 as usize]
    }

    /// The face in `slot`, to count.
    #[inline]
    pub(crate) fn at_mut(&mut self, slot: FaceSlot) -> &mut Face {
        &mut self.slots[slot.0 as usize]
    }

    fn set_slot(&mut self, id: FaceId, slot: u32) {
        if id.0 >= DIRECT {
            self.index.insert(spread(id), slot);
            return;
        }
        let at = id.0 as usize;
        if at >= self.direct.len() {
            self.direct.resize(at + 1, NONE);
        }
        self.direct[at] = slot;
    }

    /// The face numbered `id`.
    #[inline]
    #[must_use]
    pub fn get(&self, id: FaceId) -> Option<&Face> {
        self.slot(id).map(|slot| self.at(slot))
    }

    /// The face numbered `id`, to count.
    #[inline]
    pub(crate) fn get_mut(&mut self, id: FaceId) -> Option<&mut Face> {
        self.slot(id).map(|slot| self.at_mut(slot))
    }

    /// Shows the load of each face, and how many of its Interests were satisfied; says for how many
    /// `roll` held.
    pub(crate) fn roll(&mut self, mut roll: impl FnMut(&mut Load, u64) -> bool) -> u64 {
        let live = self.slots.iter_mut().filter(|f| f.live);
        live.map(|f| u64::from(roll(&mut f.load, f.counters.satisfied))).sum()
    }

    /// All faces, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &Face> {
        self.slots.iter().filter(|f| f.live)
    }

    /// Faces there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there is no face.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a face or changes what is known of it.
    pub(crate) fn add(&mut self, id: FaceId, info: FaceInfo) {
        if let Some(face) = self.get_mut(id) {
            face.info = info;
            return;
        }
        let face =
            Face { id, info, counters: FaceCounters::default(), load: Load::default(), live: true };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = face;
                slot
            }
            None => {
                self.slots.push(face);
                u32::try_from(self.slots.len() - 1).expect("invariant: fewer than 2^32 faces")
            }
        };
        self.set_slot(id, slot);
    }

    /// Takes a face out; its counters go with it.
    pub(crate) fn remove(&mut self, id: FaceId) -> Option<FaceCounters> {
        let FaceSlot(slot) = self.slot(id)?;
        let face = &mut self.slots[slot as usize];
        face.live = false;
        let counters = face.counters;
        match self.direct.get_mut(id.0 as usize) {
            Some(direct) if id.0 < DIRECT => *direct = NONE,
            _ => {
                self.index.remove(spread(id), slot);
            }
        }
        self.free.push(slot);
        Some(counters)
    }
}
