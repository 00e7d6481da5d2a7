//! Listening sockets that a service manager opened before this program and handed on (`sd_listen_fds(3)`):
//! who connects while the program starts, or starts anew, waits for it.

use rustix::fd::{BorrowedFd, FromRawFd as _, OwnedFd};
use rustix::io::FdFlags;
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// After standard input, output and error.
const FIRST: i32 = 3;
/// More are not looked at.
const COUNT_MAX: i32 = 64;

/// Those that nobody took yet.
fn all() -> MutexGuard<'static, Vec<UnixListener>> {
    static ALL: OnceLock<Mutex<Vec<UnixListener>>> = OnceLock::new();
    let all = ALL.get_or_init(|| Mutex::new(of_environment()));
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

fn place(listener: &UnixListener) -> Option<PathBuf> {
    listener.local_addr().ok()?.as_pathname().map(Path::to_owned)
}

/// The listening Unix socket at `path`, if one was handed on; the second time there is none.
#[must_use]
pub fn unix_listener(path: &Path) -> Option<UnixListener> {
    let mut all = all();
    let at = all.iter().position(|listener| place(listener).as_deref() == Some(path))?;
    Some(all.swap_remove(at))
}

/// Where the sockets listen that were handed on and that nobody took.
#[must_use]
pub fn left() -> Vec<PathBuf> {
    all().iter().filter_map(place).collect()
}

fn of_environment() -> Vec<UnixListener> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<i32>().ok();
    // Otherwise they were for a parent, whose environment this process has.
    let is_for_us = number("LISTEN_PID").and_then(|pid| u32::try_from(pid).ok());
    if is_for_us != Some(std::process::id()) {
        return Vec::new();
    }
    let count = number("LISTEN_FDS").unwrap_or(0).clamp(0, COUNT_MAX);
    (FIRST..FIRST + count).filter_map(take).collect()
}

/// A descriptor that was handed on, if it is what can be used here.
fn take(number: i32) -> Option<UnixListener> {
    // SAFETY: it is not -1, and is only asked what it is; where nothing is open each question fails.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let is_listener = sockopt::socket_acceptconn(borrowed) == Ok(true)
        && sockopt::socket_domain(borrowed) == Ok(AddressFamily::UNIX)
        && sockopt::socket_type(borrowed) == Ok(SocketType::STREAM);
    if !is_listener {
        return None;
    }
    // SAFETY: whoever started this process opened it for this process, which asks once (`all`), and
    // nothing else here closes what was open when it began.
    let owned = unsafe { OwnedFd::from_raw_fd(number) };
    // Not for the children.
    rustix::io::fcntl_setfd(&owned, FdFlags::CLOEXEC).ok()?;
    Some(UnixListener::from(owned))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_service_manager_nothing_was_handed_on() {
        assert!(unix_listener(Path::new("/run/nfd/nfd.sock")).is_none());
        assert!(left().is_empty());
        // Standard input is no listener, and what is not open is nothing.
        assert!(take(0).is_none());
        assert!(take(1 << 20).is_none());
    }
}
