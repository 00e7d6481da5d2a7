//! A backup as octets: a tar archive (ustar) of regular files, the first one saying what it is, the
//! last one with the digest of each before it. `tar tf` lists it. What is read may come from
//! anybody: nothing but regular files with plain relative paths, each once, within the bounds, and
//! nothing is believed before its digest was seen.

use onym_crypto::Sha256;
use onym_crypto::digest::hex;
use std::collections::HashSet;
use std::io::{self, Read, Write};

/// Name of the last file.
pub(in crate::cmd) const SUMS: &str = "SHA256SUMS";
/// Most files.
const FILES_MAX: usize = 100_000;
/// Longest path, in octets, and most components of it.
const PATH_MAX: usize = 240;
const DEPTH_MAX: usize = 16;
/// Longest list of digests, in octets: what the most files with the longest paths have.
const SUMS_MAX: u64 = (FILES_MAX * (PATH_MAX + 67)) as u64;
const BLOCK: usize = 512;
const CHUNK: usize = 64 << 10;

/// Why an archive is not taken.
#[derive(Debug, thiserror::Error)]
pub(in crate::cmd) enum Fault {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("it is not a backup: {0}")]
    Foreign(String),
    #[error("{path:?} {what}")]
    Entry { path: String, what: &'static str },
    #[error("it ends early: the list of digests is missing")]
    CutOff,
}

fn entry(path: &str, what: &'static str) -> Fault {
    Fault::Entry { path: path.to_owned(), what }
}

/// Whether `path` is one that an archive may have.
fn check(path: &str) -> Result<(), Fault> {
    let is_plain = |part: &str| {
        !part.is_empty() && part != "." && part != ".." && !part.contains(['\0', '\\', '\n'])
    };
    if path.len() > PATH_MAX || path.split('/').count() > DEPTH_MAX {
        return Err(entry(path, "has too long a path"));
    }
    if !path.split('/').all(is_plain) {
        return Err(entry(path, "would be written outside of its folder"));
    }
    Ok(())
}

/// Writes an archive.
pub(in crate::cmd) struct Writer<W: Write> {
    out: W,
    sums: String,
    files: usize,
    time: u64,
}

impl<W: Write> Writer<W> {
    pub(in crate::cmd) fn new(out: W, time: u64) -> Self {
        Self { out, sums: String::new(), files: 0, time }
    }

    /// Adds a file of exactly `size` octets.
    pub(in crate::cmd) fn add(
        &mut self,
        path: &str,
        mode: u32,
        size: u64,
        mut from: impl Read,
    ) -> Result<(), Fault> {
        check(path)?;
        self.files += 1;
        if self.files > FILES_MAX {
            return Err(entry(path, "is one file too many"));
        }
        self.out.write_all(&header(path, mode, size, self.time)?)?;
        let mut sum = Sha256::new();
        let mut chunk = [0; CHUNK];
        let mut left = size;
        while left > 0 {
            let want = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            let got = from.read(&mut chunk[..want])?;
            if got == 0 {
                return Err(entry(path, "became shorter while it was read"));
            }
            sum.update(&chunk[..got]);
            self.out.write_all(&chunk[..got])?;
            left -= got as u64;
        }
        if from.read(&mut chunk[..1])? != 0 {
            return Err(entry(path, "grew while it was read"));
        }
        self.out.write_all(&[0; BLOCK][..padding(size)])?;
        self.sums.push_str(&format!("{}  {path}\n", hex(&sum.finish())));
        Ok(())
    }

    /// Ends the archive.
    pub(in crate::cmd) fn finish(mut self) -> Result<W, Fault> {
        let sums = std::mem::take(&mut self.sums);
        self.out.write_all(&header(SUMS, 0o600, sums.len() as u64, self.time)?)?;
        self.out.write_all(sums.as_bytes())?;
        self.out.write_all(&[0; BLOCK][..padding(sums.len() as u64)])?;
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn padding(size: u64) -> usize {
    (BLOCK - (size % BLOCK as u64) as usize) % BLOCK
}

/// The ustar header of a regular file.
fn header(path: &str, mode: u32, size: u64, time: u64) -> Result<[u8; BLOCK], Fault> {
    let (prefix, name) = split(path).ok_or_else(|| entry(path, "has too long a name"))?;
    let mut block = [0; BLOCK];
    let mut put =
        |at: usize, text: &str| block[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, &format!("{:07o}", mode & 0o777));
    put(108, "0000000");
    put(116, "0000000");
    let size = match size {
        0..0o100_000_000_000 => format!("{size:011o}"),
        _ => return Err(entry(path, "has 8 GiB or more")),
    };
    put(124, &size);
    put(136, &format!("{:011o}", time & 0o77_777_777_777));
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    put(345, prefix);
    let sum: u32 = block.iter().map(|&b| u32::from(b)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    Ok(block)
}

/// A path in the two fields that there are for it.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= 100 {
        return Some(("", path));
    }
    path.match_indices('/')
        .map(|(at, _)| (&path[..at], &path[at + 1..]))
        .find(|(prefix, name)| prefix.len() <= 155 && name.len() <= 100)
}

/// A file of an archive, before its octets.
#[derive(Debug)]
pub(in crate::cmd) struct Entry {
    pub(in crate::cmd) path: String,
    pub(in crate::cmd) mode: u32,
    pub(in crate::cmd) size: u64,
}

/// Reads an archive, file by file; [`Reader::finish`] says whether all of it was whole.
pub(in crate::cmd) struct Reader<R: Read> {
    from: R,
    bytes_max: u64,
    seen: HashSet<String>,
    sums: String,
    is_over: bool,
}

impl<R: Read> Reader<R> {
    /// Takes at most `bytes_max` octets of files.
    pub(in crate::cmd) fn new(from: R, bytes_max: u64) -> Self {
        Self { from, bytes_max, seen: HashSet::new(), sums: String::new(), is_over: false }
    }

    /// The next file; its octets are read by [`Reader::copy`] before the next call.
    pub(in crate::cmd) fn next(&mut self) -> Result<Option<Entry>, Fault> {
        let mut block = [0; BLOCK];
        self.from.read_exact(&mut block).map_err(early)?;
        let found = parse(&block)?;
        if found.path == SUMS {
            self.is_over = true;
            self.end(found.size)?;
            return Ok(None);
        }
        check(&found.path)?;
        if self.seen.len() >= FILES_MAX {
            return Err(entry(&found.path, "is one file too many"));
        }
        if !self.seen.insert(found.path.clone()) {
            return Err(entry(&found.path, "is there twice"));
        }
        self.bytes_max = self
            .bytes_max
            .checked_sub(found.size)
            .ok_or_else(|| entry(&found.path, "is more than may be restored (--size-max)"))?;
        Ok(Some(found))
    }

    /// The octets of the file that [`Reader::next`] told last.
    pub(in crate::cmd) fn copy(&mut self, found: &Entry, to: &mut dyn Write) -> Result<(), Fault> {
        let mut sum = Sha256::new();
        let mut chunk = [0; CHUNK];
        let mut left = found.size;
        while left > 0 {
            let want = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            self.from.read_exact(&mut chunk[..want]).map_err(early)?;
            sum.update(&chunk[..want]);
            to.write_all(&chunk[..want])?;
            left -= want as u64;
        }
        self.from.read_exact(&mut chunk[..padding(found.size)]).map_err(early)?;
        self.sums.push_str(&format!("{}  {}\n", hex(&sum.finish()), found.path));
        Ok(())
    }

    fn end(&mut self, size: u64) -> Result<(), Fault> {
        if size > SUMS_MAX {
            return Err(entry(SUMS, "is too long"));
        }
        let mut sums = String::new();
        (&mut self.from).take(size).read_to_string(&mut sums)?;
        if sums.len() as u64 != size {
            return Err(Fault::CutOff);
        }
        let differing = sums.lines().zip(self.sums.lines()).find(|(a, b)| a != b);
        if let Some((_, ours)) = differing {
            let path = ours.split_once("  ").map_or(ours, |(_, path)| path);
            return Err(entry(path, "is damaged: its digest is another one"));
        }
        if sums != self.sums {
            return Err(entry(SUMS, "names other files than there are"));
        }
        Ok(())
    }

    /// Whether the end was seen.
    pub(in crate::cmd) fn finish(self) -> Result<(), Fault> {
        if self.is_over { Ok(()) } else { Err(Fault::CutOff) }
    }
}

fn early(error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Fault::CutOff,
        _ => Fault::Io(error),
    }
}

fn parse(block: &[u8; BLOCK]) -> Result<Entry, Fault> {
    let foreign = |what: &str| Fault::Foreign(what.to_owned());
    if block.iter().all(|&b| b == 0) {
        return Err(Fault::CutOff);
    }
    if &block[257..262] != b"ustar" {
        return Err(foreign("it is no tar archive"));
    }
    let text = |from: usize, to: usize| {
        let field = &block[from..to];
        let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
        std::str::from_utf8(&field[..end]).map_err(|_| foreign("a path is not UTF-8"))
    };
    let number = |from: usize, to: usize| {
        let digits = text(from, to)?.trim();
        u64::from_str_radix(digits, 8).map_err(|_| foreign("a number is not octal"))
    };
    let sum: u64 = block.iter().map(|&b| u64::from(b)).sum();
    let own: u64 = block[148..156].iter().map(|&b| u64::from(b)).sum();
    if number(148, 156)? != sum - own + 8 * u64::from(b' ') {
        return Err(foreign("the sum of a header is wrong"));
    }
    let (prefix, name) = (text(345, 500)?, text(0, 100)?);
    let path = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
    if !matches!(block[156], b'0' | 0) {
        return Err(entry(
            &path,
            "is no regular file: links, folders and devices are not restored",
        ));
    }
    let mode = u32::try_from(number(100, 108)? & 0o777).unwrap_or(0o600);
    Ok(Entry { path, mode, size: number(124, 136)? })
}

#[cfg(test)]
mod tests;
