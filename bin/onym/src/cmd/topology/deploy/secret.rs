//! The key of a domain: made once, kept beside what is computed, in the configuration of each node.

use anyhow::Context as _;
use onym_crypto::edge;
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Where it is kept.
const FILE: &str = "domain.key";
/// Only its owner reads it.
const MODE: u32 = 0o600;

/// The key that the description says, which may be none; else that of the folder, made now where
/// there is none.
pub(super) fn key(said: Option<&str>, folder: &Path) -> anyhow::Result<String> {
    if let Some(said) = said {
        return Ok(said.to_owned());
    }
    let path = folder.join(FILE);
    let cannot = || format!("the key of the domain, {}", path.display());
    match std::fs::read_to_string(&path) {
        Ok(kept) if !kept.trim().is_empty() => return Ok(kept.trim().to_owned()),
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).with_context(cannot);
        }
        _ => {}
    }
    let key: String = (0..4).map(|_| format!("{:016x}", edge::random_u64())).collect();
    let mut file = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(MODE)
        .open(&path)
        .with_context(cannot)?;
    writeln!(file, "{key}").with_context(cannot)?;
    Ok(key)
}

/// A configuration with the key is for the user who made it, who hands it over.
pub(super) fn protect(path: &Path) -> anyhow::Result<()> {
    let mode = Permissions::from_mode(MODE);
    std::fs::set_permissions(path, mode).with_context(|| format!("{}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn a_key_is_made_once_for_a_folder_and_a_description_may_say_another_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let made = key(None, folder.path()).unwrap();
        assert!(made.len() == 64 && made.bytes().all(|b| b.is_ascii_hexdigit()), "{made}");
        assert_eq!(key(None, folder.path()).unwrap(), made, "the same when it is deployed again");
        let other = tempfile::tempdir().unwrap();
        assert_ne!(key(None, other.path()).unwrap(), made);
        assert_eq!(folder.path().join(FILE).metadata().unwrap().mode() & 0o777, MODE);
        for said in ["", "a secret"] {
            assert_eq!(key(Some(said), folder.path()).unwrap(), said);
        }
    }
}
