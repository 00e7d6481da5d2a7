#![doc = include_str!("../README.md")]

pub mod add;
pub mod admission;
mod afar;
pub mod answer;
pub mod client;
pub mod command;
pub mod door;
pub mod file;
pub mod folder;
mod group;
pub mod job;
pub mod ndnd;
pub mod once;
pub mod options;
pub mod reply;
pub mod repo;
pub mod watch;

pub use admission::{Act, Admission, NotAdmitted};
pub use options::RepoOptions;
pub use repo::Repo;
