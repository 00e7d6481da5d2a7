//! Answering Interests from the store: packets as they came, metadata and listings from the index.

use crate::afar::Waits;
use crate::file::{FILE, FOLDER, FileMetadata, LISTED_MAX, Listed, write_listing};
use crate::reply::{self, Made};
use onym_client::producer::{Answer, Incoming, Respond};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::signer::Signer;
use onym_store::{Error, Reader};
use onym_wire::NackReason;
use onym_wire::data::Data;
use onym_wire::name::{Name, NameRef};
use std::collections::VecDeque;
use std::sync::Arc;

/// Listings that are kept until their segments were asked for.
const LISTINGS_MAX: usize = 64;

/// A responder over a store.
#[derive(Debug)]
pub struct StoreAnswers {
    reader: Reader,
    signer: Arc<Signer>,
    /// Versioned name and content of listings that were announced.
    listings: VecDeque<(Name, Vec<u8>)>,
    /// Where Interests wait for what is in a bucket.
    waits: Option<Arc<Waits>>,
}

/// What the index knows about an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// The versioned name.
    pub name: Name,
    /// Number of the last segment.
    pub last_segment: u64,
    /// Octets of content in the first segment.
    pub segment_size: u64,
    /// Octets of content, if all segments but the last are as long as the first.
    pub size: u64,
    /// Whether the last segment is there.
    pub has_last: bool,
}

/// The newest version of the object `name`, or the version that it names.
///
/// # Errors
/// Those of the store.
pub fn newest_object(
    reader: &mut Reader,
    now_ms: u64,
    name: NameRef<'_>,
) -> Result<Option<Object>, Error> {
    let mut versioned = name.to_name();
    if name.last().and_then(|c| c.as_version()).is_none() {
        let newest = reader.last_version(name)?;
        let Some(newest) = newest else { return Ok(None) };
        versioned = newest;
    }
    versioned.append_segment(0);
    let Some(first) = reader.get(now_ms, versioned.as_ref())? else { return Ok(None) };
    versioned.pop();
    let Ok(data) = Data::parse(&first) else { return Ok(None) };
    let segment_size = data.content.len() as u64;
    let last_segment = data.final_block_id.and_then(|c| c.as_segment()).unwrap_or(0);
    let mut object = Object {
        name: versioned.clone(),
        last_segment,
        segment_size,
        size: segment_size,
        has_last: last_segment == 0,
    };
    if last_segment > 0 {
        versioned.append_segment(last_segment);
        if let Some(last) = reader.get(now_ms, versioned.as_ref())?
            && let Ok(data) = Data::parse(&last)
        {
            object.has_last = true;
            object.size =
                segment_size.saturating_mul(last_segment).saturating_add(data.content.len() as u64);
        }
    }
    Ok(Some(object))
}

impl StoreAnswers {
    /// Answers from `reader`; metadata and listings are signed by `signer`.
    #[must_use]
    pub fn new(reader: Reader, signer: Arc<Signer>) -> Self {
        Self { reader, signer, listings: VecDeque::new(), waits: None }
    }

    /// The same, and it never waits for a bucket itself: Interests do, in `waits`.
    pub(crate) fn waiting_in(self, waits: Arc<Waits>) -> Self {
        Self { reader: self.reader.without_waiting(), waits: Some(waits), ..self }
    }

    /// Answers an Interest for which something was fetched from the bucket so often.
    pub(crate) fn respond_after(
        &mut self,
        incoming: &Incoming,
        tries: u32,
        out: &mut Vec<u8>,
    ) -> Answer {
        match self.answer(incoming, out) {
            Ok(answer) => answer,
            Err(Error::Far(range)) => {
                let waits = self.waits.as_ref();
                match waits.is_some_and(|waits| waits.wait(range, incoming, tries)) {
                    true => Answer::Nothing,
                    false => Answer::Nack(NackReason::CONGESTION),
                }
            }
            Err(error) => {
                tracing::warn!(%error, "repo-cannot-read");
                Answer::Nack(NackReason::NONE)
            }
        }
    }

    fn answer(&mut self, incoming: &Incoming, out: &mut Vec<u8>) -> Result<Answer, Error> {
        let interest = incoming.interest();
        let now_ms = unix_now_ms();
        if let Some(packet) = self.reader.find(now_ms, &interest)? {
            return Ok(Answer::Shared(packet));
        }
        let name = interest.name;
        let is_keyword = |n: usize, word: &[u8]| {
            name.len() > n && name.get(name.len() - 1 - n).is_some_and(|c| c.is_keyword(word))
        };
        if is_keyword(0, b"metadata") && interest.can_be_prefix {
            let folder = is_keyword(1, b"ls");
            let of = name.drop_last(if folder { 2 } else { 1 });
            let object = if folder { None } else { newest_object(&mut self.reader, now_ms, of)? };
            return match object {
                Some(object) => {
                    let metadata = file_metadata(object);
                    Ok(reply::metadata(&self.signer, name, Made::at(now_ms), &metadata, out))
                }
                None => self.folder(name, of, now_ms, out),
            };
        }
        let segment = name.last().and_then(|c| c.as_segment());
        if let Some(segment) = segment
            && let Some(at) =
                self.listings.iter().position(|(of, _)| *of == name.drop_last(1).to_name())
        {
            let (_, content) = &self.listings[at];
            return Ok(reply::segment_of(name, segment, content, &self.signer, out));
        }
        Ok(Answer::Nack(NackReason::NO_ROUTE))
    }

    /// Metadata of the folder `of`, whose listing is kept for a while.
    fn folder(
        &mut self,
        name: NameRef<'_>,
        of: NameRef<'_>,
        now_ms: u64,
        out: &mut Vec<u8>,
    ) -> Result<Answer, Error> {
        let mut listed = Vec::new();
        for child in self.reader.children(of, None, LISTED_MAX)? {
            let Some(last) = child.as_ref().last().filter(|c| c.is_generic()) else { continue };
            let is_folder = self.reader.last_version(child.as_ref())?.is_none();
            listed.push(Listed { name: last.value.to_vec(), is_folder });
        }
        if listed.is_empty() {
            return Ok(Answer::Nack(NackReason::NO_ROUTE));
        }
        let content = write_listing(listed);
        let mut versioned = of.to_name();
        // The same content has the same version, so that segments fit each other.
        let digest = onym_crypto::sha256(&[&content]);
        let version = digest.first_chunk().map_or(0, |b| u64::from_be_bytes(*b) >> 2);
        versioned.append_keyword("ls").append_version(version);
        let metadata = FileMetadata {
            name: versioned.clone(),
            mode: FOLDER | 0o755,
            mtime_ns: now_ms.saturating_mul(1_000_000),
            ..FileMetadata::default()
        };
        self.listings.retain(|(of, _)| *of != versioned);
        if self.listings.len() >= LISTINGS_MAX {
            self.listings.pop_front();
        }
        self.listings.push_back((versioned, content));
        Ok(reply::metadata(&self.signer, name, Made::at(now_ms), &metadata, out))
    }
}

fn file_metadata(object: Object) -> FileMetadata {
    let version = object.name.as_ref().last().and_then(|c| c.as_version()).unwrap_or(0);
    FileMetadata {
        name: object.name,
        last_segment: Some(object.last_segment),
        segment_size: Some(object.segment_size),
        size: object.has_last.then_some(object.size),
        mode: FILE | 0o644,
        mtime_ns: nanoseconds(version),
        ..FileMetadata::default()
    }
}

/// The moment that a version counts: milliseconds, microseconds or nanoseconds, by its size.
fn nanoseconds(version: u64) -> u64 {
    match version {
        0..100_000_000_000_000 => version.saturating_mul(1_000_000),
        100_000_000_000_000..100_000_000_000_000_000 => version.saturating_mul(1000),
        _ => version,
    }
}

impl Respond for StoreAnswers {
    fn respond(&mut self, incoming: &Incoming, out: &mut Vec<u8>) -> Answer {
        self.respond_after(incoming, 0, out)
    }
}
