//! A file served from where it may be: the node's content store in memory, its second level on disk,
//! a repository. All of it is in the page cache of the operating system.

use super::StoreArgs;
use crate::file::{GetResult, NAME};
use crate::report::{Report, human, median};
use crate::run::{output, own};
use crate::subject::{Node, NodeSpec, Subject};
use anyhow::{Context, Result, bail, ensure};
use onym_client::ClientOptions;
use onym_client::blocking::Client;
use onym_client::mgmt;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Where the file is served from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Memory,
    Disk,
    Repo,
}

const ALL: [Source; 3] = [Source::Memory, Source::Disk, Source::Repo];

/// A program that is ended when dropped.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Source {
    const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Repo => "repo",
        }
    }

    /// What the node has beside the configuration of benchmarks; `packets` is what the file has.
    fn settings(self, folder: &Path, packets: usize) -> String {
        match self {
            Self::Memory => format!("[cs]\npackets_max = {}\n", packets * 2 + 1024),
            Self::Disk => format!(
                "[cs]\npackets_max = 512\n[cs.disk]\nfolder = {:?}\nprefixes = [{NAME:?}]\n\
                 second_hit = false\nfree_min_bytes = 0\npackets_max = {}\n",
                folder.join("cs"),
                packets * 2 + 1024
            ),
            Self::Repo => "[cs]\npackets_max = 0\n".to_owned(),
        }
    }
}

/// Measures all of them, in turns.
pub(super) fn run(args: &StoreArgs, report: &mut Report) -> Result<()> {
    let place = tempfile::tempdir_in(&args.folder).context("cannot make a folder")?;
    let file = place.path().join("file");
    let octets = args.packets as usize * args.payload;
    fs::write(&file, vec![0x5a; octets])?;
    let store = place.path().join("repo");
    let mut add = onym()?;
    add.args(["repo", "add"]).arg(&file).arg("--store").arg(&store);
    add.args(["--as", NAME]).arg(format!("--segment-size={}", args.payload));
    ensure!(add.stdout(Stdio::null()).status()?.success(), "the file cannot be added");
    let mut all = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..args.rounds {
        for (from, values) in ALL.into_iter().zip(&mut all) {
            let folder = place.path().join(format!("{}-{round}", from.name()));
            fs::create_dir(&folder)?;
            values.push(served(args, from, &folder, &store)?);
        }
    }
    let memory = median(&all[0]);
    for (from, values) in ALL.into_iter().zip(&all) {
        let (rate, case) = (median(values), format!("do=serve,from={}", from.name()));
        report.add("store", &case, "onym", "goodput_bps", rate * 8.0);
        println!(
            "serve from {:<8} {:>10}B/s  of memory {:.2}",
            from.name(),
            human(rate),
            rate / memory
        );
    }
    Ok(())
}

/// Octets a second of the second fetch: the first one fills what it is served from.
fn served(args: &StoreArgs, from: Source, folder: &Path, store: &Path) -> Result<f64> {
    let spec = NodeSpec {
        folder: folder.to_owned(),
        name: "a",
        udp: None,
        quic: false,
        cs_packets: 0,
        recv_buffer: None,
        core: 0,
    };
    let drop_ins = folder.join("a.conf.d");
    fs::create_dir(&drop_ins)?;
    fs::write(drop_ins.join("store.toml"), from.settings(folder, args.packets as usize))?;
    let node = Subject::Onym.start(&spec)?;
    let _repo = repo(&node, store)?;
    let mut get = own()?;
    get.arg("get").arg("--node").arg(node.socket()).arg("--core=1").arg("--window=64");
    let _: GetResult = output(&mut get)?;
    if from == Source::Disk {
        until_kept(&node, u64::from(args.packets))?;
    }
    let result: GetResult = output(&mut get)?;
    #[allow(clippy::cast_precision_loss)] // octets of one file
    Ok(result.octets as f64 / result.seconds)
}

fn onym() -> Result<Command> {
    Ok(Command::new(Subject::Onym.program().context("there is no onym beside this program")?))
}

/// The repository, once it serves.
fn repo(node: &Node, store: &Path) -> Result<Ended> {
    let program: PathBuf = Subject::Onym.program().context("there is no onym")?;
    let mut command = Command::new("taskset");
    command.args(["-c", "1"]).arg(program);
    command.args(["repo", "run", "--name", "/onym/bench/repo"]).arg("--store").arg(store);
    command.arg("--node").arg(format!("unix://{}", node.socket().display()));
    let mut child = Ended(command.stdout(Stdio::piped()).spawn()?);
    let said = child.0.stdout.take().context("no standard output")?;
    for line in BufReader::new(said).lines() {
        if line?.starts_with("ready") {
            return Ok(child);
        }
    }
    bail!("the repository does not serve")
}

/// Waits until the second level has so many packets.
fn until_kept(node: &Node, packets: u64) -> Result<()> {
    let uri = format!("unix://{}", node.socket().display());
    let options = ClientOptions { node: Some(uri), ..ClientOptions::default() };
    let mut client = Client::open(options)?;
    let end = Instant::now() + Duration::from_secs(60);
    while Instant::now() < end {
        let told = mgmt::fetch_dataset(&mut client, "/localhost/onym/status/node".parse()?)?;
        let told: Value = serde_json::from_slice(&told)?;
        let of = |what: &str| told["cs"]["disk"][what].as_u64().unwrap_or(0);
        if of("kept") >= packets {
            return Ok(());
        }
        if of("kept") + of("refused") + of("left_out") >= packets {
            // The rest found no room in the lane: it is served by the repository.
            println!("{} of {packets} packets are on the second level", of("kept"));
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("the second level does not get its packets")
}
