#![doc = include_str!("../README.md")]

mod credentials;
mod s3;
mod settings;
mod wire;

pub use credentials::Credentials;
pub use s3::S3;
pub use settings::Settings;

/// Why a bucket cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("{0}: {1}")]
    File(String, std::io::Error),
    /// Who may use the bucket is not known.
    #[error("{0}")]
    Credentials(String),
    /// A setting is no good.
    #[error("{0}")]
    Setting(String),
    /// Certificates that are trusted cannot be read.
    #[error("the certificates that are trusted: {0}")]
    Tls(#[from] onym_http::tls::TlsError),
    /// The operating system.
    #[error(transparent)]
    System(#[from] std::io::Error),
}
