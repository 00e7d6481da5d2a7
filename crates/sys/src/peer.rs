//! Who is at the other end of a connection, as far as the kernel tells.
//!
//! Credentials of a Unix socket are those that the peer had when it connected; a token or a
//! certificate is what proves anything beyond this machine. What [`tcp_owner`] tells is good for
//! sharing places among users, not for rights: a reverse proxy connects for strangers.

use rustix::fd::{AsFd, AsRawFd};
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};

/// Groups of a peer that are looked at; the kernel allows 65,536.
const GROUPS_MAX: usize = 1024;
/// How much of `/etc/group` and `/proc/net/tcp` is read.
const TEXT_MAX: u64 = 4 << 20;
/// The user whom the kernel names when it cannot say who it is.
const OVERFLOW: u32 = 65_534;
/// Nobody's number: no process has it.
const UNKNOWN: u32 = u32::MAX;

/// The peer of a connected Unix socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Effective user; `u32::MAX` when it is one that this user namespace does not know.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// Supplementary groups, at most 1024.
    pub groups: Vec<u32>,
    /// Process, 0 when it is in another process namespace.
    pub pid: u32,
}

impl Credentials {
    /// Whether `gid` is the peer's group or one of its supplementary groups.
    #[must_use]
    pub fn in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}

/// Who may do everything at a door: root, the user of this process, and the members of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operators {
    uid: u32,
    group: Option<u32>,
}

impl Operators {
    /// Root, the user of this process and the members of the group called `group`, where
    /// `/etc/group` has it.
    #[must_use]
    pub fn of_group(group: &str) -> Self {
        Self { uid: own_uid(), group: group_id(group) }
    }

    /// The group, where there is one.
    #[must_use]
    pub fn group(&self) -> Option<u32> {
        self.group
    }

    /// Whether `peer` is one of them.
    #[must_use]
    pub fn include(&self, peer: &Credentials) -> bool {
        let by_user = peer.uid == 0 || peer.uid == self.uid;
        (by_user && peer.uid != UNKNOWN) || self.group.is_some_and(|gid| peer.in_group(gid))
    }
}

/// The effective user of this process.
#[must_use]
pub fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The number of a group in `/etc/group`; a static program has no other source of names.
#[must_use]
pub fn group_id(name: &str) -> Option<u32> {
    group_in(&text("/etc/group").ok()?, name)
}

fn group_in(text: &str, name: &str) -> Option<u32> {
    let fields = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    fields.filter(|f| f.len() >= 3 && f[0] == name).find_map(|f| f[2].parse().ok())
}

/// The peer of a connected Unix stream socket, as it was when it connected.
///
/// # Errors
/// As `getsockopt`; the socket is no connected Unix socket.
pub fn credentials(fd: impl AsFd) -> io::Result<Credentials> {
    let fd = fd.as_fd().as_raw_fd();
    let mut cred = libc::ucred { pid: 0, uid: UNKNOWN, gid: UNKNOWN };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the descriptor is open for the call; the kernel writes at most `len` octets of
    // `cred`, whose fields are integers, and the length.
    let rc = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut cred).cast(),
            &raw mut len,
        )
    };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    if cred.uid == UNKNOWN {
        return Err(io::ErrorKind::NotConnected.into());
    }
    let uid = if cred.uid == OVERFLOW && !knows_all_users() { UNKNOWN } else { cred.uid };
    let pid = u32::try_from(cred.pid).unwrap_or(0);
    Ok(Credentials { uid, gid: cred.gid, groups: groups(fd), pid })
}

/// Supplementary groups of the peer; none where the kernel does not tell (before 4.13), or when
/// they are more than [`GROUPS_MAX`].
fn groups(fd: i32) -> Vec<u32> {
    let mut groups: Vec<libc::gid_t> = vec![0; GROUPS_MAX];
    let mut len = size_of_val(groups.as_slice()) as libc::socklen_t;
    // SAFETY: the descriptor is open for the call; the kernel writes at most `len` octets of the
    // vector, which is ours alone, and the length.
    let rc = unsafe {
        libc::getsockopt(
            fd,
            libc::SOL_SOCKET,
            libc::SO_PEERGROUPS,
            groups.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    let told = if rc < 0 { 0 } else { len as usize / size_of::<libc::gid_t>() };
    groups.truncate(told);
    groups
}

/// Whether each user of the machine has a number in this user namespace; where not, all that have
/// none look like the user 65534.
fn knows_all_users() -> bool {
    let map = text("/proc/self/uid_map").unwrap_or_default();
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// The user whose process has the other end of the loopback connection from `peer` to `here`.
///
/// `None` when it is not on this machine, or nobody has it any more: the kernel gives an end that
/// was closed to root.
#[must_use]
pub fn tcp_owner(here: SocketAddr, peer: SocketAddr) -> Option<u32> {
    let (here, peer) = (plain(here), plain(peer));
    if !peer.ip().is_loopback() && peer.ip() != here.ip() {
        return None;
    }
    // A socket of IPv6 may carry a connection of IPv4; it is in the second list.
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .iter()
        .find_map(|list| owner_in(&text(list).ok()?, here, peer))
}

fn owner_in(list: &str, here: SocketAddr, peer: SocketAddr) -> Option<u32> {
    list.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (local, remote) = (address(fields.next()?)?, address(fields.next()?)?);
        if (local, remote) != (peer, here) {
            return None;
        }
        let uid = fields.nth(4)?.parse().ok()?;
        let inode: u64 = fields.nth(1)?.parse().ok()?;
        (inode != 0).then_some(uid)
    })
}

/// An address of `/proc/net/tcp`: words of 32 bits in the order of the machine, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(ip.get(at..at + 8)?, 16).ok();
    let ip = match ip.len() {
        8 => IpAddr::from(word(0)?.to_ne_bytes()),
        32 => {
            let mut octets = [0; 16];
            for (at, part) in octets.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at * 8)?.to_ne_bytes());
            }
            IpAddr::from(octets)
        }
        _ => return None,
    };
    Some(plain(SocketAddr::new(ip, port)))
}

/// An address of IPv4 as such, also when it is written as one of IPv6.
fn plain(at: SocketAddr) -> SocketAddr {
    SocketAddr::new(at.ip().to_canonical(), at.port())
}

fn text(path: &str) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(TEXT_MAX).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_peer_of_a_unix_socket_is_named_with_its_groups() {
        let (a, _b) = UnixStream::pair().unwrap();
        let peer = credentials(&a).unwrap();
        assert_eq!((peer.uid, peer.pid), (own_uid(), std::process::id()));
        assert!(peer.in_group(rustix::process::getegid().as_raw()));
        let own: Vec<u32> =
            rustix::process::getgroups().unwrap().iter().map(|gid| gid.as_raw()).collect();
        assert!(own.iter().all(|gid| peer.in_group(*gid)), "{peer:?}, {own:?}");
        assert!(credentials(std::net::UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
    }

    #[test]
    fn operators_are_root_the_own_user_and_a_group() {
        let peer =
            |uid, gid, groups: &[u32]| Credentials { uid, gid, groups: groups.to_vec(), pid: 1 };
        let ops = Operators { uid: 1000, group: Some(77) };
        assert!(ops.include(&peer(0, 0, &[])));
        assert!(ops.include(&peer(1000, 5, &[])));
        assert!(ops.include(&peer(1001, 77, &[])));
        assert!(ops.include(&peer(1001, 5, &[6, 77])));
        assert!(!ops.include(&peer(1001, 5, &[6])));
        let alone = Operators { uid: UNKNOWN, group: None };
        assert!(!alone.include(&peer(UNKNOWN, 77, &[77])));
    }

    #[test]
    fn a_group_is_found_by_its_whole_name() {
        let text = "root:x:0:\nonymous:x:7:\nbroken\nonym:x:998:a,b\n";
        assert_eq!(group_in(text, "onym"), Some(998));
        assert_eq!(group_in(text, "ony"), None);
        assert_eq!(group_in(text, "broken"), None);
    }

    #[test]
    fn the_user_of_a_loopback_connection_is_found_while_it_is_open() {
        for at in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(at) else {
                eprintln!("skipped: {at} is not there");
                continue;
            };
            let port = listener.local_addr().unwrap().port();
            let client = match at {
                "[::1]:0" => TcpStream::connect(("::1", port)).unwrap(),
                _ => TcpStream::connect(("127.0.0.1", port)).unwrap(),
            };
            let (server, peer) = listener.accept().unwrap();
            let here = server.local_addr().unwrap();
            assert_eq!(tcp_owner(here, peer), Some(own_uid()), "{at}");
            drop(client);
            // The kernel calls an end that nobody has root's.
            assert_eq!(tcp_owner(here, peer), None, "{at}");
        }
        let far: SocketAddr = "192.0.2.1:80".parse().unwrap();
        assert_eq!(tcp_owner("192.0.2.7:80".parse().unwrap(), far), None);
    }
}
