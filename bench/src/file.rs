//! A segmented file: one process serves it, another fetches it with congestion control.

use crate::link::connect_unix;
use crate::subject::register;
use anyhow::Result;
use clap::Args;
use onym_client::FetchOptions;
use onym_client::blocking::Client;
use onym_client::serve::{Object, ServeOptions};
use onym_client::window::WindowLaw;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The name of the file.
pub const NAME: &str = "/onym/bench/file";

/// Serves a file of zeroes until killed.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Unix socket of the node.
    #[arg(long)]
    pub node: PathBuf,
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
    /// Segments in flight, always; without it the default congestion control.
    #[arg(long)]
    pub window: Option<u32>,
    /// Core to run on.
    #[arg(long)]
    pub core: Option<usize>,
}

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
}

/// Serves.
///
/// # Errors
/// When the node refuses or goes away.
pub fn serve(args: &ServeArgs) -> Result<()> {
    if let Some(core) = args.core {
        onym_sys::thread::pin_to_core(core)?;
    }
    let mut object = Object::new(NAME.parse()?, vec![0; args.octets], ServeOptions::new(1))?;
    object.sign_ahead()?;
    let mut client = Client::over(connect_unix(&args.node)?);
    client.respond(NAME.parse()?, Box::new(object))?;
    if !args.no_register {
        register(&mut client, NAME)?;
    }
    println!("serving");
    client.run(Duration::from_secs(3600), &mut || false, &mut |_| {})?;
    Ok(())
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
    let progress = client.fetch(NAME.parse()?, options, &mut io::sink(), &mut |_| {})?;
    Ok(GetResult {
        octets: progress.bytes,
        seconds: start.elapsed().as_secs_f64(),
        sent: progress.counters.sent,
        retransmitted: progress.counters.retransmitted,
        marks: progress.counters.marks,
    })
}
