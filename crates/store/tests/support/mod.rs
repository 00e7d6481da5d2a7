//! A disk in memory that fails as disks do, and packets to put on it.
#![allow(dead_code, clippy::unwrap_used, missing_docs, unreachable_pub)]

use onym_crypto::signer::write_digest_data;
use onym_store::{Bucket, Disk, DiskFile};
use onym_wire::{DataBuilder, Name};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex};

const PAGE: usize = 4096;
const SECTOR: usize = 512;

/// A small generator: the same seed, the same disk.
#[derive(Debug, Clone)]
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

#[derive(Debug, Default, Clone)]
struct Content {
    durable: Vec<u8>,
    current: Vec<u8>,
    /// Pages that a sync would write.
    dirty: BTreeSet<usize>,
}

impl Content {
    fn write(&mut self, at: usize, octets: &[u8]) {
        if self.current.len() < at + octets.len() {
            self.current.resize(at + octets.len(), 0);
        }
        self.current[at..at + octets.len()].copy_from_slice(octets);
        for page in at / PAGE..(at + octets.len()).div_ceil(PAGE) {
            self.dirty.insert(page);
        }
    }

    fn sync(&mut self) {
        self.durable.resize(self.current.len(), 0);
        for page in std::mem::take(&mut self.dirty) {
            let end = ((page + 1) * PAGE).min(self.current.len());
            if page * PAGE < end {
                self.durable[page * PAGE..end].copy_from_slice(&self.current[page * PAGE..end]);
            }
        }
    }

    /// What is left after the power was lost: of each page that was not synced all, nothing, or
    /// some of its sectors.
    fn lose_power(&mut self, rng: &mut Rng) {
        let len = if rng.one_in(2) { self.current.len() } else { self.durable.len() };
        let mut left = std::mem::take(&mut self.durable);
        left.resize(len, 0);
        for page in std::mem::take(&mut self.dirty) {
            let how = rng.below(3);
            for sector in 0..PAGE / SECTOR {
                let start = page * PAGE + sector * SECTOR;
                let end = (start + SECTOR).min(len).min(self.current.len());
                if start < end && (how == 1 || (how == 2 && rng.one_in(2))) {
                    left[start..end].copy_from_slice(&self.current[start..end]);
                }
            }
        }
        self.current.clone_from(&left);
        self.durable = left;
    }
}

#[derive(Debug, Default)]
struct State {
    names: BTreeMap<String, u64>,
    durable_names: BTreeMap<String, u64>,
    contents: HashMap<u64, Content>,
    next_id: u64,
    calls: u64,
    /// This call fails once.
    fail_at: Option<u64>,
    /// From this call on everything fails: the power is off.
    off_at: Option<u64>,
    /// Handles of before a restart do nothing.
    life: u64,
    rng: u64,
    read_only: bool,
}

impl State {
    fn call(&mut self, life: u64) -> io::Result<()> {
        self.calls += 1;
        if life != self.life || self.off_at.is_some_and(|at| self.calls >= at) {
            return Err(io::Error::other("the power is off"));
        }
        if self.fail_at == Some(self.calls) {
            self.fail_at = None;
            return Err(io::Error::other("injected"));
        }
        Ok(())
    }
}

/// A disk that fails.
#[derive(Debug, Clone, Default)]
pub struct FaultyDisk {
    state: Arc<Mutex<State>>,
    life: u64,
}

#[derive(Debug)]
struct FaultyFile {
    state: Arc<Mutex<State>>,
    life: u64,
    id: u64,
}

impl FaultyDisk {
    pub fn new(seed: u64) -> Self {
        let disk = Self::default();
        disk.state.lock().unwrap().rng = seed;
        disk
    }

    pub fn calls(&self) -> u64 {
        self.state.lock().unwrap().calls
    }

    /// The call after `calls` more ones fails.
    pub fn fail_after(&self, calls: u64) {
        let mut state = self.state.lock().unwrap();
        state.fail_at = Some(state.calls + 1 + calls);
    }

    /// The power goes off after `calls` more calls.
    pub fn cut_after(&self, calls: u64) {
        let mut state = self.state.lock().unwrap();
        state.off_at = Some(state.calls + 1 + calls);
    }

    pub fn stay_on(&self) {
        let mut state = self.state.lock().unwrap();
        state.off_at = None;
        state.fail_at = None;
    }

    pub fn is_off(&self) -> bool {
        let state = self.state.lock().unwrap();
        state.off_at.is_some_and(|at| state.calls >= at)
    }

    /// The process ends; what it wrote is with the operating system.
    pub fn kill(&self) -> Self {
        let mut state = self.state.lock().unwrap();
        state.life += 1;
        state.off_at = None;
        state.fail_at = None;
        Self { state: Arc::clone(&self.state), life: state.life }
    }

    /// The power is lost and comes back.
    pub fn lose_power(&self) -> Self {
        {
            let mut state = self.state.lock().unwrap();
            let mut rng = Rng(state.rng);
            for content in state.contents.values_mut() {
                content.lose_power(&mut rng);
            }
            let mut names = BTreeMap::new();
            for (name, id) in &state.durable_names {
                if state.names.get(name) == Some(id) || rng.one_in(2) {
                    names.insert(name.clone(), *id);
                }
            }
            for (name, id) in &state.names {
                if state.durable_names.get(name) != Some(id) && rng.one_in(2) {
                    names.insert(name.clone(), *id);
                }
            }
            state.rng = rng.0;
            state.names = names.clone();
            state.durable_names = names;
        }
        self.kill()
    }

    pub fn set_read_only(&self) {
        self.state.lock().unwrap().read_only = true;
    }

    /// Changes an octet where nobody looks.
    pub fn damage(&self, name: &str, at: usize) {
        let mut state = self.state.lock().unwrap();
        let id = state.names[name];
        let content = state.contents.get_mut(&id).unwrap();
        content.current[at] ^= 0x40;
        if at < content.durable.len() {
            content.durable[at] ^= 0x40;
        }
    }

    pub fn files(&self) -> Vec<String> {
        self.state.lock().unwrap().names.keys().cloned().collect()
    }

    pub fn remove_quietly(&self, name: &str) {
        let mut state = self.state.lock().unwrap();
        state.names.remove(name);
        state.durable_names.remove(name);
    }
}

impl Disk for FaultyDisk {
    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.state.lock().unwrap();
        state.call(self.life)?;
        Ok(state.names.keys().cloned().collect())
    }

    fn open(&self, name: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock().unwrap();
        state.call(self.life)?;
        let id = match state.names.get(name) {
            Some(id) => *id,
            None if create && !state.read_only => {
                state.next_id += 1;
                let id = state.next_id;
                state.contents.insert(id, Content::default());
                state.names.insert(name.to_owned(), id);
                id
            }
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(FaultyFile { state: Arc::clone(&self.state), life: self.life, id }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.call(self.life)?;
        state.names.remove(name).map(|_| ()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.call(self.life)?;
        let id = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), id);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        state.call(self.life)?;
        state.durable_names = state.names.clone();
        Ok(())
    }

    fn free(&self) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn lock(&self) -> io::Result<bool> {
        Ok(true)
    }

    fn is_read_only(&self) -> bool {
        self.state.lock().unwrap().read_only
    }
}

impl FaultyFile {
    fn with<R>(
        &self,
        what: impl FnOnce(&mut Content, io::Result<()>) -> io::Result<R>,
    ) -> io::Result<R> {
        let mut state = self.state.lock().unwrap();
        let call = state.call(self.life);
        what(state.contents.get_mut(&self.id).unwrap(), call)
    }
}

impl DiskFile for FaultyFile {
    fn len(&self) -> io::Result<u64> {
        self.with(|content, call| call.map(|()| content.current.len() as u64))
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        self.with(|content, call| {
            call?;
            let there = content.current.get(at as usize..).unwrap_or_default();
            let n = there.len().min(out.len());
            out[..n].copy_from_slice(&there[..n]);
            Ok(n)
        })
    }

    fn write_at(&self, at: u64, octets: &[u8]) -> io::Result<()> {
        self.with(|content, call| {
            // A write that fails has written a part.
            let part = if call.is_ok() { octets } else { &octets[..octets.len() / 2] };
            if call.as_ref().err().is_none_or(|e| e.to_string() == "injected") {
                content.write(at as usize, part);
            }
            call
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.with(|content, call| {
            call?;
            let old = content.current.len();
            content.current.resize(len as usize, 0);
            for page in old.min(len as usize) / PAGE..(len as usize).div_ceil(PAGE) {
                content.dirty.insert(page);
            }
            Ok(())
        })
    }

    fn sync(&self) -> io::Result<()> {
        self.with(|content, call| {
            match call.as_ref() {
                Ok(()) => content.sync(),
                // As Linux: the pages count as written now, and are not.
                Err(e) if e.to_string() == "injected" => content.dirty.clear(),
                Err(_) => {}
            }
            call
        })
    }
}

/// A bucket in memory that fails, tears and lies.
#[derive(Debug, Clone, Default)]
pub struct FaultyBucket(Arc<Mutex<Objects>>);

#[derive(Debug, Default)]
pub struct Objects {
    pub objects: BTreeMap<String, Vec<u8>>,
    /// Nothing answers.
    pub is_away: bool,
    /// Reads give other octets.
    pub lies: bool,
    /// The next object that is put is cut in half, and the bucket says that it has it.
    pub tears: bool,
    /// The call after so many more fails, and has done a part of it.
    pub fail_after: Option<u64>,
    pub reads: u64,
}

impl FaultyBucket {
    pub fn with<R>(&self, what: impl FnOnce(&mut Objects) -> R) -> R {
        what(&mut self.0.lock().unwrap())
    }

    pub fn segments(&self) -> Vec<String> {
        let is_segment = |name: &&String| name.ends_with(".log");
        self.with(|there| there.objects.keys().filter(is_segment).cloned().collect())
    }

    fn call<R>(&self, what: impl FnOnce(&mut Objects) -> R) -> io::Result<R> {
        self.with(|there| {
            let fails = there.fail_after == Some(0);
            there.fail_after = there.fail_after.and_then(|calls| calls.checked_sub(1));
            if there.is_away || fails {
                return Err(io::Error::other("the bucket does not answer"));
            }
            Ok(what(there))
        })
    }
}

impl Bucket for FaultyBucket {
    fn list(&self) -> io::Result<Vec<(String, u64)>> {
        self.call(|there| {
            there.objects.iter().map(|(name, o)| (name.clone(), o.len() as u64)).collect()
        })
    }

    fn put(&self, name: &str, octets: &mut dyn io::Read, len: u64) -> io::Result<()> {
        let mut whole = Vec::new();
        octets.read_to_end(&mut whole)?;
        assert_eq!(whole.len() as u64, len);
        self.call(|there| {
            if std::mem::take(&mut there.tears) {
                whole.truncate(whole.len() / 2);
            }
            there.objects.insert(name.to_owned(), whole);
        })
    }

    fn len(&self, name: &str) -> io::Result<Option<u64>> {
        self.call(|there| there.objects.get(name).map(|octets| octets.len() as u64))
    }

    fn read(&self, name: &str, at: u64, len: usize) -> io::Result<Vec<u8>> {
        self.call(|there| {
            there.reads += 1;
            let octets = there.objects.get(name).ok_or(io::ErrorKind::NotFound)?;
            let from = octets.get(at as usize..).unwrap_or_default();
            let mut read = from[..len.min(from.len())].to_vec();
            if there.lies && name.ends_with(".log") {
                read.iter_mut().step_by(64).for_each(|octet| *octet ^= 1);
            }
            Ok(read)
        })?
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.call(|there| {
            there.objects.remove(name);
        })
    }
}

/// A Data packet.
pub fn packet(name: &str, content: &[u8]) -> Vec<u8> {
    packet_fresh(name, content, 0)
}

pub fn packet_fresh(name: &str, content: &[u8], freshness_ms: u64) -> Vec<u8> {
    let name: Name = name.parse().unwrap();
    let mut out = Vec::new();
    let builder = DataBuilder { freshness_ms, ..DataBuilder::new(name.as_ref(), content) };
    write_digest_data(&builder, &mut out);
    out
}
