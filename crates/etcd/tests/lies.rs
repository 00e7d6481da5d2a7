//! What answers in etcd's place may be slow, broken or lying: the client ends in time and believes
//! nothing that cannot be.

#![allow(clippy::unwrap_used)]

use base64::Engine as _;
use onym_etcd::{Compare, Etcd, EtcdError, Operation};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_millis(500);

/// What is answered next: the octets behind the request, whatever it was.
#[derive(Clone, Default)]
struct Liar(Arc<Mutex<Vec<u8>>>);

impl Liar {
    fn start() -> (Self, Arc<Etcd>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let liar = Self::default();
        let answer = liar.0.clone();
        std::thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let answer = answer.lock().unwrap().clone();
                std::thread::spawn(move || {
                    let mut socket = socket;
                    let _ = socket.read(&mut [0; 4096]);
                    let _ = socket.write_all(&answer);
                    if answer.is_empty() {
                        // Silence, until the client gives up.
                        let _ = socket.read(&mut [0]);
                    }
                });
            }
        });
        let etcd = Etcd::new(&[url], None, PATIENCE).unwrap();
        (liar, Arc::new(etcd))
    }

    fn says(&self, body: &str) {
        let text = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        *self.0.lock().unwrap() = text.into_bytes();
    }

    fn says_raw(&self, text: &[u8]) {
        *self.0.lock().unwrap() = text.to_vec();
    }
}

/// Every request; those that were believed.
async fn believed(etcd: &Etcd) -> Vec<&'static str> {
    let put = [Operation::Put { key: "a".into(), value: vec![1], lease: None }];
    let get = [Operation::Get { key: "a".into() }];
    let mut all = Vec::new();
    let mut note = |name, good: bool| all.extend(good.then_some(name));
    note("get", etcd.get("a").await.is_ok());
    note("list", etcd.list("a/", 2).await.is_ok());
    note("put", etcd.put("a", b"x", None).await.is_ok());
    note("delete", etcd.delete("a").await.is_ok());
    note("transact", etcd.transact(&[Compare::absent("a")], &put, &get).await.is_ok());
    let lease = etcd.grant(Duration::from_secs(5)).await;
    note("grant", lease.is_ok());
    all
}

#[tokio::test]
async fn silence_and_what_is_no_answer_end_in_time_with_a_word() {
    let (liar, etcd) = Liar::start();
    let long = vec![b'x'; 20 << 20];
    let endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let huge =
        [b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n[", long.as_slice()].concat();
    for text in [
        &b""[..],
        b"\x00\xff\x00",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 500 Oops\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 503 No\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>",
        endless,
        &huge,
    ] {
        liar.says_raw(text);
        let begun = Instant::now();
        let shown = String::from_utf8_lossy(&text[..text.len().min(60)]).into_owned();
        assert_eq!(believed(&etcd).await, Vec::<&str>::new(), "{shown}");
        assert!(begun.elapsed() < 10 * PATIENCE + Duration::from_secs(10), "{shown}");
    }
    let gone = Etcd::new(&["http://127.0.0.1:1"], None, PATIENCE).unwrap();
    let error = gone.get("a").await.unwrap_err();
    assert!(matches!(error, EtcdError::Away(_)), "{error}");
    assert!(error.to_string().contains("is it running"), "{error}");
}

fn key(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn range(keys: &[&str]) -> Value {
    let rows = keys.iter().map(|k| json!({"key": key(k), "value": key("v"), "mod_revision": "3"}));
    json!({"header": {"revision": "5"}, "kvs": rows.collect::<Vec<_>>()})
}

#[tokio::test]
async fn answers_that_cannot_be_are_not_believed() {
    let (liar, etcd) = Liar::start();
    // JSON, and none of etcd's: nothing is taken for done or for absent.
    for body in ["{}", "[]", "true", "{\"header\":7}", "{\"header\":{\"revision\":\"x\"}}"] {
        liar.says(body);
        assert_eq!(believed(&etcd).await, Vec::<&str>::new(), "{body}");
    }
    liar.says(&range(&["b"]).to_string());
    assert!(etcd.get("a").await.is_err(), "another key than the one that was asked for");
    liar.says(&range(&["a", "a"]).to_string());
    assert!(etcd.get("a").await.is_err(), "two values of one key");
    for keys in [&["a/1", "a/2", "a/3"][..], &["b/1"], &["a/2", "a/1"], &["a/1", "a/1"]] {
        liar.says(&range(keys).to_string());
        assert!(etcd.list("a/", 2).await.is_err(), "{keys:?}");
    }
    liar.says(&json!({"header": {"revision": "5"}, "more": true}).to_string());
    assert!(etcd.list("a/", 2).await.is_err(), "more than nothing");
    liar.says(&range(&["a/1", "a/2"]).to_string());
    assert_eq!(etcd.list("a/", 2).await.unwrap().entries.len(), 2, "and what can be is");
    // A lease that ends before it is believed to.
    let header = json!({"revision": "5"});
    for ttl in [json!("1"), json!(null), json!("-5")] {
        liar.says(&json!({"header": header, "ID": "77", "TTL": ttl}).to_string());
        assert!(etcd.grant(Duration::from_secs(5)).await.is_err(), "{ttl}");
    }
    liar.says(&json!({"header": header, "ID": "77", "TTL": "5"}).to_string());
    let lease = etcd.grant(Duration::from_secs(5)).await.unwrap();
    liar.says(&json!({"result": {"ID": "78", "TTL": "5"}}).to_string());
    assert!(etcd.renew(lease).await.is_err(), "another lease");
    liar.says(&json!({"result": {"ID": "77", "TTL": "5"}}).to_string());
    etcd.renew(lease).await.unwrap();
    // A transaction that found nothing where something was asked for.
    let get = [Operation::Get { key: "a".into() }];
    liar.says(&json!({"header": header, "succeeded": true}).to_string());
    assert!(etcd.transact(&[], &get, &[]).await.is_err());
}
