//! Faces over real sockets: made, limited, broken, connected again.

#![allow(clippy::unwrap_used)]

mod support;

use onym_face::Listener as _;
use onym_node::config::Config;
use onym_pubsub::DomainKey;
use onym_wire::mgmt::{
    Block as _, ControlParameters, FaceEventKind, FaceEventNotification, Persistency,
};
use onym_wire::push::{Control, FrameBuilder, Kind, Label, Route, RouteBuf, Strategy, reserved};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::time::Duration;
use support::{App, socket_dir, start, tcp_app, udp_app, unix_app, until, with};

fn uri(uri: &str) -> ControlParameters {
    ControlParameters { uri: Some(uri.into()), ..ControlParameters::default() }
}

fn node_with_sockets(sets: &[&str]) -> (onym_node::NodeHandle, tempfile::TempDir) {
    let (dir, unix) = socket_dir();
    let mut all = vec![unix.as_str(), "faces.udp.listen=127.0.0.1:0"];
    all.extend(["faces.tcp.listen=127.0.0.1:0", "faces.websocket.listen=127.0.0.1:0"]);
    all.extend(sets);
    (start(with(2, &all)), dir)
}

#[test]
fn every_kind_of_socket_carries_an_exchange() {
    let (node, _dir) = node_with_sockets(&[]);
    let web = onym_face::websocket::connect(node.bound().websocket[0], "/").unwrap();
    let mut peers = [unix_app(&node), udp_app(&node), tcp_app(&node), App::new(web)];
    let mut producer = unix_app(&node);
    let p = ControlParameters { name: Some("/a".parse().unwrap()), ..ControlParameters::default() };
    assert_eq!(producer.command("/localhost/nfd", "rib/register", &p).code, 200);
    for (n, peer) in peers.iter_mut().enumerate() {
        let text = format!("/a/{n}");
        peer.interest(&text);
        assert_eq!(producer.take_interest().0.to_string(), text);
        producer.data(&text, b"here");
        assert_eq!(peer.take_data().1, b"here");
    }
    let schemes: Vec<String> = node.faces().unwrap().into_iter().map(|f| f.remote_uri).collect();
    for scheme in ["fd://", "udp4://", "tcp4://", "wsclient://"] {
        assert!(schemes.iter().any(|s| s.starts_with(scheme)), "{scheme} in {schemes:?}");
    }
}

#[test]
fn a_malformed_packet_is_dropped_and_counted_on_local_streams_and_datagram_faces() {
    let (node, _dir) = node_with_sockets(&[]);
    // An Interest without a name: well framed, but no packet.
    let wrong = [5, 2, 0x0a, 0];
    let (mut unix, mut tcp, mut udp) = (unix_app(&node), tcp_app(&node), udp_app(&node));
    for app in [&mut unix, &mut tcp, &mut udp] {
        app.send(&wrong);
    }
    for app in [&mut unix, &mut tcp, &mut udp] {
        app.interest("/nowhere");
        assert_eq!(app.take_nack().to_string(), "/nowhere");
    }
    assert_eq!(node.faces().unwrap().len(), 3);
    let snapshot = node.snapshot().unwrap();
    let kind = onym_link::PacketKind::Interest;
    assert_eq!(snapshot.verdict(kind, onym_forward::Verdict::Malformed), 3);
}

#[test]
fn an_application_whose_data_has_no_signature_keeps_its_face_and_its_routes() {
    let (node, _dir) = node_with_sockets(&[]);
    let mut consumer = unix_app(&node);
    let producers = [(b'u', unix_app(&node)), (b't', tcp_app(&node))];
    for (letter, mut producer) in producers {
        let prefix = format!("/{}", char::from(letter));
        let name = Some(prefix.parse().unwrap());
        let p = ControlParameters { name, ..ControlParameters::default() };
        assert_eq!(producer.command("/localhost/nfd", "rib/register", &p).code, 200);
        let (first, second) = (format!("{prefix}/1"), format!("{prefix}/2"));
        consumer.interest(&first);
        assert_eq!(producer.take_interest().0.to_string(), first);
        // Name, MetaInfo, Content, and nothing behind them.
        producer.send(&[6, 13, 7, 6, 8, 1, letter, 8, 1, b'1', 20, 0, 21, 1, b'A']);
        consumer.interest(&second);
        assert_eq!(producer.take_interest().0.to_string(), second, "its route is there");
        producer.data(&first, b"signed");
        assert_eq!(consumer.take_data(), (first.parse().unwrap(), b"signed".to_vec()));
        producer.data(&second, b"signed");
        assert_eq!(consumer.take_data().0.to_string(), second);
    }
    let kind = onym_link::PacketKind::Data;
    assert_eq!(node.snapshot().unwrap().verdict(kind, onym_forward::Verdict::Malformed), 2);
}

#[test]
fn a_malformed_packet_of_another_machine_closes_its_stream() {
    let (node, _dir) = node_with_sockets(&["faces.tcp.local="]);
    let mut tcp = tcp_app(&node);
    tcp.send(&[5, 2, 0x0a, 0]);
    assert!(tcp.is_closed_by_node());
}

#[test]
fn octets_that_are_no_packet_close_a_stream() {
    let (node, _dir) = node_with_sockets(&[]);
    let mut socket = std::net::TcpStream::connect(node.bound().tcp[0]).unwrap();
    socket.write_all(&[5, 254, 255, 255, 255, 255, 1, 2, 3]).unwrap();
    let mut rest = Vec::new();
    assert!(matches!(socket.read_to_end(&mut rest), Ok(0) | Err(_)));
    until("the face is gone", || node.faces().unwrap().is_empty());
}

#[test]
fn an_idle_on_demand_datagram_face_is_closed_and_a_stream_is_not() {
    let (node, _dir) = node_with_sockets(&["faces.idle_timeout_s=1"]);
    let (mut udp, mut tcp) = (udp_app(&node), tcp_app(&node));
    for app in [&mut udp, &mut tcp] {
        app.interest("/nowhere");
        app.take_nack();
    }
    until("the datagram face is closed", || {
        node.faces().unwrap().iter().all(|f| f.remote_uri.starts_with("tcp"))
    });
    tcp.interest("/nowhere/else");
    tcp.take_nack();
    udp.interest("/nowhere/again");
    udp.take_nack();
    assert_eq!(node.faces().unwrap().len(), 2);
}

#[test]
fn a_face_ends_by_a_refusal_only_when_its_peer_is_silent() {
    let (node, _dir) = node_with_sockets(&[]);
    let (mut watcher, mut producer) = (unix_app(&node), unix_app(&node));
    let p = ControlParameters { name: Some("/a".parse().unwrap()), ..ControlParameters::default() };
    assert_eq!(producer.command("/localhost/nfd", "rib/register", &p).code, 200);
    let mut seq = 0;
    // A peer asks and is away when the answer comes: its host refuses the answer.
    let mut refused = |uri: &str| {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(node.bound().udp[0]).unwrap();
        socket.send(&support::interest_wire(uri, 7)).unwrap();
        assert_eq!(producer.take_interest().0.to_string(), uri);
        let local = socket.local_addr().unwrap();
        drop(socket);
        producer.data(uri, b"here");
        loop {
            watcher.interest(&format!("/localhost/nfd/faces/events/seq={seq}"));
            seq += 1;
            let event = FaceEventNotification::parse(&watcher.take_data().1).unwrap();
            if event.kind == FaceEventKind::Refused {
                return (local, event.face_id);
            }
        }
    };
    let (local, there) = refused("/a/there");
    let back = UdpSocket::bind(local).unwrap();
    back.connect(node.bound().udp[0]).unwrap();
    back.send(&support::interest_wire("/nowhere", 7)).unwrap();
    let (_, gone) = refused("/a/gone");
    let faces = || node.faces().unwrap().into_iter().map(|f| u64::from(f.id.0));
    assert!(faces().any(|id| id == gone), "not at once");
    until("the face of the silent one is closed", || faces().all(|id| id != gone));
    assert!(faces().any(|id| id == there), "the other one was heard");
}

#[test]
fn strangers_leave_room_for_applications_and_are_refused_beyond_their_part() {
    let (node, _dir) = node_with_sockets(&["faces.count_max=8"]);
    let mut strangers: Vec<App> = (0..12).map(|_| udp_app(&node)).collect();
    for (n, stranger) in strangers.iter_mut().enumerate() {
        stranger.interest(&format!("/nowhere/{n}"));
    }
    until("seven are there", || node.faces().unwrap().len() == 7);
    let mut app = unix_app(&node);
    app.interest("/nowhere");
    app.take_nack();
    assert_eq!(node.faces().unwrap().len(), 8);
    // All places are taken: a further application is told by the end of its connection.
    let mut late = unix_app(&node);
    assert!(late.is_closed_by_node());
    drop(app);
    until("a place is free", || node.faces().unwrap().len() == 7);
    let mut next = unix_app(&node);
    next.interest("/nowhere");
    next.take_nack();
    until("what was refused is counted", || node.snapshot().unwrap().faces_refused >= 5);
}

#[test]
fn a_permanent_stream_face_connects_again_when_its_peer_is_back() {
    let (node, _dir) =
        node_with_sockets(&["faces.reconnect_min_ms=20", "faces.reconnect_max_ms=80"]);
    let peer = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = peer.local_addr().unwrap();
    let mut app = unix_app(&node);
    let p = ControlParameters {
        face_persistency: Some(Persistency::Permanent),
        ..uri(&format!("tcp4://{address}"))
    };
    let made = app.command("/localhost/nfd", "faces/create", &p);
    assert_eq!(made.code, 200, "{made:?}");
    let id = made.body.unwrap().face_id;
    let face = || node.faces().unwrap().into_iter().find(|f| Some(u64::from(f.id.0)) == id);
    let (first, _) = peer.accept().unwrap();
    drop((first, peer));
    until("the face is down", || face().is_some_and(|f| !f.up));
    let peer = TcpListener::bind(address).unwrap();
    let (_second, _) = peer.accept().unwrap();
    until("the face is up again", || face().is_some_and(|f| f.up));
}

#[test]
fn a_persistent_face_ends_with_its_connection() {
    let (node, _dir) = node_with_sockets(&[]);
    let peer = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut app = unix_app(&node);
    let p = uri(&format!("tcp4://{}", peer.local_addr().unwrap()));
    assert_eq!(app.command("/localhost/nfd", "faces/create", &p).code, 200);
    drop(peer.accept().unwrap());
    until("only the application's face is left", || node.faces().unwrap().len() == 1);
}

#[test]
fn a_connection_that_nobody_answers_is_refused_with_504() {
    let (node, _dir) = node_with_sockets(&[]);
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut app = unix_app(&node);
    let answer = app.command("/localhost/nfd", "faces/create", &uri(&format!("tcp4://{free}")));
    assert_eq!(answer.code, 504, "{answer:?}");
}

#[test]
fn a_udp_face_that_was_asked_for_takes_the_packets_of_its_peer() {
    let (node, _dir) = node_with_sockets(&["faces.udp.listen=0.0.0.0:0"]);
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut app = unix_app(&node);
    let p = uri(&format!("udp4://{}", peer.local_addr().unwrap()));
    let made = app.command("/localhost/nfd", "faces/create", &p);
    assert_eq!(made.code, 200, "{made:?}");
    let port = node.bound().udp[0].port();
    let mut wire = Vec::new();
    let name: onym_wire::Name = "/nowhere".parse().unwrap();
    onym_wire::interest::InterestBuilder {
        nonce: Some([1; 4]),
        ..onym_wire::interest::InterestBuilder::new(name.as_ref())
    }
    .write(&mut wire);
    peer.send_to(&wire, ("127.0.0.1", port)).unwrap();
    let mut answer = [0; 9000];
    let (_, from) = peer.recv_from(&mut answer).unwrap();
    assert_eq!(from.port(), port);
    assert_eq!(node.faces().unwrap().len(), 2, "no second face for the same peer");
    let again = app.command("/localhost/nfd", "faces/create", &p);
    assert_eq!(again.code, 409);
}

#[test]
fn the_configured_mtu_is_that_of_new_udp_faces_and_can_be_raised_later() {
    let (node, _dir) = node_with_sockets(&["faces.udp.mtu=1452"]);
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut app = unix_app(&node);
    let p = uri(&format!("udp4://{}", peer.local_addr().unwrap()));
    let made = app.command("/localhost/nfd", "faces/create", &p);
    let body = made.body.unwrap();
    assert_eq!(body.mtu, Some(1452));
    let p = ControlParameters {
        face_id: body.face_id,
        mtu: Some(8800),
        ..ControlParameters::default()
    };
    let changed = app.command("/localhost/nfd", "faces/update", &p);
    assert_eq!(changed.code, 200, "{changed:?}");
    let faces = node.faces().unwrap();
    assert!(faces.iter().any(|f| f.mtu == Some(8800)), "{faces:?}");
}

#[test]
fn two_nodes_of_the_configuration_reach_each_other_over_udp_and_tcp() {
    for scheme in ["udp4", "tcp4"] {
        let (far, _far_dir) = node_with_sockets(&[]);
        let address = if scheme == "udp4" { far.bound().udp[0] } else { far.bound().tcp[0] };
        let text = format!(
            "shards = 1\n[faces]\nunix.path = \"\"\nudp.listen = [\"127.0.0.1:0\"]\n\
             tcp.listen = []\nwebsocket.listen = []\n\
             [[face]]\nuri = \"{scheme}://{address}\"\nreliability = {}\n\
             [[route]]\nprefix = \"/far\"\nvia = \"{scheme}://{address}\"\n",
            scheme == "udp4"
        );
        let near = start(Config::parse(&text, "test").unwrap());
        let mut producer = unix_app(&far);
        let name = Some("/far".parse().unwrap());
        let p = ControlParameters { name, ..ControlParameters::default() };
        assert_eq!(producer.command("/localhost/nfd", "rib/register", &p).code, 200);
        let (_, io) = near.attach(onym_wire::mgmt::Scope::Local).unwrap();
        let mut consumer = App::new(io);
        for n in 0..20 {
            let text = format!("/far/{n}");
            consumer.interest(&text);
            assert_eq!(producer.take_interest().0.to_string(), text);
            producer.data(&text, &[7; 5000]);
            assert_eq!(consumer.take_data().1.len(), 5000);
        }
    }
}

#[test]
fn a_port_that_is_taken_stops_the_start_with_key_and_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let setting = format!("faces.tcp.listen={}", taken.local_addr().unwrap());
    let error = onym_node::Node::start(with(1, &[&setting])).unwrap_err().to_string();
    assert!(error.contains("faces.tcp.listen") && error.contains("another address"), "{error}");
    // A listener of another forwarder on the Unix socket is left alone.
    let (_dir, unix) = socket_dir();
    let path = unix.split_once('=').unwrap().1.to_owned();
    let other = onym_face::UnixListener::bind(std::path::Path::new(&path)).unwrap();
    let error = onym_node::Node::start(with(1, &[&unix])).unwrap_err().to_string();
    assert!(error.contains("faces.unix.path") && error.contains("left alone"), "{error}");
    assert!(other.local_uri().to_string().contains(&path));
}

#[test]
fn stopping_sends_what_is_queued_and_removes_the_socket() {
    let (node, _dir) = node_with_sockets(&[]);
    let path = node.bound().unix.clone().unwrap();
    let mut consumer = unix_app(&node);
    let (id, io) = node.attach(onym_wire::mgmt::Scope::Local).unwrap();
    let mut producer = App::new(io);
    node.route("/a", id, 0).unwrap();
    // More than the socket's buffer holds, so that frames wait in the queue of the face.
    for n in 0..100 {
        consumer.interest(&format!("/a/{n}"));
    }
    for n in 0..100 {
        producer.take_interest();
        producer.data(&format!("/a/{n}"), &[1; 8000]);
    }
    until("all Data is in the node", || {
        producer.flush();
        let s = node.snapshot().unwrap();
        s.verdict(onym_link::PacketKind::Data, onym_forward::Verdict::Satisfied) == 100
    });
    let stopping = std::thread::spawn(move || node.stop());
    for _ in 0..100 {
        assert_eq!(consumer.take_data().1.len(), 8000);
    }
    assert!(stopping.join().unwrap(), "everything left in time");
    assert!(!path.exists());
}

/// A UDP peer at an address of its own on this machine.
fn udp_from(node: &onym_node::NodeHandle, ip: [u8; 4]) -> App {
    let options = onym_face::udp::UdpOptions::default();
    let local = std::net::SocketAddr::from((ip, 0));
    let node = node.bound().udp[0];
    App::new(onym_face::udp::UdpFace::connect(Some(local), node, &options).unwrap())
}

/// Asks until there is an answer; how long that took.
fn answered(peer: &mut App, producer: &mut App, uri: &str) -> Duration {
    let start = std::time::Instant::now();
    while start.elapsed() < support::DEADLINE {
        peer.interest(uri);
        if let Ok(Some(frame)) = producer.try_frame(Duration::from_millis(100)) {
            let (packet, token) = support::unwrap(&frame);
            assert!(onym_wire::Interest::parse(&packet).is_ok());
            producer.data_with_token(uri, b"here", &token);
            peer.take_data();
            return start.elapsed();
        }
    }
    panic!("no answer to {uri}");
}

#[test]
fn peers_that_never_had_an_answer_make_room_for_newcomers() {
    let (node, _dir) = node_with_sockets(&["faces.count_max=64"]);
    let mut producer = unix_app(&node);
    let p = ControlParameters { name: Some("/a".parse().unwrap()), ..ControlParameters::default() };
    assert_eq!(producer.command("/localhost/nfd", "rib/register", &p).code, 200);
    let mut honest = udp_from(&node, [127, 1, 0, 1]);
    answered(&mut honest, &mut producer, "/a/1");
    // One packet each, from many networks, for a name that nobody has.
    let mut strangers: Vec<App> = (0..70).map(|n| udp_from(&node, [127, 2, n, 1])).collect();
    strangers.iter_mut().for_each(|s| s.interest("/nobody"));
    until("there is no room", || node.faces().unwrap().len() >= 57);
    // Far sooner than strangers that are idle give way.
    let mut newcomer = udp_from(&node, [127, 3, 0, 1]);
    answered(&mut newcomer, &mut producer, "/a/2");
    // Who was answered kept its face.
    let before: Vec<u32> = node.faces().unwrap().iter().map(|f| f.id.0).collect();
    answered(&mut honest, &mut producer, "/a/3");
    let after: Vec<u32> = node.faces().unwrap().iter().map(|f| f.id.0).collect();
    assert!(after.iter().all(|id| before.contains(id)), "{before:?} {after:?}");
}

#[test]
fn one_network_does_not_take_the_room_of_others() {
    let (node, _dir) = node_with_sockets(&["faces.count_max=64"]);
    let mut producer = unix_app(&node);
    let p = ControlParameters { name: Some("/a".parse().unwrap()), ..ControlParameters::default() };
    assert_eq!(producer.command("/localhost/nfd", "rib/register", &p).code, 200);
    // Three quarters of the room, all of them answered: they have a reason to stay.
    let mut crowd: Vec<App> = (0..56).map(|n| udp_from(&node, [127, 2, 0, 1 + n])).collect();
    for (n, peer) in crowd.iter_mut().take(42).enumerate() {
        answered(peer, &mut producer, &format!("/a/crowd/{n}"));
    }
    let in_crowd = || {
        let faces = node.faces().unwrap();
        faces.iter().filter(|f| f.remote_uri.starts_with("udp4://127.2.")).count()
    };
    // The rest of it gets none of the last quarter.
    crowd.iter_mut().skip(42).for_each(|peer| peer.interest("/nobody"));
    let mut newcomers: Vec<App> = Vec::new();
    for n in 0..14 {
        newcomers.push(udp_from(&node, [127, 3 + n, 0, 1]));
        answered(&mut newcomers[usize::from(n)], &mut producer, &format!("/a/new/{n}"));
        assert_eq!(in_crowd(), 42, "{n}");
    }
    // Where the room ends the crowd shrinks to its share for who comes next.
    let mut last = udp_from(&node, [127, 60, 0, 1]);
    answered(&mut last, &mut producer, "/a/last");
    assert!((1..=8).contains(&in_crowd()), "{}", in_crowd());
    for (n, peer) in newcomers.iter_mut().enumerate() {
        answered(peer, &mut producer, &format!("/a/again/{n}"));
    }
}

/// A face of the node of `app` to `to`: made, unless `to` spoke first.
fn face_to(app: &mut App, to: std::net::SocketAddr) {
    let made = app.command("/localhost/nfd", "faces/create", &uri(&format!("udp4://{to}")));
    assert!(matches!(made.code, 200 | 409), "{made:?}");
    assert!(made.body.as_ref().is_some_and(|face| face.face_id.is_some()), "{made:?}");
}

/// The faces of `node` to UDP peers, by where they lead and where they speak from.
fn udp_faces(node: &onym_node::NodeHandle) -> Vec<(String, String)> {
    let faces = node.faces().unwrap().into_iter().filter(|f| f.remote_uri.starts_with("udp4"));
    faces.map(|f| (f.remote_uri, f.local_uri)).collect()
}

/// A frame in the name of a node, with a secret's MAC where there is one.
fn hello(secret: Option<&str>) -> Vec<u8> {
    let message = Control { digest: 7, ..Control::new(Kind::HELLO, Label::from_u64(2)) };
    let (mut payload, mut frame) = (message.octets(), Vec::new());
    secret.into_iter().for_each(|s| DomainKey::new(s.as_bytes()).seal(&mut payload));
    FrameBuilder {
        hop_limit: 1,
        strategy: Strategy::LINK_LOCAL,
        route: &RouteBuf::from(Route::Link),
        ids: &[reserved::of(reserved::HELLO, message.sender)],
        options: &[],
        payload: &payload,
    }
    .write(&mut frame);
    frame
}

#[test]
fn a_face_is_not_moved_by_datagrams_in_the_name_of_its_peer() {
    let listeners = "faces.udp.listen=[\"127.0.0.1:0\", \"127.2.0.1:0\"]";
    let push = ["push.enabled=true", "push.node=\"1\"", "push.key=\"ours\"", listeners];
    let (node, _dir) = node_with_sockets(&push);
    let (made_at, other) = (node.bound().udp[0], node.bound().udp[1]);
    // Whoever sends from this address has the peer's name; where they are makes no difference here.
    let peer = UdpSocket::bind("127.3.0.1:0").unwrap();
    let there = format!("udp4://{}", peer.local_addr().unwrap());
    let mut app = unix_app(&node);
    face_to(&mut app, peer.local_addr().unwrap());
    let at = |address| [(there.clone(), format!("udp4://{address}"))];
    let interests = || {
        let faces = node.faces().unwrap().into_iter();
        faces.filter(|f| f.remote_uri == there).map(|f| f.counters.in_interests).sum::<u64>()
    };
    assert_eq!(udp_faces(&node), at(made_at));
    // Packets, hellos without a MAC and with that of another secret; none is lost on its way, so what
    // comes before an Interest that is counted was looked at.
    let mut sent = 0;
    for forged in [support::data("/x", b"x"), hello(None), hello(Some("theirs"))] {
        for _ in 0..3 {
            peer.send_to(&forged, other).unwrap();
            sent += 1;
            let wire = support::interest_wire("/nobody", sent);
            peer.send_to(&wire, other).unwrap();
            until("the Interest is counted", || interests() == u64::from(sent));
            assert_eq!(udp_faces(&node), at(made_at));
        }
    }
    // The peer itself, which knows the secret, is followed.
    until("the face speaks from where its peer speaks to", || {
        peer.send_to(&hello(Some("ours")), other).unwrap();
        udp_faces(&node) == at(other)
    });
}

#[test]
fn a_link_speaks_from_the_listener_that_its_neighbour_speaks_to() {
    // The way to the far node leaves from 127.0.0.1 as the system sees it; it knows the near one by
    // another address, at which the near one listens, too.
    for first in ["127.0.0.1", "127.2.0.2"] {
        let push = |n| format!("push.node=\"{n}\"");
        let listeners = format!("faces.udp.listen=[\"{first}:0\", \"127.2.0.1:0\"]");
        let domain = ["push.enabled=true", "push.key=\"ours\""];
        let (near, _near_dir) = node_with_sockets(&[&listeners, &push(1), domain[0], domain[1]]);
        let known = near.bound().udp[1];
        let link = format!("push.link=[{{face=\"udp4://{known}\"}}]");
        let far = ["faces.udp.listen=127.3.0.1:0", &push(2), &link, domain[0], domain[1]];
        let (far, _far_dir) = node_with_sockets(&far);
        let there = far.bound().udp[0];
        let (mut near_app, mut far_app) = (unix_app(&near), unix_app(&far));
        face_to(&mut near_app, there);
        until("the near node speaks from where the far one expects it", || {
            udp_faces(&near) == [(format!("udp4://{there}"), format!("udp4://{known}"))]
        });
        let face =
            near.faces().unwrap().into_iter().find(|f| f.remote_uri.ends_with(&there.to_string()));
        near.route("/y", face.unwrap().id, 0).unwrap();
        let p = ControlParameters { name: Some(support::name("/y")), ..Default::default() };
        assert_eq!(far_app.command("/localhost/nfd", "rib/register", &p).code, 200);
        let far_before = udp_faces(&far);
        answered(&mut near_app, &mut far_app, "/y/1");
        assert_eq!(udp_faces(&far), far_before, "no second face for the same peer");
    }
}
