//! The same with routers and forwarders of ndnd, where it is on PATH.

use crate::nodes::{INSECURE, Node, QUICK, node, port, prefixes, reaches, took};
use crate::support::{Place, Running, noise, wait_until};
use onym_crypto::Certificate;
use onym_wire::Data;
use std::fmt::Write as _;
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Whether ndnd is here; says so where it is not.
fn is_here() -> bool {
    let mut command = Command::new("ndnd");
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let is_here = command.status().is_ok();
    if !is_here {
        println!("skipped: ndnd is not on PATH");
    }
    is_here
}

/// A forwarder of ndnd and, mostly, a router over it.
struct Nd {
    place: Place,
    port: u16,
    fw: Running,
    dv: Option<Running>,
}

/// How routers of ndnd are told whom to believe.
const NO_KEYS: &str = "  keychain: insecure\n";
const ND_QUICK: &str =
    "  keychain: insecure\n  advertise_interval: 1000\n  router_dead_interval: 3000\n";

impl Nd {
    /// The forwarder alone.
    fn forwarder() -> Self {
        let (place, port) = (Place::new(), port());
        let text = format!(
            "core:\n  log_level: INFO\nfaces:\n  udp:\n    enabled_unicast: true\n    \
             enabled_multicast: false\n    port_unicast: {port}\n  tcp:\n    enabled: false\n  \
             unix:\n    enabled: true\n    socket_path: {}\n  websocket:\n    enabled: false\n",
            place.path("nfd.sock").display()
        );
        std::fs::write(place.path("fw.yml"), text).unwrap();
        let fw = Running::start(&mut command(&place, &["fw", "run", "fw.yml"]));
        wait_until("the socket of ndnd", || place.path("nfd.sock").exists());
        Self { place, port, fw, dv: None }
    }

    /// With the router `/net/NAME`, linked to `to`.
    fn router(name: &str, to: &[u16], keys: &str) -> Self {
        let mut nd = Self::forwarder();
        nd.dv = Some(dv(&nd.place, name, to, keys));
        nd
    }

    fn run(&self, args: &[&str]) -> String {
        String::from_utf8(command(&self.place, args).output().unwrap().stdout).unwrap()
    }

    fn routers(&self, count: usize) -> bool {
        self.run(&["dv", "status"]).contains(&format!("nRibEntries={count}"))
    }

    fn routes(&self) -> String {
        self.run(&["fw", "route-list"])
    }

    /// Its routes of routing to `prefix`.
    fn route(&self, prefix: &str) -> Option<String> {
        let start = format!("prefix={prefix} ");
        let routes = self.routes();
        routes.lines().find(|line| line.contains(&start)).map(str::to_owned)
    }

    fn put(&self, name: &str, file: &str) -> Running {
        let mut put = command(&self.place, &["put", "--expose", name]);
        put.stdin(File::open(file).unwrap());
        Running::start(&mut put)
    }
}

fn command(place: &Place, args: &[&str]) -> Command {
    let mut command = Command::new("ndnd");
    command.args(args).current_dir(place.dir()).env("NDN_CLIENT_TRANSPORT", place.node());
    command.env("HOME", place.dir());
    command
}

/// A router of ndnd over the forwarder at the socket of `place`.
fn dv(place: &Place, name: &str, to: &[u16], keys: &str) -> Running {
    let mut text = format!("dv:\n  network: /net\n  router: /net/{name}\n{keys}  neighbors:\n");
    for port in to {
        writeln!(text, "    - uri: \"udp4://127.0.0.1:{port}\"").unwrap();
    }
    std::fs::write(place.path("dv.yml"), text).unwrap();
    Running::start(&mut command(place, &["dv", "run", "dv.yml"]))
}

/// Writes a file of `len` octets into a place; its path and content.
fn file(place: &Place, name: &str, len: usize) -> (String, Vec<u8>) {
    let (path, content) = (place.path(name), noise(len, 7));
    std::fs::write(&path, &content).unwrap();
    (path.display().to_string(), content)
}

fn fetched(node: &Node, name: &str) -> Vec<u8> {
    let mut get = node.place.command(&["get", name, "-o", "-"]);
    get.output().unwrap().stdout
}

#[test]
fn links_configured_at_one_end_or_both_make_neighbours_within_two_intervals() {
    if !is_here() {
        return;
    }
    for (ours, theirs) in [(true, false), (false, true), (true, true)] {
        let nd = Nd::forwarder();
        let to_nd: &[u16] = if ours { &[nd.port] } else { &[] };
        let a = node("a", to_nd, INSECURE);
        let to_a: &[u16] = if theirs { &[a.port] } else { &[] };
        let _dv = dv(&nd.place, "nd", to_a, NO_KEYS);
        let up = took("each other", || reaches(&a, "/net/nd", "/net/nd") && nd.routers(2));
        println!("configured here: {ours}, at ndnd: {theirs}: neighbours after {up:?}");
        assert!(up < Duration::from_secs(12), "two intervals and what starting takes: {up:?}");
    }
}

#[test]
fn lines_of_both_kinds_route_and_carry_content_from_end_to_end() {
    if !is_here() {
        return;
    }
    // ndnd - onym - ndnd
    let b = node("b", &[], INSECURE);
    let ends = [Nd::router("x", &[b.port], NO_KEYS), Nd::router("y", &[b.port], NO_KEYS)];
    let up = took("three routers", || ends.iter().all(|nd| nd.routers(3)));
    println!("ndnd - onym - ndnd: all routers after {up:?}");
    let (path, content) = file(&b.place, "file", 100_000);
    let _puts = [ends[0].put("/app/x", &path), ends[1].put("/app/y", &path)];
    let across = || {
        let routed = |nd: &Nd, prefix: &str| nd.route(prefix).is_some_and(|r| r.contains("nlsr"));
        routed(&ends[0], "/app/y") && routed(&ends[1], "/app/x")
    };
    let announced = took("both prefixes", across);
    println!("ndnd - onym - ndnd: prefixes of the other end after {announced:?}");
    assert!(announced < Duration::from_secs(5), "{announced:?}");
    for (nd, prefix) in ends.iter().zip(["/app/y", "/app/x"]) {
        let got = command(&nd.place, &["cat", prefix]).output().unwrap().stdout;
        assert!(got == content, "{prefix} arrived as it was");
    }
    // onym - ndnd - onym
    let nd = Nd::router("nd", &[], NO_KEYS);
    let ends = [node("p", &[nd.port], INSECURE), node("q", &[nd.port], INSECURE)];
    let up = took("the other end", || {
        reaches(&ends[0], "/net/q", "/net/nd") && reaches(&ends[1], "/net/p", "/net/nd")
    });
    println!("onym - ndnd - onym: all routers after {up:?}");
    std::fs::write(ends[0].place.path("file"), &content).unwrap();
    let _put = ends[0].place.put(&["/app/p", "file"]);
    let announced = took("its prefix", || prefixes(&ends[1]).contains("/app/p from /net/p"));
    println!("onym - ndnd - onym: a prefix of the other end after {announced:?}");
    assert!(announced < Duration::from_secs(5), "{announced:?}");
    assert!(fetched(&ends[1], "/app/p") == content);
}

#[test]
fn announcements_costs_and_withdrawals_are_known_at_the_other_end_within_a_second() {
    if !is_here() {
        return;
    }
    let a = node("a", &[], INSECURE);
    let nd = Nd::router("nd", &[a.port], NO_KEYS);
    wait_until("each other", || reaches(&a, "/net/nd", "/net/nd") && nd.routers(2));
    let cost = |route: Option<String>| {
        let route = route?;
        let (_, rest) = route.split_once("cost=")?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    };
    // The face of a neighbour that is not there: what counts is the route.
    let via = format!("udp4://127.0.0.1:{}", port());
    let add = |cost: &str| {
        let args = ["route", "add", "/app/a", "--via", &via, "--origin", "client", "--cost", cost];
        assert_eq!(a.place.run(&args).code, 0);
    };
    let limit = Duration::from_millis(1_500);
    for asked in [3, 9] {
        add(&asked.to_string());
        let known = took("the cost at ndnd", || cost(nd.route("/app/a")) == Some(asked + 1));
        println!("cost {asked} is known at ndnd after {known:?}");
        assert!(known < limit, "a second, and what a look at ndnd takes: {known:?}");
    }
    let args = ["route", "remove", "/app/a", "--via", &via, "--origin", "client"];
    assert_eq!(a.place.run(&args).code, 0);
    let gone = took("the withdrawal at ndnd", || nd.route("/app/a").is_none());
    println!("withdrawn at ndnd after {gone:?}");
    assert!(gone < limit, "{gone:?}");
    let (path, _) = file(&nd.place, "file", 100);
    let put = nd.put("/app/nd", &path);
    let known = took("ndnd's prefix", || prefixes(&a).contains("/app/nd from /net/nd (0) by face"));
    println!("a prefix of ndnd is known here after {known:?}");
    assert!(known < limit, "{known:?}");
    drop(put);
    let gone = took("its withdrawal", || !prefixes(&a).contains("/app/nd from"));
    println!("and its end after {gone:?}");
    assert!(gone < limit, "{gone:?}");
}

/// Snapshots that fit into no single packet, read by ndnd and written by it.
#[test]
fn a_router_that_comes_late_learns_of_120_prefixes_in_long_names() {
    if !is_here() {
        return;
    }
    let a = node("a", &[], INSECURE);
    let nd = Nd::router("nd", &[a.port], NO_KEYS);
    wait_until("each other", || reaches(&a, "/net/nd", "/net/nd") && nd.routers(2));
    let long = "x".repeat(100);
    let via = format!("udp4://127.0.0.1:{}", port());
    let name = |side: &str, n: usize| format!("/app/{side}/{long}/{n:03}");
    for n in 0..120 {
        let prefix = name("a", n);
        let args = ["route", "add", &prefix, "--via", &via, "--origin", "client"];
        assert_eq!(a.place.run(&args).code, 0);
        let uri = format!("face={via}");
        let prefix = format!("prefix={}", name("nd", n));
        nd.run(&["fw", "route-add", &prefix, &uri, "origin=65", "cost=0"]);
    }
    let all = |text: &str, side: &str| (0..120).all(|n| text.contains(&name(side, n)));
    wait_until("all of ndnd's here", || all(&prefixes(&a), "nd"));
    wait_until("all of ours at ndnd", || all(&nd.routes(), "a"));
    let late = node("late", &[a.port], INSECURE);
    let known = took("both tables", || {
        let shown = prefixes(&late);
        all(&shown, "a") && all(&shown, "nd")
    });
    println!("a late router of ours knows all 240 after {known:?}");
    let nd_late = Nd::router("ndlate", &[a.port], NO_KEYS);
    let known = took("both tables at ndnd", || {
        let routes = nd_late.routes();
        all(&routes, "a") && all(&routes, "nd")
    });
    println!("a late router of ndnd knows all 240 after {known:?}");
    let shown = late.place.json(&["route", "prefixes"]);
    assert_eq!(shown["remote"].as_array().unwrap().len(), 240, "and nothing else");
}

#[test]
fn either_router_runs_over_either_forwarder() {
    if !is_here() {
        return;
    }
    // Our router over their forwarder; theirs over ours.
    let under = Nd::forwarder();
    let folder = under.place.path("own").display().to_string();
    let args = ["route", "run", "/net", "--router", "/net/own", "--insecure", "--folder", &folder];
    let _own = under.place.start(&args);
    let (over, at) = (Place::new(), port());
    let listen = format!("faces.udp.listen=127.0.0.1:{at}");
    let _daemon = over.daemon(&[&listen, "faces.udp.multicast=[]", "rib.tell_nlsr=true"]);
    let _dv = dv(&over, "theirs", &[under.port], NO_KEYS);
    let up = took("both", || {
        // The status of ndnd's router is Data without a signature, which our forwarder drops.
        under.place.run(&["route", "table"]).out.contains("/net/theirs cost 1")
            && over.run(&["route", "list"]).out.contains("/net/32=DV/32=PFS/net/own")
    });
    println!("onym's router over ndnd and ndnd's over onym: neighbours after {up:?}");
    let (path, content) = file(&under.place, "file", 50_000);
    // The forwarder of ndnd tells routes of origin client to whoever serves /localhost/nlsr.
    let _put = under.put("/app/under", &path);
    let known = || over.run(&["route", "list", "--prefix", "/app/under"]).out.contains("nlsr");
    let announced = took("the prefix over there", known);
    println!("ndnd's forwarder tells our router, which tells theirs: {announced:?}");
    let got = over.command(&["get", "/app/under", "-o", "-"]).output().unwrap().stdout;
    assert!(got == content);
    std::fs::write(over.path("file"), &content).unwrap();
    let _put = over.put(&["/app/over", "file", "--announce"]);
    let known =
        || under.place.run(&["route", "prefixes"]).out.contains("/app/over from /net/theirs");
    let announced = took("the prefix over here", known);
    println!("our forwarder tells ndnd's router, which tells ours: {announced:?}");
    assert!(command(&under.place, &["cat", "/app/over"]).output().unwrap().stdout == content);
}

#[test]
fn a_router_that_is_killed_is_missed_in_little_more_than_the_dead_interval() {
    if !is_here() {
        return;
    }
    let mut a = node("a", &[], QUICK);
    let mut nd = Nd::router("nd", &[a.port], ND_QUICK);
    wait_until("each other", || reaches(&a, "/net/nd", "/net/nd") && nd.routers(2));
    nd.dv.as_mut().unwrap().kill();
    let missed = took("ndnd's end", || !reaches(&a, "/net/nd", "/net/nd"));
    println!("dead interval 3 s: ndnd's router is missed here after {missed:?}");
    assert!(missed < Duration::from_millis(3_600 + 500), "{missed:?}");
    nd.dv = Some(dv(&nd.place, "nd", &[a.port], ND_QUICK));
    wait_until("each other again", || reaches(&a, "/net/nd", "/net/nd") && nd.routers(2));
    a.daemon.kill();
    let missed = took("our end at ndnd", || nd.routers(1));
    println!("dead interval 3 s: ours is missed by ndnd after {missed:?}");
    assert!(missed < Duration::from_secs(2 * 3 + 2), "{missed:?}");
    assert!(nd.fw.runs());
}

// --- keys

/// A network whose anchor, keys and certificates ndnd made.
struct Authority(Place);

impl Authority {
    fn new(network: &str) -> Self {
        let authority = Self(Place::new());
        authority.key("root", network);
        authority.sign("root", "root", "root", &[]);
        authority
    }

    fn path(&self, file: &str) -> String {
        self.0.path(file).display().to_string()
    }

    fn key(&self, file: &str, identity: &str) {
        let made = command(&self.0, &["sec", "keygen", identity, "ed25519"]).output().unwrap();
        std::fs::write(self.path(&format!("{file}.key")), made.stdout).unwrap();
    }

    /// A certificate of `of.key` by `by.key`.
    fn sign(&self, by: &str, of: &str, to: &str, more: &[&str]) {
        let by = format!("{by}.key");
        let mut args = vec!["sec", "sign-cert", by.as_str()];
        args.extend(more);
        let mut sign = command(&self.0, &args);
        sign.stdin(File::open(self.path(&format!("{of}.key"))).unwrap());
        std::fs::write(self.path(&format!("{to}.cert")), sign.output().unwrap().stdout).unwrap();
    }

    fn decoded(&self, file: &str) -> Vec<u8> {
        let mut decode = command(&self.0, &["sec", "pem-decode"]);
        decode.stdin(File::open(self.path(file)).unwrap());
        decode.output().unwrap().stdout
    }

    fn anchor(&self) -> Certificate {
        Certificate::parse(&self.decoded("root.cert")).unwrap()
    }

    /// The folder of a router of ours with the key and certificate `file`.
    fn folder(&self, file: &str) -> String {
        let folder = self.0.path(&format!("folder-{file}"));
        std::fs::create_dir(&folder).unwrap();
        let key = self.decoded(&format!("{file}.key"));
        std::fs::write(folder.join("router.key"), Data::parse(&key).unwrap().content).unwrap();
        let certificate = Certificate::parse(&self.decoded(&format!("{file}.cert"))).unwrap();
        std::fs::write(folder.join("router.cert"), certificate.to_text()).unwrap();
        std::fs::write(folder.join("network.cert"), self.anchor().to_text()).unwrap();
        format!("routing.folder={}", folder.display())
    }

    /// What a router of ndnd with the key and certificate `file` is told.
    fn keychain(&self, file: &str) -> String {
        let folder = self.0.path(&format!("chain-{file}"));
        std::fs::create_dir(&folder).unwrap();
        for name in ["root.cert", &format!("{file}.key"), &format!("{file}.cert")] {
            std::fs::copy(self.path(name), folder.join(name)).unwrap();
        }
        let anchor = self.anchor().name().to_string();
        format!("  keychain: dir://{}\n  trust_anchors: [\"{anchor}\"]\n", folder.display())
    }
}

#[test]
fn chains_of_ed25519_hold_over_two_hops_and_what_is_not_of_them_is_refused_with_a_reason() {
    if !is_here() {
        return;
    }
    let net = Authority::new("/net");
    let day = ["--start", "20200101000000", "--end", "20200102000000"];
    for (file, identity, validity) in [
        ("x", "/net/x/32=DV", &[][..]),
        ("b", "/net/b/32=DV", &[]),
        ("y", "/net/y/32=DV", &[]),
        ("misplaced", "/net/m", &[]),
        ("expired", "/net/e/32=DV", &day),
    ] {
        net.key(file, identity);
        net.sign("root", file, file, validity);
    }
    let b = node("b", &[], &[&net.folder("b")]);
    let x = Nd::router("x", &[b.port], &net.keychain("x"));
    let y = Nd::router("y", &[b.port], &net.keychain("y"));
    // x and y have no certificate but their own: those of others come over the network.
    let up = took("three routers", || x.routers(3) && y.routers(3));
    println!("Ed25519, ndnd - onym - ndnd: all routers after {up:?}");
    let (path, content) = file(&b.place, "file", 20_000);
    let _put = x.put("/app/x", &path);
    let routed = || y.route("/app/x").is_some_and(|route| route.contains("nlsr"));
    let announced = took("a prefix over two hops", routed);
    println!("and a prefix of the other end after {announced:?}");
    assert!(command(&y.place, &["cat", "/app/x"]).output().unwrap().stdout == content);
    // Strangers: no key of this network, a key in the wrong place, one that ended.
    let refused = |who: &str, why: &str| {
        let log = || b.daemon.err.text();
        wait_until(who, || log().lines().any(|line| line.contains(who) && line.contains(why)));
    };
    let _none = Nd::router("n", &[b.port], NO_KEYS);
    refused("/net/n", "names no key, so nobody vouches for the packet");
    let other = Authority::new("/net");
    other.key("o", "/net/o/32=DV");
    other.sign("root", "o", "o", &[]);
    let stranger = node("o", &[b.port], &[&other.folder("o")]);
    refused("/net/o", "could not be fetched");
    let shown = b.place.run(&["route", "table"]).out;
    assert!(!shown.contains("/net/n ") && !shown.contains("/net/o "), "{shown}");
    drop(stranger);
    let _expired = node("e", &[b.port], &[&net.folder("expired")]);
    refused("/net/e", "valid");
    // A key of the router itself, not of its routing: told before anything is said.
    let place = Place::new();
    let folder = net.folder("misplaced");
    let folder = folder.strip_prefix("routing.folder=").unwrap();
    let _daemon = place.daemon(&[]);
    let run = place.run(&["route", "run", "/net", "--router", "/net/m", "--folder", folder]);
    assert!(run.code != 0 && run.err.contains("expected /net/m/32=DV"), "{}", run.err);
}
