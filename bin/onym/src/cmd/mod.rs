//! One file per command. Each has `Args` (what can be typed, and the help) and `run`.

pub(crate) mod bench;
pub(crate) mod cert;
pub(crate) mod check_config;
pub(crate) mod completions;
pub(crate) mod cs;
pub(crate) mod daemon;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod face;
pub(crate) mod fib;
pub(crate) mod get;
pub(crate) mod kernel;
pub(crate) mod key;
pub(crate) mod load;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod peek;
pub(crate) mod ping;
pub(crate) mod ping_server;
pub(crate) mod poke;
pub(crate) mod put;
pub(crate) mod route;
pub(crate) mod service;
pub(crate) mod sim;
pub(crate) mod status;
pub(crate) mod strategy;
