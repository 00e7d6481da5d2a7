#![doc = include_str!("../README.md")]

mod files;
mod guard;
pub mod schema;
mod settings;

pub use files::Stamp;
pub use guard::{Guard, GuardError, Notice, Status, certificates, revoked};
pub use settings::Settings;
