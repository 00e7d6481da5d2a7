//! Invitations of a network on disk: one small file each, which is deleted when its token was used.

use onym_crypto::digest::hex;
use onym_crypto::sha256;
use onym_ndncert::Invitation;
use onym_wire::Name;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The folder within that of a network.
const FOLDER: &str = "invitations";
/// Invitations that are open at a time, at most.
pub(crate) const OPEN_MAX: usize = 1024;
/// Longest file, in octets.
const FILE_MAX: u64 = 4096;
/// The folder is read so often at most.
const READ_EVERY: Duration = Duration::from_millis(200);

/// The invitations of a network. Tokens are not kept, only their digests.
#[derive(Debug)]
pub(crate) struct Book {
    folder: PathBuf,
    read_at: Option<Instant>,
}

impl Book {
    /// The book in the folder of a network.
    pub(crate) fn new(network: &Path) -> Self {
        Self { folder: network.join(FOLDER), read_at: None }
    }

    fn path(&self, digest: &[u8; 32]) -> PathBuf {
        self.folder.join(hex(digest))
    }

    /// Those that are open; nothing when they were read a moment ago.
    pub(crate) fn read(&mut self) -> io::Result<Option<Vec<Invitation>>> {
        if self.read_at.is_some_and(|at| at.elapsed() < READ_EVERY) {
            return Ok(None);
        }
        self.read_at = Some(Instant::now());
        self.open().map(Some)
    }

    /// Those that are open. A file that is no invitation is passed over.
    pub(crate) fn open(&self) -> io::Result<Vec<Invitation>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut found = Vec::new();
        for entry in entries.take(OPEN_MAX) {
            let path = entry?.path();
            let small = fs::metadata(&path).is_ok_and(|m| m.is_file() && m.len() <= FILE_MAX);
            if !small {
                continue;
            }
            let digest = path.file_name().and_then(|name| unhex(name.to_str()?));
            if let (Some(digest), Ok(text)) = (digest, fs::read_to_string(&path)) {
                found.extend(parse(&text, digest));
            }
        }
        Ok(found)
    }

    /// Writes a new one for `token`; those that ended before `now_s` make room.
    pub(crate) fn add(
        &self,
        identity: &Name,
        token: &[u8],
        until_s: u64,
        now_s: u64,
    ) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        for over in self.open()?.iter().filter(|invitation| invitation.until_s < now_s) {
            fs::remove_file(self.path(&over.digest))?;
        }
        if fs::read_dir(&self.folder)?.count() >= OPEN_MAX {
            return Err(io::Error::other(format!(
                "{OPEN_MAX} invitations are open: delete some in {}",
                self.folder.display()
            )));
        }
        let path = self.path(&sha256(&[token]));
        let mut file =
            fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(format!("identity: {identity}\nuntil: {until_s}\n").as_bytes())?;
        file.sync_all()
    }

    /// Strikes one out for good.
    pub(crate) fn strike(&mut self, invitation: &Invitation) -> io::Result<()> {
        self.read_at = None;
        fs::remove_file(self.path(&invitation.digest))?;
        fs::File::open(&self.folder)?.sync_all()
    }
}

fn parse(text: &str, digest: [u8; 32]) -> Option<Invitation> {
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    let identity = value("identity: ")?.parse().ok()?;
    Some(Invitation { identity, digest, until_s: value("until: ")?.parse().ok()? })
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (octet, pair) in out.iter_mut().zip(text.as_bytes().chunks(2)) {
        *octet = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invitation_is_on_disk_until_it_is_struck_out_and_its_token_never() {
        let dir = tempfile::tempdir().unwrap();
        let mut book = Book::new(dir.path());
        assert!(book.open().unwrap().is_empty());
        let identity: Name = "/net/b/32=DV".parse().unwrap();
        book.add(&identity, b"one-that-ended", 1_700_000_000, 1_699_999_999).unwrap();
        book.add(&identity, b"a-token-of-some-length", 1_800_000_000, 1_700_000_001).unwrap();
        let folder = dir.path().join(FOLDER);
        fs::write(folder.join("notes"), "not an invitation").unwrap();
        let open = book.read().unwrap().unwrap();
        assert_eq!(open.len(), 1);
        assert_eq!((&open[0].identity, open[0].until_s), (&identity, 1_800_000_000));
        assert_eq!(open[0].digest, sha256(&[b"a-token-of-some-length"]));
        for entry in fs::read_dir(&folder).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            assert!(!text.contains("a-token"), "{text}");
        }
        book.strike(&open[0]).unwrap();
        assert!(book.open().unwrap().is_empty());
        assert!(book.strike(&open[0]).is_err(), "it cannot be struck out twice");
    }
}
