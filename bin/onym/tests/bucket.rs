//! A repository whose full segments go to a bucket: what is there only is served, and a bucket that
//! does not answer keeps nothing else up. The bucket is a few lines of HTTP in this process;
//! `tests/s3` has the tests with a real server.

#![cfg(feature = "s3")]
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use support::{Place, Running, noise, wait_until};

#[derive(Debug, Clone)]
struct Server {
    address: String,
    objects: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    is_silent: Arc<AtomicBool>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = Self { address, objects: Arc::default(), is_silent: Arc::default() };
        let all = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let server = all.clone();
                std::thread::spawn(move || while server.answer(&stream).is_some() {});
            }
        });
        server
    }

    /// One request of a connection; none at its end.
    fn answer(&self, stream: &TcpStream) -> Option<()> {
        let mut from = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            from.read_line(&mut line).ok().filter(|n| *n > 0)?;
            match line.trim_end().to_ascii_lowercase() {
                end if end.is_empty() => break,
                line => lines.push(line),
            }
        }
        let header = |name: &str| lines.iter().find_map(|line| line.strip_prefix(name));
        let len = header("content-length: ").map_or(0, |len| len.parse().unwrap());
        let mut body = vec![0; len];
        from.read_exact(&mut body).ok()?;
        if self.is_silent.load(Ordering::Relaxed) {
            return Some(());
        }
        let mut words = lines[0].split(' ');
        let (method, path) = (words.next()?, words.next()?);
        let mut objects = self.objects.lock().unwrap();
        let mut head = "etag: \"1\"\r\nlast-modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n".to_owned();
        let (status, body) = match (method, objects.get(path)) {
            ("put", _) => {
                objects.insert(path.to_owned(), body);
                ("200 OK", Vec::new())
            }
            ("delete", _) => {
                objects.remove(path);
                ("204 No Content", Vec::new())
            }
            ("get", _) if path.contains('?') => ("200 OK", self.list(&objects)),
            (_, None) => ("404 Not Found", Vec::new()),
            ("get", Some(all)) => {
                let range = header("range: bytes=")?.split_once('-')?;
                let (from, to): (usize, usize) = (range.0.parse().ok()?, range.1.parse().ok()?);
                let to = to.min(all.len() - 1);
                head += &format!("content-range: bytes {from}-{to}/{}\r\n", all.len());
                ("206 Partial Content", all[from..=to].to_vec())
            }
            (_, Some(all)) => {
                head += &format!("content-length: {}\r\n\r\n", all.len());
                let mut out = stream;
                return write!(out, "HTTP/1.1 200 OK\r\n{head}").ok();
            }
        };
        let mut out = stream;
        write!(out, "HTTP/1.1 {status}\r\n{head}content-length: {}\r\n\r\n", body.len()).ok()?;
        out.write_all(&body).ok()
    }

    fn list(&self, objects: &BTreeMap<String, Vec<u8>>) -> Vec<u8> {
        let mut xml = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned();
        for (path, octets) in objects {
            let key = path.trim_start_matches("/data/");
            xml += &format!(
                "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00Z</LastModified>\
                 <ETag>1</ETag><Size>{}</Size></Contents>",
                octets.len()
            );
        }
        (xml + "</ListBucketResult>").into_bytes()
    }
}

fn repo(place: &Place) -> Running {
    let mut repo = place.start(&["repo", "run", "--store", "data", "--name", "/repo"]);
    repo.wait_for("ready: ");
    repo
}

#[test]
fn what_is_in_the_bucket_only_is_served_and_a_silent_bucket_keeps_nothing_else_up() {
    let (place, server) = (Place::new(), Server::start());
    let _daemon = place.daemon(&["cs.serve=false"]);
    fs::create_dir(place.path("data")).unwrap();
    let conf = format!(
        "[repo]\nhere_max = \"0\"\nsegment = \"64k\"\n[repo.bucket]\nname = \"data\"\n\
         endpoint = \"http://{}\"\nprefix = \"repo\"\ncredentials = \"key\"\ntimeout_ms = 1000\n",
        server.address
    );
    fs::write(place.path("data/repo.toml"), conf).unwrap();
    let key = place.path("data/key");
    fs::write(&key, "aws_access_key_id = a\naws_secret_access_key = b\n").unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let (one, two) = (noise(300_000, 1), noise(30_000, 2));
    fs::write(place.path("one"), &one).unwrap();
    fs::write(place.path("two"), &two).unwrap();
    let mut run = repo(&place);
    place.json(&["repo", "add", "one", "--store", "data", "--as", "/lib/one"]);
    // On a slow disk all of it is one group, in one segment, which is full once something follows.
    fs::write(place.path("next"), noise(70_000, 3)).unwrap();
    place.json(&["repo", "add", "next", "--store", "data", "--as", "/lib/next"]);
    let there = || place.json(&["repo", "stats", "--store", "data"])["bucket"].clone();
    wait_until("the disk is left", || {
        let there = there();
        there["only_there"].as_u64() >= Some(1) && there["waiting"].as_u64() == Some(0)
    });
    let fetched = |name: &str, content: &[u8]| {
        let got = place.run(&["get", name, "-o", "out"]);
        got.code == 0 && fs::read(place.path("out")).unwrap() == content
    };
    assert!(fetched("/lib/one", &one));
    assert!(there()["fetched_octets"].as_u64() > Some(0));
    run.kill();
    let _run = repo(&place);
    server.is_silent.store(true, Ordering::Relaxed);
    // Nobody waits for this one but who asked.
    let _hangs = place.start(&["get", "/lib/one", "-o", "hangs"]);
    wait_until("it is told", || {
        there()["trouble"].as_str().is_some_and(|why| why.contains("no answer within 1000 ms"))
    });
    place.json(&["repo", "add", "two", "--store", "data", "--as", "/lib/two"]);
    assert!(fetched("/lib/two", &two));
    let said = place.run(&["repo", "stats", "--store", "data"]).out;
    assert!(said.contains("\nbucket: s3://data/repo: "), "{said}");
    server.is_silent.store(false, Ordering::Relaxed);
    wait_until("it is there again", || fetched("/lib/one", &one));
    assert_eq!(place.run(&["repo", "verify", "--store", "data"]).code, 0);
}
