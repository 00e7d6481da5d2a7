//! Network interfaces of the namespace of the calling thread.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::ffi::CStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interface {
    /// Name, such as `eth0`.
    pub name: String,
    /// Number.
    pub index: u32,
    /// Ethernet address; `None` on other kinds of links.
    pub mac: Option<[u8; 6]>,
    /// Longest payload of a frame, in octets.
    pub mtu: usize,
    /// Administratively up.
    pub is_up: bool,
    /// The loopback interface.
    pub is_loopback: bool,
    /// Can send to groups.
    pub is_multicast: bool,
    /// IP addresses.
    pub addresses: Vec<IpAddr>,
    /// For each of them, how many leading bits the addresses on its link share with it.
    pub prefixes: Vec<u8>,
}

impl Interface {
    /// Whether `ip` is in the subnet of one of the addresses.
    #[must_use]
    pub fn has_on_link(&self, ip: IpAddr) -> bool {
        self.addresses.iter().zip(&self.prefixes).any(|(own, len)| shares(*own, ip, *len))
    }
}

fn shares(a: IpAddr, b: IpAddr, bits: u8) -> bool {
    let (difference, all) = match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(a.to_bits() ^ b.to_bits()) << 96, 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits(), 128),
        _ => return false,
    };
    difference.leading_zeros() >= u32::from(bits.min(all))
}

/// All interfaces, by index.
///
/// # Errors
/// As `getifaddrs`.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let list = List::new()?;
    let mut all: Vec<Interface> = Vec::new();
    // Packet addresses (one per interface) come before the IP addresses of any interface.
    for entry in list.entries() {
        if let Some(link) = link(entry) {
            all.push(link);
        }
    }
    for entry in list.entries() {
        let name = name(entry);
        if let (Some(ip), Some(i)) = (ip(entry), all.iter_mut().find(|i| i.name == name)) {
            i.addresses.push(ip);
            i.prefixes.push(prefix_len(entry));
        }
    }
    for i in &mut all {
        i.mtu = mtu(&i.name)?;
    }
    all.sort_by_key(|i| i.index);
    Ok(all)
}

/// The interface called `name`.
///
/// # Errors
/// `NotFound`; as [`interfaces`].
pub fn interface(name: &str) -> io::Result<Interface> {
    interfaces()?.into_iter().find(|i| i.name == name).ok_or_else(|| {
        io::Error::new(io::ErrorKind::NotFound, format!("there is no network interface {name}"))
    })
}

/// The name of the interface numbered `index`.
///
/// # Errors
/// When there is none.
pub fn name_of(index: u32) -> io::Result<String> {
    Ok(rustix::net::netdevice::index_to_name(any_socket()?, index)?)
}

/// A socket to ask about interfaces with.
fn any_socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?)
}

/// The list that `getifaddrs` made.
struct List {
    first: *mut libc::ifaddrs,
}

impl List {
    fn new() -> io::Result<Self> {
        let mut first = std::ptr::null_mut();
        // SAFETY: getifaddrs writes one pointer, which `Drop` gives back.
        let rc = unsafe { libc::getifaddrs(&raw mut first) };
        if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(Self { first }) }
    }

    fn entries(&self) -> impl Iterator<Item = &libc::ifaddrs> {
        // SAFETY: null or a valid entry, alive as long as the list.
        let first = unsafe { self.first.as_ref() };
        std::iter::successors(first, |entry| {
            // SAFETY: null or the next valid entry of the same list.
            unsafe { entry.ifa_next.as_ref() }
        })
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: the pointer came from getifaddrs and nothing borrows from the list any more.
        unsafe { libc::freeifaddrs(self.first) };
    }
}

fn name(entry: &libc::ifaddrs) -> String {
    // SAFETY: the name of an entry is a C string that lives as long as the entry.
    unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned()
}

fn family(entry: &libc::ifaddrs) -> Option<i32> {
    // SAFETY: the address of an entry is null or a sockaddr of the family it says.
    unsafe { entry.ifa_addr.as_ref() }.map(|a| i32::from(a.sa_family))
}

fn link(entry: &libc::ifaddrs) -> Option<Interface> {
    if family(entry) != Some(libc::AF_PACKET) {
        return None;
    }
    // SAFETY: an AF_PACKET address is a sockaddr_ll.
    let a = unsafe { entry.ifa_addr.cast::<libc::sockaddr_ll>().read_unaligned() };
    let [m0, m1, m2, m3, m4, m5, ..] = a.sll_addr;
    let is = |flag: i32| entry.ifa_flags & flag.cast_unsigned() != 0;
    let ethernet = a.sll_halen == 6 && !is(libc::IFF_POINTOPOINT);
    Some(Interface {
        name: name(entry),
        index: a.sll_ifindex.cast_unsigned(),
        mac: ethernet.then_some([m0, m1, m2, m3, m4, m5]),
        is_up: is(libc::IFF_UP),
        is_loopback: is(libc::IFF_LOOPBACK),
        is_multicast: is(libc::IFF_MULTICAST),
        ..Interface::default()
    })
}

fn ip(entry: &libc::ifaddrs) -> Option<IpAddr> {
    address(entry.ifa_addr, family(entry)?)
}

/// The bits of the netmask of an entry; all of its family when it has none.
fn prefix_len(entry: &libc::ifaddrs) -> u8 {
    let Some(family) = family(entry).filter(|_| !entry.ifa_netmask.is_null()) else { return 128 };
    // The kernel leaves the family of a netmask out in places: it is that of the address.
    let bits = match address(entry.ifa_netmask, family) {
        Some(IpAddr::V4(mask)) => mask.to_bits().leading_ones(),
        Some(IpAddr::V6(mask)) => mask.to_bits().leading_ones(),
        None => 128,
    };
    u8::try_from(bits).unwrap_or(128)
}

/// The address at `at`, which points to a sockaddr of `family`.
fn address(at: *const libc::sockaddr, family: i32) -> Option<IpAddr> {
    match family {
        libc::AF_INET => {
            // SAFETY: an AF_INET address, and its netmask, is a sockaddr_in.
            let a = unsafe { at.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(u32::from_be(a.sin_addr.s_addr)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: an AF_INET6 address, and its netmask, is a sockaddr_in6.
            let a = unsafe { at.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(a.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

fn mtu(name: &str) -> io::Result<usize> {
    // SAFETY: an ifreq of zeroes is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    let socket = any_socket()?;
    // SAFETY: SIOCGIFMTU reads the name and writes the MTU of the ifreq it is given.
    let rc = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, &raw mut request) };
    if rc < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: SIOCGIFMTU succeeded, so this member of the union was written.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(usize::try_from(mtu).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_interface_has_its_addresses_and_an_mtu() {
        let lo = interface("lo").unwrap();
        assert!(lo.is_loopback && lo.index > 0 && lo.mtu > 1000);
        assert!(!lo.is_up || lo.addresses.contains(&IpAddr::from([127, 0, 0, 1])));
        assert_eq!(lo.addresses.len(), lo.prefixes.len());
        assert!(!lo.is_up || lo.has_on_link(IpAddr::from([127, 9, 9, 9])), "{lo:?}");
        assert!(!lo.has_on_link(IpAddr::from([128, 0, 0, 1])));
        let none = interface("no-such-dev").unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
        assert_eq!(name_of(lo.index).unwrap(), "lo");
    }
}
