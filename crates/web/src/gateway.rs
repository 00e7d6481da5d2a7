//! Named data for HTTP clients.

use crate::address::{Address, NoName};
use crate::body::{Broken, Content};
use crate::conditions::{Known, Wanted, wanted};
use crate::lookup::{Found, How, Miss, Names, miss};
use crate::{kinds, listing};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::Response;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, StatusCode};
use onym_client::Schema;
use onym_client::aio::Client;
use onym_client::fetch::{Part, Segments};
use onym_repo::file::parse_listing;
use onym_wire::name::Name;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

/// Octets of a listing that are taken, at most.
const LISTING_MAX: u64 = 16 << 20;
/// The page of a folder, when it has one.
const INDEX: &[u8] = b"index.html";
/// Methods that are understood.
const METHODS: &str = "GET, HEAD, OPTIONS";
/// How long browsers and caches keep what never changes: a year.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");

/// How a gateway behaves.
#[derive(Debug)]
pub struct Options {
    /// Paths that do not begin with `/ndn/` are under this name.
    pub root: Option<Name>,
    /// Whom it believes; without it only damage is noticed.
    pub schema: Option<Arc<Schema>>,
    /// Octets of an object, at most.
    pub size_max: u64,
}

#[derive(Debug)]
struct Gateway {
    names: Names,
    root: Option<Name>,
}

/// What answers HTTP requests with data that `client` fetches.
pub fn router(client: Client, options: Options) -> Router {
    let names = Names::new(client, options.schema, options.size_max);
    let gateway = Gateway { names, root: options.root };
    Router::new().fallback(answer).with_state(Arc::new(gateway))
}

async fn answer(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let (head, _) = request.into_parts();
    let mut response = match head.method {
        Method::GET | Method::HEAD => gateway.get(&head).await,
        Method::OPTIONS => preflight(),
        _ => {
            let mut refused = text(StatusCode::METHOD_NOT_ALLOWED, "this gateway only reads");
            set(refused.headers_mut(), header::ALLOW, METHODS);
            refused
        }
    };
    let headers = response.headers_mut();
    // Players and pages of other places read content and what is said about it.
    set(headers, header::ACCESS_CONTROL_ALLOW_ORIGIN, "*");
    let exposed = "Accept-Ranges, Age, Cache-Status, Content-Length, Content-Range, ETag";
    set(headers, header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    set(headers, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    response
}

fn preflight() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    set(headers, header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    let allowed =
        "Range, If-Match, If-None-Match, If-Modified-Since, If-Unmodified-Since, If-Range";
    set(headers, header::ACCESS_CONTROL_ALLOW_HEADERS, allowed);
    set(headers, header::ACCESS_CONTROL_MAX_AGE, "86400");
    response
}

impl Gateway {
    async fn get(&self, request: &Parts) -> Response {
        let address = match Address::of(request.uri.path(), self.root.as_ref()) {
            Ok(address) => address,
            Err(NoName::Local) => return text(StatusCode::FORBIDDEN, &NoName::Local.to_string()),
            Err(NoName::Elsewhere) => {
                return text(StatusCode::NOT_FOUND, &NoName::Elsewhere.to_string());
            }
            Err(why) => return text(StatusCode::BAD_REQUEST, &why.to_string()),
        };
        let mut asked = address.name.clone();
        if address.is_folder {
            asked.append_keyword("ls");
        }
        let (how, found) = self.names.find(&asked).await;
        let found = match found {
            Ok(found) => found,
            Err(why) => return failure(&why),
        };
        let mut response = match (found.is_folder, address.is_folder) {
            (true, false) => return moved(request.uri.path()),
            (true, true) => self.folder(request, &address.name, &found).await,
            (false, _) => self.object(request, &address.name, &found).await,
        };
        status(response.headers_mut(), how, &found);
        response
    }

    /// The page of a folder, or what it has.
    async fn folder(&self, request: &Parts, name: &Name, folder: &Found) -> Response {
        let content = match self.all(folder).await {
            Ok(content) => content,
            Err(why) => return failure(&why),
        };
        let listed = parse_listing(&content);
        let headers = &request.headers;
        let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
        let as_json = accepts.is_some_and(|kinds| kinds.contains("application/json"));
        if !as_json && listed.iter().any(|one| one.name == INDEX && !one.is_folder) {
            let mut index = name.clone();
            index.append_generic(INDEX);
            return match self.names.find(&index).await.1 {
                Ok(found) => self.object(request, &index, &found).await,
                Err(why) => failure(&why),
            };
        }
        let (kind, body) = if as_json {
            ("application/json", listing::value(&listed).to_string())
        } else {
            ("text/html; charset=utf-8", listing::page(&name.to_string(), &listed))
        };
        let form = if as_json { "json" } else { "page" };
        let etag = format!("{}-{form}\"", folder.etag().trim_end_matches('"'));
        let known = Known { etag: &etag, modified: None, size: None };
        let (status, body) = match wanted(headers, known) {
            Wanted::NotModified => (StatusCode::NOT_MODIFIED, String::new()),
            Wanted::Failed => (StatusCode::PRECONDITION_FAILED, String::new()),
            _ => (StatusCode::OK, body),
        };
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        set(headers, header::CONTENT_TYPE, kind);
        set(headers, header::VARY, "Accept");
        set(headers, header::ETAG, &etag);
        set(headers, header::CACHE_CONTROL, "public, max-age=0");
        response
    }

    /// All of a small object.
    async fn all(&self, found: &Found) -> Result<Vec<u8>, Miss> {
        let mut fetch = self.names.fetch(found, Segments::default()).await?;
        let mut content = Vec::new();
        while let Some(piece) = fetch.next().await {
            content.extend_from_slice(&piece);
            if content.len() as u64 > LISTING_MAX {
                return Err(Miss::Other("the listing is too long".into()));
            }
        }
        fetch.end().await.map_err(|e| miss(&e))?;
        Ok(content)
    }

    async fn object(&self, request: &Parts, name: &Name, found: &Found) -> Response {
        let etag = found.etag();
        // Without the length of segments nobody knows where an octet is.
        let has_parts = found.whole.is_some() || found.segment_size.is_some();
        let size = found.size.filter(|_| has_parts);
        let modified = found.modified;
        let wanted = wanted(&request.headers, Known { etag: &etag, modified, size });
        let file =
            name.components().filter(|c| c.is_generic()).last().map_or(&b""[..], |c| c.value);
        let (status, octets) = match &wanted {
            Wanted::Whole => (StatusCode::OK, None),
            Wanted::Part(octets) => (StatusCode::PARTIAL_CONTENT, Some(octets.clone())),
            Wanted::NotModified => (StatusCode::NOT_MODIFIED, None),
            Wanted::Failed => (StatusCode::PRECONDITION_FAILED, None),
            Wanted::Nothing => (StatusCode::RANGE_NOT_SATISFIABLE, None),
        };
        let has_body = matches!(wanted, Wanted::Whole | Wanted::Part(_));
        let body = if has_body && request.method == Method::GET {
            match self.content(found, octets.clone()).await {
                Ok(body) => body,
                Err(why) => return failure(&why),
            }
        } else {
            Body::empty()
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        set(headers, header::ETAG, &etag);
        if let Some(at) = modified {
            set(headers, header::LAST_MODIFIED, &httpdate::fmt_http_date(at));
        }
        let cached = format!("public, max-age={}", found.fresh.as_secs());
        set(headers, header::CACHE_CONTROL, if found.is_fixed { FOR_EVER } else { &cached });
        if wanted == Wanted::Nothing {
            set(headers, header::CONTENT_RANGE, &format!("bytes */{}", size.unwrap_or(0)));
        }
        if has_body {
            set(headers, header::CONTENT_TYPE, kinds::of(file));
            let ranges = if size.is_some() { "bytes" } else { "none" };
            set(headers, header::ACCEPT_RANGES, ranges);
            let len = match &octets {
                None => found.size,
                Some(octets) => {
                    let (first, last) = (octets.start(), octets.end());
                    let range = format!("bytes {first}-{last}/{}", size.unwrap_or(0));
                    set(headers, header::CONTENT_RANGE, &range);
                    Some(last - first + 1)
                }
            };
            if let Some(len) = len {
                set(headers, header::CONTENT_LENGTH, &len.to_string());
            }
        }
        response
    }

    /// The octets of an object as a body; what fails before the first of them is told.
    async fn content(
        &self,
        found: &Found,
        octets: Option<RangeInclusive<u64>>,
    ) -> Result<Body, Miss> {
        if let Some(packet) = &found.whole {
            let data = packet.data();
            let at = |n: &u64| usize::try_from(*n).unwrap_or(usize::MAX);
            let part = octets.map_or(data.content, |o| &data.content[at(o.start())..=at(o.end())]);
            return Ok(Body::from(part.to_vec()));
        }
        if found.size == Some(0) {
            return Ok(Body::empty());
        }
        let octets = octets.or(found.size.map(|size| 0..=size - 1));
        let part = octets.zip(found.segment_size).and_then(|(octets, size)| Part::of(octets, size));
        let segments = part.as_ref().map_or_else(Segments::default, |part| part.segments);
        for tries in 0.. {
            let fetch = self.names.fetch(found, segments).await?;
            match Content::new(fetch, part.clone()).begun().await {
                Ok(content) => return Ok(Body::new(content)),
                Err(Broken::Fetch(error)) if tries == 0 => {
                    if !self.names.has_more_trust(&error).await {
                        return Err(miss(&error));
                    }
                }
                Err(Broken::Fetch(error)) => return Err(miss(&error)),
                Err(error) => return Err(Miss::Other(error.to_string())),
            }
        }
        Ok(Body::empty())
    }
}

/// Where the folder is.
fn moved(path: &str) -> Response {
    let mut response = text(StatusCode::MOVED_PERMANENTLY, "this is a folder");
    // Its last component alone: whatever the path is, this stays on this server.
    let last = path.rsplit('/').next().unwrap_or_default();
    set(response.headers_mut(), header::LOCATION, &format!("./{last}/"));
    response
}

/// What `Cache-Status` and `Age` say.
fn status(headers: &mut HeaderMap, how: How, found: &Found) {
    let left = |age: Duration| found.fresh.as_secs().saturating_sub(age.as_secs());
    let (text, age) = match how {
        How::Hit(age) => (format!("onym; hit; ttl={}", left(age)), Some(age)),
        How::Miss => ("onym; fwd=uri-miss".to_owned(), None),
        How::Stale => ("onym; fwd=stale".to_owned(), None),
        How::Collapsed => ("onym; fwd=uri-miss; collapsed".to_owned(), None),
        How::Kept(age) => ("onym; fwd=stale; fwd-status=504".to_owned(), Some(age)),
    };
    set(headers, CACHE_STATUS, &text);
    set(headers, header::AGE, &age.unwrap_or_default().as_secs().to_string());
}

fn failure(why: &Miss) -> Response {
    let status = match why {
        Miss::Nothing | Miss::Refused(_) => StatusCode::NOT_FOUND,
        Miss::NoRoute | Miss::NotBelieved(_) | Miss::Other(_) => StatusCode::BAD_GATEWAY,
        Miss::Late => StatusCode::GATEWAY_TIMEOUT,
        Miss::NoNode => StatusCode::SERVICE_UNAVAILABLE,
    };
    text(status, &why.to_string())
}

/// A sentence as an answer; what failed a moment ago may not fail now.
fn text(status: StatusCode, sentence: &str) -> Response {
    let mut response = Response::new(Body::from(format!("{sentence}\n")));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    set(headers, header::CONTENT_TYPE, "text/plain; charset=utf-8");
    set(headers, header::CACHE_CONTROL, "no-store");
    response
}

/// Sets a header; what cannot be one is left out.
fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
