//! A large store: what it takes of memory and how long it takes to start. The log has holes in place of
//! packets, so that only the index takes its room on the disk.

use super::StoreArgs;
use crate::proc::resident_octets;
use crate::report::{Report, human};
use anyhow::{Context, Result};
use onym_crypto::signer::write_digest_data;
use onym_store::{Change, Disk, DiskFile, Folder, Options, Writer};
use onym_wire::{DataBuilder, Name};
use std::fs;
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::Instant;

/// A folder whose logs are not written: they have their lengths and holes.
#[derive(Debug)]
struct Sparse(Folder);

#[derive(Debug)]
struct Hole(Arc<dyn DiskFile>);

impl Disk for Sparse {
    fn list(&self) -> io::Result<Vec<String>> {
        self.0.list()
    }

    fn open(&self, name: &str, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.0.open(name, create)?;
        Ok(if name.ends_with(".log") { Arc::new(Hole(file)) } else { file })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn free(&self) -> io::Result<u64> {
        self.0.free()
    }

    fn lock(&self) -> io::Result<bool> {
        self.0.lock()
    }

    fn is_read_only(&self) -> bool {
        false
    }
}

impl DiskFile for Hole {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_at(&self, at: u64, out: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(at, out)
    }

    fn write_at(&self, at: u64, octets: &[u8]) -> io::Result<()> {
        self.0.set_len(at + octets.len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }
}

/// Packets of one group.
const GROUP: u64 = 512;
/// Octets of log that the index does not know after the crash: below those at which it is made durable.
const TAIL: u64 = 24 << 20;

/// What is in the store.
struct Shape {
    /// Components between the number of an object and its file.
    deep: String,
    per_object: u64,
    content: Vec<u8>,
}

impl Shape {
    fn of(args: &StoreArgs) -> Self {
        let deep = "/deeper".repeat(usize::from(args.components.saturating_sub(6)));
        Self { deep, per_object: args.per_object, content: vec![0x5a; args.payload] }
    }

    fn name(&self, n: u64) -> Result<Name> {
        let (object, segment) = (n / self.per_object, n % self.per_object);
        let deep = &self.deep;
        Ok(format!("/bench/store/{object}{deep}/data.bin/v=1/seg={segment}").parse()?)
    }

    fn group(&self, from: u64, to: u64) -> Result<Vec<Change>> {
        let packet = |n: u64| -> Result<Change> {
            let (name, mut packet) = (self.name(n)?, Vec::new());
            write_digest_data(&DataBuilder::new(name.as_ref(), &self.content), &mut packet);
            Ok(Change::insert(packet))
        };
        (from..to).map(packet).collect()
    }

    fn insert(&self, writer: &mut Writer, from: u64, to: u64) -> Result<()> {
        for at in (from..to).step_by(usize::try_from(GROUP)?) {
            for answer in writer.apply(1, self.group(at, to.min(at + GROUP))?) {
                answer?;
            }
        }
        Ok(())
    }
}

// Octets and packets of one store.
#[allow(clippy::cast_precision_loss)]
pub(super) fn run(args: &StoreArgs, report: &mut Report) -> Result<()> {
    let place = tempfile::tempdir_in(&args.folder).context("cannot make a folder")?;
    let shape = Shape::of(args);
    let before = resident_octets(std::process::id())?;
    let began = Instant::now();
    let sparse = Arc::new(Sparse(Folder::open(place.path())?));
    let (mut writer, _) = Writer::open(sparse, Options::default(), 1)?;
    shape.insert(&mut writer, 0, args.objects)?;
    writer.checkpoint()?;
    let octets = writer.stats().log_octets as f64;
    let took = began.elapsed().as_secs_f64();
    drop(writer);

    let open = || Writer::open(Arc::new(Folder::open(place.path())?), Options::default(), 1);
    let began = Instant::now();
    let (mut writer, _) = open()?;
    let clean = began.elapsed().as_secs_f64();
    // A tail that the index does not know, as a crash leaves it.
    let tail = TAIL / (args.payload as u64 + 100);
    shape.insert(&mut writer, args.objects, args.objects + tail)?;
    drop(writer);
    let began = Instant::now();
    let (writer, recovery) = open()?;
    let crashed = began.elapsed().as_secs_f64();

    let mut reader = writer.reader();
    let mut at: u64 = 1;
    let began = Instant::now();
    let lookups: u32 = 20_000;
    for _ in 0..lookups {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let found = reader.exact(shape.name((at >> 20) % args.objects)?.as_ref())?;
        black_box(found.context("an object is gone")?);
    }
    let lookup = began.elapsed().as_secs_f64() / f64::from(lookups);
    let memory = resident_octets(std::process::id())?.saturating_sub(before) as f64;
    let objects = args.objects as f64;
    let index = fs::metadata(place.path().join("index.redb"))?.len() as f64;
    let more = match (args.per_object, args.components) {
        (1000, 6) => String::new(),
        (per_object, components) => format!(",per_object={per_object},components={components}"),
    };
    let case = |what: &str| format!("do={what},objects={}{more}", args.objects);
    report.add("store", &case("memory"), "onym", "octets_per_entry", memory / objects);
    report.add("store", &case("index"), "onym", "octets_per_entry", index / objects);
    report.add("store", &case("start-clean"), "onym", "latency_p50_s", clean);
    report.add("store", &case("start-crashed"), "onym", "latency_p50_s", crashed);
    report.add("store", &case("look-up"), "onym", "latency_mean_s", lookup);
    println!(
        "{} objects, {}B of log (made in {took:.0} s): start {clean:.3} s, after a crash {crashed:.3} s \
         ({}B of tail), memory {}B ({:.1} an object), index on disk {:.0} an object, look-up {:.1} us",
        args.objects,
        human(octets),
        human(recovery.octets as f64),
        human(memory),
        memory / objects,
        index / objects,
        lookup * 1e6
    );
    Ok(())
}
