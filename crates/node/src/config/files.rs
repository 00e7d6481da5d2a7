//! The files that a configuration is read from: one, and the drop-ins beside it.

use super::{Config, ConfigError};
use std::path::{Path, PathBuf};

/// Most drop-ins that are read; a folder with more is a mistake.
const DROP_INS_MAX: usize = 256;

/// `FILE` and then, in the order of their names, `FILE.d/*.toml`: packages and tools of a site add
/// keys without changing the file of another.
///
/// # Errors
/// [`ConfigError::Unreadable`] where the folder is there and cannot be listed.
pub(super) fn with_drop_ins(file: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let mut folder = file.as_os_str().to_owned();
    folder.push(".d");
    let folder = PathBuf::from(folder);
    let unreadable = |source| ConfigError::Unreadable { file: folder.clone(), source };
    let mut files = Vec::new();
    match std::fs::read_dir(&folder) {
        Ok(entries) => {
            for entry in entries {
                let path = entry.map_err(unreadable)?.path();
                if path.extension().is_some_and(|e| e == "toml") {
                    files.push(path);
                }
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(unreadable(error)),
    }
    if files.len() > DROP_INS_MAX {
        let source = std::io::Error::other(format!(
            "{} files of the form *.toml, at most {DROP_INS_MAX} are read",
            files.len()
        ));
        return Err(unreadable(source));
    }
    files.sort();
    files.insert(0, file.to_owned());
    Ok(files)
}

/// One file, checked by itself, so that an error names its line.
///
/// # Errors
/// [`ConfigError`].
pub(super) fn read(file: &Path) -> Result<toml::Table, ConfigError> {
    let text = std::fs::read_to_string(file)
        .map_err(|source| ConfigError::Unreadable { file: file.to_owned(), source })?;
    let syntax = |e: toml::de::Error| ConfigError::Syntax {
        file: file.to_owned(),
        message: e.to_string().trim_end().to_owned(),
    };
    // Read as the struct first: only then does an error know its line.
    let alone: Config = toml::from_str(&text).map_err(syntax)?;
    alone.check(&file.display().to_string())?;
    toml::from_str(&text).map_err(syntax)
}

/// Puts the keys of `over` into `table`: tables are merged, a list or a value takes the place of the
/// one before.
pub(super) fn overlay(table: &mut toml::Table, over: toml::Table) {
    for (key, value) in over {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => overlay(below, above),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}
