//! What all commands about keys need: files of text, and failures of the key store.

use crate::exit::{Exit, Failure};
use anyhow::Context as _;
use std::io::Read as _;
use std::path::Path;

/// The text of a file, or of standard input for `-`.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin().lock().read_to_string(&mut text).context("cannot read standard input")?;
        return Ok(text);
    }
    let failed = |e: std::io::Error| {
        let exit = match e.kind() {
            std::io::ErrorKind::NotFound => Exit::NotFound,
            _ => Exit::Failed,
        };
        Failure::new(exit, format!("cannot read {}", path.display())).why(e)
    };
    Ok(std::fs::read_to_string(path).map_err(failed)?)
}

/// A failure of the key store as exit code and sentences.
pub(crate) fn failure(error: onym_crypto::Error) -> anyhow::Error {
    use onym_crypto::Error;
    let failure = Failure::new(
        if matches!(error, Error::NotFound(_)) { Exit::NotFound } else { Exit::Failed },
        error.to_string(),
    );
    match error {
        Error::NotFound(_) => {
            failure.next("`onym key list` lists the keys; `onym key new /NAME` creates one").into()
        }
        Error::Exists(_) => failure.next("choose another --id, or delete it first").into(),
        Error::Locked { .. } => failure
            .next("`onym key unlock NAME` opens it for a while, `onym key protect NAME --off` for good")
            .into(),
        Error::Stays => failure.next("who needs it elsewhere has another key made there").into(),
        Error::SafeBag(_) => failure.next("check the passphrase").into(),
        _ => failure.into(),
    }
}
