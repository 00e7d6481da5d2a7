//! The writer's side of a bucket: what is there, what is to be done, and what leaves the disk.

use super::Writer;
use crate::Error;
use crate::bucket::{Afar, AfarStats};
use crate::disk::{Disk, DiskFile};
use crate::errand::{Ended, Errand, ID_LEN, What, claim, owner_of};
use crate::far::{Far, FarFile};
use crate::index::Index;
use crate::log::Log;
use crate::record::Place;
use crate::segment::number_of;
use crate::tally::{InBucket, There};
use onym_crypto::edge::random_u64;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The file that says which bucket is this store's.
const ID: &str = "bucket";

/// A bucket, as the writer has it.
#[derive(Debug)]
pub(super) struct FarSide {
    far: Arc<Far>,
    near_octets_max: u64,
    /// What the bucket must say whose it is; empty until that is known.
    id: String,
    there: BTreeMap<u32, InBucket>,
    /// The segment that should come back to be compacted.
    wanted: Option<u32>,
    /// The segment that came back last: it does not leave at once.
    came: Option<u32>,
    /// The segment of the errand that is out.
    busy: Option<u32>,
    stop: Arc<AtomicBool>,
}

impl Drop for FarSide {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// An error of the bucket is a sentence of its own.
fn bucket(error: &io::Error) -> Error {
    Error::Bucket(error.to_string())
}

impl FarSide {
    pub(super) fn open(disk: &dyn Disk, afar: &Afar) -> io::Result<Self> {
        let mut id = [0; ID_LEN];
        let has_id = match disk.open(ID, false) {
            Ok(file) => file.len()? == ID_LEN as u64 && file.read_at(0, &mut id)? == ID_LEN,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        Ok(Self {
            far: Arc::new(Far::new(afar)),
            near_octets_max: afar.near_octets_max,
            id: if has_id { String::from_utf8_lossy(&id).into_owned() } else { String::new() },
            there: BTreeMap::new(),
            wanted: None,
            came: None,
            busy: None,
            stop: Arc::default(),
        })
    }

    /// Makes sure that the bucket is this store's. Waits for the bucket.
    fn meet(&mut self, disk: &dyn Disk, is_new: bool) -> Result<(), Error> {
        let owner = owner_of(&self.far).map_err(|e| bucket(&e))?;
        if !self.id.is_empty() {
            return match owner {
                Some(owner) if owner != self.id => {
                    Err(Error::Bucket("the bucket belongs to another store".into()))
                }
                _ if disk.is_read_only() => Ok(()),
                _ => self.keep_id(disk),
            };
        }
        if disk.is_read_only() {
            return Err(Error::Bucket("a read-only store cannot begin to use a bucket".into()));
        }
        let is_taken = owner.is_some();
        if is_taken && !is_new {
            return Err(Error::Bucket("the bucket belongs to another store".into()));
        }
        if !is_taken && !self.list()?.is_empty() {
            let why = "the bucket has segments, and does not say whose they are";
            return Err(Error::Bucket(why.into()));
        }
        self.id = format!("{:016x}{:016x}", random_u64(), random_u64());
        if is_taken {
            // Who had it hears of it before its next errand. Should this end here, it is taken again.
            claim(&self.far, &self.id).map_err(|e| bucket(&e))?;
        }
        self.keep_id(disk)
    }

    /// Has the disk keep whose the bucket must be.
    fn keep_id(&self, disk: &dyn Disk) -> Result<(), Error> {
        let file = disk.open(ID, true)?;
        file.write_at(0, self.id.as_bytes())?;
        file.sync()?;
        Ok(disk.sync()?)
    }

    /// The segments in the bucket. Waits for the bucket.
    fn list(&self) -> Result<BTreeMap<u32, u64>, Error> {
        let listed = self.far.bucket.list().map_err(|e| bucket(&e))?;
        Ok(listed.into_iter().filter_map(|(name, len)| Some((number_of(&name)?, len))).collect())
    }

    fn is_verified(&self, segment: u32) -> bool {
        self.there.get(&segment).is_some_and(InBucket::is_verified)
    }

    /// Whether an errand concerns the segment now.
    pub(super) fn is_busy(&self, segment: u32) -> bool {
        self.busy == Some(segment)
    }

    /// Whether something of the segment may be in the bucket: nothing is written behind it any more.
    pub(super) fn knows(&self, segment: u32) -> bool {
        self.there.contains_key(&segment)
    }

    /// One of which less than half is alive should come back.
    pub(super) fn want(&mut self, segment: u32) {
        self.wanted.get_or_insert(segment);
    }

    /// What the bucket has of a segment that is gone: to be removed when its copies, up to `behind`,
    /// are there.
    pub(super) fn condemned(&self, segment: u32, behind: u32) -> Option<InBucket> {
        let there = self.there.get(&segment)?;
        Some(InBucket { state: There::Condemned(behind), ..*there })
    }

    /// Notes what was made durable.
    pub(super) fn is(&mut self, segment: u32, there: InBucket) {
        self.there.insert(segment, there);
        self.wanted.take_if(|wanted| *wanted == segment);
        self.came.take_if(|came| *came == segment);
    }

    pub(super) fn file(&self, segment: u32, len: u64) -> Arc<dyn DiskFile> {
        Arc::new(FarFile::new(segment, len, &self.far))
    }

    /// What can be removed from the bucket.
    fn removable(&self, log: &Log) -> Option<u32> {
        let unsafe_from = log.segments().into_iter().find(|segment| !self.is_verified(*segment));
        let is_safe = |behind: u32| unsafe_from.is_none_or(|segment| segment > behind);
        self.there.iter().find_map(|(segment, there)| match there.state {
            There::Condemned(behind) if is_safe(behind) => Some(*segment),
            _ => None,
        })
    }
}

impl Writer {
    /// Takes from the index, or from the bucket where the index is new, which segments are there.
    pub(super) fn find_far(&mut self, index: &Index, applied: Option<Place>) -> Result<(), Error> {
        let Some(side) = &mut self.afar else {
            if self.disk.list()?.iter().any(|name| name == ID) {
                let why = "a part of this store is in a bucket, and none is configured";
                return Err(Error::Bucket(why.into()));
            }
            return Ok(());
        };
        if applied.is_none() || side.id.is_empty() {
            let is_new = applied.is_none() && self.log.segments().is_empty();
            side.meet(&*self.disk, is_new)?;
        } else if !self.read_only {
            // A start that failed may have left what is not durable.
            side.keep_id(&*self.disk)?;
        }
        if applied.is_none() {
            side.there = BTreeMap::new();
            for (segment, len) in side.list()? {
                let is_near = self.log.is_near(segment) && self.log.len_of(segment) >= len;
                let state = if is_near { There::Begun } else { There::Verified(None) };
                side.there.insert(segment, InBucket { len, state });
            }
            index.far_is(&side.there)?;
        } else {
            side.there = index.far()?;
        }
        for (segment, there) in &side.there {
            match there.state {
                There::Begun => {}
                There::Verified(_) => self.log.is_far(*segment, there.len, &side.far),
                There::Condemned(_) => self.log.condemn(*segment),
            }
        }
        if !self.read_only {
            self.log.forget_parts()?;
        }
        Ok(())
    }

    /// What is to be done between the disk and the bucket next, if anything is. One errand is out at a
    /// time; how it ended is for [`Writer::errand_ended`].
    ///
    /// # Errors
    /// [`Error::Disk`] and [`Error::Index`].
    pub fn next_errand(&mut self) -> Result<Option<Errand>, Error> {
        self.log.turn();
        let busy = self.afar.as_ref().is_none_or(|side| side.busy.is_some());
        if busy || self.read_only {
            return Ok(None);
        }
        let what = match self.next_bring()? {
            Some(bring) => Some(bring),
            None => self.next_put()?,
        };
        let Some(side) = &mut self.afar else { return Ok(None) };
        let remove = || side.removable(&self.log).map(|segment| What::Remove { segment });
        let Some(what) = what.or_else(remove) else { return Ok(None) };
        side.busy = Some(what.segment());
        let (id, far, stop) = (side.id.clone(), Arc::clone(&side.far), Arc::clone(&side.stop));
        Ok(Some(Errand { what, id, far, stop }))
    }

    /// A segment that should come back: to be compacted, or because it is read much.
    fn next_bring(&mut self) -> Result<Option<What>, Error> {
        let Some(side) = &mut self.afar else { return Ok(None) };
        let wanted = side.wanted.filter(|segment| !self.log.is_near(*segment));
        side.wanted = wanted;
        let fits = |segment: &u32| self.log.len_of(*segment) <= side.near_octets_max / 2;
        let Some(segment) = wanted.or_else(|| self.log.hot().into_iter().find(fits)) else {
            return Ok(None);
        };
        let Some(InBucket { len, state: There::Verified(crc) }) = side.there.get(&segment).copied()
        else {
            side.wanted = None;
            return Ok(None);
        };
        let file = self.log.part(segment)?;
        Ok(Some(What::Bring { segment, len, crc, file }))
    }

    /// The oldest full segment that the bucket does not have. That it may have it from now on is
    /// durable before anything is put there.
    fn next_put(&mut self) -> Result<Option<What>, Error> {
        let Some(side) = &self.afar else { return Ok(None) };
        let open = self.log.open_segment();
        let compacted = self.compaction.as_ref().map(|compaction| compaction.segment);
        let next = self
            .log
            .segments()
            .into_iter()
            .find(|segment| !side.is_verified(*segment) && self.log.len_of(*segment) > 0);
        let Some(segment) = next.filter(|s| Some(*s) != open && Some(*s) != compacted) else {
            return Ok(None);
        };
        let Some(file) = self.log.file(segment) else { return Ok(None) };
        let len = self.log.len_of(segment);
        if side.there.get(&segment).is_none_or(|there| there.len != len) {
            self.note_far(segment, InBucket { len, state: There::Begun })?;
        }
        Ok(Some(What::Put { segment, len, file }))
    }

    /// Notes what the bucket has of a segment, durably.
    fn note_far(&mut self, segment: u32, there: InBucket) -> Result<(), Error> {
        let noted = self.group(0, true, |group| group.tables.put_far(segment, Some(&there)));
        noted.map_err(Error::Index)?;
        if let Some(side) = &mut self.afar {
            side.there.insert(segment, there);
        }
        Ok(())
    }

    /// An errand ended.
    ///
    /// # Errors
    /// [`Error::Disk`] and [`Error::Index`].
    pub fn errand_ended(&mut self, ended: Ended) -> Result<(), Error> {
        let Some(side) = &mut self.afar else { return Ok(()) };
        side.busy = None;
        side.far.errand_ended(ended.done.as_ref().err());
        match (ended.what, ended.done) {
            (What::Put { segment, len, .. }, Ok(crc)) => {
                self.note_far(segment, InBucket { len, state: There::Verified(Some(crc)) })?;
            }
            (What::Bring { segment, .. }, done) => {
                side.wanted.take_if(|wanted| *wanted == segment);
                side.came = Some(segment);
                match done {
                    Ok(_) => self.log.came(segment)?,
                    Err(_) => self.log.stayed_away(segment, &side.far)?,
                }
            }
            (What::Remove { segment }, Ok(_)) => {
                let noted = self.group(0, false, |group| group.tables.put_far(segment, None));
                noted.map_err(Error::Index)?;
                self.log.is_nowhere(segment);
                self.afar.as_mut().map(|side| side.there.remove(&segment));
            }
            (What::Put { .. } | What::Remove { .. }, Err(_)) => {}
        }
        self.leave_disk()
    }

    /// While the log takes too much on the disk, what the bucket has leaves it.
    fn leave_disk(&mut self) -> Result<(), Error> {
        let Some(side) = &self.afar else { return Ok(()) };
        let max = side.near_octets_max;
        while self.log.near_octets() > max && self.leave_one()? {}
        Ok(())
    }

    /// Takes the segment that was used longest ago off the disk, if one may go.
    pub(super) fn leave_one(&mut self) -> Result<bool, Error> {
        let Some(side) = &self.afar else { return Ok(false) };
        let compacted = self.compaction.as_ref().map(|compaction| compaction.segment);
        let stays = [self.log.open_segment(), compacted, side.came, side.busy, side.wanted];
        let may_go = |segment: &u32| side.is_verified(*segment) && !stays.contains(&Some(*segment));
        let Some(segment) = self.log.near_by_use().into_iter().find(may_go) else {
            return Ok(false);
        };
        self.log.leave(segment, &side.far)?;
        Ok(true)
    }

    /// What there is in the bucket; none without one.
    pub(super) fn afar_stats(&self) -> Option<AfarStats> {
        let side = self.afar.as_ref()?;
        let verified = side.there.values().filter(|there| there.is_verified());
        let open = self.log.open_segment();
        let segments = self.log.segments();
        let waits =
            |s: &&u32| !side.is_verified(**s) && Some(**s) != open && self.log.len_of(**s) > 0;
        Some(AfarStats {
            segments: verified.clone().count() as u64,
            octets: verified.map(|there| there.len).sum(),
            far_only: segments.iter().filter(|s| !self.log.is_near(**s)).count() as u64,
            waiting: segments.iter().filter(waits).count() as u64,
            near_octets: self.log.near_octets(),
            fetched_octets: side.far.fetched_octets.load(Ordering::Relaxed),
            wrong: side.far.wrong.load(Ordering::Relaxed),
            trouble: side.far.trouble(),
        })
    }

    /// A segment that is in the bucket only, for one who reads all of it.
    pub(crate) fn far_file(&self, segment: u32) -> Option<(Arc<dyn DiskFile>, u64)> {
        let side = self.afar.as_ref()?;
        let len = self.log.len_of(segment);
        (!self.log.is_near(segment) && len > 0).then(|| (side.file(segment, len), len))
    }
}
