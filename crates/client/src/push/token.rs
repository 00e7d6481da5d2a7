//! What conventions between applications share (section 8.1).

use super::{App, Error};
use onym_crypto::sha256;
use onym_wire::push::{Kind, Label, Path, Status, Strategy};

impl App {
    /// What stands for this application where applications are told apart (section 8.1).
    #[must_use]
    pub fn token(&self) -> Label {
        let info = self.info();
        let parts = [&info.node.0, &info.epoch.to_be_bytes(), &info.number.to_be_bytes()];
        let digest = sha256(&parts.map(|part| &part[..]));
        Label(digest.first_chunk().copied().unwrap_or_default())
    }

    /// A request that may have been done already.
    pub(super) fn join(
        &mut self,
        kind: Kind,
        path: &Path,
        strategy: Strategy,
    ) -> Result<(), Error> {
        match self.request_path(kind, path, strategy)? {
            Status::OK | Status::EXISTS => Ok(()),
            status => Err(Error::Refused { what: path.to_string(), status }),
        }
    }
}
