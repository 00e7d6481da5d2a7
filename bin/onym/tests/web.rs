//! Names for HTTP clients.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use support::http::Gateway;
use support::{Place, Running, noise, wait_until};

/// Law: what HTTP clients may ask of a file, they get of a name: all of it or a part, only if it
/// changed, only its head; a version is for ever.
#[test]
fn a_name_is_a_resource_of_http() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let content = noise(100_000, 5);
    fs::create_dir_all(place.path("shelf")).unwrap();
    fs::write(place.path("shelf/film.mp4"), &content).unwrap();
    let mut serve = place.start(&["serve", "shelf", "/alice/shelf"]);
    serve.wait_for("ready: ");
    let _put = place.put(&["/alice/put", "shelf/film.mp4"]);
    let gateway = Gateway::start(&place, &[]);

    let film = "/ndn/alice/shelf/film.mp4";
    let whole = gateway.get(film, &[]);
    assert_eq!(whole.status, 200, "{}", String::from_utf8_lossy(&whole.body));
    assert!(whole.body == content);
    for (name, value) in [
        ("content-length", "100000"),
        ("content-type", "video/mp4"),
        ("accept-ranges", "bytes"),
        ("access-control-allow-origin", "*"),
        ("cache-control", "public, max-age=0"),
        ("cache-status", "onym; fwd=uri-miss"),
    ] {
        assert_eq!(whole.header(name), value, "{name}");
    }
    assert!(whole.header("last-modified").ends_with("GMT"));
    let etag = whole.header("etag").to_owned();

    let head = gateway.ask("HEAD", film, &[]);
    assert_eq!((head.status, head.body.len()), (200, 0));
    for name in ["content-length", "content-type", "etag", "last-modified", "accept-ranges"] {
        assert_eq!(head.header(name), whole.header(name), "{name}");
    }
    for (range, expected) in [("0-0", 0..1), ("6143-6144", 6143..6145), ("-7", 99_993..100_000)] {
        let part = gateway.get(film, &[&format!("range: bytes={range}")]);
        assert_eq!(part.status, 206, "{range}");
        assert!(part.body == content[expected.clone()], "{range}");
        let told = format!("bytes {}-{}/100000", expected.start, expected.end - 1);
        assert_eq!(part.header("content-range"), told);
        assert_eq!(part.header("content-length"), expected.len().to_string());
    }
    let beyond = gateway.get(film, &["range: bytes=100000-"]);
    assert_eq!((beyond.status, beyond.header("content-range")), (416, "bytes */100000"));
    let same = gateway.get(film, &[&format!("if-none-match: {etag}")]);
    assert_eq!((same.status, same.body.len(), same.header("etag")), (304, 0, &*etag));
    let resumed = gateway.get(film, &["if-range: \"other\"", "range: bytes=5-"]);
    assert_eq!((resumed.status, resumed.body.len()), (200, 100_000), "it is another version");

    let name = place.json(&["get", "/alice/put", "-o", "out"])["name"].as_str().unwrap().to_owned();
    let fixed = gateway.get(&format!("/ndn{name}"), &["range: bytes=8000-16000"]);
    assert_eq!(fixed.status, 206);
    assert!(fixed.body == content[8000..=16_000]);
    assert_eq!(fixed.header("cache-control"), "public, max-age=31536000, immutable");
}

/// Law: a folder is a page, or JSON, and what is no name, nobody's or not for others is refused with
/// the status that says so.
#[test]
fn folders_and_refusals_are_those_of_http() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    fs::create_dir_all(place.path("shelf/a b")).unwrap();
    fs::write(place.path("shelf/none.txt"), "").unwrap();
    fs::write(place.path("shelf/a b/x=y.html"), "<p>").unwrap();
    let mut serve = place.start(&["serve", "shelf", "/alice/shelf"]);
    serve.wait_for("ready: ");
    let _put = place.put(&["/alice/put", "shelf/a b/x=y.html"]);
    let gateway = Gateway::start(&place, &[]);

    let empty = gateway.get("/ndn/alice/shelf/none.txt", &[]);
    assert_eq!((empty.status, empty.header("content-length")), (200, "0"));
    let moved = gateway.get("/ndn/alice/shelf/a%20b", &[]);
    assert_eq!((moved.status, moved.header("location")), (301, "./a%20b/"));
    let page = gateway.get("/ndn/alice/shelf/a%20b/", &[]);
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(String::from_utf8(page.body).unwrap().contains("href=\"./x%3Dy.html\""));
    let listed = gateway.get("/ndn/alice/shelf/", &["accept: application/json"]);
    let listed: serde_json::Value = serde_json::from_slice(&listed.body).unwrap();
    assert_eq!(listed[0], serde_json::json!({"name": "a b", "folder": true}));
    assert_eq!(gateway.get("/ndn/alice/shelf/a%20b/x=y.html", &[]).body, b"<p>");

    for (path, status) in [
        ("/ndn/alice/shelf/missing", 404),
        ("/ndn/alice/put/v=1", 404),
        ("/ndn/nobody/is/there", 502),
        ("/ndn/localhost/nfd/status/general", 403),
        ("/ndn/alice//x", 400),
        ("/elsewhere", 404),
    ] {
        assert_eq!(gateway.get(path, &[]).status, status, "{path}");
    }
    let write = gateway.ask("PUT", "/ndn/alice/put", &[]);
    assert_eq!((write.status, write.header("allow")), (405, "GET, HEAD, OPTIONS"));
    let asked = gateway.ask("OPTIONS", "/ndn/alice/put", &["access-control-request-method: GET"]);
    assert_eq!(
        (asked.status, asked.header("access-control-allow-methods")),
        (204, "GET, HEAD, OPTIONS")
    );
}

/// Law: what nobody vouches for does not leave, not one octet of it; what somebody does, does.
#[test]
fn only_what_is_verified_leaves() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    for identity in ["/alice", "/mallory"] {
        assert_eq!(place.run(&["key", "new", identity]).code, 0);
    }
    let export = place.run(&["cert", "export", "/alice", "-o", "alice.ndncert"]);
    assert_eq!(export.code, 0, "{}", export.err);
    fs::create_dir_all(place.path("site")).unwrap();
    fs::write(place.path("site/index.html"), "<p>secret of nobody").unwrap();
    let mut good = place.start(&["serve", "site", "/alice/site", "--key", "/alice"]);
    good.wait_for("ready: ");
    let mut bad = place.start(&["serve", "site", "/alice/other", "--key", "/mallory"]);
    bad.wait_for("ready: ");
    let mut unsigned = place.start(&["serve", "site", "/alice/unsigned"]);
    unsigned.wait_for("ready: ");
    let gateway = Gateway::start(&place, &["--anchor", "alice.ndncert", "--root", "/alice/site"]);
    let page = gateway.get("/", &[]);
    assert_eq!((page.status, &*page.body), (200, &b"<p>secret of nobody"[..]));
    assert_eq!(gateway.get("/index.html", &[]).header("content-type"), "text/html; charset=utf-8");
    for name in ["other", "unsigned"] {
        let refused = gateway.get(&format!("/ndn/alice/{name}/index.html"), &[]);
        let text = String::from_utf8(refused.body).unwrap();
        assert_eq!(refused.status, 502, "{name}: {text}");
        assert!(!text.contains("secret"), "{text}");
    }
}

/// An HTTP server with pages, which notes what it is asked.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
    pages: Arc<Mutex<HashMap<&'static str, String>>>,
}

impl Server {
    /// Each page is the head of its answer and its body; one with an ETag is not sent again.
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (asked, pages) = (Arc::<Mutex<Vec<String>>>::default(), Arc::default());
        let server = Self { url, asked: Arc::clone(&asked), pages: Arc::clone(&pages) };
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut request = String::new();
                let mut octets = [0; 4096];
                while !request.contains("\r\n\r\n") {
                    match stream.read(&mut octets) {
                        Ok(len) if len > 0 => {
                            request += &String::from_utf8_lossy(&octets[..len]);
                        }
                        _ => break,
                    }
                }
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let pages: std::sync::MutexGuard<'_, HashMap<&'static str, String>> =
                    pages.lock().unwrap();
                let missing = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned();
                let page = pages.get(&*path).unwrap_or(&missing);
                let etag = page.lines().find_map(|line| line.strip_prefix("etag: "));
                let same = etag.is_some_and(|etag| request.contains(etag));
                let (told, answer) = if same {
                    (format!("{path} same"), "HTTP/1.1 304 Not Modified\r\n\r\n")
                } else {
                    (path.clone(), &**page)
                };
                asked.lock().unwrap().push(told);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        server
    }

    fn page(&self, path: &'static str, head: &str, body: &str) {
        let page = format!("HTTP/1.1 200 OK\r\n{head}content-length: {}\r\n\r\n{body}", body.len());
        self.pages.lock().unwrap().insert(path, page);
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

/// Law: a page of an HTTP server is an object of its name; it is fetched again when it is not fresh
/// any more and no sooner, and not sent again when it did not change; what is for one client only is
/// nobody's.
#[test]
fn an_http_server_has_names() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.serve=false"]);
    let server = Server::start();
    server.page("/film", "cache-control: max-age=600\r\n", &"long ".repeat(5000));
    server.page("/news", "etag: \"one\"\r\n", "first");
    server.page("/a%20b/?q=1", "", "query");
    server.page("/account", "cache-control: private\r\n", "secret");
    server.page("/cookie", "set-cookie: a=b\r\n", "secret");
    let moved = "HTTP/1.1 302 Found\r\nlocation: /film\r\ncontent-length: 0\r\n\r\n";
    server.pages.lock().unwrap().insert("/moved", moved.into());
    let mut origin = place.start(&["gateway", "origin", &server.url, "/alice/web"]);
    origin.wait_for("ready: ");
    let get = |name: &str| place.run(&["get", &format!("/alice/web{name}")]);

    for _ in 0..2 {
        assert_eq!(get("/film").out, "long ".repeat(5000));
    }
    assert_eq!(server.asked(), ["/film"], "it is fresh for ten minutes");
    assert_eq!(get("/moved").out.len(), 25_000);
    server.asked();
    let version = |out: &str| place.json(&["get", "/alice/web/news", "-o", out])["name"].clone();
    let first = version("first");
    assert_eq!(version("again"), first);
    assert_eq!(server.asked(), ["/news", "/news same"], "the server was asked whether it changed");
    server.page("/news", "etag: \"two\"\r\n", "second");
    assert_ne!(version("second"), first);
    assert_eq!(fs::read(place.path("second")).unwrap(), b"second");
    server.asked();
    assert_eq!(get("/a%20b/%3Fq%3D1").code, 5, "a / at the end is a component");
    assert_eq!(get("/a%20b/.../%3Fq%3D1").out, "query");
    for name in ["/account", "/cookie", "/missing"] {
        let refused = get(name);
        assert_eq!(refused.code, 5, "{name}: {}", refused.err);
        assert!(!refused.out.contains("secret"));
    }
    // And back: HTTP by names by HTTP.
    let gateway = Gateway::start(&place, &[]);
    let film = gateway.get("/ndn/alice/web/film", &["range: bytes=24995-"]);
    assert_eq!((film.status, &*film.body), (206, &b"long "[..]));
    assert_eq!(gateway.get("/ndn/alice/web/account", &[]).status, 404);
}

/// Law: however many ask for one page, and for whatever of it, the server is asked once; and once more
/// when none of them is left.
#[test]
fn who_asks_for_one_page_at_the_same_time_causes_one_request() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.serve=false"]);
    let server = Server::start();
    server.page("/film", "etag: \"one\"\r\n", "content");
    let mut origin = place.start(&["gateway", "origin", &server.url, "/alice/web"]);
    origin.wait_for("ready: ");
    // The server answers nobody before this is let go.
    let held = server.pages.lock().unwrap();
    let film = ["get", "/alice/web/film"];
    let mut getting: Vec<Running> = (0..3).map(|_| place.start(&film)).collect();
    // Different Interests, which the node does not make one of: segments of versions.
    let names: Vec<String> = (1..=5).map(|n| format!("/alice/web/film/v={n}/seg=0")).collect();
    let peek = |name: &String| place.start(&["peek", name, "-l", "10000"]);
    let _peeking: Vec<Running> = names.iter().map(peek).collect();
    // Their faces, and that of the question: an Interest came, and nothing went back.
    let waiting = || {
        let faces = place.json(&["face", "list"]);
        let is_waiting =
            |face: &&serde_json::Value| face["in_interests"] != 0 && face["out_data"] == 0;
        faces.as_array().unwrap().iter().filter(is_waiting).count()
    };
    wait_until("all Interests wait", || waiting() == 3 + 5 + 1);
    drop(held);
    for one in &mut getting {
        assert_eq!(one.end(), Some(0));
        assert_eq!(one.out.text().trim_end(), "content");
    }
    assert_eq!(server.asked(), ["/film"]);
    assert_eq!(place.run(&film).out, "content");
    assert_eq!(server.asked(), ["/film same"], "it is not fresh by itself");
}

/// Law: a server that fails, or is away, takes no page away that may be used while it does
/// (`stale-if-error`), and what may not is not used; when the server is back its pages are.
#[test]
fn a_server_that_fails_leaves_the_pages_that_may_be_stale() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.serve=false"]);
    let server = Server::start();
    let failed = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
    let pages = [
        ("/may", "cache-control: max-age=0, stale-if-error=600\r\n"),
        ("/must-not", "cache-control: max-age=0, stale-if-error=600, must-revalidate\r\n"),
        ("/says-nothing", "cache-control: max-age=0\r\n"),
    ];
    let mut origin = place.start(&["gateway", "origin", &server.url, "/alice/web"]);
    origin.wait_for("ready: ");
    let get = |path: &str| place.run(&["get", &format!("/alice/web{path}")]).out;
    let is_there = |path: &str| {
        let name = format!("/alice/web{path}/32=metadata");
        place.run(&["peek", &name, "--prefix", "--fresh", "-l", "300"]).code == 0
    };
    for (path, head) in pages {
        server.page(path, head, "first");
        assert_eq!(get(path), "first");
    }
    // It says so, or says nothing and hangs up.
    for answer in [failed, ""] {
        for (path, head) in pages {
            server.pages.lock().unwrap().insert(path, answer.to_owned());
            assert_eq!(is_there(path), path == "/may", "{path} {head} {answer:?}");
        }
        assert_eq!(get("/may"), "first", "{answer:?}");
        server.asked();
    }
    for (path, head) in pages {
        server.page(path, head, "second");
        wait_until("the server is asked again", || is_there(path) && get(path) == "second");
    }
}

/// Law: a page is asked for again when HTTP's rules for shared caches say so, and no sooner; what they
/// do not let a cache keep is nobody's.
#[test]
fn the_rules_of_http_for_shared_caches_hold() {
    let place = Place::new();
    let _daemon = place.daemon(&["cs.serve=false"]);
    let server = Server::start();
    let mut origin = place.start(&["gateway", "origin", &server.url, "/alice/web"]);
    origin.wait_for("ready: ");
    for (path, head, is_kept, asks) in [
        ("/1", "cache-control: max-age=600\r\n", true, 1),
        ("/2", "cache-control: s-maxage=600, max-age=0\r\n", true, 1),
        ("/3", "cache-control: max-age=600, s-maxage=0\r\n", true, 2),
        ("/4", "cache-control: max-age=600\r\nage: 601\r\n", true, 2),
        ("/5", "cache-control: no-cache, max-age=600\r\n", true, 2),
        ("/6", "expires: Thu, 01 Jan 2099 00:00:00 GMT\r\n", true, 1),
        ("/7", "expires: 0\r\n", true, 2),
        ("/8", "set-cookie: a=b\r\ncache-control: public, max-age=600\r\n", true, 1),
        ("/9", "cache-control: no-store, max-age=600\r\n", false, 1),
        ("/10", "vary: *\r\ncache-control: max-age=600\r\n", false, 1),
    ] {
        server.page(path, head, "content");
        let got = [0; 2].map(|_| place.run(&["get", &format!("/alice/web{path}")]));
        let kept = got.iter().all(|got| got.out == "content");
        assert_eq!(kept, is_kept, "{head}: {}", got[0].err);
        assert!(is_kept || got.iter().all(|got| got.out.is_empty()), "{head}");
        let asked = server.asked().len();
        assert!(asked == asks || !is_kept, "{head}: {asked}");
    }
}

/// Whether a program of others is on this machine.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        println!("skipped: there is no {program}");
    }
    found
}

fn runs(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {text}{error}");
    text + &error
}

/// Law: clients that know nothing of names do through the gateway what they do with a web server:
/// curl resumes and fetches only what changed, apt updates its lists and downloads packages.
#[test]
fn curl_and_apt_work_through_the_gateway() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let content = noise(100_000, 9);
    fs::create_dir_all(place.path("debian")).unwrap();
    fs::write(place.path("debian/onym-test_1_all.deb"), &content).unwrap();
    let digest = onym_crypto::digest::hex(&onym_crypto::sha256(&[&content]));
    let stanza = format!(
        "Package: onym-test\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example>\n\
         Filename: ./onym-test_1_all.deb\nSize: 100000\nSHA256: {digest}\nDescription: a test\n\n"
    );
    fs::write(place.path("debian/Packages"), stanza).unwrap();
    let mut serve = place.start(&["serve", "debian", "/alice/debian"]);
    serve.wait_for("ready: ");
    let gateway = Gateway::start(&place, &[]);
    let url = format!("http://{}/ndn/alice/debian", gateway.address);
    if has("curl") {
        let file = place.path("film");
        fs::write(&file, &content[..33_333]).unwrap();
        let url = format!("{url}/onym-test_1_all.deb");
        let curl = || {
            let mut curl = Command::new("curl");
            curl.args(["-sS", "--noproxy", "*", "-o"]).arg(&file).arg(&url);
            curl
        };
        runs(curl().args(["-C", "-"]));
        assert!(fs::read(&file).unwrap() == content, "the rest was fetched");
        let told = runs(curl().args(["-w", "%{http_code} %{size_download}", "-z"]).arg(&file));
        assert_eq!(told, "304 0");
    }
    if has("apt-get") {
        for folder in ["state/lists/partial", "cache/archives/partial", "etc"] {
            fs::create_dir_all(place.path("apt").join(folder)).unwrap();
        }
        fs::write(place.path("apt/state/status"), "").unwrap();
        let sources = place.path("apt/etc/sources.list");
        fs::write(&sources, format!("deb [trusted=yes] {url} ./\n")).unwrap();
        let apt = |words: &[&str]| {
            let mut apt = Command::new("apt-get");
            let at = |key: &str, path: &str| format!("{key}={}", place.path(path).display());
            for option in [
                at("Dir::Etc", "apt/etc"),
                at("Dir::Etc::sourcelist", "apt/etc/sources.list"),
                "Dir::Etc::sourceparts=-".into(),
                at("Dir::State", "apt/state"),
                at("Dir::State::status", "apt/state/status"),
                at("Dir::Cache", "apt/cache"),
                "APT::Sandbox::User=root".into(),
                "Acquire::Languages=none".into(),
                "Acquire::http::Proxy=DIRECT".into(),
                "Debug::NoLocking=true".into(),
            ] {
                apt.arg("-o").arg(option);
            }
            apt.args(words).current_dir(place.dir()).env("LC_ALL", "C");
            runs(&mut apt)
        };
        apt(&["update"]);
        apt(&["download", "onym-test"]);
        assert!(fs::read(place.path("onym-test_1_all.deb")).unwrap() == content);
    }
}

/// Law: a player reads a film through the gateway as from the disk, and goes to a place in it by a range:
/// its table of contents is at the end.
#[test]
fn ffmpeg_plays_and_seeks_through_the_gateway() {
    if Command::new("ffmpeg").arg("-version").output().is_err() {
        println!("skipped: there is no ffmpeg");
        return;
    }
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    fs::create_dir_all(place.path("films")).unwrap();
    let film = place.path("films/film.mp4").display().to_string();
    let ffmpeg = |words: &[&str]| {
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-nostdin", "-loglevel", "error"]).args(words);
        runs(ffmpeg.env_remove("http_proxy").env_remove("HTTP_PROXY"))
    };
    let picture = "testsrc=size=160x90:rate=10:duration=10";
    ffmpeg(&["-f", "lavfi", "-i", picture, "-c:v", "mpeg4", "-g", "10", &film]);
    let mut serve = place.start(&["serve", "films", "/alice/films"]);
    serve.wait_for("ready: ");
    let gateway = Gateway::start(&place, &[]);
    let url = format!("http://{}/ndn/alice/films/film.mp4", gateway.address);
    let frames = |from: &str, file: &str| {
        let told = ffmpeg(&["-ss", from, "-i", file, "-f", "framemd5", "-"]);
        told.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect::<Vec<_>>()
    };
    for (from, count) in [("0", 100), ("8", 20)] {
        let got = frames(from, &url);
        assert_eq!(got.len(), count);
        assert_eq!(got, frames(from, &film), "from {from}");
    }
}
