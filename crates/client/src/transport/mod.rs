//! Finds a node and opens a face to it.

mod kernel;
mod open;
mod search;
mod uri;

pub use kernel::KernelFace;
pub use open::{link_config, open};
pub use search::{Origin, SearchError, Surroundings, candidates};
pub use uri::{Family, NodeUri, PORT, UriError, WEBSOCKET_PORT};
