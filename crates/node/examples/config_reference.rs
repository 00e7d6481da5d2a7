//! Prints docs/config.md.

fn main() {
    print!("{}", onym_node::config::reference());
}
