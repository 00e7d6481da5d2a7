//! The HTTP server, plain or with mutual TLS.

use super::{App, handle};
use axum::Router;
use onym_http::server;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);

/// Mutual TLS: who connects must have a certificate that the CA signed.
#[derive(Clone)]
pub(crate) struct Tls(TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Reads the files, all PEM.
    ///
    /// # Errors
    /// A sentence with the file.
    pub(crate) fn load(certificate: &Path, key: &Path, ca: &Path) -> Result<Self, String> {
        let bad = |path: &Path, e: String| format!("{}: {e}", path.display());
        let read = |path: &Path| -> Result<Vec<CertificateDer<'static>>, String> {
            let all = CertificateDer::pem_file_iter(path).map_err(|e| bad(path, e.to_string()))?;
            all.collect::<Result<_, _>>().map_err(|e| bad(path, e.to_string()))
        };
        let mut roots = rustls::RootCertStore::empty();
        for root in read(ca)? {
            roots.add(root).map_err(|e| bad(ca, e.to_string()))?;
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let clients =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|e| bad(ca, e.to_string()))?;
        let private = PrivateKeyDer::from_pem_file(key).map_err(|e| bad(key, e.to_string()))?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| e.to_string())?
            .with_client_cert_verifier(clients)
            .with_single_cert(read(certificate)?, private)
            .map_err(|e| bad(certificate, e.to_string()))?;
        Ok(Self(TlsAcceptor::from(Arc::new(config))))
    }

    async fn shake(self, socket: TcpStream) -> std::io::Result<TlsStream<TcpStream>> {
        tokio::time::timeout(HANDSHAKE_MAX, self.0.accept(socket)).await?
    }
}

/// Serves until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, tls: Option<Tls>, app: Arc<App>) {
    let router = Router::new().fallback(handle).with_state(app);
    match tls {
        None => server::serve(listener, router).await,
        Some(tls) => {
            server::serve_shaken(listener, router, |socket| tls.clone().shake(socket)).await
        }
    }
}
