//! Room for slabs: grown by an eighth, not doubled, so that little is held beyond what is used; large
//! ones in huge pages (`onym_mem`).

/// Makes room in `slab` for `len` items in all.
#[cold]
pub(crate) fn reserve<T>(slab: &mut Vec<T>, len: usize) {
    let used = slab.len();
    onym_mem::grow(slab, used + (used / 8).max(64).max(len.saturating_sub(used)));
}

/// Appends `item`.
#[inline]
pub(crate) fn push<T>(slab: &mut Vec<T>, item: T) {
    if slab.len() == slab.capacity() {
        reserve(slab, slab.len() + 1);
    }
    slab.push(item);
}

/// Gives the list of `slab`'s free slots room for all of them, so that it never grows while packets
/// pass.
#[inline]
pub(crate) fn match_free<T>(slab: &Vec<T>, free: &mut Vec<u32>) {
    if free.capacity() < slab.capacity() {
        free.reserve_exact(slab.capacity() - free.len());
    }
}
