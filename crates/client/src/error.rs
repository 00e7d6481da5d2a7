//! Errors that an application sees.

use crate::endpoint::{CommandError, TooMany};
use crate::fetch::FetchError;
use crate::registration::NotRegistered;
use crate::request::Unanswered;
use crate::serve::ServeError;
use crate::transport::{NodeUri, SearchError};
use onym_wire::Malformed;
use onym_wire::name::Name;
use std::io;

/// Why an operation of a shell failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The node was named wrongly.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// No node answers at any of the places that were tried.
    #[error("no node answers{}", tried(.0))]
    NoNode(Vec<(NodeUri, String)>),
    /// The connection to the node is gone and did not come back in time.
    #[error("the connection to the node was lost: {0}")]
    Disconnected(String),
    /// A request was not answered with Data.
    #[error("{name}: {why}")]
    Unanswered {
        /// What was asked for.
        name: Name,
        /// Why there is no answer.
        #[source]
        why: Unanswered,
    },
    /// The node refused a command.
    #[error("the node refused {command}: {code} {text}")]
    Refused {
        /// The command, such as `faces/create`.
        command: String,
        /// The status code, 400 or more.
        code: u64,
        /// The node's sentence.
        text: String,
    },
    /// The node did not answer a command.
    #[error("the node did not answer {command}: {why}")]
    NoAnswer {
        /// The command.
        command: String,
        /// Why not.
        #[source]
        why: Unanswered,
    },
    /// The prefix could not be registered.
    #[error("{prefix} is not registered: {why}")]
    NotRegistered {
        /// The prefix.
        prefix: Name,
        /// Why not.
        #[source]
        why: NotRegistered,
    },
    /// A fetch failed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// Nothing was published.
    #[error(transparent)]
    Publish(#[from] onym_sync::alo::PublishError),
    /// An object cannot be served.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// The content cannot be written where it should go.
    #[error("cannot write the content: {0}")]
    Sink(#[source] io::Error),
    /// An answer of the node is not understood.
    #[error("the node's answer to {command} cannot be parsed: {source}")]
    Answer {
        /// The command or dataset.
        command: String,
        /// What is wrong with it.
        source: Malformed,
    },
    /// Data does not verify.
    #[error("{name} does not verify: {source}")]
    NotVerified {
        /// The name of the Data.
        name: Name,
        /// Why.
        source: onym_crypto::Error,
    },
    /// A bound of the client was reached.
    #[error(transparent)]
    TooMany(#[from] TooMany),
    /// A command cannot be signed.
    #[error("cannot sign: {0}")]
    Sign(#[source] onym_crypto::Error),
    /// The application ended what it waited for ([`Client::stop_when`](crate::blocking::Client::stop_when)).
    #[error("stopped")]
    Stopped,
    /// The operating system refused to wait for the face.
    #[error("cannot wait for the node: {0}")]
    Wait(#[source] io::Error),
}

impl From<CommandError> for Error {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::TooMany(many) => Self::TooMany(many),
            CommandError::Sign(sign) => Self::Sign(sign),
        }
    }
}

fn tried(places: &[(NodeUri, String)]) -> String {
    let list: Vec<_> = places.iter().map(|(uri, why)| format!("{uri} ({why})")).collect();
    if list.is_empty() { String::new() } else { format!(" at {}", list.join(", ")) }
}
