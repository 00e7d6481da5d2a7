//! What a publisher and a subscriber of any subject do; programs of `bench/rivals` have it, too.

use super::latency::{Histogram, now_ns};
use crate::part::say;
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// First word of publications that end a run, and of those before it; others count from 0.
const END: u64 = u64::MAX;
const PROBE: u64 = u64::MAX - 1;
/// Time between two of those.
const AGAIN: Duration = Duration::from_millis(20);
/// Time without a publication after which a subscriber takes the run for ended.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// Octets of a publication that has its time behind its number.
pub(super) const STAMPED_LEN: usize = 16;

/// Publications between two looks at the clock, where there is a rate.
const PORTION: u64 = 32;

/// What a side of any subject is told.
#[derive(Debug, Clone, Args)]
pub struct SideArgs {
    /// Octets of a publication.
    #[arg(long)]
    pub payload: usize,
    /// How long to publish.
    #[arg(long, default_value_t = 0.0)]
    pub seconds: f64,
    /// Publications in a second at most.
    #[arg(long)]
    pub rate: Option<u32>,
    /// Publications say when they were due.
    #[arg(long)]
    pub stamp: bool,
}

/// What a side says at its end.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct PartResult {
    /// Publications sent or received.
    pub count: u64,
    /// Publications that a subscriber was told it missed.
    pub told: u64,
    /// Seconds from the first to the last.
    pub seconds: f64,
    /// How long they were under way, where they say since when.
    #[serde(default)]
    pub latency: Histogram,
}

/// Publishes probes until it is told to begin, then as much as it is let, or as it is to, then what
/// ends the run until this process is ended. `put` hands one publication over, `pause` hands over
/// what was held back and waits so long.
pub(super) fn publish<T>(
    args: &SideArgs,
    to: &mut T,
    mut put: impl FnMut(&mut T, &[u8]) -> Result<()>,
    mut pause: impl FnMut(&mut T, Duration) -> Result<()>,
) -> Result<PartResult> {
    let least = if args.stamp { STAMPED_LEN } else { 8 };
    ensure!(args.payload >= least, "a publication has at least {least} octets");
    let mut octets = vec![7_u8; args.payload];
    let mut send = |to: &mut T, number: u64, stamp: Option<u64>| {
        octets[..8].copy_from_slice(&number.to_le_bytes());
        if let Some(stamp) = stamp {
            octets[8..STAMPED_LEN].copy_from_slice(&stamp.to_le_bytes());
        }
        put(to, &octets)
    };
    let go = told_to_go();
    say("open")?;
    while !go.load(Ordering::Relaxed) {
        send(to, PROBE, None)?;
        pause(to, AGAIN)?;
    }
    let result = match args.rate.filter(|_| args.stamp) {
        Some(rate) => stamped(args.seconds, rate, to, &mut send, &mut pause)?,
        None => unstamped(args, to, &mut send, &mut pause)?,
    };
    say(&serde_json::to_string(&result)?)?;
    loop {
        send(to, END, None)?;
        pause(to, AGAIN * 5)?;
    }
}

type Send<'a, T> = dyn FnMut(&mut T, u64, Option<u64>) -> Result<()> + 'a;
type Pause<'a, T> = dyn FnMut(&mut T, Duration) -> Result<()> + 'a;

fn unstamped<T>(
    args: &SideArgs,
    to: &mut T,
    send: &mut Send<'_, T>,
    pause: &mut Pause<'_, T>,
) -> Result<PartResult> {
    let (mut count, began) = (0_u64, Instant::now());
    // The clock is asked now and then.
    while !count.is_multiple_of(64) || began.elapsed().as_secs_f64() < args.seconds {
        send(to, count, None)?;
        count += 1;
        if let Some(rate) = args.rate.filter(|_| count.is_multiple_of(PORTION)) {
            let due = Duration::from_secs_f64(count as f64 / f64::from(rate));
            if let Some(early) = due.checked_sub(began.elapsed()) {
                pause(to, early)?;
            }
        }
    }
    Ok(PartResult { count, seconds: began.elapsed().as_secs_f64(), ..PartResult::default() })
}

/// Publishes each publication when it is due, with the time since when it counts: when it was due,
/// however long those before it took to hand over, or when this process woke up for it, as what the
/// machine oversleeps is nobody's latency.
fn stamped<T>(
    seconds: f64,
    rate: u32,
    to: &mut T,
    send: &mut Send<'_, T>,
    pause: &mut Pause<'_, T>,
) -> Result<PartResult> {
    let began = now_ns();
    let due = |number: u64| began + (number as f64 * 1e9 / f64::from(rate)) as u64;
    let end = began + (seconds * 1e9) as u64;
    let (mut count, mut woke, mut now) = (0_u64, began, began);
    while due(count) < end {
        if let Some(early) = due(count).checked_sub(now).filter(|early| *early > 0) {
            pause(to, Duration::from_nanos(early))?;
            woke = now_ns();
            now = woke;
            continue;
        }
        send(to, count, Some(due(count).max(woke)))?;
        count += 1;
        if due(count) > now {
            now = now_ns();
        }
    }
    pause(to, Duration::ZERO)?;
    let seconds = (now_ns() - began) as f64 / 1e9;
    Ok(PartResult { count, seconds, ..PartResult::default() })
}

/// Turns true when a line comes over standard input.
fn told_to_go() -> Arc<AtomicBool> {
    let go = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&go);
    std::thread::spawn(move || {
        // Without a line its end says the same.
        let _ = std::io::stdin().read_line(&mut String::new());
        told.store(true, Ordering::Relaxed);
    });
    go
}

/// What a subscriber has seen.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) result: PartResult,
    next: u64,
    began: Option<Instant>,
    last: Option<Instant>,
    is_ready: bool,
    pub(super) is_ended: bool,
    is_stamped: bool,
    latency: Histogram,
}

impl Seen {
    pub(super) fn new(args: &SideArgs) -> Self {
        Self { is_stamped: args.stamp, ..Self::default() }
    }

    /// Takes a publication of which `length` octets are wanted; whether it was the last one.
    pub(super) fn take(&mut self, octets: &[u8], length: usize) -> Result<bool> {
        ensure!(octets.len() == length, "{} octets came, not {length}", octets.len());
        let first = octets.first_chunk().context("a publication has at least 8 octets")?;
        match u64::from_le_bytes(*first) {
            END => return Ok(true),
            PROBE if self.is_ready => {}
            PROBE => {
                self.is_ready = true;
                say("ready")?;
            }
            number => {
                ensure!(number >= self.next, "publication {number} comes late or twice");
                self.next = number + 1;
                self.result.count += 1;
                if self.is_stamped {
                    let stamp = octets.get(8..STAMPED_LEN).and_then(<[u8]>::first_chunk);
                    let stamp = stamp.context("a publication without its time")?;
                    self.latency.add(now_ns().saturating_sub(u64::from_le_bytes(*stamp)));
                }
                if self.began.is_none() {
                    self.began = Some(Instant::now());
                }
                if self.result.count.is_multiple_of(64) {
                    self.last = Some(Instant::now());
                }
            }
        }
        Ok(false)
    }

    pub(super) fn result(self) -> PartResult {
        let seconds = match (self.began, self.last) {
            (Some(began), Some(last)) => (last - began).as_secs_f64(),
            _ => 0.0,
        };
        PartResult { seconds, latency: self.latency, ..self.result }
    }
}
