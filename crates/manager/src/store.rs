//! Persistent state of the manager: the desired state, and the services started.
//!
//! It is one document, written whole: in a redb file by default, whose transactions survive a
//! kill at any moment, or in etcd, where several managers stand by.

use crate::describe::Description;
use crate::driver::{Order, Started};
use crate::expand::Decisions;
use onym_etcd::{Compare, Etcd, EtcdError, Operation};
use redb::{Database, ReadableDatabase as _, TableDefinition};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use thiserror::Error;

/// The document.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Saved {
    /// Tells this manager's services from others'.
    pub manager: String,
    /// What is wanted; none before the first description.
    pub description: Option<Description>,
    /// What was decided on top of it.
    pub decisions: Decisions,
    /// What was started, by name.
    pub instances: BTreeMap<String, Instance>,
    /// Number of starts so far: instances have names of their own.
    pub starts: u64,
}

/// A service that was started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Instance {
    /// With what.
    pub order: StoredOrder,
    /// How it is reached.
    pub started: Started,
}

/// An order without the function, which is beside it.
pub type StoredOrder = Order;

impl PartialEq for Order {
    fn eq(&self, other: &Self) -> bool {
        self.instance == other.instance
    }
}

/// Why the state cannot be kept.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file cannot be opened.
    #[error("{file}: {why}; another manager may have it open, or the folder cannot be written")]
    Open {
        /// The file.
        file: String,
        /// What the store says.
        why: String,
    },
    /// It cannot be read or written.
    #[error("the manager's state: {0}")]
    Broken(String),
    /// Another manager leads now; nothing was written.
    #[error("another manager leads now")]
    Led,
}

/// What a store answers.
pub type Kept<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Where the document is kept.
pub trait Store: Send + Sync + std::fmt::Debug {
    /// The document as it was saved last.
    ///
    /// # Errors
    /// It is there and cannot be read.
    fn load(&self) -> Kept<'_, Option<Saved>>;

    /// Saves it; when this returns it survives a kill.
    ///
    /// # Errors
    /// It was not saved.
    fn save<'a>(&'a self, saved: &'a Saved) -> Kept<'a, ()>;
}

const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("manager");
const KEY: &str = "state/1";

/// A redb file.
#[derive(Debug)]
pub struct FileStore {
    database: Database,
}

impl FileStore {
    /// Opens or makes the file. One manager at a time has it.
    ///
    /// # Errors
    /// Another one has it, or it cannot be written.
    pub fn open(file: &Path) -> Result<Self, StoreError> {
        let shown = file.display().to_string();
        let fault = |why: String| StoreError::Open { file: shown.clone(), why };
        let database = Database::create(file).map_err(|e| fault(e.to_string()))?;
        Ok(Self { database })
    }
}

fn broken(error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Broken(error.to_string())
}

impl FileStore {
    fn read(&self) -> Result<Option<Saved>, StoreError> {
        let read = self.database.begin_read().map_err(|e| broken(&e))?;
        let table = match read.open_table(TABLE) {
            Ok(table) => table,
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            Err(error) => return Err(broken(&error)),
        };
        let Some(value) = table.get(KEY).map_err(|e| broken(&e))? else { return Ok(None) };
        serde_json::from_slice(value.value()).map(Some).map_err(|e| broken(&e))
    }

    fn write(&self, saved: &Saved) -> Result<(), StoreError> {
        let octets = serde_json::to_vec(saved).map_err(|e| broken(&e))?;
        let write = self.database.begin_write().map_err(|e| broken(&e))?;
        {
            let mut table = write.open_table(TABLE).map_err(|e| broken(&e))?;
            table.insert(KEY, octets.as_slice()).map_err(|e| broken(&e))?;
        }
        write.commit().map_err(|e| broken(&e))
    }
}

impl Store for FileStore {
    fn load(&self) -> Kept<'_, Option<Saved>> {
        Box::pin(async { self.read() })
    }

    fn save<'a>(&'a self, saved: &'a Saved) -> Kept<'a, ()> {
        Box::pin(async { self.write(saved) })
    }
}

/// A key in etcd, which only the manager that leads may write.
#[derive(Debug)]
pub struct EtcdStore {
    etcd: Arc<Etcd>,
    key: String,
    guard: Compare,
}

impl EtcdStore {
    /// The document at `key`, written as long as `guard` holds.
    #[must_use]
    pub fn new(etcd: Arc<Etcd>, key: String, guard: Compare) -> Self {
        Self { etcd, key, guard }
    }
}

impl From<EtcdError> for StoreError {
    fn from(error: EtcdError) -> Self {
        Self::Broken(error.to_string())
    }
}

impl Store for EtcdStore {
    fn load(&self) -> Kept<'_, Option<Saved>> {
        Box::pin(async {
            let Some(entry) = self.etcd.get(&self.key).await? else { return Ok(None) };
            serde_json::from_slice(&entry.value).map(Some).map_err(|e| broken(&e))
        })
    }

    fn save<'a>(&'a self, saved: &'a Saved) -> Kept<'a, ()> {
        Box::pin(async {
            let value = serde_json::to_vec(saved).map_err(|e| broken(&e))?;
            let put = Operation::Put { key: self.key.clone(), value, lease: None };
            let guard = std::slice::from_ref(&self.guard);
            let outcome = self.etcd.transact(guard, &[put], &[]).await?;
            if outcome.is_done { Ok(()) } else { Err(StoreError::Led) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_saved_is_there_after_opening_again_and_one_manager_has_it_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.redb");
        let store = FileStore::open(&file).unwrap();
        assert!(store.read().unwrap().is_none());
        let saved = Saved { manager: "m1".into(), starts: 7, ..Saved::default() };
        store.write(&saved).unwrap();
        assert!(FileStore::open(&file).is_err(), "it is open already");
        drop(store);
        let again = FileStore::open(&file).unwrap().read().unwrap().unwrap();
        assert_eq!((again.manager.as_str(), again.starts), ("m1", 7));
    }
}
