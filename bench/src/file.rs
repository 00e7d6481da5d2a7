//! A segmented file: one process serves it, another fetches it with congestion control.

use crate::link::connect_unix;
use crate::subject::register;
use anyhow::Result;
use clap::Args;
use onym_client::FetchOptions;
use onym_client::blocking::Client;
use onym_client::serve::{Object, ServeOptions};
use onym_client::window::WindowLaw;
use onym_wire::name::Name;
use serde::{Deserialize, Serialize};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The name of the file.
pub const NAME: &str = "/onym/bench/file";

/// Serves a file of zeroes until killed.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Unix socket of the node.
    #[arg(long)]
    pub node: PathBuf,
    /// Name of the file.
    #[arg(long, default_value = NAME)]
    pub name: Name,
    /// Octets of the file.
    #[arg(long, default_value_t = 100_000_000)]
    pub octets: usize,
    /// Do not register the name (for a relay).
    #[arg(long)]
    pub no_register: bool,
    /// Core to run on.
    #[arg(long)]
    pub core: Option<usize>,
}

/// Fetches the file and prints one line of JSON.
#[derive(Debug, Args)]
pub struct GetArgs {
    /// Unix socket of the node.
    #[arg(long)]
    pub node: PathBuf,
    /// Name of the file.
    #[arg(long, default_value = NAME)]
    pub name: Name,
    /// Segments in flight, always; without it the default congestion control.
    #[arg(long)]
    pub window: Option<u32>,
    /// Milliseconds for which reading stops after each 5 MB.
    #[arg(long, default_value_t = 0)]
    pub stall_ms: u64,
    /// Report every 20 ms how many octets have come.
    #[arg(long)]
    pub samples: bool,
    /// Core to run on.
    #[arg(long)]
    pub core: Option<usize>,
}

/// Octets between two stalls of a reader.
pub const STALL_EVERY: u64 = 5_000_000;
/// Time between two samples.
pub const SAMPLE_EVERY: Duration = Duration::from_millis(20);

/// What a fetch measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct GetResult {
    /// Octets of content.
    pub octets: u64,
    /// Seconds from the first Interest to the last octet.
    pub seconds: f64,
    /// Interests sent.
    pub sent: u64,
    /// Of these, sent again.
    pub retransmitted: u64,
    /// Data that came with a congestion mark.
    pub marks: u64,
    /// Seconds since the Unix epoch, and octets of content until then, in order.
    #[serde(default)]
    pub samples: Vec<(f64, u64)>,
}

/// Serves.
///
/// # Errors
/// When the node refuses or goes away.
pub fn serve(args: &ServeArgs) -> Result<()> {
    if let Some(core) = args.core {
        onym_sys::thread::pin_to_core(core)?;
    }
    let mut object = Object::new(args.name.clone(), vec![0; args.octets], ServeOptions::new(1))?;
    object.sign_ahead()?;
    let mut client = Client::over(connect_unix(&args.node)?);
    client.respond(args.name.clone(), Box::new(object))?;
    if !args.no_register {
        register(&mut client, &args.name)?;
    }
    println!("serving");
    client.run(Duration::from_secs(3600), &mut || false, &mut |_| {})?;
    Ok(())
}

/// A sink that forgets what it gets, stalls and keeps samples as asked.
#[derive(Debug)]
struct Reader {
    octets: u64,
    stall: Duration,
    stall_at: u64,
    is_sampled: bool,
    sampled: Instant,
    samples: Vec<(f64, u64)>,
}

impl Reader {
    fn new(args: &GetArgs) -> Self {
        let stall = Duration::from_millis(args.stall_ms);
        let (stall_at, sampled) = (STALL_EVERY, Instant::now());
        let (octets, is_sampled, samples) = (0, args.samples, Vec::new());
        Self { octets, stall, stall_at, is_sampled, sampled, samples }
    }
}

impl Write for Reader {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.octets += piece.len() as u64;
        if !self.stall.is_zero() && self.octets >= self.stall_at {
            self.stall_at = self.octets + STALL_EVERY;
            std::thread::sleep(self.stall);
        }
        if self.is_sampled && self.sampled.elapsed() >= SAMPLE_EVERY {
            self.sampled = Instant::now();
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            self.samples.push((now.as_secs_f64(), self.octets));
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Fetches.
///
/// # Errors
/// When the fetch fails.
pub fn get(args: &GetArgs) -> Result<GetResult> {
    if let Some(core) = args.core {
        onym_sys::thread::pin_to_core(core)?;
    }
    let mut client = Client::over(connect_unix(&args.node)?);
    let mut options = FetchOptions::default();
    if let Some(window) = args.window {
        options.pipeline.law = WindowLaw::Fixed(window);
    }
    let start = Instant::now();
    let mut reader = Reader::new(args);
    let progress = client.fetch(args.name.clone(), options, &mut reader, &mut |_| {})?;
    Ok(GetResult {
        octets: progress.bytes,
        seconds: start.elapsed().as_secs_f64(),
        sent: progress.counters.sent,
        retransmitted: progress.counters.retransmitted,
        marks: progress.counters.marks,
        samples: reader.samples,
    })
}
