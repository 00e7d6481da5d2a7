//! `onym ping`: round trips to a prefix, with the names of ndnping or of RFC 9508.

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::session;
use crate::stop;
use onym_client::{Error, Request, Unanswered};
use onym_crypto::{Entropy as _, SystemEntropy};
use onym_wire::Name;
use onym_wire::trace::{self, Kind, Reply};
use serde::Serialize;
use std::time::{Duration, Instant};

/// Measure round trips to a prefix.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym ping-server /example &
  onym ping /example -c 4
  onym ping /ndn/edu/example -i 100 --json
  onym ping --echo /example -c 1

Asks for /PREFIX/ping[/CLIENT]/SEQUENCE, as ndnping does; ndnpingserver, ndnd pingserver and
`onym ping-server` answer. With --echo it asks for /PREFIX/NONCE/32=ping, and says who replied.
Exit code 0 when every ping was answered, else 5.")]
pub(crate) struct Args {
    /// Prefix of the server.
    prefix: Name,
    /// Number of pings; without it until stopped.
    #[arg(short, long, value_name = "N")]
    count: Option<u64>,
    /// Time between two pings, in milliseconds.
    #[arg(short, long, value_name = "MS", default_value_t = 1000)]
    interval: u64,
    /// How long to wait for an answer, in milliseconds.
    #[arg(short = 'o', long, value_name = "MS", default_value_t = 4000)]
    timeout: u64,
    /// First sequence number; without it a random one.
    #[arg(short = 'n', long, value_name = "N")]
    start: Option<u64>,
    /// A component before the sequence number that tells clients apart.
    #[arg(short = 'p', long, value_name = "TEXT")]
    client: Option<String>,
    /// Let caches answer (no MustBeFresh).
    #[arg(short = 'a', long)]
    allow_stale: bool,
    /// Send echo requests of RFC 9508.
    #[arg(short, long, conflicts_with_all = ["client", "allow_stale"])]
    echo: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Answered {
        prefix: String,
        sequence: u64,
        rtt_ms: f64,
        /// Who replied to an echo request, and its code.
        #[serde(skip_serializing_if = "Option::is_none")]
        sender: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        code: Option<u16>,
    },
    Nack {
        prefix: String,
        sequence: u64,
        reason: String,
    },
    Timeout {
        prefix: String,
        sequence: u64,
    },
    Summary {
        sent: u64,
        answered: u64,
        nacks: u64,
        timeouts: u64,
        rtt_ms: Option<Spread>,
    },
}

/// Round trips in numbers, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
struct Spread {
    min: f64,
    mean: f64,
    max: f64,
    deviation: f64,
}

/// Milliseconds, to the microsecond.
fn ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let mut client = session::open(cx)?;
    let mut sequence = args.start.unwrap_or_else(random);
    let mut tally = Tally::default();
    let interval = Duration::from_millis(args.interval);
    let mut next = Instant::now();
    while !stop.is_set() && args.count.is_none_or(|count| tally.sent < count) {
        let line = ping(&mut client, &args, sequence)?;
        tally.note(&line);
        cx.event(&line, text)?;
        sequence = sequence.wrapping_add(1);
        next = (next + interval).max(Instant::now());
        if args.count.is_none_or(|count| tally.sent < count) {
            let mut over = || stop.is_set() || Instant::now() >= next;
            let pause = interval.min(Duration::from_millis(50));
            client.run(pause, &mut over, &mut |_| {}).map_err(session::failure)?;
        }
    }
    cx.event(&tally.summary(), text)?;
    if tally.rtts.len() as u64 == tally.sent {
        return Ok(());
    }
    let lost = tally.sent - tally.rtts.len() as u64;
    Err(Failure::new(Exit::NotFound, format!("{lost} of {} pings were not answered", tally.sent))
        .next("see `onym explain NAME` for where they went")
        .into())
}

fn ping(
    client: &mut onym_client::blocking::Client,
    args: &Args,
    sequence: u64,
) -> anyhow::Result<Line> {
    let name = if args.echo {
        let mut nonce = [0; 4];
        SystemEntropy.fill(&mut nonce);
        trace::request(Kind::Echo, &args.prefix, nonce)
    } else {
        let mut name = args.prefix.clone();
        name.append_generic("ping");
        if let Some(client) = &args.client {
            name.append_generic(client);
        }
        name.append_generic(sequence.to_string());
        name
    };
    let request = Request {
        must_be_fresh: !args.allow_stale,
        lifetime: Duration::from_millis(args.timeout),
        ..Request::new(name)
    };
    let prefix = args.prefix.to_string();
    let start = Instant::now();
    match client.request(&request) {
        Ok(packet) => {
            let rtt_ms = ms(start.elapsed());
            let reply = args.echo.then(|| Reply::parse(packet.data().content).ok()).flatten();
            let (sender, code) = reply.map(|r| (r.sender.to_string(), r.code)).unzip();
            Ok(Line::Answered { prefix, sequence, rtt_ms, sender, code })
        }
        Err(Error::Unanswered { why: Unanswered::Timeout, .. }) => {
            Ok(Line::Timeout { prefix, sequence })
        }
        Err(Error::Unanswered { why: Unanswered::Nack(reason), .. }) => {
            Ok(Line::Nack { prefix, sequence, reason: reason.to_string() })
        }
        Err(error) => Err(session::failure(error)),
    }
}

fn random() -> u64 {
    let mut octets = [0; 8];
    SystemEntropy.fill(&mut octets);
    u64::from_be_bytes(octets)
}

#[derive(Debug, Default)]
struct Tally {
    sent: u64,
    nacks: u64,
    timeouts: u64,
    rtts: Vec<f64>,
}

impl Tally {
    fn note(&mut self, line: &Line) {
        self.sent += 1;
        match line {
            Line::Answered { rtt_ms, .. } => self.rtts.push(*rtt_ms),
            Line::Nack { .. } => self.nacks += 1,
            _ => self.timeouts += 1,
        }
    }

    fn summary(&self) -> Line {
        let n = self.rtts.len() as f64;
        let rtt_ms = (!self.rtts.is_empty()).then(|| {
            let mean = self.rtts.iter().sum::<f64>() / n;
            let square = self.rtts.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / n;
            let to_us = |ms: f64| (ms * 1e3).round() / 1e3;
            Spread {
                min: self.rtts.iter().copied().fold(f64::INFINITY, f64::min),
                mean: to_us(mean),
                max: self.rtts.iter().copied().fold(0.0, f64::max),
                deviation: to_us(square.sqrt()),
            }
        });
        Line::Summary {
            sent: self.sent,
            answered: self.rtts.len() as u64,
            nacks: self.nacks,
            timeouts: self.timeouts,
            rtt_ms,
        }
    }
}

fn text(line: &Line) -> String {
    match line {
        Line::Answered { prefix, sequence, rtt_ms, sender, code } => {
            let mut text = format!("content from {prefix}: seq={sequence} time={rtt_ms:.3} ms");
            if let (Some(sender), Some(code)) = (sender, code) {
                text += &format!(" sender={sender} code={code} ({})", trace::meaning(*code));
            }
            text
        }
        Line::Nack { prefix, sequence, reason } => {
            format!("nack from {prefix}: seq={sequence} reason={reason}")
        }
        Line::Timeout { prefix, sequence } => format!("timeout from {prefix}: seq={sequence}"),
        Line::Summary { sent, answered, nacks, timeouts, rtt_ms } => {
            let lost =
                if *sent == 0 { 0.0 } else { (sent - answered) as f64 * 100.0 / *sent as f64 };
            let mut text = format!(
                "{sent} packets transmitted, {answered} received, {nacks} nacked, {timeouts} timed out, {lost:.1}% lost"
            );
            if let Some(Spread { min, mean, max, deviation }) = rtt_ms {
                text += &format!(
                    "\nrtt min/avg/max/mdev = {min:.3}/{mean:.3}/{max:.3}/{deviation:.3} ms"
                );
            }
            text
        }
    }
}
