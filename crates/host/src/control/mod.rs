//! The control interface: HTTP with JSON, as spec/services.md says.

mod each;
mod faces;
mod metrics;
mod post;
mod refused;
mod resources;
mod serve;
mod state;

use crate::Options;
use crate::worker::{Remote, Shared};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::Response;
use onym_http::access::{Foreign, bearer, check_loopback, check_origin, is_json, is_same};
use onym_http::server::Caller;
use onym_services::Kind;
use onym_sys::peer::own_uid;
use refused::Refused;
use resources::Resource;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(crate) use post::run as run_posts;
pub(crate) use serve::{load as load_tls, serve};

/// Longest body.
const BODY_MAX: usize = 16 << 20;

/// Whose requests are answered.
#[derive(Debug)]
pub(crate) enum Access {
    /// Those that carry the token; this is its digest, which tells nothing by the time of a
    /// comparison.
    Token([u8; 32]),
    /// Those of who has shown a certificate.
    Certificate,
    /// Those of this process's user and of root, on this machine.
    User,
    /// Those of this machine.
    Machine,
}

impl Access {
    pub(crate) fn of(options: &Options) -> Self {
        match &options.token {
            Some(token) => Self::Token(crate::digest(token.trim().as_bytes())),
            None if options.tls.is_some() => Self::Certificate,
            None if options.open => Self::Machine,
            None => Self::User,
        }
    }

    /// Refuses who may not ask, and what a page of another place asks.
    fn check(&self, headers: &HeaderMap, caller: Option<&Caller>) -> Result<(), Refused> {
        match self {
            Self::Token(wanted) => {
                let given = bearer(headers).map(|token| crate::digest(token.as_bytes()));
                if given.is_some_and(|given| is_same(&given, wanted)) {
                    return Ok(());
                }
                let text = "Authorization: Bearer TOKEN is missing or wrong";
                Err(refusal(401, "unauthorized", text))
            }
            Self::Certificate => check_origin(headers).map_err(foreign),
            Self::Machine => check_loopback(headers).map_err(foreign),
            Self::User => {
                check_loopback(headers).map_err(foreign)?;
                let uid = caller.and_then(|caller| caller.uid);
                if uid.is_some_and(|uid| uid == 0 || uid == own_uid()) {
                    return Ok(());
                }
                let text = "without a token this service answers its own user and root only; \
                            start it with --token-file, or with --open for every user";
                Err(refusal(401, "unauthorized", text))
            }
        }
    }
}

fn foreign(why: Foreign) -> Refused {
    let status = if why == Foreign::NoHost { 400 } else { 403 };
    refusal(status, "foreign", &why.to_string())
}

/// What the handlers share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) boot: u64,
    pub(crate) start_ms: u64,
    pub(crate) threads: usize,
    pub(crate) access: Access,
    pub(crate) workers: Vec<Remote>,
    pub(crate) shared: Arc<Shared>,
    /// Told when a stop is asked for.
    pub(crate) stop: tokio::sync::mpsc::Sender<()>,
}

/// Status and body of an answer.
pub(crate) type Answer = Result<(StatusCode, Value), Refused>;

/// 200 with this body.
pub(crate) fn ok(body: Value) -> Answer {
    Ok((StatusCode::OK, body))
}

/// A request, read.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Words of the path behind `/v1/`.
    pub(crate) path: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Call {
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.query.iter().find(|(k, _)| k == key)?.1.parse().ok()
    }

    /// The body as an object; nothing is an empty one.
    pub(crate) fn object(&self) -> Result<Map<String, Value>, Refused> {
        match &self.body {
            Value::Null => Ok(Map::new()),
            Value::Object(map) => Ok(map.clone()),
            _ => Err(refusal(400, "not_an_object", "the body is a JSON object")),
        }
    }
}

pub(crate) fn refusal(status: u16, code: &'static str, message: &str) -> Refused {
    Refused { status, code, message: message.to_owned(), field: None }
}

/// The threads did not answer.
pub(crate) fn stopping() -> Refused {
    refusal(503, "stopping", "the service is stopping or its threads do not answer")
}

/// 405.
pub(crate) fn method_refused() -> Refused {
    refusal(405, "method", "this path does not take that method; spec/services.md lists them")
}

/// Every request comes here.
pub(crate) async fn handle(State(app): State<Arc<App>>, request: Request) -> Response {
    let uri = request.uri().clone();
    let path = uri.path();
    if matches!(path, "/healthz" | "/startupz" | "/v1/health") {
        return json_of(state::health(&app).await);
    }
    if matches!(path, "/readyz" | "/v1/ready") {
        return json_of(state::ready(&app).await);
    }
    let caller = request.extensions().get::<Caller>();
    if let Err(refusal) = app.access.check(request.headers(), caller) {
        return json_of(Err(refusal));
    }
    if let Some(caller) = caller {
        caller.prove();
    }
    if path == "/metrics" {
        return metrics::answer(&app).await;
    }
    match read(request, &uri).await {
        Ok(call) => json_of(route(&app, call).await),
        Err(refusal) => json_of(Err(refusal)),
    }
}

impl App {
    /// Refuses to connect to a socket of others.
    pub(crate) fn check_socket(&self, field: &'static str, uri: &str) -> Result<(), Refused> {
        let Some(path) = crate::uri::socket(uri) else { return Ok(()) };
        self.shared.folders.check(path).map_err(|why| Refused {
            field: Some(field.to_owned()),
            ..refusal(403, "folder", &format!("{why}; --allow-connect unix:///FOLDER allows one"))
        })
    }
}

async fn read(request: Request, uri: &Uri) -> Result<Call, Refused> {
    let Some(path) = uri.path().strip_prefix("/v1/") else { return Err(Refused::no_path()) };
    let path: Vec<String> = path.split('/').map(unescape).collect();
    let query = uri.query().unwrap_or_default().split('&').filter_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        Some((unescape(key), unescape(value)))
    });
    let query = query.collect();
    let method = request.method().clone();
    let is_json = is_json(request.headers());
    let bytes: Bytes = axum::body::to_bytes(request.into_body(), BODY_MAX)
        .await
        .map_err(|_| refusal(413, "too_large", "a body has at most 16 MiB"))?;
    let body = if bytes.is_empty() {
        Value::Null
    } else if !is_json {
        let text = "a body must be JSON with Content-Type: application/json";
        return Err(refusal(415, "media_type", text));
    } else {
        serde_json::from_slice(&bytes)
            .map_err(|e| refusal(400, "not_json", &format!("the body is not JSON: {e}")))?
    };
    Ok(Call { method, path, query, body })
}

/// Takes %XX away.
fn unescape(text: &str) -> String {
    let (bytes, mut out, mut at) = (text.as_bytes(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).and_then(|h| std::str::from_utf8(h).ok());
        match hex.filter(|_| *byte == b'%').and_then(|h| u8::from_str_radix(h, 16).ok()) {
            Some(escaped) => {
                out.push(escaped);
                at += 3;
            }
            None => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

async fn route(app: &Arc<App>, call: Call) -> Answer {
    let words: Vec<&str> = call.path.iter().map(String::as_str).collect();
    match (call.method.as_str(), words.as_slice()) {
        ("GET", ["version"]) => ok(state::version(app)),
        ("GET", ["service"]) => state::whole(app).await,
        ("GET", ["listeners"]) => state::listeners(app).await,
        ("GET", ["stats"]) => state::stats(app).await,
        ("GET", ["events"]) => state::events(app, &call).await,
        ("GET" | "PATCH", ["config"]) => state::config(app, &call).await,
        ("GET" | "PUT" | "DELETE", ["drain"]) => state::drain(app, &call).await,
        ("POST", ["stop"]) => {
            let told = app.stop.try_send(()).is_ok();
            ok(json!({ "changed": told }))
        }
        ("GET" | "PUT" | "DELETE", ["freeze", side]) => faces::freeze(app, &call, side).await,
        ("GET", ["faces"]) => faces::list(app).await,
        ("PATCH", ["faces"]) => faces::change_many(app, &call).await,
        ("GET" | "PUT" | "PATCH" | "DELETE", ["faces", label]) => {
            faces::one(app, &call, label).await
        }
        (
            _,
            [
                "version" | "service" | "listeners" | "stats" | "events" | "config" | "drain"
                | "stop" | "faces",
            ]
            | ["freeze" | "faces", _],
        ) => Err(method_refused()),
        (_, [word]) => match Resource::of(word) {
            Some(resource) => resources::element(app, &call, resource).await,
            None => Err(Refused::no_path()),
        },
        _ => Err(Refused::no_path()),
    }
}

fn json_of(answer: Answer) -> Response {
    let (status, body) = match answer {
        Ok(good) => good,
        Err(r) => {
            let mut error = json!({ "code": r.code, "message": r.message });
            if let Some(field) = r.field {
                error["field"] = field.into();
            }
            let status = StatusCode::from_u16(r.status).unwrap_or(StatusCode::BAD_REQUEST);
            (status, json!({ "error": error }))
        }
    };
    respond(status, "application/json", body.to_string())
}

fn respond(status: StatusCode, kind: &'static str, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

/// Joins what several threads answered: numbers are added, lists put together, objects joined
/// member by member, the rest is that of the first.
pub(crate) fn join(all: Vec<Value>) -> Value {
    let mut all = all.into_iter();
    let mut sum = all.next().unwrap_or_default();
    for other in all {
        add(&mut sum, other);
    }
    sum
}

fn add(sum: &mut Value, other: Value) {
    match (sum, other) {
        (Value::Object(sum), Value::Object(other)) => {
            for (key, value) in other {
                add(sum.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(sum), Value::Array(other)) => sum.extend(other),
        (Value::Bool(sum), Value::Bool(other)) => *sum |= other,
        (sum @ Value::Number(_), Value::Number(other)) => {
            let total = match (sum.as_u64(), other.as_u64()) {
                (Some(a), Some(b)) => Value::from(a + b),
                _ => Value::from(sum.as_f64().unwrap_or(0.0) + other.as_f64().unwrap_or(0.0)),
            };
            *sum = total;
        }
        (sum @ Value::Null, other) => *sum = other,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_threads_answer_is_joined() {
        let all = vec![
            json!({ "a": 1, "list": [1], "inner": { "n": 2 }, "kind": "x", "on": false }),
            json!({ "a": 2, "list": [2], "inner": { "n": 3 }, "kind": "x", "on": true }),
        ];
        let wanted =
            json!({ "a": 3, "list": [1, 2], "inner": { "n": 5 }, "kind": "x", "on": true });
        assert_eq!(join(all), wanted);
    }

    #[test]
    fn escapes_in_paths_are_read() {
        assert_eq!(unescape("a%2Fb%"), "a/b%");
    }
}
