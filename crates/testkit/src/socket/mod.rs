//! A forwarder behind sockets: every face of a script is a Unix, TCP or UDP socket.

mod conn;
pub mod control;
mod ws;

pub use conn::Conn;

use crate::env::Env;
use crate::script::{CsSpec, FaceSpec, Field, Script, Transport, Value};
use crate::subject::{Count, Received, Subject};
use crate::wire::build::wrap;
use crate::wire::name::{self, Component, Part};
use control::{Control, name, now_ms, number, number_of, text};
use onym_wire::mgmt::LinkType;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Where a forwarder can be reached.
#[derive(Debug, Clone)]
pub struct Reach {
    /// Its Unix stream socket; without it there is no management but `/localhop/nfd/rib`.
    pub unix: Option<PathBuf>,
    /// Its UDP listener.
    pub udp: SocketAddr,
    /// Its TCP listener.
    pub tcp: Option<SocketAddr>,
    /// Its WebSocket listener.
    pub ws: Option<SocketAddr>,
}

/// What a forwarder can be had with, beside Unix and UDP sockets.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offers {
    /// TCP.
    pub tcp: bool,
    /// WebSocket.
    pub ws: bool,
    /// Links of several peers.
    pub links: bool,
}

/// What keeps a forwarder running, and what it tells beside the protocol.
pub trait Keeper: Debug {
    /// Verdicts since the start.
    fn verdicts(&mut self) -> Option<Vec<Count>> {
        None
    }

    /// Returns when the forwarder has digested everything that was sent to it before; `false` when
    /// it cannot say.
    fn digest(&mut self) -> bool {
        false
    }

    /// A face of a link type that loopback sockets do not have; the forwarder's number of it.
    ///
    /// # Errors
    /// It cannot be made.
    fn attach(&mut self, _spec: &FaceSpec) -> Result<(u64, Conn), String> {
        Err("no such link here".into())
    }
}

/// Nothing: the forwarder is somebody else's.
#[derive(Debug)]
pub struct Nobody;

impl Keeper for Nobody {}

/// A verb with its fields.
type Command = (&'static str, Vec<Field>);

/// A forwarder behind sockets, set up for one script.
#[derive(Debug)]
pub struct SocketSubject {
    control: Option<Control>,
    faces: Vec<Face>,
    /// Stretches waits and patience.
    factor: u32,
    /// The least time given to the forwarder to digest what a face sent, in milliseconds.
    pub settle_ms: u64,
    /// Waited before each packet, as on a slow machine.
    pub pause_ms: u64,
    /// Routes and strategies to take back from a forwarder that lives on.
    undo: Option<Vec<Command>>,
    /// Commands answered to the runner itself, which no script counts.
    own: u64,
    /// Packets sent since the forwarder last digested them.
    sent: usize,
    /// Dropped last: it ends the forwarder.
    keeper: Box<dyn Keeper>,
}

#[derive(Debug)]
struct Face {
    conn: Option<Conn>,
    id: u64,
    made: bool,
}

/// How many packets are sent before the forwarder is let digest them, so that no socket overflows.
const SENT_MAX: usize = 64;

/// What cannot be had with sockets on the loopback interface; `None` when the script can be run.
#[must_use]
pub fn refuses(script: &Script, offers: Offers) -> Option<String> {
    if script.has_tag("virtual") {
        return Some("needs virtual time".into());
    }
    let lacks = |n: &str| match n {
        "core" | "ethernet" => true,
        "ws" => !offers.ws,
        "multi-access" | "ad-hoc" => !offers.links,
        _ => false,
    };
    if let Some(need) = script.needs.iter().find(|n| lacks(n)) {
        return Some(format!("needs {need}"));
    }
    script.faces.iter().find_map(|f| {
        let wrong = f.link != LinkType::PointToPoint && !offers.links
            || f.transport == Transport::Ether
            || (f.transport == Transport::Ws && !offers.ws)
            || (f.transport == Transport::Tcp && !offers.tcp)
            || f.fragment == f.local;
        wrong.then(|| format!("face {} cannot be had over loopback sockets", f.name))
    })
}

/// What becomes of the forwarder at the end of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtEnd {
    /// It is gone.
    Gone,
    /// It lives on: what the script changed is taken back.
    LivesOn,
}

impl SocketSubject {
    /// Makes the faces of a script.
    ///
    /// # Errors
    /// A socket or a command fails.
    pub fn new(
        reach: &Reach,
        script: &Script,
        keeper: Box<dyn Keeper>,
        factor: u32,
        at_end: AtEnd,
    ) -> Result<Self, String> {
        let control = reach.unix.as_ref().map(|p| Conn::unix(p).map(Control::new)).transpose()?;
        let undo = (at_end == AtEnd::LivesOn).then(Vec::new);
        let mut subject = Self {
            control,
            faces: Vec::new(),
            factor,
            settle_ms: 2,
            pause_ms: 0,
            undo,
            own: 0,
            sent: 0,
            keeper,
        };
        for spec in &script.faces {
            let face = subject.face(reach, spec).map_err(|e| format!("face {}: {e}", spec.name))?;
            subject.faces.push(face);
        }
        Ok(subject)
    }

    fn face(&mut self, reach: &Reach, spec: &FaceSpec) -> Result<Face, String> {
        if spec.link != LinkType::PointToPoint {
            let (id, conn) = self.keeper.attach(spec)?;
            return Ok(Face { conn: Some(conn), id, made: false });
        }
        let mut conn = match (spec.transport, spec.local) {
            (Transport::Tcp, _) => Conn::tcp(reach.tcp.ok_or("no TCP listener")?)?,
            (Transport::Ws, _) => Conn::ws(reach.ws.ok_or("no WebSocket listener")?)?,
            (Transport::Auto, true) | (Transport::Unix, _) => {
                Conn::unix(reach.unix.as_ref().ok_or("no Unix socket")?)?
            }
            _ => return self.udp(reach, spec),
        };
        let fields = match spec.local_fields {
            true => vec![number("flags", 1), number("mask", 1)],
            false => Vec::new(),
        };
        let mut env = Env { nonce: fresh_nonce(), ..Env::default() };
        let (code, text, body) =
            control::ask(&mut conn, &mut env, "faces/update", &fields, now_ms())?;
        if code != 200 {
            return Err(format!("faces/update was answered by {code} {text}"));
        }
        self.own += 1;
        Ok(Face { conn: Some(conn), id: number_of(&body, "face")?, made: false })
    }

    fn udp(&mut self, reach: &Reach, spec: &FaceSpec) -> Result<Face, String> {
        let mut conn = match self.undo {
            None => Conn::udp(reach.udp)?,
            Some(_) => Conn::udp_from_new_port(reach.udp)?,
        };
        let Some(control) = &mut self.control else {
            // An empty LpPacket, so that the forwarder makes its on-demand face before the script
            // sends: a forwarder may lose what follows the first datagram while it does.
            conn.send(&wrap(Vec::new(), None))?;
            self.settle();
            return Ok(Face { conn: Some(conn), id: 0, made: false });
        };
        let port = conn.udp_port().ok_or("no port")?;
        let mut fields = vec![text("uri", format!("udp4://127.0.0.1:{port}"))];
        if spec.by_peer {
            conn.send(&wrap(Vec::new(), None))?;
            self.settle();
            // It is there already; the refusal tells its number.
            let control = self.control.as_mut().ok_or("the forwarder has no local socket")?;
            let (code, said, body) = control.ask("faces/create", &fields)?;
            self.own += 1;
            return match code {
                409 => Ok(Face { conn: Some(conn), id: number_of(&body, "face")?, made: true }),
                _ => Err(format!("a frame of a peer made no face: {code} {said}")),
            };
        }
        if spec.reliability {
            fields.extend([number("flags", 2), number("mask", 2)]);
        }
        if spec.mtu != 8800 {
            fields.push(number("mtu", spec.mtu as u64));
        }
        let body = control.must("faces/create", &fields)?;
        self.own += 1;
        Ok(Face { conn: Some(conn), id: number_of(&body, "face")?, made: true })
    }

    fn must(&mut self, verb: &'static str, fields: &[Field]) -> Result<(), String> {
        let control = self.control.as_mut().ok_or("the forwarder has no local socket")?;
        control.must(verb, fields)?;
        self.own += 1;
        Ok(())
    }

    /// Sends a command and notes how it is taken back.
    fn change(
        &mut self,
        verb: &'static str,
        fields: &[Field],
        back: Command,
    ) -> Result<(), String> {
        self.must(verb, fields)?;
        if let Some(undo) = &mut self.undo {
            undo.push(back);
        }
        Ok(())
    }

    /// Registers or unregisters a prefix for a face over that face, under `/localhop`.
    fn route_from_face(
        &mut self,
        verb: &str,
        prefix: &[Component],
        face: usize,
        cost: u64,
    ) -> Result<(), String> {
        let mut fields = vec![name("name", prefix)];
        if verb == "rib/register" {
            fields.extend([number("cost", cost), number("flags", 0)]);
        }
        fields.push(Field { key: "at", value: Value::Name(name::parse("/localhop/nfd")?) });
        let conn = self.faces[face].conn.as_mut().ok_or("the face is closed")?;
        let mut env = Env { nonce: fresh_nonce(), ..Env::default() };
        let mut ask = || control::ask(conn, &mut env, verb, &fields, now_ms());
        // Datagrams may be lost.
        let (code, text, body) = ask().or_else(|_| ask())?;
        if code != 200 {
            return Err(format!("{verb} was answered by {code} {text}"));
        }
        self.faces[face].id = number_of(&body, "face")?;
        self.own += 1;
        Ok(())
    }

    /// Takes what came on every face out of its socket.
    fn drain(&mut self) {
        for conn in self.faces.iter_mut().filter_map(|f| f.conn.as_mut()) {
            conn.drain();
        }
    }
}

/// A start for Nonces that no other connection of this machine uses at this time.
fn fresh_nonce() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let count = COUNT.fetch_add(0x9e37, Ordering::Relaxed);
    let time = u32::try_from(now_ms() & 0xffff_ffff).unwrap_or(7);
    time.wrapping_mul(31) ^ count ^ std::process::id().rotate_left(20)
}

impl Subject for SocketSubject {
    fn face_id(&self, face: usize) -> u64 {
        self.faces[face].id
    }

    fn send(&mut self, face: usize, frame: &[u8]) -> Result<(), String> {
        if self.sent >= SENT_MAX {
            self.settle();
        }
        if self.pause_ms > 0 {
            std::thread::sleep(Duration::from_millis(self.pause_ms));
        }
        self.drain();
        self.sent += 1;
        match &mut self.faces[face].conn {
            Some(conn) => conn.send(frame),
            None => Err("the face is closed".into()),
        }
    }

    fn receive(&mut self, face: usize, patience: Duration) -> Result<Received, String> {
        match &mut self.faces[face].conn {
            Some(conn) => conn.receive(patience),
            None => Ok(Received::Closed),
        }
    }

    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time * self.factor);
    }

    fn settle(&mut self) {
        self.sent = 0;
        if self.keeper.digest() {
            self.drain();
            return;
        }
        // Two round trips through the forwarder: whatever was in its sockets before the first
        // has been read when the second is answered.
        if let Some(control) = &mut self.control {
            for _ in 0..2 {
                self.own += u64::from(control.ask("cs/config", &[]).is_ok());
            }
        }
        std::thread::sleep(Duration::from_millis(self.settle_ms) * self.factor);
        self.drain();
    }

    fn route(
        &mut self,
        prefix: &[Component],
        face: usize,
        cost: Option<u64>,
    ) -> Result<(), String> {
        let verb = if cost.is_some() { "rib/register" } else { "rib/unregister" };
        if self.control.is_none() {
            self.route_from_face(verb, prefix, face, cost.unwrap_or(0))?;
            self.settle();
            return Ok(());
        }
        let id = self.faces[face].id;
        let route = vec![name("name", prefix), number("face", id), number("origin", 255)];
        match cost {
            None => self.must(verb, &route)?,
            Some(cost) => {
                let mut fields = route.clone();
                fields.extend([number("cost", cost), number("flags", 0)]);
                self.change(verb, &fields, ("rib/unregister", route))?;
            }
        }
        self.settle();
        Ok(())
    }

    fn strategy(&mut self, prefix: &[Component], strategy: &str) -> Result<(), String> {
        let parts = name::parse(&format!("/localhost/nfd/strategy/{strategy}"))?;
        let fixed = |p| match p {
            Part::Fixed(c) => Ok(c),
            _ => Err(format!("{strategy}: a wildcard in a strategy name")),
        };
        let full: Vec<Component> = parts.into_iter().map(fixed).collect::<Result<_, String>>()?;
        let fields = [name("name", prefix), name("strategy", &full)];
        let back = ("strategy-choice/unset", vec![name("name", prefix)]);
        self.change("strategy-choice/set", &fields, back)
    }

    fn cs(&mut self, spec: &CsSpec) -> Result<(), String> {
        let mut fields = Vec::new();
        fields.extend(spec.capacity.map(|n| number("capacity", n)));
        let bits = [(spec.admit, 1), (spec.serve, 2)];
        let mask: u64 = bits.iter().filter(|(b, _)| b.is_some()).map(|(_, m)| m).sum();
        let flags: u64 = bits.iter().filter(|(b, _)| *b == Some(true)).map(|(_, m)| m).sum();
        if mask != 0 {
            fields.extend([number("flags", flags), number("mask", mask)]);
        }
        if fields.is_empty() {
            // The policies are part of the configuration that the forwarder was started with.
            return Ok(());
        }
        self.must("cs/config", &fields)
    }

    fn close(&mut self, face: usize) -> Result<(), String> {
        let face = &mut self.faces[face];
        face.conn = None;
        if std::mem::take(&mut face.made) {
            let id = face.id;
            self.must("faces/destroy", &[number("face", id)])?;
        }
        self.settle();
        Ok(())
    }

    fn verdicts(&mut self) -> Option<Vec<Count>> {
        let mut counts = self.keeper.verdicts()?;
        let own = [("interest", "delivered"), ("data", "satisfied")];
        for count in &mut counts {
            if own.contains(&(count.kind.as_str(), count.word.as_str())) {
                count.count = count.count.saturating_sub(self.own);
            }
        }
        Some(counts)
    }

    fn now_ms(&self) -> u64 {
        now_ms()
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(5) * self.factor
    }

    fn counter_tries(&self) -> u32 {
        50
    }
}

impl Drop for SocketSubject {
    fn drop(&mut self) {
        let (Some(undo), Some(control)) = (self.undo.take(), &mut self.control) else { return };
        for (verb, fields) in undo {
            let _ = control.ask(verb, &fields);
        }
        for face in self.faces.iter().filter(|f| f.made) {
            let _ = control.ask("faces/destroy", &[number("face", face.id)]);
        }
    }
}
