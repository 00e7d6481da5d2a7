//! The HTTP server, plain or with mutual TLS.

use super::{App, handle};
use crate::TlsFiles;
use axum::Router;
use onym_http::server;
use onym_http::tls::ServerTls;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Reads the files of mutual TLS: who connects must have a certificate that the CA signed.
///
/// # Errors
/// A sentence with the file.
pub(crate) fn load(files: &TlsFiles) -> Result<ServerTls, String> {
    let read = |path: &std::path::Path| {
        std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
    };
    let (certificate, key, ca) = (read(&files.certificate)?, read(&files.key)?, read(&files.ca)?);
    ServerTls::new(&certificate, &key, Some(&ca)).map_err(|e| {
        let file = match e.part {
            "key" => &files.key,
            "authority" => &files.ca,
            _ => &files.certificate,
        };
        format!("{}: {}", file.display(), e.why)
    })
}

/// Serves until the future is dropped.
pub(crate) async fn serve(listener: TcpListener, tls: Option<ServerTls>, app: Arc<App>) {
    let router = Router::new().fallback(handle).with_state(app);
    server::serve_by(listener, tls, router).await;
}
