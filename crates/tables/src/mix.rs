//! How words are mixed by multiplication.

// The halves of a product.
#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
pub(crate) const fn fold(a: u64, b: u64) -> u64 {
    let product = a as u128 * b as u128;
    product as u64 ^ (product >> 64) as u64
}

/// Makes the upper bits, which choose, depend on all.
#[inline(always)]
pub(crate) const fn spread(folded: u64) -> u64 {
    (folded ^ folded >> 29).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
