#![doc = include_str!("../README.md")]

pub mod digest;
pub mod edge;
pub mod error;
pub mod key;
pub mod public;
pub mod replay;
pub mod seal;
pub mod text;

pub use digest::sha256;
pub use edge::{Entropy, SystemEntropy};
pub use error::Error;
pub use key::{KeyType, PrivateKey};
pub use public::PublicKey;
