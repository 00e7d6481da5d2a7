//! `onym bench`: exchanges per second and round trips through a running node.

use crate::exit::{Exit, Failure};
use crate::human;
use crate::output::Context;
use crate::session;
use crate::stop::{self, Stop};
use clap::ValueEnum;
use onym_client::blocking::Client;
use onym_client::{Answer, ClientOptions, Event, Incoming, Request, RequestId, RouteOptions};
use onym_crypto::signer::write_digest_data;
use onym_wire::Name;
use onym_wire::data::DataBuilder;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Measure exchange rate and round trips through the node.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym bench
  onym bench --window 1 --size 8000
  onym bench --repeat 1000
  onym bench /example/bench --only producer &
  onym --node udp4://192.0.2.1 bench /example/bench --only consumer

A producer and a consumer in this process, each with a face of its own, exchange Interests and Data
through the node: names are distinct unless --repeat is given, Data are signed by digest. The result
is what these two and the node reach together; the CPU time of this process is printed, so that one
sees which side is the limit. `make bench` in the source compares forwarders with a leaner
generator.")]
pub(crate) struct Args {
    /// Prefix of the names.
    #[arg(default_value = "/onym-bench")]
    prefix: Name,
    /// Interests in flight.
    #[arg(short, long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4000))]
    window: u32,
    /// How long to measure, in seconds.
    #[arg(short, long, value_name = "S", default_value_t = 5.0)]
    seconds: f64,
    /// Octets of content.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(0..=8000))]
    size: u16,
    /// Ask for this many names in turn, so that the content store answers.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    repeat: Option<u64>,
    /// Run this side only, until stopped or for the time given; the other one runs elsewhere.
    #[arg(long, value_name = "SIDE")]
    only: Option<Side>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Side {
    /// Answers until stopped.
    Producer,
    /// Asks.
    Consumer,
}

/// What was measured.
#[derive(Debug, Serialize)]
struct Report {
    window: u32,
    size: u16,
    seconds: f64,
    exchanges: u64,
    exchanges_per_second: f64,
    goodput_bps: f64,
    timeouts: u64,
    nacks: u64,
    rtt_p50_ms: f64,
    rtt_p99_ms: f64,
    /// CPU seconds of this process, producer and consumer.
    client_cpu_s: f64,
}

/// Seconds before the measurement: tables warm up.
const WARM_UP: Duration = Duration::from_millis(300);
/// How long one Interest waits for its answer.
const LIFETIME: Duration = Duration::from_secs(1);
/// Round trips kept for the percentiles; later ones are not looked at.
const SAMPLES_MAX: usize = 4 << 20;

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    if args.only == Some(Side::Producer) {
        let mut client = producer(&args, cx)?;
        crate::output::tell(format_args!("onym: answering under {}", args.prefix));
        let every = Duration::from_millis(200);
        return client.run(every, &mut || stop.is_set(), &mut |_| {}).map_err(session::failure);
    }
    let over = Arc::new(AtomicBool::new(false));
    let mut thread = None;
    if args.only.is_none() {
        let mut client = producer(&args, cx)?;
        let over = Arc::clone(&over);
        thread = Some(std::thread::spawn(move || {
            let mut is_over = || over.load(Ordering::Relaxed);
            client.run(Duration::from_millis(50), &mut is_over, &mut |_| {})
        }));
    }
    let report = measure(&args, cx, &stop);
    over.store(true, Ordering::Relaxed);
    if let Some(thread) = thread {
        thread
            .join()
            .map_err(|_| anyhow::anyhow!("the producer's thread ended"))?
            .map_err(session::failure)?;
    }
    let report = report?;
    if report.exchanges == 0 {
        let what = format!("nothing under {} was answered", args.prefix);
        let next = format!("see `onym explain {}` for where the Interests go", args.prefix);
        return Err(Failure::new(Exit::NotFound, what).next(next).into());
    }
    cx.print(&report, text)
}

/// A client that answers every Interest under the prefix.
fn producer(args: &Args, cx: &Context) -> anyhow::Result<Client> {
    let options = ClientOptions { node: cx.node.clone(), ..ClientOptions::default() };
    let mut client = Client::open(options).map_err(session::failure)?;
    let content = vec![0xA5; usize::from(args.size)];
    let respond = move |incoming: &Incoming, out: &mut Vec<u8>| {
        let name = incoming.interest().name;
        let data = DataBuilder { freshness_ms: 10_000, ..DataBuilder::new(name, &content) };
        write_digest_data(&data, out);
        Answer::Written
    };
    client
        .respond(args.prefix.clone(), Box::new(respond))
        .map_err(|e| session::failure(e.into()))?;
    client.register(args.prefix.clone(), RouteOptions::default()).map_err(session::failure)?;
    Ok(client)
}

/// The consumer: a window of Interests, each answered one followed by another.
struct Consumer<'a> {
    args: &'a Args,
    client: Client,
    /// Names of an earlier run must not be found in a cache.
    run: u64,
    next: u64,
    sent: HashMap<RequestId, Instant>,
    exchanges: u64,
    octets: u64,
    timeouts: u64,
    nacks: u64,
    rtts: Vec<Duration>,
}

fn measure(args: &Args, cx: &Context, stop: &Stop) -> anyhow::Result<Report> {
    let run = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let mut consumer = Consumer {
        args,
        client: session::open(cx)?,
        run: u64::try_from(run.as_millis())?,
        next: 0,
        sent: HashMap::new(),
        exchanges: 0,
        octets: 0,
        timeouts: 0,
        nacks: 0,
        rtts: Vec::new(),
    };
    consumer.drive(WARM_UP, stop)?;
    (consumer.exchanges, consumer.octets, consumer.timeouts, consumer.nacks) = (0, 0, 0, 0);
    consumer.rtts.clear();
    let (start, cpu) = (Instant::now(), onym_sys::thread::process_cpu_time());
    consumer.drive(Duration::from_secs_f64(args.seconds.clamp(0.01, 86_400.0)), stop)?;
    let seconds = start.elapsed().as_secs_f64();
    let cpu = onym_sys::thread::process_cpu_time().saturating_sub(cpu).as_secs_f64();
    consumer.rtts.sort_unstable();
    let at = |share: usize| {
        let i = consumer.rtts.len().saturating_sub(1) * share / 100;
        consumer.rtts.get(i).map_or(0.0, |rtt| (rtt.as_secs_f64() * 1e6).round() / 1e3)
    };
    Ok(Report {
        window: args.window,
        size: args.size,
        seconds,
        exchanges: consumer.exchanges,
        exchanges_per_second: consumer.exchanges as f64 / seconds,
        goodput_bps: consumer.octets as f64 * 8.0 / seconds,
        timeouts: consumer.timeouts,
        nacks: consumer.nacks,
        rtt_p50_ms: at(50),
        rtt_p99_ms: at(99),
        client_cpu_s: cpu,
    })
}

impl Consumer<'_> {
    fn drive(&mut self, time: Duration, stop: &Stop) -> anyhow::Result<()> {
        let end = Instant::now() + time;
        while Instant::now() < end && !stop.is_set() {
            while self.sent.len() < self.args.window as usize {
                self.ask()?;
            }
            let soon = end.min(Instant::now() + Duration::from_millis(100));
            let mut event = self.client.step(soon).map_err(session::failure)?;
            while let Some(one) = event {
                self.take(one);
                event = self.client.endpoint().poll_event();
            }
        }
        Ok(())
    }

    fn ask(&mut self) -> anyhow::Result<()> {
        let number = self.args.repeat.map_or(self.next, |names| self.next % names);
        self.next += 1;
        let mut name = self.args.prefix.clone();
        name.append_generic(self.run.to_string());
        name.append_generic(number.to_string());
        let request = Request { lifetime: LIFETIME, ..Request::new(name) };
        let now = self.client.now();
        let id = self.client.endpoint().request(now, &request)?;
        self.sent.insert(id, Instant::now());
        Ok(())
    }

    fn take(&mut self, event: Event) {
        let Event::Answered(id, answer) = event else { return };
        let Some(sent) = self.sent.remove(&id) else { return };
        match answer {
            Ok(packet) => {
                self.exchanges += 1;
                self.octets += packet.data().content.len() as u64;
                if self.rtts.len() < SAMPLES_MAX {
                    self.rtts.push(sent.elapsed());
                }
            }
            Err(onym_client::Unanswered::Nack(_)) => self.nacks += 1,
            Err(_) => self.timeouts += 1,
        }
    }
}

fn text(r: &Report) -> String {
    format!(
        "{:.0} exchanges/s, {} of content ({} exchanges in {:.2} s, {} in flight, {} octets each)\n\
         rtt p50/p99 = {:.3}/{:.3} ms, {} timed out, {} nacked\n\
         cpu of this process: {:.2} s",
        r.exchanges_per_second,
        human::bits_per_second(r.goodput_bps),
        r.exchanges,
        r.seconds,
        r.window,
        r.size,
        r.rtt_p50_ms,
        r.rtt_p99_ms,
        r.timeouts,
        r.nacks,
        r.client_cpu_s,
    )
}
