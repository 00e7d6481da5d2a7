//! Reading: by name, by prefix, fresh or not, and what there is under a prefix.

use crate::Error;
use crate::disk::DiskFile;
use crate::entry::{ENTRY, Entry};
use crate::far::{FarRange, FarSegment};
use crate::index::{FRESH, PACKETS, behind};
use crate::log::At;
use crate::record::{HEADER, Place, Record, is_head, padded};
use crate::shared::Shared;
use onym_crypto::digest::implicit_digest;
use onym_frame::{Buf, BufPool};
use onym_wire::PACKET_LEN_MAX;
use onym_wire::data::Data;
use onym_wire::interest::Interest;
use onym_wire::name::{Name, NameRef};
use redb::{ReadOnlyTable, ReadableDatabase as _};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Octets that are read at once when packets are read in their order.
const BLOCK: usize = 1 << 18;
/// Blocks that a reader keeps.
const BLOCKS: usize = 16;
/// Names that a reader remembers.
const KNOWN_MAX: usize = 4096;
/// Names behind the one asked for that are taken from the index with it.
const AHEAD: usize = 64;
/// Candidates for a prefix that are looked at.
const LOOKS: usize = 32;

struct View {
    packets: ReadOnlyTable<&'static [u8], &'static [u8; ENTRY]>,
    fresh: ReadOnlyTable<&'static [u8], u64>,
}

struct Block {
    segment: u32,
    start: u64,
    octets: Buf,
}

/// What [`Reader::names`] finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// The name of the packet.
    pub name: Name,
    /// What the index says about it.
    pub entry: Entry,
}

/// Reads a store. Each thread has its own.
pub struct Reader {
    shared: Arc<Shared>,
    view: Option<View>,
    commits: u64,
    moves: u64,
    known: HashMap<Box<[u8]>, Entry>,
    blocks: VecDeque<Block>,
    large: BufPool,
    small: BufPool,
    /// Behind the packet that was read last.
    next: (u32, u64),
    /// Whether it waits for the bucket.
    waits: bool,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reader({} names known)", self.known.len())
    }
}

/// A packet was moved or removed while it was looked for.
struct Moved;

impl Reader {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            view: None,
            commits: 0,
            moves: 0,
            known: HashMap::new(),
            blocks: VecDeque::new(),
            large: BufPool::new(BLOCK, BLOCKS * 2),
            small: BufPool::new(padded(PACKET_LEN_MAX), 256),
            next: (0, 0),
            waits: true,
        }
    }

    /// The same, and it never waits for a bucket: what would have to is [`Error::Far`].
    #[must_use]
    pub fn without_waiting(self) -> Self {
        Self { waits: false, ..self }
    }

    /// Takes the present state of the index.
    fn refresh(&mut self) -> Result<&View, Error> {
        let commits = self.shared.commits.load(Ordering::SeqCst);
        let moves = self.shared.moves.load(Ordering::SeqCst);
        if moves != self.moves {
            self.known.clear();
            self.moves = moves;
        }
        if self.view.is_none() || commits != self.commits {
            self.view = None;
            let db = self.shared.db().ok_or_else(|| Error::Index("it has failed".into()))?;
            let txn = db.begin_read()?;
            let (packets, fresh) = (txn.open_table(PACKETS)?, txn.open_table(FRESH)?);
            self.view = Some(View { packets, fresh });
            self.commits = commits;
        }
        self.view.as_ref().ok_or(Error::Closed)
    }

    /// The packet that answers `interest`, if there is one.
    ///
    /// # Errors
    /// [`Error::Index`] and [`Error::Disk`]; a damaged packet is none.
    pub fn find(&mut self, now_ms: u64, interest: &Interest<'_>) -> Result<Option<Buf>, Error> {
        Ok(self.find_entry(now_ms, interest)?.map(|(packet, _)| packet))
    }

    /// As [`Reader::find`], with what the index says about the packet.
    ///
    /// # Errors
    /// Those of [`Reader::find`].
    pub fn find_entry(
        &mut self,
        now_ms: u64,
        interest: &Interest<'_>,
    ) -> Result<Option<(Buf, Entry)>, Error> {
        let digest = interest.implicit_digest();
        let asked = if digest.is_some() { interest.name.drop_last(1) } else { interest.name };
        for _ in 0..2 {
            let found = match (interest.can_be_prefix, interest.must_be_fresh) {
                (true, false) if digest.is_none() => self.newest(now_ms, asked)?,
                (true, true) if digest.is_none() => self.freshest(now_ms, asked)?,
                (_, must_be_fresh) => self
                    .exact(asked)?
                    .filter(|entry| !must_be_fresh || entry.is_fresh(now_ms))
                    .map(|entry| (asked.to_name(), entry)),
            };
            let Some((name, entry)) = found.filter(|(_, e)| !e.is_expired(now_ms)) else {
                return Ok(None);
            };
            match self.load(name.as_ref(), &entry)? {
                Ok(packet) => {
                    let wanted = |p: &Buf| digest.is_none_or(|d| implicit_digest(p) == *d);
                    return Ok(packet.filter(wanted).map(|packet| (packet, entry)));
                }
                Err(Moved) => self.view = None,
            }
        }
        Ok(None)
    }

    /// The packet `name`, if there is one.
    ///
    /// # Errors
    /// [`Error::Index`] and [`Error::Disk`]; a damaged packet is none.
    pub fn get(&mut self, now_ms: u64, name: NameRef<'_>) -> Result<Option<Buf>, Error> {
        for _ in 0..2 {
            let Some(entry) = self.exact(name)?.filter(|e| !e.is_expired(now_ms)) else {
                return Ok(None);
            };
            match self.load(name, &entry)? {
                Ok(packet) => return Ok(packet),
                Err(Moved) => self.view = None,
            }
        }
        Ok(None)
    }

    /// What the index says about exactly `name`.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub fn exact(&mut self, name: NameRef<'_>) -> Result<Option<Entry>, Error> {
        self.refresh()?;
        if let Some(entry) = self.known.get(name.value()) {
            return Ok(Some(*entry));
        }
        let view = self.refresh()?;
        if name.last().and_then(|c| c.as_segment()).is_none() {
            let entry = view.packets.get(name.value())?;
            return Ok(entry.map(|e| Entry::decode(e.value())));
        }
        // Its neighbours are asked for next.
        let object = name.drop_last(1).value();
        let mut ahead = Vec::new();
        for row in view.packets.range::<&[u8]>(name.value()..)?.take(AHEAD) {
            let (key, entry) = row?;
            if !key.value().starts_with(object) {
                break;
            }
            ahead.push((Box::from(key.value()), Entry::decode(entry.value())));
            if ahead.len() == 1 && key.value() != name.value() {
                return Ok(None);
            }
        }
        let found = ahead.first().map(|(_, entry)| *entry);
        if self.known.len() + ahead.len() > KNOWN_MAX {
            self.known.clear();
        }
        self.known.extend(ahead);
        Ok(found)
    }

    /// The newest packet under `prefix`: of the largest name, or the first of its object.
    fn newest(&mut self, now_ms: u64, prefix: NameRef<'_>) -> Result<Option<(Name, Entry)>, Error> {
        let view = self.refresh()?;
        for row in view.under(prefix)?.rev().take(LOOKS) {
            let (key, entry) = row?;
            let Ok(name) = NameRef::parse_value(key.value()) else { continue };
            let entry = Entry::decode(entry.value());
            if !is_head(name) {
                let first = view.under(name.drop_last(1))?.next().transpose()?;
                let first = first.map(|(k, e)| (k.value().to_vec(), Entry::decode(e.value())));
                if let Some((key, entry)) = first
                    && let Ok(name) = NameRef::parse_value(&key)
                    && prefix.is_prefix_of(name)
                    && is_head(name)
                    && !entry.is_expired(now_ms)
                {
                    return Ok(Some((name.to_name(), entry)));
                }
            }
            if !entry.is_expired(now_ms) {
                return Ok(Some((name.to_name(), entry)));
            }
        }
        Ok(None)
    }

    /// The newest packet under `prefix` that is fresh.
    fn freshest(
        &mut self,
        now_ms: u64,
        prefix: NameRef<'_>,
    ) -> Result<Option<(Name, Entry)>, Error> {
        let view = self.refresh()?;
        let end = behind(prefix.value());
        let range = match &end {
            Some(end) => view.fresh.range::<&[u8]>(prefix.value()..end.as_slice())?,
            None => view.fresh.range::<&[u8]>(prefix.value()..)?,
        };
        for row in range.rev().take(LOOKS) {
            let (key, until) = row?;
            if until.value() <= now_ms {
                continue;
            }
            let entry = view.packets.get(key.value())?.map(|e| Entry::decode(e.value()));
            if let (Some(entry), Ok(name)) = (entry, NameRef::parse_value(key.value())) {
                return Ok(Some((name.to_name(), entry)));
            }
        }
        Ok(self.newest(now_ms, prefix)?.filter(|(_, entry)| entry.is_fresh(now_ms)))
    }

    /// The largest `name/v=…` with packets at or below it.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub fn last_version(&mut self, name: NameRef<'_>) -> Result<Option<Name>, Error> {
        let view = self.refresh()?;
        // Version components are those of type 54; nothing of a larger type is asked for.
        let (from, to) = ([name.value(), &[54]].concat(), [name.value(), &[55]].concat());
        let last = view.packets.range::<&[u8]>(from.as_slice()..to.as_slice())?.next_back();
        let Some((key, _)) = last.transpose()? else { return Ok(None) };
        Ok(NameRef::parse_value(key.value()).ok().map(|n| n.prefix(name.len() + 1).to_name()))
    }

    /// Up to `max` names under `prefix` in canonical order, those behind `after`.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub fn names(
        &mut self,
        prefix: NameRef<'_>,
        after: Option<NameRef<'_>>,
        max: usize,
    ) -> Result<Vec<Listed>, Error> {
        let view = self.refresh()?;
        let from = after.map_or_else(
            || prefix.value().to_vec(),
            |after| [after.value(), &[0]].concat().max(prefix.value().to_vec()),
        );
        let mut found = Vec::new();
        for row in view.packets.range::<&[u8]>(from.as_slice()..)?.take(max) {
            let (key, entry) = row?;
            if !key.value().starts_with(prefix.value()) {
                break;
            }
            if let Ok(name) = NameRef::parse_value(key.value()) {
                let entry = Entry::decode(entry.value());
                found.push(Listed { name: name.to_name(), entry });
            }
        }
        Ok(found)
    }

    /// Up to `max` names that are one component longer than `prefix` and have packets at or below
    /// them, in canonical order, those behind `after`. One step of the index for each.
    ///
    /// # Errors
    /// [`Error::Index`].
    pub fn children(
        &mut self,
        prefix: NameRef<'_>,
        after: Option<NameRef<'_>>,
        max: usize,
    ) -> Result<Vec<Name>, Error> {
        let view = self.refresh()?;
        let mut from = match after.map(|after| behind(after.value())) {
            Some(None) => return Ok(Vec::new()),
            Some(Some(from)) => from,
            None => prefix.value().to_vec(),
        };
        let mut found: Vec<Name> = Vec::new();
        while found.len() < max {
            let Some(row) = view.packets.range::<&[u8]>(from.as_slice()..)?.next() else { break };
            let (key, _) = row?;
            if !key.value().starts_with(prefix.value()) {
                break;
            }
            let Ok(name) = NameRef::parse_value(key.value()) else { break };
            if name.len() == prefix.len() {
                from.push(0);
                continue;
            }
            let child = name.prefix(prefix.len() + 1);
            let Some(next) = behind(child.value()) else { break };
            found.push(child.to_name());
            from = next;
        }
        Ok(found)
    }

    /// Reads the packet at `entry`, which must be called `name`.
    fn load(
        &mut self,
        name: NameRef<'_>,
        entry: &Entry,
    ) -> Result<Result<Option<Buf>, Moved>, Error> {
        let place = entry.place;
        let len = HEADER + entry.len as usize;
        let start = u64::from(place.offset);
        let is_in = |block: &Block| {
            block.segment == place.segment
                && block.start <= start
                && start + len as u64 <= block.start + block.octets.len() as u64
        };
        let record = match self.blocks.iter().find(|block| is_in(block)) {
            Some(block) => {
                let from = usize::try_from(start - block.start).unwrap_or(0);
                block.octets.slice(from..from + len)
            }
            None => match self.read(entry, len)? {
                Ok(octets) => octets,
                Err(Moved) => return Ok(Err(Moved)),
            },
        };
        self.next = (place.segment, start + padded(entry.len as usize) as u64);
        let is_it = |body: &[u8]| Data::parse(body).is_ok_and(|data| data.name == name);
        let packet = Record::read(&record, place)
            .filter(|found| is_it(found.body))
            .map(|found| record.slice_of(found.body));
        if packet.is_none() {
            self.is_damaged(name, place, len);
        }
        Ok(Ok(packet))
    }

    #[cold]
    fn is_damaged(&mut self, name: NameRef<'_>, place: Place, len: usize) {
        let (segment, offset) = (place.segment, place.offset);
        if let Some(At::Far(there)) = self.shared.files.find(segment) {
            there.is_wrong(u64::from(offset), len);
            self.blocks.retain(|block| block.segment != segment);
        } else {
            self.shared.damaged.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%name, segment, offset, "store-packet-damaged");
        }
    }

    /// Copies what is in the bucket only, and waits for it if it may.
    fn come(
        &self,
        there: &Arc<FarSegment>,
        at: u64,
        len: usize,
        out: &mut [u8],
    ) -> Result<usize, Error> {
        loop {
            if let Some(done) = there.copy(at, len, out) {
                return Ok(done);
            }
            let range = FarRange { segment: Arc::clone(there), at, len };
            if !self.waits {
                return Err(Error::Far(range));
            }
            range.fetch().map_err(|error| Error::Bucket(error.to_string()))?;
        }
    }

    /// Reads the record, and what follows it when packets are read in their order.
    fn read(&mut self, entry: &Entry, len: usize) -> Result<Result<Buf, Moved>, Error> {
        let place = entry.place;
        let Some(at) = self.shared.files.find(place.segment) else { return Ok(Err(Moved)) };
        let start = u64::from(place.offset);
        let in_order = self.next == (place.segment, start);
        let mut chunk = if in_order { self.large.take() } else { self.small.take() };
        let want = if in_order { BLOCK } else { len };
        let done = match &at {
            At::Near(file) => read_some(&**file, start, len, &mut chunk[..want])?,
            At::Far(there) => match self.come(there, start, len, &mut chunk[..want]) {
                Ok(done) => done,
                Err(error) => {
                    let pool = if in_order { &mut self.large } else { &mut self.small };
                    pool.put_back(chunk);
                    return Err(error);
                }
            },
        };
        let pool = if in_order { &mut self.large } else { &mut self.small };
        let octets = pool.freeze(chunk).slice(0..done);
        if in_order {
            if self.blocks.len() >= BLOCKS {
                self.blocks.pop_front();
            }
            let block = Block { segment: place.segment, start, octets: octets.clone() };
            self.blocks.push_back(block);
        }
        Ok(Ok(octets.slice(0..len.min(done))))
    }
}

/// Reads into `out` until there are `least` octets; how many.
fn read_some(file: &dyn DiskFile, at: u64, least: usize, out: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < least {
        let n = file.read_at(at + done as u64, &mut out[done..])?;
        if n == 0 {
            break;
        }
        done += n;
    }
    Ok(done)
}

impl View {
    fn under(
        &self,
        prefix: NameRef<'_>,
    ) -> Result<redb::Range<'static, &'static [u8], &'static [u8; ENTRY]>, Error> {
        Ok(match behind(prefix.value()) {
            Some(end) => self.packets.range::<&[u8]>(prefix.value()..end.as_slice())?,
            None => self.packets.range::<&[u8]>(prefix.value()..)?,
        })
    }
}
