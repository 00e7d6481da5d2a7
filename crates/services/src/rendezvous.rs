//! Rendezvous hashing: chooses one of several faces for a name. When a face joins or leaves, only its
//! names move.

use onym_tables::hash::component_end;

/// A hash that is the same in every process and for every run: clones and their neighbours must
/// agree on it. It shares load; nothing is safe because of it.
#[must_use]
pub fn stable_hash(bytes: &[u8]) -> u64 {
    // FNV-1a, then mixed.
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
        (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    mix(hash)
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The value of `name` (a name's value) cut to its first `components`; 0 is all.
#[must_use]
pub fn cut(name: &[u8], components: usize) -> &[u8] {
    let mut end = 0;
    for _ in 0..components {
        if end >= name.len() {
            break;
        }
        end = component_end(name, end);
    }
    if components == 0 { name } else { &name[..end] }
}

/// The best of `keys` (identity and weight of each) for `hash`; `None` of none.
pub fn choose(hash: u64, keys: impl Iterator<Item = (u64, u32)>) -> Option<usize> {
    let mut best: Option<(f64, usize)> = None;
    for (at, (key, weight)) in keys.enumerate() {
        // Highest random weight with weights: -w / ln(u), u uniform in (0, 1).
        #[allow(clippy::cast_precision_loss)]
        let uniform = ((mix(hash ^ mix(key)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        let score = -f64::from(weight.max(1)) / uniform.ln();
        if best.is_none_or(|(known, _)| score > known) {
            best = Some((score, at));
        }
    }
    best.map(|(_, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(n: u64, count: u64) -> usize {
        choose(stable_hash(&n.to_be_bytes()), (0..count).map(|k| (k, 1))).unwrap()
    }

    #[test]
    fn names_move_only_to_the_newcomer_and_are_shared_evenly() {
        let moved = (0..10_000).filter(|n| of(*n, 3) != of(*n, 4));
        let moved: Vec<u64> = moved.collect();
        assert!(moved.iter().all(|n| of(*n, 4) == 3));
        assert!((2200..2800).contains(&moved.len()), "{}", moved.len());
    }

    #[test]
    fn weights_are_shares() {
        let heavy = (0..10_000_u64).filter(|n| {
            choose(stable_hash(&n.to_be_bytes()), [(1, 1), (2, 3)].into_iter()) == Some(1)
        });
        assert!((7200..7800).contains(&heavy.count()));
    }

    #[test]
    fn a_name_is_cut_to_its_first_components() {
        let name = [8, 1, b'a', 8, 1, b'b', 8, 1, b'c'];
        assert_eq!(cut(&name, 2), &name[..6]);
        assert_eq!((cut(&name, 0), cut(&name, 9)), (&name[..], &name[..]));
    }
}
