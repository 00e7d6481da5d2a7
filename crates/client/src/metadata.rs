//! RDR metadata: the answer to `/<object>/32=metadata`, which names the newest version.

use onym_wire::name::{Component, Name, NameRef};
use onym_wire::tlv::{self, Element, Malformed, Reader};
use onym_wire::types;

/// TLV type: payload octets of a segment (file servers of ndnd, NDNts, ndn6).
const SEGMENT_SIZE: u32 = 0xF500;
/// TLV type: octets of the object.
const SIZE: u32 = 0xF502;

/// What metadata says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// The versioned name.
    pub name: Name,
    /// Number of the last segment, when told.
    pub last_segment: Option<u64>,
    /// Payload octets of a segment but the last, when told.
    pub segment_size: Option<u64>,
    /// Octets of the object, when told.
    pub size: Option<u64>,
}

impl Metadata {
    /// Reads the content of metadata.
    ///
    /// # Errors
    /// [`Malformed`] when it does not start with a name, or an unknown element is critical.
    pub fn parse(content: &[u8]) -> Result<Self, Malformed> {
        let (first, rest) = Element::split(content)?;
        if first.typ != types::NAME {
            return Err(Malformed::Missing(types::NAME));
        }
        let name = NameRef::parse_value(first.value)?.to_name();
        let mut metadata = Self { name, last_segment: None, segment_size: None, size: None };
        for element in Reader::new(rest) {
            let element = element?;
            match element.typ {
                types::FINAL_BLOCK_ID => {
                    let component = Component::from_element(Element::parse(element.value)?)?;
                    metadata.last_segment = component.as_segment();
                }
                SEGMENT_SIZE => metadata.segment_size = Some(element.nni()?),
                SIZE => metadata.size = Some(element.nni()?),
                typ if tlv::is_critical(typ) => return Err(Malformed::UnknownCritical(typ)),
                _ => {}
            }
        }
        Ok(metadata)
    }

    /// Appends the content of metadata.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.name.as_ref().write_tlv(out);
        if let Some(last) = self.last_segment {
            tlv::put_nested(out, types::FINAL_BLOCK_ID, |out| {
                tlv::put_nni_tlv(out, types::SEGMENT_COMPONENT, last);
            });
        }
        for (typ, value) in [(SEGMENT_SIZE, self.segment_size), (SIZE, self.size)] {
            if let Some(value) = value {
                tlv::put_nni_tlv(out, typ, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_read_as_written_and_more_elements_do_not_hurt() {
        let metadata = Metadata {
            name: "/f/v=7".parse().unwrap(),
            last_segment: Some(12),
            segment_size: Some(8000),
            size: Some(100_000),
        };
        let mut content = Vec::new();
        metadata.write(&mut content);
        tlv::put_nni_tlv(&mut content, 0xF50E, 1);
        assert_eq!(Metadata::parse(&content).unwrap(), metadata);
        assert!(Metadata::parse(&content[1..]).is_err());
        assert!(Metadata::parse(&[]).is_err());
    }
}
