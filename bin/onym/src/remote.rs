//! Files and folders of the network, by the ndn6 file protocol: metadata, listings, content.

use crate::exit::{Exit, Failure};
use crate::session;
use onym_client::blocking::{Client, Watch};
use onym_client::fetch::{FetchBounds, Part, Segments};
use onym_client::{Error, FetchOptions, Find, Progress, Request, Schema, Verify};
use onym_repo::file::{FileMetadata, Listed, parse_listing};
use onym_wire::{Name, types};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Octets of a listing that are taken, at most.
const LISTING_MAX: u64 = 16 << 20;

/// Octets of a segment, at most.
const PACKET_MAX: u64 = 8800;

/// Takes the octets of a part from its segments.
struct Cut {
    octets: Vec<u8>,
    part: Part,
}

impl Write for Cut {
    fn write(&mut self, segment: &[u8]) -> io::Result<usize> {
        let wanted = self.part.cut(segment);
        self.octets.extend_from_slice(&segment[wanted]);
        Ok(segment.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The files of the network, as somebody believes them.
pub(crate) struct Remote {
    client: Client,
    /// By whose word; without it only damage is noticed.
    schema: Option<Arc<Schema>>,
    /// Octets of a file, at most.
    size_max: u64,
}

impl Remote {
    pub(crate) fn new(client: Client, schema: Option<Arc<Schema>>, size_max: u64) -> Self {
        Self { client, schema, size_max }
    }

    /// What is known about `name`; `None` when its producer says that there is nothing.
    pub(crate) fn metadata(&mut self, name: &Name) -> anyhow::Result<Option<FileMetadata>> {
        let mut asked = name.clone();
        asked.append_keyword("metadata");
        let request =
            Request { can_be_prefix: true, must_be_fresh: true, retries: 3, ..Request::new(asked) };
        let packet = match &self.schema {
            Some(schema) => self.client.request_trusted(&request, &**schema),
            None => self.client.request(&request),
        };
        let packet = packet.map_err(session::failure)?;
        let data = packet.data();
        let refused = |why: &str| {
            Failure::new(Exit::Failed, format!("the metadata of {name} cannot be used")).why(why)
        };
        if self.schema.is_none() {
            Verify::Integrity.check(&data).map_err(|e| refused(&e.to_string()))?;
        }
        if data.content_type == types::CONTENT_NACK {
            return Ok(None);
        }
        let metadata = FileMetadata::parse(data.content).map_err(|e| refused(&e.to_string()))?;
        // Nobody vouched for it: it leads nowhere else.
        if self.schema.is_none() && !name.as_ref().is_prefix_of(metadata.name.as_ref()) {
            return Err(refused(&format!("it leads to {}", metadata.name)).into());
        }
        Ok(Some(metadata))
    }

    /// What the folder `name` has; `None` when it is no folder.
    pub(crate) fn list(&mut self, name: &Name) -> anyhow::Result<Option<Vec<Listed>>> {
        let mut listing = name.clone();
        listing.append_keyword("ls");
        let Some(metadata) = self.metadata(&listing)? else { return Ok(None) };
        self.listed(&metadata).map(Some)
    }

    /// What the folder has that `metadata` describes.
    pub(crate) fn listed(&mut self, metadata: &FileMetadata) -> anyhow::Result<Vec<Listed>> {
        let mut content = Vec::new();
        let bounds = FetchBounds { size_max: LISTING_MAX, ..FetchBounds::default() };
        let options = FetchOptions { find: Find::Nothing, bounds, ..FetchOptions::default() };
        self.content(&metadata.name, options, &mut content, &mut |_| {})
            .map_err(session::failure)?;
        Ok(parse_listing(&content))
    }

    /// Fetches the segments from `first` on of the file that `metadata` describes.
    pub(crate) fn fetch(
        &mut self,
        metadata: &FileMetadata,
        first: u64,
        sink: &mut dyn Write,
        watch: &mut dyn FnMut(Watch<'_>),
    ) -> Result<Progress, Error> {
        let bounds = FetchBounds { size_max: self.size_max, ..FetchBounds::default() };
        let segments = Segments { first, last: metadata.last_segment, size: metadata.segment_size };
        let options =
            FetchOptions { find: Find::Nothing, bounds, segments, ..FetchOptions::default() };
        self.content(&metadata.name, options, sink, watch)
    }

    /// The octets `wanted` of the file that `metadata` describes.
    pub(crate) fn octets(
        &mut self,
        metadata: &FileMetadata,
        wanted: RangeInclusive<u64>,
    ) -> anyhow::Result<Vec<u8>> {
        let cannot = || Failure::new(Exit::Failed, "its metadata have no length of segments");
        let part = Part::of(wanted, metadata.segment_size.unwrap_or(0)).ok_or_else(cannot)?;
        let mut cut = Cut { octets: Vec::new(), part };
        let size_max = cut.part.left().saturating_add(2 * PACKET_MAX);
        let bounds = FetchBounds { size_max, ..FetchBounds::default() };
        let segments = cut.part.segments;
        let options =
            FetchOptions { find: Find::Nothing, bounds, segments, ..FetchOptions::default() };
        self.content(&metadata.name, options, &mut cut, &mut |_| {}).map_err(session::failure)?;
        match cut.part.left() {
            0 => Ok(cut.octets),
            _ => Err(Failure::new(Exit::Failed, "the file is shorter than it was said").into()),
        }
    }

    fn content(
        &mut self,
        name: &Name,
        options: FetchOptions,
        sink: &mut dyn Write,
        watch: &mut dyn FnMut(Watch<'_>),
    ) -> Result<Progress, Error> {
        match &self.schema {
            Some(schema) => self.client.fetch_trusted(name, &options, schema, sink, watch),
            None => self.client.fetch(name.clone(), options, sink, watch),
        }
    }
}
