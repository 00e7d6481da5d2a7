//! The corpus in the tree, replayed.

#![allow(clippy::unwrap_used)]

use onym_fuzz_targets::{TARGETS, corpus, mutate};
use std::time::Duration;

/// Most octets of the whole corpus in the tree.
const CORPUS_LEN_MAX: usize = 1 << 20;

#[test]
fn every_input_of_the_corpus_holds() {
    for target in TARGETS {
        let inputs = corpus::inputs(target.name).unwrap();
        assert!(!inputs.is_empty(), "{}: the corpus is empty", target.name);
        for (name, input) in inputs {
            println!("{} {name}", target.name);
            (target.run)(&input);
        }
    }
}

#[test]
fn the_corpus_has_the_seeds_of_the_specification_and_stays_small() {
    let mut octets = 0;
    for target in TARGETS {
        let inputs = corpus::load(&corpus::folder(target.name)).unwrap();
        octets += inputs.iter().map(|(_, input)| input.len()).sum::<usize>();
        assert!(!corpus::seeds(target.name).unwrap().is_empty());
    }
    assert!(octets <= CORPUS_LEN_MAX, "{octets} octets");
}

/// A short campaign from a fixed seed: not to find much, but to keep the driver working.
#[test]
fn changed_inputs_hold_too() {
    for target in TARGETS {
        let inputs = corpus::inputs(target.name).unwrap();
        let inputs: Vec<Vec<u8>> = inputs.into_iter().map(|(_, input)| input).collect();
        let found = mutate::campaign(target, &inputs, 7, Duration::from_millis(300));
        assert_eq!(found.failure, None, "{}: seed 7, input {}", target.name, found.tried);
        assert!(found.tried > 0, "{}", target.name);
    }
}

#[test]
fn a_panic_is_found_and_told() {
    let fragile = onym_fuzz_targets::Target {
        name: "fragile",
        run: |input| assert!(!input.contains(&77), "a law of this test"),
        len_max: 64,
    };
    let found = mutate::campaign(fragile, &[vec![0; 16]], 1, Duration::from_secs(60));
    assert!(found.failure.is_some_and(|input| input.contains(&77)));
}
