//! The manager's interface over HTTP.

#![allow(clippy::unwrap_used)]

mod fake;

use fake::FakeDriver;
use onym_http::client::{Body, Client, HttpError, Method, Place};
use onym_manager::allow::Allowed;
use onym_manager::engine::{Manager, Options};
use onym_manager::store::FileStore;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

struct Served {
    address: String,
    _folder: tempfile::TempDir,
}

async fn served(token: Option<&str>) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let store = FileStore::open(&folder.path().join("state.redb")).unwrap();
    let driver = Arc::new(FakeDriver::default());
    let watch = Duration::from_millis(20);
    let manager = Manager::start(Options {
        driver,
        store: Box::new(store),
        watch,
        allowed: Allowed::default(),
    })
    .await
    .unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let app = onym_manager::rest::router(manager, token.map(str::to_owned));
    tokio::spawn(async move { axum::serve(listener, app).await });
    Served { address, _folder: folder }
}

impl Served {
    fn client(&self, token: Option<&str>) -> Client {
        let place = Place::Tcp(self.address.clone());
        Client::new(place, token.map(str::to_owned), Duration::from_secs(30))
    }

    async fn ask(&self, method: Method, path: &str, body: Body) -> Result<Value, HttpError> {
        self.client(None).ask(method, path, body).await
    }
}

fn status(result: Result<Value, HttpError>) -> (u16, String) {
    match result {
        Ok(_) => (200, String::new()),
        Err(HttpError::Refused { status, message, .. }) => (status, message),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn a_network_is_applied_shown_changed_and_taken_down() {
    let served = served(None).await;
    let done = served.ask(Method::PUT, "/v1/presets/nfd?dry_run=true", Body::None).await.unwrap();
    assert_eq!(done["steps"].as_array().unwrap().len(), 9);
    let view = served.ask(Method::GET, "/v1/network", Body::None).await.unwrap();
    assert_eq!(view["functions"].as_object().unwrap().len(), 0, "a dry run does nothing");
    served.ask(Method::PUT, "/v1/presets/nfd", Body::None).await.unwrap();
    let insert = json!({"on": {"from": "cs", "to": "br"}, "name": "nf", "function": {"kind": "name-filter"}});
    served.ask(Method::POST, "/v1/insert", Body::Json(insert)).await.unwrap();
    let edges = served.ask(Method::GET, "/v1/trace?start=pd&name=%2Fa", Body::None).await.unwrap();
    assert!(edges.as_array().unwrap().contains(&json!({"from": "cs", "to": "nf"})));
    for form in ["toml", "yaml", "tosca"] {
        let path = format!("/v1/description?form={form}");
        let (_, text) = served.client(None).octets(Method::GET, &path, Body::None).await.unwrap();
        let again = served.ask(Method::PUT, &path, Body::Octets("text/plain", text)).await.unwrap();
        assert_eq!(again["steps"], json!([]), "{form}: what was exported is what runs");
    }
    let events = served.ask(Method::GET, "/v1/events?after=0", Body::None).await.unwrap();
    assert!(events["events"].as_array().unwrap().iter().any(|e| e["kind"] == "started"));
    served.ask(Method::DELETE, "/v1/functions/nf?join=true", Body::None).await.unwrap();
    served.ask(Method::DELETE, "/v1/description?confirm=true", Body::None).await.unwrap();
    let view = served.ask(Method::GET, "/v1/network", Body::None).await.unwrap();
    assert_eq!(view["functions"].as_object().unwrap().len(), 0);
}

#[tokio::test]
async fn every_mistake_is_answered_and_says_what_is_wrong() {
    let served = served(None).await;
    let text = |t: &'static str| Body::Octets("application/toml", t.into());
    let bad =
        served.ask(Method::PUT, "/v1/description", text("functions.a.kind = \"switch\"")).await;
    let (code, message) = status(bad);
    assert!(
        code == 422 && message.contains("line 1") && message.contains("function a"),
        "{message}"
    );
    for (method, path, body, expected) in [
        (Method::GET, "/v1/functions/nobody", Body::None, 404),
        (Method::GET, "/v1/nothing", Body::None, 404),
        (Method::POST, "/v1/insert", Body::Octets("application/json", "{".into()), 400),
        (Method::POST, "/v1/insert", Body::Json(json!({"what": 1})), 422),
        (Method::PUT, "/v1/presets/none", Body::None, 404),
        (Method::PUT, "/v1/presets/nfd?strategy=hope", Body::None, 422),
        (Method::PUT, "/v1/functions/x/instances", Body::Json(json!({"instances": 2})), 404),
        (Method::DELETE, "/v1/links?from=a&to=b", Body::None, 404),
        (Method::PATCH, "/v1/network", Body::None, 405),
        (Method::GET, "/v1/events?after=x", Body::None, 422),
        (Method::PUT, "/v1/policies", Body::Json(json!({"scaling": {"upp": 1}})), 422),
    ] {
        let (code, message) = status(served.ask(method.clone(), path, body).await);
        assert_eq!(code, expected, "{method} {path}: {message}");
    }
}

#[tokio::test]
async fn without_the_token_nothing_is_told_or_done() {
    let token = "0123456789abcdef";
    let served = served(Some(token)).await;
    for path in ["/v1/network", "/v1/description", "/metrics", "/v1/events"] {
        assert_eq!(status(served.ask(Method::GET, path, Body::None).await).0, 401, "{path}");
        let wrong = served.client(Some("0123456789abcdeg"));
        assert_eq!(status(wrong.ask(Method::GET, path, Body::None).await).0, 401, "{path}");
    }
    assert_eq!(status(served.ask(Method::PUT, "/v1/presets/nfd", Body::None).await).0, 401);
    assert!(served.client(Some(token)).ask(Method::GET, "/v1/network", Body::None).await.is_ok());
    assert!(served.ask(Method::GET, "/v1/health", Body::None).await.is_ok());
}

#[tokio::test]
async fn a_page_of_another_place_cannot_use_the_managers_loopback() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let served = served(None).await;
    let own = served.address.clone();
    for (host, origin, expected) in [
        (own.as_str(), None, "200"),
        (own.as_str(), Some(format!("http://{own}")), "200"),
        ("evil.example", None, "403"),
        (own.as_str(), Some("http://evil.example".to_owned()), "403"),
    ] {
        let mut stream = tokio::net::TcpStream::connect(&served.address).await.unwrap();
        let origin = origin.map(|o| format!("Origin: {o}\r\n")).unwrap_or_default();
        let request = format!(
            "GET /v1/network HTTP/1.1\r\nHost: {host}\r\n{origin}Connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer.split_whitespace().nth(1), Some(expected), "{host} {origin}");
    }
}

#[tokio::test]
async fn the_page_and_the_metrics_are_there() {
    let served = served(None).await;
    let (_, page) = served.client(None).octets(Method::GET, "/", Body::None).await.unwrap();
    assert!(String::from_utf8_lossy(&page).contains("Onym"));
    let (_, metrics) =
        served.client(None).octets(Method::GET, "/metrics", Body::None).await.unwrap();
    assert!(String::from_utf8_lossy(&metrics).contains("onym_manager_settled 0"));
}

/// A stream of events from after `last` on, once its head has come.
async fn listen(served: &Served, last: u64) -> tokio::io::BufReader<tokio::net::TcpStream> {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
    let mut socket = tokio::net::TcpStream::connect(&served.address).await.unwrap();
    let head = format!(
        "GET /v1/events/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nLast-Event-ID: {last}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut reader = tokio::io::BufReader::new(socket);
    let mut line = String::new();
    reader.read_line(&mut line).await.unwrap();
    assert!(line.starts_with("HTTP/1.1 200") || line.starts_with("HTTP/1.1 503"), "{line}");
    assert_eq!(line.contains("503"), last == u64::MAX, "{line}");
    reader
}

/// Reads on until a line begins so.
async fn line_of(reader: &mut tokio::io::BufReader<tokio::net::TcpStream>, begin: &str) -> String {
    use tokio::io::AsyncBufReadExt as _;
    let read = async {
        loop {
            let mut line = String::new();
            assert!(reader.read_line(&mut line).await.unwrap() > 0, "it ended");
            if line.starts_with(begin) {
                return line.trim_end().to_owned();
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), read).await.unwrap()
}

#[tokio::test]
async fn events_are_streamed_as_they_come_and_from_the_last_one_that_was_read() {
    let served = served(None).await;
    let mut first = listen(&served, 0).await;
    served.ask(Method::PUT, "/v1/presets/scaling", Body::None).await.unwrap();
    let id = line_of(&mut first, "id: ").await;
    assert_eq!(id, "id: 1");
    line_of(&mut first, "event: changed").await;
    let data = line_of(&mut first, "data: ").await;
    let event: Value = serde_json::from_str(data.trim_start_matches("data: ")).unwrap();
    let mut again = listen(&served, event["seq"].as_u64().unwrap() - 1).await;
    assert_eq!(line_of(&mut again, "data: ").await, data, "it goes on where the reader was");
    let mut held = Vec::new();
    for _ in 2..16 {
        held.push(listen(&served, 0).await);
    }
    // All places are taken; the rest of the interface answers.
    listen(&served, u64::MAX).await;
    served.ask(Method::GET, "/v1/health", Body::None).await.unwrap();
    drop((first, again));
}

async fn functions(served: &Served) -> usize {
    let view = served.ask(Method::GET, "/v1/network", Body::None).await.unwrap();
    view["functions"].as_object().unwrap().len()
}

#[tokio::test]
async fn an_empty_or_nameless_description_is_refused_and_nothing_stops() {
    let served = served(None).await;
    served.ask(Method::PUT, "/v1/presets/nfd", Body::None).await.unwrap();
    let named = json!({"network": "", "functions": {"br": {"kind": "backward-router"}}});
    for (form, text) in [
        ("json", "{}".to_owned()),
        ("json", json!({"network": "nfd"}).to_string()),
        ("json", named.to_string()),
        ("toml", String::new()),
        ("toml", "network = \"nfd\"\n".to_owned()),
        ("toml", "functions.br.kind = \"BR\"\n".to_owned()),
        ("yaml", "network: nfd\n".to_owned()),
    ] {
        for confirm in ["", "&confirm=true"] {
            let path = format!("/v1/description?form={form}{confirm}");
            let body = Body::Octets("text/plain", text.clone().into());
            let (code, message) = status(served.ask(Method::PUT, &path, body).await);
            assert_eq!(code, 422, "{text}: {message}");
            let told = message.contains("no name") || message.contains("no functions");
            assert!(told, "{text}: {message}");
        }
    }
    assert_eq!(functions(&served).await, 4);
}

#[tokio::test]
async fn a_change_that_takes_more_than_half_away_wants_a_confirmation() {
    let served = served(None).await;
    served.ask(Method::PUT, "/v1/presets/nfd", Body::None).await.unwrap();
    let of = |names: &[&str]| {
        let rows = names.iter().map(|n| format!("functions.{n}.kind = \"{n}\"\n"));
        format!("network = \"nfd\"\n{}", rows.collect::<String>())
    };
    let put = async |path: &str, names: &[&str]| {
        let body = Body::Octets("application/toml", of(names).into());
        status(served.ask(Method::PUT, path, body).await)
    };
    let (code, message) = put("/v1/description", &["br"]).await;
    assert_eq!(code, 409, "{message}");
    for word in ["3 of 4", "cs, nr, pd", "confirm=true"] {
        assert!(message.contains(word), "{word}: {message}");
    }
    assert_eq!(put("/v1/description?confirm=perhaps", &["br"]).await.0, 422);
    assert_eq!(put("/v1/description?dry_run=true", &["br"]).await.0, 200, "it does nothing");
    assert_eq!(functions(&served).await, 4);
    assert_eq!(put("/v1/description", &["br", "nr"]).await.0, 200, "half of them");
    assert_eq!(put("/v1/description?confirm=true", &["cs"]).await.0, 200);
    let (code, message) = status(served.ask(Method::PUT, "/v1/presets/minimal", Body::None).await);
    assert_eq!(code, 409, "{message}");
    let (code, message) = status(served.ask(Method::DELETE, "/v1/description", Body::None).await);
    assert_eq!(code, 409, "{message}");
    assert_eq!(functions(&served).await, 1);
    served.ask(Method::DELETE, "/v1/description?confirm=true", Body::None).await.unwrap();
    assert_eq!(functions(&served).await, 0);
}

#[tokio::test]
async fn an_error_of_a_body_names_the_function_and_the_place_in_it() {
    let served = served(None).await;
    let ask = async |method: Method, path: &str, body: Value| {
        status(served.ask(method, path, Body::Json(body)).await)
    };
    let insert = |function: Value| json!({"on": {"from": "a", "to": "b"}, "name": "x", "function": function});
    for (method, path, body, words) in [
        (
            Method::PUT,
            "/v1/functions/x",
            json!({"kind": "switch"}),
            &["function x", "kind", "content-store"][..],
        ),
        (
            Method::PUT,
            "/v1/functions/x",
            json!({"kind": "content-store", "quota": "much"}),
            &["function x", "quota"],
        ),
        (
            Method::PUT,
            "/v1/functions/x",
            json!({"kind": "content-store", "config": {"capacity": "many"}}),
            &["function x", "config.capacity", "whole number"],
        ),
        (Method::POST, "/v1/insert", insert(json!({"kind": "switch"})), &["function.kind"]),
        (Method::PUT, "/v1/policies", json!({"scaling": {"upp": 1}}), &["scaling", "upp"]),
        (
            Method::PUT,
            "/v1/functions/x/instances",
            json!({"instances": -1}),
            &["function x", "instances"],
        ),
        (
            Method::PUT,
            "/v1/description",
            json!({"network": "n", "functions": {"a": {"kind": "CS", "config": {"capacity": "many"}}}}),
            &["function a", "capacity", "whole number"],
        ),
        (
            Method::PUT,
            "/v1/description",
            json!({"network": "n", "functions": {"a": {"kind": "switch"}}}),
            &["function a", "switch"],
        ),
        (
            Method::PUT,
            "/v1/functions/name-filter",
            json!({"kind": "content-store"}),
            &["function name-filter", "word of a kind"],
        ),
    ] {
        let (code, message) = ask(method, path, body).await;
        assert_eq!(code, 422, "{path}: {message}");
        for word in words {
            assert!(message.contains(word), "{path}: {word}: {message}");
        }
    }
}

#[tokio::test]
async fn what_is_shown_as_json_is_taken_as_json() {
    let served = served(None).await;
    served.ask(Method::PUT, "/v1/presets/interlinked", Body::None).await.unwrap();
    let shown = served.ask(Method::GET, "/v1/description", Body::None).await.unwrap();
    let again = served.ask(Method::PUT, "/v1/description", Body::Json(shown)).await.unwrap();
    assert_eq!((&again["changed"], &again["steps"]), (&json!(false), &json!([])));
}

#[tokio::test]
async fn every_refusal_is_json() {
    let served = served(None).await;
    let long = Body::Octets("application/toml", vec![b'#'; (1 << 20) + 1].into());
    for (method, path, body, expected, code) in [
        (Method::PATCH, "/v1/network", Body::None, 405, "method"),
        (Method::POST, "/", Body::None, 405, "method"),
        (Method::PUT, "/v1/description", long, 413, "too-large"),
        (Method::GET, "/v1/nothing", Body::None, 404, "path"),
    ] {
        let mut stream = tokio::net::TcpStream::connect(&served.address).await.unwrap();
        let octets = match body {
            Body::Octets(_, octets) => octets,
            _ => Default::default(),
        };
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            octets.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let _ = stream.write_all(&octets).await;
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected}")), "{method} {path}: {answer}");
        assert!(answer.contains("application/json"), "{method} {path}: {answer}");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"]["code"], code, "{method} {path}");
    }
}
