//! Nothing acknowledged is lost and nothing damaged is served, whenever the process or the power goes.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod support;

use onym_store::{Afar, Bounds, Change, Options, Refused, Writer};
use onym_wire::{Data, Name};
use std::sync::Arc;
use support::{FaultyBucket, FaultyDisk, Rng, packet};

const NAMES: u64 = 12;

/// What may be read of a name: the version that was acknowledged last (`None`: deleted or never
/// there), and those that were asked for since and not acknowledged.
#[derive(Debug, Clone, Default)]
struct Possible {
    acknowledged: Option<u64>,
    perhaps: Vec<Option<u64>>,
}

impl Possible {
    fn allows(&self, read: Option<u64>) -> bool {
        read == self.acknowledged || self.perhaps.contains(&read)
    }
}

struct Run {
    seed: u64,
    rng: Rng,
    disk: FaultyDisk,
    /// Where full segments go, if anywhere.
    bucket: Option<FaultyBucket>,
    possible: Vec<Possible>,
    version: u64,
    now_ms: u64,
    losses: u64,
}

const OPTIONS: Options = Options {
    bounds: Bounds {
        octets_max: u64::MAX,
        packets_max: u64::MAX,
        owner_octets_max: u64::MAX,
        owner_packets_max: u64::MAX,
        free_min_octets: 0,
    },
    segment_octets: 4096,
    checkpoint_octets: 3000,
    cache_octets: 1 << 18,
    queue_groups: 1,
};

fn name_of(index: u64) -> String {
    format!("/n/{}/seg={}", index / 3, index % 3)
}

/// Content that tells its version, of a length that depends on it.
fn content_of(version: u64) -> Vec<u8> {
    let mut content = version.to_be_bytes().to_vec();
    content.resize(8 + (version * 37 % 700) as usize, version as u8);
    content
}

impl Run {
    fn group(&mut self, writer: &mut Writer) {
        let mut asked = Vec::new();
        let mut changes = Vec::new();
        for _ in 0..1 + self.rng.below(5) {
            let index = self.rng.below(NAMES);
            if self.rng.one_in(4) {
                let name: Name = name_of(index).parse().unwrap();
                changes.push(Change::delete(name));
                asked.push((index, None));
            } else {
                self.version += 1;
                changes.push(Change::insert(packet(&name_of(index), &content_of(self.version))));
                asked.push((index, Some(self.version)));
            }
        }
        for ((index, state), answer) in asked.into_iter().zip(writer.apply(self.now_ms, changes)) {
            let possible = &mut self.possible[index as usize];
            match answer {
                Ok(_) => *possible = Possible { acknowledged: state, perhaps: Vec::new() },
                Err(Refused::Disk(_)) => possible.perhaps.push(state),
                Err(other) => panic!("seed {}: {other}", self.seed),
            }
        }
    }

    fn open(&self) -> Result<Writer, onym_store::Error> {
        let afar = self
            .bucket
            .as_ref()
            .map(|bucket| Afar { near_octets_max: 6000, ..Afar::new(Arc::new(bucket.clone())) });
        let disk = Arc::new(self.disk.clone());
        Ok(Writer::open_with(disk, afar.as_ref(), OPTIONS, self.now_ms)?.0)
    }

    /// An errand to a bucket that is away, tears, lies or fails at one of its calls; whether the
    /// process ends before it hears how it ended.
    fn errand(&mut self, writer: &mut Writer) -> bool {
        let Some(bucket) = self.bucket.clone() else { return false };
        let Ok(Some(errand)) = writer.next_errand() else { return false };
        bucket.with(|there| {
            there.is_away = self.rng.one_in(8);
            there.tears = self.rng.one_in(6);
            there.lies = self.rng.one_in(8);
            there.fail_after = self.rng.one_in(4).then(|| self.rng.below(6));
        });
        let ended = errand.run();
        self.is_honest();
        if self.rng.one_in(10) {
            return true;
        }
        let _ = writer.errand_ended(ended);
        false
    }

    fn is_honest(&self) {
        let Some(bucket) = &self.bucket else { return };
        bucket.with(|there| {
            (there.is_away, there.tears, there.lies, there.fail_after) =
                (false, false, false, None);
        });
    }

    fn check(&mut self, writer: &Writer, settle: bool) {
        if let Some(bucket) = &self.bucket
            && !settle
            && self.rng.one_in(4)
        {
            bucket.with(|there| there.lies = true);
            let mut reader = writer.reader();
            for index in 0..NAMES {
                let name: Name = name_of(index).parse().unwrap();
                let read = reader.get(self.now_ms, name.as_ref());
                if let Some(packet) = read.ok().flatten() {
                    self.is_undamaged(&packet);
                }
            }
            self.is_honest();
        }
        let mut reader = writer.reader();
        for index in 0..NAMES {
            let name: Name = name_of(index).parse().unwrap();
            let Ok(read) = reader.get(self.now_ms, name.as_ref()) else {
                assert!(!settle, "seed {}: cannot read after a start", self.seed);
                return;
            };
            let version = read.map(|packet| self.is_undamaged(&packet));
            let possible = &mut self.possible[index as usize];
            assert!(
                possible.allows(version),
                "seed {}, {name}: read {version:?}, possible {possible:?}",
                self.seed
            );
            if settle {
                *possible = Possible { acknowledged: version, perhaps: Vec::new() };
            }
        }
    }

    /// The version of a packet that was read.
    fn is_undamaged(&self, packet: &[u8]) -> u64 {
        let data = Data::parse(packet).unwrap();
        let version = u64::from_be_bytes(*data.content.first_chunk().unwrap());
        assert_eq!(data.content, content_of(version), "seed {}: damaged", self.seed);
        version
    }

    fn life(&mut self) {
        // The start may fail as well; the next one does not.
        if self.rng.one_in(4) {
            self.disk.cut_after(self.rng.below(60));
        }
        let mut writer = match self.open() {
            Ok(writer) if !self.disk.is_off() => writer,
            _ => {
                self.end_life();
                self.open().unwrap_or_else(|e| panic!("seed {}: {e}", self.seed))
            }
        };
        self.disk.stay_on();
        self.check(&writer, true);
        let calls = self.rng.below(160);
        self.disk.cut_after(calls);
        for _ in 0..30 {
            if self.disk.is_off() {
                break;
            }
            self.now_ms += 10;
            if self.rng.one_in(12) {
                self.disk.fail_after(self.rng.below(12));
            }
            match self.rng.below(if self.bucket.is_some() { 17 } else { 12 }) {
                0 => drop(writer.compact(self.now_ms, 1.0)),
                1 => drop(writer.compact(self.now_ms, 0.6)),
                2 => drop(writer.checkpoint()),
                3 => drop(writer.expire(self.now_ms)),
                4 if !self.disk.is_off() => self.check(&writer, false),
                12.. => {
                    if self.errand(&mut writer) {
                        break;
                    }
                }
                _ => self.group(&mut writer),
            }
        }
        self.end_life();
        drop(writer);
    }

    fn end_life(&mut self) {
        self.losses += 1;
        let is_killed = self.rng.one_in(3);
        self.disk = if is_killed { self.disk.kill() } else { self.disk.lose_power() };
        if is_killed && self.bucket.is_some() && self.rng.one_in(2) {
            // The index is made again, from the disk and the bucket.
            self.disk.remove_quietly("index.redb");
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_and_nothing_damaged_is_served() {
    all_seeds(false);
}

/// The same, where full segments go to a bucket that fails as well, also while they do.
#[test]
fn nothing_is_lost_on_the_way_to_a_bucket_or_back() {
    all_seeds(true);
}

fn all_seeds(with_bucket: bool) {
    let seeds = std::env::var("ONYM_STORE_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(1000);
    let first = std::env::var("ONYM_STORE_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let threads = 2;
    let losses: u64 = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn(move || {
                    let mut losses = 0;
                    for seed in (first + thread..first + seeds).step_by(threads as usize) {
                        let mut run = Run {
                            seed,
                            rng: Rng(seed),
                            disk: FaultyDisk::new(!seed),
                            bucket: with_bucket.then(FaultyBucket::default),
                            possible: vec![Possible::default(); NAMES as usize],
                            version: 0,
                            now_ms: 1_000,
                            losses: 0,
                        };
                        for _ in 0..2 {
                            run.life();
                        }
                        losses += run.losses;
                    }
                    losses
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).sum()
    });
    eprintln!("seeds {first}..{}: {losses} ends of process or power", first + seeds);
}
