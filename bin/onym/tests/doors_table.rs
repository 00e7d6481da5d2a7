//! Who may do what at the doors of manager, services and metrics: each cell of docs/security.md.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use support::managed::Managed;
use support::{Place, Running};

const STRANGER: u32 = 65_534;
/// A user and a group that nothing here belongs to.
const MEMBER: u32 = 54_321;

/// The table behind `mark`: names of columns, then each row with its name.
fn table(mark: &str) -> (Vec<String>, Vec<(String, Vec<String>)>) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/security.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once(&format!("<!-- {mark} -->")).expect(mark);
    let (body, _) = rest.split_once("<!--").unwrap();
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let mut lines = body.lines().filter(|line| line.starts_with('|'));
    let columns = cells(lines.next().unwrap())[1..].to_vec();
    let rows = lines.skip(1).map(|line| {
        let mut cells = cells(line);
        (cells.remove(0), cells)
    });
    (columns, rows.collect())
}

/// A request as somebody: user and group, to a socket or an address; the status, 0 without answer.
fn ask(who: Option<(u32, u32)>, to: &str, request: &str) -> u16 {
    let script = "import socket,sys
to,request=sys.argv[1],sys.argv[2]
try:
  if to.startswith('/'):
    s=socket.socket(socket.AF_UNIX);s.settimeout(30);s.connect(to)
  else:
    h,p=to.rsplit(':',1);s=socket.create_connection((h,int(p)),30)
  s.sendall(request.encode());f=s.makefile('rb');print(f.readline().split()[1].decode())
except (OSError,IndexError): print(0)";
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", script, to, request]).current_dir("/").env_clear();
    if let Some((uid, gid)) = who {
        command.uid(uid).gid(gid);
    }
    let out = command.output().expect("python3 is needed");
    String::from_utf8_lossy(&out.stdout).trim().parse().unwrap()
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers.iter().map(|(k, v)| format!("{k}: {v}\r\n")).collect();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\n{headers}Content-Type: application/json\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn can_be_others() -> bool {
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !root {
        eprintln!("skipped: only root can act for other users");
    }
    root
}

fn ready(running: &Running) -> Value {
    let said = running.err.text();
    let line = said.lines().find_map(|l| l.strip_prefix("ready ")).unwrap();
    serde_json::from_str(line).unwrap()
}

/// Tries each cell; `try_one` answers with the status of a row's request at a column's door.
fn try_all(mark: &str, mut try_one: impl FnMut(&str, &str) -> u16) {
    let (columns, rows) = table(mark);
    let mut wrong = Vec::new();
    for (row, cells) in &rows {
        assert_eq!(cells.len(), columns.len(), "{row}");
        for (column, cell) in columns.iter().zip(cells) {
            let status = try_one(row, column);
            let may = (200..300).contains(&status);
            assert!(matches!(cell.as_str(), "yes" | "no"), "{row}, {column}: {cell:?}");
            if may != (cell == "yes") {
                wrong.push(format!("{row}, {column}: {cell} is said, {status} is the answer"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What a browser is answered that opens the address `url`.
fn let_in(url: &str, to: &str) -> String {
    let code = url.trim().split_once("#code=").unwrap().1;
    let body = format!("{{\"code\":\"{code}\"}}");
    let mut client = TcpStream::connect(to).unwrap();
    client.write_all(request("POST", "/v1/session", &[("Host", to)], &body).as_bytes()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    answer
}

/// A token for a page, as a browser gets it.
fn page_token(managed: &Managed, to: &str) -> String {
    let answer = let_in(managed.net(&["page"])["url"].as_str().unwrap(), to);
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str::<Value>(body).unwrap()["token"].as_str().unwrap().to_owned()
}

#[test]
fn the_doors_of_the_manager_are_as_the_table_says() {
    if !can_be_others() {
        return;
    }
    let group = "nogroup";
    let managed = Managed::with(&["--group", group]);
    let said = ready(managed.manager.as_ref().unwrap());
    let socket = said["socket"].as_str().unwrap().to_owned();
    let token = fs::read_to_string(said["token_file"].as_str().unwrap()).unwrap();
    let token = token.trim().to_owned();
    assert_eq!(fs::metadata(said["token_file"].as_str().unwrap()).unwrap().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&socket).unwrap().mode() & 0o777, 0o660);
    for folder in [managed.place.dir(), &managed.place.path("onym")] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let to = managed.url.strip_prefix("http://").unwrap().to_owned();
    let page = page_token(&managed, &to);
    try_all("doors of the manager", |row, column| {
        let down = "/v1/description?confirm=true";
        let (method, path) = match row {
            "ask whether it runs" => ("GET", "/v1/health"),
            "read the interface's description" => ("GET", "/openapi.json"),
            "read the network" => ("GET", "/v1/network"),
            "read events" => ("GET", "/v1/events"),
            "read metrics" => ("GET", "/metrics"),
            "change the network" => ("PUT", "/v1/presets/minimal?dry_run=true"),
            "take everything down" => ("DELETE", down),
            "ask for a page's address" => ("POST", "/v1/page"),
            other => panic!("{other}"),
        };
        let bearer = format!("Bearer {token}");
        let paged = format!("Bearer {page}");
        let host = ("Host", to.as_str());
        let stranger = Some((STRANGER, MEMBER));
        let (who, at, headers) = match column {
            "socket, its user" => (None, &socket, vec![host]),
            "socket, group" => (Some((MEMBER, STRANGER)), &socket, vec![host]),
            "socket, others" => (stranger, &socket, vec![host]),
            "TCP, token" => (stranger, &to, vec![host, ("Authorization", &bearer)]),
            "TCP, page's token" => (stranger, &to, vec![host, ("Authorization", &paged)]),
            "TCP, without" => (None, &to, vec![host]),
            "TCP, without, page of elsewhere" => {
                (None, &to, vec![host, ("Origin", "http://evil.example")])
            }
            other => panic!("{other}"),
        };
        ask(who, at, &request(method, path, &headers, ""))
    });
}

fn service(place: &Place, more: &[&str]) -> (Running, String) {
    let words = [&["service", "content-store"], more].concat();
    let mut running = place.start(&words);
    running.wait_for("ready {");
    let control = ready(&running)["control"].as_str().unwrap().to_owned();
    (running, control.strip_prefix("http://").unwrap().to_owned())
}

#[test]
fn the_doors_of_a_service_are_as_the_table_says() {
    if !can_be_others() {
        return;
    }
    let place = Place::new();
    fs::write(place.path("token"), "0123456789abcdef\n").unwrap();
    let _elsewhere = std::os::unix::net::UnixListener::bind(place.path("log")).unwrap();
    let (mut plain, mut with) = (service(&place, &[]), service(&place, &["--token-file", "token"]));
    let elsewhere = format!("{{\"uri\":\"unix://{}\"}}", place.path("log").display());
    try_all("doors of a service", |row, column| {
        let (method, path, body) = match row {
            "ask whether it runs" => ("GET", "/v1/health", ""),
            "read its state" => ("GET", "/v1/service", ""),
            "read metrics" => ("GET", "/metrics", ""),
            "change its configuration" => ("PATCH", "/v1/config", "{\"capacity\":5}"),
            "make a face" => ("PUT", "/v1/faces/a", "{\"uri\":\"tcp4://127.0.0.1:9\"}"),
            "connect to a socket elsewhere" => ("PUT", "/v1/faces/b", elsewhere.as_str()),
            "stop it" => ("POST", "/v1/stop", ""),
            other => panic!("{other}"),
        };
        // The row before may have stopped it.
        if !plain.0.runs() {
            plain = service(&place, &[]);
        }
        if !with.0.runs() {
            with = service(&place, &["--token-file", "token"]);
        }
        let host = |to: &str| vec![("Host".to_owned(), to.to_owned())];
        let also = |to: &str, name: &str, value: &str| {
            let mut all = host(to);
            all.push((name.to_owned(), value.to_owned()));
            all
        };
        let (who, to, headers) = match column {
            "its user, loopback" => (None, &plain.1, host(&plain.1)),
            "others, loopback" => (Some((STRANGER, STRANGER)), &plain.1, host(&plain.1)),
            "its user, foreign Host" => (None, &plain.1, host("evil.example")),
            "its user, page of elsewhere" => {
                (None, &plain.1, also(&plain.1, "Origin", "http://evil.example"))
            }
            "token" => (
                Some((STRANGER, STRANGER)),
                &with.1,
                also(&with.1, "Authorization", "Bearer 0123456789abcdef"),
            ),
            "wrong token" => {
                (None, &with.1, also(&with.1, "Authorization", "Bearer 0123456789abcdee"))
            }
            other => panic!("{other}"),
        };
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let status = ask(who, to, &request(method, path, &headers, body));
        if row == "stop it" && status == 200 {
            let stopped = if column == "token" { &mut with.0 } else { &mut plain.0 };
            assert_eq!(stopped.end(), Some(0), "it obeys");
        }
        status
    });
}

#[test]
fn the_doors_of_a_console_are_as_the_table_says() {
    if !can_be_others() {
        return;
    }
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let mut console = place.start(&["console", "--listen", "127.0.0.1:0"]);
    console.wait_for("#code=");
    let url = console.out.text();
    let to = url.trim().strip_prefix("http://").unwrap().split_once('/').unwrap().0.to_owned();
    let answer = let_in(&url, &to);
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = cookie.split_once(';').unwrap().0;
    try_all("doors of a console", |row, column| {
        let (method, path, body) = match row {
            "load the page, which is empty" => ("GET", "/", ""),
            "read the state of the node" => ("GET", "/v1/status", ""),
            "change the node" => ("POST", "/v1/cs/erase", "{\"prefix\":\"/a\"}"),
            "change the node by GET" => ("GET", "/v1/cs/erase?prefix=/a", ""),
            other => panic!("{other}"),
        };
        let (host, cookie) = (("Host", to.as_str()), ("Cookie", cookie));
        let (who, headers) = match column {
            "its user, cookie" => (None, vec![host, cookie]),
            "its user, without" => (None, vec![host]),
            "others, cookie" => (Some((STRANGER, STRANGER)), vec![host, cookie]),
            "its user, cookie, foreign Host" => (None, vec![("Host", "evil.example"), cookie]),
            "its user, cookie, page of elsewhere" => {
                (None, vec![host, cookie, ("Origin", "http://evil.example")])
            }
            "its user, cookie, another port of this host" => {
                (None, vec![host, cookie, ("Sec-Fetch-Site", "same-site")])
            }
            other => panic!("{other}"),
        };
        ask(who, &to, &request(method, path, &headers, body))
    });
}

#[test]
fn the_door_of_metrics_is_as_the_table_says() {
    if !can_be_others() {
        return;
    }
    let place = Place::new();
    let at = format!("127.0.0.1:{}", onym_sys::port::unused(1).unwrap()[0]);
    let _daemon = place.daemon(&[&format!("metrics.listen={at}")]);
    try_all("doors of metrics", |row, column| {
        let (method, path) = match row {
            "read metrics" => ("GET", "/metrics"),
            "ask whether it runs" => ("GET", "/healthz"),
            "ask whether it is ready" => ("GET", "/readyz"),
            "change anything" => ("PUT", "/metrics"),
            other => panic!("{other}"),
        };
        let host = ("Host", at.as_str());
        let (who, headers) = match column {
            "its user, loopback" => (None, vec![host]),
            "others, loopback" => (Some((STRANGER, STRANGER)), vec![host]),
            "foreign Host, loopback" => (None, vec![("Host", "evil.example")]),
            "page of elsewhere, loopback" => (None, vec![host, ("Origin", "http://evil.example")]),
            other => panic!("{other}"),
        };
        ask(who, &at, &request(method, path, &headers, ""))
    });
}
