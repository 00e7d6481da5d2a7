//! Posts to the control interfaces of other services: rules of a verifier for a filter.

use http_body_util::Full;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use onym_services::element::Wish;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;

/// How long one post may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Carries posts out one after another until the service ends. One that fails is logged and given
/// up: the next period reports again what still fails.
pub(crate) async fn run(mut posts: Receiver<Wish>) {
    while let Some(wish) = posts.recv().await {
        let Wish::Post { url, token, path, body } = wish else { continue };
        let posting = post(&url, token.as_deref(), path, body.to_string());
        match tokio::time::timeout(PATIENCE, posting).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(url, path, error, "a post failed"),
            Err(_) => tracing::warn!(url, path, "a post was not answered in time"),
        }
    }
}

async fn post(url: &str, token: Option<&str>, path: &str, body: String) -> Result<(), String> {
    let authority = url.strip_prefix("http://").ok_or("only http:// can be posted to")?;
    let authority = authority.trim_end_matches('/');
    let stream = tokio::net::TcpStream::connect(authority).await.map_err(|e| e.to_string())?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
    let driving = tokio::spawn(connection);
    let mut request = hyper::Request::post(path)
        .header("host", authority)
        .header("content-type", "application/json");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|e| e.to_string())?;
    let response = sender.send_request(request).await.map_err(text)?;
    let status = response.status();
    drop((sender, response));
    driving.abort();
    if status.is_success() { Ok(()) } else { Err(format!("it answered {status}")) }
}

fn text(error: hyper::Error) -> String {
    error.to_string()
}
