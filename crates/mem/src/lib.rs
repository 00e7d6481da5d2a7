#![doc = include_str!("../README.md")]

use rustix::mm::{Advice, madvise};
use std::mem::MaybeUninit;

/// A huge page: two megabytes on the machines that have them so (x86-64, AArch64 with small pages).
/// Where they are larger, the kernel leaves out what does not fill one.
const HUGE: usize = 2 << 20;

/// A slab from this size on is worth huge pages: below it the processor's map of pages covers it.
const SLAB_MIN: usize = 2 * HUGE;

/// Asks the kernel for huge pages under `memory`, which is best when it was not written yet. Says
/// whether any of it can have them; a kernel without them is no error, and nothing else changes.
pub fn advise_huge<T>(memory: &mut [MaybeUninit<T>]) -> bool {
    let range = memory.as_mut_ptr_range();
    let (start, end) = (range.start.addr(), range.end.addr());
    let (from, to) = (start.next_multiple_of(HUGE), end / HUGE * HUGE);
    if from >= to {
        return false;
    }
    let at = range.start.cast::<u8>().wrapping_add(from - start);
    // SAFETY: the whole pages `from..to` lie within memory that this function borrows exclusively;
    // this advice changes neither what is in it nor whether it may be used.
    unsafe { madvise(at.cast(), to - from, Advice::LinuxHugepage) }.is_ok()
}

/// Makes `slab` as large as `capacity`; a large one moves to memory that is advised to be huge pages
/// before anything is written there.
pub fn grow<T>(slab: &mut Vec<T>, capacity: usize) {
    if capacity.saturating_mul(size_of::<T>()) < SLAB_MIN {
        slab.reserve_exact(capacity.saturating_sub(slab.len()));
        return;
    }
    let mut larger = Vec::with_capacity(capacity.max(slab.len()));
    advise_huge(larger.spare_capacity_mut());
    larger.append(slab);
    *slab = larger;
}

/// `len` copies of `item`, as [`grow`] places them.
#[must_use]
pub fn filled<T: Clone>(len: usize, item: T) -> Vec<T> {
    let mut slab = Vec::new();
    grow(&mut slab, len);
    slab.resize(len, item);
    slab
}

/// Has the processor fetch the first line of `place` into its caches, without waiting for it.
#[inline(always)]
pub fn prefetch<T>(place: &T) {
    let place = std::ptr::from_ref(place).cast::<i8>();
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which reads nothing that a program could see; the place is a reference.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        std::arch::asm!("prfm pldl1keep, [{}]", in(reg) place, options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = place;
}

/// As [`prefetch`] for all lines of `place`, which is some lines long at most.
#[inline(always)]
pub fn prefetch_whole<T>(place: &[T]) {
    const LINE: usize = 64;
    for first in place.iter().step_by((LINE / size_of::<T>().max(1)).max(1)) {
        prefetch(first);
    }
    if let Some(last) = place.last() {
        prefetch(last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slab_that_grows_keeps_what_it_holds() {
        let mut slab: Vec<u64> = (0..1000).collect();
        for capacity in [2000, 1 << 20, 1 << 21, 10] {
            grow(&mut slab, capacity);
            assert!(slab.capacity() >= capacity);
            assert!(slab.iter().copied().eq(0..1000));
        }
    }

    #[test]
    fn only_what_fills_a_huge_page_is_advised() {
        let mut small = Vec::<u8>::with_capacity(HUGE - 1);
        assert!(!advise_huge(small.spare_capacity_mut()));
        assert!(!advise_huge::<u64>(&mut []));
        // Of twice the size one fits, wherever it begins; a kernel without huge pages refuses.
        let mut large = Vec::<u8>::with_capacity(2 * HUGE);
        let has = std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists();
        assert_eq!(advise_huge(large.spare_capacity_mut()), has);
        large.resize(2 * HUGE, 7);
        assert!(large.iter().all(|octet| *octet == 7));
    }

    #[test]
    fn many_copies_are_all_there() {
        assert_eq!(filled(3, 5_u8), [5, 5, 5]);
        assert!(filled(SLAB_MIN, 9_u8).iter().all(|octet| *octet == 9));
    }

    #[test]
    fn any_place_may_be_fetched() {
        prefetch(&());
        prefetch(&[0_u8; 3]);
        prefetch(&vec![1_u64; 9]);
        prefetch_whole::<u64>(&[]);
        prefetch_whole(&[[7_u8; 200]; 3]);
        prefetch_whole(&[(); 3]);
    }
}
