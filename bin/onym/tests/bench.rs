//! `onym bench` against a running daemon.

#![allow(clippy::unwrap_used)]

mod support;

use support::Place;

#[test]
fn exchanges_are_counted_and_timed() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    for more in [&[][..], &["--repeat", "10", "--window", "1", "--size", "8000"]] {
        let report = place.json(&[&["bench", "--seconds", "0.3"], more].concat());
        assert!(report["exchanges"].as_u64().unwrap() > 0, "{report}");
        assert!(report["rtt_p99_ms"].as_f64().unwrap() >= report["rtt_p50_ms"].as_f64().unwrap());
        assert!(report["goodput_bps"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_bench_that_nobody_answers_says_so() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let ended = place.run(&["bench", "/nobody", "--only", "consumer", "--seconds", "0.2"]);
    assert_eq!(ended.code, 5, "{}", ended.err);
    assert!(ended.err.contains("onym explain /nobody"), "{}", ended.err);
}
