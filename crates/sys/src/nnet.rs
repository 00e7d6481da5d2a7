//! Sockets of the kernel stack (`AF_NNET`): addresses and options that no library knows.

use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::io;
use std::mem::size_of;

use crate::nnet_numbers::{ADDR_EXTERNAL, CM_SATISFIED, CM_SEGMENT};
pub use crate::nnet_numbers::{
    ADDR_NAME_MAX, BIND_FLAGS, BIND_NOROUTE, CM_PUBLISH, FACE, LP, MULTIBIND, NAME, SOL_NNET,
    STATUS, UNBIND, UNPUBLISH,
};

/// `struct sockaddr_nnet` of the kernel's header.
#[repr(C)]
struct Address {
    family: u16,
    version: u8,
    flags: u8,
    face: u32,
    name_len: u16,
    pad: [u8; 2],
    name: [u8; ADDR_NAME_MAX],
}

/// Kinds of sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole packets; calls do not wait.
    Raw,
    /// Segments of an object in order; calls wait.
    SequencedPackets,
}

/// Opens a socket of `family`.
///
/// # Errors
/// As `socket`; without the module the family is not supported.
pub fn open(family: u16, kind: Kind) -> io::Result<OwnedFd> {
    let kind = match kind {
        Kind::Raw => libc::SOCK_RAW | libc::SOCK_NONBLOCK,
        Kind::SequencedPackets => libc::SOCK_SEQPACKET,
    };
    // SAFETY: no pointer is passed.
    let fd = unsafe { libc::socket(i32::from(family), kind | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The address of a name; long ones go by the option [`NAME`].
fn address(fd: impl AsFd, family: u16, name: &[u8]) -> io::Result<Address> {
    let mut address = Address {
        family,
        version: 0,
        flags: 0,
        face: 0,
        name_len: 0,
        pad: [0; 2],
        name: [0; ADDR_NAME_MAX],
    };
    if let Some(room) = address.name.get_mut(..name.len()) {
        room.copy_from_slice(name);
        address.name_len = u16::try_from(name.len()).unwrap_or(0);
    } else {
        set_option(fd, NAME, name)?;
        address.flags = ADDR_EXTERNAL;
    }
    Ok(address)
}

/// Binds a socket to a prefix: the value of its Name TLV.
///
/// # Errors
/// As the kernel gave it: `EADDRINUSE` where a prefix equals, opens or extends another.
pub fn bind(fd: impl AsFd, family: u16, name: &[u8]) -> io::Result<()> {
    let address = address(&fd, family, name)?;
    let len = size_of::<Address>() as libc::socklen_t;
    // SAFETY: `address` is plain octets of that length and lives through the call.
    let rc = unsafe { libc::bind(fd.as_fd().as_raw_fd(), (&raw const address).cast(), len) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets a socket of [`Kind::SequencedPackets`] fetch an object: the value of its Name TLV.
///
/// # Errors
/// As the kernel gave it.
pub fn connect(fd: impl AsFd, family: u16, name: &[u8]) -> io::Result<()> {
    let address = address(&fd, family, name)?;
    let len = size_of::<Address>() as libc::socklen_t;
    // SAFETY: `address` is plain octets of that length and lives through the call.
    let rc = unsafe { libc::connect(fd.as_fd().as_raw_fd(), (&raw const address).cast(), len) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Octets of a control message with a value of 4.
const CONTROL: usize = size_of::<libc::cmsghdr>() + 8;

/// Sends a packet with one control message, which is a number.
///
/// # Errors
/// As `sendmsg`.
pub fn send_with(fd: impl AsFd, packet: &[u8], kind: i32, value: u32) -> io::Result<()> {
    // u64 for the alignment of a header.
    let mut control = [0_u64; CONTROL / 8];
    let mut part =
        libc::iovec { iov_base: packet.as_ptr().cast_mut().cast(), iov_len: packet.len() };
    // SAFETY: all zeros is an empty msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = CONTROL as _;
    // SAFETY: `control` is that long, so that the header lies in it, aligned.
    let header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: a pure function of its argument.
    let len = unsafe { libc::CMSG_LEN(4) };
    let filled = libc::cmsghdr { cmsg_len: len as _, cmsg_level: SOL_NNET, cmsg_type: kind };
    // SAFETY: the header lies in `control`, aligned for it.
    unsafe { header.write(filled) };
    // SAFETY: the header is in `control`.
    let data = unsafe { libc::CMSG_DATA(header) };
    // SAFETY: 8 octets of `control` lie behind the header.
    unsafe { data.cast::<u32>().write_unaligned(value) };
    // SAFETY: `message` points to `packet`, which is only read, and to `control`.
    let rc = unsafe { libc::sendmsg(fd.as_fd().as_raw_fd(), &raw const message, 0) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// What came, beside its octets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Received {
    /// Octets.
    pub len: usize,
    /// It ends the object.
    pub last: bool,
    /// The number of the segment.
    pub segment: Option<u64>,
    /// The Interest was answered by what is published.
    pub satisfied: bool,
}

/// Receives into `room`, with what the control messages say.
///
/// # Errors
/// As `recvmsg`.
pub fn receive(fd: impl AsFd, room: &mut [u8]) -> io::Result<Received> {
    let mut control = [0_u64; 512];
    let mut part = libc::iovec { iov_base: room.as_mut_ptr().cast(), iov_len: room.len() };
    // SAFETY: all zeros is an empty msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: `room` and `control` are written within their lengths.
    let got = unsafe { libc::recvmsg(fd.as_fd().as_raw_fd(), &raw mut message, 0) };
    let len = usize::try_from(got).map_err(|_| io::Error::last_os_error())?;
    let last = message.msg_flags & libc::MSG_EOR != 0;
    let mut received = Received { len, last, ..Received::default() };
    // SAFETY: the headers lie in `control`, as long as the kernel says.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give whole headers in `control`.
        let head = unsafe { header.read() };
        let is = |kind| head.cmsg_level == SOL_NNET && head.cmsg_type == kind;
        received.satisfied |= is(CM_SATISFIED);
        if is(CM_SEGMENT) {
            // SAFETY: the header is whole.
            let data = unsafe { libc::CMSG_DATA(header) };
            // SAFETY: the kernel writes 8 octets for a segment.
            received.segment = Some(unsafe { data.cast::<u64>().read_unaligned() });
        }
        // SAFETY: the header is one of `message`.
        header = unsafe { libc::CMSG_NXTHDR(&raw const message, header) };
    }
    Ok(received)
}

/// Sets an option to some octets.
///
/// # Errors
/// As `setsockopt`.
pub fn set_option(fd: impl AsFd, option: i32, value: &[u8]) -> io::Result<()> {
    let len = libc::socklen_t::try_from(value.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the kernel reads `len` octets of `value`.
    let rc = unsafe {
        libc::setsockopt(fd.as_fd().as_raw_fd(), SOL_NNET, option, value.as_ptr().cast(), len)
    };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Lets the kernel answer a refused netlink request with its words, and without the request.
///
/// # Errors
/// As `setsockopt`.
pub fn explain_refusals(netlink: impl AsFd) -> io::Result<()> {
    let on: libc::c_int = 1;
    let len = size_of::<libc::c_int>() as libc::socklen_t;
    for option in [libc::NETLINK_EXT_ACK, libc::NETLINK_CAP_ACK] {
        let fd = netlink.as_fd().as_raw_fd();
        // SAFETY: the kernel reads `len` octets of `on`.
        let rc =
            unsafe { libc::setsockopt(fd, libc::SOL_NETLINK, option, (&raw const on).cast(), len) };
        if rc < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Reads an option that is a number.
///
/// # Errors
/// As `getsockopt`.
pub fn option(fd: impl AsFd, option: i32) -> io::Result<u32> {
    let mut value = 0_u32;
    let mut len = size_of::<u32>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets to `value` and the length to `len`.
    let rc = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            SOL_NNET,
            option,
            (&raw mut value).cast(),
            &raw mut len,
        )
    };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}
