//! Asking an origin: one GET, bounded in time and octets.

use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use std::time::Duration;
use tokio::net::TcpStream;

/// How long an origin may take for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// An HTTP server.
#[derive(Debug, Clone)]
pub struct Server {
    /// `host:port`, as it is connected to and named.
    host: String,
    /// What paths begin with, without `/` at the end.
    base: String,
    octets_max: usize,
}

/// Why a URL is not that of an origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the URL of an origin is http://host[:port][/path]; for TLS put a proxy between")]
pub struct NoOrigin;

/// What the origin answered.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// What an origin knows a page by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Validators {
    pub(crate) etag: Option<String>,
    pub(crate) modified: Option<String>,
}

impl Validators {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|v| v.to_str().ok()).map(str::to_owned);
        Self { etag: text(header::ETAG), modified: text(header::LAST_MODIFIED) }
    }
}

impl Server {
    /// The server at `url`, of which pages of `octets_max` octets are taken at most.
    ///
    /// # Errors
    /// [`NoOrigin`].
    pub fn of(url: &str, octets_max: usize) -> Result<Self, NoOrigin> {
        let uri: Uri = url.parse().map_err(|_| NoOrigin)?;
        let authority = uri.authority().ok_or(NoOrigin)?;
        if uri.scheme_str() != Some("http") || uri.query().is_some() || url.contains('@') {
            return Err(NoOrigin);
        }
        let base = uri.path().trim_end_matches('/').to_owned();
        Ok(Self { host: authority.to_string(), base, octets_max })
    }

    /// Where on this server `location` leads, which the answer for a page named.
    pub(crate) fn within(&self, location: &str) -> Option<String> {
        let here = format!("http://{}", self.host);
        let path = location.strip_prefix(&here).unwrap_or(location);
        let path = path.strip_prefix(self.base.as_str())?;
        (path.starts_with('/') && !path.starts_with("//")).then(|| path.to_owned())
    }

    /// The page at `path`, or that it is still what the validators say.
    pub(crate) async fn get(&self, path: &str, known: &Validators) -> Result<Came, String> {
        let late = |_| "no answer in time".to_owned();
        tokio::time::timeout(PATIENCE, self.exchange(path, known)).await.map_err(late)?
    }

    async fn exchange(&self, path: &str, known: &Validators) -> Result<Came, String> {
        let told = |error: &dyn std::fmt::Display| error.to_string();
        let mut request = Request::get(format!("{}{path}", self.base))
            .header(header::HOST, &self.host)
            .header(header::ACCEPT_ENCODING, "identity")
            .header(header::USER_AGENT, "onym");
        if let Some(etag) = &known.etag {
            request = request.header(header::IF_NONE_MATCH, etag);
        }
        if let Some(modified) = &known.modified {
            request = request.header(header::IF_MODIFIED_SINCE, modified);
        }
        let request = request.body(Empty::<Bytes>::new()).map_err(|e| told(&e))?;
        let has_port = self.host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let place = if has_port { self.host.clone() } else { format!("{}:80", self.host) };
        let stream = TcpStream::connect(place).await.map_err(|e| told(&e))?;
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|e| told(&e))?;
        // It ends with its sender.
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.map_err(|e| told(&e))?;
        let (head, body) = answer.into_parts();
        let coded = head.headers.get(header::CONTENT_ENCODING);
        if coded.is_some_and(|coding| coding != "identity") {
            return Err("it sent a coding that was not asked for".into());
        }
        let body = Limited::new(body, self.octets_max).collect().await.map_err(|e| told(&e))?;
        Ok(Came { status: head.status.as_u16(), headers: head.headers, body: body.to_bytes() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_one_server_and_redirections_stay_there() {
        let server = Server::of("http://example:81/base/", 1).unwrap();
        assert_eq!((server.host.as_str(), server.base.as_str()), ("example:81", "/base"));
        for (to, path) in [
            ("/base/b?x", Some("/b?x")),
            ("http://example:81/base/b", Some("/b")),
            ("/other", None),
            ("/base//evil", None),
            ("http://evil/base/b", None),
            ("https://example:81/base/b", None),
        ] {
            assert_eq!(server.within(to).as_deref(), path, "{to}");
        }
        for wrong in ["example", "https://example", "http://a@b", "http://a/?x", "", "/a"] {
            assert!(Server::of(wrong, 1).is_err(), "{wrong}");
        }
    }
}
