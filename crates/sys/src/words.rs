//! Memory of words that one process writes and others only read, in place.
//!
//! The writer may write anything at any time, so readers see atomic words and never a reference to
//! plain octets: what they read is words of a stranger and no more. The kernel refuses a writable
//! mapping to everybody but the maker.

use crate::shm::copy;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{self, Relaxed};

/// A mapping of words, until it is dropped.
#[derive(Debug)]
struct Mapping {
    start: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the mapping belongs to this value alone, whichever thread holds it.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference gives atomic access only.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(fd: impl AsFd, words: usize, protection: ProtFlags) -> io::Result<Self> {
        let octets = words.checked_mul(8).filter(|octets| *octets > 0);
        let octets = octets.ok_or_else(|| unfit("no such number of words can be mapped"))?;
        let flags = MapFlags::SHARED;
        // SAFETY: the kernel chooses an address where nothing is mapped.
        let start = unsafe { mmap(std::ptr::null_mut(), octets, protection, flags, fd, 0) }?;
        let start = NonNull::new(start.cast()).ok_or_else(|| unfit("mapped at address 0"))?;
        Ok(Self { start, words })
    }

    #[inline]
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: `new` mapped this many words at a page boundary until `drop`, and a seal keeps
        // the file behind them from becoming shorter. Whatever else writes them does so
        // atomically, in this process, or is another process.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `new` mapped; references cannot outlive this value.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.words * 8) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

fn unfit(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// The maker's side: reads and writes.
#[derive(Debug)]
pub struct WordMemory(Mapping);

impl WordMemory {
    /// New memory of `words` words, all zero, whose size can never change again and which nobody
    /// else can map for writing, with the descriptor that lets others read. `name` is what
    /// `/proc/PID/maps` shows.
    ///
    /// # Errors
    /// As `memfd_create`, `ftruncate`, `fcntl` and `mmap`: out of descriptors or memory, or a
    /// kernel before 5.1, which cannot keep others from writing.
    pub fn create(name: &str, words: usize) -> io::Result<(Self, OwnedFd)> {
        let fd = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, (words as u64).saturating_mul(8))?;
        let mapping = Mapping::new(&fd, words, ProtFlags::READ | ProtFlags::WRITE)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE | SealFlags::SEAL;
        fcntl_add_seals(&fd, seals)?;
        Ok((Self(mapping), fd))
    }

    /// The words.
    #[inline]
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        self.0.words()
    }

    /// Copies octets in, the first at the lowest address of word `at`; in which order they are
    /// written is not said.
    ///
    /// # Panics
    /// If they are not within the memory.
    #[inline]
    pub fn write(&self, at: usize, offset: usize, octets: &[u8]) {
        let end = offset.checked_add(octets.len()).expect("invariant: slices are not that long");
        let to = &self.words()[at..][..end.div_ceil(8)];
        let to = to.as_ptr().cast::<u8>().cast_mut();
        // SAFETY: `offset` is within the words just looked up, or at their end.
        let to = unsafe { to.add(offset) };
        // SAFETY: as many octets as lie within these words; atomics may be written through a
        // shared reference.
        unsafe { copy(octets.as_ptr(), to, octets.len()) };
    }
}

/// The others' side: reads only.
#[derive(Debug)]
pub struct WordView(Mapping);

impl WordView {
    /// Maps `words` words of memory that somebody else made.
    ///
    /// # Errors
    /// `InvalidInput` when it is shorter or could be made shorter (then an access would end this
    /// process); as `mmap`.
    pub fn map(fd: impl AsFd, words: usize) -> io::Result<Self> {
        let fd = fd.as_fd();
        if !fcntl_get_seals(fd)?.contains(SealFlags::SHRINK) {
            return Err(unfit("the shared memory could be made shorter by its owner"));
        }
        let size = usize::try_from(fstat(fd)?.st_size).unwrap_or(0);
        if size / 8 < words {
            return Err(unfit("the shared memory is shorter than was said"));
        }
        Mapping::new(fd, words, ProtFlags::READ).map(Self)
    }

    /// The value of a word.
    ///
    /// # Panics
    /// If there is no such word.
    #[inline]
    #[must_use]
    pub fn load(&self, word: usize, order: Ordering) -> u64 {
        self.0.words()[word].load(order)
    }

    /// Words `at` to `at + count`.
    ///
    /// # Panics
    /// If they are not within the memory.
    #[inline]
    #[must_use]
    pub fn words(&self, at: usize, count: usize) -> Words<'_> {
        Words(&self.0.words()[at..][..count])
    }
}

/// Words that are read where they are. They may change while they are read, when their writer
/// breaks its promise.
#[derive(Debug, Clone, Copy)]
pub struct Words<'a>(&'a [AtomicU64]);

impl<'a> Words<'a> {
    /// How many.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Word `index`, in the machine's order; `None` beyond the end.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<u64> {
        self.0.get(index).map(|word| word.load(Relaxed))
    }

    /// One word after the other, in the machine's order.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = u64> + use<'a> {
        self.0.iter().map(|word| word.load(Relaxed))
    }

    /// Eight words after the other, and the up to seven at the end: what is done with each of the
    /// eight need not wait for the others.
    #[inline]
    pub fn eights(&self) -> (impl ExactSizeIterator<Item = [u64; 8]> + use<'a>, Self) {
        let (eights, rest) = self.0.as_chunks::<8>();
        (eights.iter().map(load_eight), Self(rest))
    }

    /// Copies octets out, from octet `offset` on.
    ///
    /// # Panics
    /// If they are not within the words.
    #[inline]
    pub fn read(&self, offset: usize, out: &mut [u8]) {
        let end = offset.checked_add(out.len()).expect("invariant: slices are not that long");
        assert!(end <= self.0.len() * 8, "octets beyond the words");
        // SAFETY: `offset` is within the words or at their end.
        let from = unsafe { self.0.as_ptr().cast::<u8>().add(offset) };
        // SAFETY: as many octets as lie within the words; `out` is ours alone.
        unsafe { copy(from, out.as_mut_ptr(), out.len()) };
    }
}

/// Eight words, each as if loaded by itself, atomically and relaxed: two at a time, so that the
/// processor looks further ahead, and sums of lanes stay in its wide registers.
#[cfg(target_arch = "x86_64")]
#[inline]
fn load_eight(words: &[AtomicU64; 8]) -> [u64; 8] {
    use std::arch::x86_64::__m128i;
    let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
    // SAFETY: reads these 64 octets and nothing else; the processor reads no word in parts where it
    // is aligned, as all of these are.
    unsafe {
        std::arch::asm!(
            "movdqu {a}, xmmword ptr [{words}]",
            "movdqu {b}, xmmword ptr [{words} + 16]",
            "movdqu {c}, xmmword ptr [{words} + 32]",
            "movdqu {d}, xmmword ptr [{words} + 48]",
            words = in(reg) words.as_ptr(),
            a = out(xmm_reg) a,
            b = out(xmm_reg) b,
            c = out(xmm_reg) c,
            d = out(xmm_reg) d,
            options(readonly, nostack, preserves_flags)
        );
    }
    // SAFETY: four times two words, the first of each at its lower end, as an array has them.
    unsafe { std::mem::transmute([a, b, c, d]) }
}

/// Eight words, each loaded by itself, atomically and relaxed.
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn load_eight(words: &[AtomicU64; 8]) -> [u64; 8] {
    std::array::from_fn(|i| words[i].load(Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_maker_writes_others_read_in_place() {
        let (memory, fd) = WordMemory::create("onym-test", 1000).unwrap();
        let view = WordView::map(&fd, 1000).unwrap();
        let octets: Vec<u8> = (0..100).collect();
        memory.write(5, 3, &octets);
        memory.words()[999].store(7, Relaxed);
        assert_eq!(view.load(999, Relaxed), 7);
        let mut out = [0; 100];
        view.words(5, 20).read(3, &mut out);
        assert_eq!(out[..], octets);
        let words = view.words(5, 13);
        let one_by_one: Vec<u64> = words.iter().collect();
        let (eights, rest) = words.eights();
        let together: Vec<u64> = eights.flatten().chain(rest.iter()).collect();
        assert_eq!((one_by_one.len(), &one_by_one), (13, &together));
        assert_eq!(words.get(12), Some(one_by_one[12]));
        assert_eq!(words.get(13), None);
    }

    #[test]
    fn nobody_but_the_maker_can_map_it_for_writing() {
        let (_memory, fd) = WordMemory::create("onym-test", 1000).unwrap();
        assert!(Mapping::new(&fd, 1000, ProtFlags::READ | ProtFlags::WRITE).is_err());
        assert!(rustix::io::write(&fd, &[1]).is_err());
        assert!(ftruncate(&fd, 8).is_err());
    }

    #[test]
    fn memory_that_is_shorter_or_could_become_so_is_refused() {
        let (_memory, fd) = WordMemory::create("onym-test", 512).unwrap();
        for words in [513, usize::MAX / 8 + 1, usize::MAX, 0] {
            assert!(WordView::map(&fd, words).is_err(), "{words}");
        }
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let open = rustix::fs::memfd_create("onym-test", flags).unwrap();
        ftruncate(&open, 8192).unwrap();
        assert!(WordView::map(&open, 512).is_err());
    }

    #[test]
    fn an_access_beyond_the_memory_panics() {
        let (memory, fd) = WordMemory::create("onym-test", 8).unwrap();
        let view = WordView::map(&fd, 8).unwrap();
        let panics =
            |f: &dyn Fn()| std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_err();
        assert!(!panics(&|| memory.write(7, 4, &[1; 4])));
        assert!(panics(&|| memory.write(7, 4, &[1; 5])));
        assert!(panics(&|| memory.write(9, 0, &[])));
        assert!(panics(&|| view.words(0, 8).read(60, &mut [0; 5])));
        assert!(panics(&|| assert!(view.words(1, 8).is_empty())));
        assert!(panics(&|| assert_eq!(view.load(8, Relaxed), 0)));
    }
}
