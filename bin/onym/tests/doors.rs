//! Who may open the doors of a manager and of a service, and that nobody shuts them for others.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use support::managed::Managed;
use support::{Ended, Place, Running, wait_until};

/// A user who is neither root nor the one of this test.
const STRANGER: u32 = 65_534;

/// Only root can be somebody else.
fn is_root() -> bool {
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !root {
        eprintln!("skipped: only root can act for another user");
    }
    root
}

/// A request over a connection of its own: status and body; 0 when none came.
fn http(to: &str, request: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let _ = stream.write_all(request.as_bytes());
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    let status = text.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
    (status, text)
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers.iter().map(|(k, v)| format!("{k}: {v}\r\n")).collect();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn plain(url: &str) -> &str {
    url.strip_prefix("http://").unwrap()
}

/// Runs a copy of the program as a stranger.
fn as_stranger(place: &Place, args: &[&str]) -> Ended {
    let copy = place.path("program");
    if !copy.exists() {
        fs::set_permissions(place.dir(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_onym"), &copy).unwrap();
    }
    let mut command = Command::new(copy);
    command.args(args).current_dir("/").env_clear().env("HOME", "/");
    Ended::of(command.uid(STRANGER).gid(STRANGER).output().unwrap())
}

/// A request of a stranger's process.
fn stranger_asks(to: &str, request: &str) -> String {
    let (host, port) = to.rsplit_once(':').unwrap();
    // The shell's own sockets: nothing else is sure to be there.
    let script = format!("exec 3<>/dev/tcp/{host}/{port}; cat >&3; timeout 20 cat <&3");
    let mut child = Command::new("bash")
        .args(["-c", &script])
        .uid(STRANGER)
        .gid(STRANGER)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(request.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    String::from_utf8_lossy(&out.stdout).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn another_user_commands_no_manager_and_its_own_user_needs_to_say_nothing() {
    let managed = Managed::new();
    managed.apply_chain();
    let to = plain(&managed.url).to_owned();
    for (method, path) in [
        ("GET", "/v1/network"),
        ("GET", "/metrics"),
        ("PUT", "/v1/presets/minimal?confirm=true"),
        ("DELETE", "/v1/description?confirm=true"),
    ] {
        let (status, text) = http(&to, &request(method, path, &[("Host", &to)], ""));
        assert_eq!(status, 401, "{method} {path}: {text}");
    }
    assert_eq!(managed.net(&["show"])["functions"].as_object().unwrap().len(), 4);
    if !is_root() {
        return;
    }
    let ended = as_stranger(&managed.place, &["net", "--manager", &managed.url, "down"]);
    assert_eq!(ended.code, 4, "{}{}", ended.out, ended.err);
    let mut tried = 0;
    for entry in fs::read_dir(managed.place.path("onym")).into_iter().flatten().flatten() {
        let path = entry.path();
        let mode = entry.metadata().unwrap().mode() & 0o777;
        assert!(mode & 0o007 == 0, "{}: {mode:o}", path.display());
        if path.extension().is_some_and(|e| e == "sock") {
            let door = format!("unix://{}", path.display());
            let ended = as_stranger(&managed.place, &["net", "--manager", &door, "down"]);
            assert_ne!(ended.code, 0, "{}{}", ended.out, ended.err);
            tried += 1;
        }
    }
    assert_eq!(tried, 1, "the manager has a socket");
    assert_eq!(managed.net(&["show"])["functions"].as_object().unwrap().len(), 4);
}

#[test]
fn a_manager_of_root_has_no_open_door() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let ended = place.run(&["manager", "--listen", "127.0.0.1:0", "--state", "state", "--open"]);
    assert_eq!(ended.code, 2, "{}", ended.err);
    assert!(ended.err.contains("root"), "{}", ended.err);
}

#[test]
fn functions_listen_where_the_managers_configuration_allows_and_folders_are_not_made() {
    let managed = Managed::new();
    let of = |uri: &str| {
        format!("network = \"n\"\nfunctions.br.kind = \"BR\"\nfunctions.br.listen = \"{uri}\"\n")
    };
    let made = managed.place.path("made/by/nobody");
    let inside = format!("unix://{}/x.sock", made.display());
    let through = format!("unix://{}/../../etc/x.sock", managed.place.dir().display());
    for uri in [
        inside.as_str(),
        through.as_str(),
        "unix:///etc/x.sock",
        "tcp4://0.0.0.0:0",
        "udp4://0.0.0.0:0",
        "tcp6://[::]:0",
        "tcp4://192.0.2.1:6363",
        "ether://lo",
    ] {
        fs::write(managed.place.path("n.toml"), of(uri)).unwrap();
        let ended = managed.place.run(&["net", "--manager", &managed.url, "apply", "n.toml"]);
        assert_eq!(ended.code, 4, "{uri}: {}{}", ended.out, ended.err);
        let told = ended.err.contains("function br") && ended.err.contains("--allow-listen");
        assert!(told || uri == inside, "{uri}: {}", ended.err);
    }
    assert!(!managed.place.path("made").exists() && !Path::new("/etc/x.sock").exists());
    drop(managed);
    let open = Managed::with(&["--allow-listen", "tcp4://0.0.0.0"]);
    open.apply(&of("tcp4://0.0.0.0:0"));
    fs::write(open.place.path("n.toml"), of("udp4://0.0.0.0:0")).unwrap();
    let ended = open.place.run(&["net", "--manager", &open.url, "apply", "n.toml"]);
    assert_eq!(ended.code, 4, "what is allowed is that and no more: {}", ended.err);
}

struct Service {
    _running: Running,
    control: String,
}

fn service(place: &Place, args: &[&str]) -> Service {
    let mut all = vec!["service"];
    all.extend(args);
    let mut running = place.start(&all);
    running.wait_for("ready {");
    let said = running.err.text();
    let line = said.lines().find_map(|l| l.strip_prefix("ready ")).unwrap();
    let ready: Value = serde_json::from_str(line).unwrap();
    let control = plain(ready["control"].as_str().unwrap()).to_owned();
    Service { _running: running, control }
}

#[test]
fn a_service_started_by_hand_obeys_its_own_user_and_no_page() {
    let place = Place::new();
    let service = service(&place, &["content-store"]);
    let to = service.control.as_str();
    let json = ("Content-Type", "application/json");
    let patch = |headers: &[(&str, &str)]| {
        http(to, &request("PATCH", "/v1/config", headers, "{\"capacity\":7}")).0
    };
    assert_eq!(patch(&[("Host", "evil.example"), json]), 403, "a name that resolves to loopback");
    assert_eq!(patch(&[json]), 400, "no host");
    assert_eq!(patch(&[("Host", to), ("Content-Type", "text/plain")]), 415);
    assert_eq!(patch(&[("Host", to)]), 415);
    assert_eq!(patch(&[("Host", to), ("Origin", "http://evil.example"), json]), 403);
    assert_eq!(patch(&[("Host", to), ("Origin", "null"), json]), 403);
    let get = |host: &str| http(to, &request("GET", "/v1/service", &[("Host", host)], "")).0;
    assert_eq!((get("evil.example"), get(to)), (403, 200));
    assert_eq!(patch(&[("Host", to), json]), 200);
    if is_root() {
        let host = [("Host", to), json];
        let asked = request("PATCH", "/v1/config", &host, "{\"capacity\":9}");
        let line = stranger_asks(to, &asked);
        assert!(line.contains("401"), "{line}");
        let (_, text) = http(to, &request("GET", "/v1/config", &host, ""));
        assert!(text.contains("\"capacity\":7"), "{text}");
    }
}

#[test]
fn the_control_interface_of_a_service_connects_to_no_socket_of_others() {
    let place = Place::new();
    fs::create_dir(place.path("others")).unwrap();
    fs::create_dir(place.path("own")).unwrap();
    let others = std::os::unix::net::UnixListener::bind(place.path("others/log")).unwrap();
    others.set_nonblocking(true).unwrap();
    let listen = format!("unix://{}", place.path("own/in.sock").display());
    let folder = format!("unix://{}", place.path("others").display());
    for (allowed, words) in [(false, &[][..]), (true, &["--allow-connect", &folder][..])] {
        let cs = service(&place, &[&["content-store", "--listen", &listen], words].concat());
        let pd = service(&place, &[&["packet-dispatcher"], words].concat());
        let _ = fs::remove_file(place.path("own/link"));
        std::os::unix::fs::symlink(place.path("others/log"), place.path("own/link")).unwrap();
        let uri = |path: &str| format!("unix://{}", place.path(path).display());
        let json = "Content-Type: application/json";
        let ask = |to: &str, method: &str, path: &str, body: String| {
            let (name, value) = json.split_once(": ").unwrap();
            http(to, &request(method, path, &[("Host", to), (name, value)], &body))
        };
        for path in ["others/log", "own/../others/log", "own/link"] {
            let body = format!("{{\"uri\":\"{}\"}}", uri(path));
            let (status, text) = ask(&cs.control, "PUT", "/v1/faces/x", body);
            assert_eq!(status == 201 || status == 200 || status == 409, allowed, "{path}: {text}");
            let body = format!("{{\"consumer_path\":\"{}\"}}", uri(path));
            let (status, text) = ask(&pd.control, "PATCH", "/v1/config", body);
            assert_eq!(status == 200, allowed, "{path}: {text}");
        }
        if !allowed {
            assert!(others.accept().is_err(), "nobody connected");
        }
    }
}

#[test]
fn a_link_that_is_turned_round_after_it_was_checked_leads_nowhere_else() {
    let place = Place::new();
    for folder in ["others", "own"] {
        fs::create_dir(place.path(folder)).unwrap();
    }
    let bind = |path: &str| {
        let listener = std::os::unix::net::UnixListener::bind(place.path(path)).unwrap();
        listener.set_nonblocking(true).unwrap();
        listener
    };
    let (own, others) = (bind("own/real"), bind("others/log"));
    let link = |to: &str| {
        let new = place.path("own/new");
        std::os::unix::fs::symlink(place.path(to), &new).unwrap();
        fs::rename(new, place.path("own/link")).unwrap();
    };
    link("own/real");
    let listen = format!("unix://{}", place.path("own/in.sock").display());
    let cs = service(&place, &["content-store", "--listen", &listen]);
    let to = cs.control.as_str();
    let headers = [("Host", to), ("Content-Type", "application/json")];
    let uri = format!("unix://{}", place.path("own/link").display());
    let body = format!("{{\"uri\":\"{uri}\",\"wait_ms\":5000}}");
    let (status, text) = http(to, &request("PUT", "/v1/faces/x", &headers, &body));
    assert!(status == 201 && text.contains("\"up\""), "{text}");
    let mut connection = None;
    wait_until("it is connected", || {
        connection = own.accept().ok();
        connection.is_some()
    });
    link("others/log");
    drop(connection);
    let face = || http(to, &request("GET", "/v1/faces/x", &headers, "")).1;
    wait_until("it is refused", || face().contains("outside of the allowed folders"));
    // A few attempts later it still is.
    let end = Instant::now() + Duration::from_secs(2);
    wait_until("the time is over", || Instant::now() > end);
    assert!(others.accept().is_err(), "nobody connected");
    link("own/real");
    wait_until("it is connected again", || own.accept().is_ok());
}

/// Connections that send nothing, held by a process of a stranger where that can be.
fn flood(to: &str, count: usize) -> Running {
    let (host, port) = to.rsplit_once(':').unwrap();
    let script = format!(
        "import socket,time\nheld=[]\nprint('begun',flush=True)\nwhile True:\n  try:\n    s=socket.socket();s.settimeout(1);s.connect(('{host}',{port}));held.append(s)\n  except OSError: pass\n  if len(held)>{count}: held.pop(0).close()\n  if len(held)>={count}: print('full',flush=True);time.sleep(0.05)\n"
    );
    let mut command = Command::new("/usr/bin/env");
    command.args(["python3", "-c", &script]).env("PATH", "/usr/bin:/bin:/usr/local/bin");
    if is_root() {
        command.uid(STRANGER).gid(STRANGER);
    }
    let mut running = Running::start(&mut command);
    running.wait_for("full");
    running
}

#[test]
fn connections_that_send_nothing_keep_no_honest_request_waiting() {
    let place = Place::new();
    let managed = Managed::new();
    let service = service(&place, &["content-store"]);
    let metrics = format!("127.0.0.1:{}", onym_sys::port::unused(1).unwrap()[0]);
    let _daemon = place.daemon(&[&format!("metrics.listen={metrics}")]);
    for (to, path) in [
        (plain(&managed.url), "/v1/health"),
        (&service.control, "/v1/service"),
        (&metrics, "/metrics"),
    ] {
        let _flood = flood(to, 200);
        for _ in 0..5 {
            let begun = Instant::now();
            let (status, text) = http(to, &request("GET", path, &[("Host", to)], ""));
            assert_eq!(status, 200, "{to}{path}: {text}");
            assert!(begun.elapsed() < Duration::from_secs(5), "{path}: {:?}", begun.elapsed());
        }
    }
}

#[test]
fn a_flooded_control_port_ends_no_function() {
    let managed = Managed::new();
    managed.apply_chain();
    managed.wait_settled();
    let before = managed.pid("br");
    let view = managed.net(&["show"]);
    let control = plain(view["functions"]["br"]["control"].as_str().unwrap()).to_owned();
    let _flood = flood(&control, 200);
    // Longer than a service may be silent.
    let end = Instant::now() + Duration::from_secs(14);
    wait_until("the time is over", || {
        let view = managed.net(&["show"]);
        assert_eq!(view["functions"]["br"]["state"], "up", "{view}");
        Instant::now() > end
    });
    assert_eq!(managed.pid("br"), before);
}
