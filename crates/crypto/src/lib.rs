#![doc = include_str!("../README.md")]

pub mod cert;
pub mod digest;
pub mod edge;
pub mod error;
pub mod foreign;
pub mod key;
mod kind;
pub mod public;
pub mod replay;
pub mod safebag;
pub mod seal;
pub mod signer;
pub mod store;
pub mod text;
pub mod verify;

pub use cert::{Certificate, Issue};
pub use digest::{Sha256, sha256};
pub use edge::{Entropy, SystemEntropy};
pub use error::Error;
pub use key::{KeyType, Outside, PrivateKey};
pub use public::PublicKey;
pub use safebag::SafeBag;
pub use signer::{Freshness, Signer};
pub use store::KeyStore;
