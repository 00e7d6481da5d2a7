//! Where a node decides by entries of `trust`: what its content store keeps, who registers at
//! `/localhop`, and what happens when anchors and revocations change while it runs.

#![allow(clippy::unwrap_used)]

mod support;

use onym_crypto::cert::{Issue, validity_of_days};
use onym_crypto::{Certificate, Freshness, KeyType, PrivateKey, Signer};
use onym_node::NodeHandle;
use onym_wire::data::DataBuilder;
use onym_wire::interest::InterestBuilder;
use onym_wire::mgmt::{Block as _, ControlParameters, ControlResponse, Scope, command_name};
use onym_wire::{Component, Data};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{App, name, start, unix_ms, until, unwrap, with};

const SITE: &str = r##"
    #K: "KEY"/_/_/_
    #root: "net"/#K
    #user: "net"/u/#K <= #root
    #file: "net"/u/_file <= #user
    #register: "localhop"/"nfd"/"rib"/"register"/"net"/u <= #user
"##;

struct Holder {
    key: PrivateKey,
    certificate: Certificate,
}

impl Holder {
    fn of(identity: &str) -> Self {
        let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
        let key_name = name(&format!("{identity}/KEY/1"));
        let certificate = Certificate::self_signed(key_name.as_ref(), &key, unix_ms()).unwrap();
        Self { key, certificate }
    }

    fn issued(identity: &str, by: &Self) -> Self {
        let mut holder = Self::of(identity);
        let now_ms = unix_ms();
        let validity = validity_of_days(now_ms, 1);
        let issue = Issue { issuer_id: Component::generic(b"net"), now_ms, validity };
        let request = &holder.certificate;
        holder.certificate = Certificate::issue(request, &by.signer(), &issue).unwrap();
        holder
    }

    fn signer(&self) -> Signer {
        let key = PrivateKey::from_pkcs8(&self.key.to_pkcs8().unwrap()).unwrap();
        Signer::key(key, self.certificate.name().to_name())
    }

    fn says(&self, uri: &str) -> Vec<u8> {
        let name = name(uri);
        let mut wire = Vec::new();
        let builder = DataBuilder { freshness_ms: 60_000, ..DataBuilder::new(name.as_ref(), b"x") };
        self.signer().sign_data(&builder, &mut wire).unwrap();
        wire
    }

    fn write(&self, path: &Path) {
        fs::write(path, self.certificate.to_text()).unwrap();
    }
}

/// A node that judges by [`SITE`] from the anchor of `root`, looking at the files each second.
fn node(place: &Path, root: &Holder, sets: &[&str]) -> NodeHandle {
    fs::write(place.join("site.lvs"), SITE).unwrap();
    fs::write(place.join("revoked"), "").unwrap();
    fs::create_dir_all(place.join("anchors")).unwrap();
    root.write(&place.join("anchors/root.cert"));
    let path = |file: &str| format!("{:?}", place.join(file).display().to_string());
    let entry = format!(
        "trust=[{{name=\"site\", schema={}, anchors=[{}], revoked={}, refresh_s=1}}]",
        path("site.lvs"),
        path("anchors"),
        path("revoked"),
    );
    start(with(1, &[&[entry.as_str()], sets].concat()))
}

fn attach(node: &NodeHandle, scope: Scope) -> App {
    App::new(node.attach(scope).unwrap().1)
}

/// Answers the next Interest: whatever is asked for must be one of these.
fn serve(app: &mut App, packets: &[&[u8]]) -> String {
    let (asked, _) = app.take_interest();
    let fits = |packet: &&&[u8]| asked.as_ref().is_prefix_of(Data::parse(packet).unwrap().name);
    let answer = packets.iter().find(fits).unwrap_or_else(|| panic!("{asked} is asked for"));
    app.send(answer);
    asked.to_string()
}

fn verified(node: &NodeHandle) -> [u64; 2] {
    node.snapshot().unwrap().verified
}

#[test]
fn a_content_store_keeps_what_the_rules_believe_and_nothing_else_under_the_prefix() {
    let place = tempfile::tempdir().unwrap();
    let root = Holder::of("/net");
    let (user, forger) = (Holder::issued("/net/u", &root), Holder::of("/net/u"));
    let verify = "cs.verify=[{prefix=\"/net\", trust=\"site\"}]";
    let node = node(place.path(), &root, &[verify]);
    let (mut consumer, mut producer) = (attach(&node, Scope::Local), attach(&node, Scope::Local));
    for prefix in ["/net", "/free"] {
        let named = ControlParameters { name: Some(name(prefix)), ..ControlParameters::default() };
        assert_eq!(producer.command("/localhost/nfd", "rib/register", &named).code, 200);
    }
    let certificate = user.certificate.wire().to_vec();
    let good = user.says("/net/u/good");
    consumer.interest("/net/u/good");
    assert_eq!(serve(&mut producer, &[&good]), "/net/u/good");
    consumer.take_data();
    // Who asked has it; the store asks for the certificate before it keeps it.
    assert_eq!(serve(&mut producer, &[&certificate]), user.certificate.name().to_string());
    // The certificate is Data under the prefix, too.
    until("both are verified", || verified(&node) == [2, 0]);
    until("both are kept", || node.snapshot().unwrap().sum(|s| s.cs_entries) == 2);
    consumer.interest("/net/u/good");
    assert_eq!(consumer.take_data().0, name("/net/u/good"), "the producer is not asked again");
    // A forgery under the same names, and what no rule is about.
    let by_forger = forger.certificate.wire().to_vec();
    for (uri, by, refused) in [("/net/u/bad", &forger, 2), ("/net/u/too/long", &user, 4)] {
        let packet = by.says(uri);
        consumer.interest(uri);
        serve(&mut producer, &[&packet]);
        consumer.take_data();
        if refused == 2 {
            let asked = serve(&mut producer, &[&by_forger]);
            assert_eq!(asked, forger.certificate.name().to_string());
        }
        until("it is refused", || verified(&node) == [2, refused]);
        consumer.interest(uri);
        assert_eq!(serve(&mut producer, &[&packet]), uri, "it was not kept");
        consumer.take_data();
        until("again", || verified(&node) == [2, refused + 1]);
    }
    // Elsewhere everything is kept as it comes.
    let free = forger.says("/free/1");
    consumer.interest("/free/1");
    serve(&mut producer, &[&free]);
    consumer.take_data();
    consumer.interest("/free/1");
    assert_eq!(consumer.take_data().0, name("/free/1"));
    let snapshot = node.snapshot().unwrap();
    let (trust, status) = &snapshot.trust[0];
    assert_eq!((trust.as_str(), status.anchors.len(), status.cached), ("site", 1, 1));
}

#[test]
fn what_is_beyond_the_rate_is_passed_on_and_left_out_of_the_store() {
    let place = tempfile::tempdir().unwrap();
    let root = Holder::of("/net");
    let user = Holder::issued("/net/u", &root);
    let verify = "cs.verify=[{prefix=\"/net\", trust=\"site\"}]";
    let node = node(place.path(), &root, &[verify, "cs.verify_rate_max=1"]);
    let (mut consumer, mut producer) = (attach(&node, Scope::Local), attach(&node, Scope::Local));
    let named = ControlParameters { name: Some(name("/net")), ..ControlParameters::default() };
    assert_eq!(producer.command("/localhost/nfd", "rib/register", &named).code, 200);
    let certificate = user.certificate.wire().to_vec();
    for n in 0..5 {
        let uri = format!("/net/u/{n}");
        let packet = user.says(&uri);
        consumer.interest(&uri);
        while serve(&mut producer, &[&packet, &certificate]) != uri {}
        assert_eq!(consumer.take_data().0, name(&uri));
    }
    let counts = || node.snapshot().unwrap().shards[0].verify;
    assert!(counts().left_out >= 3 && counts().held >= 1, "{:?}", counts());
}

/// The time of the next command: later than that of the one before.
fn later() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_max(unix_ms(), Ordering::Relaxed);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// A registration at `/localhop`, signed by `by`: the answer's code, its certificate served.
fn register(peer: &mut App, by: &Holder, prefix: &str) -> u64 {
    let parameters = ControlParameters { name: Some(name(prefix)), ..ControlParameters::default() };
    let command = command_name(name("/localhop/nfd").as_ref(), "rib", "register", &parameters);
    let mut nonce = [0; 8];
    onym_crypto::Entropy::fill(&mut onym_crypto::SystemEntropy, &mut nonce);
    let freshness = Freshness { nonce: Some(nonce), time_ms: Some(later()), seq: None };
    let mut wire = Vec::new();
    let interest =
        InterestBuilder { nonce: Some([nonce[0]; 4]), ..InterestBuilder::new(command.as_ref()) };
    by.signer().sign_interest(&interest, &[], freshness, &mut wire).unwrap();
    peer.send(&wire);
    loop {
        let (packet, _) = unwrap(&peer.frame());
        match Data::parse(&packet) {
            Ok(data) => return ControlResponse::parse(data.content).unwrap().code,
            Err(_) => peer.send(by.certificate.wire()),
        }
    }
}

/// Registers until the answer has this code: files are looked at each second.
fn register_until(peer: &mut App, by: &Holder, code: u64) {
    until("the node looked at its files", || register(peer, by, "/net/u") == code);
}

#[test]
fn anchors_and_revocations_that_change_under_a_node_count_without_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let root = Holder::of("/net");
    let user = Holder::issued("/net/u", &root);
    let sets = ["rib.localhop=true", "rib.localhop_trust=site"];
    let node = node(place.path(), &root, &sets);
    let mut peer = attach(&node, Scope::NonLocal);
    assert_eq!(register(&mut peer, &user, "/net/u"), 200);
    assert_eq!(register(&mut peer, &user, "/net/other"), 403);
    // The key is stolen.
    fs::write(place.path().join("revoked"), user.certificate.key_name().to_string()).unwrap();
    register_until(&mut peer, &user, 403);
    fs::write(place.path().join("revoked"), "# nobody any more\n").unwrap();
    register_until(&mut peer, &user, 200);
    // The anchor is changed.
    let other = Holder::of("/net");
    other.write(&place.path().join("anchors/root.cert"));
    register_until(&mut peer, &user, 403);
    let by_other = Holder::issued("/net/u", &other);
    register_until(&mut peer, &by_other, 200);
    // A wrong schema changes nothing.
    fs::write(place.path().join("site.lvs"), "#root: ").unwrap();
    assert_eq!(register(&mut peer, &by_other, "/net/u"), 200);
}
