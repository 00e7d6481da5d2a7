//! In: a name, or the forwarding hint of an Interest.  Out: the longest FIB prefix and its next
//! hops; of a hint, those of the first delegation that has any.
//! Drops: none (an empty result is the strategy's to judge).  Counters: none.

use onym_tables::fib::{Fib, NextHop};
use onym_tables::hash::NameHashes;
use onym_tables::{HashKey, Prefix};
use onym_wire::interest::Interest;

const NO_PREFIX: Prefix<'static> = Prefix { bytes: &[], len: 0, hash: 0 };

#[inline(always)]
pub(crate) fn run<'a, 'f>(
    fib: &'f Fib,
    key: &HashKey,
    interest: &Interest<'a>,
    hashes: &NameHashes,
    by_hint: bool,
) -> (Prefix<'a>, &'f [NextHop]) {
    if !by_hint {
        return fib.lookup(hashes, interest.name.value()).unwrap_or((NO_PREFIX, &[]));
    }
    by_delegation(fib, key, interest)
}

#[cold]
fn by_delegation<'a, 'f>(
    fib: &'f Fib,
    key: &HashKey,
    interest: &Interest<'a>,
) -> (Prefix<'a>, &'f [NextHop]) {
    for delegation in interest.forwarding_hint.iter() {
        let hashes = NameHashes::new(key, delegation.value(), fib.lengths());
        if let Some(found) = fib.lookup(&hashes, delegation.value()) {
            return found;
        }
    }
    (NO_PREFIX, &[])
}
