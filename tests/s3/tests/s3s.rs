//! The protocol of S3 as `s3s-fs` speaks it, in this process, with faults in front of it.
#![allow(clippy::unwrap_used, missing_docs)]

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use onym_bucket::{S3, Settings};
use onym_crypto::signer::write_digest_data;
use onym_store::{Afar, AfarStats, Bounds, Bucket, Change, Folder, Options, Store};
use onym_wire::{DataBuilder, Name};
use s3s::service::{S3Service, S3ServiceBuilder};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// What is wrong with the service.
#[derive(Debug, Default, Clone)]
struct Faults {
    /// So many requests are answered with 503.
    refused: usize,
    /// Nothing is answered.
    is_silent: bool,
    /// Of a segment that is put, half is there.
    tears: bool,
    /// Segments are read with other octets.
    lies: bool,
}

struct Server {
    place: TempDir,
    endpoint: String,
    faults: Arc<Mutex<Faults>>,
}

impl Server {
    fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("s3/data")).unwrap();
        let key = "aws_access_key_id = key\naws_secret_access_key = secret\n";
        for (name, text) in [("key", key.to_owned()), ("wrong", key.replace("= secret", "= x"))] {
            let path = place.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        }
        let folder = place.path().join("s3");
        let mut builder = S3ServiceBuilder::new(s3s_fs::FileSystem::new(&folder).unwrap());
        builder.set_auth(s3s::auth::SimpleAuth::from_single("key", "secret"));
        let front = Front { s3: builder.build(), folder, faults: Arc::default() };
        let faults = Arc::clone(&front.faults);
        let (say, hear) = std::sync::mpsc::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        std::thread::spawn(move || runtime.block_on(front.serve(say)));
        let address = hear.recv().unwrap();
        Self { place, endpoint: format!("http://{address}"), faults }
    }

    fn settings(&self, prefix: &str) -> Settings {
        Settings {
            name: "data".into(),
            endpoint: self.endpoint.clone(),
            region: "us-east-1".into(),
            prefix: prefix.into(),
            credentials: Some("key".into()),
            authority: None,
            timeout_ms: 30_000,
        }
    }

    fn open(&self, settings: &Settings) -> S3 {
        S3::open(settings, self.place.path()).unwrap()
    }

    fn with(&self, what: impl FnOnce(&mut Faults)) {
        what(&mut self.faults.lock().unwrap());
    }
}

#[derive(Clone)]
struct Front {
    s3: S3Service,
    folder: PathBuf,
    faults: Arc<Mutex<Faults>>,
}

impl Front {
    async fn serve(self, say: std::sync::mpsc::Sender<SocketAddr>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        say.send(listener.local_addr().unwrap()).unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            let front = self.clone();
            let answer = move |request| {
                let front = front.clone();
                async move { front.answer(request).await }
            };
            let service = hyper::service::service_fn(answer);
            let connection = hyper::server::conn::http1::Builder::new();
            tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> io::Result<Response<s3s::Body>> {
        let faults = {
            let mut faults = self.faults.lock().unwrap();
            let now = faults.clone();
            faults.refused = faults.refused.saturating_sub(1);
            now
        };
        if faults.is_silent {
            std::future::pending::<()>().await;
        }
        if faults.refused > 0 {
            let mut answer = Response::new(s3s::Body::empty());
            *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return Ok(answer);
        }
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let answer = hyper::service::Service::call(&self.s3, request)
            .await
            .map_err(|_| io::Error::other("s3s"))?;
        if !path.ends_with(".log") {
            return Ok(answer);
        }
        if faults.tears && method == Method::PUT && answer.status().is_success() {
            let file = self.folder.join(path.trim_start_matches('/'));
            let file = std::fs::File::options().write(true).open(file).unwrap();
            file.set_len(file.metadata().unwrap().len() / 2).unwrap();
        }
        if faults.lies && method == Method::GET {
            let (parts, body) = answer.into_parts();
            let mut octets = body.collect().await.unwrap().to_bytes().to_vec();
            octets.iter_mut().step_by(100).for_each(|octet| *octet ^= 1);
            return Ok(Response::from_parts(parts, octets.into()));
        }
        Ok(answer)
    }
}

/// Another server, where one is named; its credentials are in the environment.
fn named(prefix: &str) -> Option<S3> {
    let endpoint = std::env::var("ONYM_S3_ENDPOINT").ok()?;
    let settings = Settings {
        name: std::env::var("ONYM_S3_BUCKET").unwrap_or("data".into()),
        endpoint,
        region: "us-east-1".into(),
        prefix: format!("{prefix}-{}", std::process::id()),
        credentials: None,
        authority: None,
        timeout_ms: 30_000,
    };
    Some(S3::open(&settings, std::path::Path::new("")).unwrap())
}

fn has_objects(bucket: &S3) {
    assert_eq!(bucket.list().unwrap(), []);
    assert_eq!(bucket.len("a.log").unwrap(), None);
    assert_eq!(bucket.read("a.log", 0, 9).unwrap_err().kind(), io::ErrorKind::NotFound);
    // Two parts and some.
    let octets: Vec<u8> = (0..17 << 20).map(|n: u32| (n >> 3) as u8).collect();
    bucket.put("a.log", &mut &octets[..], octets.len() as u64).unwrap();
    bucket.put("owner", &mut &b"me"[..], 2).unwrap();
    assert_eq!(bucket.len("a.log").unwrap(), Some(octets.len() as u64));
    assert_eq!(bucket.read("owner", 0, 64).unwrap(), b"me");
    let at = 8_388_600;
    assert_eq!(bucket.read("a.log", at, 100).unwrap(), octets[at as usize..at as usize + 100]);
    let mut listed = bucket.list().unwrap();
    listed.sort();
    assert_eq!(listed, [("a.log".into(), octets.len() as u64), ("owner".into(), 2)]);
    bucket.put("a.log", &mut &b"other"[..], 5).unwrap();
    assert_eq!(bucket.read("a.log", 0, 64).unwrap(), b"other");
    for name in ["a.log", "a.log", "owner"] {
        bucket.remove(name).unwrap();
    }
    assert_eq!(bucket.list().unwrap(), []);
}

/// Law: objects are put whole, read by range, listed under their prefix and removed.
#[test]
fn objects_are_put_read_listed_and_removed() {
    let server = Server::start();
    let bucket = named("objects").unwrap_or_else(|| server.open(&server.settings("site/repo")));
    has_objects(&bucket);
}

/// Law: a service that fails for a moment is asked again; one that goes on failing is a sentence.
#[test]
fn a_service_that_fails_is_a_sentence() {
    let server = Server::start();
    let settings = Settings { timeout_ms: 300, ..server.settings("") };
    let bucket = server.open(&settings);
    server.with(|faults| faults.refused = 1);
    assert_eq!(bucket.len("x").unwrap(), None, "it is asked again");
    server.with(|faults| faults.refused = usize::MAX);
    let why = bucket.len("x").unwrap_err().to_string();
    assert!(why.starts_with("s3://data: ") && why.contains("503"), "{why}");
    server.with(|faults| *faults = Faults { is_silent: true, ..Faults::default() });
    let why = bucket.put("x", &mut &b"abc"[..], 3).unwrap_err().to_string();
    assert!(why.contains("no answer within 300 ms"), "{why}");
    server.with(|faults| faults.is_silent = false);
    let wrong = Settings { credentials: Some("wrong".into()), ..settings.clone() };
    let why = server.open(&wrong).len("x").unwrap_err().to_string();
    assert!(why.contains("403"), "{why}");
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = Settings { endpoint: format!("http://{nobody}"), ..settings };
    let why = server.open(&gone).list().unwrap_err().to_string();
    assert!(!why.contains('\n') && why.len() < 500 && !why.contains("secret"), "{why}");
}

fn options() -> Options {
    let bounds = Bounds { free_min_octets: 0, ..Bounds::default() };
    Options { bounds, segment_octets: 64 << 10, cache_octets: 1 << 20, ..Options::default() }
}

fn name_of(n: u32) -> Name {
    format!("/s3/{n}").parse().unwrap()
}

fn insert(store: &Store, numbers: std::ops::Range<u32>) {
    let packet = |n: u32| {
        let (mut wire, name) = (Vec::new(), name_of(n));
        write_digest_data(&DataBuilder::new(name.as_ref(), &[n as u8; 8000]), &mut wire);
        Change::insert(wire)
    };
    // A group is not cut: of many small ones there are several segments.
    for n in numbers {
        store.apply(vec![packet(n)]).unwrap().pop().unwrap().unwrap();
    }
}

fn missing(store: &Store, numbers: std::ops::Range<u32>) -> Vec<u32> {
    let mut reader = store.reader();
    numbers.filter(|n| !matches!(reader.get(0, name_of(*n).as_ref()), Ok(Some(_)))).collect()
}

fn until(store: &Store, what: impl Fn(&AfarStats) -> bool) -> AfarStats {
    let end = Instant::now() + Duration::from_secs(30);
    loop {
        let there = store.stats().unwrap().afar.unwrap();
        if what(&there) {
            return there;
        }
        assert!(Instant::now() < end, "{there:?}");
        std::thread::yield_now();
    }
}

/// Law: a store whose bucket tears, lies and is away serves what it has, says what is wrong, loses
/// nothing; another machine goes on from the bucket.
#[test]
fn a_store_has_its_segments_in_s3() {
    let server = Server::start();
    let settings = Settings { timeout_ms: 2000, ..server.settings("repo") };
    let of = |settings: &Settings| Afar {
        near_octets_max: 0,
        ..Afar::new(Arc::new(server.open(settings)))
    };
    let open = |folder: &str| {
        let folder = Folder::open(&server.place.path().join(folder)).unwrap();
        Store::open_with(folder, Some(&of(&settings)), options())
    };
    let store = open("here").unwrap();
    server.with(|faults| faults.tears = true);
    insert(&store, 0..40);
    let there = until(&store, |there| there.wrong > 0);
    assert_eq!((there.far_only, missing(&store, 0..40)), (0, vec![]), "{there:?}");
    server.with(|faults| faults.tears = false);
    until(&store, |there| there.far_only >= 4 && there.waiting == 0 && there.trouble.is_some());
    server.with(|faults| faults.lies = true);
    let lied = missing(&store, 0..8);
    assert!(!lied.is_empty());
    server.with(|faults| *faults = Faults { refused: usize::MAX, ..Faults::default() });
    insert(&store, 40..41);
    assert!(missing(&store, 40..41).is_empty());
    assert!(!missing(&store, 9..10).is_empty());
    let trouble = store.stats().unwrap().afar.unwrap().trouble.unwrap();
    assert!(trouble.contains("s3://data/repo"), "{trouble}");
    assert!(open("elsewhere").is_err());
    server.with(|faults| *faults = Faults::default());
    let end = Instant::now() + Duration::from_secs(30);
    while !missing(&store, 0..41).is_empty() {
        assert!(Instant::now() < end, "{:?}", store.stats());
    }
    let there = until(&store, |there| there.waiting == 0).segments;
    drop(store);
    let store = open("elsewhere").unwrap();
    assert_eq!(store.stats().unwrap().afar.unwrap().segments, there);
    assert!(missing(&store, 0..32).is_empty());
}
