//! Prints docs/push-verdicts.md.

fn main() {
    print!("{}", onym_pubsub::verdict::reference());
}
