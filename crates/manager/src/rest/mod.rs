//! The manager's interface: HTTP with JSON under `/v1/`, described by `spec/openapi.json`, which
//! is written from the same table as the routes are; metrics; the page.

mod metrics;
mod openapi;
mod operations;
mod stream;
mod table;

pub use openapi::document;
pub use table::{Operation, Row, TABLE};

use crate::engine::{ChangeError, Manager, Standing};
use crate::network::Fault;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, RawPathParams, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Longest request, in octets.
const REQUEST_MAX: usize = 1 << 20;

/// What the page is made of, built from `web/` and kept in the tree.
const PAGE: &str = include_str!("../../page/index.html");

/// What all requests share.
#[derive(Debug, Clone)]
pub(crate) struct App {
    manager: Manager,
    access: Access,
    streams: Arc<tokio::sync::Semaphore>,
}

/// Whose requests are answered.
#[derive(Debug, Clone)]
pub enum Access {
    /// Those meant for this machine that come from no page of another place.
    Machine,
    /// Those that carry the token.
    Token(Arc<str>),
    /// Those of who has shown a certificate, unless they come from a page of another place.
    Certificate,
}

impl From<Option<String>> for Access {
    fn from(token: Option<String>) -> Self {
        token.map_or(Self::Machine, |t| Self::Token(Arc::from(t)))
    }
}

/// A request, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Input {
    pub(crate) path: BTreeMap<String, String>,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) body: Bytes,
    pub(crate) kind: String,
    /// The last event that a reader of a stream had.
    pub(crate) last_event: Option<String>,
}

/// An answer that says no.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
    faults: Vec<Fault>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), faults: Vec::new() }
    }

    pub(crate) fn field(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "field", message)
    }
}

impl From<ChangeError> for Refusal {
    fn from(error: ChangeError) -> Self {
        let message = error.to_string();
        let (status, code) = match &error {
            ChangeError::Faults(faults) => {
                let faults = faults.clone();
                return Self { faults, ..Self::field(message) };
            }
            ChangeError::Unknown(_) => (StatusCode::NOT_FOUND, "unknown"),
            ChangeError::Conflict(_) => (StatusCode::CONFLICT, "conflict"),
            ChangeError::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            ChangeError::Failed { .. } => (StatusCode::BAD_GATEWAY, "failed"),
            ChangeError::Store(_) => (StatusCode::INTERNAL_SERVER_ERROR, "store"),
        };
        Self::new(status, code, message)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let faults: Vec<Value> = self
            .faults
            .iter()
            .map(|f| json!({"object": f.object, "line": f.line, "what": f.what, "next": f.next}))
            .collect();
        let body = json!({"error": {"code": self.code, "message": self.message, "faults": faults}});
        (self.status, axum::Json(body)).into_response()
    }
}

/// The routes of a manager.
pub fn router(manager: Manager, access: impl Into<Access>) -> Router {
    let streams = Arc::new(tokio::sync::Semaphore::new(stream::STREAMS_MAX));
    let app = App { manager, access: access.into(), streams };
    let mut router = Router::new();
    for row in TABLE {
        let filter = MethodFilter::try_from(row.method()).unwrap_or(MethodFilter::GET);
        let operation = row.operation;
        let handler = move |State(app): State<App>,
                            params: RawPathParams,
                            RawQuery(query): RawQuery,
                            uri: Uri,
                            headers: HeaderMap,
                            body: Bytes| async move {
            let path = params.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
            let text = |name: &str| headers.get(name).and_then(|v| v.to_str().ok());
            let kind = text(header::CONTENT_TYPE.as_str());
            let input = Input {
                path,
                query: pairs(query.as_deref().unwrap_or_default()),
                body,
                kind: kind.unwrap_or_default().to_owned(),
                last_event: text("last-event-id").map(str::to_owned),
            };
            answer(&app, operation, &uri, &headers, &input).await
        };
        router = router.route(row.path, on(filter, handler));
    }
    router
        .route("/", get(page))
        .fallback(async || {
            Refusal::new(
                StatusCode::NOT_FOUND,
                "path",
                "there is no such path; /openapi.json lists them",
            )
        })
        .layer(DefaultBodyLimit::max(REQUEST_MAX))
        .with_state(app)
}

async fn answer(
    app: &App,
    operation: Operation,
    uri: &Uri,
    headers: &HeaderMap,
    input: &Input,
) -> Response {
    if !operation.is_open()
        && let Err(refusal) = allowed(app, headers)
    {
        return refusal.into_response();
    }
    if !operation.is_open()
        && let Some(response) = elsewhere(app, uri)
    {
        return response;
    }
    match operations::run(app, operation, input).await {
        Ok(response) => response,
        Err(refusal) => refusal.into_response(),
    }
}

/// A manager that stands by knows nothing of its own: it names the one that leads.
fn elsewhere(app: &App, uri: &Uri) -> Option<Response> {
    let Standing::StandsBy(leader) = app.manager.shared.standing() else { return None };
    let Some(leader) = leader else {
        let message = "no manager leads at the moment; come again";
        let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message);
        return Some(refusal.into_response());
    };
    let message = format!("this manager stands by; {leader} leads");
    let refusal = Refusal::new(StatusCode::TEMPORARY_REDIRECT, "stands-by", message);
    let path = uri.path_and_query().map_or("/", |p| p.as_str());
    let place = format!("{}{path}", leader.trim_end_matches('/'));
    Some(([(header::LOCATION, place)], refusal).into_response())
}

fn allowed(app: &App, headers: &HeaderMap) -> Result<(), Refusal> {
    let text = |name: header::HeaderName| headers.get(name).and_then(|v| v.to_str().ok());
    if let Access::Token(token) = &app.access {
        let given = text(header::AUTHORIZATION).and_then(|v| v.strip_prefix("Bearer "));
        let same = given.is_some_and(|g| same(g.as_bytes(), token.as_bytes()));
        let message = "a token is needed: Authorization: Bearer TOKEN";
        return if same {
            Ok(())
        } else {
            Err(Refusal::new(StatusCode::UNAUTHORIZED, "token", message))
        };
    }
    let host = text(header::HOST).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let message =
        "without a token the manager answers requests for its own machine, from its own page only";
    let foreign = || Refusal::new(StatusCode::FORBIDDEN, "host", message);
    let machine = matches!(app.access, Access::Machine);
    if machine && !["localhost", "127.0.0.1", "[::1]"].contains(&name) {
        return Err(foreign());
    }
    match text(header::ORIGIN) {
        Some(origin) if origin.split_once("://").map(|(_, h)| h) != Some(host) => Err(foreign()),
        _ => Ok(()),
    }
}

/// Compares without telling by its time how much was right.
fn same(a: &[u8], b: &[u8]) -> bool {
    let differ = a.iter().zip(b).fold(0, |sum, (x, y)| sum | (x ^ y));
    a.len() == b.len() && differ == 0
}

/// The page asks for the token itself, so it is shown without one.
async fn page(State(app): State<App>, uri: Uri) -> Response {
    if let Some(response) = elsewhere(&app, &uri) {
        return response;
    }
    let policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'";
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, PAGE).into_response()
}

/// `a=1&b=%2Fx` as pairs.
fn pairs(query: &str) -> BTreeMap<String, String> {
    let rows = query.split('&').filter(|row| !row.is_empty());
    rows.map(|row| {
        let (key, value) = row.split_once('=').unwrap_or((row, ""));
        (unescape(key), unescape(value))
    })
    .collect()
}

fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let hex = || u8::from_str_radix(text.get(at + 1..at + 3)?, 16).ok();
        match bytes[at] {
            b'+' => out.push(b' '),
            b'%' => {
                if let Some(octet) = hex() {
                    out.push(octet);
                    at += 2;
                } else {
                    out.push(b'%');
                }
            }
            other => out.push(other),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_taken_apart() {
        let pairs = pairs("after=3&name=%2Fa%2Fb&text=a+b&flag&bad=%zz");
        assert_eq!(pairs["name"], "/a/b");
        assert_eq!(pairs["text"], "a b");
        assert_eq!(pairs["flag"], "");
        assert_eq!(pairs["bad"], "%zz");
    }

    #[test]
    fn the_document_names_every_operation_once_and_is_the_committed_one() {
        let committed = include_str!("../../../../spec/openapi.json");
        let document = document();
        let rows: usize = document["paths"]
            .as_object()
            .unwrap()
            .values()
            .map(|p| p.as_object().unwrap().len())
            .sum();
        assert_eq!(rows, TABLE.len());
        let written = serde_json::to_string_pretty(&document).unwrap() + "\n";
        assert!(
            written == committed,
            "spec/openapi.json is of another version: `cargo run -p onym -- net openapi > spec/openapi.json`"
        );
    }
}
