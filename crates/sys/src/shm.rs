//! Memory shared with another process: a page of atomic words, and octets that are copied in and out.
//!
//! The other process may write anything at any time. All accesses are atomic, so that this is
//! never a data race; what is read is octets of a stranger and no more.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64};

/// Words in the page that memory begins with.
pub const WORDS: usize = 512;

/// Memory that other processes may map as well.
#[derive(Debug)]
pub struct SharedMemory {
    start: NonNull<AtomicU64>,
    /// Octets behind the words.
    octets: usize,
}

// SAFETY: the mapping belongs to this value alone, whichever thread holds it.
unsafe impl Send for SharedMemory {}
// SAFETY: a shared reference gives atomic access only.
unsafe impl Sync for SharedMemory {}

impl SharedMemory {
    /// New memory of [`WORDS`] words and `octets` octets, all zero, whose size can never change
    /// again, and the descriptor that gives others access. `name` is what `/proc/PID/maps` shows.
    ///
    /// # Errors
    /// As `memfd_create`, `ftruncate` and `mmap`: out of descriptors or memory.
    pub fn create(name: &str, octets: usize) -> io::Result<(Self, OwnedFd)> {
        let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, (WORDS * 8 + octets) as u64)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Self::map(&fd, octets)?, fd))
    }

    /// Maps memory that somebody else made.
    ///
    /// # Errors
    /// `InvalidInput` when it is shorter or could be made shorter (then an access would end this
    /// process); as `mmap`.
    pub fn map(fd: impl AsFd, octets: usize) -> io::Result<Self> {
        let fd = fd.as_fd();
        let unfit = |why: &str| io::Error::new(io::ErrorKind::InvalidInput, why);
        if !fcntl_get_seals(fd)?.contains(SealFlags::SHRINK) {
            return Err(unfit("the shared memory could be made shorter by its owner"));
        }
        let all = octets.checked_add(WORDS * 8).ok_or_else(|| unfit("too many octets"))?;
        let size = usize::try_from(fstat(fd)?.st_size).unwrap_or(0);
        if size < all {
            return Err(unfit("the shared memory is shorter than was said"));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let start =
            unsafe { mmap(std::ptr::null_mut(), all, protection, MapFlags::SHARED, fd, 0) }?;
        let start = NonNull::new(start.cast()).ok_or_else(|| unfit("mapped at address 0"))?;
        Ok(Self { start, octets })
    }

    /// The words.
    #[inline]
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: `map` made this many words readable and writable at a page boundary until
        // `drop`, and the seal keeps the file behind them from becoming shorter. Whatever else
        // writes them, in this process or another, does so atomically and as words.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), WORDS) }
    }

    /// The octets, which are accessed as such and in no other way.
    #[inline]
    fn octets(&self) -> &[AtomicU8] {
        // SAFETY: the words end within what is mapped.
        let first = unsafe { self.start.as_ptr().add(WORDS) };
        // SAFETY: as for the words; they do not overlap.
        unsafe { std::slice::from_raw_parts(first.cast(), self.octets) }
    }

    /// Copies octets out, from `at` on; in which order they are read is not said.
    ///
    /// # Panics
    /// If they are not within the memory.
    #[inline]
    pub fn read(&self, at: usize, out: &mut [u8]) {
        let from = &self.octets()[at..at + out.len()];
        // SAFETY: both are as many octets; `out` is ours alone.
        unsafe { copy(from.as_ptr().cast(), out.as_mut_ptr(), out.len()) };
    }

    /// Copies octets in, from `at` on; in which order they are written is not said.
    ///
    /// # Panics
    /// If they are not within the memory.
    #[inline]
    pub fn write(&self, at: usize, octets: &[u8]) {
        let to = &self.octets()[at..at + octets.len()];
        // SAFETY: both are as many octets; atomics may be written through a shared reference.
        unsafe { copy(octets.as_ptr(), to.as_ptr().cast_mut().cast(), octets.len()) };
    }
}

/// Copies `len` octets as if each was loaded and stored by itself, atomically and relaxed.
///
/// A plain copy would be undefined behaviour where the other side writes at the same time, and a
/// loop of atomics is slow: the processor has many more cache lines on their way from the other
/// core during its own copy than it has places for single stores.
///
/// # Safety
/// `from` can be read and `to` written for `len` octets; they do not overlap. Others may access
/// either at the same time, but only atomically as octets, or from another process.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: reads and writes what the caller says it may, octet by octet, which the processor
    // does atomically; the direction flag is clear, as the calling convention wants it.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
}

/// Copies `len` octets as if each was loaded and stored by itself, atomically and relaxed.
///
/// # Safety
/// `from` can be read and `to` written for `len` octets; they do not overlap. Others may access
/// either at the same time, but only atomically as octets, or from another process.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    for i in 0..len {
        // SAFETY: within what the caller says may be read; one access that is not left out.
        let octet = unsafe { from.add(i).read_volatile() };
        // SAFETY: within what the caller says may be written.
        unsafe { to.add(i).write_volatile(octet) };
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` mapped; references cannot outlive this value.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), WORDS * 8 + self.octets) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_one_mapping_writes_another_reads() {
        let (a, fd) = SharedMemory::create("onym-test", 10_000).unwrap();
        let b = SharedMemory::map(&fd, 10_000).unwrap();
        drop(fd);
        let octets: Vec<u8> = (0..10_000_u32).map(|i| u8::try_from(i % 251).unwrap()).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for (i, part) in octets.chunks(777).enumerate() {
                    a.write(i * 777, part);
                }
                a.words()[0].store(1, Ordering::Release);
            });
            while b.words()[0].load(Ordering::Acquire) == 0 {
                std::hint::spin_loop();
            }
            let mut out = vec![0; 10_000];
            b.read(0, &mut out);
            assert_eq!(out, octets);
            b.read(3, &mut out[..5]);
            assert_eq!(out[..5], octets[3..8]);
        });
        assert!(a.words()[1..].iter().all(|word| word.load(Ordering::Relaxed) == 0));
    }

    #[test]
    fn a_copy_beyond_the_memory_panics() {
        let (memory, _) = SharedMemory::create("onym-test", 100).unwrap();
        memory.write(90, &[1; 10]);
        let memory = std::panic::AssertUnwindSafe(memory);
        assert!(std::panic::catch_unwind(|| memory.write(91, &[1; 10])).is_err());
        assert!(std::panic::catch_unwind(|| memory.read(101, &mut [])).is_err());
    }

    #[test]
    fn memory_that_is_shorter_or_could_become_so_is_refused() {
        let (_, fd) = SharedMemory::create("onym-test", 4096).unwrap();
        let refused = |fd: &OwnedFd, octets| SharedMemory::map(fd, octets).unwrap_err().kind();
        assert_eq!(refused(&fd, 4097), io::ErrorKind::InvalidInput);
        assert_eq!(refused(&fd, usize::MAX), io::ErrorKind::InvalidInput);
        assert!(ftruncate(&fd, 8).is_err(), "sealed");
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let open = rustix::fs::memfd_create("onym-test", flags).unwrap();
        ftruncate(&open, 8192).unwrap();
        assert_eq!(refused(&open, 4096), io::ErrorKind::InvalidInput);
    }
}
