//! The ndn6 file protocol: metadata of files and folders, listings.

use onym_wire::name::{Component, Name, NameRef};
use onym_wire::tlv::{self, Element, Malformed, Reader};
use onym_wire::types;

const SEGMENT_SIZE: u32 = 0xF500;
const SIZE: u32 = 0xF502;
const MODE: u32 = 0xF504;
const ATIME: u32 = 0xF506;
const BTIME: u32 = 0xF508;
const CTIME: u32 = 0xF50A;
const MTIME: u32 = 0xF50C;

/// The bit of a mode that says: a folder.
pub const FOLDER: u64 = 0x4000;
/// The bit of a mode that says: a file.
pub const FILE: u64 = 0x8000;
/// Names in a listing, at most.
pub const LISTED_MAX: usize = 10_000;

/// What is known about a file or a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileMetadata {
    /// Its versioned name; of a folder that of its listing.
    pub name: Name,
    /// Number of the last segment; files only.
    pub last_segment: Option<u64>,
    /// Octets of content in a segment; files only.
    pub segment_size: Option<u64>,
    /// Octets; files only.
    pub size: Option<u64>,
    /// Kind and permissions, as `st_mode`.
    pub mode: u64,
    /// Last change of the content, in nanoseconds since the Unix epoch.
    pub mtime_ns: u64,
    /// Last access.
    pub atime_ns: Option<u64>,
    /// Creation.
    pub btime_ns: Option<u64>,
    /// Last change of the file.
    pub ctime_ns: Option<u64>,
}

impl FileMetadata {
    /// Whether it is a folder.
    #[must_use]
    pub fn is_folder(&self) -> bool {
        self.mode & 0xf000 == FOLDER
    }

    /// Appends the content of metadata.
    pub fn write(&self, out: &mut Vec<u8>) {
        self.name.as_ref().write_tlv(out);
        if let Some(last) = self.last_segment {
            tlv::put_nested(out, types::FINAL_BLOCK_ID, |out| {
                tlv::put_nni_tlv(out, types::SEGMENT_COMPONENT, last);
            });
        }
        let fields = [
            (SEGMENT_SIZE, self.segment_size),
            (SIZE, self.size),
            (MODE, Some(self.mode)),
            (ATIME, self.atime_ns),
            (BTIME, self.btime_ns),
            (CTIME, self.ctime_ns),
            (MTIME, Some(self.mtime_ns)),
        ];
        for (typ, value) in fields {
            if let Some(value) = value {
                tlv::put_nni_tlv(out, typ, value);
            }
        }
    }

    /// Reads the content of metadata; elements in any order, unknown ones ignored.
    ///
    /// # Errors
    /// [`Malformed`] when there is no name, or an element is not whole.
    pub fn parse(content: &[u8]) -> Result<Self, Malformed> {
        let mut metadata = Self::default();
        let mut named = false;
        for element in Reader::new(content) {
            let element = element?;
            match element.typ {
                types::NAME => {
                    metadata.name = NameRef::parse_value(element.value)?.to_name();
                    named = true;
                }
                types::FINAL_BLOCK_ID => {
                    let component = Component::from_element(Element::parse(element.value)?)?;
                    metadata.last_segment = component.as_segment();
                }
                SEGMENT_SIZE => metadata.segment_size = Some(element.nni()?),
                SIZE => metadata.size = Some(element.nni()?),
                MODE => metadata.mode = element.nni()?,
                ATIME => metadata.atime_ns = Some(element.nni()?),
                BTIME => metadata.btime_ns = Some(element.nni()?),
                CTIME => metadata.ctime_ns = Some(element.nni()?),
                MTIME => metadata.mtime_ns = element.nni()?,
                _ => {}
            }
        }
        if named { Ok(metadata) } else { Err(Malformed::Missing(types::NAME)) }
    }
}

/// One name of a listing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Listed {
    /// The name, as it stands in the component.
    pub name: Vec<u8>,
    /// Whether it is a folder.
    pub is_folder: bool,
}

/// Writes a listing, sorted; names with `/` or a zero octet cannot be listed.
#[must_use]
pub fn write_listing(mut listed: Vec<Listed>) -> Vec<u8> {
    listed.sort();
    listed.truncate(LISTED_MAX);
    let mut out = Vec::new();
    for one in listed {
        if one.name.is_empty() || one.name.iter().any(|b| matches!(b, 0 | b'/')) {
            continue;
        }
        out.extend_from_slice(&one.name);
        if one.is_folder {
            out.push(b'/');
        }
        out.push(0);
    }
    out
}

/// Reads a listing; names that would leave the folder are left out.
#[must_use]
pub fn parse_listing(content: &[u8]) -> Vec<Listed> {
    content
        .split(|b| *b == 0)
        .map(|name| match name.strip_suffix(b"/") {
            Some(name) => Listed { name: name.to_vec(), is_folder: true },
            None => Listed { name: name.to_vec(), is_folder: false },
        })
        .filter(|one| {
            !matches!(one.name.as_slice(), b"" | b"." | b"..") && !one.name.contains(&b'/')
        })
        .take(LISTED_MAX)
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use onym_crypto::digest::hex;

    const MTIME_NS: u64 = 1_700_000_000_123_456_789;

    #[test]
    fn metadata_is_that_of_the_ndn6_file_protocol() {
        let mut name: Name = "/srv/a.txt".parse().unwrap();
        name.append_version(MTIME_NS);
        let file = FileMetadata {
            name,
            last_segment: Some(2),
            segment_size: Some(6144),
            size: Some(15_000),
            mode: 0o100_644,
            mtime_ns: MTIME_NS,
            ..FileMetadata::default()
        };
        let mut wire = Vec::new();
        file.write(&mut wire);
        assert_eq!(
            hex(&wire),
            "071608037372760805612e747874360817979cfe3d85cd151a03320102fdf500021800fdf502023a98fdf5040281a4fdf50c0817979cfe3d85cd15"
        );
        assert_eq!(FileMetadata::parse(&wire).unwrap(), file);
        let mut name: Name = "/srv/32=ls".parse().unwrap();
        name.append_version(MTIME_NS);
        let folder =
            FileMetadata { name, mode: 0o40_755, mtime_ns: MTIME_NS, ..FileMetadata::default() };
        wire.clear();
        folder.write(&mut wire);
        assert_eq!(
            hex(&wire),
            "0713080373727620026c73360817979cfe3d85cd15fdf5040241edfdf50c0817979cfe3d85cd15"
        );
        assert!(FileMetadata::parse(&wire).unwrap().is_folder());
    }

    #[test]
    fn listings_are_sorted_and_no_name_leads_out_of_the_folder() {
        let listed = vec![
            Listed { name: b"sub".to_vec(), is_folder: true },
            Listed { name: b"a.txt".to_vec(), is_folder: false },
        ];
        let wire = write_listing(listed);
        assert_eq!(hex(&wire), "612e747874007375622f00");
        assert_eq!(parse_listing(&wire).len(), 2);
        assert!(parse_listing(b"../\0..\0.\0a/b\0\0/\0").is_empty());
    }
}
