//! A file as segments, signed once and for all.

use onym_crypto::signer::Signer;
use onym_wire::data::DataBuilder;
use onym_wire::name::{Component, Name};
use onym_wire::tlv;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Folders in folders, at most.
const DEPTH_MAX: usize = 32;

/// How segments are made.
#[derive(Debug)]
pub struct AddOptions {
    /// Octets of content in a segment.
    pub segment_size: usize,
    /// FreshnessPeriod in milliseconds.
    pub freshness_ms: u64,
    /// Who signs.
    pub signer: Signer,
}

/// Makes the segments of `name/v=version` from `size` octets of `from`, and gives each to `take`.
///
/// # Errors
/// Those of `from`, `take` and the signer; `InvalidInput` when `from` does not have `size` octets.
pub fn segments(
    name: &Name,
    version: u64,
    size: u64,
    from: &mut dyn Read,
    options: &AddOptions,
    take: &mut dyn FnMut(Vec<u8>) -> io::Result<()>,
) -> io::Result<u64> {
    let per_segment = options.segment_size.max(1) as u64;
    let last = size.div_ceil(per_segment).saturating_sub(1);
    let mut name = name.clone();
    name.append_version(version);
    let mut number = [0; 8];
    let all = last.to_be_bytes();
    let len = tlv::nni_len(last);
    number[..len].copy_from_slice(&all[8 - len..]);
    let final_block = Component { typ: 50, value: &number[..len] };
    let mut content = Vec::new();
    for segment in 0..=last {
        let want = per_segment.min(size - segment * per_segment);
        content.clear();
        if from.take(want).read_to_end(&mut content)? as u64 != want {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it became shorter"));
        }
        name.append_segment(segment);
        let data = DataBuilder {
            freshness_ms: options.freshness_ms,
            final_block_id: Some(final_block),
            ..DataBuilder::new(name.as_ref(), &content)
        };
        let mut packet = Vec::with_capacity(content.len() + 200);
        options.signer.sign_data(&data, &mut packet).map_err(io::Error::other)?;
        name.pop();
        take(packet)?;
    }
    Ok(last + 1)
}

/// The regular files at and below `path`, each with its name below `name`. Links are not followed.
///
/// # Errors
/// Those of the operating system.
pub fn files(path: &Path, name: &Name) -> io::Result<Vec<(PathBuf, Name)>> {
    let mut files = Vec::new();
    walk(path, name, &mut files, 0)?;
    Ok(files)
}

fn walk(
    path: &Path,
    name: &Name,
    files: &mut Vec<(PathBuf, Name)>,
    depth: usize,
) -> io::Result<()> {
    let kind = if depth == 0 { fs::metadata(path)? } else { fs::symlink_metadata(path)? };
    if kind.is_file() {
        files.push((path.to_path_buf(), name.clone()));
    }
    if kind.is_dir() && depth < DEPTH_MAX {
        let mut entries = fs::read_dir(path)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let mut below = name.clone();
            below.append_generic(entry.file_name().as_encoded_bytes());
            walk(&entry.path(), &below, files, depth + 1)?;
        }
    }
    Ok(())
}

/// Makes the segments of the file `path`; its version is the time of its last change.
///
/// # Errors
/// Those of [`segments`], and of the operating system.
pub fn segments_of_file(
    path: &Path,
    name: &Name,
    options: &AddOptions,
    take: &mut dyn FnMut(Vec<u8>) -> io::Result<()>,
) -> io::Result<()> {
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    let changed = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
    let version = u64::try_from(changed.as_nanos()).unwrap_or(u64::MAX);
    let mut from = BufReader::with_capacity(256 << 10, file);
    segments(name, version, metadata.len(), &mut from, options, take)?;
    Ok(())
}
