//! The programs of the benchmarks in one binary.

use anyhow::Result;
use clap::{Parser, Subcommand};
use onym_bench::{load, relay};

#[derive(Debug, Parser)]
#[command(name = "onym-bench", about = "Benchmarks: load generator, bare relay, comparisons")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Relays frames without looking at them.
    Relay(relay::RelayArgs),
    /// Generates load and prints one line of JSON.
    Load(load::LoadArgs),
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Relay(args) => relay::run(&args),
        Command::Load(args) => {
            println!("{}", serde_json::to_string(&load::run(&args)?)?);
            Ok(())
        }
    }
}
