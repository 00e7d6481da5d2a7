//! The manager's interface: HTTP with JSON under `/v1/`, described by `spec/openapi.json`, which
//! is written from the same table as the routes are; metrics; the page.

mod access;
mod bodies;
mod metrics;
mod openapi;
mod operations;
mod stream;
mod table;

pub use access::{Access, Pages};
pub use openapi::document;
pub use table::{Operation, Row, TABLE};

use crate::engine::{ChangeError, Manager, Standing};
use crate::network::Fault;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use onym_http::page::Page;
use onym_http::server::Caller;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// Longest request, in octets.
const REQUEST_MAX: usize = 1 << 20;

/// The page, built from `web/` and kept in the tree.
static PAGE: LazyLock<Page> = LazyLock::new(|| {
    Page::new(include_str!("../../page/index.html"), |text| {
        BASE64_STANDARD.encode(onym_crypto::sha256(&[text.as_bytes()]))
    })
});

/// What all requests share.
#[derive(Debug, Clone)]
pub(crate) struct App {
    manager: Manager,
    access: Access,
    pages: Arc<Pages>,
    streams: Arc<tokio::sync::Semaphore>,
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
            ChangeError::Unconfirmed { .. } => (StatusCode::CONFLICT, "confirm"),
            ChangeError::Conflict(_) => (StatusCode::CONFLICT, "conflict"),
            ChangeError::Busy => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
            ChangeError::Impossible { .. } | ChangeError::Failed { .. } => {
                (StatusCode::BAD_GATEWAY, "failed")
            }
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

/// The routes of a manager without a page for browsers that need a code.
pub fn router(manager: Manager, access: impl Into<Access>) -> Router {
    Doors::new(manager, Pages::default()).router(access)
}

/// What all doors of one manager share.
#[derive(Debug, Clone)]
pub struct Doors {
    manager: Manager,
    pages: Arc<Pages>,
    streams: Arc<tokio::sync::Semaphore>,
}

impl Doors {
    /// The doors of `manager`.
    #[must_use]
    pub fn new(manager: Manager, pages: Pages) -> Self {
        let streams = Arc::new(tokio::sync::Semaphore::new(stream::STREAMS_MAX));
        Self { manager, pages: Arc::new(pages), streams }
    }

    /// The routes of the door that answers whom `access` names.
    pub fn router(&self, access: impl Into<Access>) -> Router {
        let Self { manager, pages, streams } = self.clone();
        let app = App { manager, access: access.into(), pages, streams };
        let mut router = Router::new();
        for row in TABLE {
            let filter = MethodFilter::try_from(row.method()).unwrap_or(MethodFilter::GET);
            let operation = row.operation;
            let handler = move |State(app): State<App>, params: RawPathParams, request: Request| async move {
                answer(&app, operation, &params, request).await
            };
            router = router.route(row.path, on(filter, handler));
        }
        router
            .route("/", get(page))
            .fallback(async || {
                let text = "no such path; /openapi.json lists all";
                Refusal::new(StatusCode::NOT_FOUND, "path", text)
            })
            .method_not_allowed_fallback(async || {
                let text = "the path does not support this method; /openapi.json lists them";
                Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "method", text)
            })
            .with_state(app)
    }
}

/// Answers who may ask; of others nothing but the head of the request is read.
async fn answer(
    app: &App,
    operation: Operation,
    params: &RawPathParams,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    if !operation.is_open() {
        let caller = parts.extensions.get::<Caller>();
        if let Err(refusal) = app.access.check(&parts.headers, caller, &app.pages) {
            return refusal.into_response();
        }
        if let Some(caller) = caller {
            caller.prove();
        }
        if let Some(response) = elsewhere(app, &parts.uri) {
            return response;
        }
    }
    let answered = async {
        let input = Input::read(&parts, params, body).await?;
        operations::run(app, operation, &input).await
    };
    answered.await.unwrap_or_else(IntoResponse::into_response)
}

impl Input {
    async fn read(
        parts: &Parts,
        params: &RawPathParams,
        body: axum::body::Body,
    ) -> Result<Self, Refusal> {
        let body = axum::body::to_bytes(body, REQUEST_MAX).await.map_err(|_| {
            let text = format!("a body has at most {} KiB", REQUEST_MAX >> 10);
            Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", text)
        })?;
        let text = |name: &str| parts.headers.get(name).and_then(|v| v.to_str().ok());
        Ok(Self {
            path: params.iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
            query: pairs(parts.uri.query().unwrap_or_default()),
            body,
            kind: text(header::CONTENT_TYPE.as_str()).unwrap_or_default().to_owned(),
            last_event: text("last-event-id").map(str::to_owned),
        })
    }
}

/// A manager that stands by knows nothing of its own: it names the one that leads.
fn elsewhere(app: &App, uri: &Uri) -> Option<Response> {
    let Standing::StandsBy(leader) = app.manager.shared.standing() else { return None };
    let Some(leader) = leader else {
        let message = "no manager leads at the moment; try again later";
        let refusal = Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message);
        return Some(refusal.into_response());
    };
    let message = format!("this manager stands by; {leader} leads");
    let refusal = Refusal::new(StatusCode::TEMPORARY_REDIRECT, "stands-by", message);
    let path = uri.path_and_query().map_or("/", |p| p.as_str());
    let place = format!("{}{path}", leader.trim_end_matches('/'));
    Some(([(header::LOCATION, place)], refusal).into_response())
}

/// The page asks for the token itself, so it is shown without one.
async fn page(State(app): State<App>, uri: Uri) -> Response {
    if let Some(response) = elsewhere(&app, &uri) {
        return response;
    }
    PAGE.into_response()
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
