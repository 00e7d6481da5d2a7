//! `onym dissect`: octets and captures of others as packets.

use crate::exit::{Exit, Failure};
use crate::input::{self, Input};
use crate::output::{self, Context};
use crate::stop::{self, Stop};
use anyhow::Context as _;
use clap::ValueEnum;
use onym_dissect::{Dissector, Kind, Ports, Reader, Record, is_capture, octets};
use onym_wire::Name;
use std::io::Read as _;
use std::path::PathBuf;

/// Most octets of an input that is no capture.
const OCTETS_MAX: u64 = 64 << 20;

/// Show packets in octets, or in captures of others.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym dissect capture.pcapng
  onym dissect capture.pcap --prefix /example --kind nack
  onym dissect --hex 050507030801 41 -v
  tcpdump -w - udp port 6363 | onym dissect --json

Reads pcap and pcapng: UDP, TCP, WebSocket, Ethernet; fragments of NDNLPv2 are put together. Other
files hold packets one behind the other, as octets or as text in hexadecimal.")]
pub(crate) struct Args {
    /// A file; without one, or with -, standard input.
    file: Option<PathBuf>,
    /// Octets in hexadecimal instead of a file.
    #[arg(long, value_name = "OCTETS", num_args = 1.., conflicts_with = "file")]
    hex: Vec<String>,
    /// Show every element.
    #[arg(short, long)]
    verbose: bool,
    /// Show packets with names under this prefix only.
    #[arg(long, value_name = "NAME")]
    prefix: Option<Name>,
    /// Show packets of this kind only; may be given again.
    #[arg(long, value_name = "KIND")]
    kind: Vec<Wanted>,
    /// Another UDP and TCP port that carries packets; may be repeated.
    #[arg(long, value_name = "PORT")]
    port: Vec<u16>,
    /// Another port that carries WebSocket without TLS; may be repeated.
    #[arg(long, value_name = "PORT")]
    websocket_port: Vec<u16>,
}

/// Kinds as they are typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Wanted {
    Interest,
    Data,
    Nack,
    Fragment,
    Idle,
    Push,
    PushApp,
    Malformed,
}

impl From<Kind> for Wanted {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Interest => Self::Interest,
            Kind::Data => Self::Data,
            Kind::Nack => Self::Nack,
            Kind::Fragment => Self::Fragment,
            Kind::Idle => Self::Idle,
            Kind::Push => Self::Push,
            Kind::PushApp => Self::PushApp,
            Kind::Malformed => Self::Malformed,
        }
    }
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    if !args.hex.is_empty() {
        return all(&args, cx, &unhex(args.hex.concat().as_bytes())?);
    }
    let stop = stop::on_signal()?;
    let mut file = Input::open(args.file.as_deref(), &stop)?;
    let mut start = Vec::new();
    read(&mut file, 4, &mut start, &stop)?;
    if is_capture(&start) {
        return capture(&args, cx, start, file, &stop);
    }
    start.extend(file.whole(OCTETS_MAX)?);
    let is_hex = |octet: &u8| octet.is_ascii_hexdigit() || octet.is_ascii_whitespace();
    let octets = if start.iter().all(is_hex) { unhex(&start)? } else { start };
    all(&args, cx, &octets)
}

/// Reads until `octets` has `len`, or the input ends.
fn read(file: &mut Input, len: u64, octets: &mut Vec<u8>, stop: &Stop) -> anyhow::Result<()> {
    let read = file.take(len).read_to_end(octets);
    if stop.is_set() {
        return Err(input::stopped().into());
    }
    read.map(drop).context("cannot read the input")
}

fn unhex(text: &[u8]) -> anyhow::Result<Vec<u8>> {
    let digits: Vec<u8> = text.iter().copied().filter(|c| !c.is_ascii_whitespace()).collect();
    let wrong = || {
        let what = "the input is not hexadecimal";
        Failure::new(Exit::Usage, what).next("write two digits per octet, as in 050507030801")
    };
    let (pairs, []) = digits.as_chunks::<2>() else { return Err(wrong().into()) };
    let digit = |c: u8| char::from(c).to_digit(16).and_then(|n| u8::try_from(n).ok());
    let octets = pairs.iter().map(|[a, b]| Some(digit(*a)? << 4 | digit(*b)?));
    octets.collect::<Option<Vec<u8>>>().ok_or_else(|| wrong().into())
}

fn all(args: &Args, cx: &Context, input: &[u8]) -> anyhow::Result<()> {
    if input.is_empty() {
        return Err(Failure::new(Exit::Failed, "the input is empty").into());
    }
    octets(input).iter().try_for_each(|record| show(args, cx, record))
}

fn capture(
    args: &Args,
    cx: &Context,
    start: Vec<u8>,
    mut file: Input,
    stop: &Stop,
) -> anyhow::Result<()> {
    let mut ports = Ports::default();
    ports.packets.extend(&args.port);
    ports.websocket.extend(&args.websocket_port);
    let (mut reader, mut dissector) = (Reader::default(), Dissector::new(ports));
    reader.feed(&start);
    let mut piece = vec![0; 64 << 10];
    let ended = loop {
        let found = loop {
            match reader.next_frame() {
                Ok(Some(frame)) => {
                    dissector.frame(&frame).iter().try_for_each(|record| show(args, cx, record))?;
                }
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if found.is_err() {
            break found;
        }
        let len = file.read(&mut piece);
        if stop.is_set() {
            break Ok(());
        }
        match len.context("cannot read the input")? {
            0 => break reader.end(),
            len => reader.feed(piece.get(..len).unwrap_or_default()),
        }
    };
    let passed = dissector.passed();
    if passed.others > 0 {
        output::tell(format_args!("{} frames carry other things", passed.others));
    }
    if passed.lost > 0 {
        output::tell(format_args!("{} times a stream could not be followed", passed.lost));
    }
    ended.map_err(|error| {
        let next = "packets before the error are shown above";
        Failure::new(Exit::Failed, "the capture cannot be read to its end")
            .why(error)
            .next(next)
            .into()
    })
}

fn show(args: &Args, cx: &Context, record: &Record) -> anyhow::Result<()> {
    if args.prefix.as_ref().is_some_and(|prefix| !record.is_under(prefix.as_ref())) {
        return Ok(());
    }
    let shown = record.shown();
    if !args.kind.is_empty() && !args.kind.contains(&shown.kind.into()) {
        return Ok(());
    }
    cx.event(&shown, |_| {
        if !args.verbose {
            return record.to_string();
        }
        let tree = record.tree();
        let lines = tree.lines().map(|line| format!("\n  {line}"));
        lines.fold(record.to_string(), |text, line| text + &line)
    })
}
