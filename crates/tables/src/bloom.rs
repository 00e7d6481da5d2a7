//! Bloom filters over links: tags of links, keyed tags, stages (`spec/push.md`, section 3).

use crate::SipKey;
use crate::sip::FirstWord;
use onym_wire::push::{Filter, Stage};

mod stage;
#[cfg(test)]
mod tests;

pub use stage::{StageBuilt, build_stage};

/// Most tables of tags.
pub const TABLES_MAX: u8 = 8;
/// Most ones of a tag.
pub const K_MAX: u8 = 16;

/// How the tags of a domain's links follow from their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One bit of its own for each of the first 256 numbers, then one more bit for every 256.
    Bits,
    /// `k` ones for each of `tables` tables.
    Tags {
        /// Ones of a tag, 1 to [`K_MAX`].
        k: u8,
        /// Number of tables, 1 to [`TABLES_MAX`].
        tables: u8,
    },
}

/// [`Kind`] with the seed of the domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheme {
    /// How.
    pub kind: Kind,
    /// The same for all nodes of a domain; no secret.
    pub seed: u64,
}

impl Default for Scheme {
    fn default() -> Self {
        Self { kind: Kind::Bits, seed: 0 }
    }
}

impl Scheme {
    /// Number of tables, at least 1.
    #[must_use]
    pub const fn tables(&self) -> u8 {
        match self.kind {
            Kind::Bits => 1,
            Kind::Tags { tables: 0, .. } => 1,
            Kind::Tags { tables, .. } if tables > TABLES_MAX => TABLES_MAX,
            Kind::Tags { tables, .. } => tables,
        }
    }

    /// The tag of link `number` in `table`.
    #[must_use]
    pub fn tag(&self, number: u32, table: u8) -> Filter {
        let ones = match self.kind {
            Kind::Bits if number < Filter::BITS => {
                let mut filter = Filter::EMPTY;
                filter.set((number & 0xff) as u8);
                return filter;
            }
            Kind::Bits => number / Filter::BITS + 1,
            Kind::Tags { k, .. } => u32::from(k.clamp(1, K_MAX)),
        };
        let key = SipKey::new(self.seed, u64::from(table));
        let mut filter = Filter::EMPTY;
        let mut j = 0;
        while filter.ones() < ones.min(u32::from(K_MAX)) {
            filter.set((key.words([u64::from(number), j]) & 0xff) as u8);
            j += 1;
        }
        filter
    }

    /// The tag of link `number` in stages.
    #[must_use]
    pub fn stage_tag(&self, number: u32) -> u64 {
        SipKey::new(self.seed, 0x100).words([u64::from(number), 0])
    }
}

/// A node's keys of one epoch, for tags that are made on the way (section 3.2).
#[derive(Debug, Clone, Copy)]
pub struct KeyedTags {
    /// By table.
    keys: [SipKey; TABLES_MAX as usize],
    k: u32,
}

impl KeyedTags {
    /// From the node's secret of the epoch; `k` ones at most, 1 to 8.
    #[must_use]
    pub fn new(secret: [u64; 2], k: u8) -> Self {
        let mut table = 0;
        let keys = [(); TABLES_MAX as usize].map(|()| {
            let key = SipKey::new(secret[0], secret[1] ^ table);
            table += 1;
            key
        });
        Self { keys, k: u32::from(k.clamp(1, 8)) }
    }

    /// The keys of `node` in epoch `epoch`, from the secret that its domain's topology managers
    /// share with it.
    #[must_use]
    pub fn of_node(master: [u64; 2], node: u64, epoch: u8, k: u8) -> Self {
        let key = SipKey::new(master[0], master[1]);
        let half = |n: u64| key.words([node, (u64::from(epoch) << 1) | n]);
        Self::new([half(0), half(1)], k)
    }

    /// The tags of one flow in one table.
    #[inline]
    #[must_use]
    pub fn of_flow(&self, flow: u64, table: u8) -> FlowTags {
        let key = &self.keys[usize::from(table % TABLES_MAX)];
        FlowTags { hash: key.first_word(flow), k: self.k }
    }

    /// The tag for `flow` from the link `from` to the link `to`.
    #[must_use]
    pub fn tag(&self, flow: u64, from: u32, to: u32, table: u8) -> Filter {
        let tags = self.of_flow(flow, table);
        let positions = tags.positions(from, to);
        let mut filter = Filter::EMPTY;
        for i in 0..self.k {
            filter.set((positions >> (8 * i)) as u8);
        }
        filter
    }
}

/// Keyed tags of one flow: what is the same for all pairs of links was done once.
#[derive(Debug, Clone, Copy)]
pub struct FlowTags {
    hash: FirstWord,
    k: u32,
}

impl FlowTags {
    /// Positions of the ones, eight bits each, the first in the lowest.
    #[inline]
    fn positions(&self, from: u32, to: u32) -> u64 {
        self.hash.then((u64::from(from) << 32) | u64::from(to))
    }

    /// Whether the tag from `from` to `to` is in the filter with these bits.
    #[inline]
    #[must_use]
    pub fn is_in(&self, bits: &Bits, from: u32, to: u32) -> bool {
        let mut positions = self.positions(from, to);
        // Without branches: the positions are unpredictable by design.
        let mut all = 1;
        for _ in 0..self.k {
            all &= bits.0[(positions & 0xff) as usize];
            positions >>= 8;
        }
        all == 1
    }
}

/// A filter with an octet for each bit, 0 or 1: for who tests many unpredictable positions.
#[derive(Clone, Copy)]
pub struct Bits([u8; Filter::BITS as usize]);

impl std::fmt::Debug for Bits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bits(..)")
    }
}

impl Bits {
    /// The bits of `filter`.
    #[inline]
    #[must_use]
    pub fn of(filter: &Filter) -> Self {
        let mut bits = [0; Filter::BITS as usize];
        for (bits, octet) in bits.as_chunks_mut::<8>().0.iter_mut().zip(filter.octets()) {
            *bits = SPREAD[usize::from(octet)];
        }
        Self(bits)
    }
}

/// The bits of each value of an octet, lowest first.
const SPREAD: [[u8; 8]; 256] = {
    let mut spread = [[0; 8]; 256];
    let mut at = 0;
    while at < 256 * 8 {
        spread[at / 8][at % 8] = ((at / 8) >> (at % 8)) as u8 & 1;
        at += 1;
    }
    spread
};

/// Whether `stage`, which is number `index`, holds the link with this tag.
#[inline]
#[must_use]
pub fn stage_has(stage: &Stage<'_>, index: u8, tag: u64) -> bool {
    let mut positions = stage_hash(&stage_key(stage.seed, index), tag);
    (0..stage.k).all(|_| stage.has(positions.next(stage.bits)))
}

/// Two halves of one hash, of which all positions of a tag in a stage are made.
#[derive(Debug, Clone, Copy)]
struct Positions {
    at: u32,
    step: u32,
}

impl Positions {
    #[inline]
    fn next(&mut self, bits: u16) -> u16 {
        let position = (u64::from(self.at) * u64::from(bits)) >> 32;
        self.at = self.at.wrapping_add(self.step);
        position as u16
    }
}

#[inline]
fn stage_hash(key: &SipKey, tag: u64) -> Positions {
    let hash = key.words([tag, 0]);
    Positions { at: hash as u32, step: (hash >> 32) as u32 | 1 }
}

#[inline]
fn stage_key(seed: u8, index: u8) -> SipKey {
    SipKey::new(u64::from(seed), u64::from(index))
}

/// Share of ones that is expected of a filter of `bits` bits with `members` tags of `k` ones each.
#[must_use]
pub fn expected_fill(bits: u32, members: u32, k: u32) -> f64 {
    1.0 - (1.0 - 1.0 / f64::from(bits)).powf(f64::from(k) * f64::from(members))
}

/// Probability that a tag of `k` ones which is no member matches a filter with this share of ones.
#[must_use]
pub fn false_positive_rate(fill: f64, k: u32) -> f64 {
    fill.powi(i32::try_from(k).unwrap_or(i32::MAX))
}
