//! What a listener for `wss` shows, read again when its files change.

use crate::FaceError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A certificate with its chain and key, both PEM files.
pub struct Certificate {
    chain: PathBuf,
    key: PathBuf,
    kept: Mutex<Kept>,
}

struct Kept {
    acceptor: TlsAcceptor,
    /// Of the files when they were read last, whether they were of use or not.
    seen: Seen,
}

/// Time and length of each file.
type Seen = [Option<(SystemTime, u64)>; 2];

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate").field("chain", &self.chain).finish_non_exhaustive()
    }
}

impl Certificate {
    /// Reads both files.
    ///
    /// # Errors
    /// [`FaceError::Address`] with the file that cannot be used.
    pub fn load(chain: &Path, key: &Path) -> Result<Arc<Self>, FaceError> {
        let (chain, key) = (chain.to_owned(), key.to_owned());
        let seen = seen(&chain, &key);
        let kept = Mutex::new(Kept { acceptor: read(&chain, &key)?, seen });
        Ok(Arc::new(Self { chain, key, kept }))
    }

    /// What to show now. Files that changed and are of no use are told, and what was before holds.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = seen(&self.chain, &self.key);
        if seen != kept.seen {
            kept.seen = seen;
            match read(&self.chain, &self.key) {
                Ok(acceptor) => kept.acceptor = acceptor,
                Err(error) => tracing::warn!(%error, "the certificate before is shown on"),
            }
        }
        kept.acceptor.clone()
    }
}

fn seen(chain: &Path, key: &Path) -> Seen {
    [chain, key].map(|file| {
        let about = file.metadata().ok()?;
        Some((about.modified().ok()?, about.len()))
    })
}

fn read(chain: &Path, key: &Path) -> Result<TlsAcceptor, FaceError> {
    let wrong = |file: &Path, why: &dyn fmt::Display| FaceError::Address {
        what: file.display().to_string(),
        why: why.to_string(),
    };
    let octets = |file: &Path| std::fs::read(file).map_err(|e| wrong(file, &e));
    let certificates = CertificateDer::pem_slice_iter(&octets(chain)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| wrong(chain, &e))?;
    let own = PrivateKeyDer::from_pem_slice(&octets(key)?).map_err(|e| wrong(key, &e))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| wrong(chain, &e))?
        .with_no_client_auth()
        .with_single_cert(certificates, own)
        .map_err(|e| wrong(chain, &e))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
