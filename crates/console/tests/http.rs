//! The console's interface as browsers, strangers and pages of other places ask it.

#![allow(clippy::unwrap_used)]

use onym_console::{
    Change, Console, Door, Kind, Node, Nodes, Question, Refused, TAILS_MAX, Tail, Tailed,
};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A node that notes what it is asked.
#[derive(Default)]
struct Fake {
    asked: Mutex<Vec<Question>>,
    opened: AtomicUsize,
    tails: AtomicUsize,
}

struct One(Arc<Fake>);

impl Node for One {
    fn ask(&mut self, question: &Question) -> Result<String, Refused> {
        self.0.asked.lock().unwrap().push(question.clone());
        match question {
            Question::Change(Change::FaceDestroy(_)) => {
                Err(Refused::new(Kind::Refused, "faces/destroy was refused: 403 not yours"))
            }
            Question::Strategies => Err(Refused::new(Kind::NoNode, "no node answers")),
            _ => Ok(r#"{"fine":true}"#.to_owned()),
        }
    }
}

struct Following(Arc<Fake>);

impl Tail for Following {
    fn next(&mut self) -> Result<Tailed, Refused> {
        std::thread::sleep(Duration::from_millis(5));
        Ok(Tailed { packets: vec![r#"{"kind":"interest"}"#.to_owned()], missed: 0 })
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.0.tails.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Fakes(Arc<Fake>);

impl Nodes for Fakes {
    fn open(&self) -> Result<Box<dyn Node>, Refused> {
        self.0.opened.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(One(Arc::clone(&self.0))))
    }

    fn tail(&self, filter: &[(String, String)]) -> Result<Box<dyn Tail>, Refused> {
        if filter.iter().any(|(key, _)| key != "prefix") {
            return Err(Refused::new(Kind::Usage, "a filter has no such key"));
        }
        self.0.tails.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Following(Arc::clone(&self.0))))
    }

    fn verdicts(&self) -> Vec<(&'static str, &'static str)> {
        vec![("no_route", "There is no route.")]
    }
}

/// A console that is served, and its node.
struct World {
    address: SocketAddr,
    console: Console,
    fake: Arc<Fake>,
}

async fn world() -> World {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let fake = Arc::new(Fake::default());
    let nodes = Arc::new(Fakes(Arc::clone(&fake)));
    let console = Console::new(nodes, Door { address, has_tls: false });
    tokio::spawn(onym_http::server::serve(listener, console.router()));
    World { address, console, fake }
}

/// An answer: its status, head and body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl World {
    async fn send(&self, request: &str) -> Answer {
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut octets = Vec::new();
        socket.read_to_end(&mut octets).await.unwrap();
        let text = String::from_utf8(octets).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    /// A request as the page sends it, with `more` header lines.
    async fn ask(&self, method: &str, path: &str, more: &str, body: &str) -> Answer {
        let host = self.address;
        let kind = if method == "GET" { "" } else { "content-type: application/json\r\n" };
        self.send(&format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{kind}{more}\
             content-length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await
    }

    fn code(&self) -> String {
        self.console.address().split_once("#code=").unwrap().1.to_owned()
    }

    /// The header line of a browser that was let in.
    async fn cookie(&self) -> String {
        let body = format!(r#"{{"code":"{}"}}"#, self.code());
        let answer = self.ask("POST", "/v1/session", "", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let line = answer.head.lines().find_map(|l| l.strip_prefix("set-cookie: ")).unwrap();
        format!("cookie: {}\r\n", line.split(';').next().unwrap())
    }

    fn asked(&self) -> Vec<Question> {
        self.fake.asked.lock().unwrap().clone()
    }
}

const READ: [&str; 13] = [
    "/v1/about",
    "/v1/status",
    "/v1/top",
    "/v1/faces",
    "/v1/routes",
    "/v1/routing?network=/n",
    "/v1/push?item=",
    "/v1/lab",
    "/v1/lab/file/fig8/sim/report.html",
    "/v1/history?since=7",
    "/v1/verdicts",
    "/v1/explain?name=/a",
    "/v1/tail",
];

const CHANGES: [(&str, &str); 10] = [
    ("/v1/trace", r#"{"name":"/a"}"#),
    ("/v1/nodes/ask", r#"{"name":"/net/b"}"#),
    ("/v1/faces/create", r#"{"uri":"udp4://192.0.2.1:6363"}"#),
    ("/v1/faces/destroy", r#"{"face":7}"#),
    ("/v1/routes/add", r#"{"prefix":"/a","via":"7","cost":1}"#),
    ("/v1/routes/remove", r#"{"prefix":"/a","face":7,"origin":"static"}"#),
    ("/v1/strategies/set", r#"{"prefix":"/a","strategy":"multicast"}"#),
    ("/v1/strategies/unset", r#"{"prefix":"/a"}"#),
    ("/v1/cs/config", r#"{"capacity":7,"admit":false}"#),
    ("/v1/cs/erase", r#"{"prefix":"/a"}"#),
];

#[tokio::test]
async fn without_a_session_nothing_is_answered_and_the_node_is_not_asked() {
    let world = world().await;
    for path in READ {
        let answer = world.ask("GET", path, "", "").await;
        assert_eq!(answer.status, 401, "{path}: {}", answer.body);
        assert!(answer.body.contains("onym console"), "{}", answer.body);
    }
    let wrong = format!("cookie: onym-console-{}={}\r\n", world.address.port(), "0".repeat(32));
    for (path, body) in CHANGES {
        assert_eq!(world.ask("POST", path, "", body).await.status, 401, "{path}");
        assert_eq!(world.ask("POST", path, &wrong, body).await.status, 401, "{path}");
    }
    assert_eq!(world.asked(), []);
    assert_eq!(world.fake.tails.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_code_is_good_once_and_its_cookie_until_the_end_of_the_session() {
    let world = world().await;
    let code = world.code();
    let body = format!(r#"{{"code":"{code}"}}"#);
    let answer = world.ask("POST", "/v1/session", "", &body).await;
    assert_eq!(answer.status, 200);
    let line = answer.head.lines().find(|l| l.starts_with("set-cookie: ")).unwrap().to_owned();
    for word in ["httponly", "samesite=strict", "path=/", "max-age=43200"] {
        assert!(line.contains(word), "{line}");
    }
    assert!(!line.contains("domain"), "{line}");
    assert_eq!(world.ask("POST", "/v1/session", "", &body).await.status, 401, "used");
    let guess = r#"{"code":"00000000000000000000000000000000"}"#;
    assert_eq!(world.ask("POST", "/v1/session", "", guess).await.status, 401);
    let cookie = world.cookie().await;
    assert_eq!(world.ask("GET", "/v1/about", &cookie, "").await.status, 200);
    let end = world.ask("POST", "/v1/session/end", &cookie, "{}").await;
    assert!(end.status == 200 && end.head.contains("max-age=0"), "{}", end.head);
    assert_eq!(world.ask("GET", "/v1/about", &cookie, "").await.status, 401);
}

#[tokio::test]
async fn a_browser_that_was_let_in_reads_and_changes() {
    let world = world().await;
    let cookie = world.cookie().await;
    for path in READ.iter().filter(|path| **path != "/v1/tail" && !path.contains("/lab")) {
        let answer = world.ask("GET", path, &cookie, "").await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    }
    for (path, body) in CHANGES {
        let answer = world.ask("POST", path, &cookie, body).await;
        let wanted = if path == "/v1/faces/destroy" { 403 } else { 200 };
        assert_eq!(answer.status, wanted, "{path}: {}", answer.body);
    }
    assert!(world.asked().contains(&Question::History { since: 7 }));
    assert!(world.asked().contains(&Question::Routing { network: "/n".to_owned() }));
    assert!(world.asked().contains(&Question::Push { item: String::new() }));
    let answer = world.ask("POST", "/v1/faces/destroy", &cookie, r#"{"face":7}"#).await;
    assert!(answer.body.contains("faces/destroy was refused: 403 not yours"), "{}", answer.body);
    let answer = world.ask("GET", "/v1/strategies", &cookie, "").await;
    assert_eq!(answer.status, 503, "{}", answer.body);
}

#[tokio::test]
async fn nothing_changes_by_get() {
    let world = world().await;
    let cookie = world.cookie().await;
    for (path, _) in CHANGES {
        let answer = world.ask("GET", &format!("{path}?face=7&name=/a"), &cookie, "").await;
        assert_eq!(answer.status, 405, "{path}");
    }
    assert_eq!(world.ask("GET", "/v1/session?code=0", "", "").await.status, 405);
    assert_eq!(world.ask("GET", "/v1/session/end", &cookie, "").await.status, 405);
    for method in ["PUT", "DELETE", "OPTIONS", "PATCH"] {
        assert_eq!(world.ask(method, "/v1/cs/erase", &cookie, "{}").await.status, 405, "{method}");
    }
    assert_eq!(world.asked(), []);
}

#[tokio::test]
async fn pages_of_other_places_are_refused_even_with_the_cookie() {
    let world = world().await;
    let cookie = world.cookie().await;
    let (host, port) = (world.address, world.address.port());
    let origin = |origin: &str| format!("{cookie}origin: {origin}\r\n");
    let foreign = [
        origin("http://evil.example"),
        origin("null"),
        origin(&format!("http://127.0.0.1:{}", port ^ 1)),
        origin(&format!("http://localhost:{port}")),
        format!("{cookie}sec-fetch-site: cross-site\r\n"),
        format!("{cookie}sec-fetch-site: same-site\r\n"),
    ];
    for more in &foreign {
        for (path, body) in CHANGES {
            assert_eq!(world.ask("POST", path, more, body).await.status, 403, "{path} {more}");
        }
        for path in READ {
            assert_eq!(world.ask("GET", path, more, "").await.status, 403, "{path} {more}");
        }
        let body = format!(r#"{{"code":"{}"}}"#, world.code());
        assert_eq!(world.ask("POST", "/v1/session", more, &body).await.status, 403, "{more}");
    }
    // A typed address may read; nobody types a POST.
    let typed = format!("{cookie}sec-fetch-site: none\r\n");
    assert_eq!(world.ask("POST", "/v1/cs/erase", &typed, r#"{"prefix":"/"}"#).await.status, 403);
    assert_eq!(world.asked(), [], "the node was asked nothing");
    assert_eq!(world.ask("GET", "/v1/about", &typed, "").await.status, 200);
    let own = format!("{cookie}origin: http://{host}\r\nsec-fetch-site: same-origin\r\n");
    assert_eq!(world.ask("POST", "/v1/cs/erase", &own, r#"{"prefix":"/"}"#).await.status, 200);
}

#[tokio::test]
async fn a_name_that_was_made_to_resolve_here_is_refused() {
    let world = world().await;
    let cookie = world.cookie().await;
    for path in ["/", "/v1/about"] {
        for host in ["host: evil.example\r\n", "host: 127.0.0.1.evil.example:80\r\n", ""] {
            let request = format!("GET {path} HTTP/1.1\r\n{host}connection: close\r\n{cookie}\r\n");
            let status = world.send(&request).await.status;
            assert!(status == 403 || (host.is_empty() && status == 400), "{path} {host}: {status}");
        }
    }
    assert_eq!(world.asked(), []);
}

#[tokio::test]
async fn a_form_of_another_page_is_refused_by_its_media_type() {
    let world = world().await;
    let cookie = world.cookie().await;
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let answer = world
            .send(&format!(
                "POST /v1/cs/erase HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n{cookie}\
                 content-type: {kind}\r\ncontent-length: 14\r\n\r\n{{\"prefix\":\"/\"}}",
                world.address
            ))
            .await;
        assert_eq!(answer.status, 415, "{kind}");
    }
    assert_eq!(world.asked(), []);
}

#[tokio::test]
async fn every_answer_has_its_policy_and_is_kept_by_nobody() {
    let world = world().await;
    let page = world.ask("GET", "/", "", "").await;
    assert_eq!(page.status, 200);
    let policy = page.head.lines().find_map(|l| l.strip_prefix("content-security-policy: "));
    let policy = policy.unwrap();
    for part in ["default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'", "sha256-"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    let refused = world.ask("GET", "/v1/about", "", "").await;
    let nowhere = world.ask("GET", "/../etc/passwd", "", "").await;
    for answer in [&page, &refused, &nowhere] {
        for line in [
            "cache-control: no-store",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "x-frame-options: deny",
            "cross-origin-opener-policy: same-origin",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(answer.head.contains(line), "{line}: {}", answer.head);
        }
        assert!(!answer.head.contains("access-control-"), "{}", answer.head);
    }
}

#[tokio::test]
async fn what_is_malformed_or_too_long_is_told_and_asks_nothing() {
    let world = world().await;
    let cookie = world.cookie().await;
    for (path, body) in [
        ("/v1/faces/destroy", "{"),
        ("/v1/faces/destroy", r#"{"face":-1}"#),
        ("/v1/faces/destroy", r#"{"face":1,"force":true}"#),
        ("/v1/routes/add", r#"{"prefix":7}"#),
        ("/v1/cs/erase", "[]"),
        ("/v1/trace", ""),
        ("/v1/nodes/ask", r#"{"name":["/a"]}"#),
    ] {
        let answer = world.ask("POST", path, &cookie, body).await;
        assert_eq!(answer.status, 422, "{path} {body}: {}", answer.body);
    }
    let long = format!(r#"{{"prefix":"{}"}}"#, "a".repeat(65 << 10));
    let answer = world.ask("POST", "/v1/cs/erase", &cookie, &long).await;
    assert_eq!(answer.status, 413, "{}", answer.body);
    for path in [
        "/v1/history?since=x",
        "/v1/history?until=1",
        "/v1/explain",
        "/v1/tail?colour=red",
        "/v1/routing?of=/n",
        "/v1/push?id=/1",
    ] {
        assert_eq!(world.ask("GET", path, &cookie, "").await.status, 422, "{path}");
    }
    for path in ["/v1", "/v1/", "/v1/faces/", "//v1/about", "/V1/about", "/index.html"] {
        assert_eq!(world.ask("GET", path, &cookie, "").await.status, 404, "{path}");
    }
    assert_eq!(world.asked(), []);
}

#[tokio::test]
async fn browsers_that_watch_together_cost_the_node_one_question() {
    let world = world().await;
    let cookie = world.cookie().await;
    let start = Instant::now();
    for _ in 0..20 {
        assert_eq!(world.ask("GET", "/v1/top", &cookie, "").await.status, 200);
    }
    let most = 1 + start.elapsed().as_millis() / 900;
    let asked = world.asked().iter().filter(|q| **q == Question::Top).count() as u128;
    assert!(asked <= most, "{asked} questions, at most {most}");
    // And a few connections serve all of it.
    for _ in 0..20 {
        assert_eq!(world.ask("GET", "/v1/faces", &cookie, "").await.status, 200);
    }
    assert!(world.fake.opened.load(Ordering::SeqCst) <= 2);
}

#[tokio::test]
async fn tails_are_few_and_end_when_nobody_reads() {
    let world = world().await;
    let cookie = world.cookie().await;
    let mut open = Vec::new();
    for _ in 0..TAILS_MAX {
        let mut socket = TcpStream::connect(world.address).await.unwrap();
        let request = format!(
            "GET /v1/tail?prefix=%2Fa&face= HTTP/1.1\r\nhost: {}\r\n{cookie}\r\n",
            world.address
        );
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut reader = BufReader::new(socket);
        let mut line = String::new();
        while !line.contains("data: {\"kind\":\"interest\"}") {
            line.clear();
            assert!(reader.read_line(&mut line).await.unwrap() > 0, "it ended");
        }
        open.push(reader);
    }
    let more = world.ask("GET", "/v1/tail", &cookie, "").await;
    assert_eq!(more.status, 503, "{}", more.body);
    assert_eq!(world.fake.tails.load(Ordering::SeqCst), TAILS_MAX);
    drop(open);
    let until = Instant::now() + Duration::from_secs(30);
    while world.fake.tails.load(Ordering::SeqCst) > 0 {
        assert!(Instant::now() < until, "the tails did not end");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

/// A console with results of a run that is under way and of one that is done.
async fn world_with_lab(root: &Path) -> World {
    let plan = r#"{"order":[["c1",1],["c2",1],["c1",2]],"cells":[{"cell":"c1","label":"strength=25%"},{"cell":"c2","label":"strength=50%"}]}"#;
    write(root, "fig8/netns/plan.json", plan);
    write(root, "fig8/netns/state.json", r#"{"phase":"replicates","ended":null}"#);
    let done = r#"{"phase":"done","took":4.0}"#;
    write(root, "fig8/netns/cells/c1/r1/state.json", done);
    let begun = r#"{"phase":"measure","attempts":2,"began":1700000000.5,"why":null}"#;
    write(root, "fig8/netns/cells/c2/r1/state.json", begun);
    write(root, "fig8/sim/plan.json", plan);
    write(root, "fig8/sim/state.json", r#"{"phase":"done","took":12.5}"#);
    write(root, "fig8/sim/report.html", "<script>alert(1)</script>");
    write(root, "fig8/sim/report.pdf", "%PDF");
    write(root, "fig8/sim/plots/hops.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>");
    write(root, "fig8/sim/provenance.json", "{}");
    write(root, "fig8/sim/checks.csv", "cell");
    write(root, "fig8/sim/plots/.hidden.svg", "");
    write(root, "no-run/other/notes.txt", "");
    write(root, "broken/sim/plan.json", "{");
    let mut world = world().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.address = listener.local_addr().unwrap();
    let nodes = Arc::new(Fakes(Arc::clone(&world.fake)));
    let door = Door { address: world.address, has_tls: false };
    world.console = Console::new(nodes, door).with_lab(root.to_owned());
    tokio::spawn(onym_http::server::serve(listener, world.console.router()));
    world
}

#[tokio::test]
async fn the_laboratory_tells_how_far_a_run_is_and_which_reports_there_are() {
    let root = tempfile::tempdir().unwrap();
    let world = world_with_lab(root.path()).await;
    let cookie = world.cookie().await;
    let told = world.ask("GET", "/v1/lab", &cookie, "").await;
    assert_eq!(told.status, 200, "{}", told.body);
    let told: serde_json::Value = serde_json::from_str(&told.body).unwrap();
    let [running, done] = told["runs"].as_array().unwrap().as_slice() else { panic!("{told}") };
    assert_eq!((&running["done"], &running["total"]), (&1.into(), &3.into()), "{running}");
    let now = &running["now"];
    assert_eq!(now["label"], "strength=50%");
    assert_eq!((&now["phase"], &now["attempts"]), (&"measure".into(), &2.into()));
    assert_eq!(now["began_ms"], 1_700_000_000_500_u64);
    assert_eq!((&done["phase"], &done["done"]), (&"done".into(), &3.into()), "{done}");
    let reports = serde_json::json!(["report.html", "report.pdf", "plots/hops.svg"]);
    assert_eq!(done["reports"], reports);
    // Without it there is none.
    let world = crate::world().await;
    let cookie = world.cookie().await;
    for path in ["/v1/lab", "/v1/lab/file/fig8/sim/report.html"] {
        let none = world.ask("GET", path, &cookie, "").await;
        assert!(none.status == 404 && none.body.contains("--lab"), "{}", none.body);
    }
}

/// Laws: a report runs no script and is of no origin; no path leads to anything but reports.
#[tokio::test]
async fn reports_run_no_script_and_nothing_else_of_the_folder_is_served() {
    let root = tempfile::tempdir().unwrap();
    let world = world_with_lab(root.path()).await;
    let cookie = world.cookie().await;
    let file = |path: &str| format!("/v1/lab/file/{path}");
    for (path, kind) in [
        ("fig8/sim/report.html", "text/html"),
        ("fig8/sim/report.pdf", "application/pdf"),
        ("fig8/sim/plots/hops.svg", "image/svg+xml"),
    ] {
        let report = world.ask("GET", &file(path), &cookie, "").await;
        assert_eq!(report.status, 200, "{path}");
        assert!(report.head.contains(&format!("content-type: {kind}")), "{}", report.head);
        let policy = report.head.lines().find_map(|l| l.strip_prefix("content-security-policy: "));
        let policy = policy.unwrap();
        assert!(policy.contains("default-src 'none'") && policy.contains("sandbox"), "{policy}");
        assert!(!policy.contains("script") && !policy.contains("same-origin"), "{policy}");
        assert!(report.head.contains("x-content-type-options: nosniff"), "{}", report.head);
    }
    let outside = tempfile::tempdir().unwrap();
    write(outside.path(), "secret.html", "secret");
    for (to, link) in [("secret.html", "fig8/sim/report.link.html"), ("", "fig8/out")] {
        std::os::unix::fs::symlink(outside.path().join(to), root.path().join(link)).unwrap();
    }
    for path in [
        "fig8/sim/provenance.json",
        "fig8/sim/checks.csv",
        "fig8/sim/plan.json",
        "fig8/sim/report.link.html",
        "fig8/out/secret.html",
        "fig8/sim/plots/.hidden.svg",
        "fig8/sim/plots/none.svg",
        "fig8/sim/plots",
        "fig8/sim/../sim/report.html",
        "fig8/sim/%2e%2e/report.html",
        "../fig8/sim/report.html",
        "/etc/report.html",
        "fig8//report.html",
        "fig8/sim/report.html/",
        "fig8/sim/plots/a/b.svg",
        "",
    ] {
        let answer = world.ask("GET", &file(path), &cookie, "").await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
    }
    assert_eq!(world.ask("GET", &file("fig8/sim/report.html"), "", "").await.status, 401);
}
