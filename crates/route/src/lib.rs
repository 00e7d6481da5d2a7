#![doc = include_str!("../README.md")]

pub mod border;
pub mod codec;
pub mod names;
pub mod prefixes;
pub mod router;
pub mod table;

pub use border::{Border, Export, Summary};
pub use names::Names;
pub use router::{Command, Config, CostBy, Link, Notice, Output, Router, Verdict};
pub use table::{PeerId, Route, Table};
