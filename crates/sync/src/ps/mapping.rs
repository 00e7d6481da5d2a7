//! Mapping data: which application names the publications of a node have.

use crate::numbers::{MAPPING_DATA, MAPPING_ENTRY, SEQ_NO_V2};
use onym_wire::tlv::{self, Malformed, Reader};
use onym_wire::{Name, NameRef, types};

/// Publications in one mapping, at most.
const ENTRIES_MAX: usize = 256;

/// Names of publications of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    /// The node.
    pub node: Name,
    /// Number and name of each.
    pub entries: Vec<(u64, Name)>,
}

impl Mapping {
    /// Reads the first mapping among `elements`, which may hold others.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(elements: &[u8]) -> Result<Option<Self>, Malformed> {
        for element in Reader::new(elements) {
            let element = element?;
            if element.typ == MAPPING_DATA {
                return Self::parse_value(element.value).map(Some);
            }
        }
        Ok(None)
    }

    fn parse_value(value: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let node = NameRef::parse_value(reader.expect(types::NAME)?.value)?.to_name();
        let mut entries = Vec::new();
        for element in reader {
            let element = element?;
            if element.typ != MAPPING_ENTRY {
                continue;
            }
            let mut reader = Reader::new(element.value);
            let seq = reader.expect(SEQ_NO_V2)?.nni()?;
            let name = NameRef::parse_value(reader.expect(types::NAME)?.value)?.to_name();
            entries.push((seq, name));
            if entries.len() > ENTRIES_MAX {
                return Err(Malformed::TooLong);
            }
        }
        Ok(Self { node, entries })
    }

    /// Appends the element; the newest entry is first, as ndn-svs has them.
    pub fn write(&self, out: &mut Vec<u8>) {
        tlv::put_nested(out, MAPPING_DATA, |out| {
            self.node.as_ref().write_tlv(out);
            for (seq, name) in self.entries.iter().rev() {
                tlv::put_nested(out, MAPPING_ENTRY, |out| {
                    tlv::put_nni_tlv(out, SEQ_NO_V2, *seq);
                    name.as_ref().write_tlv(out);
                });
            }
        });
    }
}
