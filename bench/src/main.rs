//! The programs of the benchmarks in one binary.

use anyhow::Result;
use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;
use onym_bench::{
    board, distribute, file, flood, index, instructions, load, memory, push, relay, rendezvous,
    run, services, store, tables,
};
use onym_sys::alloc_count::CountingAlloc;

// What is measured within this program has the memory that it has in `onym`, and its pages.
#[global_allocator]
static ALLOC: CountingAlloc<MiMalloc> = CountingAlloc(MiMalloc);

#[derive(Debug, Parser)]
#[command(name = "onym-bench", about = "Benchmarks: load generator, bare relay, comparisons")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs comparisons, prints tables and writes rows.
    Run(run::RunArgs),
    /// Relays frames without looking at them.
    Relay(relay::RelayArgs),
    /// Generates load and prints one line of JSON.
    Load(load::LoadArgs),
    /// Serves a file of zeroes.
    Serve(file::ServeArgs),
    /// Fetches that file and prints one line of JSON.
    Get(file::GetArgs),
    /// Measures the tables' memory per entry.
    Memory(memory::MemoryArgs),
    /// Measures what an exchange costs by what the tables hold.
    Tables(tables::TablesArgs),
    /// Counts a whole node's user instructions by callgrind; prints their sum.
    Instructions(instructions::InstructionsArgs),
    /// Clients and servers around one router: content distribution; prints one line of JSON.
    Distribute(distribute::DistributeArgs),
    /// Compares index structures of a content store and a FIB.
    Index(index::IndexArgs),
    /// Compares node-local delivery: the blackboard, copies, iceoryx2.
    Board(board::BoardArgs),
    /// One side of that; prints one line of JSON.
    BoardPart(board::PartArgs),
    /// Compares publish/subscribe over two nodes: ours, Zenoh, NATS.
    Push(push::PushArgs),
    /// One side of that; prints one line of JSON.
    PushPart(push::PushPartArgs),
    /// Times subscriptions to random items of many.
    Rendezvous(rendezvous::RendezvousArgs),
    /// Services alone and in a chain; prints a table and writes rows.
    Services(services::ServicesArgs),
    /// The store of packets: beside raw files, as a node serves from it, and large.
    Store(store::StoreArgs),
    /// Sends Interests for names that do not exist; prints how many, and its CPU seconds.
    Flood(flood::FloodArgs),
}

fn main() -> Result<()> {
    onym_sys::memory::huge_pages_where_advised();
    match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Relay(args) => relay::run(&args),
        Command::Load(args) => print(&load::run(&args)?),
        Command::Serve(args) => file::serve(&args),
        Command::Get(args) => print(&file::get(&args)?),
        Command::Board(args) => board::run(&args),
        Command::BoardPart(args) => print(&board::part(&args)?),
        Command::Push(args) => push::run(&args),
        Command::PushPart(args) => print(&push::part(&args)?),
        Command::Rendezvous(args) => rendezvous::run(&args),
        Command::Memory(args) => memory::run(&args),
        Command::Tables(args) => tables::run(&args),
        Command::Instructions(args) => print(&instructions::run(&args)?),
        Command::Distribute(args) => print(&distribute::run(&args)?),
        Command::Index(args) => index::run(&args),
        Command::Services(args) => services::run(&args),
        Command::Store(args) => store::run(&args),
        Command::Flood(args) => {
            let sent = flood::run(&args)?;
            print(&(sent, onym_sys::thread::process_cpu_time().as_secs_f64()))
        }
    }
}

fn print(value: &impl serde::Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(value)?);
    Ok(())
}
