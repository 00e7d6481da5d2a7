//! Serving a segmented object: its segments, made when asked for or ahead, and its metadata.

use crate::metadata::Metadata;
use crate::open::Seal;
use crate::producer::{Answer, Incoming, Respond};
use crate::request::millis;
use onym_crypto::signer::Signer;
use onym_frame::Buf;
use onym_wire::data::DataBuilder;
use onym_wire::name::{Component, Name, NameRef};
use onym_wire::{NackReason, PACKET_LEN_MAX, tlv, types};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Where the octets of an object are.
pub trait Source: Send {
    /// Octets in all.
    fn len(&self) -> u64;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `out` with the octets from `offset` on.
    ///
    /// # Errors
    /// Those of the operating system, and when the object is shorter.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
}

impl Source for Vec<u8> {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let part = start.checked_add(out.len()).and_then(|end| self.get(start..end));
        out.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A file, read when its segments are asked for. It must not change while it is served.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    len: u64,
}

impl FileSource {
    /// The whole of `file`.
    ///
    /// # Errors
    /// Those of the operating system; `InvalidInput` when it is no regular file.
    pub fn new(file: File) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        Ok(Self { file, len: metadata.len() })
    }
}

impl Source for FileSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }
}

/// How to serve.
#[derive(Debug)]
pub struct ServeOptions {
    /// Version, larger than that of older objects of this name; by convention milliseconds since
    /// the Unix epoch.
    pub version: u64,
    /// Octets of content in a segment; default 8000.
    pub segment_size: usize,
    /// How long caches take a segment as fresh; default 10 s.
    pub freshness: Duration,
    /// Who signs; default a digest.
    pub signer: Signer,
    /// Encrypts segments before they are signed; default nobody.
    pub seal: Option<Box<dyn Seal>>,
}

impl ServeOptions {
    /// The defaults, for `version`.
    #[must_use]
    pub fn new(version: u64) -> Self {
        Self {
            version,
            segment_size: 8000,
            freshness: Duration::from_secs(10),
            signer: Signer::digest(),
            seal: None,
        }
    }
}

/// How long caches may answer with metadata.
const METADATA_FRESHNESS_MS: u64 = 10;

/// Why an object cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A segment would not fit a packet.
    #[error("a segment of {size} octets makes a packet of {packet}, more than {PACKET_LEN_MAX}")]
    SegmentTooLarge {
        /// Octets of content.
        size: usize,
        /// Octets of the Data.
        packet: usize,
    },
    /// A segment size of zero.
    #[error("a segment needs at least one octet")]
    SegmentEmpty,
    /// The source cannot be read.
    #[error("cannot read the object: {0}")]
    Source(#[from] io::Error),
    /// The signer failed.
    #[error("cannot sign: {0}")]
    Sign(#[from] onym_crypto::Error),
}

/// What an object counted, readable while it is served.
#[derive(Debug, Default)]
pub struct ServeCounters {
    /// Segments sent.
    pub segments: AtomicU64,
    /// Metadata sent.
    pub metadata: AtomicU64,
    /// Interests refused.
    pub refused: AtomicU64,
}

/// One version of a segmented object, as a responder.
///
/// Answers `/<object>/v=<version>/seg=<n>`, and with CanBePrefix `/<object>/v=<version>` and
/// `/<object>` (the first segment) and `/<object>/32=metadata`; refuses everything else.
///
/// ```
/// use onym_client::serve::{Object, ServeOptions};
/// let name = "/example/hello".parse().unwrap();
/// let object = Object::new(name, b"hello".to_vec(), ServeOptions::new(7))?;
/// assert_eq!(object.versioned_name().to_string(), "/example/hello/v=7");
/// # Ok::<(), onym_client::serve::ServeError>(())
/// ```
pub struct Object {
    name: Name,
    versioned: Name,
    source: Box<dyn Source>,
    options: ServeOptions,
    last: u64,
    /// Segments signed ahead, or none.
    ahead: Vec<Buf>,
    counters: Arc<ServeCounters>,
    content: Vec<u8>,
    scratch: Name,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({}, {} segments)", self.versioned, self.last + 1)
    }
}

/// What an Interest under the object's name asks for.
enum Asked {
    Segment(u64),
    Metadata,
    Other,
}

impl Object {
    /// Serves `source` under `name`.
    ///
    /// # Errors
    /// [`ServeError`] when a segment does not fit a packet or the first one cannot be made.
    pub fn new(
        name: Name,
        source: impl Source + 'static,
        options: ServeOptions,
    ) -> Result<Self, ServeError> {
        if options.segment_size == 0 {
            return Err(ServeError::SegmentEmpty);
        }
        let mut versioned = name.clone();
        versioned.append_version(options.version);
        let last = source.len().div_ceil(options.segment_size as u64).saturating_sub(1);
        let mut object = Self {
            scratch: versioned.clone(),
            name,
            versioned,
            source: Box::new(source),
            options,
            last,
            ahead: Vec::new(),
            counters: Arc::default(),
            content: Vec::new(),
        };
        // The first segment is as long as any, but for longer segment numbers and ECDSA signatures.
        let mut first = Vec::new();
        object.write_segment(0, &mut first)?;
        let packet = first.len() + tlv::nni_len(last) * 2 + 8;
        if packet > PACKET_LEN_MAX {
            return Err(ServeError::SegmentTooLarge { size: object.options.segment_size, packet });
        }
        Ok(object)
    }

    /// Makes and signs all segments now, so that answering costs no signature. Takes as much
    /// memory as the object.
    ///
    /// # Errors
    /// [`ServeError`] when one cannot be made.
    pub fn sign_ahead(&mut self) -> Result<(), ServeError> {
        let mut wire = Vec::new();
        let mut ahead = Vec::new();
        for segment in 0..=self.last {
            wire.clear();
            self.write_segment(segment, &mut wire)?;
            ahead.push(Buf::copy_from(&wire));
        }
        self.ahead = ahead;
        Ok(())
    }

    /// `/<object>`.
    #[must_use]
    pub fn name(&self) -> NameRef<'_> {
        self.name.as_ref()
    }

    /// `/<object>/v=<version>`.
    #[must_use]
    pub fn versioned_name(&self) -> NameRef<'_> {
        self.versioned.as_ref()
    }

    /// Number of segments.
    #[must_use]
    pub fn segments(&self) -> u64 {
        self.last + 1
    }

    /// Octets of content.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.source.len()
    }

    /// What is counted while the object is served.
    #[must_use]
    pub fn counters(&self) -> Arc<ServeCounters> {
        Arc::clone(&self.counters)
    }

    fn write_segment(&mut self, segment: u64, out: &mut Vec<u8>) -> Result<(), ServeError> {
        let size = self.options.segment_size as u64;
        let offset = segment * size;
        let len = size.min(self.source.len().saturating_sub(offset));
        self.content.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
        self.source.read_at(offset, &mut self.content)?;
        let mut number = [0; 10];
        self.scratch.append_segment(segment);
        if let Some(seal) = &mut self.options.seal {
            match seal.seal(self.scratch.as_ref(), &self.content) {
                Ok(sealed) => self.content = sealed,
                Err(error) => {
                    self.scratch.pop();
                    return Err(error.into());
                }
            }
        }
        let data = DataBuilder {
            freshness_ms: millis(self.options.freshness),
            final_block_id: Some(segment_component(self.last, &mut number)),
            ..DataBuilder::new(self.scratch.as_ref(), &self.content)
        };
        let signed = self.options.signer.sign_data(&data, out);
        self.scratch.pop();
        Ok(signed?)
    }

    fn write_metadata(&self, version: u64, out: &mut Vec<u8>) -> Result<(), ServeError> {
        let metadata = Metadata {
            name: self.versioned.clone(),
            last_segment: Some(self.last),
            segment_size: Some(self.options.segment_size as u64),
            size: Some(self.source.len()),
        };
        let mut content = Vec::new();
        metadata.write(&mut content);
        let mut name = self.name.clone();
        name.append_keyword("metadata").append_version(version).append_segment(0);
        let mut number = [0; 10];
        let data = DataBuilder {
            freshness_ms: METADATA_FRESHNESS_MS,
            final_block_id: Some(segment_component(0, &mut number)),
            ..DataBuilder::new(name.as_ref(), &content)
        };
        Ok(self.options.signer.sign_data(&data, out)?)
    }

    fn asked(&self, name: NameRef<'_>, can_be_prefix: bool) -> Asked {
        let Some(rest) = name.strip_prefix(self.name.as_ref()) else { return Asked::Other };
        let mut rest = rest.components();
        let version = |c: Component<'_>| c.as_version() == Some(self.options.version);
        match (rest.next(), rest.next(), rest.next(), rest.next()) {
            (None, ..) if can_be_prefix => Asked::Segment(0),
            (Some(v), None, ..) if can_be_prefix && version(v) => Asked::Segment(0),
            (Some(v), Some(s), None, _) if version(v) => {
                s.as_segment().filter(|n| *n <= self.last).map_or(Asked::Other, Asked::Segment)
            }
            (Some(m), None, ..) if can_be_prefix && m.is_keyword(b"metadata") => Asked::Metadata,
            (Some(m), Some(v), s, None)
                if m.is_keyword(b"metadata")
                    && version(v)
                    && s.map_or(can_be_prefix, |s| s.as_segment() == Some(0)) =>
            {
                Asked::Metadata
            }
            _ => Asked::Other,
        }
    }
}

/// The component `seg=<n>`, its VALUE in `number`.
fn segment_component(n: u64, number: &mut [u8; 10]) -> Component<'_> {
    let all = n.to_be_bytes();
    let len = tlv::nni_len(n);
    number[..len].copy_from_slice(&all[8 - len..]);
    // No truncation: the type is 50.
    #[allow(clippy::cast_possible_truncation)]
    Component { typ: types::SEGMENT_COMPONENT as u16, value: &number[..len] }
}

impl Respond for Object {
    fn respond(&mut self, incoming: &Incoming, out: &mut Vec<u8>) -> Answer {
        let interest = incoming.interest();
        let (counter, written) = match self.asked(interest.name, interest.can_be_prefix) {
            Asked::Segment(n) => {
                let ready = usize::try_from(n).ok().and_then(|n| self.ahead.get(n));
                if let Some(ready) = ready {
                    self.counters.segments.fetch_add(1, Ordering::Relaxed);
                    return Answer::Shared(ready.clone());
                }
                let written = self.write_segment(n, out);
                (&self.counters.segments, written)
            }
            Asked::Metadata => {
                (&self.counters.metadata, self.write_metadata(self.options.version, out))
            }
            Asked::Other => {
                self.counters.refused.fetch_add(1, Ordering::Relaxed);
                return Answer::Nack(NackReason::NONE);
            }
        };
        match written {
            Ok(()) => {
                counter.fetch_add(1, Ordering::Relaxed);
                Answer::Written
            }
            Err(error) => {
                tracing::warn!(name = %interest.name, %error, "segment-unavailable");
                Answer::Nack(NackReason::NONE)
            }
        }
    }
}
