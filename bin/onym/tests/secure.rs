//! Who may ask a manager, its services and a console, and where they listen.

#![allow(clippy::unwrap_used)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::managed::Managed;
use support::{Ended, Place, Running, wait_until};

fn openssl(place: &Place, line: &str) {
    let out = Command::new("openssl").args(line.split(' ')).current_dir(place.dir()).output();
    let out = out.expect("openssl is needed");
    assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
}

/// An authority `ca.pem`, and `own.pem` that it signed for this machine.
fn certificates(place: &Place) {
    let new = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
    openssl(place, &format!("req -x509 {new} -keyout ca.key -out ca.pem -days 3 -subj /CN=ca"));
    openssl(place, &format!("req {new} -keyout own.key -out own.csr -subj /CN=own"));
    let names = "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n";
    fs::write(place.path("names"), names).unwrap();
    let sign = "x509 -req -in own.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out own.pem";
    openssl(place, &format!("{sign} -days 3 -extfile names"));
}

#[test]
fn a_manager_by_mutual_tls_answers_who_shows_a_certificate_and_nobody_else() {
    let place = Place::new();
    certificates(&place);
    let tls = ["--tls-cert", "own.pem", "--tls-key", "own.key", "--tls-ca", "ca.pem"];
    let mut manager = place.start(&Managed::words(&tls));
    let url = Managed::url_of(&mut manager);
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let ask = |more: &[&str]| {
        let words = ["net", "--manager", &url, "show", "--json"];
        place.run(&[&words, more].concat())
    };
    let own = ["--ca", "ca.pem", "--tls-cert", "own.pem", "--tls-key", "own.key"];
    let answered = ask(&own);
    assert_eq!(answered.code, 0, "{}", answered.err);
    assert!(answered.out.contains("functions"), "{}", answered.out);
    assert_ne!(ask(&["--ca", "ca.pem"]).code, 0, "no certificate");
    assert_ne!(ask(&[]).code, 0, "no authority to trust");
    let plain = url.replace("https", "http");
    // With a token it is asked at that address, and not by the manager's socket.
    fs::write(place.path("token"), "0123456789abcdef\n").unwrap();
    let by_tcp = ["net", "--manager", &plain, "--token-file", "token", "show"];
    assert_ne!(place.run(&by_tcp).code, 0, "no TLS");
}

/// Asks five times while two hundred connections are kept that begin a handshake at most; what came, and
/// how long it took.
fn while_handshakes_hang(to: &str, ask: impl Fn() -> Ended) -> Vec<(Duration, Ended)> {
    // Some say nothing, some begin a handshake, and one more comes for each that is closed.
    let (over, made) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let mut held = std::collections::VecDeque::new();
            while !over.load(Ordering::Relaxed) {
                let n = made.fetch_add(1, Ordering::Relaxed);
                if let Ok(mut stream) = std::net::TcpStream::connect(to) {
                    if n % 2 == 0 {
                        let _ = stream.write_all(&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);
                    }
                    held.push_back(stream);
                }
                if held.len() > 200 {
                    held.pop_front();
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        wait_until("the flood is there", || made.load(Ordering::Relaxed) > 250);
        let timed = || {
            let begun = Instant::now();
            let answered = ask();
            (begun.elapsed(), answered)
        };
        let all = (0..5).map(|_| timed()).collect();
        over.store(true, Ordering::Relaxed);
        flood.join().unwrap();
        all
    })
}

#[test]
fn half_open_handshakes_keep_no_honest_request_of_a_tls_door_waiting() {
    let place = Place::new();
    certificates(&place);
    let tls = ["--tls-cert", "own.pem", "--tls-key", "own.key"];
    let mut manager = place.start(&Managed::words(&[&tls[..], &["--tls-ca", "ca.pem"]].concat()));
    let url = Managed::url_of(&mut manager);
    let words = ["net", "--manager", &url, "show", "--json", "--ca", "ca.pem"];
    let of_manager = while_handshakes_hang(url.strip_prefix("https://").unwrap(), || {
        place.run(&[&words[..], &tls[..]].concat())
    });
    let _daemon = place.daemon(&[]);
    let (_console, base, _) = console(&place);
    let of_console = while_handshakes_hang(base.strip_prefix("https://").unwrap(), || {
        curl(&place, &["--fail", "--cacert", "ca.pem", &base])
    });
    for (took, answered) in of_manager.into_iter().chain(of_console) {
        assert_eq!(answered.code, 0, "{}", answered.err);
        assert!(took < Duration::from_secs(5), "{took:?}");
    }
}

/// A console by TLS: it, where it is, and the code that lets a browser in.
fn console(place: &Place) -> (Running, String, String) {
    let tls = ["--tls-cert", "own.pem", "--tls-key", "own.key"];
    let mut console =
        place.start(&[&["console", "--listen", "127.0.0.1:0"][..], &tls[..]].concat());
    console.wait_for("#code=");
    let text = console.out.text();
    let (base, code) = text.trim().split_once("/#code=").unwrap();
    (console, base.to_owned(), code.to_owned())
}

fn curl(place: &Place, words: &[&str]) -> Ended {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--include", "--max-time", "20"]).args(words);
    Ended::of(command.current_dir(place.dir()).output().expect("curl is needed"))
}

#[test]
fn a_console_by_tls_says_nothing_in_clear_text_and_its_cookie_stays_with_it() {
    let place = Place::new();
    certificates(&place);
    let _daemon = place.daemon(&[]);
    let (_console, base, code) = console(&place);
    assert!(base.starts_with("https://127.0.0.1:"), "{base}");
    let about = format!("{base}/v1/about");
    let plain = curl(&place, &[&about.replace("https", "http")]);
    assert!(plain.code != 0 && plain.out.is_empty(), "{plain:?}");
    assert_ne!(curl(&place, &[&about]).code, 0, "its authority is not one of the system");
    let trusted = |more: &[&str]| curl(&place, &[&["--cacert", "ca.pem"], more].concat());
    assert!(trusted(&[&about]).out.starts_with("HTTP/1.1 401"), "{:?}", trusted(&[&about]));
    let (kind, body) = ("content-type: application/json", format!("{{\"code\":\"{code}\"}}"));
    let session = format!("{base}/v1/session");
    let entered = trusted(&["--header", kind, "--data", &body, &session]);
    let cookie = entered.out.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.unwrap_or_else(|| panic!("{entered:?}"));
    assert!(cookie.starts_with("__Host-onym-console-"), "{cookie}");
    assert!(cookie.contains("; Secure") && cookie.contains("Path=/"), "{cookie}");
    let cookie = cookie.split_once(';').unwrap().0;
    let read = trusted(&["--cookie", cookie, &about]);
    assert!(read.out.starts_with("HTTP/1.1 200"), "{read:?}");
    // Beyond loopback there is none without a certificate.
    let ended = place.run(&["console", "--listen", "0.0.0.0:0"]);
    assert!(ended.code == 2 && ended.err.contains("--tls-cert"), "{ended:?}");
}

#[test]
fn a_token_does_not_travel_in_clear_text_unless_that_is_said() {
    let place = Place::new();
    fs::write(place.path("token"), "0123456789abcdef\n").unwrap();
    let ended = place.run(&["manager", "--listen", "0.0.0.0:0", "--token-file", "token"]);
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("--clear-text"), "{}", ended.err);
    let far = "http://192.0.2.1:8080";
    let ended = place.run(&["net", "--manager", far, "--token-file", "token", "show"]);
    assert_eq!(ended.code, 2, "it is not sent");
    assert!(ended.err.contains("unencrypted"), "{}", ended.err);
}

/// Sockets of processes.
fn sockets(pids: &[String]) -> BTreeSet<String> {
    let of = |pid: &String| fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links = pids.iter().flat_map(of).filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
    let inode = |link: std::path::PathBuf| {
        Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
    };
    links.filter_map(inode).collect()
}

/// Addresses, as the kernel writes them, at which these sockets take what strangers send: TCP
/// listens (`0A`), UDP has no peer (`07`).
fn open(sockets: &BTreeSet<String>) -> Vec<String> {
    let mut all = Vec::new();
    for (table, state) in [("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")] {
        let text = fs::read_to_string(format!("/proc/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words[3] == state && sockets.contains(words[9]) {
                all.push(words[1].to_owned());
            }
        }
    }
    all
}

#[test]
fn nothing_of_a_network_listens_beyond_loopback() {
    let managed = Managed::new();
    managed.apply_chain();
    let mut pids: Vec<String> = ["pd", "cs", "br", "nr"].map(|name| managed.pid(name)).into();
    pids.push(managed.manager.as_ref().unwrap().pid().to_string());
    let open = open(&sockets(&pids));
    assert!(open.len() > 5, "each has a control interface: {open:?}");
    for address in open {
        // 127.0.0.1 in the order of this machine, or ::1.
        let near = address.starts_with("0100007F:")
            || address.starts_with("00000000000000000000000001000000:");
        assert!(near, "{address} is reached from elsewhere");
    }
}
