#![doc = include_str!("../README.md")]

pub mod corpus;
pub mod mutate;

mod decode;
mod dissect;
mod feed;
mod keys;
mod management;
mod names;
mod ndncert;
mod pull_script;
mod reassembly;
mod route;
mod sync;
mod trust;

pub use decode::decode;
pub use dissect::dissect;
pub use feed::Feed;
pub use keys::keys;
pub use management::management;
pub use names::names;
pub use ndncert::ndncert;
pub use pull_script::pull_script;
pub use reassembly::reassembly;
pub use route::route;
pub use sync::sync;
pub use trust::{trust_model, trust_text};

/// One thing to fuzz.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, and that of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Runs one input; panics when a law does not hold.
    pub run: fn(&[u8]),
    /// Longest input worth trying, in octets.
    pub len_max: usize,
}

/// Everything that is fuzzed.
pub const TARGETS: [Target; 12] = [
    Target { name: "decode", run: decode, len_max: 2048 },
    Target { name: "dissect", run: dissect, len_max: 4096 },
    Target { name: "names", run: names, len_max: 512 },
    Target { name: "reassembly", run: reassembly, len_max: 2048 },
    Target { name: "pull_script", run: pull_script, len_max: 2048 },
    Target { name: "management", run: management, len_max: 2048 },
    Target { name: "trust_model", run: trust_model, len_max: 2048 },
    Target { name: "trust_text", run: trust_text, len_max: 1024 },
    Target { name: "sync", run: sync, len_max: 4096 },
    Target { name: "route", run: route, len_max: 4096 },
    Target { name: "ndncert", run: ndncert, len_max: 2048 },
    Target { name: "keys", run: keys, len_max: 4096 },
];

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
