//! Applications on a node: what asks for Data and what gives it.

mod consumer;
mod files;
mod producer;
mod stats;

pub use consumer::{Consumer, ConsumerConfig, Names};
pub use files::{Files, FilesConfig};
pub use producer::{Producer, ProducerConfig};
pub use stats::{AppStats, Transfer};

use stats::percentiles;

use onym_tables::Tick;
use std::fmt::Debug;

/// Frames that an application sends.
pub type Frames = Vec<Vec<u8>>;

/// An application. It has no clock: the network calls it.
pub trait App: Debug {
    /// Takes a frame from the node.
    fn receive(&mut self, now: Tick, frame: &[u8], out: &mut Frames);

    /// Does what is due at `now`.
    fn handle_timeout(&mut self, now: Tick, out: &mut Frames);

    /// When [`App::handle_timeout`] is due next; [`Tick::NEVER`] when nothing is.
    fn poll_timeout(&self) -> Tick;

    /// Whether it has nothing more to do: a producer always, a consumer when all came or failed.
    fn is_done(&self) -> bool;

    /// What it achieved.
    fn stats(&self) -> AppStats;

    /// The objects that it fetches.
    fn transfers(&self) -> Vec<Transfer> {
        Vec::new()
    }
}
