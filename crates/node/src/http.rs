//! Serving HTTP to strangers: few connections at once, and none that sends nothing.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// Connections at once of one listener; further ones wait in the kernel's queue.
pub const CONNECTIONS_MAX: usize = 64;

/// How long a client may take for the head of a request; then its connection is closed.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the listener rests when the system refuses a connection (no descriptors left).
const REST: Duration = Duration::from_millis(100);

/// Serves `app` at `listener` until the future is dropped.
pub async fn serve(listener: TcpListener, app: Router) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let permit = room.clone().acquire_owned().await.expect("invariant: never closed");
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(REST).await;
            continue;
        };
        let service = TowerToHyperService::new(app.clone());
        tokio::spawn(async move {
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(TokioIo::new(socket), service)
                .await;
            drop(permit);
        });
    }
}
