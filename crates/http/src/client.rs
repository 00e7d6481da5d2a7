//! A client of HTTP/1.1 with JSON: one connection for each request or one that is kept, over TCP,
//! TLS or a Unix socket, bounded in time and octets.

use crate::tls::Tls;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

pub use hyper::Method;

/// Longest answer, in octets (`spec/services.md`, section 3).
const ANSWER_MAX: usize = 16 << 20;

/// Where a server is.
#[derive(Debug, Clone)]
pub enum Place {
    /// `host:port`.
    Tcp(String),
    /// `host:port`, with TLS.
    Tls(String, Tls),
    /// A stream socket.
    Unix(PathBuf),
}

/// Why there is no good answer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HttpError {
    /// Nothing listens there.
    #[error("{place}: cannot connect: {why}")]
    Connect {
        /// Where.
        place: String,
        /// What the system says.
        why: String,
    },
    /// The connection ended, or what came is no HTTP.
    #[error("{place}: {why}")]
    Broken {
        /// Where.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// No answer in time.
    #[error("{place}: no answer within {} ms", .after.as_millis())]
    Late {
        /// Where.
        place: String,
        /// The time that was given.
        after: Duration,
    },
    /// An answer that says no.
    #[error("{method} {path}: {status}: {message}")]
    Refused {
        /// The method.
        method: String,
        /// The path.
        path: String,
        /// The status.
        status: u16,
        /// What the server says.
        message: String,
    },
}

/// A server that is asked.
#[derive(Debug, Clone)]
pub struct Client {
    place: Place,
    token: Option<String>,
    /// Where the token of now is.
    token_file: Option<PathBuf>,
    timeout: Duration,
    /// The connection of the last request, where it is kept for the next one.
    kept: Option<Kept>,
}

type Sender = hyper::client::conn::http1::SendRequest<Full<Bytes>>;
type Kept = Arc<Mutex<Option<Sender>>>;

/// What is sent.
#[derive(Debug, Clone)]
pub enum Body {
    /// Nothing.
    None,
    /// JSON.
    Json(Value),
    /// Octets of a media type.
    Octets(&'static str, Bytes),
}

impl Client {
    /// A client of `place` that gives up after `timeout`.
    #[must_use]
    pub fn new(place: Place, token: Option<String>, timeout: Duration) -> Self {
        Self { place, token, token_file: None, timeout, kept: None }
    }

    /// The same client with the token that stands in `file` at each request, for it is replaced from time to
    /// time. While the file cannot be read, the token that was given holds.
    #[must_use]
    pub fn with_token_file(self, file: PathBuf) -> Self {
        Self { token_file: Some(file), ..self }
    }

    fn token_now(&self) -> Option<String> {
        let read = |file: &PathBuf| std::fs::read_to_string(file).ok();
        let token = self.token_file.as_ref().and_then(read).map(|text| text.trim().to_owned());
        token.filter(|token| !token.is_empty()).or_else(|| self.token.clone())
    }

    /// A client of `http://host:port`.
    ///
    /// # Errors
    /// The URL is no such one.
    pub fn of_url(url: &str, token: Option<String>, timeout: Duration) -> Result<Self, HttpError> {
        Self::of_url_with(url, None, token, timeout)
    }

    /// A client of `http://host:port`, `unix:///path` or, with `tls`, of `https://host:port`.
    ///
    /// # Errors
    /// The URL is no such one, or asks for TLS and there is no authority to trust.
    pub fn of_url_with(
        url: &str,
        tls: Option<&Tls>,
        token: Option<String>,
        timeout: Duration,
    ) -> Result<Self, HttpError> {
        let broken = |why: &str| HttpError::Broken { place: url.to_owned(), why: why.to_owned() };
        if let Some(path) = url.strip_prefix("unix://").filter(|path| path.starts_with('/')) {
            return Ok(Self::new(Place::Unix(PathBuf::from(path)), token, timeout));
        }
        let (scheme, host) = url.split_once("://").unwrap_or_default();
        let host = host.trim_end_matches('/').to_owned();
        if host.is_empty() || host.contains('/') {
            return Err(broken(
                "the URL must be http://host:port, https://host:port or unix:///path",
            ));
        }
        let place = match (scheme, tls) {
            ("http", _) => Place::Tcp(host),
            ("https", Some(tls)) => Place::Tls(host, tls.clone()),
            ("https", None) => return Err(broken("no authority was named whose servers to trust")),
            _ => {
                return Err(broken(
                    "the URL must be http://host:port, https://host:port or unix:///path",
                ));
            }
        };
        Ok(Self::new(place, token, timeout))
    }

    /// The same with another time to wait.
    #[must_use]
    pub fn within(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// The same over one connection that is kept from request to request, and its clones with it.
    #[must_use]
    pub fn keeping(mut self) -> Self {
        self.kept = Some(Kept::default());
        self
    }

    fn shown(&self) -> String {
        match &self.place {
            Place::Tcp(host) => format!("http://{host}"),
            Place::Tls(host, _) => format!("https://{host}"),
            Place::Unix(path) => path.display().to_string(),
        }
    }

    /// Asks; an answer of 300 or more is [`HttpError::Refused`]. An answer that is no JSON is null.
    ///
    /// # Errors
    /// Every way in which no good answer comes.
    pub async fn ask(&self, method: Method, path: &str, body: Body) -> Result<Value, HttpError> {
        let (_, octets) = self.octets(method, path, body).await?;
        Ok(serde_json::from_slice(&octets).unwrap_or(Value::Null))
    }

    /// The same with the answer's status and octets.
    ///
    /// # Errors
    /// As [`Client::ask`].
    pub async fn octets(
        &self,
        method: Method,
        path: &str,
        body: Body,
    ) -> Result<(u16, Bytes), HttpError> {
        let late = || HttpError::Late { place: self.shown(), after: self.timeout };
        let answer = tokio::time::timeout(self.timeout, self.exchange(&method, path, body));
        let (status, octets) = answer.await.map_err(|_| late())??;
        if status < 300 {
            return Ok((status, octets));
        }
        Err(HttpError::Refused {
            method: method.to_string(),
            path: path.to_owned(),
            status,
            message: message(&octets),
        })
    }

    async fn exchange(
        &self,
        method: &Method,
        path: &str,
        body: Body,
    ) -> Result<(u16, Bytes), HttpError> {
        let broken = |e: &dyn std::fmt::Display| HttpError::Broken {
            place: self.shown(),
            why: e.to_string(),
        };
        let request = || self.request(method, path, body.clone()).map_err(|e| broken(&e));
        let mut answer = None;
        let mut sender = match self.last().await {
            None => self.connect().await?,
            Some(mut sender) => match sender.send_request(request()?).await {
                Ok(told) => {
                    answer = Some(told);
                    sender
                }
                // The server closed it at that moment; what only reads may be asked again.
                Err(_) if *method == Method::GET => self.connect().await?,
                Err(error) => return Err(broken(&error)),
            },
        };
        let answer = match answer {
            Some(answer) => answer,
            None => sender.send_request(request()?).await.map_err(|e| broken(&e))?,
        };
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), ANSWER_MAX).collect().await;
        let octets = body.map_err(|e| broken(&e))?.to_bytes();
        if let Some(kept) = &self.kept {
            *held(kept) = Some(sender);
        }
        Ok((status, octets))
    }

    /// The connection that was kept, if it is still good.
    async fn last(&self) -> Option<Sender> {
        let mut sender = held(self.kept.as_ref()?).take()?;
        // An end that the server closed meanwhile is told here, before anything is sent by it.
        sender.ready().await.is_ok().then_some(sender)
    }

    async fn connect(&self) -> Result<Sender, HttpError> {
        let connect =
            |e: std::io::Error| HttpError::Connect { place: self.shown(), why: e.to_string() };
        match &self.place {
            Place::Tcp(host) => {
                let stream = TcpStream::connect(host.as_str()).await.map_err(connect)?;
                let _ = stream.set_nodelay(true);
                self.shake(stream).await
            }
            Place::Tls(host, tls) => {
                let stream = TcpStream::connect(host.as_str()).await.map_err(connect)?;
                let _ = stream.set_nodelay(true);
                self.shake(tls.connect(host, stream).await.map_err(connect)?).await
            }
            Place::Unix(socket) => {
                self.shake(UnixStream::connect(socket).await.map_err(connect)?).await
            }
        }
    }

    async fn shake<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
        &self,
        stream: S,
    ) -> Result<Sender, HttpError> {
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (sender, connection) =
            shaken.map_err(|e| HttpError::Broken { place: self.shown(), why: e.to_string() })?;
        // It ends with its sender.
        tokio::spawn(connection);
        Ok(sender)
    }

    fn request(
        &self,
        method: &Method,
        path: &str,
        body: Body,
    ) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let host = match &self.place {
            Place::Tcp(host) | Place::Tls(host, _) => host.as_str(),
            Place::Unix(_) => "localhost",
        };
        let mut request = Request::builder().method(method).uri(path).header("host", host);
        if let Some(token) = self.token_now() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let octets = match body {
            Body::None => Bytes::new(),
            Body::Json(value) => {
                request = request.header("content-type", "application/json");
                Bytes::from(value.to_string())
            }
            Body::Octets(kind, octets) => {
                request = request.header("content-type", kind);
                octets
            }
        };
        request.body(Full::new(octets))
    }
}

fn held(kept: &Kept) -> std::sync::MutexGuard<'_, Option<Sender>> {
    kept.lock().expect("invariant: no panic under this lock")
}

/// What an error says: `error.message` of ours, `message` of Docker and Kubernetes, or the text.
fn message(octets: &[u8]) -> String {
    let value: Value = serde_json::from_slice(octets).unwrap_or(Value::Null);
    let told = [&value["error"]["message"], &value["message"], &value["error"]];
    match told.iter().find_map(|v| v.as_str()) {
        Some(text) => text.to_owned(),
        None => String::from_utf8_lossy(octets).chars().take(200).collect(),
    }
}
