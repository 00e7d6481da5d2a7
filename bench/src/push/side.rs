//! What a publisher and a subscriber of any subject do.

use super::{PartResult, PushPartArgs};
use crate::part::say;
use anyhow::{Context, Result, ensure};
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

/// Publications between two looks at the clock, where there is a rate.
const PORTION: u64 = 32;

/// Publishes probes until it is told to begin, then as much as it is let, then what ends the run
/// until this process is ended. `put` hands one publication over, `pause` hands over what was held
/// back and waits so long.
pub(super) fn publish<T>(
    args: &PushPartArgs,
    to: &mut T,
    mut put: impl FnMut(&mut T, &[u8]) -> Result<()>,
    mut pause: impl FnMut(&mut T, Duration) -> Result<()>,
) -> Result<PartResult> {
    ensure!(args.payload >= 8, "a publication has at least 8 octets");
    let mut octets = vec![7_u8; args.payload];
    let mut send = |to: &mut T, number: u64| {
        octets[..8].copy_from_slice(&number.to_le_bytes());
        put(to, &octets)
    };
    let go = told_to_go();
    say("open")?;
    while !go.load(Ordering::Relaxed) {
        send(to, PROBE)?;
        pause(to, AGAIN)?;
    }
    let (mut count, began) = (0_u64, Instant::now());
    // The clock is asked now and then.
    while !count.is_multiple_of(64) || began.elapsed().as_secs_f64() < args.seconds {
        send(to, count)?;
        count += 1;
        if let Some(rate) = args.rate.filter(|_| count.is_multiple_of(PORTION)) {
            let due = Duration::from_secs_f64(count as f64 / f64::from(rate));
            if let Some(early) = due.checked_sub(began.elapsed()) {
                pause(to, early)?;
            }
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    say(&serde_json::to_string(&PartResult { count, told: 0, seconds })?)?;
    loop {
        send(to, END)?;
        pause(to, AGAIN * 5)?;
    }
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
}

impl Seen {
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

    pub(super) fn result(&self) -> PartResult {
        let seconds = match (self.began, self.last) {
            (Some(began), Some(last)) => (last - began).as_secs_f64(),
            _ => 0.0,
        };
        PartResult { seconds, ..self.result }
    }
}
