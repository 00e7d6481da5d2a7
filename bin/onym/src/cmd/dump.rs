//! `onym dump`: the packets of a running node.

mod pcapng;

use crate::exit::{Exit, Failure};
use crate::output::{self, Context};
use crate::session;
use crate::stop::{self, Stop};
use anyhow::Context as _;
use clap::ValueEnum;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_crypto::{Entropy as _, SystemEntropy};
use onym_dissect::Record as Shown;
use onym_tables::FaceId;
use onym_watch::{Direction, Filter, Kind, Record, record};
use onym_wire::Name;
use pcapng::Writer;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often a node is asked that had nothing.
const EVERY: Duration = Duration::from_millis(200);

/// Show the packets of a running node as they come and go.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym dump                               every packet of every face, a line each
  onym dump --prefix /example -v          with every element
  onym dump --face 300 --kind nack
  onym dump --verdict no_route,pit_share  what was dropped, and why
  onym dump -w capture.pcapng             for Wireshark (packaging/wireshark)
  onym dump --json | jq .name

Shows packets at the node itself, so those of Unix sockets and shared memory, too: what came, with
its verdict (docs/verdicts.md), and what went, with `sent` or why it was not. Frames of the push half
are shown where they come in. What management itself sends and receives is left out. The node never
waits for this command: what it could not keep is counted and told.")]
pub(crate) struct Args {
    /// Packets of this face only.
    #[arg(long, value_name = "NUMBER")]
    face: Option<u32>,
    /// Packets with names under this prefix only.
    #[arg(long, value_name = "NAME")]
    prefix: Option<Name>,
    /// Packets of this kind only; may be given again.
    #[arg(long, value_name = "KIND")]
    kind: Vec<Wanted>,
    /// Packets in this direction only.
    #[arg(long, value_name = "DIRECTION")]
    direction: Option<Way>,
    /// Packets that ended so only; may be given again, or with commas.
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    verdict: Vec<String>,
    /// One of so many packets.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    sample: u32,
    /// Keep so many octets of each packet.
    #[arg(long, value_name = "OCTETS")]
    snap: Option<usize>,
    /// End after so many packets.
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// Write a capture to this file (pcapng), or to standard output with -, instead of text.
    #[arg(short, long, value_name = "FILE", conflicts_with = "verbose")]
    write: Option<PathBuf>,
    /// Show every element.
    #[arg(short, long)]
    verbose: bool,
    /// Replace names by others of the same shape, the same for the same, and empty contents.
    #[arg(long)]
    anonymous: bool,
}

/// Kinds as they are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Wanted {
    Interest,
    Data,
    Nack,
    Push,
    PushApp,
}

/// Directions as they are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Way {
    In,
    Out,
}

impl Args {
    fn filter(&self) -> anyhow::Result<Filter> {
        let kind = |wanted: &Wanted| match wanted {
            Wanted::Interest => Kind::Interest,
            Wanted::Data => Kind::Data,
            Wanted::Nack => Kind::Nack,
            Wanted::Push => Kind::Push,
            Wanted::PushApp => Kind::PushApp,
        };
        let mut filter = Filter {
            face: self.face.map(FaceId),
            prefix: self.prefix.clone(),
            kinds: self.kind.iter().map(kind).collect(),
            direction: self.direction.map(|way| match way {
                Way::In => Direction::In,
                Way::Out => Direction::Out,
            }),
            sample: self.sample,
            ..Filter::default()
        };
        if !self.verdict.is_empty() {
            let words = self.verdict.join(",");
            filter.set("verdict", &words).map_err(|e| Failure::new(Exit::Usage, e.to_string()))?;
        }
        if let Some(snap) = self.snap {
            let set = filter.set("snap", &snap.to_string());
            set.map_err(|e| Failure::new(Exit::Usage, e.to_string()))?;
        }
        Ok(filter)
    }
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let mut dump = Dump::open(cx, args.filter()?)?;
    let mut show = Show::new(&args, cx)?;
    let stop = stop::on_signal()?;
    let shown = follow(&mut dump, &mut show, &stop);
    let ended = if shown.is_ok() { dump.end() } else { Ok(()) };
    show.end();
    shown.and(ended)
}

fn follow(dump: &mut Dump, show: &mut Show<'_>, stop: &Stop) -> anyhow::Result<()> {
    // The first question begins it.
    dump.ask()?;
    output::tell("onym: watching; Ctrl-C ends it");
    while !stop.is_set() {
        let (records, missed) = dump.ask()?;
        let is_idle = records.is_empty();
        for record in records {
            let uri = dump.uri(record.face);
            if !show.record(record, uri)? {
                return Ok(());
            }
        }
        show.missed += missed;
        if missed > 0 {
            let what = crate::human::count(missed, "packet");
            output::tell(format_args!(
                "onym: {what} more than the node could keep for this command"
            ));
        }
        if is_idle {
            dump.rest(&|| stop.is_set())?;
        }
    }
    Ok(())
}

/// What asks the node for packets.
pub(crate) struct Dump {
    viewer: u64,
    filter: Filter,
    asked: u64,
    /// URIs of faces, asked for when a face is seen first.
    faces: HashMap<FaceId, String>,
    client: Client,
}

impl Dump {
    /// A viewer of packets that match `filter`; the first question begins it.
    pub(crate) fn open(cx: &Context, filter: Filter) -> anyhow::Result<Self> {
        let mut viewer = [0; 4];
        SystemEntropy.fill(&mut viewer);
        let viewer = u32::from_le_bytes(viewer).into();
        let client = session::open(cx)?;
        Ok(Self { viewer, filter, asked: 0, faces: HashMap::new(), client })
    }

    /// Waits a moment for packets, unless it is over.
    pub(crate) fn rest(&mut self, is_over: &dyn Fn() -> bool) -> anyhow::Result<()> {
        let until = Instant::now() + EVERY;
        let mut over = || is_over() || Instant::now() >= until;
        self.client.run(EVERY, &mut over, &mut |_| {}).map_err(session::failure)
    }

    /// What was kept since the last question.
    pub(crate) fn ask(&mut self) -> anyhow::Result<(Vec<Record>, u64)> {
        self.question(false)
    }

    /// The node's memory goes at once and not with the lease.
    pub(crate) fn end(&mut self) -> anyhow::Result<()> {
        self.question(true).map(drop)
    }

    fn question(&mut self, is_last: bool) -> anyhow::Result<(Vec<Record>, u64)> {
        self.asked += 1;
        let last = if is_last { "&last=1" } else { "" };
        let filter = self.filter.to_string();
        let question = format!("viewer={}&n={}{last}&{filter}", self.viewer, self.asked);
        let mut name: Name = "/localhost/onym/dump".parse().context("invariant: a name")?;
        name.append_generic(&question);
        let batch = mgmt::fetch_dataset(&mut self.client, name).map_err(session::failure)?;
        record::parse(&batch).context("the node's answer is not understood")
    }

    fn uri(&mut self, face: FaceId) -> Option<&str> {
        if !self.faces.contains_key(&face) {
            let filter = onym_wire::mgmt::FaceQueryFilter {
                face_id: Some(face.0.into()),
                ..Default::default()
            };
            let found = mgmt::faces_query(&mut self.client, &filter).ok();
            let uri = found.and_then(|faces| faces.into_iter().next()).map(|face| face.uri);
            self.faces.insert(face, uri.unwrap_or_default());
        }
        self.faces.get(&face).map(String::as_str)
    }
}

/// A packet as it is shown.
pub(crate) fn shown(record: Record) -> Shown {
    Shown {
        time_ns: Some(record.time_ns),
        interface: Some(format!("face {}", record.face.0)),
        direction: Some(match record.direction {
            Direction::In => onym_dissect::Direction::In,
            Direction::Out => onym_dissect::Direction::Out,
        }),
        comment: Some(record.outcome),
        missing: record.left_out,
        octets: record.frame,
        ..Shown::default()
    }
}

/// Where packets are shown.
struct Show<'a> {
    args: &'a Args,
    cx: &'a Context,
    capture: Option<Writer>,
    key: Option<[u8; 16]>,
    count: u64,
    missed: u64,
}

impl<'a> Show<'a> {
    fn new(args: &'a Args, cx: &'a Context) -> anyhow::Result<Self> {
        let key = args.anonymous.then(|| {
            let mut key = [0; 16];
            SystemEntropy.fill(&mut key);
            key
        });
        let capture = args.write.as_deref().map(Writer::create).transpose()?;
        Ok(Self { args, cx, capture, key, count: 0, missed: 0 })
    }

    /// Shows a packet; whether more are wanted.
    fn record(&mut self, mut record: Record, uri: Option<&str>) -> anyhow::Result<bool> {
        if let Some(key) = &self.key {
            onym_watch::hide(&mut record.frame, key);
        }
        if let Some(capture) = &mut self.capture {
            capture.packet(&record, uri)?;
        } else {
            self.print(record)?;
        }
        self.count += 1;
        Ok(self.args.count.is_none_or(|count| self.count < count))
    }

    fn print(&self, record: Record) -> anyhow::Result<()> {
        let shown = shown(record);
        self.cx.event(&shown.shown(), |_| {
            if !self.args.verbose {
                return shown.to_string();
            }
            let tree = shown.tree();
            let lines = tree.lines().map(|line| format!("\n  {line}"));
            lines.fold(shown.to_string(), |text, line| text + &line)
        })
    }

    /// Says how it was.
    fn end(&self) {
        let shown = crate::human::count(self.count, "packet");
        match self.missed {
            0 => output::tell(format_args!("onym: {shown}")),
            missed => output::tell(format_args!("onym: {shown}, and {missed} that were missed")),
        }
    }
}
