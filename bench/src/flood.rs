//! The attacker: Interests for names that do not exist, from one face.

use crate::link::{Ends, connect_unix};
use crate::packets::{ATTACK, Exchange, InterestTemplate};
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The attacker.
#[derive(Debug, Args)]
pub struct FloodArgs {
    /// Unix socket of the node.
    #[arg(long)]
    pub node: PathBuf,
    /// Interests of one burst.
    #[arg(long, default_value_t = 2000)]
    pub burst: u32,
    /// Seconds from burst to burst; 0 for as fast as the socket takes them.
    #[arg(long, default_value_t = 6.0)]
    pub every: f64,
    /// Seconds to go on.
    #[arg(long, default_value_t = 6.0)]
    pub seconds: f64,
    /// Seconds to wait before the first, so that others are there already.
    #[arg(long, default_value_t = 0.0)]
    pub after: f64,
    /// Core to run on.
    #[arg(long)]
    pub core: Option<usize>,
}

/// Attacks, and returns how many Interests were sent.
///
/// # Errors
/// When the node closes the face.
pub fn run(args: &FloodArgs) -> Result<u64> {
    if let Some(core) = args.core {
        onym_sys::thread::pin_to_core(core)?;
    }
    std::thread::sleep(Duration::from_secs_f64(args.after));
    let mut ends = Ends::new(vec![connect_unix(&args.node)?])?;
    let mut interests = InterestTemplate::new();
    let (start, mut frames, mut sent) = (Instant::now(), Vec::new(), 0);
    let end = start + Duration::from_secs_f64(args.seconds);
    let mut next = start;
    while Instant::now() < end {
        if Instant::now() >= next && ends.ends[0].queue.is_empty() {
            for _ in 0..args.burst {
                let exchange = Exchange { slot: ATTACK, number: sent };
                ends.ends[0].push(interests.write(exchange), None);
                sent += 1;
            }
            next += Duration::from_secs_f64(args.every);
        }
        ends.flush()?;
        // At full blast only a full socket makes it wait.
        let rest = if args.every > 0.0 { next.min(end) } else { Instant::now() };
        ends.wait(Some(if ends.ends[0].queue.is_empty() { rest } else { end }))?;
        // Nacks are read and ignored, as an attacker would.
        ends.receive(0, &mut frames)?;
        frames.clear();
    }
    Ok(sent - ends.ends[0].queue.len() as u64)
}
