//! Secrets are overwritten when they are dropped: the heap of this process is searched for them.

#![allow(clippy::unwrap_used)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test has entropy of its own, and looks at its memory by a file"
)]

use onym_access::card;
use onym_access::envelope::ReadingKey;
use onym_crypto::{Entropy as _, KeyType, PrivateKey, SystemEntropy, seal};
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use zeroize::Zeroizing;

/// A secret that is nowhere in memory as it is, until it is asked for.
struct Hidden([u8; 32]);

const MASK: u8 = 0xA5;

impl Hidden {
    fn of(octets: &[u8]) -> Self {
        let mut hidden = [0; 32];
        hidden.iter_mut().zip(octets).for_each(|(to, from)| *to = from ^ MASK);
        Self(hidden)
    }

    fn random() -> Self {
        let mut hidden = [0; 32];
        SystemEntropy.fill(&mut hidden);
        Self(hidden)
    }

    fn reveal(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.0.iter().map(|octet| octet ^ MASK).collect())
    }

    /// How often the heap has it.
    fn count(&self) -> usize {
        let stack = std::ptr::from_ref(&self).addr() as u64;
        let memory = File::open("/proc/self/mem").unwrap();
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let mut found = 0;
        for line in maps.lines().filter(|line| line.contains(" rw")) {
            let (from, rest) = line.split_once('-').unwrap();
            let to = rest.split(' ').next().unwrap();
            let [from, to] = [from, to].map(|hex| u64::from_str_radix(hex, 16).unwrap());
            // What a function had on the stack is overwritten by the next ones.
            if (from..to).contains(&stack) || line.contains("[stack]") {
                continue;
            }
            let mut octets = vec![0; usize::try_from(to - from).unwrap()];
            if memory.read_exact_at(&mut octets, from).is_err() {
                continue;
            }
            found += octets.windows(32).filter(|window| self.is(window)).count();
            // The copy that was searched is not to be found by the next search.
            octets.fill(0);
        }
        found
    }

    fn is(&self, window: &[u8]) -> bool {
        window.iter().zip(&self.0).all(|(a, b)| *a == b ^ MASK)
    }
}

#[test]
fn a_dropped_key_is_nowhere_on_the_heap() {
    // One test: the allocator of this process is searched while nothing else runs.
    let hidden = Hidden::random();
    let key = Box::new(ReadingKey::from_seed(&hidden.reveal()).unwrap());
    assert!(hidden.count() >= 1, "the search finds what is there");
    let der = card::to_pkcs8(&key);
    assert!(hidden.count() >= 2);
    drop((key, der));
    assert_eq!(hidden.count(), 0, "a reading key");

    let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
    let der = key.to_pkcs8().unwrap();
    let hidden = Hidden::of(&der[16..48]);
    let copy = PrivateKey::from_pkcs8(&der).unwrap();
    assert!(hidden.count() >= 1);
    let sealed = seal::encrypt(&der, b"passphrase", &mut SystemEntropy).unwrap();
    let opened = seal::decrypt(&sealed, b"passphrase").unwrap();
    assert_eq!(opened, der);
    drop((key, copy, der, opened));
    assert_eq!(hidden.count(), 0, "a signing key, and what encrypts and decrypts it");
}
