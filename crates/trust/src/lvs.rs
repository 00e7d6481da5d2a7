//! LightVerSec: schemas that python-ndn, ndnd and NDNts exchange.

mod chain;
mod compile;
mod functions;
mod judge;
mod lint;
mod load;
mod matcher;
mod model;
mod schema;
mod text;
mod tree;
mod why;

pub use chain::{CompileError, Mode};
pub use compile::compile;
pub use functions::{Function, Functions};
pub use lint::{Finding, lint};
pub use load::LoadError;
pub use matcher::STEPS_MAX;
pub use model::{DEPTH_MAX, Model, NODES_MAX, OCTETS_MAX, VERSION};
pub use schema::{Schema, SchemaError};
pub use text::{TEXT_MAX, TextError};
