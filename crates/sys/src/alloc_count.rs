//! A global allocator that counts allocations per thread.
//!
//! A test binary installs it once:
//!
//! ```
//! use onym_sys::alloc_count::{CountingAlloc, counts};
//! use std::alloc::System;
//! #[global_allocator]
//! static ALLOC: CountingAlloc = CountingAlloc(System);
//!
//! let before = counts();
//! let boxed = Box::new([0_u8; 100]);
//! let asked = counts() - before;
//! drop(boxed);
//! assert_eq!((asked.allocations, asked.octets), (1, 100));
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::Sub;

/// An allocator, counting.
#[derive(Debug, Default, Clone, Copy)]
pub struct CountingAlloc<A = System>(pub A);

/// What the calling thread has asked of [`CountingAlloc`] so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Allocations, reallocations included.
    pub allocations: u64,
    /// Octets asked for (a reallocation counts its new size).
    pub octets: u64,
    /// Deallocations.
    pub frees: u64,
    /// Octets given back (a reallocation gives its old size back).
    pub octets_freed: u64,
}

impl Counts {
    /// Octets that are held beyond what was given back.
    #[must_use]
    pub fn held(&self) -> i64 {
        self.octets.cast_signed().wrapping_sub(self.octets_freed.cast_signed())
    }
}

impl Sub for Counts {
    type Output = Self;
    fn sub(self, earlier: Self) -> Self {
        Self {
            allocations: self.allocations - earlier.allocations,
            octets: self.octets - earlier.octets,
            frees: self.frees - earlier.frees,
            octets_freed: self.octets_freed - earlier.octets_freed,
        }
    }
}

thread_local! {
    // `const` and without a destructor, so the allocator may touch it at any time of a thread's life.
    static COUNTS: Cell<Counts> =
        const { Cell::new(Counts { allocations: 0, octets: 0, frees: 0, octets_freed: 0 }) };
}

/// The counts of the calling thread. All zero when [`CountingAlloc`] is not the global allocator.
#[must_use]
pub fn counts() -> Counts {
    COUNTS.with(Cell::get)
}

fn note(asked: usize, freed: usize, is_free: bool) {
    let _ = COUNTS.try_with(|cell| {
        let mut c = cell.get();
        if is_free {
            c.frees += 1;
        } else {
            c.allocations += 1;
        }
        c.octets += asked as u64;
        c.octets_freed += freed as u64;
        cell.set(c);
    });
}

// SAFETY: every method forwards to the allocator within with its arguments unchanged; counting allocates nothing.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAlloc<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0, false);
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc`.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size(), 0, false);
        // SAFETY: the caller upholds the contract of `GlobalAlloc::alloc_zeroed`.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        note(new_size, layout.size(), false);
        // SAFETY: the caller upholds the contract of `GlobalAlloc::realloc`.
        unsafe { self.0.realloc(ptr, layout, new_size) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        note(0, layout.size(), true);
        // SAFETY: the caller upholds the contract of `GlobalAlloc::dealloc`.
        unsafe { self.0.dealloc(ptr, layout) }
    }
}
