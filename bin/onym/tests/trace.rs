//! `onym trace` and `onym explain --across` over several nodes.

#![allow(clippy::unwrap_used)]

mod support;

use onym_crypto::signer::write_digest_data;
use onym_wire::lp::{LpHeader, LpPacket};
use onym_wire::{DataBuilder, Interest, Name};
use serde_json::Value;
use std::net::UdpSocket;
use std::time::Duration;
use support::{Place, Running};

/// A node of a test network.
struct Node {
    place: Place,
    port: u16,
    daemon: Option<Running>,
}

impl Node {
    fn new() -> Self {
        let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self { place: Place::new(), port, daemon: None }
    }

    fn uri(&self) -> String {
        format!("udp4://127.0.0.1:{}", self.port)
    }

    /// Starts it with a name and routes of `/app`; whoever comes from this machine may trace.
    fn start(&mut self, name: &str, via: &[&Self], sets: &[&str]) {
        let routes = via.iter().map(|to| format!("{{prefix=\"/app\", via=\"{}\"}}", to.uri()));
        let routes = format!("route=[{}]", routes.collect::<Vec<_>>().join(","));
        let (listen, name) =
            (format!("faces.udp.listen=127.0.0.1:{}", self.port), format!("trace.name={name}"));
        let all =
            ["trace.from=local,127.0.0.0/8", "faces.udp.multicast=[]", &listen, &name, &routes];
        self.daemon = Some(self.place.daemon(&[&all[..], sets].concat()));
    }

    /// Exit code and lines of a trace.
    fn trace(&self, name: &str) -> (i32, Vec<Value>) {
        let ended = self.place.run(&["trace", name, "--timeout", "500", "--json"]);
        let lines = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        (ended.code, lines)
    }
}

/// The nodes that answered, with their hops.
fn nodes(lines: &[Value]) -> Vec<(u64, String)> {
    let hops = lines.iter().filter(|line| line["event"] == "hop");
    hops.map(|l| (l["hop"].as_u64().unwrap(), l["node"].as_str().unwrap().to_owned())).collect()
}

fn names(expected: &[(u64, &str)]) -> Vec<(u64, String)> {
    expected.iter().map(|(hop, node)| (*hop, (*node).to_owned())).collect()
}

fn ends(lines: &[Value]) -> Vec<&Value> {
    lines.last().unwrap()["ends"].as_array().unwrap().iter().collect()
}

/// Traces as the patch of NFD that speaks RFC 9507 does: it takes `/TARGET/traceroute/NONCE` alone for a
/// request. Its first version tells what it decides only where hops are left. It ends with what it
/// decides, or when nobody asks for a while.
fn trace_as_nfd(socket: &UdpSocket, sender: &str, is_first_version: bool) {
    let (sender, mut frame) = (sender.parse::<Name>().unwrap(), [0; 9000]);
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    while let Ok((len, from)) = socket.recv_from(&mut frame) {
        let packet = LpPacket::parse(&frame[..len]).unwrap();
        let interest = packet.fragment.and_then(|packet| Interest::parse(packet).ok());
        let Some(interest) = interest.filter(|asked| asked.name.len() > 2) else { continue };
        let form = interest.name.get(interest.name.len() - 2).unwrap();
        let Some(hops) = interest.hop_limit.filter(|_| form.to_string() == "traceroute") else {
            continue;
        };
        let is_told = hops > 1 || !is_first_version;
        let code = if is_told { 2 } else { 4 };
        let mut content = Vec::new();
        sender.as_ref().write_tlv(&mut content);
        content.extend([128, 1, code]);
        let (mut data, mut wire) = (Vec::new(), Vec::new());
        let reply = DataBuilder { freshness_ms: 10, ..DataBuilder::new(interest.name, &content) };
        write_digest_data(&reply, &mut data);
        let pit_token = packet.pit_token.unwrap_or_default();
        LpHeader { pit_token, ..LpHeader::default() }.write(&mut wire, data.len());
        socket.send_to(&[wire, data].concat(), from).unwrap();
        if is_told {
            return;
        }
    }
}

/// Law: a forwarder of others that speaks RFC 9507 is shown by that, whichever of the two forms of
/// requests it knows, and its second answer is the end of the way and no loop.
#[test]
fn the_forwarder_of_others_that_speaks_rfc_9507_is_shown_by_it() {
    for (name, is_first_version) in
        [("/net/nfd", false), ("/net/nfd", true), ("/localhost/nfd", true)]
    {
        let (mut a, mut b, other) = (Node::new(), Node::new(), Node::new());
        let socket = UdpSocket::bind(("127.0.0.1", other.port)).unwrap();
        b.start("/net/b", &[&other], &[]);
        a.start("/net/a", &[&b], &[]);
        let nfd = std::thread::spawn(move || trace_as_nfd(&socket, name, is_first_version));
        let (code, lines) = a.trace("/app/file");
        nfd.join().unwrap();
        let way = [(1, "/net/a"), (2, "/net/b"), (3, name), (4, name)];
        let way = if is_first_version { &way[..] } else { &way[..3] };
        assert_eq!((code, nodes(&lines)), (0, names(way)), "{lines:?}");
        let end = ends(&lines)[0];
        assert_eq!((&end["end"], &end["code"]), (&"reached".into(), &2.into()), "{end}");
    }
}

/// Law: each node of the way says what it decides, whoever ends it says why, and a node in between
/// that answers nobody is counted.
#[test]
fn a_way_is_shown_hop_by_hop_to_its_end() {
    let (mut a, mut b, mut c) = (Node::new(), Node::new(), Node::new());
    c.start("/net/c", &[], &[]);
    b.start("/net/b", &[&c], &[]);
    a.start("/net/a", &[&b], &[]);

    // Nobody has it.
    let (code, lines) = a.trace("/app/file");
    assert_eq!(code, 5);
    let way = [(1, "/net/a"), (2, "/net/b"), (3, "/net/c")];
    assert_eq!(nodes(&lines), names(&way), "{lines:?}");
    let [first, second, third] = [&lines[0], &lines[1], &lines[2]];
    assert_eq!((&first["verdict"], &first["route"]), (&"forwarded".into(), &"/app".into()));
    assert_eq!(first["next"][0]["uri"], b.uri(), "{first}");
    assert!(second["uri"].as_str().unwrap().starts_with("udp4://127.0.0.1:"), "{second}");
    assert!(first["strategy"].as_str().unwrap().contains("best-route"), "{first}");
    assert!(first["rtt_ms"].as_f64().unwrap() > 0.0);
    assert_eq!((&third["verdict"], &third["decides"]), (&"no_route".into(), &"fib".into()));
    let across = a.place.run(&["explain", "--across", "/app/file"]);
    assert!(across.out.starts_with("/net/c ends it: it has no route"), "{}", across.out);
    assert!(across.out.contains("onym route add"), "what to do: {}", across.out);

    // A producer at the last node, then what it gave in the content store of the one before.
    let _put = c.place.put(&["/app/file/v=1"]);
    let (code, lines) = a.trace("/app/file");
    assert_eq!((code, nodes(&lines)), (0, names(&way)));
    let end = ends(&lines)[0];
    assert_eq!((&end["end"], &end["code"]), (&"reached".into(), &2.into()), "{end}");
    let shown = a.place.run(&["trace", "/app/file"]);
    assert!(shown.out.contains("/net/c hands it to an application"), "{}", shown.out);
    let kept = "/app/file/v=1/seg=0";
    assert_eq!(b.place.run(&["peek", kept]).code, 0);
    let (code, lines) = a.trace(kept);
    assert_eq!((code, nodes(&lines)), (0, names(&way[..2])), "the node before has it: {lines:?}");
    assert_eq!(ends(&lines)[0]["code"], 3);

    // The node itself, by its name.
    let pinged = a.place.run(&["ping", "--echo", "/net/a", "-c", "1", "--json"]);
    let pinged: Value = serde_json::from_str(pinged.out.lines().next().unwrap()).unwrap();
    assert_eq!((&pinged["sender"], &pinged["code"]), (&"/net/a".into(), &1.into()), "{pinged}");
}

#[test]
fn hops_that_do_not_answer_are_counted_and_told() {
    let (mut a, mut b, mut c) = (Node::new(), Node::new(), Node::new());
    c.start("/net/c", &[], &[]);
    b.start("/net/b", &[&c], &["trace.from=[]"]);
    a.start("/net/a", &[&b], &[]);
    let _server = {
        let mut server = c.place.start(&["ping-server", "/app"]);
        server.wait_for("ready");
        server
    };
    let (code, lines) = a.trace("/app/ping");
    assert_eq!(code, 0);
    assert_eq!(nodes(&lines), names(&[(1, "/net/a"), (3, "/net/c")]), "{lines:?}");
    assert_eq!((&lines[1]["event"], &lines[1]["hop"]), (&"silent".into(), &2.into()));

    // Nobody on the way but the first lets it trace.
    drop(c.daemon.take());
    let mut silent = Node::new();
    silent.port = c.port;
    silent.start("/net/d", &[], &["trace.from=local"]);
    let _server = {
        let mut server = silent.place.start(&["ping-server", "/app", "--echo"]);
        server.wait_for("ready");
        server
    };
    let ended = a.place.run(&["trace", "/app", "--timeout", "300"]);
    assert_eq!(ended.code, 5, "{}", ended.out);
    assert!(ended.out.contains("/net/a sends it on by face"), "{}", ended.out);
    assert!(ended.out.contains("with a hop limit of 3"), "{}", ended.out);

    // Its own node may not be asked either.
    let refused = b.place.run(&["trace", "/app", "--timeout", "100"]);
    assert!(refused.out.contains("trace.from lets no local application"), "{}", refused.out);
}

/// Law: where a node asks several others, each way is looked at, in whatever order answers come.
#[test]
fn several_ways_are_shown_as_a_tree() {
    let mut all: Vec<Node> = (0..5).map(|_| Node::new()).collect();
    let [a, b, c, d, e] = all.as_mut_slice() else { unreachable!() };
    let multicast = "strategy.\"/app\"=multicast";
    e.start("/net/e", &[], &[]);
    d.start("/net/d", &[], &[]);
    let _put = d.place.put(&["/app/file"]);
    c.start("/net/c", &[d, e], &[multicast]);
    b.start("/net/b", &[d], &[]);
    a.start("/net/a", &[b, c], &[multicast]);
    let (code, lines) = a.trace("/app/file");
    assert_eq!(code, 0, "{lines:?}");
    let mut seen = nodes(&lines);
    seen.sort();
    let expected =
        [(1, "/net/a"), (2, "/net/b"), (2, "/net/c"), (3, "/net/d"), (3, "/net/d"), (3, "/net/e")];
    assert_eq!(seen, names(&expected), "{lines:?}");
    let found = ends(&lines);
    let count = |word: &str| found.iter().filter(|end| end["end"] == word).count();
    assert_eq!((count("reached"), count("joined"), count("dropped")), (1, 1, 1), "{found:?}");
    let branches = lines.iter().filter(|line| line["event"] == "branch").count();
    assert_eq!(branches, 4, "two ways from each of two nodes");
}

#[test]
fn a_loop_is_found_and_named() {
    let (mut a, mut b) = (Node::new(), Node::new());
    a.start("/net/a", &[&b], &[]);
    // Another route back: best-route does not return an Interest to the face that it came by.
    let c = {
        let mut c = Node::new();
        c.start("/net/c", &[&a], &[]);
        c
    };
    b.start("/net/b", &[&c], &[]);
    let across = a.place.json(&["explain", "--across", "/app/x"]);
    assert_eq!(across["ends"][0]["end"]["end"], "loop", "{across}");
    let told = across["ends"][0]["sentence"].as_str().unwrap();
    assert!(told.starts_with("/net/c sends it to a forwarder that it passed"), "{told}");
}
