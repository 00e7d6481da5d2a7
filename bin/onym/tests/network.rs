//! A network begun by one command and joined by another.

#![allow(clippy::unwrap_used)]

mod support;

use onym_crypto::cert::{Issue, validity_of_days};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::{Certificate, KeyType, PrivateKey, Signer};
use std::fs;
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use support::{Place, Running, wait_until};

fn port() -> u16 {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A daemon by the configuration in the folder `net` of its place, listening at `port`.
fn daemon(place: &Place, port: u16) -> Running {
    let config = place.path("net/onym.toml");
    let mut command = place.command(&["daemon", "--config", config.to_str().unwrap()]);
    for set in [
        format!("faces.unix.path={}", place.path("nfd.sock").display()),
        format!("faces.udp.listen=127.0.0.1:{port}"),
        "faces.udp.multicast=[]".into(),
        "faces.tcp.listen=".into(),
        "faces.websocket.listen=".into(),
        "shards=1".into(),
    ] {
        command.args(["--set", &set]);
    }
    let mut daemon = Running::start(&mut command);
    daemon.wait_for("ready\n");
    daemon
}

fn reaches(place: &Place, router: &str) -> bool {
    place.run(&["route", "table"]).out.contains(router)
}

// One network from its beginning to its third machine.
#[allow(clippy::too_many_lines)]
#[test]
fn a_network_is_begun_and_joined_by_two_commands_and_then_routes() {
    let (a, b, c) = (Place::new(), Place::new(), Place::new());
    let (port_a, port_b) = (port(), port());
    let begun =
        a.run(&["network", "init", "/example", "--router", "/example/a", "--folder", "net"]);
    assert_eq!(begun.code, 0, "{}", begun.err);
    for (file, mode) in [("network.key", 0o600), ("router.key", 0o600), ("network.cert", 0o644)] {
        let found = fs::metadata(a.path("net").join(file)).unwrap().permissions().mode();
        assert_eq!(found & 0o777, mode, "{file}");
    }
    let again =
        a.run(&["network", "init", "/example", "--router", "/example/a", "--folder", "net"]);
    assert!(again.code == 1 && again.err.contains("exists already"), "{}", again.err);
    let mut daemon_a = daemon(&a, port_a);
    let mut authority = a.start(&["cert", "authority", "--folder", "net"]);
    authority.wait_for("ready: /example");

    let uri = format!("udp4://127.0.0.1:{port_a}");
    let invite = ["network", "invite", "/example/b", "--folder", "net", "--neighbour", &uri];
    let invited = a.run(&[&invite[..], &["-o", "b.invitation"]].concat());
    assert_eq!(invited.code, 0, "{}", invited.err);
    let text = fs::read_to_string(a.path("b.invitation")).unwrap();
    let mode = fs::metadata(a.path("b.invitation")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = serde_json::from_str::<serde_json::Value>(&text).unwrap()["token"].clone();
    let token = token.as_str().unwrap().to_owned();
    fs::write(b.path("b.invitation"), &text).unwrap();
    let joined = b.run(&["network", "join", "b.invitation", "--folder", "net"]);
    assert_eq!(joined.code, 0, "{}", joined.err);
    assert!(joined.out.starts_with("/example/b has joined"), "{}", joined.out);
    authority.wait_for("invitation used: /example/b/32=DV");

    // The token is good once, whoever has the file.
    fs::write(c.path("b.invitation"), &text).unwrap();
    let refused = c.run(&["network", "join", "b.invitation", "--folder", "net"]);
    assert_eq!(refused.code, 4, "{}", refused.err);
    assert!(refused.err.contains("refused the invitation of /example/b"), "{}", refused.err);

    // What it brought is all that routing needs.
    let mut daemon_b = daemon(&b, port_b);
    wait_until("each other", || reaches(&a, "/example/b") && reaches(&b, "/example/a"));
    fs::write(a.path("file"), b"through the network").unwrap();
    let _put = a.start(&["put", "/app/file", "file"]);
    wait_until("the prefix", || b.run(&["route", "prefixes"]).out.contains("/app/file"));
    assert_eq!(b.run(&["get", "/app/file", "-o", "-"]).out, "through the network");

    // The operator reads how long it lasts, in the log and from doctor.
    daemon_b.wait_for("certificate of routing");
    let said = daemon_b.err.text();
    let line = said.lines().find(|line| line.contains("certificate of routing")).unwrap();
    assert!(line.contains("/example/b/32=DV/KEY/") && line.contains("days_left=89"), "{line}");
    let config = b.path("net/onym.toml");
    let doctor = b.run(&["doctor", "--config", config.to_str().unwrap()]).out;
    assert!(doctor.contains("/NDNCERT/v=") && doctor.contains("has 89 days left"), "{doctor}");

    // The certificate is renewed over the network, by itself.
    let early = b.run(&["network", "renew", "--folder", "net"]);
    assert!(early.code == 0 && early.out.contains("not due: "), "{}{}", early.out, early.err);
    let before = fs::read(b.path("net/router.cert")).unwrap();
    wait_until("the authority's prefix", || {
        b.run(&["route", "prefixes"]).out.contains("/example/CA")
    });
    let renewed = b.run(&["network", "renew", "--now", "--folder", "net"]);
    assert_eq!(renewed.code, 0, "{}", renewed.err);
    assert_ne!(fs::read(b.path("net/router.cert")).unwrap(), before);
    // The running router takes it, and no neighbour is lost.
    daemon_b.wait_for("goes on with a renewed certificate");
    assert!(reaches(&a, "/example/b") && reaches(&b, "/example/a"));
    // The first router has the authority's key, and needs nobody.
    let renewed = a.run(&["network", "renew", "--now", "--folder", "net"]);
    assert_eq!(renewed.code, 0, "{}", renewed.err);
    daemon_a.wait_for("goes on with a renewed certificate");

    // A third machine, which reaches the authority through the second.
    let uri = format!("udp4://127.0.0.1:{port_b}");
    let invite = ["network", "invite", "/example/c", "--folder", "net", "--neighbour", &uri];
    let invited = a.run(&[&invite[..], &["-o", "c.invitation"]].concat());
    assert_eq!(invited.code, 0, "{}", invited.err);
    fs::copy(a.path("c.invitation"), c.path("c.invitation")).unwrap();
    let joined_c = c.run(&["network", "join", "c.invitation", "--folder", "net"]);
    assert_eq!(joined_c.code, 0, "{}", joined_c.err);
    let daemon_c = daemon(&c, port());
    wait_until("the third", || reaches(&a, "/example/c") && reaches(&c, "/example/a"));
    wait_until("the prefix", || c.run(&["route", "prefixes"]).out.contains("/app/file"));
    assert_eq!(c.run(&["get", "/app/file", "-o", "-"]).out, "through the network");

    for said in [&daemon_a.err, &daemon_b.err, &daemon_c.err, &authority.out, &authority.err] {
        assert!(!said.text().contains(&token), "the token in what was said");
    }
    assert!(!format!("{}{}{}", joined.out, joined.err, refused.err).contains(&token));
}

/// A certificate of the key with `left` of 90 days left.
fn aged(name: onym_wire::NameRef<'_>, key: &PrivateKey, signer: &Signer, left: u32) -> Certificate {
    let now_ms = unix_now_ms();
    let request = Certificate::self_signed(name, key, now_ms).unwrap();
    let mut validity = validity_of_days(now_ms, left);
    // An hour more: so many whole days, however long the test takes.
    validity.not_after.0 += 3600;
    validity.not_before.0 = validity.not_after.0 - 90 * 86_400;
    let issuer_id = onym_wire::Component::generic(b"NDNCERT");
    Certificate::issue(&request, signer, &Issue { issuer_id, now_ms, validity }).unwrap()
}

/// Law: whoever operates a router whose certificate is in its last third, with an authority that
/// does not answer, reads it in the log and in `doctor`, with the name of the certificate; and of a key of the store in `cert status` and `doctor`.
#[test]
fn a_certificate_in_its_last_third_is_told_everywhere_while_the_authority_is_away() {
    let place = Place::new();
    let init = ["network", "init", "/example", "--router", "/example/a", "--folder", "net"];
    assert_eq!(place.run(&init).code, 0);
    let read = |file: &str| fs::read_to_string(place.path("net").join(file)).unwrap();
    let anchor = Certificate::from_text(&read("network.cert")).unwrap();
    let [network, router] = ["net/network.key", "net/router.key"]
        .map(|file| PrivateKey::from_pkcs8(&fs::read(place.path(file)).unwrap()).unwrap());
    let signer = Signer::key(network, anchor.name().to_name());
    let fresh = Certificate::from_text(&read("router.cert")).unwrap();
    let router = aged(fresh.key_name(), &router, &signer, 20);
    fs::write(place.path("net/router.cert"), router.to_text()).unwrap();
    // Whoever has the network's key renews for itself: this one no longer has it.
    fs::remove_file(place.path("net/network.key")).unwrap();

    let config = place.path("net/onym.toml");
    let mut command = place.command(&["daemon", "--config", config.to_str().unwrap()]);
    for set in [
        format!("faces.unix.path={}", place.path("nfd.sock").display()),
        format!("faces.udp.listen=127.0.0.1:{}", port()),
        "faces.udp.multicast=[]".into(),
        "faces.tcp.listen=".into(),
        "faces.websocket.listen=".into(),
        "shards=1".into(),
    ] {
        command.args(["--set", &set]);
    }
    let mut daemon = Running::start(&mut command);
    daemon.wait_for("expires soon: it is being renewed");
    daemon.wait_for("not renewed: ");
    let said = daemon.err.text();
    let name = router.name().to_string();
    for word in ["expires soon", "not renewed: "] {
        let line = said.lines().find(|line| line.contains(word)).unwrap();
        assert!(line.contains(&name) && line.contains("days_left=20"), "{line}");
    }
    let doctor = place.run(&["doctor", "--config", config.to_str().unwrap()]).out;
    let line = format!("{name} has 20 days left: a third of its time");
    assert!(doctor.contains(&line), "{doctor}");

    // A key of the store.
    let store = onym_crypto::store::KeyStore::new(place.path("keys"));
    let user: onym_wire::Name = "/example/user/KEY/1".parse().unwrap();
    let own = PrivateKey::generate(KeyType::Ed25519).unwrap();
    let certificate = aged(user.as_ref(), &own, &signer, 10);
    store.add_key(user.as_ref(), &own).unwrap();
    store.add_certificate(&certificate).unwrap();
    let status = place.run(&["cert", "status"]).out;
    assert!(status.contains("RENEW NOW") && status.contains("/example/user/KEY/1/"), "{status}");
    let doctor = place.run(&["doctor"]).out;
    assert!(doctor.contains("/example/user/KEY/1 expires in 10 days"), "{doctor}");
}
