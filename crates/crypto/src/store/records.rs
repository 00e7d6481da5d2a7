//! Records of revocation that are served beside certificates.

use super::{KeyStore, files};
use crate::{Error, text};
use onym_wire::data::Data;

impl KeyStore {
    /// Stores a record; one of the same name is replaced. Who believes it checks it.
    ///
    /// # Errors
    /// [`Error::Certificate`] when `record` is no Data, [`Error::Store`].
    pub fn add_record(&self, record: &[u8]) -> Result<(), Error> {
        let data = Data::parse(record)
            .map_err(|e| Error::Certificate(format!("the record is no Data: {e}")))?;
        let path = self.path_of(data.name, "record");
        let _lock = self.change()?;
        files::replace(&path, text::encode(record).as_bytes())
    }

    /// All records, as Data.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub fn records(&self) -> Result<Vec<Vec<u8>>, Error> {
        let mut found = Vec::new();
        for path in files::list(&self.dir, "record")? {
            let Some(text) = files::read(&path)? else { continue };
            let damaged = |what: String| Error::Store { path: path.clone(), what };
            let wire = text::decode(&text).map_err(|e| damaged(e.to_string()))?;
            Data::parse(&wire).map_err(|e| damaged(e.to_string()))?;
            found.push(wire);
        }
        Ok(found)
    }
}
