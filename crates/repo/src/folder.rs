//! A folder as the ndn6 file protocol has it: metadata, listings and segments of its files, made
//! when they are asked for.

use crate::file::{FILE, FOLDER, FileMetadata, LISTED_MAX, Listed, write_listing};
use crate::reply::{self, Made};
use onym_client::producer::{Answer, Incoming, Respond};
use onym_client::serve::ServeCounters;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::signer::Signer;
use onym_wire::NackReason;
use onym_wire::data::DataBuilder;
use onym_wire::name::{Component, Name, NameRef};
use rustix::fs::{Dir, FileType, Mode, OFlags, Stat, fstat, open, openat};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Files and listings that are kept open, at most; the one opened first gives way.
const OPEN_MAX: usize = 64;
/// Folders in folders, at most.
const DEPTH_MAX: usize = 64;
/// Entries of a folder that are looked at for a listing, at most.
const LOOKED_MAX: usize = 2 * LISTED_MAX;

/// How long what stands is taken to stand on, at most, in milliseconds.
const STANDS_MAX_MS: u64 = 60_000;
/// The same of playlists.
const PLAYLIST_STANDS_MAX_MS: u64 = 1000;

/// How long caches take the metadata of a file as fresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// For the one who asks: a change is seen at once.
    Asked,
    /// As long as the file has stood unchanged, a minute at most; a playlist a quarter of that, a
    /// second at most. However many ask for a file, few of them are asked on.
    Standing,
}

impl Freshness {
    /// Milliseconds for the file `name` that changed `age_ms` ago.
    fn of(self, name: &[u8], age_ms: u64) -> u64 {
        match self {
            Self::Asked => 1,
            Self::Standing if is_playlist(name) => (age_ms / 4).clamp(1, PLAYLIST_STANDS_MAX_MS),
            Self::Standing => age_ms.clamp(1, STANDS_MAX_MS),
        }
    }
}

/// Whether a file is written again and again while a stream is made.
fn is_playlist(name: &[u8]) -> bool {
    name.ends_with(b".m3u8") || name.ends_with(b".mpd")
}

/// What an open name has.
#[derive(Debug)]
enum Content {
    File(File),
    Listing(Vec<u8>),
}

/// A responder over a folder.
///
/// Symbolic links are not followed. What is neither file nor folder does not exist here, nor does a
/// file that another user may have linked to (`is_lent`). A file that changes gets another version,
/// and requests for the old one are refused: segments of two states of a file are never mixed.
#[derive(Debug)]
pub struct FolderAnswers {
    root: OwnedFd,
    prefix: Name,
    signer: Signer,
    segment_size: u64,
    freshness: Freshness,
    open: VecDeque<(Name, Content)>,
    counters: Arc<ServeCounters>,
}

/// What is at a path.
struct Found {
    fd: OwnedFd,
    stat: Stat,
}

impl FolderAnswers {
    /// Serves `folder` under `prefix`, `segment_size` octets (1 to 8192) in a segment.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn new(folder: &Path, prefix: Name, signer: Signer, segment_size: u16) -> io::Result<Self> {
        let root =
            open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let segment_size = u64::from(segment_size.clamp(1, 8192));
        let (freshness, open, counters) = (Freshness::Asked, VecDeque::new(), Arc::default());
        Ok(Self { root, prefix, signer, segment_size, freshness, open, counters })
    }

    /// With metadata of files that are fresh for as long as `freshness` says.
    #[must_use]
    pub fn with_freshness(self, freshness: Freshness) -> Self {
        Self { freshness, ..self }
    }

    /// What was sent, as it is counted.
    #[must_use]
    pub fn counters(&self) -> Arc<ServeCounters> {
        Arc::clone(&self.counters)
    }

    fn answer(&mut self, incoming: &Incoming, out: &mut Vec<u8>) -> io::Result<Answer> {
        let interest = incoming.interest();
        let name = interest.name;
        let Some(rest) = name.strip_prefix(self.prefix.as_ref()) else {
            return Ok(Answer::Nack(NackReason::NONE));
        };
        let rest: Vec<Component<'_>> = rest.components().collect();
        match rest.as_slice() {
            [path @ .., ls, metadata]
                if interest.can_be_prefix && is_listing(ls) && metadata.is_keyword(b"metadata") =>
            {
                self.metadata(name, path, true, out)
            }
            [path @ .., metadata] if interest.can_be_prefix && metadata.is_keyword(b"metadata") => {
                self.metadata(name, path, false, out)
            }
            [path @ .., version, segment] => match (version.as_version(), segment.as_segment()) {
                (Some(version), Some(segment)) => self.segment(name, path, version, segment, out),
                _ => Ok(Answer::Nack(NackReason::NONE)),
            },
            _ => Ok(Answer::Nack(NackReason::NONE)),
        }
    }

    /// Opens what is at `path`, one component after the other, so that no link leads elsewhere.
    fn find(&self, path: &[Component<'_>]) -> io::Result<Option<Found>> {
        if path.len() > DEPTH_MAX || !path.iter().all(is_plain) {
            return Ok(None);
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut fd = openat(&self.root, ".", flags | OFlags::DIRECTORY, Mode::empty())?;
        let mut folder = None;
        for (at, component) in path.iter().enumerate() {
            let inner = at + 1 < path.len();
            if !inner {
                folder = Some(fstat(&fd)?);
            }
            let flags = if inner { flags | OFlags::DIRECTORY } else { flags };
            fd = match openat(&fd, component.value, flags, Mode::empty()) {
                Ok(fd) => fd,
                Err(errno) if is_absence(errno) => return Ok(None),
                Err(errno) => return Err(errno.into()),
            };
        }
        let stat = fstat(&fd)?;
        Ok(folder.is_none_or(|folder| !is_lent(&stat, &folder)).then_some(Found { fd, stat }))
    }

    fn metadata(
        &mut self,
        asked: NameRef<'_>,
        path: &[Component<'_>],
        of_listing: bool,
        out: &mut Vec<u8>,
    ) -> io::Result<Answer> {
        let found = self.find(path)?;
        let kind = found.as_ref().map(|found| FileType::from_raw_mode(found.stat.st_mode));
        let (Some(found), Some(kind)) = (found, kind) else {
            return Ok(reply::nothing(&self.signer, asked, 1, out));
        };
        let mut versioned = self.prefix.clone();
        for component in path {
            versioned.append_generic(component.value);
        }
        let stat = &found.stat;
        let mut made = Made::at(unix_now_ms());
        let mut metadata = FileMetadata {
            mtime_ns: mtime_ns(stat),
            ctime_ns: Some(nanoseconds(stat.st_ctime, stat.st_ctime_nsec)),
            ..FileMetadata::default()
        };
        match kind {
            FileType::RegularFile if !of_listing => {
                let size = u64::try_from(stat.st_size).unwrap_or(0);
                versioned.append_version(metadata.mtime_ns);
                metadata.mode = FILE | u64::from(stat.st_mode & 0o777);
                metadata.last_segment = Some(self.last_segment(size));
                metadata.segment_size = Some(self.segment_size);
                metadata.size = Some(size);
                // A file that is moved here changes now, whatever it says of its content.
                let changed_ns = metadata.mtime_ns.max(metadata.ctime_ns.unwrap_or(0));
                let age_ms = made.now_ms.saturating_sub(changed_ns / 1_000_000);
                let file = path.last().map_or(&b""[..], |component| component.value);
                made.freshness_ms = self.freshness.of(file, age_ms);
                self.keep(versioned.clone(), Content::File(File::from(found.fd)));
            }
            FileType::Directory => {
                versioned.append_keyword("ls").append_version(metadata.mtime_ns);
                metadata.mode = FOLDER | u64::from(stat.st_mode & 0o777);
                let listing = listing(found.fd)?;
                self.keep(versioned.clone(), Content::Listing(listing));
            }
            _ => return Ok(reply::nothing(&self.signer, asked, 1, out)),
        }
        metadata.name = versioned;
        Ok(reply::metadata(&self.signer, asked, made, &metadata, out))
    }

    fn last_segment(&self, size: u64) -> u64 {
        size.div_ceil(self.segment_size).saturating_sub(1)
    }

    fn keep(&mut self, versioned: Name, content: Content) {
        self.open.retain(|(name, _)| *name != versioned);
        if self.open.len() >= OPEN_MAX {
            self.open.pop_front();
        }
        self.open.push_back((versioned, content));
    }

    fn segment(
        &mut self,
        name: NameRef<'_>,
        path: &[Component<'_>],
        version: u64,
        segment: u64,
        out: &mut Vec<u8>,
    ) -> io::Result<Answer> {
        let nothing = Ok(Answer::Nack(NackReason::NONE));
        let versioned = name.drop_last(1);
        let is_asked = |(open, _): &(Name, Content)| open.as_ref() == versioned;
        if !self.open.iter().any(is_asked) {
            // Its metadata was asked for long ago, or of another server of the same folder.
            let of_listing = path.last().is_some_and(is_listing);
            let path = if of_listing { &path[..path.len() - 1] } else { path };
            let Some(found) = self.find(path)? else { return nothing };
            let kind = FileType::from_raw_mode(found.stat.st_mode);
            let content = match kind {
                _ if mtime_ns(&found.stat) != version => return nothing,
                FileType::Directory if of_listing => Content::Listing(listing(found.fd)?),
                FileType::RegularFile if !of_listing => Content::File(File::from(found.fd)),
                _ => return nothing,
            };
            self.keep(versioned.to_name(), content);
        }
        let Some((_, content)) = self.open.iter().find(|open| is_asked(open)) else {
            return nothing;
        };
        match content {
            Content::Listing(listing) => {
                Ok(reply::segment_of(name, segment, listing, &self.signer, out))
            }
            Content::File(file) => {
                let read = self.read(file, version, segment)?;
                let Some((content, last)) = read else { return nothing };
                let mut end = Name::new();
                end.append_segment(last);
                let data = DataBuilder {
                    final_block_id: end.as_ref().last(),
                    ..DataBuilder::new(name, &content)
                };
                Ok(reply::signed(&self.signer, &data, out))
            }
        }
    }

    /// The octets of a segment and the number of the last one, if `file` is still of `version`
    /// after they were read.
    fn read(&self, file: &File, version: u64, segment: u64) -> io::Result<Option<(Vec<u8>, u64)>> {
        let size = u64::try_from(fstat(file)?.st_size).unwrap_or(0);
        let last = self.last_segment(size);
        if segment > last {
            return Ok(None);
        }
        let offset = segment * self.segment_size;
        let len = self.segment_size.min(size - offset);
        let mut content = vec![0; usize::try_from(len).unwrap_or(0)];
        match file.read_exact_at(&mut content, offset) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        Ok((mtime_ns(&fstat(file)?) == version).then_some((content, last)))
    }
}

/// Whether a component can be the name of a file: no way out of the folder.
fn is_plain(component: &Component<'_>) -> bool {
    component.is_generic()
        && !matches!(component.value, b"" | b"." | b"..")
        && !component.value.iter().any(|octet| matches!(octet, 0 | b'/'))
}

/// Whether a file may be in `folder` only because somebody who may write there linked to it: it has
/// several links, and others than its owner may write the folder.
fn is_lent(file: &Stat, folder: &Stat) -> bool {
    let is_others = folder.st_uid != file.st_uid || folder.st_mode & 0o022 != 0;
    FileType::from_raw_mode(file.st_mode) == FileType::RegularFile && file.st_nlink > 1 && is_others
}

fn is_listing(component: &Component<'_>) -> bool {
    component.is_keyword(b"ls")
}

/// Whether an error says that there is nothing to be served.
fn is_absence(errno: rustix::io::Errno) -> bool {
    use rustix::io::Errno;
    // A link (LOOP), a socket (NXIO), a name that is too long, what this user may not read.
    [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::NXIO, Errno::NAMETOOLONG, Errno::ACCESS]
        .contains(&errno)
}

fn nanoseconds(seconds: impl TryInto<u64>, part: impl TryInto<u64>) -> u64 {
    let seconds: u64 = seconds.try_into().unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(part.try_into().unwrap_or(0))
}

fn mtime_ns(stat: &Stat) -> u64 {
    nanoseconds(stat.st_mtime, stat.st_mtime_nsec)
}

/// The files and folders in `folder`; nothing else is listed.
fn listing(folder: OwnedFd) -> io::Result<Vec<u8>> {
    let mut listed = Vec::new();
    for entry in Dir::new(folder)?.take(LOOKED_MAX) {
        let entry = entry?;
        let name = entry.file_name().to_bytes().to_vec();
        let is_folder = match entry.file_type() {
            FileType::Directory => true,
            FileType::RegularFile => false,
            _ => continue,
        };
        if !matches!(name.as_slice(), b"." | b"..") {
            listed.push(Listed { name, is_folder });
        }
    }
    Ok(write_listing(listed))
}

impl Respond for FolderAnswers {
    fn respond(&mut self, incoming: &Incoming, out: &mut Vec<u8>) -> Answer {
        let answer = self.answer(incoming, out).unwrap_or_else(|error| {
            tracing::warn!(name = %incoming.interest().name, %error, "file-unavailable");
            Answer::Nack(NackReason::NONE)
        });
        let last = incoming.interest().name.last();
        let counter = match &answer {
            Answer::Nack(_) => &self.counters.refused,
            _ if last.is_some_and(|c| c.is_keyword(b"metadata")) => &self.counters.metadata,
            _ => &self.counters.segments,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Law: what has stood for a time is fresh for as long, so that the questions about a file grow
    /// with the logarithm of its age and not with who asks; what is written again and again is seen
    /// changed soon.
    #[test]
    fn what_stands_is_fresh_for_as_long_as_it_has_stood() {
        for (name, age_ms, freshness_ms) in [
            (&b"chunk-1.m4s"[..], 0, 1),
            (b"chunk-1.m4s", 100, 100),
            (b"chunk-1.m4s", 86_400_000, 60_000),
            (b"live.m3u8", 3, 1),
            (b"live.m3u8", 1000, 250),
            (b"manifest.mpd", 86_400_000, 1000),
        ] {
            assert_eq!(Freshness::Standing.of(name, age_ms), freshness_ms);
            assert_eq!(Freshness::Asked.of(name, age_ms), 1);
        }
    }
}
