//! A bucket by TLS: which service is believed, and that nobody waits for one that shakes no hands.

#![allow(clippy::unwrap_used)]

use axum::Router;
use onym_bucket::{S3, Settings};
use onym_http::server::serve_by;
use onym_http::tls::ServerTls;
use onym_store::Bucket as _;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `NAME.pem` and `NAME.key`, good for 127.0.0.1, and its own authority.
fn certificate(folder: &Path, name: &str) {
    let words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3 -subj /CN=bucket \
                 -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE -keyout NAME.key -out NAME.pem";
    let words = words.replace("NAME", name);
    let out = Command::new("openssl").args(words.split_whitespace()).current_dir(folder).output();
    let out = out.expect("openssl is needed");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
}

/// A service that has everything and takes everything, with its folder of files.
struct World {
    folder: tempfile::TempDir,
    at: SocketAddr,
    asked: Arc<AtomicUsize>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        certificate(path, "own");
        certificate(path, "other");
        fs::write(path.join("who"), "aws_access_key_id = a\naws_secret_access_key = b\n").unwrap();
        fs::set_permissions(path.join("who"), fs::Permissions::from_mode(0o600)).unwrap();
        let read = |name: &str| fs::read(path.join(name)).unwrap();
        let tls = ServerTls::new(&read("own.pem"), &read("own.key"), None).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&asked);
        let app = Router::new().fallback(move || {
            counts.fetch_add(1, Ordering::SeqCst);
            async { [("etag", "\"1\"")] }
        });
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                serve_by(listener, Some(tls), app).await;
            });
        });
        Self { folder, at, asked }
    }

    /// Puts an object into the bucket at `endpoint`, where `authority` is believed.
    fn put(&self, endpoint: &str, authority: &str) -> Result<(), String> {
        let settings = Settings {
            name: "data".into(),
            endpoint: endpoint.into(),
            region: "here".into(),
            prefix: String::new(),
            credentials: Some("who".into()),
            authority: Some(authority.into()),
            timeout_ms: 500,
        };
        let bucket = S3::open(&settings, self.folder.path()).map_err(|e| e.to_string())?;
        bucket.put("one", &mut &b"octets"[..], 6).map_err(|e| e.to_string())
    }
}

#[test]
fn a_bucket_by_tls_is_believed_by_the_authority_that_is_named_and_no_other() {
    let world = World::new();
    let here = format!("https://{}", world.at);
    world.put(&here, "own.pem").unwrap();
    let asked = world.asked.load(Ordering::SeqCst);
    assert!(asked > 0);
    let named = here.replace("127.0.0.1", "localhost");
    let plain = here.replace("https", "http");
    for (endpoint, authority, says) in [
        (&here, "other.pem", "certificate"),
        (&named, "own.pem", "not valid for"),
        (&plain, "own.pem", "error"),
    ] {
        let why = world.put(endpoint, authority).unwrap_err();
        assert!(why.contains(says), "{endpoint}, {authority}: {why}");
    }
    let missing = world.put(&here, "none.pem").unwrap_err();
    assert!(missing.contains("none.pem"), "{missing}");
    // Nobody else was told anything, least of all a signature.
    assert_eq!(world.asked.load(Ordering::SeqCst), asked);
}

#[test]
fn a_service_that_shakes_no_hands_is_given_up() {
    let world = World::new();
    // It is in the queue of the kernel, and nobody takes it from there.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("https://{}", silent.local_addr().unwrap());
    let why = world.put(&endpoint, "own.pem").unwrap_err();
    assert!(why.contains("no answer within 500 ms"), "{why}");
}
