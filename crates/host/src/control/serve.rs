//! The HTTP server, plain or with mutual TLS.

use super::{App, handle};
use axum::Router;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
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
}

/// Serves until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, tls: Option<Tls>, app: Arc<App>) {
    let router = Router::new().fallback(handle).with_state(app);
    let ended = match tls {
        None => axum::serve(listener, router).await,
        Some(tls) => axum::serve(Shaken::start(listener, tls), router).await,
    };
    if let Err(error) = ended {
        tracing::error!(%error, "the control interface ended");
    }
}

/// Connections whose handshake is done. Each is shaken in a task of its own, so that one that is
/// silent holds nobody up.
struct Shaken {
    done: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: std::io::Result<SocketAddr>,
}

impl Shaken {
    fn start(listener: TcpListener, tls: Tls) -> Self {
        let address = listener.local_addr();
        let (tell, done) = mpsc::channel(64);
        tokio::spawn(async move {
            loop {
                let Ok((stream, peer)) = listener.accept().await else {
                    // Out of descriptors: a pause, so that others can end.
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                };
                let (tls, tell) = (tls.clone(), tell.clone());
                tokio::spawn(async move {
                    let shaking = tokio::time::timeout(HANDSHAKE_MAX, tls.0.accept(stream));
                    match shaking.await {
                        Ok(Ok(stream)) => drop(tell.send((stream, peer)).await),
                        Ok(Err(error)) => tracing::info!(%peer, %error, "a handshake failed"),
                        Err(_) => tracing::info!(%peer, "a handshake took too long"),
                    }
                });
            }
        });
        Self { done, address }
    }
}

impl axum::serve::Listener for Shaken {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.done.recv().await {
            Some(connection) => connection,
            // The accepting task never ends while this lives.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        match &self.address {
            Ok(address) => Ok(*address),
            Err(error) => Err(std::io::Error::new(error.kind(), error.to_string())),
        }
    }
}
