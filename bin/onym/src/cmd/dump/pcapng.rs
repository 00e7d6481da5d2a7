//! Captures as files: pcapng, an interface for each face, a comment with the verdict.

use crate::exit::{Exit, Failure};
use anyhow::Context as _;
use onym_tables::FaceId;
use onym_watch::{Direction, Record};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Link type USER0: packets as they are.
const LINK_TYPE: u16 = 147;
const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1A2B_3C4D;

const OPTION_COMMENT: u16 = 1;
const OPTION_NAME: u16 = 2;
const OPTION_DESCRIPTION: u16 = 3;
const OPTION_FLAGS: u16 = 2;
const OPTION_RESOLUTION: u16 = 9;

/// A file that is written packet by packet: what was shown is in it when the command is killed.
pub(super) struct Writer {
    out: BufWriter<Box<dyn Write>>,
    /// Faces in the order of their interfaces.
    faces: Vec<FaceId>,
}

impl Writer {
    /// A new file; `-` is standard output.
    pub(super) fn create(path: &Path) -> anyhow::Result<Self> {
        let out: Box<dyn Write> = if path.as_os_str() == "-" {
            Box::new(io::stdout())
        } else {
            let file = File::create(path).map_err(|error| {
                Failure::new(Exit::Failed, format!("cannot write {}", path.display()))
                    .why(error)
                    .next("name a file in a folder that you may write")
            })?;
            Box::new(file)
        };
        let mut writer = Self { out: BufWriter::new(out), faces: Vec::new() };
        let mut body = Vec::new();
        body.extend_from_slice(&BYTE_ORDER.to_le_bytes());
        body.extend_from_slice(&[1, 0, 0, 0]);
        // The length of the section is not known.
        body.extend_from_slice(&u64::MAX.to_le_bytes());
        option(&mut body, 4, concat!("onym ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(&mut body, 0, &[]);
        writer.block(SECTION, &body)?;
        writer.flush()?;
        Ok(writer)
    }

    /// Appends a packet of the face with this URI.
    pub(super) fn packet(&mut self, record: &Record, uri: Option<&str>) -> anyhow::Result<()> {
        let interface = self.interface(record.face, uri.unwrap_or_default())?;
        let (high, low) = (record.time_ns >> 32, record.time_ns & 0xFFFF_FFFF);
        let len = u32::try_from(record.frame.len()).context("a packet of 4 GiB")?;
        let whole = u64::from(len) + record.left_out;
        let mut body = Vec::with_capacity(record.frame.len() + 64);
        for n in [u64::from(interface), high, low, len.into(), whole] {
            body.extend_from_slice(&u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes());
        }
        body.extend_from_slice(&record.frame);
        pad(&mut body);
        option(&mut body, OPTION_COMMENT, record.outcome.as_bytes());
        let direction: u32 = match record.direction {
            Direction::In => 1,
            Direction::Out => 2,
        };
        option(&mut body, OPTION_FLAGS, &direction.to_le_bytes());
        option(&mut body, 0, &[]);
        self.block(PACKET, &body)?;
        self.flush()
    }

    /// The interface of a face, described when it is seen first.
    fn interface(&mut self, face: FaceId, uri: &str) -> anyhow::Result<u32> {
        let known = self.faces.iter().position(|known| *known == face);
        let index = match known {
            Some(index) => index,
            None => {
                let mut body = Vec::new();
                body.extend_from_slice(&LINK_TYPE.to_le_bytes());
                body.extend_from_slice(&[0; 6]);
                option(&mut body, OPTION_NAME, format!("face {}", face.0).as_bytes());
                if !uri.is_empty() {
                    option(&mut body, OPTION_DESCRIPTION, uri.as_bytes());
                }
                // Nanoseconds.
                option(&mut body, OPTION_RESOLUTION, &[9]);
                option(&mut body, 0, &[]);
                self.block(INTERFACE, &body)?;
                self.faces.push(face);
                self.faces.len() - 1
            }
        };
        Ok(u32::try_from(index).unwrap_or(u32::MAX))
    }

    fn block(&mut self, kind: u32, body: &[u8]) -> anyhow::Result<()> {
        let len = u32::try_from(body.len() + 12).context("a packet of 4 GiB")?.to_le_bytes();
        let parts = [&kind.to_le_bytes()[..], &len, body, &len];
        parts
            .iter()
            .try_for_each(|part| self.out.write_all(part))
            .context("cannot write the capture")
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        self.out.flush().context("cannot write the capture")
    }
}

fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

/// Appends an option; code 0 ends the list.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let len = value.len().min(0xFFFF);
    body.extend_from_slice(&code.to_le_bytes());
    body.extend_from_slice(&u16::try_from(len).unwrap_or(u16::MAX).to_le_bytes());
    body.extend_from_slice(value.get(..len).unwrap_or_default());
    pad(body);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use onym_dissect::Reader;
    use onym_watch::Kind;

    #[test]
    fn a_reader_finds_what_was_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = Writer::create(file.path()).unwrap();
        let record = |face, direction| Record {
            time_ns: 1_700_000_000_123_456_789,
            face: FaceId(face),
            direction,
            kind: Kind::Interest,
            outcome: "no_route".into(),
            left_out: 3,
            frame: vec![5, 5, 7, 3, 8, 1, b'A'],
        };
        let udp = Some("udp4://192.0.2.1:6363");
        writer.packet(&record(300, Direction::In), udp).unwrap();
        writer.packet(&record(301, Direction::Out), None).unwrap();
        writer.packet(&record(300, Direction::Out), udp).unwrap();
        let mut reader = Reader::default();
        reader.feed(&std::fs::read(file.path()).unwrap());
        let mut found = Vec::new();
        while let Some(frame) = reader.next_frame().unwrap() {
            found.push(frame);
        }
        reader.end().unwrap();
        assert_eq!(found.len(), 3);
        assert_eq!(found.iter().map(|f| f.interface).collect::<Vec<_>>(), [0, 1, 0]);
        let first = &found[0];
        assert_eq!(first.time_ns, Some(1_700_000_000_123_456_789));
        assert_eq!(first.interface_name.as_deref(), Some("face 300"));
        assert_eq!(first.comment.as_deref(), Some("no_route"));
        assert_eq!(first.direction, Some(onym_dissect::Direction::In));
        assert_eq!((first.octets.len(), first.len), (7, 10));
    }
}
