//! Memory shared with another process, as a slice of atomic words.
//!
//! The other process may write anything at any time. All accesses are atomic, so that this is
//! never a data race; what is read is bytes of a stranger and no more.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// Words of eight octets in memory that other processes may map as well.
#[derive(Debug)]
pub struct SharedWords {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the mapping belongs to this value alone, whichever thread holds it.
unsafe impl Send for SharedWords {}
// SAFETY: a shared reference gives access to atomics only.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// New memory of `words` zeroes whose size can never change again, and the descriptor that
    /// gives others access. `name` is what `/proc/PID/maps` shows.
    ///
    /// # Errors
    /// As `memfd_create`, `ftruncate` and `mmap`: out of descriptors or memory.
    pub fn create(name: &str, words: usize) -> io::Result<(Self, OwnedFd)> {
        let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, words as u64 * 8)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Self::map(&fd, words)?, fd))
    }

    /// Maps the first `words` words of memory that somebody else made.
    ///
    /// # Errors
    /// `InvalidInput` when it is shorter or could be made shorter (then an access would end this
    /// process); as `mmap`.
    pub fn map(fd: impl AsFd, words: usize) -> io::Result<Self> {
        let fd = fd.as_fd();
        let unfit = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
        if !fcntl_get_seals(fd)?.contains(SealFlags::SHRINK) {
            return Err(unfit("the shared memory could be made shorter by its owner"));
        }
        let octets = words.checked_mul(8).ok_or_else(|| unfit("too many words"))?;
        let size = usize::try_from(fstat(fd)?.st_size).unwrap_or(0);
        if octets == 0 || size < octets {
            return Err(unfit("the shared memory is shorter than was said"));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let start =
            unsafe { mmap(std::ptr::null_mut(), octets, protection, MapFlags::SHARED, fd, 0) }?;
        let start = NonNull::new(start.cast()).ok_or_else(|| unfit("mapped at address 0"))?;
        Ok(Self { start, words })
    }
}

impl Deref for SharedWords {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `map` made `words * 8` octets readable and writable at a page boundary until
        // `drop`, and the seal keeps the file behind them from becoming shorter. Any octets are
        // valid atomics, and whatever else writes them, in this process or another, they are
        // accessed atomically here.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped; references cannot outlive this value.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.words * 8) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_one_mapping_writes_another_reads() {
        let (a, fd) = SharedWords::create("onym-test", 1024).unwrap();
        let b = SharedWords::map(&fd, 1024).unwrap();
        drop(fd);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (i, word) in a.iter().enumerate().skip(1) {
                    word.store(i as u64 * 3, Ordering::Relaxed);
                }
                a[0].store(1, Ordering::Release);
            });
            while b[0].load(Ordering::Acquire) == 0 {
                std::hint::spin_loop();
            }
            assert!((1..1024).all(|i| b[i].load(Ordering::Relaxed) == i as u64 * 3));
        });
    }

    #[test]
    fn memory_that_is_shorter_or_could_become_so_is_refused() {
        let (_, fd) = SharedWords::create("onym-test", 512).unwrap();
        assert_eq!(SharedWords::map(&fd, 513).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert_eq!(SharedWords::map(&fd, 0).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(ftruncate(&fd, 8).is_err(), "sealed");
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let open = rustix::fs::memfd_create("onym-test", flags).unwrap();
        ftruncate(&open, 4096).unwrap();
        assert_eq!(SharedWords::map(&open, 512).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
