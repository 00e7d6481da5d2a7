//! Serving to strangers: few connections at once, and none that sends nothing.

use crate::tls::ServerTls;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Connections at once of one listener; further ones wait in the kernel's queue.
pub const CONNECTIONS_MAX: usize = 64;

/// How long a client may take for the head of a request; then its connection is closed.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the listener rests when the system refuses a connection (no descriptors left).
const REST: Duration = Duration::from_millis(100);

/// Serves `app` at `listener` until the future is dropped.
pub async fn serve(listener: TcpListener, app: Router) {
    serve_shaken(listener, app, |socket| async { Ok::<_, Infallible>(socket) }).await;
}

/// The same, with TLS where it is given.
pub async fn serve_by(listener: TcpListener, tls: Option<ServerTls>, app: Router) {
    match tls {
        None => serve(listener, app).await,
        Some(tls) => serve_shaken(listener, app, |socket| tls.clone().accept(socket)).await,
    }
}

/// The same after a handshake on each connection. The handshake has to end by itself: it holds the
/// place of a connection, and a silent one holds nobody else up.
pub async fn serve_shaken<S, E, F>(
    listener: TcpListener,
    app: Router,
    shake: impl Fn(TcpStream) -> F,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    E: Display + Send,
    F: Future<Output = Result<S, E>> + Send + 'static,
{
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let permit = room.clone().acquire_owned().await.expect("invariant: never closed");
        let Ok((socket, peer)) = listener.accept().await else {
            tokio::time::sleep(REST).await;
            continue;
        };
        let (shaking, service) = (shake(socket), TowerToHyperService::new(app.clone()));
        tokio::spawn(async move {
            match shaking.await {
                Ok(socket) => {
                    let _ = http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(HEAD_TIMEOUT)
                        .serve_connection(TokioIo::new(socket), service)
                        .await;
                }
                Err(error) => tracing::info!(%peer, %error, "a handshake failed"),
            }
            drop(permit);
        });
    }
}
