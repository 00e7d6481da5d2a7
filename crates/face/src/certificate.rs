//! What a listener shows that speaks TLS or QUIC, read again when its files change.

use crate::FaceError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, version};

/// A certificate with its chain and key, both PEM files.
pub struct Certificate {
    files: Files,
    kept: Mutex<Kept>,
}

struct Kept {
    config: Arc<ServerConfig>,
    /// Of the files when they were read last, whether they were of use or not.
    seen: Seen,
}

/// Where a certificate is, and what is spoken with it.
struct Files {
    chain: PathBuf,
    key: PathBuf,
    /// What clients ask for (ALPN) where that is QUIC.
    quic: Option<&'static [&'static [u8]]>,
}

/// Time and length of each file.
type Seen = [Option<(SystemTime, u64)>; 2];

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("chain", &self.files.chain).finish_non_exhaustive()
    }
}

impl Certificate {
    /// Reads both files, for a listener that speaks TLS.
    ///
    /// # Errors
    /// [`FaceError::Address`] with the file that cannot be used.
    pub fn load(chain: &Path, key: &Path) -> Result<Arc<Self>, FaceError> {
        Self::load_files(Files { chain: chain.to_owned(), key: key.to_owned(), quic: None })
    }

    /// The same for one that speaks QUIC.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_quic(chain: &Path, key: &Path) -> Result<Arc<Self>, FaceError> {
        let quic = Some(crate::alpn::PROTOCOLS);
        Self::load_files(Files { chain: chain.to_owned(), key: key.to_owned(), quic })
    }

    fn load_files(files: Files) -> Result<Arc<Self>, FaceError> {
        let seen = seen(&files);
        let kept = Mutex::new(Kept { config: read(&files)?, seen });
        Ok(Arc::new(Self { files, kept }))
    }

    /// What to show now. Files that changed and are of no use are told, and what was before holds.
    pub(crate) fn shown(&self) -> Arc<ServerConfig> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen(&self.files);
        if seen != kept.seen {
            kept.seen = seen;
            match read(&self.files) {
                Ok(config) => kept.config = config,
                Err(error) => tracing::warn!(%error, "the certificate before is shown on"),
            }
        }
        Arc::clone(&kept.config)
    }
}

fn seen(files: &Files) -> Seen {
    [&files.chain, &files.key].map(|file| {
        let about = file.metadata().ok()?;
        Some((about.modified().ok()?, about.len()))
    })
}

/// The certificates of a PEM file.
pub(crate) fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, FaceError> {
    let octets = std::fs::read(file).map_err(|e| wrong(file, &e))?;
    let all = CertificateDer::pem_slice_iter(&octets).collect::<Result<Vec<_>, _>>();
    all.map_err(|e| wrong(file, &e))
}

fn wrong(file: &Path, why: &dyn fmt::Display) -> FaceError {
    FaceError::Address { what: file.display().to_string(), why: why.to_string() }
}

fn read(files: &Files) -> Result<Arc<ServerConfig>, FaceError> {
    let (chain, key) = (&files.chain, &files.key);
    let octets = std::fs::read(key).map_err(|e| wrong(key, &e))?;
    let own = PrivateKeyDer::from_pem_slice(&octets).map_err(|e| wrong(key, &e))?;
    let versions: &[_] = match files.quic {
        Some(_) => &[&version::TLS13],
        None => &[&version::TLS13, &version::TLS12],
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(versions)
        .map_err(|e| wrong(chain, &e))?
        .with_no_client_auth()
        .with_single_cert(certificates(chain)?, own)
        .map_err(|e| wrong(chain, &e))?;
    let protocols = files.quic.unwrap_or_default();
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}
