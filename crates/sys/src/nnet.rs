//! Sockets of the kernel stack (`AF_NNET`): addresses and options that no library knows.

use rustix::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::io;
use std::mem::size_of;

/// Level of the options and control messages.
pub const SOL_NNET: i32 = 319;

/// Octets of a name that an address holds; longer ones go by the option [`NAME`].
pub const ADDRESS_NAME_MAX: usize = 116;

/// Option: the name for a following `bind`.
pub const NAME: i32 = 1;
/// Option: the number of the face.
pub const FACE: i32 = 2;
/// Option: several prefixes may be bound.
pub const MULTIBIND: i32 = 4;
/// Option: frames carry link headers.
pub const LP: i32 = 6;
/// Option: a prefix is given back.
pub const UNBIND: i32 = 12;

const EXTERNAL: u8 = 2;

/// `struct sockaddr_nnet` of the kernel's header.
#[repr(C)]
struct Address {
    family: u16,
    version: u8,
    flags: u8,
    face: u32,
    name_len: u16,
    pad: [u8; 2],
    name: [u8; ADDRESS_NAME_MAX],
}

/// Opens a socket of `family` for whole packets.
///
/// # Errors
/// As `socket`; without the module the family is not supported.
pub fn open_raw(family: u16) -> io::Result<OwnedFd> {
    // SAFETY: no pointer is passed.
    let fd = unsafe {
        libc::socket(
            i32::from(family),
            libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
            0,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Binds a socket to a prefix: the value of its Name TLV.
///
/// # Errors
/// As the kernel gave it: `EADDRINUSE` where a prefix equals, opens or extends another.
pub fn bind(fd: impl AsFd, family: u16, name: &[u8]) -> io::Result<()> {
    let mut address = Address {
        family,
        version: 0,
        flags: 0,
        face: 0,
        name_len: 0,
        pad: [0; 2],
        name: [0; ADDRESS_NAME_MAX],
    };
    if let Some(room) = address.name.get_mut(..name.len()) {
        room.copy_from_slice(name);
        address.name_len = u16::try_from(name.len()).unwrap_or(0);
    } else {
        set_option(&fd, NAME, name)?;
        address.flags = EXTERNAL;
    }
    let len = size_of::<Address>() as libc::socklen_t;
    // SAFETY: `address` is plain octets of that length and lives through the call.
    let rc = unsafe { libc::bind(fd.as_fd().as_raw_fd(), (&raw const address).cast(), len) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
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
