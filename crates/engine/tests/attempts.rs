//! Connections that are being made end once: made, refused, or given up in time.

use onym_engine::mailbox;
use onym_engine::{AttemptId, Bell, Clock, Driver, Engine, FaceEvent, Io, Policy, Slot, Turn};
use onym_face::Face;
use onym_link::Packet;
use onym_tables::{FaceId, Tick};
use std::net::TcpListener;
use std::time::Duration;

const POLICY: Policy = Policy {
    round_frames: 0,
    flush_frames: 0,
    flush_octets: 0,
    chunks: 1,
    is_rung_to_receive: false,
};
const PATIENCE: Duration = Duration::from_secs(20);

/// Notes how attempts ended.
#[derive(Debug, Default)]
struct Ends(Vec<(AttemptId, Result<(), String>)>);

impl Driver for Ends {
    type Face = ();
    type Order = ();

    fn receive(&mut self, _: &mut Io<()>, _: Slot, _: Packet) -> Option<&'static str> {
        None
    }
    fn poll_timeout(&self) -> Tick {
        Tick::NEVER
    }
    fn handle_timeout(&mut self, _: &mut Io<()>) {}
    fn dispatch(&mut self, _: &mut Io<()>) {}
    fn order(&mut self, _: &mut Io<()>, (): ()) {}
    fn face_event(&mut self, _: &mut Io<()>, _: Slot, _: FaceId, _: FaceEvent) {}
    fn turn(&mut self, _: &mut Io<()>, _: Slot) -> Turn {
        Turn { receive: 0, handle: 0 }
    }
    fn connected(&mut self, _: &mut Io<()>, id: AttemptId, result: Result<Box<dyn Face>, String>) {
        self.0.push((id, result.map(drop)));
    }
}

/// Connects, and makes rounds until the attempt ended; how it did.
fn end_of(io: impl Face + 'static, patience: Duration) -> Result<(), String> {
    let bell = Bell::new().expect("an eventfd");
    let (_port, mailbox) = mailbox(&bell, 1);
    let mut engine =
        Engine::new(Ends::default(), mailbox, Clock::start(), POLICY).expect("an epoll");
    let id =
        engine.io.connect(Box::new(io), engine.io.clock.now() + patience).expect("a descriptor");
    let until = engine.io.clock.now() + PATIENCE;
    while engine.driver.0.is_empty() {
        assert!(engine.io.clock.now() < until, "the attempt did not end");
        engine.step();
    }
    assert!(!engine.has_work(), "nothing is left of the attempt");
    assert_eq!(engine.driver.0.len(), 1);
    let (ended, result) = engine.driver.0.remove(0);
    assert_eq!(ended, id);
    result
}

#[test]
fn a_connection_that_is_made_is_handed_over() {
    let there = TcpListener::bind("127.0.0.1:0").unwrap();
    let io = onym_face::tcp::connect(there.local_addr().unwrap()).unwrap();
    assert_eq!(end_of(io, PATIENCE), Ok(()));
}

#[test]
fn a_connection_that_is_refused_ends_with_the_reason() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let web = onym_face::websocket::connect(gone, "/").unwrap();
    assert!(end_of(web, PATIENCE).is_err());
    // Loopback may refuse before there is anything to wait for.
    let Ok(io) = onym_face::tcp::connect(gone) else { return };
    assert!(end_of(io, PATIENCE).is_err());
}

#[test]
fn a_connection_that_is_never_made_is_given_up_in_time() {
    // The connection is accepted by the system, and nobody answers the handshake.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let io = onym_face::websocket::connect(silent.local_addr().unwrap(), "/").unwrap();
    assert_eq!(end_of(io, Duration::from_millis(50)), Err("connection timed out".to_owned()));
}
