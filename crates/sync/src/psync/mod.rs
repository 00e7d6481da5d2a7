//! PSync: groups that compare invertible Bloom lookup tables of what they know (0.5.0 and later).

mod full;
mod iblt;
#[cfg(test)]
mod tests;

pub use full::{Full, FullConfig, FullCounters, FullEvent, FullUpdate};
pub use iblt::{Difference, Form, Iblt, murmur3, name_key};
