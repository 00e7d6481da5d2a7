//! The load generator: a consumer with a fixed window and a producer, each on its own face, in one
//! thread.

use crate::link::{Ends, connect_shm, open, register};
use crate::packets::{DataTemplate, Exchange, InterestTemplate, PREFIX, Seen, see};
use crate::proc;
use crate::signed::SignedSet;
use anyhow::{Result, ensure};
use clap::{Args, ValueEnum};
use onym_crypto::{PrivateKey, Signer};
use onym_face::Face;
use onym_face::wrap::{FaultFace, Faults, Impairment};
use onym_frame::RxFrame;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Which names are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Names {
    /// Each once.
    Distinct,
    /// A small set again and again, so that a cache answers.
    Repeated,
    /// Both: of each hundred, `--hits` of a small set.
    Mixed,
}

/// The load generator.
#[derive(Debug, Args)]
pub struct LoadArgs {
    /// Unix socket of the consumer's node, or tcp4://address.
    #[arg(long)]
    pub consumer: PathBuf,
    /// Unix socket of the producer's node, tcp4://address, or listen:tcp4://address.
    #[arg(long)]
    pub producer: PathBuf,
    /// Octets of content.
    #[arg(long, default_value_t = 100)]
    pub payload: usize,
    /// Interests in flight.
    #[arg(long, default_value_t = 64)]
    pub window: u32,
    /// Seconds that are measured.
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Seconds before that.
    #[arg(long, default_value_t = 0.5)]
    pub warm_up: f64,
    /// Most exchanges per second; 0 for as many as possible.
    #[arg(long, default_value_t = 0)]
    pub rate: u32,
    /// Which names.
    #[arg(long, value_enum, default_value = "distinct")]
    pub names: Names,
    /// Number of the first slot: two generators with slots of their own answer only what they ask.
    #[arg(long, default_value_t = 0)]
    pub first_slot: u32,
    /// Names in that set; about so many.
    #[arg(long, default_value_t = REPEATED_NAMES)]
    pub set: u64,
    /// With mixed names, percent of the set.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(0..=100))]
    pub hits: u64,
    /// PKCS #8 file of the key that signs; only for repeated names, which are signed beforehand.
    #[arg(long)]
    pub key: Option<PathBuf>,
    /// Exchange packets with the nodes by shared memory, negotiated on those sockets.
    #[arg(long)]
    pub shm: bool,
    /// Milliseconds that each Data travels before it leaves the producer.
    #[arg(long, default_value_t = 0)]
    pub delay_ms: u64,
    /// Do not register a prefix (for a relay).
    #[arg(long)]
    pub no_register: bool,
    /// Core to run on.
    #[arg(long)]
    pub core: Option<usize>,
    /// Processes whose CPU time and memory are reported.
    #[arg(long)]
    pub watch: Vec<u32>,
}

/// What one run measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct LoadResult {
    /// Exchanges completed.
    pub exchanges: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Octets of content received.
    pub content_octets: u64,
    /// Interests without an answer within the timeout.
    pub lost: u64,
    /// Nacks received.
    pub nacks: u64,
    /// Median round trip, in seconds.
    pub latency_p50_s: f64,
    /// 99th percentile of the round trip, in seconds.
    pub latency_p99_s: f64,
    /// CPU seconds of the generator.
    pub own_cpu_s: f64,
    /// CPU seconds of each watched process.
    pub cpu_s: Vec<f64>,
    /// Resident memory of each watched process at the end, in octets.
    pub rss: Vec<u64>,
}

/// After this long an Interest counts as lost.
const TIMEOUT: Duration = Duration::from_millis(1000);
/// Time until the first questions are asked again, doubled each time, and until they must have
/// been answered.
const ASK_AGAIN: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(10);
/// How often timeouts are looked for.
const CHECK_EVERY: Duration = Duration::from_millis(100);
/// Name of the key of signed Data.
pub const SIGNER: &str = "/onym/bench/KEY/1";
/// One of this many slots has its round trips measured.
const SAMPLED: u32 = 8;
/// Names that are repeated, spread over the slots.
const REPEATED_NAMES: u64 = 8192;

/// One place of the window.
#[derive(Debug, Clone, Copy)]
struct Slot {
    number: u64,
    /// When it was sent; exact for sampled slots, of the last check for others.
    sent: Instant,
    is_waiting: bool,
}

/// The running generator.
struct Load<'a> {
    args: &'a LoadArgs,
    ends: Ends,
    interests: InterestTemplate,
    data: DataTemplate,
    signed: Option<SignedSet>,
    slots: Vec<Slot>,
    repeated: u64,
    now: Instant,
    result: LoadResult,
    round_trips: Vec<Duration>,
    /// When the next Interest may leave, with a limited rate.
    next_send: Instant,
}

const CONSUMER: usize = 0;
const PRODUCER: usize = 1;

/// Runs and returns what was measured.
///
/// # Errors
/// When a node does not answer or closes a face.
pub fn run(args: &LoadArgs) -> Result<LoadResult> {
    if let Some(core) = args.core {
        onym_sys::thread::pin_to_core(core)?;
    }
    let connect = if args.shm { connect_shm } else { open };
    let (consumer, producer) = (connect(&args.consumer)?, connect(&args.producer)?);
    let producer = if args.no_register { producer } else { register(producer, &PREFIX.parse()?)? };
    let producer = if args.delay_ms == 0 { producer } else { far(producer, args.delay_ms)? };
    let repeated = (args.set / u64::from(args.window)).max(2);
    let signed = args.key.as_deref().map(|key| signed_set(args, repeated, key)).transpose()?;
    let now = Instant::now();
    let slot = Slot { number: 0, sent: now, is_waiting: false };
    let mut load = Load {
        args,
        ends: Ends::new(vec![consumer, producer])?,
        interests: InterestTemplate::new(),
        data: DataTemplate::new(args.payload),
        signed,
        slots: vec![slot; args.window as usize],
        repeated,
        now,
        result: LoadResult::default(),
        round_trips: Vec::with_capacity(1 << 20),
        next_send: now,
    };
    load.first_answer()?;
    load.drive(Duration::from_secs_f64(args.warm_up))?;
    load.measure()
}

/// Data signed with the key in `file`, for all names that will be asked for.
fn signed_set(args: &LoadArgs, per_slot: u64, file: &Path) -> Result<SignedSet> {
    ensure!(args.names == Names::Repeated, "--key needs --names repeated");
    ensure!(args.first_slot == 0, "--key goes with the first slots only");
    let key = PrivateKey::from_pkcs8(&std::fs::read(file)?)?;
    let signer = Signer::key(key, SIGNER.parse()?);
    SignedSet::new(args.payload, args.window, per_slot, &signer)
}

/// The same face over a long way.
fn far(face: Box<dyn Face>, delay_ms: u64) -> Result<Box<dyn Face>> {
    let outgoing = Impairment { delay: Duration::from_millis(delay_ms), ..Impairment::default() };
    Ok(Box::new(FaultFace::new(face, &Faults { outgoing, ..Faults::default() })?))
}

impl Load<'_> {
    fn measure(mut self) -> Result<LoadResult> {
        let cpu = |pids: &[u32]| pids.iter().map(|&pid| proc::cpu_seconds(pid)).collect();
        let (nodes, own): (Result<Vec<f64>>, _) =
            (cpu(&self.args.watch), onym_sys::thread::process_cpu_time());
        self.result = LoadResult::default();
        self.round_trips.clear();
        let start = Instant::now();
        self.drive(Duration::from_secs_f64(self.args.seconds))?;
        self.result.seconds = start.elapsed().as_secs_f64();
        let after: Result<Vec<f64>> = cpu(&self.args.watch);
        self.result.cpu_s = after?.iter().zip(nodes?).map(|(b, a)| b - a).collect();
        self.result.own_cpu_s =
            (onym_sys::thread::process_cpu_time().saturating_sub(own)).as_secs_f64();
        let rss: Result<Vec<u64>> =
            self.args.watch.iter().map(|&pid| proc::resident_octets(pid)).collect();
        self.result.rss = rss?;
        self.round_trips.sort_unstable();
        let at = |share: usize| {
            let i = (self.round_trips.len() * share / 100).min(self.round_trips.len().max(1) - 1);
            self.round_trips.get(i).map_or(0.0, Duration::as_secs_f64)
        };
        (self.result.latency_p50_s, self.result.latency_p99_s) = (at(50), at(99));
        Ok(self.result)
    }

    /// Asks until something is answered: who stands between may take our connections late, and
    /// drops what comes before.
    fn first_answer(&mut self) -> Result<()> {
        let start = Instant::now();
        let mut wait = ASK_AGAIN;
        while self.result.exchanges == 0 {
            ensure!(start.elapsed() < PATIENCE, "nothing was answered within {PATIENCE:?}");
            self.slots.iter_mut().for_each(|slot| slot.is_waiting = false);
            self.drive(wait)?;
            wait *= 2;
        }
        Ok(())
    }

    fn drive(&mut self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        let mut frames = Vec::new();
        let mut check = Instant::now();
        self.now = check;
        self.fill();
        self.ends.flush()?;
        loop {
            let wake = if self.args.rate > 0 { self.next_send } else { end };
            self.ends.wait(Some(wake.min(end).min(check)))?;
            self.now = Instant::now();
            if self.now >= end {
                return Ok(());
            }
            if self.now >= check {
                self.give_up_lost();
                check = self.now + CHECK_EVERY;
            }
            self.ends.receive(PRODUCER, &mut frames)?;
            self.produce(&mut frames);
            self.ends.receive(CONSUMER, &mut frames)?;
            self.consume(&mut frames);
            if self.args.rate > 0 {
                self.fill();
            }
            self.ends.flush()?;
        }
    }

    /// Answers Interests.
    fn produce(&mut self, frames: &mut Vec<RxFrame>) {
        let end = &mut self.ends.ends[PRODUCER];
        for frame in frames.drain(..) {
            if let Seen::Interest(exchange, token) = see(&frame.bytes)
                && exchange.slot.wrapping_sub(self.args.first_slot) < self.args.window
            {
                let parts = match &mut self.signed {
                    Some(set) => set.write(exchange, token),
                    None => Some(self.data.write(exchange, token)),
                };
                if let Some((head, rest)) = parts {
                    end.push(head, Some(rest));
                }
            }
        }
    }

    /// Takes Data and asks for more.
    fn consume(&mut self, frames: &mut Vec<RxFrame>) {
        for frame in frames.drain(..) {
            let mut exchange = match see(&frame.bytes) {
                Seen::Data(exchange, _) => exchange,
                Seen::Nack(exchange) => {
                    self.result.nacks += 1;
                    exchange
                }
                _ => continue,
            };
            exchange.slot = exchange.slot.wrapping_sub(self.args.first_slot);
            let Some(slot) = self.slots.get_mut(exchange.slot as usize) else { continue };
            if !slot.is_waiting || self.number(exchange.slot) != exchange.number {
                continue;
            }
            let slot = &mut self.slots[exchange.slot as usize];
            slot.is_waiting = false;
            self.result.exchanges += 1;
            self.result.content_octets += self.args.payload as u64;
            if exchange.slot.is_multiple_of(SAMPLED) {
                self.round_trips.push(slot.sent.elapsed());
            }
            if self.args.rate == 0 {
                self.send(exchange.slot);
            }
        }
    }

    /// The number in the name that a slot asks for.
    fn number(&self, slot: u32) -> u64 {
        let number = self.slots[slot as usize].number;
        let from_set = match self.args.names {
            Names::Distinct => false,
            Names::Repeated => true,
            // The slots are out of step, so that hits come evenly.
            Names::Mixed => (number * 37 + u64::from(slot) * 11) % 100 < self.args.hits,
        };
        if from_set {
            return number % self.repeated;
        }
        // Away from the numbers of the set.
        if self.args.names == Names::Mixed { number | 1 << 40 } else { number }
    }

    fn send(&mut self, slot: u32) {
        let place = &mut self.slots[slot as usize];
        place.number += 1;
        place.is_waiting = true;
        place.sent = if slot.is_multiple_of(SAMPLED) { Instant::now() } else { self.now };
        let exchange = Exchange { slot: slot + self.args.first_slot, number: self.number(slot) };
        let interest = self.interests.write(exchange);
        self.ends.ends[CONSUMER].push(interest, None);
    }

    /// Sends from every free slot, as far as the rate allows.
    fn fill(&mut self) {
        for slot in 0..self.args.window {
            if self.slots[slot as usize].is_waiting {
                continue;
            }
            if self.args.rate > 0 {
                if self.next_send > self.now {
                    return;
                }
                self.next_send += Duration::from_secs(1) / self.args.rate;
            }
            self.send(slot);
        }
    }

    fn give_up_lost(&mut self) {
        for slot in 0..self.args.window {
            let place = &mut self.slots[slot as usize];
            if place.is_waiting && self.now.saturating_duration_since(place.sent) > TIMEOUT {
                place.is_waiting = false;
                self.result.lost += 1;
                if self.args.rate == 0 {
                    self.send(slot);
                }
            }
        }
    }
}
