//! Options of a repository.

use crate::admission::Admission;
use onym_client::ClientOptions;
use onym_crypto::signer::Signer;
use onym_wire::name::Name;
use std::fmt;
use std::sync::Arc;

/// How a repository works.
pub struct RepoOptions {
    /// Its name; commands come under it.
    pub name: Name,
    /// Prefixes that it serves from the start.
    pub serve: Vec<Name>,
    /// Who may command.
    pub admission: Arc<dyn Admission>,
    /// Who signs metadata, listings and answers.
    pub signer: Arc<Signer>,
    /// How the node is reached by what takes part in groups.
    pub node: ClientOptions,
}

impl fmt::Debug for RepoOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RepoOptions({})", self.name)
    }
}
