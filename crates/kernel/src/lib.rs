#![doc = include_str!("../README.md")]

pub mod calls;
pub mod control;
#[rustfmt::skip]
pub mod generated;
pub mod netlink;
pub mod socket;
pub mod store;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The module is not loaded, or not in this kernel.
    #[error("the kernel has no family named nnet; is the module loaded?")]
    Absent,
    /// The kernel refused, with its reason.
    #[error("{text} ({error})")]
    Refused {
        /// What the kernel said, or which request it was.
        text: String,
        /// The error number, in words.
        error: std::io::Error,
    },
    /// A packet could not be signed.
    #[error(transparent)]
    Signing(#[from] onym_crypto::Error),
    /// A call failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The kernel's answer makes no sense.
    #[error("the kernel's answer is malformed")]
    Malformed,
}

impl From<rustix::io::Errno> for KernelError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::Io(error.into())
    }
}

/// The number of the address family, as the module was loaded.
///
/// # Errors
/// [`KernelError::Absent`].
pub fn family() -> Result<u16, KernelError> {
    std::fs::read_to_string("/sys/module/nnet/parameters/family")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .ok_or(KernelError::Absent)
}
