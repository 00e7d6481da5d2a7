//! Prints docs/verdicts.md.

fn main() {
    print!("{}", onym_forward::verdict::reference());
}
