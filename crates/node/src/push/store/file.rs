//! The embedded store: a redb file.

use super::{Desk, Order};
use onym_pubsub::Kept;
use onym_wire::push::{Id, Label, Strategy};
use redb::{Database, ReadableDatabase as _, ReadableTable as _, TableDefinition};
use std::path::{Path, PathBuf};
use std::time::Duration;

const EPOCHS: TableDefinition<'_, &str, u32> = TableDefinition::new("epochs");
/// Octets of the identifier; an octet of the strategy and the publishers' labels.
const SCOPES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("scopes");
/// After a write that failed.
const AGAIN: Duration = Duration::from_secs(1);

type Outcome<T> = Result<T, redb::Error>;

/// A redb file.
#[derive(Debug)]
pub(crate) struct FileStore {
    file: PathBuf,
    /// None while it has to be opened again: after a write that failed it takes none any more.
    database: Option<Database>,
}

impl FileStore {
    /// Opens or makes it.
    pub(super) fn open(file: &Path) -> Result<Self, String> {
        let fault = |why: &dyn std::fmt::Display| {
            format!(
                "{}: {why}; another node may have it open, or the folder cannot be written",
                file.display()
            )
        };
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(|e| fault(&e))?;
        }
        let database = Some(Database::create(file).map_err(|e| fault(&e))?);
        Ok(Self { file: file.to_owned(), database })
    }

    fn database(&self) -> Outcome<&Database> {
        self.database.as_ref().ok_or(redb::Error::PreviousIo)
    }

    /// Closes the file and opens it again.
    fn open_again(&mut self) -> Outcome<()> {
        self.database = None;
        self.database = Some(Database::create(&self.file)?);
        Ok(())
    }

    pub(super) fn begin(&mut self, drawn: u32) -> Outcome<u32> {
        let write = self.database()?.begin_write()?;
        let epoch = {
            let mut table = write.open_table(EPOCHS)?;
            let before = table.get("node")?.map(|v| v.value());
            let epoch = before.map_or(drawn, |b| drawn.max(b.wrapping_add(1)).max(1));
            table.insert("node", epoch)?;
            // Readers find the table.
            write.open_table(SCOPES)?;
            epoch
        };
        write.commit()?;
        Ok(epoch)
    }

    pub(super) fn scopes(&self) -> Outcome<Vec<Kept>> {
        let table = self.database()?.begin_read()?.open_table(SCOPES)?;
        let mut all = Vec::new();
        for row in table.iter()? {
            let (id, value) = row?;
            let labels = |octets: &[u8]| -> Vec<Label> {
                let (labels, _) = octets.as_chunks::<8>();
                labels.iter().copied().map(Label).collect()
            };
            let Some((strategy, publishers)) = value.value().split_first() else { continue };
            let Some(id) = Id::from_octets(id.value()) else { continue };
            all.push(Kept { id, strategy: Strategy(*strategy), publishers: labels(publishers) });
        }
        Ok(all)
    }

    fn write(&self, batch: &[Kept]) -> Outcome<()> {
        let write = self.database()?.begin_write()?;
        {
            let mut table = write.open_table(SCOPES)?;
            for kept in batch {
                if kept.publishers.is_empty() {
                    table.remove(kept.id.octets())?;
                    continue;
                }
                let mut value = vec![kept.strategy.0];
                value.extend(kept.publishers.iter().flat_map(|label| label.0));
                table.insert(kept.id.octets(), value.as_slice())?;
            }
        }
        write.commit()?;
        Ok(())
    }

    pub(super) fn run(mut self, desk: &Desk) {
        while let Ok(order) = desk.inbox.recv() {
            let Order::Keep(batch) = order else { continue };
            let mut is_told = false;
            while let Err(error) = self.write(&batch) {
                if !std::mem::replace(&mut is_told, true) {
                    tracing::error!(%error, "scopes are not kept; it is tried again each second");
                }
                std::thread::sleep(AGAIN);
                if let Err(error) = self.open_again() {
                    tracing::debug!(%error, "the file cannot be opened again");
                }
            }
            if is_told {
                tracing::info!("scopes are kept again");
            }
            desk.done();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_and_the_epoch_are_there_after_opening_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state/push.redb");
        let scope = |id: &str, publishers: &[u64]| Kept {
            id: id.parse().unwrap(),
            strategy: Strategy::DOMAIN_LOCAL,
            publishers: publishers.iter().copied().map(Label::from_u64).collect(),
        };
        let kept = [scope("/1", &[1, 2]), scope("/1/2", &[3])];
        let mut store = FileStore::open(&file).unwrap();
        assert_eq!(store.begin(5).unwrap(), 5);
        assert!(store.scopes().unwrap().is_empty());
        store.write(&kept).unwrap();
        assert!(FileStore::open(&file).is_err(), "one node at a time has it");
        drop(store);
        let mut store = FileStore::open(&file).unwrap();
        assert_eq!(store.begin(5).unwrap(), 6, "a clock that went back does not matter");
        assert_eq!(store.scopes().unwrap(), kept);
        store.write(&[scope("/1/2", &[])]).unwrap();
        assert_eq!(store.scopes().unwrap(), &kept[..1]);
    }
}
