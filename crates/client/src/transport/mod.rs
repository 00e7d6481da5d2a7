//! Finding and opening the way to a node.

mod kernel;
mod open;
mod search;
mod uri;

pub use kernel::KernelFace;
pub use open::{link_config, open};
pub use search::{Origin, SearchError, Surroundings, candidates};
pub use uri::{Family, NodeUri, PORT, UriError, WEBSOCKET_PORT};
