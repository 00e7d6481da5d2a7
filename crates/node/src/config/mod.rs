//! Configuration: one struct, TOML, `--set key=value`, every limit in it.
//!
//! A key is refused when it is unknown; an error names the file, the line or the key, what is
//! wrong and what is allowed.

mod check;
mod files;
mod reference;
mod reload;
mod schema;

pub use reference::reference;
pub(crate) use reload::gone;
pub use reload::{Changes, changes};
pub use schema::*;

use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a configuration was refused.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {source}; name an existing file with --config, or none")]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The file is not TOML, has an unknown key or a value of a wrong type.
    #[error("{file}: {message}")]
    Syntax {
        /// The file.
        file: PathBuf,
        /// Line, key, what is wrong and what is allowed.
        message: String,
    },
    /// A `--set` is not of the form `key=value`, or its key or type is wrong.
    #[error("--set {setting}: {message}")]
    Setting {
        /// The setting as given.
        setting: String,
        /// What is wrong and what is allowed.
        message: String,
    },
    /// A value is out of its range.
    #[error("{origin}: key `{key}`: {value} is wrong: {allowed}")]
    Value {
        /// The file or `--set`.
        origin: String,
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// What is allowed.
        allowed: String,
    },
}

impl Config {
    /// The configuration of `file` (when there is one) with `sets` (`key=value`) over it, checked.
    ///
    /// # Errors
    /// [`ConfigError`], which names file, line or key, what is wrong and what is allowed.
    pub fn load(file: Option<&Path>, sets: &[String]) -> Result<Self, ConfigError> {
        let mut table = toml::Table::new();
        if let Some(path) = file {
            for part in files::with_drop_ins(path)? {
                files::overlay(&mut table, files::read(&part)?);
            }
        }
        let mut culprit = None;
        for set in sets {
            table = with(table, set)?;
            if culprit.is_none() && Self::of(&table).is_err() {
                culprit = Some(set);
            }
        }
        let merged = Self::of(&table).map_err(|e| ConfigError::Setting {
            setting: culprit.cloned().unwrap_or_default(),
            message: e.to_string().trim_end().replace('\n', " "),
        })?;
        merged.check(if sets.is_empty() { "configuration" } else { "--set" })?;
        Ok(merged)
    }

    /// The configuration that `text` (TOML) says; `origin` names it in errors.
    ///
    /// # Errors
    /// As [`Config::load`].
    pub fn parse(text: &str, origin: &str) -> Result<Self, ConfigError> {
        let config: Self = toml::from_str(text).map_err(|e| ConfigError::Syntax {
            file: origin.into(),
            message: e.to_string().trim_end().to_owned(),
        })?;
        config.check(origin)?;
        Ok(config)
    }

    fn of(table: &toml::Table) -> Result<Self, toml::de::Error> {
        table.clone().try_into()
    }

    /// The whole configuration as TOML, defaults included.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("invariant: every configuration can be written as TOML")
    }

    /// The entry of `trust` that `key` names; none when it names nothing.
    ///
    /// # Errors
    /// [`ConfigError::Value`] when there is no such entry.
    pub fn trust_of(
        &self,
        key: &str,
        name: &str,
    ) -> Result<Option<&onym_guard::Settings>, ConfigError> {
        let found = self.trust.iter().find(|entry| entry.name == name);
        if name.is_empty() || found.is_some() {
            return Ok(found);
        }
        Err(ConfigError::Value {
            origin: "configuration".to_owned(),
            key: key.to_owned(),
            value: format!("`{name}`"),
            allowed: "the name of an entry of `trust`".to_owned(),
        })
    }

    /// The number of shards that this configuration means on this machine.
    #[must_use]
    pub fn shard_count(&self) -> usize {
        if self.shards > 0 {
            return usize::from(self.shards);
        }
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (cores / 2).clamp(1, 64)
    }
}

/// `table` with one `key=value`; the value is TOML when it reads as such and the key takes it, else
/// a string.
fn with(table: toml::Table, set: &str) -> Result<toml::Table, ConfigError> {
    let wrong = |message: &str| ConfigError::Setting {
        setting: set.to_owned(),
        message: message.to_owned(),
    };
    let (key, text) = set.split_once('=').ok_or_else(|| {
        wrong("there is no `=`; write key=value, such as --set cs.packets_max=1000")
    })?;
    let path = key_path(key.trim()).ok_or_else(|| wrong("the key is not a path like a.b.c"))?;
    let (last, parents) = path.split_last().ok_or_else(|| wrong("the key is empty"))?;
    let put = |mut table: toml::Table, value: toml::Value| {
        let mut at = &mut table;
        for part in parents {
            let next = at.entry(part.clone()).or_insert_with(|| toml::Table::new().into());
            at = next
                .as_table_mut()
                .ok_or_else(|| wrong(&format!("`{part}` is a value and holds no keys")))?;
        }
        at.insert(last.clone(), value);
        Ok(table)
    };
    let typed = put(table.clone(), value_of(text.trim()))?;
    if Config::of(&typed).is_err() {
        let plain = put(table, toml::Value::String(text.trim().to_owned()))?;
        if Config::of(&plain).is_ok() {
            return Ok(plain);
        }
    }
    Ok(typed)
}

/// `a.b."c.d"` as its parts.
fn key_path(key: &str) -> Option<Vec<String>> {
    // TOML's own rules for dotted keys, by asking it.
    let table: toml::Table = toml::from_str(&format!("{key} = 0")).ok()?;
    let mut path = Vec::new();
    let mut at = &table;
    loop {
        let (name, value) = at.iter().next()?;
        path.push(name.clone());
        match value {
            toml::Value::Table(inner) => at = inner,
            _ => return Some(path),
        }
    }
}

fn value_of(text: &str) -> toml::Value {
    toml::from_str::<toml::Table>(&format!("v = {text}"))
        .ok()
        .and_then(|mut t| t.remove("v"))
        .unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests;
