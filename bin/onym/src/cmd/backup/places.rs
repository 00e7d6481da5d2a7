//! What a backup has, and where each part of it is on this machine.

use crate::exit::{Exit, Failure};
use onym_crypto::store::KeyStore;
use std::path::{Path, PathBuf};

/// Where the parts are; the usual places of this user without options.
#[derive(Debug, clap::Args)]
pub(crate) struct Places {
    /// Configuration file, with its drop-ins (`FILE.d/*.toml`).
    #[arg(long, value_name = "FILE", default_value = "/etc/onym/onym.toml")]
    config: PathBuf,
    /// Folder of the key store; without it that of this user.
    #[arg(long, value_name = "FOLDER")]
    keys: Option<PathBuf>,
    /// Folder of the router: its keys, its anchor, its bootstrap time; without it the usual one.
    #[arg(long, value_name = "FOLDER")]
    routing: Option<PathBuf>,
    /// Folder of a stopped program, such as a manager's `--state` or a repository's `--store`, under
    /// a name of yours; may be repeated.
    #[arg(long, value_name = "NAME=FOLDER", value_parser = named)]
    state: Vec<(String, PathBuf)>,
}

/// A part of a backup on this machine.
#[derive(Debug, Clone)]
pub(in crate::cmd) struct Place {
    /// What its files are called by in the archive: a whole path, or the beginning of one.
    pub(in crate::cmd) prefix: String,
    pub(in crate::cmd) at: PathBuf,
    pub(in crate::cmd) is_file: bool,
}

impl Place {
    /// Where the file `path` of an archive goes: the rest of the path below this place.
    pub(in crate::cmd) fn takes<'a>(&self, path: &'a str) -> Option<&'a str> {
        if self.is_file {
            return (path == self.prefix).then_some("");
        }
        path.strip_prefix(&self.prefix)?.strip_prefix('/')
    }
}

impl Places {
    pub(in crate::cmd) fn all(&self) -> anyhow::Result<Vec<Place>> {
        let mut drop_ins = self.config.clone().into_os_string();
        drop_ins.push(".d");
        let keys = match &self.keys {
            Some(folder) => folder.clone(),
            None => KeyStore::of_user()?.dir().to_owned(),
        };
        let routing = self.routing.clone();
        let routing = routing.unwrap_or_else(crate::cmd::daemon::routing::usual_folder);
        let place = |prefix: &str, at: &Path, is_file| Place {
            prefix: prefix.to_owned(),
            at: at.to_owned(),
            is_file,
        };
        let mut places = vec![
            place("config/onym.toml", &self.config, true),
            place("config/onym.toml.d", Path::new(&drop_ins), false),
            place("keys", &keys, false),
            place("routing", &routing, false),
        ];
        for (name, folder) in &self.state {
            let prefix = format!("state/{name}");
            if places.iter().any(|p| p.prefix == prefix) {
                return Err(Failure::new(Exit::Usage, format!("--state {name} is given twice"))
                    .next("name each folder differently")
                    .into());
            }
            places.push(place(&prefix, folder, false));
        }
        Ok(places)
    }
}

fn named(text: &str) -> Result<(String, PathBuf), String> {
    let (name, folder) = text.split_once('=').ok_or("expected NAME=FOLDER")?;
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 32 || !name.chars().all(is_word) {
        return Err("the name has letters, digits, - and _, at most 32".to_owned());
    }
    Ok((name.to_owned(), PathBuf::from(folder)))
}
