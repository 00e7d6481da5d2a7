//! The invertible Bloom lookup table: a set of 32-bit keys from which the difference to another set
//! can be read, while it is small.

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;
use onym_wire::{Malformed, Name, tlv, types};

const TABLES: usize = 3;
/// Seed of keys and of their checks.
const KEY_SEED: u32 = 11;
const ROW_OCTETS: usize = 12;
/// As its default is: the best that zlib offers.
const LEVEL: u8 = 9;

/// Murmur3 of 32 bits, for x86.
#[must_use]
pub fn murmur3(seed: u32, octets: &[u8]) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let mix = |k: u32| k.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    let mut hash = seed;
    let mut blocks = octets.chunks_exact(4);
    for block in &mut blocks {
        let k = block.iter().rev().fold(0, |k, octet| (k << 8) | u32::from(*octet));
        hash = (hash ^ mix(k)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let tail = blocks.remainder();
    if !tail.is_empty() {
        hash ^= mix(tail.iter().rev().fold(0, |k, octet| (k << 8) | u32::from(*octet)));
    }
    // The length counts modulo 2^32, as in the reference.
    #[allow(clippy::cast_possible_truncation)]
    {
        hash ^= octets.len() as u32;
    }
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

/// The name `<prefix>/<seq>` of an update, with the number in a generic component.
pub(crate) fn update_name(prefix: &Name, seq: u64) -> Name {
    let mut name = prefix.clone();
    name.append_number(types::GENERIC_COMPONENT, seq);
    name
}

/// The key of update `seq` of `prefix`.
#[must_use]
pub fn name_key(prefix: &Name, seq: u64) -> u32 {
    murmur3(KEY_SEED, update_name(prefix, seq).value())
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Row {
    count: i32,
    keys: u32,
    checks: u32,
}

/// Keys that only one of two tables has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Only ours.
    pub ours: Vec<u32>,
    /// Only theirs.
    pub theirs: Vec<u32>,
}

/// How tables and contents travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    Plain,
    /// Compressed by zlib.
    Zlib,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Iblt {
    rows: Vec<Row>,
}

impl Iblt {
    /// An empty table that tells differences of about `expected` keys.
    #[must_use]
    pub fn new(expected: usize) -> Self {
        let rows = (expected + expected / 2).div_ceil(TABLES) * TABLES;
        Self { rows: vec![Row::default(); rows.max(TABLES)] }
    }

    /// Adds a key.
    pub fn insert(&mut self, key: u32) {
        self.change(key, 1);
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: u32) {
        self.change(key, -1);
    }

    fn change(&mut self, key: u32, by: i32) {
        let octets = key.to_le_bytes();
        let check = murmur3(KEY_SEED, &octets);
        let each = self.rows.len() / TABLES;
        for (table, seed) in (0u32..).enumerate().take(TABLES) {
            let at = table * each + murmur3(seed, &octets) as usize % each;
            if let Some(row) = self.rows.get_mut(at) {
                row.count = row.count.wrapping_add(by);
                row.keys ^= key;
                row.checks ^= check;
            }
        }
    }

    /// What only one of the two has; `None` when that is too much to be read.
    #[must_use]
    pub fn difference(&self, theirs: &Self) -> Option<Difference> {
        if self.rows.len() != theirs.rows.len() {
            return None;
        }
        let mut rest = self.clone();
        for (row, other) in rest.rows.iter_mut().zip(&theirs.rows) {
            row.count = row.count.wrapping_sub(other.count);
            row.keys ^= other.keys;
            row.checks ^= other.checks;
        }
        let mut difference = Difference::default();
        // Each key takes at least one row: more of them are a table that was made up.
        for _ in 0..rest.rows.len() {
            let is_pure = |row: &&Row| {
                row.count.abs() == 1 && murmur3(KEY_SEED, &row.keys.to_le_bytes()) == row.checks
            };
            let Some(row) = rest.rows.iter().find(is_pure).copied() else { break };
            let side = if row.count > 0 { &mut difference.ours } else { &mut difference.theirs };
            side.push(row.keys);
            rest.change(row.keys, -row.count);
        }
        rest.rows.iter().all(|row| *row == Row::default()).then_some(difference)
    }

    /// The rows as they are sent.
    #[must_use]
    pub fn encode(&self, form: Form) -> Vec<u8> {
        let mut octets = Vec::with_capacity(self.rows.len() * ROW_OCTETS);
        for row in &self.rows {
            octets.extend_from_slice(&row.count.to_be_bytes());
            octets.extend_from_slice(&row.keys.to_be_bytes());
            octets.extend_from_slice(&row.checks.to_be_bytes());
        }
        pack(octets, form)
    }

    /// Reads a table of as many rows as this one has.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn decode_alike(&self, octets: &[u8], form: Form) -> Result<Self, Malformed> {
        let octets = unpack(octets, form, self.rows.len() * ROW_OCTETS)?;
        if octets.len() != self.rows.len() * ROW_OCTETS {
            return Err(Malformed::Length(types::GENERIC_COMPONENT));
        }
        let word = |four: &[u8]| tlv::nni(four).ok().and_then(|n| u32::try_from(n).ok());
        let row = |octets: &[u8]| {
            let (count, rest) = octets.split_at_checked(4)?;
            let (keys, checks) = rest.split_at_checked(4)?;
            Some(Row {
                count: word(count)?.cast_signed(),
                keys: word(keys)?,
                checks: word(checks)?,
            })
        };
        let rows: Option<Vec<Row>> = octets.chunks_exact(ROW_OCTETS).map(row).collect();
        Ok(Self { rows: rows.ok_or(Malformed::Truncated)? })
    }
}

pub(crate) fn pack(octets: Vec<u8>, form: Form) -> Vec<u8> {
    if form == Form::Zlib { compress_to_vec_zlib(&octets, LEVEL) } else { octets }
}

/// What was packed, at most `max` octets of it.
pub(crate) fn unpack(octets: &[u8], form: Form, max: usize) -> Result<Vec<u8>, Malformed> {
    let octets = if form == Form::Zlib {
        decompress_to_vec_zlib_with_limit(octets, max).map_err(|_| Malformed::TooLong)?
    } else {
        octets.to_vec()
    };
    if octets.len() > max { Err(Malformed::TooLong) } else { Ok(octets) }
}
