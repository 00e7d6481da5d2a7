//! Mounts of file systems that a process serves (`/dev/fuse`).

use rustix::fd::{AsRawFd, OwnedFd};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// The name of the file system in `/proc/mounts`.
const KIND: &CStr = c"fuse.onym";

/// To whom files belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Number of the user.
    pub user: u32,
    /// Number of the group.
    pub group: u32,
}

/// Who may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readers {
    /// The owner.
    Owner,
    /// Every user of the machine.
    Everybody,
}

/// Mounts a file system at the folder `target`, to be read only, and gives the end at which its requests
/// come: one for each `read`.
///
/// # Errors
/// As `mount`: `PermissionDenied` without `CAP_SYS_ADMIN`; `NotFound` without FUSE in the kernel.
pub fn mount(target: &Path, owner: Owner, readers: Readers) -> io::Result<OwnedFd> {
    let device = File::options().read(true).write(true).open("/dev/fuse")?;
    let others = if readers == Readers::Everybody { ",allow_other" } else { "" };
    let (fd, Owner { user, group }) = (device.as_raw_fd(), owner);
    let options = format!(
        "fd={fd},rootmode=40000,user_id={user},group_id={group},default_permissions{others}"
    );
    let (options, target) = (CString::new(options)?, path(target)?);
    let flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV;
    // SAFETY: all are strings that end with a zero octet and live through the call.
    let rc = unsafe {
        libc::mount(
            c"onym".as_ptr(),
            target.as_ptr(),
            KIND.as_ptr(),
            flags,
            options.as_ptr().cast(),
        )
    };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(device.into()) }
}

/// Takes the mount at `target` away, for new users at once, when those that it has are done.
///
/// # Errors
/// As `umount2`: `InvalidInput` when nothing is mounted there.
pub fn unmount(target: &Path) -> io::Result<()> {
    let target = path(target)?;
    // SAFETY: a string that ends with a zero octet and lives through the call.
    let rc = unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH | libc::UMOUNT_NOFOLLOW) };
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}
