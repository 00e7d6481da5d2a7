//! A daemon beside an old Blackadder node, whose part a socket of the test plays.

#![allow(clippy::unwrap_used)]

mod support;

use onym_client::push::{App, Event, Publication};
use onym_wire::push::{Filter, Id, OldFrame, RouteBuf, Strategy};
use std::net::UdpSocket;
use std::time::Duration;
use support::{PATIENCE, Place, wait_until};

fn bit(bit: u8) -> Filter {
    let mut filter = Filter::EMPTY;
    filter.set(bit);
    filter
}

#[test]
fn an_old_node_and_a_daemon_exchange_publications_by_filters() {
    // Both ends have the same port, at addresses of their own.
    let old = UdpSocket::bind("127.0.0.2:0").unwrap();
    old.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let port = old.local_addr().unwrap().port();
    let place = Place::new();
    let uri = format!("udp4://127.0.0.2:{port}");
    let _daemon = place.daemon(&[
        "push.enabled=true",
        "push.scheme=bits",
        "push.inside=1",
        &format!("face=[{{uri=\"{uri}\", framing=\"old-push\"}}]"),
        &format!("push.link=[{{face=\"{uri}\", number=7}}]"),
    ]);
    let daemon = format!("127.0.0.1:{port}");
    let id: Id = "/1/2".parse().unwrap();
    let mut app = App::open(Some(&place.node()), "test").unwrap();
    app.subscribe_item(&id, Strategy::IMPLICIT).unwrap();
    // By the number of its inside, from the old node.
    let mut octets = Vec::new();
    OldFrame::write(&mut octets, &bit(1), std::slice::from_ref(&id), b"old");
    let wanted = Some(Event::Data {
        id: id.clone(),
        payload: onym_frame::Buf::copy_from(b"old"),
        came_by: Some(Strategy::IMPLICIT),
    });
    wait_until("the publication of the old node", || {
        old.send_to(b"no frame", &daemon).unwrap();
        old.send_to(&octets, &daemon).unwrap();
        app.event(Some(Duration::from_millis(200))).unwrap() == wanted
    });
    // By the number of the link, to the old node.
    let route = RouteBuf::flat(0, &bit(7));
    let publication =
        Publication { route: Some(&route), ..Publication::new(&id, Strategy::IMPLICIT, b"new") };
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        assert!(std::time::Instant::now() < end, "nothing reached the old node");
        app.publish_told(&publication).unwrap();
        let mut buffer = [0; 2000];
        let Ok((len, _)) = old.recv_from(&mut buffer) else { continue };
        let frame = OldFrame::parse(&buffer[..len]).unwrap();
        assert_eq!((frame.filter, frame.payload), (bit(7), &b"new"[..]));
        break;
    }
}
