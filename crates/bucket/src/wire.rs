//! HTTP/1.1 below `object_store`: connections that are kept, bounded in time and in octets of answers.

use http_body_util::{BodyExt as _, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{HOST, HeaderValue};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpService,
};
use onym_http::tls::Tls;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Longest answer.
const ANSWER_MAX: usize = 16 << 20;
/// Connections that are kept.
const KEPT_MAX: usize = 8;

type Sender = SendRequest<HttpRequestBody>;

/// A way to one service.
#[derive(Debug, Clone)]
pub(crate) struct Wire(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    tls: Option<Tls>,
    timeout: Duration,
    kept: Mutex<Vec<Sender>>,
}

impl Wire {
    /// With `tls` for `https`; a request is given up after `timeout`.
    pub(crate) fn new(tls: Option<Tls>, timeout: Duration) -> Self {
        Self(Arc::new(Inner { tls, timeout, kept: Mutex::default() }))
    }
}

impl HttpConnector for Wire {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait::async_trait]
impl HttpService for Wire {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let answer = tokio::time::timeout(self.0.timeout, self.0.exchange(request));
        answer.await.unwrap_or_else(|_| {
            let why = format!("no answer within {} ms", self.0.timeout.as_millis());
            Err(HttpError::new_boxed(HttpErrorKind::Timeout, why.into()))
        })
    }
}

fn broken(error: impl Error + Send + Sync + 'static) -> HttpError {
    HttpError::new(HttpErrorKind::Request, error)
}

fn unknown(why: &str) -> HttpError {
    HttpError::new_boxed(HttpErrorKind::Unknown, why.into())
}

impl Inner {
    fn kept(&self) -> MutexGuard<'_, Vec<Sender>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection on which nothing is under way.
    fn idle(&self) -> Option<Sender> {
        let mut kept = self.kept();
        kept.retain(|sender| !sender.is_closed());
        let at = kept.iter().position(SendRequest::is_ready)?;
        Some(kept.swap_remove(at))
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (mut parts, body) = request.into_parts();
        let authority = parts.uri.authority().ok_or_else(|| unknown("a URL without a host"))?;
        let host = HeaderValue::from_str(authority.as_str()).map_err(broken)?;
        let is_tls = parts.uri.scheme_str() == Some("https");
        let mut sender = match self.idle() {
            Some(sender) => sender,
            None => self.connect(&parts.uri, is_tls).await?,
        };
        parts.headers.insert(HOST, host);
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = path.parse().map_err(broken)?;
        // On a connection that the server closed meanwhile it fails, and object_store asks again.
        let answer = sender.send_request(Request::from_parts(parts, body)).await.map_err(broken)?;
        let (parts, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_MAX).collect().await;
        let body = body.map_err(|error| HttpError::new_boxed(HttpErrorKind::Interrupted, error))?;
        let mut kept = self.kept();
        if kept.len() < KEPT_MAX {
            kept.push(sender);
        }
        drop(kept);
        let octets: Bytes = body.to_bytes();
        Ok(HttpResponse::from_parts(parts, octets.into()))
    }

    async fn connect(&self, uri: &Uri, is_tls: bool) -> Result<Sender, HttpError> {
        let cannot = |error: std::io::Error| HttpError::new(HttpErrorKind::Connect, error);
        let host = uri.host().ok_or_else(|| unknown("a URL without a host"))?;
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let place = format!("{host}:{port}");
        let stream = TcpStream::connect(place.as_str()).await.map_err(cannot)?;
        let _ = stream.set_nodelay(true);
        if !is_tls {
            return shake(stream).await;
        }
        let tls = self.tls.as_ref().ok_or_else(|| unknown("no authority is trusted"))?;
        shake(tls.connect(&place, stream).await.map_err(cannot)?).await
    }
}

async fn shake<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
) -> Result<Sender, HttpError> {
    let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(broken)?;
    // It ends with its sender.
    tokio::spawn(connection);
    Ok(sender)
}
