//! Finding and opening the way to a node.

mod search;
mod uri;

pub use search::{Origin, SearchError, Surroundings, candidates};
pub use uri::{Family, NodeUri, PORT, UriError, WEBSOCKET_PORT};
