//! Prints docs/metrics.md.

fn main() {
    print!("{}", onym_metrics::reference());
}
