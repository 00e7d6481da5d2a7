//! Opening a store with what the file `repo.toml` in its folder says: the bucket of its full segments.

use crate::exit::{Exit, Failure};
use crate::human;
use anyhow::Context as _;
use onym_store::{Afar, Bounds, Error, Folder, Options, Store};
use serde::Deserialize;
use std::path::Path;

/// The file.
const FILE: &str = "repo.toml";
/// Octets of a segment that is to go to a bucket.
const SEGMENT: u64 = 64 << 20;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    repo: Repo,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Repo {
    /// Octets of the log that stay on this disk.
    here_max: Option<String>,
    /// Memory for what is read from the bucket.
    memory: Option<String>,
    /// Octets of a segment.
    segment: Option<String>,
    bucket: Option<toml::Value>,
}

/// Opens the store in `folder`, with its bucket where it has one.
pub(super) fn store(folder: &Path, bounds: Bounds) -> anyhow::Result<Store> {
    let what = || format!("cannot open the store {}", folder.display());
    let mut options = Options { bounds, ..Options::default() };
    let afar = configured(folder, &mut options)?;
    let disk = Folder::open(folder).with_context(what)?;
    Store::open_with(disk, afar.as_ref(), options).map_err(|error| match error {
        Error::Locked => Failure::new(Exit::Failed, what())
            .why("another process has it open and does not answer")
            .next("try again when it has ended")
            .into(),
        Error::Bucket(why) => Failure::new(Exit::Failed, what())
            .why(why)
            .next(format!("[repo.bucket] in {} says where it is", folder.join(FILE).display()))
            .into(),
        error => anyhow::Error::from(error).context(what()),
    })
}

/// The bucket that the file in `folder` names.
fn configured(folder: &Path, options: &mut Options) -> anyhow::Result<Option<Afar>> {
    let path = folder.join(FILE);
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let file: File = toml::from_str(&text).with_context(|| path.display().to_string())?;
    let size = |key: &str, text: &Option<String>, default: u64| match text {
        None => Ok(default),
        Some(text) => human::parse_size(text)
            .map_err(|why| anyhow::anyhow!("{}: repo.{key}: {why}", path.display())),
    };
    let Some(bucket) = file.repo.bucket else { return Ok(None) };
    let segment = size("segment", &file.repo.segment, SEGMENT)?;
    options.segment_octets = u32::try_from(segment).unwrap_or(u32::MAX);
    let afar = Afar::new(open(bucket, folder).with_context(|| path.display().to_string())?);
    let memory = size("memory", &file.repo.memory, afar.memory_octets as u64)?;
    Ok(Some(Afar {
        near_octets_max: size("here_max", &file.repo.here_max, afar.near_octets_max)?,
        memory_octets: usize::try_from(memory).unwrap_or(usize::MAX),
        ..afar
    }))
}

#[cfg(feature = "s3")]
fn open(
    bucket: toml::Value,
    folder: &Path,
) -> anyhow::Result<std::sync::Arc<dyn onym_store::Bucket>> {
    let settings: onym_bucket::Settings = bucket.try_into().context("repo.bucket")?;
    Ok(std::sync::Arc::new(onym_bucket::S3::open(&settings, folder)?))
}

#[cfg(not(feature = "s3"))]
fn open(_: toml::Value, _: &Path) -> anyhow::Result<std::sync::Arc<dyn onym_store::Bucket>> {
    anyhow::bail!("this program was built without S3: the packages have it, and `--features s3`")
}
