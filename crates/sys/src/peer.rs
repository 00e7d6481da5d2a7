//! Who is at the other end of a connection, as far as the kernel tells.
//!
//! Credentials of a Unix socket are those that the peer had when it connected, those of a loopback
//! TCP connection the user whose process has the other end; a token or a certificate is what
//! proves anything beyond this machine. A reverse proxy has its own user and connects for
//! strangers: a door that goes by users also looks at what [`crate::origin`] tells apart.

use rustix::fd::{AsFd, AsRawFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink};
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

/// The user whose process has the other end of a loopback TCP connection.
///
/// `None` when it is not on this machine, or nobody has it any more. As long as this end is
/// connected no other socket can have the addresses of the other end, so who is found has it.
#[must_use]
pub fn tcp_user(fd: impl AsFd) -> Option<u32> {
    let here = SocketAddr::try_from(rustix::net::getsockname(&fd).ok()?).ok()?;
    let peer = rustix::net::getpeername(&fd).ok()??;
    let uid = owner_of(here, SocketAddr::try_from(peer).ok()?)?;
    is_connected(fd).then_some(uid)
}

/// Whether a TCP socket has its connection still: established, or the peer will send no more.
fn is_connected(fd: impl AsFd) -> bool {
    const ESTABLISHED: u8 = 1;
    const CLOSE_WAIT: u8 = 8;
    let mut state = 0_u8;
    let mut len: libc::socklen_t = 1;
    // SAFETY: the descriptor is open for the call; the kernel writes at most `len` octets of its
    // answer, whose first one is the state, to `state`, and the length.
    let rc = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut state).cast(),
            &raw mut len,
        )
    };
    rc == 0 && matches!(state, ESTABLISHED | CLOSE_WAIT)
}

/// Who has the socket that is connected from `peer` to `here`.
fn owner_of(here: SocketAddr, peer: SocketAddr) -> Option<u32> {
    let (here, peer) = (plain(here), plain(peer));
    if !peer.ip().is_loopback() && peer.ip() != here.ip() {
        return None;
    }
    ask(here, peer).unwrap_or_else(|_| {
        // A socket of IPv6 may carry a connection of IPv4; it is in the second list.
        ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
            .iter()
            .find_map(|list| listed(&text(list).ok()?, here, peer))
    })
}

/// Asks the kernel about one socket (`sock_diag`), whatever their number.
fn ask(here: SocketAddr, peer: SocketAddr) -> io::Result<Option<u32>> {
    const BY_FAMILY: u16 = 20;
    const REQUEST: u16 = 1;
    let family = match peer.ip() {
        IpAddr::V4(_) => AddressFamily::INET,
        IpAddr::V6(_) => AddressFamily::INET6,
    };
    let mut message = Vec::with_capacity(72);
    message.extend(72_u32.to_ne_bytes());
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    message.extend([0; 8]);
    message.extend([family.as_raw() as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    message.extend(u32::MAX.to_ne_bytes());
    message.extend(peer.port().to_be_bytes());
    message.extend(here.port().to_be_bytes());
    message.extend(words(peer.ip()));
    message.extend(words(here.ip()));
    message.extend([0; 4]);
    // No cookie: whichever socket has these addresses.
    message.extend([0xff; 8]);
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        flags,
        Some(netlink::SOCK_DIAG),
    )?;
    let kernel = netlink::SocketAddrNetlink::new(0, 0);
    rustix::net::sendto(&socket, &message, rustix::net::SendFlags::empty(), &kernel)?;
    let mut answer = [0_u8; 1024];
    let (len, _) = rustix::net::recv(&socket, &mut answer[..], rustix::net::RecvFlags::DONTWAIT)?;
    answered(answer.get(..len).unwrap_or_default())
}

/// The owner in an answer of `sock_diag`; none when there is no such socket, or nobody has it: the
/// kernel gives an end that was closed to root.
fn answered(answer: &[u8]) -> io::Result<Option<u32>> {
    const ERROR: u16 = 2;
    const CONNECTED: std::ops::RangeInclusive<u8> = 1..=9;
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let octets = |at: usize| answer.get(at..at + 4).and_then(|o| o.try_into().ok());
    let word = |at: usize| octets(at).map(u32::from_ne_bytes).ok_or_else(short);
    if (word(4)? & 0xffff) as u16 == ERROR {
        let error = i32::try_from(word(16)?.wrapping_neg()).unwrap_or(libc::EIO);
        let error = io::Error::from_raw_os_error(error);
        return if error.kind() == io::ErrorKind::NotFound { Ok(None) } else { Err(error) };
    }
    let state = *answer.get(17).ok_or_else(short)?;
    let (uid, inode) = (word(80)?, word(84)?);
    Ok((inode != 0 && CONNECTED.contains(&state)).then_some(uid))
}

/// An address in four words of the network's order.
fn words(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V6(ip) => ip.octets(),
        IpAddr::V4(ip) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&ip.octets());
            octets
        }
    }
}

fn listed(list: &str, here: SocketAddr, peer: SocketAddr) -> Option<u32> {
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
            let here = plain(server.local_addr().unwrap());
            let peer = plain(peer);
            assert_eq!(tcp_user(&server), Some(own_uid()), "{at}");
            let asked = || ask(here, peer).inspect_err(|e| eprintln!("skipped: sock_diag: {e}"));
            assert!(asked().is_err() || asked().unwrap() == Some(own_uid()), "{at}");
            let lists = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
            let found = || lists.iter().find_map(|l| listed(&text(l).ok()?, here, peer));
            assert_eq!(found(), Some(own_uid()), "{at}");
            drop(client);
            // The kernel calls an end that nobody has root's.
            assert_eq!(tcp_user(&server), None, "{at}");
            assert_eq!((asked().unwrap_or(None), found()), (None, None), "{at}");
        }
        let far: SocketAddr = "192.0.2.1:80".parse().unwrap();
        assert_eq!(owner_of("192.0.2.7:80".parse().unwrap(), far), None);
    }

    #[test]
    fn a_connection_that_was_reset_is_nobodys() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        io::Write::write_all(&mut server, b"unread").unwrap();
        // What was not read when it is closed makes the kernel reset the connection.
        client.peek(&mut [0]).unwrap();
        drop(client);
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while is_connected(&server) {
            assert!(std::time::Instant::now() < end, "it stays");
        }
        assert_eq!(tcp_user(&server), None);
    }
}
