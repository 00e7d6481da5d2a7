//! Certificates by NDNCERT between commands, over a real node.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
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
fn record(request: &Running) -> String {
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
    let value = record(&request);
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
    assert_eq!(record(&request), value, "the same record is wanted");
    assert!(status(&place).is_empty());

    // Nobody answers: the lookup ends within the lifetime of the Interest.
    let (unanswered, _) = question(&resolver);
    let (again, from) = question(&resolver);
    assert_ne!(unanswered[..2], again[..2], "numbers of questions are drawn");
    resolver.send_to(&answer(&again, &value), from).unwrap();
    assert_eq!(request.end(), Some(0), "{}", request.err.text());
    assert_eq!(status(&place).len(), 1);
}
