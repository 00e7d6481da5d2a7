#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| onym_fuzz_targets::route(input));
