//! TLS for client and server. Trust anchors are named; those of the system are never used.

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// How long a handshake with a client may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// Why these certificates and keys are of no use.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{part}: {why}")]
pub struct TlsError {
    /// Which of them: `authority`, `certificate` or `key`.
    pub part: &'static str,
    /// What is wrong with it.
    pub why: String,
}

/// Whom a client trusts, and who it says it is.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
}

impl Tls {
    /// Trusts servers whose certificate one in `authority` (PEM) signed, and shows `identity`, a
    /// certificate with its key (both PEM), to those who ask.
    ///
    /// # Errors
    /// What of it cannot be read.
    pub fn new(authority: &[u8], identity: Option<(&[u8], &[u8])>) -> Result<Self, TlsError> {
        let roots = trusted(authority)?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| fault("authority", &e))?
            .with_root_certificates(roots);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let (chain, key) = own(certificate, key)?;
                config.with_client_auth_cert(chain, key).map_err(|e| fault("certificate", &e))?
            }
        };
        Ok(Self { config: Arc::new(config) })
    }

    /// Shakes hands with `host:port` over `stream`.
    ///
    /// # Errors
    /// Those of the handshake, and a host that is none.
    pub async fn connect(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        let name = name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(std::io::Error::other)?;
        TlsConnector::from(Arc::clone(&self.config)).connect(name, stream).await
    }
}

/// What a server shows, and whom it lets in.
#[derive(Clone)]
pub struct ServerTls(TlsAcceptor);

impl std::fmt::Debug for ServerTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServerTls")
    }
}

impl ServerTls {
    /// Shows `certificate` with its chain, whose key is `key`. With `clients` only those are let in
    /// whose certificate one of these authorities signed (mutual TLS). All are PEM.
    ///
    /// # Errors
    /// What of it cannot be read.
    pub fn new(certificate: &[u8], key: &[u8], clients: Option<&[u8]>) -> Result<Self, TlsError> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let (chain, key) = own(certificate, key)?;
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|e| fault("certificate", &e))?;
        let config = match clients {
            None => config.with_no_client_auth(),
            Some(authority) => {
                let roots = Arc::new(trusted(authority)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider)
                    .build()
                    .map_err(|e| fault("authority", &e))?;
                config.with_client_cert_verifier(verifier)
            }
        };
        let config = config.with_single_cert(chain, key).map_err(|e| fault("certificate", &e))?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    /// Shakes hands with who connected.
    pub(crate) async fn accept(
        self,
        socket: TcpStream,
    ) -> std::io::Result<tokio_rustls::server::TlsStream<TcpStream>> {
        tokio::time::timeout(HANDSHAKE_MAX, self.0.accept(socket)).await?
    }
}

fn fault(part: &'static str, why: &dyn std::fmt::Display) -> TlsError {
    TlsError { part, why: why.to_string() }
}

fn trusted(authority: &[u8]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(authority) {
        let certificate = certificate.map_err(|e| fault("authority", &e))?;
        roots.add(certificate).map_err(|e| fault("authority", &e))?;
    }
    if roots.is_empty() {
        return Err(fault("authority", &"it holds no certificate"));
    }
    Ok(roots)
}

type Own = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn own(certificate: &[u8], key: &[u8]) -> Result<Own, TlsError> {
    let chain = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| fault("certificate", &e))?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| fault("key", &e))?;
    Ok((chain, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_named() {
        assert_eq!(Tls::new(b"", None).unwrap_err().part, "authority");
        let broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert_eq!(Tls::new(broken, None).unwrap_err().part, "authority");
        assert_eq!(ServerTls::new(b"", b"", None).unwrap_err().part, "key");
    }
}
