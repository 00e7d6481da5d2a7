//! Keyed hashes of names, and how names are hashed with all their prefixes.
//!
//! One pass over a name yields the hashes of all prefixes that some table asks for: at the end of
//! each, a copy of the sum is finished with the octets that do not fill a step.

use crate::nh::{Secret, Sum};
use crate::sip::SipKey;
use onym_wire::NAME_COMPONENTS_MAX;

/// The key of this process; drawn by the shell at start, since names come from strangers.
#[derive(Clone, Copy)]
pub struct HashKey {
    words: SipKey,
    secret: Secret,
    /// Hash of the empty name: nearly every table has a default entry.
    empty: u64,
}

impl std::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HashKey(..)")
    }
}

/// End of the component that starts at `at` in the value of a well-formed name.
///
/// A malformed tail counts as one component that reaches to the end, so this never panics.
#[inline(always)]
#[must_use]
pub fn component_end(name: &[u8], at: usize) -> usize {
    match name.get(at..at + 2) {
        Some(&[t, l]) if t < 253 && l < 253 => (at + 2 + l as usize).min(name.len()),
        _ => long_component_end(name, at).unwrap_or(name.len()),
    }
}

#[cold]
fn long_component_end(name: &[u8], at: usize) -> Option<usize> {
    let (_, at) = number(name, at)?;
    let (len, at) = number(name, at)?;
    let end = at.checked_add(usize::try_from(len).ok()?)?;
    (end <= name.len()).then_some(end)
}

/// The variable-size number at `at` and where it ends.
fn number(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    let size = match first {
        253 => 2,
        254 => 4,
        255 => 8,
        small => return Some((u64::from(small), at + 1)),
    };
    let value = bytes.get(at + 1..at + 1 + size)?;
    Some((value.iter().fold(0, |n, &b| (n << 8) | u64::from(b)), at + 1 + size))
}

impl HashKey {
    /// The key made of two random words.
    #[must_use]
    pub const fn new(k0: u64, k1: u64) -> Self {
        let secret = Secret::new([k0, k1]);
        let words = SipKey::new(k0, k1);
        Self { words, secret, empty: Sum::start().of_nothing(&secret) }
    }

    /// Hash of the empty name.
    #[inline]
    #[must_use]
    pub const fn empty_name(&self) -> u64 {
        self.empty
    }

    /// Hash of the whole name whose value (the components, without type and length of the name)
    /// is `name`. Equal to what [`NameHashes`] gives for the same components.
    #[must_use]
    pub fn name(&self, name: &[u8]) -> u64 {
        let mut sum = Sum::start();
        let at = sum.absorb(&self.secret, name, 0, name.len());
        sum.finish_at(&self.secret, name, at, name.len())
    }

    /// Calls `visit` with hash and octets of each proper prefix of more than 32 components.
    pub fn each_long_prefix(&self, name: &[u8], mut visit: impl FnMut(u64, &[u8])) {
        let mut sum = Sum::start();
        let (mut at, mut end, mut count) = (0, 0, 0);
        while end < name.len() {
            if count > NAME_COMPONENTS_MAX {
                at = sum.absorb(&self.secret, name, at, end);
                visit(sum.finish_at(&self.secret, name, at, end), &name[..end]);
            }
            end = component_end(name, end);
            count += 1;
        }
    }

    /// Whether `is_one` says so of the hash of the name or of a prefix of it, of those with the numbers
    /// of components in `lengths` (as bits).
    #[must_use]
    pub fn any_prefix(
        &self,
        name: &[u8],
        lengths: u64,
        mut is_one: impl FnMut(u64) -> bool,
    ) -> bool {
        let mut sum = Sum::start();
        let (mut at, mut end, mut count) = (0, 0, 0);
        let mut lengths = lengths & LENGTHS;
        while lengths != 0 {
            let len = lengths.trailing_zeros();
            lengths &= lengths - 1;
            while count < len {
                if end >= name.len() {
                    return false;
                }
                end = component_end(name, end);
                count += 1;
            }
            at = sum.absorb(&self.secret, name, at, end);
            if is_one(sum.finish_at(&self.secret, name, at, end)) {
                return true;
            }
        }
        false
    }

    /// Hash of words that are no name, such as a token's slot and generation.
    #[inline]
    #[must_use]
    pub fn words(&self, words: [u64; 2]) -> u64 {
        self.words.words(words)
    }
}

/// Number of components of a name (its value).
#[must_use]
pub fn component_count(name: &[u8]) -> usize {
    let (mut at, mut count) = (0, 0);
    while at < name.len() {
        at = component_end(name, at);
        count += 1;
    }
    count
}

/// Length in octets of an ImplicitSha256Digest component: type 1, length 32.
const DIGEST_LEN: usize = 34;

/// Length of the name's value without an implicit digest component at its end.
///
/// Looks at component boundaries, not only at the last 34 octets, which may lie inside another one.
#[must_use]
pub fn without_digest(name: &[u8]) -> usize {
    let Some(start) = name.len().checked_sub(DIGEST_LEN) else { return name.len() };
    if name[start] != 1 || name[start + 1] != 32 {
        return name.len();
    }
    let mut at = 0;
    while at < start {
        at = component_end(name, at);
    }
    if at == start { start } else { name.len() }
}

/// One prefix of a name with its hash: the key of every table by prefix.
#[derive(Debug, Clone, Copy)]
pub struct Prefix<'a> {
    /// Value of the name, cut after `len` components.
    pub bytes: &'a [u8],
    /// Number of components, at most [`NAME_COMPONENTS_MAX`].
    pub len: usize,
    /// Hash of `bytes`.
    pub hash: u64,
}

/// The hashes of one name: all of it, and the prefixes that were asked for.
#[derive(Debug, Clone)]
pub struct NameHashes {
    /// Hash of all components.
    pub whole: u64,
    /// Hash of all components but an implicit digest at the end.
    pub undigested: u64,
    /// Octets of the name's value without an implicit digest at the end.
    pub undigested_len: usize,
    /// Lengths for which `at` and `ends` hold something.
    known: u64,
    at: [u64; NAME_COMPONENTS_MAX + 1],
    ends: [u16; NAME_COMPONENTS_MAX + 1],
}

impl Default for NameHashes {
    fn default() -> Self {
        Self {
            whole: 0,
            undigested: 0,
            undigested_len: 0,
            known: 0,
            at: [0; NAME_COMPONENTS_MAX + 1],
            ends: [0; NAME_COMPONENTS_MAX + 1],
        }
    }
}

/// The lengths that tables may ask for, as bits.
const LENGTHS: u64 = (1 << (NAME_COMPONENTS_MAX + 1)) - 1;

impl NameHashes {
    /// Hashes `name` (a name's value) and its prefixes of the lengths in `wanted` (bit n: n
    /// components), in one pass.
    #[must_use]
    pub fn new(key: &HashKey, name: &[u8], wanted: u64) -> Self {
        let mut hashes = Self::default();
        hashes.fill(key, name, wanted);
        hashes
    }

    /// As [`NameHashes::new`], in place: nothing is moved or cleared.
    // No truncation: a packet, and so a name, is at most 8800 octets; a longer one keeps a wrong
    // end and so never equals a stored prefix.
    #[allow(clippy::cast_possible_truncation)]
    pub fn fill(&mut self, key: &HashKey, name: &[u8], wanted: u64) {
        let (secret, mut sum) = (&key.secret, Sum::start());
        let (mut at, mut end, mut count) = (0, 0, 0);
        let mut wanted = wanted & LENGTHS & !1;
        (self.at[0], self.ends[0]) = (key.empty, 0);
        let mut known = 1;
        'prefixes: while wanted != 0 {
            let len = wanted.trailing_zeros() as usize;
            wanted &= wanted - 1;
            while count < len {
                if end >= name.len() {
                    break 'prefixes;
                }
                end = component_end(name, end);
                count += 1;
            }
            at = sum.absorb(secret, name, at, end);
            self.at[len] = sum.finish_at(secret, name, at, end);
            self.ends[len] = end as u16;
            known |= 1 << len;
        }
        self.known = known;
        at = sum.absorb(secret, name, at, name.len());
        self.whole = sum.finish_at(secret, name, at, name.len());
        self.undigested = self.whole;
        self.undigested_len = without_digest(name);
        if self.undigested_len != name.len() {
            self.undigested = key.name(&name[..self.undigested_len]);
        }
    }

    /// Lengths, as bits, of the prefixes whose hash is known; that of the empty one always is.
    #[inline]
    #[must_use]
    pub fn lengths(&self) -> u64 {
        self.known
    }

    /// Shows the hashes of the lengths in `wanted` (bits) that are known.
    #[inline(always)]
    pub fn each(&self, wanted: u64, mut visit: impl FnMut(u64)) {
        let mut lengths = wanted & self.known;
        while lengths != 0 {
            visit(self.at[lengths.trailing_zeros() as usize]);
            lengths &= lengths - 1;
        }
    }

    /// The prefix of `len` components of `name`, which must be the name that was hashed; `None`
    /// when it is shorter or that length was not asked for.
    #[inline]
    #[must_use]
    pub fn prefix<'a>(&self, name: &'a [u8], len: usize) -> Option<Prefix<'a>> {
        if len > NAME_COMPONENTS_MAX || self.known >> len & 1 == 0 {
            return None;
        }
        let bytes = name.get(..self.ends[len] as usize)?;
        Some(Prefix { bytes, len, hash: self.at[len] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(components: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for c in components {
            out.push(8);
            out.push(u8::try_from(c.len()).unwrap());
            out.extend_from_slice(c);
        }
        out
    }

    #[test]
    fn each_prefix_hash_equals_the_hash_of_that_prefix_alone() {
        let key = HashKey::new(7, 9);
        let parts: Vec<Vec<u8>> = (0..20).map(|n| vec![b'a'; n]).collect();
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        let whole = name(&parts);
        let hashes = NameHashes::new(&key, &whole, u64::MAX);
        for len in 0..=parts.len() {
            let alone = name(&parts[..len]);
            let prefix = hashes.prefix(&whole, len).unwrap();
            assert_eq!(prefix.bytes, alone);
            assert_eq!(prefix.hash, key.name(&alone));
        }
        assert_eq!(hashes.whole, key.name(&whole));
        assert!(hashes.prefix(&whole, 21).is_none());
    }

    #[test]
    fn a_zero_octet_is_not_padding() {
        let key = HashKey::new(1, 2);
        assert_ne!(key.name(&name(&[b"a"])), key.name(&name(&[b"a\0"])));
        assert_ne!(key.name(&name(&[b"a", b""])), key.name(&name(&[b"a"])));
    }

    #[test]
    fn an_implicit_digest_is_left_out_only_where_it_is_a_component() {
        let key = HashKey::new(1, 2);
        let plain = name(&[b"x", b"y"]);
        let mut digested = plain.clone();
        digested.extend_from_slice(&[1, 32]);
        digested.extend_from_slice(&[5; 32]);
        let hashes = NameHashes::new(&key, &digested, 0);
        assert_eq!((hashes.undigested, hashes.undigested_len), (key.name(&plain), plain.len()));
        // The same octets inside a longer component.
        let mut inside = vec![8, 35, 0, 1, 32];
        inside.extend_from_slice(&[5; 32]);
        assert_eq!(without_digest(&inside), inside.len());
    }

    #[test]
    fn a_name_of_more_than_32_components_has_its_own_hash_and_no_prefix_beyond() {
        let key = HashKey::new(3, 4);
        let parts = vec![b"c".as_slice(); 40];
        let long = name(&parts);
        let hashes = NameHashes::new(&key, &long, u64::MAX);
        assert_eq!(component_count(&long), 40);
        assert_eq!(hashes.whole, key.name(&long));
        assert!(hashes.prefix(&long, 32).is_some() && hashes.prefix(&long, 33).is_none());
    }
}
