//! What a name is: by its metadata, or else by its first and last segments. Equal questions are asked
//! once, and answers are kept as long as they are fresh.

use onym_client::aio::{Client, Fetch};
use onym_client::fetch::{FetchBounds, Segments};
use onym_client::{Error, FetchError, FetchOptions, Find, Packet, Request, Schema};
use onym_client::{Trust as _, Unanswered, Verify};
use onym_crypto::digest::hex;
use onym_crypto::sha256;
use onym_repo::file::FileMetadata;
use onym_wire::name::Name;
use onym_wire::{Data, NackReason, types};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::OnceCell;

/// Names whose answers are kept, at most; the one asked for first gives way.
const KNOWN_MAX: usize = 4096;
/// How long an answer is kept at most, whatever its producer says.
const FRESH_MAX: Duration = Duration::from_secs(3600);
/// How long it is remembered that there is nothing.
const NOTHING_FRESH: Duration = Duration::from_secs(2);
/// How long it is remembered that a name cannot be had.
const FAILURE_FRESH: Duration = Duration::from_secs(1);
/// How long the last good answer is used when no other can be had.
const STALE_MAX: Duration = Duration::from_secs(3600);

/// Why a name cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Miss {
    /// Its producer says that there is nothing.
    #[error("there is nothing of this name")]
    Nothing,
    #[error("the network has no way to it")]
    NoRoute,
    #[error("the network refused: {0}")]
    Refused(String),
    #[error("no answer in time")]
    Late,
    #[error("the node is not there")]
    NoNode,
    #[error("it is not to be believed: {0}")]
    NotBelieved(String),
    /// Something that this gateway does not understand.
    #[error("{0}")]
    Other(String),
}

/// What a name is.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// The versioned name, of a folder that of its listing.
    pub(crate) name: Name,
    pub(crate) is_folder: bool,
    pub(crate) size: Option<u64>,
    pub(crate) segment_size: Option<u64>,
    pub(crate) modified: Option<SystemTime>,
    /// The name that was asked for is that of a version, which never changes.
    pub(crate) is_fixed: bool,
    /// How long it may be used, as its producer says.
    pub(crate) fresh: Duration,
    /// All of it, where it is one Data.
    pub(crate) whole: Option<Packet>,
    /// Its first Data, where no version tells one content from another.
    pub(crate) first: Option<Packet>,
}

impl Found {
    /// What changes whenever the content does, with quotes.
    pub(crate) fn etag(&self) -> String {
        let first = self.first.as_ref().map_or(&[][..], |packet| packet.bytes());
        let version = sha256(&[self.name.as_ref().value(), first]);
        format!("\"{}-{:x}\"", hex(&version[..8]), self.size.unwrap_or(0))
    }
}

/// How an answer was come by, for `Cache-Status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It was known, and is so old.
    Hit(Duration),
    /// It was asked for.
    Miss,
    /// It was known, but not fresh any more.
    Stale,
    /// Somebody else was asking for it.
    Collapsed,
    /// It is not fresh, and no other can be had.
    Kept(Duration),
}

type Outcome = (Instant, Result<Arc<Found>, Miss>);

/// A name that somebody asked for.
#[derive(Debug, Clone)]
struct Known {
    asked: Arc<OnceCell<Outcome>>,
    /// The last good answer, and since when.
    last: Option<(Instant, Arc<Found>)>,
}

#[derive(Debug, Default)]
struct Table {
    known: HashMap<Name, Known>,
    order: VecDeque<Name>,
}

/// The names of the network, as somebody believes them.
#[derive(Debug)]
pub(crate) struct Names {
    client: Client,
    /// By whose word; without it only damage is noticed.
    schema: Option<Arc<Schema>>,
    /// Whose turn it is to fetch certificates.
    turn: tokio::sync::Mutex<()>,
    table: Mutex<Table>,
    size_max: u64,
}

impl Names {
    pub(crate) fn new(client: Client, schema: Option<Arc<Schema>>, size_max: u64) -> Self {
        let (turn, table) = (tokio::sync::Mutex::new(()), Mutex::default());
        Self { client, schema, turn, table, size_max }
    }

    /// What `name` is.
    pub(crate) async fn find(&self, name: &Name) -> (How, Result<Arc<Found>, Miss>) {
        let known = self.known(name);
        if let Some((at, outcome)) = known.asked.get() {
            return (How::Hit(at.elapsed()), outcome.clone());
        }
        let ours = AtomicBool::new(false);
        let ask = async || {
            ours.store(true, Ordering::Relaxed);
            let outcome = self.look(name).await.map(Arc::new);
            (Instant::now(), outcome)
        };
        let (_, outcome) = known.asked.get_or_init(ask).await;
        let how = match (ours.into_inner(), &known.last) {
            (false, _) => How::Collapsed,
            (true, Some(_)) => How::Stale,
            (true, None) => How::Miss,
        };
        match (outcome, known.last) {
            (Err(Miss::Late | Miss::NoRoute | Miss::NoNode), Some((at, last)))
                if at.elapsed() < STALE_MAX =>
            {
                (How::Kept(at.elapsed()), Ok(last))
            }
            (outcome, _) => (how, outcome.clone()),
        }
    }

    /// What is known about `name`, without what is not fresh any more.
    fn known(&self, name: &Name) -> Known {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = table.known.get_mut(name) {
            if let Some((at, outcome)) = known.asked.get() {
                let fresh = match outcome {
                    Ok(found) => found.fresh.min(FRESH_MAX),
                    Err(Miss::Nothing) => NOTHING_FRESH,
                    Err(_) => FAILURE_FRESH,
                };
                if at.elapsed() >= fresh {
                    match outcome {
                        Ok(found) => known.last = Some((*at, Arc::clone(found))),
                        // What has gone is not served any more.
                        Err(Miss::Nothing | Miss::NotBelieved(_)) => known.last = None,
                        Err(_) => {}
                    }
                    known.asked = Arc::default();
                }
            }
            return known.clone();
        }
        if table.order.len() >= KNOWN_MAX
            && let Some(oldest) = table.order.pop_front()
        {
            table.known.remove(&oldest);
        }
        let known = Known { asked: Arc::default(), last: None };
        table.order.push_back(name.clone());
        table.known.insert(name.clone(), known.clone());
        known
    }

    async fn look(&self, name: &Name) -> Result<Found, Miss> {
        if name.as_ref().last().is_some_and(|c| c.as_version().is_some()) {
            return self.probe(name.clone(), FRESH_MAX, true).await;
        }
        let mut asked = name.clone();
        asked.append_keyword("metadata");
        let request =
            Request { can_be_prefix: true, must_be_fresh: true, retries: 1, ..Request::new(asked) };
        let packet = match self.request(request).await {
            Ok(packet) => packet,
            Err(Miss::NoRoute | Miss::Refused(_) | Miss::Late) => return self.bare(name).await,
            Err(miss) => return Err(miss),
        };
        let data = packet.data();
        let metadata = FileMetadata::parse(data.content)
            .map_err(|_| Miss::Other("its metadata cannot be parsed".into()))?;
        if self.schema.is_none() && !name.as_ref().is_prefix_of(metadata.name.as_ref()) {
            return Err(Miss::NotBelieved(format!("its metadata leads to {}", metadata.name)));
        }
        let fresh = Duration::from_millis(data.freshness_ms);
        let modified = UNIX_EPOCH.checked_add(Duration::from_nanos(metadata.mtime_ns));
        let modified = modified.filter(|_| metadata.mtime_ns > 0);
        let is_folder = metadata.is_folder();
        if !is_folder && (metadata.size.is_none() || metadata.segment_size.is_none()) {
            let found = self.probe(metadata.name, fresh, false).await?;
            return Ok(Found { modified, ..found });
        }
        Ok(Found {
            name: metadata.name,
            is_folder,
            size: metadata.size,
            segment_size: metadata.segment_size,
            modified,
            is_fixed: false,
            fresh,
            whole: None,
            first: None,
        })
    }

    /// An object without metadata: by whatever segment answers, or the one Data that it is.
    async fn bare(&self, name: &Name) -> Result<Found, Miss> {
        let (can_be_prefix, must_be_fresh) = (true, true);
        let request =
            Request { can_be_prefix, must_be_fresh, retries: 1, ..Request::new(name.clone()) };
        let packet = self.request(request).await?;
        let data = packet.data();
        let fresh = Duration::from_millis(data.freshness_ms);
        let has_segment = data.name.last().is_some_and(|c| c.as_segment().is_some());
        if has_segment && data.name.len() > name.len() {
            return self.probe(data.name.drop_last(1).to_name(), fresh, false).await;
        }
        if data.name != name.as_ref() {
            return Err(Miss::Nothing);
        }
        Ok(whole(packet, fresh))
    }

    /// The object `versioned`, by its first and last segments.
    async fn probe(&self, versioned: Name, fresh: Duration, is_fixed: bool) -> Result<Found, Miss> {
        let segment = |number: u64| {
            let mut name = versioned.clone();
            name.append_segment(number);
            self.request(Request { retries: 2, ..Request::new(name) })
        };
        let first = segment(0).await?;
        let ends = |data: &Data<'_>| data.final_block_id.and_then(|c| c.as_segment());
        let segment_size = first.data().content.len() as u64;
        let last_segment = ends(&first.data());
        let size = match last_segment {
            None => None,
            Some(0) => Some(segment_size),
            Some(last) => {
                let rest = segment(last).await?.data().content.len() as u64;
                segment_size.checked_mul(last).and_then(|size| size.checked_add(rest))
            }
        };
        let segment_size = size.map(|_| segment_size.max(1));
        let has_version = versioned.as_ref().last().is_some_and(|c| c.as_version().is_some());
        Ok(Found {
            name: versioned,
            is_folder: false,
            size,
            segment_size,
            modified: None,
            is_fixed,
            fresh,
            whole: None,
            first: (!has_version).then_some(first),
        })
    }

    async fn request(&self, request: Request) -> Result<Packet, Miss> {
        let packet = self.client.request(request).await.map_err(|e| miss(&e))?;
        let data = packet.data();
        self.believe(&data).await?;
        if data.content_type == types::CONTENT_NACK {
            return Err(Miss::Nothing);
        }
        Ok(packet)
    }

    async fn believe(&self, data: &Data<'_>) -> Result<(), Miss> {
        let Some(schema) = &self.schema else {
            let checked = Verify::Integrity.check(data);
            return checked.map(|_| ()).map_err(|e| Miss::NotBelieved(e.to_string()));
        };
        let _turn = self.turn.lock().await;
        self.client.believe(data, &**schema).await.map_err(|e| miss(&e))
    }

    /// Begins to fetch segments of what was found. Certificates that they need are fetched before.
    pub(crate) async fn fetch(&self, found: &Found, segments: Segments) -> Result<Fetch, Miss> {
        let verify = match &self.schema {
            Some(schema) => Verify::With(Arc::<Schema>::clone(schema)),
            None => Verify::Integrity,
        };
        let bounds = FetchBounds { size_max: self.size_max, ..FetchBounds::default() };
        let options =
            FetchOptions { find: Find::Nothing, verify, bounds, segments, ..Default::default() };
        self.client.fetch(found.name.clone(), options).await.map_err(|e| miss(&e))
    }

    /// Whether a fetch that ended with `error` before its first octet may be begun again, because
    /// the certificates that it needed are there now.
    pub(crate) async fn has_more_trust(&self, error: &Error) -> bool {
        let Some(schema) = &self.schema else { return false };
        let Error::Fetch(FetchError::NotVerified { name, source }) = error else { return false };
        if !matches!(source, onym_crypto::Error::NoCertificate(_)) {
            return false;
        }
        let _turn = self.turn.lock().await;
        schema.wanted().is_none() || self.client.follow(name, &**schema).await.is_ok()
    }
}

/// An object that is one Data without segment.
fn whole(packet: Packet, fresh: Duration) -> Found {
    Found {
        name: packet.data().name.to_name(),
        is_folder: false,
        size: Some(packet.data().content.len() as u64),
        segment_size: None,
        modified: None,
        is_fixed: false,
        fresh,
        first: Some(packet.clone()),
        whole: Some(packet),
    }
}

/// Why the network did not answer.
pub(crate) fn miss(error: &Error) -> Miss {
    let unanswered = |why: &Unanswered| match why {
        Unanswered::Timeout => Miss::Late,
        Unanswered::Nack(NackReason::NO_ROUTE) => Miss::NoRoute,
        Unanswered::Nack(NackReason::NONE) => {
            Miss::Refused("its producer has nothing of it".into())
        }
        Unanswered::Nack(reason) => Miss::Refused(reason.to_string()),
        _ => Miss::NoNode,
    };
    match error {
        Error::Unanswered { why, .. } => unanswered(why),
        Error::Disconnected(_) | Error::NoNode(_) => Miss::NoNode,
        Error::Fetch(error) => match error {
            FetchError::NotFound { why, .. } => unanswered(why),
            FetchError::Exhausted { .. } => Miss::Late,
            FetchError::Refused { reason, .. } => unanswered(&Unanswered::Nack(*reason)),
            FetchError::ProducerNack { .. } => Miss::Nothing,
            FetchError::NotVerified { source, .. } => Miss::NotBelieved(source.to_string()),
            FetchError::Disconnected => Miss::NoNode,
            other => Miss::Other(other.to_string()),
        },
        other => Miss::Other(other.to_string()),
    }
}

#[cfg(test)]
mod tests;
