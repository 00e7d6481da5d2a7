//! Names under a prefix, told from nearly all others at a glance.

use super::NameRef;

/// Octets that are compared.
const OCTETS: usize = 8;

/// The last octets of a prefix: names that have others in their place are not under it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    /// Octets of the VALUE of the prefix.
    len: usize,
    /// Where the octets begin that are compared, in the VALUE of a name.
    at: u16,
    octets: u64,
    mask: u64,
}

impl Tail {
    /// That of no name.
    pub const NONE: Self = Self { octets: 1, ..Self::ANY };
    /// That of every name.
    pub const ANY: Self = Self { len: 0, at: 0, octets: 0, mask: 0 };

    /// That of the names under `prefix`.
    #[must_use]
    pub fn of(prefix: NameRef<'_>) -> Self {
        let value = prefix.value();
        let at = value.len().saturating_sub(OCTETS);
        let tail = value.get(at..).unwrap_or_default();
        let mask = padded(&[0xff; OCTETS], tail.len());
        let octets = padded(tail, tail.len());
        // No packet has a name that is longer.
        let at = u16::try_from(at).unwrap_or(u16::MAX);
        Self { len: value.len(), at, octets, mask }
    }

    /// Whether a name, by its VALUE, may be under the prefix. It errs to yes, and only for names with
    /// the same octets in that place.
    #[inline(always)]
    #[must_use]
    pub fn may_cover(&self, name: &[u8]) -> bool {
        let at = usize::from(self.at);
        let tail = name.get(at..at + OCTETS).and_then(<[u8]>::first_chunk);
        let Some(tail) = tail else { return self.may_cover_short(name) };
        u64::from_le_bytes(*tail) & self.mask == self.octets
    }

    /// Whether the name of an Interest with CanBePrefix may be under the prefix or above it.
    #[cold]
    #[must_use]
    pub fn may_cover_or_be_above(&self, name: &[u8]) -> bool {
        self.may_cover(name) || name.len() < self.len
    }

    /// The same of a name that ends before the octets which are compared.
    #[cold]
    fn may_cover_short(&self, name: &[u8]) -> bool {
        name.len() >= self.len && padded(name, name.len()) & self.mask == self.octets
    }
}

/// The first `len` octets as a number, of which the first one is the lowest.
fn padded(octets: &[u8], len: usize) -> u64 {
    let octets = octets.iter().take(len.min(OCTETS)).enumerate();
    octets.fold(0, |number, (at, octet)| number | u64::from(*octet) << (8 * at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Name;
    use proptest::prelude::*;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    proptest! {
        /// Law: no name under a prefix is missed, and none is taken that has other octets where the
        /// prefix ends.
        #[test]
        fn a_glance_misses_no_name_under_a_prefix(
            prefix in "(/[ab]{1,9}){1,4}|(/[ab]{50,60}){4,6}|/[ab]{260}", rest in "(/[ab]{1,3}){0,3}",
        ) {
            let tail = Tail::of(name(&prefix).as_ref());
            let under = name(&format!("{prefix}{rest}"));
            prop_assert!(tail.may_cover(under.as_ref().value()));
            let other = name(&format!("{}{rest}", prefix.replace(['a', 'b'], "z")));
            prop_assert!(!tail.may_cover(other.as_ref().value()));
            prop_assert!(Tail::ANY.may_cover(other.as_ref().value()));
            prop_assert!(!Tail::NONE.may_cover(other.as_ref().value()));
        }
    }

    #[test]
    fn a_shorter_name_may_be_above_a_prefix_and_is_not_under_it() {
        let tail = Tail::of(name("/net/site/alpha").as_ref());
        for above in ["/net/site", "/", "/elsewhere/x"] {
            let above = name(above);
            assert!(tail.may_cover_or_be_above(above.as_ref().value()), "errs to yes: {above}");
            assert!(!tail.may_cover(above.as_ref().value()), "{above}");
        }
        let other = name("/net/site/omega/and/more");
        assert!(!tail.may_cover_or_be_above(other.as_ref().value()));
        assert!(!Tail::NONE.may_cover_or_be_above(&[]) && !Tail::NONE.may_cover(&[]));
        assert!(Tail::ANY.may_cover(&[]));
    }
}
