//! Segments that are in the bucket only: read by ranges, which memory keeps for a while.

use crate::bucket::{Afar, Bucket};
use crate::disk::DiskFile;
use crate::segment::file_name;
use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Octets that are read at once.
const BLOCK: u64 = 1 << 20;
/// Blocks that memory keeps at least.
const BLOCKS_MIN: usize = 4;
/// How long the bucket is left alone after it did not answer.
const REST: Duration = Duration::from_secs(1);
/// Octets that a scan reads at once.
const AHEAD: usize = 4 << 20;

/// The bucket, as readers and errands share it.
#[derive(Debug)]
pub(crate) struct Far {
    pub(crate) bucket: Arc<dyn Bucket>,
    blocks_max: usize,
    kept: Mutex<Kept>,
    /// A block came, or did not.
    came: Condvar,
    told: Mutex<Told>,
    pub(crate) fetched_octets: AtomicU64,
    pub(crate) wrong: AtomicU64,
}

/// A segment, and the number of the block in it.
type Key = (u32, u64);

#[derive(Debug, Default)]
struct Kept {
    /// What was used last is at the end.
    blocks: VecDeque<(Key, Arc<Vec<u8>>)>,
    under_way: Vec<Key>,
}

impl Kept {
    fn get(&mut self, key: Key) -> Option<Arc<Vec<u8>>> {
        let at = self.blocks.iter().position(|(known, _)| *known == key)?;
        let block = self.blocks.remove(at)?;
        let octets = Arc::clone(&block.1);
        self.blocks.push_back(block);
        Some(octets)
    }
}

/// What the bucket did last, in sentences.
#[derive(Debug, Default)]
struct Told {
    read: Option<String>,
    errand: Option<String>,
    lie: Option<String>,
    rests_until: Option<Instant>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Far {
    pub(crate) fn new(afar: &Afar) -> Self {
        let blocks_max = usize::try_from(afar.memory_octets as u64 / BLOCK).unwrap_or(usize::MAX);
        Self {
            bucket: Arc::clone(&afar.bucket),
            blocks_max: blocks_max.max(BLOCKS_MIN),
            kept: Mutex::default(),
            came: Condvar::new(),
            told: Mutex::default(),
            fetched_octets: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
        }
    }

    /// What is wrong, in a sentence.
    pub(crate) fn trouble(&self) -> Option<String> {
        let told = lock(&self.told);
        told.errand.clone().or_else(|| told.read.clone()).or_else(|| told.lie.clone())
    }

    /// What became of an errand.
    pub(crate) fn errand_ended(&self, error: Option<&io::Error>) {
        let sentence = error.map(ToString::to_string);
        let mut told = lock(&self.told);
        if let Some(why) = sentence.as_ref().filter(|why| told.errand.as_ref() != Some(why)) {
            tracing::warn!(%why, "store-bucket-errand-failed");
        }
        told.errand = sentence;
    }

    /// It gave what was not put there.
    pub(crate) fn lied(&self, why: String) {
        self.wrong.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(%why, "store-bucket-gave-wrong-octets");
        lock(&self.told).lie = Some(why);
    }

    /// Reads from the bucket, unless it did not answer a moment ago.
    fn read(&self, segment: u32, at: u64, len: usize) -> io::Result<Vec<u8>> {
        {
            let told = lock(&self.told);
            if let Some(why) = &told.read
                && told.rests_until.is_some_and(|until| Instant::now() < until)
            {
                return Err(io::Error::other(why.clone()));
            }
        }
        let name = file_name(segment);
        let read = self.bucket.read(&name, at, len).and_then(|octets| {
            if octets.len() == len {
                return Ok(octets);
            }
            let got = octets.len();
            let why = format!("the bucket gave {got} octets of {name} at {at} in place of {len}");
            Err(io::Error::new(io::ErrorKind::InvalidData, why))
        });
        let mut told = lock(&self.told);
        match &read {
            Ok(octets) => {
                self.fetched_octets.fetch_add(octets.len() as u64, Ordering::Relaxed);
                told.read = None;
            }
            Err(error) => {
                let why = error.to_string();
                if told.read.as_ref() != Some(&why) {
                    tracing::warn!(%why, "store-bucket-not-read");
                }
                told.read = Some(why);
                told.rests_until = Some(Instant::now() + REST);
            }
        }
        read
    }
}

/// A segment that is in the bucket only.
#[derive(Debug)]
pub(crate) struct FarSegment {
    segment: u32,
    pub(crate) len: u64,
    far: Arc<Far>,
    /// Octets that were read of it.
    fetched: AtomicU64,
}

impl FarSegment {
    pub(crate) fn new(segment: u32, len: u64, far: &Arc<Far>) -> Self {
        Self { segment, len, far: Arc::clone(far), fetched: AtomicU64::new(0) }
    }

    /// Whether so much of it was read that it should come back whole.
    pub(crate) fn is_hot(&self) -> bool {
        self.fetched.load(Ordering::Relaxed) > self.len / 2
    }

    /// Copies what memory has from `at` on; none unless it has `least` octets, or all up to the end.
    pub(crate) fn copy(&self, at: u64, least: usize, out: &mut [u8]) -> Option<usize> {
        let there = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX);
        let mut kept = lock(&self.far.kept);
        let mut done = 0;
        while done < out.len().min(there) {
            let from = at + done as u64;
            let Some(block) = kept.get((self.segment, from / BLOCK)) else { break };
            let skip = usize::try_from(from % BLOCK).unwrap_or(usize::MAX);
            let Some(rest) = block.get(skip..).filter(|rest| !rest.is_empty()) else { break };
            let n = rest.len().min(out.len() - done);
            out[done..done + n].copy_from_slice(&rest[..n]);
            done += n;
        }
        (done >= least.min(there)).then_some(done)
    }

    fn blocks(&self, at: u64, len: usize) -> std::ops::RangeInclusive<u64> {
        let last = (at + (len as u64).max(1) - 1).min(self.len.saturating_sub(1));
        at / BLOCK..=last / BLOCK
    }

    /// Has memory keep `len` octets from `at` on.
    pub(crate) fn fetch(&self, at: u64, len: usize) -> io::Result<()> {
        self.blocks(at, len).try_for_each(|block| self.bring(block))
    }

    fn bring(&self, block: u64) -> io::Result<()> {
        let key = (self.segment, block);
        let mut kept = lock(&self.far.kept);
        loop {
            if kept.get(key).is_some() {
                return Ok(());
            }
            if !kept.under_way.contains(&key) {
                break;
            }
            kept = self.far.came.wait(kept).unwrap_or_else(PoisonError::into_inner);
        }
        kept.under_way.push(key);
        drop(kept);
        let at = block * BLOCK;
        let len = usize::try_from(BLOCK.min(self.len.saturating_sub(at))).unwrap_or(0);
        let read = self.far.read(self.segment, at, len);
        let mut kept = lock(&self.far.kept);
        kept.under_way.retain(|other| *other != key);
        self.far.came.notify_all();
        let octets = read?;
        self.fetched.fetch_add(octets.len() as u64, Ordering::Relaxed);
        while kept.blocks.len() >= self.far.blocks_max {
            kept.blocks.pop_front();
        }
        kept.blocks.push_back((key, Arc::new(octets)));
        Ok(())
    }

    /// What came of this place is not what was put there: it is read again next time.
    pub(crate) fn is_wrong(&self, at: u64, len: usize) {
        let blocks = self.blocks(at, len);
        let mut kept = lock(&self.far.kept);
        kept.blocks
            .retain(|((segment, block), _)| *segment != self.segment || !blocks.contains(block));
        drop(kept);
        let name = file_name(self.segment);
        self.far.lied(format!("the bucket gave wrong octets of {name} at {at}"));
    }
}

/// What has to be read from the bucket before it can be served.
#[derive(Debug, Clone)]
pub struct FarRange {
    pub(crate) segment: Arc<FarSegment>,
    pub(crate) at: u64,
    pub(crate) len: usize,
}

impl FarRange {
    /// Ranges with the same number come together.
    #[must_use]
    pub fn number(&self) -> (u32, u64) {
        (self.segment.segment, self.at / BLOCK)
    }

    /// Has memory keep it. Waits for the bucket.
    ///
    /// # Errors
    /// Those of the bucket, in a sentence.
    pub fn fetch(&self) -> io::Result<()> {
        self.segment.fetch(self.at, self.len)
    }
}

/// A segment in the bucket as a file for who reads all of it, and may wait.
#[derive(Debug)]
pub(crate) struct FarFile {
    segment: u32,
    len: u64,
    far: Arc<Far>,
    /// Where it begins, and what was read.
    ahead: Mutex<(u64, Vec<u8>)>,
}

impl FarFile {
    pub(crate) fn new(segment: u32, len: u64, far: &Arc<Far>) -> Self {
        Self { segment, len, far: Arc::clone(far), ahead: Mutex::default() }
    }
}

impl DiskFile for FarFile {
    fn len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        let there = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX);
        let want = out.len().min(there);
        if want == 0 {
            return Ok(0);
        }
        let mut ahead = lock(&self.ahead);
        let (start, have) = (ahead.0, ahead.1.len() as u64);
        if at < start || at >= start + have {
            *ahead = (at, self.far.read(self.segment, at, AHEAD.min(there))?);
        }
        let skip = usize::try_from(at - ahead.0).unwrap_or(usize::MAX);
        let rest = ahead.1.get(skip..).unwrap_or_default();
        let n = rest.len().min(want);
        out[..n].copy_from_slice(&rest[..n]);
        Ok(n)
    }

    fn write_at(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn set_len(&self, _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}
