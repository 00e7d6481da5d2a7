//! User instructions of a whole node for one exchange, counted by callgrind.
//!
//! The program `onym` as it ships runs under callgrind, with a configuration file and one Unix
//! socket; this process is consumer and producer. It works in lockstep, so that the node has the same
//! to do in each run: a round writes a window of Interests at once, waits until all came out, answers
//! them at once, and waits for all Data. A run of few rounds is subtracted from one of many: start,
//! registration, warm-up and end are in both, and so are the questions of those who watch.

mod watching;

use crate::link::{Ends, connect_unix, register};
use crate::packets::{DataTemplate, Exchange, InterestTemplate, PREFIX, Seen, see};
use anyhow::{Context, Result, ensure};
use clap::Args;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::Name;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use watching::{Collector, Viewer, Watcher};

/// A whole node under callgrind.
#[derive(Debug, Args)]
pub struct InstructionsArgs {
    /// Interests in flight.
    #[arg(long, default_value_t = 64)]
    pub window: u32,
    /// Rounds that are counted, one window of exchanges each.
    #[arg(long, default_value_t = 250)]
    pub rounds: u32,
    /// Octets of content.
    #[arg(long, default_value_t = 100)]
    pub payload: usize,
    /// Packets that the content store holds.
    #[arg(long, default_value_t = 0)]
    pub store: u32,
    /// Forwarding threads.
    #[arg(long, default_value_t = 1)]
    pub shards: u32,
    /// Whether an Interest with CanBePrefix waits for another name all the time.
    #[arg(long)]
    pub asked: bool,
    /// Who watches the node meanwhile, with commas between.
    #[arg(long, value_delimiter = ',')]
    pub watched: Vec<Watcher>,
    /// Other faces that the node has.
    #[arg(long, default_value_t = 0)]
    pub faces: u32,
    /// Routes that the node has over them.
    #[arg(long, default_value_t = 0, requires = "faces")]
    pub routes: u32,
    /// Counts so many questions of `onym top` in place of rounds.
    #[arg(long, default_value_t = 0)]
    pub polls: u32,
    /// Where callgrind writes what it counted in the run of many rounds.
    #[arg(long)]
    pub profile: Option<PathBuf>,
}

/// Rounds before those that are counted.
const WARM_UP: u32 = 50;
/// Under callgrind everything takes fifty times as long.
const PATIENCE: Duration = Duration::from_secs(60);
/// Lines of the node's log that are told when it fails: the last ones.
const LINES_TOLD: usize = 20;
/// What start and stop take longer for each face and route.
const PATIENCE_EACH: Duration = Duration::from_millis(10);

/// The instructions of all counted exchanges, of which there are `window` times `rounds`.
///
/// # Errors
/// When there is no valgrind, the node does not start or loses a packet.
pub fn run(args: &InstructionsArgs) -> Result<u64> {
    let folder = tempfile::tempdir()?;
    let few = Work { rounds: WARM_UP, polls: 0 };
    let many = match args.polls {
        0 => Work { rounds: WARM_UP + args.rounds, ..few },
        polls => Work { polls, ..few },
    };
    let few = count(args, folder.path(), few)?;
    let many = count(args, folder.path(), many)?;
    many.checked_sub(few).context("more work took fewer instructions")
}

/// What a run has the node do.
#[derive(Debug, Clone, Copy)]
struct Work {
    rounds: u32,
    /// Questions of `onym top` behind the rounds.
    polls: u32,
}

/// A process that ends with its owner.
struct Node(Child);

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// All instructions of a node that does this work.
fn count(args: &InstructionsArgs, folder: &Path, work: Work) -> Result<u64> {
    let socket = folder.join("node.sock");
    let config = folder.join("node.toml");
    let collector = args.watched.contains(&Watcher::Spans).then(Collector::start).transpose()?;
    let telemetry = collector.as_ref().map(Collector::section).unwrap_or_default();
    let text = format!(
        "shards = {}\n{telemetry}[cs]\npackets_max = {}\n[faces.unix]\npath = \"{}\"\n\
         [faces.udp]\nlisten = {}\n[faces.tcp]\nlisten = []\n\
         [faces.websocket]\nlisten = []\n",
        args.shards,
        args.store,
        socket.display(),
        // All others share its socket.
        if args.faces > 0 { "[\"127.0.0.1:0\"]\nmulticast = []" } else { "[]" }
    );
    fs::write(&config, text + &neighbours(args.faces, args.routes))?;
    let own = std::env::current_exe()?;
    let profile = args.profile.clone().unwrap_or_else(|| folder.join("callgrind"));
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind");
    command.arg(format!("--callgrind-out-file={}", profile.display()));
    command.arg(own.with_file_name("onym")).args(["daemon", "--config"]).arg(&config);
    let (log, said) = (fs::File::create(folder.join("log"))?, folder.join("log"));
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    let mut node = Node(command.spawn().context("valgrind cannot be run")?);
    let patience = PATIENCE + PATIENCE_EACH * args.faces.saturating_add(args.routes);
    let done = ready(&said, patience).and_then(|()| carry(args, &socket, work, patience));
    // What it counted is said when it ends by itself.
    let pid = i32::try_from(node.0.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
    let start = Instant::now();
    while done.is_ok() && node.0.try_wait()?.is_none() && start.elapsed() < patience {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(node);
    let said = fs::read_to_string(said)?;
    let last = said.lines().count().saturating_sub(LINES_TOLD);
    let last: Vec<&str> = said.lines().skip(last).collect();
    done.with_context(|| format!("the node said at last:\n{}", last.join("\n")))?;
    ensure!(collector.is_none_or(|c| c.came() > 0), "no span came to the collector");
    let line = said.lines().find_map(|line| line.split_once("Collected :"));
    let (_, number) =
        line.with_context(|| format!("callgrind counted nothing:\n{}", last.join("\n")))?;
    number.trim().parse().with_context(|| format!("callgrind said {number:?}"))
}

/// Faces and routes of a configuration; nobody is at the other ends.
fn neighbours(faces: u32, routes: u32) -> String {
    let uri = |n: u32| format!("udp4://127.1.{}.{}:6363", n / 250, 1 + n % 250);
    let face = |n| format!("[[face]]\nuri = \"{}\"\n", uri(n));
    let route =
        |n| format!("[[route]]\nprefix = \"/site/{n}\"\nvia = \"{}\"\n", uri(n % faces.max(1)));
    (0..faces).map(face).chain((0..routes).map(route)).collect()
}

/// Waits until the node says in its log `said` that it is ready: its socket is there before its faces
/// and routes are, and nobody is answered meanwhile.
fn ready(said: &Path, patience: Duration) -> Result<()> {
    let (start, mut line) = (Instant::now(), String::new());
    let mut log = BufReader::new(fs::File::open(said)?);
    while line != "ready\n" {
        if line.ends_with('\n') {
            line.clear();
        }
        // Of a line that is not whole yet the rest is read later.
        if log.read_line(&mut line)? == 0 {
            ensure!(start.elapsed() < patience, "the node is not ready within {patience:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    Ok(())
}

/// Has the node at `socket` do the work.
fn carry(args: &InstructionsArgs, socket: &Path, work: Work, patience: Duration) -> Result<()> {
    let consumer = connect_unix(socket)?;
    let (start, prefix) = (Instant::now(), PREFIX.parse()?);
    // Events of all its faces go first.
    let producer = loop {
        match register(connect_unix(socket)?, &prefix) {
            Err(_) if start.elapsed() < patience => {}
            done => break done?,
        }
    };
    let mut ends = Ends::new(vec![consumer, producer])?;
    if args.asked {
        let name = format!("{PREFIX}/elsewhere").parse::<Name>()?;
        let (mut wire, lifetime_ms) = (Vec::new(), Some(3_600_000));
        let asked = InterestBuilder { can_be_prefix: true, ..InterestBuilder::new(name.as_ref()) };
        InterestBuilder { lifetime_ms, nonce: Some([1; 4]), ..asked }.write(&mut wire);
        ends.ends[0].push(&wire, None);
        take(&mut ends, 1, 1, |_| {})?;
    }
    let is_watched = !args.watched.is_empty() || args.polls > 0;
    let viewer = is_watched.then(|| Viewer::connect(socket, &args.watched));
    let mut viewer = viewer.transpose()?;
    let (mut interests, mut data) = (InterestTemplate::new(), DataTemplate::new(args.payload));
    for number in 0..work.rounds {
        // Often enough that no lease ends, and as often in each run.
        if let Some(viewer) = &mut viewer
            && number % work.rounds.div_ceil(watching::LOOKS) == 0
        {
            viewer.look()?;
        }
        for slot in 0..args.window {
            let interest = interests.write(Exchange { slot, number: number.into() });
            ends.ends[0].push(interest, None);
        }
        let mut asked = Vec::new();
        take(&mut ends, 1, args.window, |seen| {
            if let Seen::Interest(exchange, token) = seen {
                asked.push((exchange, token.to_vec()));
            }
        })?;
        for (exchange, token) in &asked {
            let (head, rest) = data.write(*exchange, token);
            ends.ends[1].push(head, Some(rest));
        }
        let mut answered = 0;
        take(&mut ends, 0, args.window, |seen| {
            answered += u32::from(
                matches!(seen, Seen::Data(exchange, _) if exchange.number == u64::from(number)),
            );
        })?;
        ensure!(answered == args.window, "{answered} of {} were answered", args.window);
    }
    if let Some(viewer) = &mut viewer {
        viewer.look()?;
        viewer.check(work.rounds, args.window)?;
        (0..work.polls).try_for_each(|_| viewer.poll())?;
    }
    Ok(())
}

/// Sends what is queued, and takes so many packets from face `from`.
fn take(ends: &mut Ends, from: usize, count: u32, mut each: impl FnMut(Seen<'_>)) -> Result<()> {
    let (start, mut came, mut frames) = (Instant::now(), 0, Vec::new());
    while came < count {
        ends.flush()?;
        ends.wait(Some(Instant::now() + Duration::from_millis(100)))?;
        ends.receive(from, &mut frames)?;
        for frame in frames.drain(..) {
            came += 1;
            each(see(&frame.bytes));
        }
        ensure!(start.elapsed() < PATIENCE, "{came} of {count} packets came");
    }
    Ok(())
}
