//! Ten thousand nodes renew their certificates in virtual time:
//! `cargo run --release -p onym-ndncert --example renewals [NODES]`.

#![allow(clippy::print_stdout)]

#[path = "../tests/support/mod.rs"]
mod support;

use support::renewals::{Plan, run};

fn main() {
    let nodes = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10_000);
    for away in [0..0, 62..69] {
        let days = if away.is_empty() { "never".into() } else { format!("on days {away:?}") };
        let plan = Plan { nodes, days: 90, issued_within_s: 3600, away, until_day: 80, seed: 7 };
        let seen = run(&plan);
        println!("{nodes} nodes, 90 days, issued within an hour; the authority is away {days}");
        println!(
            "  renewed {}, expired {}, tries {}, not answered {}",
            seen.renewed, seen.expired, seen.tries, seen.throttled
        );
        println!(
            "  most tries in a second {}, a minute {}, an hour {}",
            seen.peak_s, seen.peak_min, seen.peak_hour
        );
        let each = seen.authority.as_secs_f64() / seen.renewed.max(1) as f64;
        println!(
            "  the authority took {:.3} ms each: {:.0} certificates a second",
            each * 1e3,
            1.0 / each
        );
    }
}
