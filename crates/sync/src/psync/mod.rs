//! PSync: groups that compare invertible Bloom lookup tables of what they know (0.5.0 and later).

mod bloom;
mod full;
mod iblt;
mod partial;
mod segments;
#[cfg(test)]
mod tests;

pub use bloom::Bloom;
pub use full::{Full, FullConfig, FullCounters, FullEvent, FullUpdate};
pub use iblt::{Difference, Form, Iblt, murmur3, name_key};
pub use partial::{Consumer, ConsumerConfig, PartialEvent, Producer, ProducerConfig};
