//! Certificates by NDNCERT between commands, over a real node.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use support::{Place, Running, wait_until};

/// `onym` with the client's key store; the authority has that of the place.
fn client(place: &Place, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.env("ONYM_KEYSTORE", place.path("client"));
    command
}

/// What it ended with, and what it said.
fn ended(mut command: Command) -> (i32, String, String) {
    let output = command.output().unwrap();
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn status(place: &Place) -> Vec<Value> {
    let (code, out, err) = ended(client(place, &["cert", "status", "--json"]));
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

/// A pipe with a name: a command that reads its code there waits until it is known.
fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn authority(place: &Place, more: &[&str]) -> Running {
    assert_eq!(place.run(&["key", "new", "/ca"]).code, 0);
    assert_eq!(place.run(&["cert", "export", "/ca", "-o", "ca.ndncert"]).code, 0);
    let mut authority = place.start(&[&["cert", "authority", "/ca"], more].concat());
    authority.wait_for("ready: /ca");
    authority
}

/// The code that the operator is shown for an identity.
fn code_for(authority: &mut Running, identity: &str) -> String {
    authority.wait_for(&format!(" for {identity}\n"));
    let text = authority.out.text();
    let line = text.lines().rev().find(|line| line.ends_with(&format!(" for {identity}"))).unwrap();
    line.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn a_certificate_comes_by_a_pin_and_is_renewed_by_possession() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let mut authority = authority(&place, &[]);
    pipe(&place.path("code"));
    let request = ["cert", "request", "ca.ndncert", "--for", "/ca/alice", "--code-file", "code"];
    let mut request = Running::start(&mut client(&place, &request));
    let code = code_for(&mut authority, "/ca/alice");
    fs::write(place.path("code"), format!("{code}\n")).unwrap();
    assert_eq!(request.end(), Some(0), "{}", request.err.text());
    assert!(request.out.text().starts_with("/ca/alice/KEY/"), "{}", request.out.text());
    assert!(!authority.err.text().contains(&code), "a code in the log");
    let first = status(&place);
    assert_eq!((first.len(), &first[0]["state"]), (1, &Value::from("valid")));
    assert_eq!(first[0]["days_left"], 89);
    assert_eq!(first[0]["signs_by_default"], true);

    // Not due, and renewed when told to: by the certificate itself, without a code.
    let (code, out, err) = ended(client(&place, &["cert", "renew", "ca.ndncert"]));
    assert_eq!((code, out.contains("not due: ")), (0, true), "{err}");
    let (code, out, err) = ended(client(&place, &["cert", "renew", "ca.ndncert", "--now"]));
    assert_eq!((code, out.contains("renewed: /ca/alice/KEY/")), (0, true), "{out}{err}");
    let both = status(&place);
    assert_eq!(both.len(), 2, "the old one stays beside the new one");

    // It proves its own identity and no other.
    let other = ["cert", "request", "ca.ndncert", "--for", "/ca/bob", "--challenge", "possession"];
    let (code, _, err) = ended(client(&place, &[&other[..], &["--with", "/ca/alice"]].concat()));
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("it proves /ca/alice and nothing else"), "{err}");

    // Somebody else under the authority's name is not believed.
    for args in [&["key", "new", "/ca"][..], &["cert", "export", "/ca", "-o", "other.ndncert"]] {
        let mut command = place.command(args);
        command.env("ONYM_KEYSTORE", place.path("other"));
        assert_eq!(ended(command).0, 0);
    }
    let (code, _, err) =
        ended(client(&place, &["cert", "request", "other.ndncert", "--for", "/ca/bob"]));
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("somebody else answers"), "{err}");
}

#[test]
fn a_wrong_code_is_refused_and_a_mail_brings_the_right_one() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let script = place.path("mail");
    fs::write(&script, "#!/bin/sh\necho \"$@\" > to\ncat > letter.part\nmv letter.part letter\n")
        .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let offer = ["--challenge", "email,pin", "--probe", "email", "--mail-command", "./mail"];
    let _authority = authority(&place, &offer);
    fs::write(place.path("wrong"), "0\n").unwrap();
    let wrong = ["cert", "request", "ca.ndncert", "--for", "/ca/alice", "--code-file", "wrong"];
    let (code, _, err) = ended(client(&place, &wrong));
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("the code in the file is wrong"), "{err}");

    // The name is the authority's to give: it follows from the address.
    pipe(&place.path("code"));
    let by_mail = ["cert", "request", "ca.ndncert", "--challenge", "email", "--email", "a@x.org"];
    let by_mail = [&by_mail[..], &["--code-file", "code"]].concat();
    let mut request = Running::start(&mut client(&place, &by_mail));
    wait_until("the letter", || place.path("letter").exists());
    assert_eq!(fs::read_to_string(place.path("to")).unwrap(), "a@x.org /ca /ca/a%40x.org\n");
    fs::copy(place.path("letter"), place.path("code")).unwrap();
    assert_eq!(request.end(), Some(0), "{}", request.err.text());
    assert!(request.out.text().starts_with("/ca/a%40x.org/KEY/"), "{}", request.out.text());
}

/// A question for a TXT record that came, and from whom.
fn question(resolver: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut octets = [0; 512];
    let (len, from) = resolver.recv_from(&mut octets).unwrap();
    (octets[..len].to_vec(), from)
}

/// The answer to `question`: one record with `text`.
fn answer(question: &[u8], text: &str) -> Vec<u8> {
    let mut out = question.to_vec();
    out[2] |= 0x80;
    out[7] = 1;
    let len = u8::try_from(text.len()).unwrap();
    out.extend_from_slice(&[0xC0, 12, 0, 16, 0, 1, 0, 0, 0, 60, 0, len + 1, len]);
    out.extend_from_slice(text.as_bytes());
    out
}

/// The record that the command wants to be put into the zone.
fn record(request: &mut Running) -> String {
    // The question may be at the resolver before the line is read here.
    request.wait_for(" TXT ");
    let text = request.err.text();
    let line = text.lines().rev().find(|line| line.contains(" TXT ")).unwrap();
    assert!(
        line.contains("_ndncert-challenge.alice.example TXT \"") && line.ends_with('"'),
        "{text}"
    );
    line.split('"').nth(1).unwrap().to_owned()
}

/// Law: a record is what the resolver that was named answers to the question that was asked: what
/// others say, other answers and junk give no right, silence ends in time, and a later try succeeds.
#[test]
fn a_record_counts_from_the_resolver_alone_and_for_its_question_alone() {
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let resolver = UdpSocket::bind("127.0.0.1:0").unwrap();
    resolver.set_read_timeout(Some(support::PATIENCE)).unwrap();
    let address = resolver.local_addr().unwrap().to_string();
    let _authority = authority(&place, &["--challenge", "dns", "--resolver", &address]);
    let by_record = ["cert", "request", "ca.ndncert", "--for", "/ca/alice.example"];
    let more = ["--challenge", "dns", "--domain", "alice.example"];
    let mut request = Running::start(&mut client(&place, &[&by_record[..], &more].concat()));

    // Somebody who knows what was asked, and of which port; then who answers something else.
    let (asked, from) = question(&resolver);
    let value = record(&mut request);
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    stranger.send_to(&answer(&asked, &value), from).unwrap();
    let mut other_number = answer(&asked, &value);
    other_number[0] ^= 1;
    let mut other_name = answer(&asked, &value);
    other_name[14] ^= 1;
    let right = answer(&asked, &value);
    for wrong in [&[][..], b"junk", &asked, &other_number, &other_name, &right[..right.len() - 1]] {
        resolver.send_to(wrong, from).unwrap();
    }
    resolver.send_to(&answer(&asked, "another value"), from).unwrap();
    request.wait_for("the authority does not find it");
    assert_eq!(record(&mut request), value, "the same record is wanted");
    assert!(status(&place).is_empty());

    // Nobody answers: the lookup ends within the lifetime of the Interest.
    let (unanswered, _) = question(&resolver);
    let (again, from) = question(&resolver);
    assert_ne!(unanswered[..2], again[..2], "numbers of questions are drawn");
    resolver.send_to(&answer(&again, &value), from).unwrap();
    assert_eq!(request.end(), Some(0), "{}", request.err.text());
    assert_eq!(status(&place).len(), 1);
}

/// A resolver with one TXT record at a time, on a port of its own.
struct Resolver {
    address: String,
    record: Arc<Mutex<Option<(String, String)>>>,
}

impl Resolver {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap().to_string();
        let record = Arc::new(Mutex::new(None::<(String, String)>));
        let of_thread = Arc::clone(&record);
        // It ends with the test's process.
        std::thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((len, from)) = socket.recv_from(&mut question) {
                let answer = resolved(&question[..len], of_thread.lock().unwrap().as_ref());
                let _ = socket.send_to(&answer, from);
            }
        });
        Self { address, record }
    }

    fn set(&self, name: &str, text: &str) {
        *self.record.lock().unwrap() = Some((name.to_lowercase(), text.to_owned()));
    }
}

/// What a resolver says to a question for a TXT record.
fn resolved(question: &[u8], record: Option<&(String, String)>) -> Vec<u8> {
    let (mut at, mut name) = (12, String::new());
    while question[at] != 0 {
        let len = usize::from(question[at]);
        let label = std::str::from_utf8(&question[at + 1..=at + len]).unwrap();
        name += &format!("{}{label}", if name.is_empty() { "" } else { "." });
        at += len + 1;
    }
    let end = at + 5;
    let text = record.filter(|(of, _)| *of == name.to_lowercase()).map(|(_, text)| text);
    let mut out = question[..2].to_vec();
    out.extend([0x81, 0x80, 0, 1, 0, u8::from(text.is_some()), 0, 0, 0, 0]);
    out.extend(&question[12..end]);
    if let Some(text) = text {
        let len = u8::try_from(text.len()).unwrap();
        out.extend([0xC0, 12, 0, 16, 0, 1, 0, 0, 0, 60, 0, len + 1, len]);
        out.extend(text.as_bytes());
    }
    out
}

/// A pipe that a command reads its input from; writing never waits.
fn input(path: &Path) -> fs::File {
    pipe(path);
    fs::File::options().read(true).write(true).open(path).unwrap()
}

/// Whether ndnd is on PATH.
fn has_ndnd() -> bool {
    let there = Command::new("ndnd").arg("--help").output().is_ok();
    if !there {
        eprintln!("skipped: ndnd is not on PATH");
    }
    there
}

/// ndnd's client with its input from `stdin`.
fn certcli(place: &Place, more: &[&str], stdin: &fs::File) -> Running {
    let mut command = Command::new("ndnd");
    let args = ["certcli", "--no-probe", "-k", "ndnd.key", "-o", "ndnd", "ca.pem"];
    command.args(args).args(more).current_dir(place.dir());
    command.env("HOME", place.dir()).env("NDN_CLIENT_TRANSPORT", place.node());
    command.stdin(stdin.try_clone().unwrap());
    Running::start(&mut command)
}

/// A key of ndnd for `identity`, and the authority's certificate as ndnd reads it.
fn prepare_ndnd(place: &Place, identity: &str) {
    let made = Command::new("ndnd").args(["sec", "keygen", identity, "ed25519"]).output().unwrap();
    fs::write(place.path("ndnd.key"), made.stdout).unwrap();
    let text = fs::read_to_string(place.path("ca.ndncert")).unwrap();
    let pem = format!("-----BEGIN NDN CERT-----\n\n{text}-----END NDN CERT-----\n");
    fs::write(place.path("ca.pem"), pem).unwrap();
}

#[test]
fn ndnds_client_gets_its_certificate_by_a_pin_after_a_wrong_one() {
    use std::io::Write as _;
    if !has_ndnd() {
        return;
    }
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let mut authority = authority(&place, &[]);
    prepare_ndnd(&place, "/ca/alice");
    let mut stdin = input(&place.path("in"));
    let mut request = certcli(&place, &["-c", "pin"], &stdin);
    let code = code_for(&mut authority, "/ca/alice");
    stdin.write_all(b"000000\n").unwrap();
    request.wait_for("wrong-code");
    writeln!(stdin, "{code}").unwrap();
    assert_eq!(request.end(), Some(0), "{}{}", request.out.text(), request.err.text());
    let issued = place.run(&["cert", "show", "ndnd.cert"]);
    assert!(issued.out.starts_with("/ca/alice/KEY/"), "{}{}", issued.out, issued.err);
    assert!(issued.out.contains("/NDNCERT/v="), "{}", issued.out);
}

#[test]
fn ndnds_client_gets_its_certificate_by_a_record() {
    use std::io::Write as _;
    if !has_ndnd() {
        return;
    }
    let place = Place::new();
    let _daemon = place.daemon(&[]);
    let resolver = Resolver::start();
    let _authority = authority(&place, &["--challenge", "dns", "--resolver", &resolver.address]);
    prepare_ndnd(&place, "/ca/example.net");
    let mut stdin = input(&place.path("in"));
    let mut request = certcli(&place, &["-c", "dns", "--domain", "example.net"], &stdin);
    request.wait_for("_ndncert-challenge.example.net");
    let value = || {
        let said = format!("{}{}", request.out.text(), request.err.text());
        let is_digest =
            |word: &&str| word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit());
        let words = said.split(|c: char| !c.is_ascii_alphanumeric());
        words.into_iter().find(is_digest).map(ToOwned::to_owned)
    };
    wait_until("the value of the record", || value().is_some());
    resolver.set("_ndncert-challenge.example.net", &value().unwrap());
    stdin.write_all(b"ready\n\n").unwrap();
    assert_eq!(request.end(), Some(0), "{}{}", request.out.text(), request.err.text());
    let issued = place.run(&["cert", "show", "ndnd.cert"]);
    assert!(issued.out.starts_with("/ca/example.net/KEY/"), "{}{}", issued.out, issued.err);
}
