//! Verdicts of the application about signatures.

/// Whether a packet is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// Its signature is valid, and its signer may publish it.
    Good,
    /// It is dropped.
    Bad,
}

impl From<bool> for Judged {
    fn from(is_good: bool) -> Self {
        if is_good { Self::Good } else { Self::Bad }
    }
}
