//! The folders in which clients may name a socket. Without them a client of a control interface could
//! reach every file that the program's user can.

use std::fs;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a path may not be named.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FolderError {
    /// It depends on where the program was started.
    #[error("{0}: the path of a socket must begin with /")]
    Relative(String),
    /// There is no such folder.
    #[error("{0}: the folder does not exist; create it first")]
    Absent(String),
    /// It is in none of the folders.
    #[error("{path}: outside of the allowed folders ({allowed})")]
    Outside {
        /// Where it leads.
        path: String,
        /// The folders.
        allowed: String,
    },
}

/// Some folders, and all within them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Folders(Vec<PathBuf>);

impl Folders {
    /// Allows these.
    #[must_use]
    pub fn new(folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(folders.into_iter().collect())
    }

    /// Allows one more.
    pub fn add(&mut self, folder: PathBuf) {
        self.0.push(folder);
    }

    /// Refuses a path whose socket would lie elsewhere, wherever links and `..` lead.
    ///
    /// # Errors
    /// Why.
    pub fn check(&self, path: &Path) -> Result<(), FolderError> {
        let shown = path.display().to_string();
        if !path.is_absolute() {
            return Err(FolderError::Relative(shown));
        }
        let folder = fs::canonicalize(path).ok();
        let folder = match &folder {
            Some(there) => there.parent().map(Path::to_owned),
            None => path.parent().and_then(|parent| fs::canonicalize(parent).ok()),
        };
        let Some(folder) = folder else { return Err(FolderError::Absent(shown)) };
        self.check_folder(&folder, shown)
    }

    /// As [`Folders::check`], for where a path was found to lead, without links and `..`.
    ///
    /// # Errors
    /// [`FolderError::Outside`].
    pub fn check_found(&self, path: &Path) -> Result<(), FolderError> {
        self.check_folder(path.parent().unwrap_or(path), path.display().to_string())
    }

    fn check_folder(&self, folder: &Path, shown: String) -> Result<(), FolderError> {
        let allowed = self.0.iter().filter_map(|f| fs::canonicalize(f).ok());
        if allowed.into_iter().any(|allowed| folder.starts_with(allowed)) {
            return Ok(());
        }
        let names: Vec<String> = self.0.iter().map(|f| f.display().to_string()).collect();
        let allowed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        Err(FolderError::Outside { path: shown, allowed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_and_dots_lead_nowhere_else() {
        let place = std::env::temp_dir().join(format!("onym-folders-{}", std::process::id()));
        let (own, other) = (place.join("own"), place.join("other"));
        for folder in [&own, &other] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(other.join("log"), "").unwrap();
        symlink(other.join("log"), own.join("link")).unwrap();
        symlink(&other, own.join("way")).unwrap();
        let folders = Folders::new([own.clone(), place.join("not there")]);
        let check = |path: PathBuf| folders.check(&path);
        assert_eq!(check(own.join("in.sock")), Ok(()));
        assert_eq!(check(own.join("./in.sock")), Ok(()));
        for path in [
            own.join("link"),
            own.join("way/new.sock"),
            own.join("../other/log"),
            other.join("new"),
        ] {
            assert!(matches!(check(path.clone()), Err(FolderError::Outside { .. })), "{path:?}");
        }
        assert!(matches!(check(own.join("no/x.sock")), Err(FolderError::Absent(_))));
        assert!(matches!(check("in.sock".into()), Err(FolderError::Relative(_))));
        fs::remove_dir_all(place).unwrap();
    }
}
