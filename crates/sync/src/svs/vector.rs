//! State vectors and their encoding.

use super::Version;
use crate::numbers;
use onym_wire::tlv::{self, Element, Malformed, Reader};
use onym_wire::{Name, NameRef, types};
use std::collections::BTreeMap;

/// Sequence numbers above are refused: no node gets there, and the next one must exist.
pub(crate) const SEQ_MAX: u64 = u64::MAX >> 1;

/// Publications that were not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Update {
    /// Who published.
    pub node: Name,
    /// Its bootstrap time; 0 in version 2.
    pub boot: u64,
    /// First sequence number that is new.
    pub low: u64,
    /// Last one.
    pub high: u64,
}

/// How far each node is, at each of its bootstrap times. What is absent is 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StateVector {
    nodes: BTreeMap<Name, BTreeMap<u64, u64>>,
}

impl StateVector {
    /// The sequence number of `node` at `boot`, 0 when there is none.
    #[must_use]
    pub fn seq(&self, node: &Name, boot: u64) -> u64 {
        self.nodes.get(node).and_then(|boots| boots.get(&boot)).copied().unwrap_or(0)
    }

    /// Raises the sequence number of `node` at `boot`; a lower one changes nothing.
    pub fn raise(&mut self, node: &Name, boot: u64, seq: u64) {
        if seq == 0 {
            return;
        }
        if !self.nodes.contains_key(node) {
            self.nodes.insert(node.clone(), BTreeMap::new());
        }
        if let Some(boots) = self.nodes.get_mut(node) {
            let slot = boots.entry(boot).or_insert(0);
            *slot = seq.max(*slot);
        }
    }

    /// Raises everything to what `other` says.
    pub fn merge(&mut self, other: &Self) {
        for (node, boot, seq) in other.iter() {
            self.raise(node, boot, seq);
        }
    }

    /// Entries in canonical order: by name, then by bootstrap time.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Name, u64, u64)> {
        self.nodes
            .iter()
            .flat_map(|(node, boots)| boots.iter().map(move |(boot, seq)| (node, *boot, *seq)))
    }

    /// Nodes with at least one entry.
    pub fn nodes(&self) -> impl Iterator<Item = &Name> {
        self.nodes.keys()
    }

    /// Bootstrap times of `node` with their sequence numbers, oldest first.
    pub fn boots(&self, node: &Name) -> impl DoubleEndedIterator<Item = (u64, u64)> + use<'_> {
        let boots = self.nodes.get(node);
        boots.into_iter().flat_map(|boots| boots.iter().map(|(boot, seq)| (*boot, *seq)))
    }

    /// Number of entries, a node with two bootstrap times counted twice.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.values().map(BTreeMap::len).sum()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The greatest bootstrap time, 0 without entries.
    #[must_use]
    pub fn newest_boot(&self) -> u64 {
        self.nodes.values().filter_map(|boots| boots.keys().last().copied()).max().unwrap_or(0)
    }

    /// Appends the StateVector element.
    pub fn write(&self, version: Version, out: &mut Vec<u8>) {
        tlv::put_nested(out, numbers::STATE_VECTOR, |out| {
            for (node, boots) in &self.nodes {
                tlv::put_nested(out, numbers::STATE_VECTOR_ENTRY, |out| {
                    node.as_ref().write_tlv(out);
                    match version {
                        Version::V2 => {
                            let seq = boots.values().max().copied().unwrap_or(0);
                            tlv::put_nni_tlv(out, numbers::SEQ_NO_V2, seq);
                        }
                        Version::V3 => write_boots(boots, out),
                    }
                });
            }
        });
    }

    /// Reads a StateVector element. Entries may come in any order; what is said twice counts with
    /// its maximum.
    ///
    /// # Errors
    /// [`Malformed`]: also for unknown critical elements and sequence numbers above 2^63 - 1.
    pub fn read(element: Element<'_>, version: Version) -> Result<Self, Malformed> {
        if element.typ != numbers::STATE_VECTOR {
            return Err(Malformed::Unexpected(element.typ));
        }
        let mut vector = Self::default();
        for entry in Reader::new(element.value) {
            let entry = entry?;
            match entry.typ {
                numbers::STATE_VECTOR_ENTRY => vector.read_entry(entry.value, version)?,
                other => skip(other)?,
            }
        }
        Ok(vector)
    }

    fn read_entry(&mut self, value: &[u8], version: Version) -> Result<(), Malformed> {
        let mut reader = Reader::new(value);
        let node = NameRef::parse_value(reader.expect(types::NAME)?.value)?.to_name();
        for element in reader {
            let element = element?;
            let (boot, seq) = match (version, element.typ) {
                (Version::V2, numbers::SEQ_NO_V2) => (0, element.nni()?),
                (Version::V3, numbers::SEQ_NO_ENTRY) => read_boot(element.value)?,
                (_, other) => {
                    skip(other)?;
                    continue;
                }
            };
            if seq > SEQ_MAX {
                return Err(Malformed::Value(element.typ));
            }
            self.raise(&node, boot, seq);
        }
        Ok(())
    }
}

fn write_boots(boots: &BTreeMap<u64, u64>, out: &mut Vec<u8>) {
    for (boot, seq) in boots {
        tlv::put_nested(out, numbers::SEQ_NO_ENTRY, |out| {
            tlv::put_nni_tlv(out, numbers::BOOTSTRAP_TIME, *boot);
            tlv::put_nni_tlv(out, numbers::SEQ_NO, *seq);
        });
    }
}

fn read_boot(value: &[u8]) -> Result<(u64, u64), Malformed> {
    let mut reader = Reader::new(value);
    let boot = reader.expect(numbers::BOOTSTRAP_TIME)?.nni()?;
    let seq = reader.expect(numbers::SEQ_NO)?.nni()?;
    for extra in reader {
        skip(extra?.typ)?;
    }
    Ok((boot, seq))
}

/// An unknown element: ignored unless it is critical.
pub(crate) fn skip(typ: u32) -> Result<(), Malformed> {
    if tlv::is_critical(typ) { Err(Malformed::UnknownCritical(typ)) } else { Ok(()) }
}

/// Octets of the entry of a node with `boots` in a vector of version 3.
pub(crate) fn entry_len(node: NameRef<'_>, boots: impl Iterator<Item = (u64, u64)>) -> usize {
    let boots: usize = boots
        .map(|(boot, seq)| {
            let value = tlv::nni_tlv_len(numbers::BOOTSTRAP_TIME, boot)
                + tlv::nni_tlv_len(numbers::SEQ_NO, seq);
            tlv::tlv_len(numbers::SEQ_NO_ENTRY, value)
        })
        .sum();
    tlv::tlv_len(numbers::STATE_VECTOR_ENTRY, node.wire_len() + boots)
}
