//! The protocol of `/dev/fuse` (7.31), as far as a file system that is only read needs it. What comes is
//! the kernel's, and parsed all the same.

use onym_repo::file::Listed;
use onym_sys::fuse::Owner;
use rustix::io::Errno;

/// The folder that is mounted.
pub(super) const ROOT: u64 = 1;
/// Room for a request, which carries a name or a list of nodes.
pub(super) const REQUEST_MAX: usize = 64 << 10;
/// Octets that are asked for in one read, at most.
pub(super) const READ_MAX: u32 = 128 << 10;

const IN_HEADER: usize = 40;
const VERSION: (u32, u32) = (7, 31);
/// Reads beside each other; look-ups in one folder beside each other.
const ASYNC_READ: u32 = 1;
const PARALLEL_DIROPS: u32 = 1 << 18;
/// Requests beyond those that somebody waits for, such as reading ahead.
const BACKGROUND: u16 = 16;
/// Nothing is written, but the kernel wants a number.
const WRITE_MAX: u32 = 4096;
/// What is known stays known so long, in seconds.
const VALID_S: u64 = 1;
const BLOCK: u32 = 4096;
const NAME_MAX: u32 = 255;
const FOLDER: u32 = 0o040_555;
const FILE: u32 = 0o100_444;
const EXECUTABLE: u32 = 0o111;

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    /// Its number; the answer has the same.
    pub(super) unique: u64,
    /// What it is about.
    pub(super) node: u64,
    pub(super) call: Call<'a>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Call<'a> {
    Init {
        major: u32,
        readahead: u32,
        flags: u32,
    },
    LookUp(&'a [u8]),
    /// Nodes, each with so many look-ups. Not answered.
    Forget(Vec<(u64, u64)>),
    Attributes,
    Open,
    OpenFolder,
    Read {
        offset: u64,
        size: u32,
    },
    ReadFolder {
        handle: u64,
        offset: u64,
        size: u32,
    },
    Release(u64),
    Space,
    /// The end, or what needs nothing done.
    Nothing,
    /// Not answered: each request has its own end.
    Interrupt,
    /// What this file system has not.
    Other,
}

fn word(octets: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(octets.get(at..at + 4)?.try_into().ok()?))
}

fn long(octets: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(octets.get(at..at + 8)?.try_into().ok()?))
}

impl<'a> Request<'a> {
    /// Reads one; `None` when it is not whole.
    pub(super) fn parse(octets: &'a [u8]) -> Option<Self> {
        let len = usize::try_from(word(octets, 0)?).ok()?;
        let body = octets.get(..len)?.get(IN_HEADER..)?;
        let (unique, node) = (long(octets, 8)?, long(octets, 16)?);
        let some = || Some((long(body, 0)?, long(body, 8)?, word(body, 16)?));
        let call = match word(octets, 4)? {
            26 => Call::Init {
                major: word(body, 0)?,
                readahead: word(body, 8).unwrap_or(0),
                flags: word(body, 12).unwrap_or(0),
            },
            1 => Call::LookUp(body.split(|b| *b == 0).next()?),
            2 => Call::Forget(vec![(node, long(body, 0)?)]),
            42 => Call::Forget(forgotten(body)?),
            3 => Call::Attributes,
            14 => Call::Open,
            27 => Call::OpenFolder,
            15 => some().map(|(_, offset, size)| Call::Read { offset, size })?,
            28 => some().map(|(handle, offset, size)| Call::ReadFolder { handle, offset, size })?,
            18 | 29 => Call::Release(long(body, 0)?),
            17 => Call::Space,
            // FLUSH, DESTROY
            25 | 38 => Call::Nothing,
            36 => Call::Interrupt,
            _ => Call::Other,
        };
        Some(Self { unique, node, call })
    }
}

fn forgotten(body: &[u8]) -> Option<Vec<(u64, u64)>> {
    let count = usize::try_from(word(body, 0)?).ok()?;
    let list = body.get(8..)?.chunks_exact(16).take(count);
    list.map(|one| Some((long(one, 0)?, long(one, 8)?))).collect()
}

/// An answer: its head, and what it says.
pub(super) fn answer(unique: u64, said: Result<Vec<u8>, Errno>) -> Vec<u8> {
    let (error, body) = match said {
        Ok(body) => (0, body),
        Err(errno) => (-errno.raw_os_error(), Vec::new()),
    };
    let len = u32::try_from(16 + body.len()).unwrap_or(u32::MAX);
    let mut out = Vec::with_capacity(16 + body.len());
    out.extend(len.to_ne_bytes());
    out.extend(error.to_ne_bytes());
    out.extend(unique.to_ne_bytes());
    out.extend(body);
    out
}

/// The answer to [`Call::Init`].
pub(super) fn init(major: u32, readahead: u32, flags: u32) -> Result<Vec<u8>, Errno> {
    if major < VERSION.0 {
        return Err(Errno::PROTO);
    }
    let mut out = Vec::new();
    let words = [VERSION.0, VERSION.1, readahead, flags & (ASYNC_READ | PARALLEL_DIROPS)];
    words.into_iter().for_each(|word| out.extend(word.to_ne_bytes()));
    // How many wait in the background, and when that is much.
    [BACKGROUND, BACKGROUND * 3 / 4].into_iter().for_each(|half| out.extend(half.to_ne_bytes()));
    out.extend(WRITE_MAX.to_ne_bytes());
    // Times are in nanoseconds.
    out.extend(1_u32.to_ne_bytes());
    out.resize(64, 0);
    Ok(out)
}

/// What is told of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Attributes {
    pub(super) node: u64,
    pub(super) is_folder: bool,
    pub(super) is_executable: bool,
    pub(super) size: u64,
    pub(super) mtime_ns: u64,
    pub(super) owner: Owner,
}

impl Attributes {
    fn write(&self, out: &mut Vec<u8>) {
        let (seconds, rest) = (self.mtime_ns / 1_000_000_000, self.mtime_ns % 1_000_000_000);
        let rest = u32::try_from(rest).unwrap_or(0);
        let blocks = self.size.div_ceil(512);
        for long in [self.node, self.size, blocks, seconds, seconds, seconds] {
            out.extend(long.to_ne_bytes());
        }
        let mode = match (self.is_folder, self.is_executable) {
            (true, _) => FOLDER,
            (false, true) => FILE | EXECUTABLE,
            (false, false) => FILE,
        };
        let links = if self.is_folder { 2 } else { 1 };
        for word in [rest, rest, rest, mode, links, self.owner.user, self.owner.group, 0, BLOCK, 0]
        {
            out.extend(word.to_ne_bytes());
        }
    }

    /// The answer to [`Call::Attributes`].
    pub(super) fn told(&self) -> Vec<u8> {
        let mut out = VALID_S.to_ne_bytes().to_vec();
        out.extend([0; 8]);
        self.write(&mut out);
        out
    }

    /// The answer to [`Call::LookUp`].
    pub(super) fn entry(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for long in [self.node, 0, VALID_S, VALID_S, 0] {
            out.extend(long.to_ne_bytes());
        }
        self.write(&mut out);
        out
    }
}

/// The answer to [`Call::Open`] and [`Call::OpenFolder`]; a file is of one version, so that the kernel
/// may keep what it has read of it.
pub(super) fn opened(handle: u64) -> Vec<u8> {
    const KEEP_CACHE: u32 = 2;
    let mut out = handle.to_ne_bytes().to_vec();
    out.extend(KEEP_CACHE.to_ne_bytes());
    out.extend([0; 4]);
    out
}

/// The answer to [`Call::Space`]: nothing is free, and nobody knows how much there is.
pub(super) fn space() -> Vec<u8> {
    let mut out = vec![0; 40];
    [BLOCK, NAME_MAX, BLOCK].into_iter().for_each(|word| out.extend(word.to_ne_bytes()));
    out.resize(80, 0);
    out
}

/// Adds a name to the answer of [`Call::ReadFolder`] if there is room in `size`; `next` is where the
/// reader goes on behind it.
pub(super) fn push_name(out: &mut Vec<u8>, size: u32, next: u64, one: &Listed) -> bool {
    /// A node that nobody has looked up.
    const UNKNOWN: u64 = 0xffff_ffff;
    let (room, len) = (usize::try_from(size).unwrap_or(0), 24 + one.name.len());
    if out.len() + len.next_multiple_of(8) > room {
        return false;
    }
    [UNKNOWN, next].into_iter().for_each(|long| out.extend(long.to_ne_bytes()));
    let kind = if one.is_folder { FOLDER } else { FILE } >> 12;
    let name_len = u32::try_from(one.name.len()).unwrap_or(0);
    [name_len, kind].into_iter().for_each(|word| out.extend(word.to_ne_bytes()));
    out.extend(&one.name);
    out.resize(out.len().next_multiple_of(8), 0);
    true
}

/// Whether a name can be one of a folder.
pub(super) fn is_short(name: &[u8]) -> bool {
    usize::try_from(NAME_MAX).is_ok_and(|max| name.len() <= max)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn request(opcode: u32, node: u64, body: &[u8]) -> Vec<u8> {
        let mut out = u32::try_from(IN_HEADER + body.len()).unwrap().to_ne_bytes().to_vec();
        out.extend(opcode.to_ne_bytes());
        out.extend(9_u64.to_ne_bytes());
        out.extend(node.to_ne_bytes());
        out.resize(IN_HEADER, 0);
        out.extend(body);
        out
    }

    #[test]
    fn requests_are_read_and_cut_ones_are_none() {
        let read: Vec<u8> = [3_u64, 4096, 8192].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let whole = request(15, 7, &read);
        let call = Call::Read { offset: 4096, size: 8192 };
        assert_eq!(Request::parse(&whole), Some(Request { unique: 9, node: 7, call }));
        for len in 0..whole.len() {
            assert_eq!(Request::parse(&whole[..len]), None, "{len}");
        }
        let name = request(1, 1, b"photos\0");
        assert_eq!(Request::parse(&name).unwrap().call, Call::LookUp(b"photos"));
        let many: Vec<u8> = [2_u64, 5, 1, 6, 2].iter().flat_map(|n| n.to_ne_bytes()).collect();
        let forget = request(42, 0, &many);
        assert_eq!(Request::parse(&forget).unwrap().call, Call::Forget(vec![(5, 1), (6, 2)]));
        assert_eq!(Request::parse(&request(16, 7, &[])).unwrap().call, Call::Other, "a write");
    }

    /// The lengths are those of the kernel's structures.
    #[test]
    fn answers_have_the_lengths_that_the_kernel_expects() {
        let attributes = Attributes {
            node: 2,
            is_folder: false,
            is_executable: true,
            size: 10,
            mtime_ns: 1_700_000_000_123_456_789,
            owner: Owner { user: 1, group: 2 },
        };
        assert_eq!(attributes.told().len(), 104);
        assert_eq!(attributes.entry().len(), 128);
        assert_eq!(init(7, 1 << 20, !0).unwrap().len(), 64);
        assert_eq!(init(6, 0, 0), Err(Errno::PROTO));
        assert_eq!((opened(1).len(), space().len()), (16, 80));
        let refused = answer(9, Err(Errno::NOENT));
        assert_eq!((refused.len(), &refused[4..8]), (16, &(-2_i32).to_ne_bytes()[..]));
        let mut out = Vec::new();
        let listed = |name: &[u8]| Listed { name: name.to_vec(), is_folder: true };
        assert!(push_name(&mut out, 64, 1, &listed(b"a")));
        assert_eq!(out.len(), 32);
        assert!(push_name(&mut out, 64, 2, &listed(b"12345678")));
        assert!(!push_name(&mut out, 64, 3, &listed(b"b")), "no room");
        assert_eq!(out.len(), 64);
    }
}
