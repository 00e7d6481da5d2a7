//! The store of packets beside what bounds it: a raw log with the same syncs, and reading the same
//! octets without a store.

mod serve;
mod sparse;

use crate::report::{Report, human, median};
use anyhow::{Context, Result, ensure};
use clap::Args;
use onym_crypto::signer::write_digest_data;
use onym_store::{Change, Done, Folder, Options, Refused, Store};
use onym_wire::{DataBuilder, Name};
use rustix::fs::{Advice, fadvise};
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Instant;

/// Groups that are asked for and not yet answered, where one asks ahead.
const AHEAD: usize = 2;

/// The store beside raw files.
#[derive(Debug, Args)]
pub struct StoreArgs {
    /// Packets.
    /// 0 leaves insertion and reading out.
    #[arg(long, default_value_t = 20_000)]
    pub packets: u32,
    /// Octets of content in a packet.
    #[arg(long, default_value_t = 8000)]
    pub payload: usize,
    /// Packets of one group: one write and one sync.
    #[arg(long, value_delimiter = ',', default_values_t = [64, 512])]
    pub groups: Vec<usize>,
    /// Packets of the large store: 12,500,000 of the default payload are 100 GB, of which only the
    /// index takes room on the disk. 0 leaves it out.
    #[arg(long, default_value_t = 1_000_000)]
    pub objects: u64,
    /// Packets of one object there; as many as there are make one large object.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..))]
    pub per_object: u64,
    /// Components of a name there, version and segment included.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u8).range(6..=32))]
    pub components: u8,
    /// Leaves the nodes out that serve a file from memory, disk and repository.
    #[arg(long)]
    pub no_serve: bool,
    /// Rounds; a row is their median. Subjects take turns within a round.
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Folder for the files, on the disk that is measured.
    #[arg(long, default_value = "target")]
    pub folder: PathBuf,
    /// Where the rows go.
    #[arg(long, default_value = "target/bench.json")]
    pub json: PathBuf,
}

struct Round {
    raw: f64,
    /// By one that waits for each group, and by one that asks ahead.
    waits: f64,
    ahead: f64,
    read: f64,
    cat: f64,
    read_cold: f64,
    cat_cold: f64,
    start_s: f64,
    overhead: f64,
}

/// Prints the table and writes the rows.
///
/// # Errors
/// When the disk fails, or the store does not give back what it was given.
pub fn run(args: &StoreArgs) -> Result<()> {
    let names: Vec<Name> = (0..args.packets)
        .map(|n| format!("/bench/store/object/v=1/seg={n}").parse())
        .collect::<Result<_, _>>()?;
    let mut content = vec![0; args.payload];
    let mut packets = Vec::with_capacity(names.len());
    for (n, name) in names.iter().enumerate() {
        content.iter_mut().zip(n.to_le_bytes().iter().cycle()).for_each(|(to, from)| *to = *from);
        let mut packet = Vec::new();
        write_digest_data(&DataBuilder::new(name.as_ref(), &content), &mut packet);
        packets.push(packet);
    }
    let mut report = Report::default();
    let groups = if args.packets == 0 { &[][..] } else { &args.groups };
    for &group in groups {
        let rounds = (0..args.rounds)
            .map(|_| round(args, &names, &packets, group.max(1)))
            .collect::<Result<Vec<_>>>()?;
        let of = |what: fn(&Round) -> f64| median(&rounds.iter().map(what).collect::<Vec<_>>());
        let case = |what: &str| format!("do={what},group={group},payload={}", args.payload);
        let rows = [
            ("insert", of(|r| r.ahead), of(|r| r.raw)),
            ("insert-wait", of(|r| r.waits), of(|r| r.raw)),
            ("read-warm", of(|r| r.read), of(|r| r.cat)),
            ("read-cold", of(|r| r.read_cold), of(|r| r.cat_cold)),
        ];
        for (what, ours, raw) in rows {
            report.add("store", &case(what), "onym", "goodput_bps", ours * 8.0);
            report.add("store", &case(what), "raw", "goodput_bps", raw * 8.0);
            println!(
                "{what:<11} group {group:<4} onym {:>10}B/s  raw {:>10}B/s  ratio {:.2}",
                human(ours),
                human(raw),
                ours / raw
            );
        }
        report.add("store", &case("start"), "onym", "latency_p50_s", of(|r| r.start_s));
        report.add("store", &case("index"), "onym", "octets_per_entry", of(|r| r.overhead));
        println!(
            "start {:.4} s, {:.0} octets of index for a packet",
            of(|r| r.start_s),
            of(|r| r.overhead)
        );
    }
    if !args.no_serve {
        serve::run(args, &mut report)?;
    }
    if args.objects > 0 {
        sparse::run(args, &mut report)?;
    }
    report.write(&args.json)
}

fn round(args: &StoreArgs, names: &[Name], packets: &[Vec<u8>], group: usize) -> Result<Round> {
    let octets = packets.iter().map(Vec::len).sum::<usize>() as f64;
    let place = tempfile::tempdir_in(&args.folder).context("cannot make a folder")?;
    let raw_file = place.path().join("raw");
    let began = Instant::now();
    let mut file = File::create(&raw_file)?;
    for many in packets.chunks(group) {
        file.write_all(&many.concat())?;
        file.sync_data()?;
    }
    let raw = octets / began.elapsed().as_secs_f64();

    let began = Instant::now();
    let store = Store::open(Folder::open(&place.path().join("waits"))?, Options::default())?;
    for many in packets.chunks(group) {
        taken(store.apply(inserts(many))?)?;
    }
    let waits = octets / began.elapsed().as_secs_f64();
    drop(store);

    let folder = place.path().join("store");
    let store = Store::open(Folder::open(&folder)?, Options::default())?;
    let began = Instant::now();
    insert_ahead(&store, packets, group)?;
    let ahead = octets / began.elapsed().as_secs_f64();
    drop(store);

    let began = Instant::now();
    let store = Store::open(Folder::open(&folder)?, Options::default())?;
    let start_s = began.elapsed().as_secs_f64();
    let read_all = || -> Result<f64> {
        let mut reader = store.reader();
        let began = Instant::now();
        for (name, packet) in names.iter().zip(packets) {
            let found = reader.get(0, name.as_ref())?.context("a packet is gone")?;
            ensure!(found.len() == packet.len(), "a packet changed");
            black_box(&found);
        }
        Ok(octets / began.elapsed().as_secs_f64())
    };
    read_all()?;
    let read = read_all()?;
    let cat_warm = cat(&[raw_file])?;
    // The same octets, which a machine below this one has in its own memory or has not: both are read
    // once before.
    let files = fs::read_dir(&folder)?.map(|entry| Ok(entry?.path()));
    let mut logs = files.collect::<Result<Vec<PathBuf>>>()?;
    logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    logs.sort();
    let cat_log = || -> Result<f64> {
        drop_cache(&folder)?;
        cat(&logs)
    };
    cat_log()?;
    drop_cache(&folder)?;
    let read_cold = read_all()?;
    let cat_cold = cat_log()?;
    let index = fs::metadata(folder.join("index.redb"))?.len() as f64;
    let overhead = index / packets.len() as f64;
    Ok(Round { raw, waits, ahead, read, cat: cat_warm, read_cold, cat_cold, start_s, overhead })
}

fn inserts(packets: &[Vec<u8>]) -> Vec<Change> {
    packets.iter().cloned().map(Change::insert).collect()
}

fn taken(answers: Vec<Result<Done, Refused>>) -> Result<()> {
    answers.into_iter().try_for_each(|answer| Ok(answer.map(|_| ())?))
}

/// As a repository inserts: what comes next is asked for while what was asked for is written.
fn insert_ahead(store: &Store, packets: &[Vec<u8>], group: usize) -> Result<()> {
    let (say, hear) = channel();
    let mut waiting = 0;
    for many in packets.chunks(group) {
        if waiting == AHEAD {
            taken(hear.recv()?)?;
            waiting -= 1;
        }
        let say = say.clone();
        let done = move |answers| {
            let _ = say.send(answers);
        };
        ensure!(store.try_apply(inserts(many), done).is_ok(), "the store's queue is full");
        waiting += 1;
    }
    drop(say);
    hear.iter().try_for_each(taken)
}

/// Octets a second of reading files in order.
fn cat(paths: &[PathBuf]) -> Result<f64> {
    let began = Instant::now();
    let mut buffer = vec![0; 256 << 10];
    let mut octets = 0;
    for path in paths {
        let mut file = File::open(path)?;
        loop {
            let n = file.read(&mut buffer)?;
            if n == 0 {
                break;
            }
            octets += n;
            black_box(&buffer);
        }
    }
    Ok(octets as f64 / began.elapsed().as_secs_f64())
}

/// Has the operating system forget what it keeps of the files in `folder`.
fn drop_cache(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            let file = File::open(&path)?;
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    Ok(())
}
