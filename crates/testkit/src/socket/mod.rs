//! A forwarder behind sockets: every face of a script is a Unix, TCP or UDP socket.

mod conn;
pub mod control;

pub use conn::Conn;

use crate::env::Env;
use crate::script::{CsSpec, FaceSpec, Link, Script, Transport};
use crate::subject::{Count, Received, Subject};
use crate::wire::name::{self, Component, Part};
use control::{Control, name, now_ms, number, number_of, text};
use std::fmt::Debug;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Where a forwarder can be reached.
#[derive(Debug, Clone)]
pub struct Reach {
    /// Its Unix stream socket.
    pub unix: PathBuf,
    /// Its UDP listener.
    pub udp: SocketAddr,
    /// Its TCP listener.
    pub tcp: Option<SocketAddr>,
}

/// What keeps a forwarder running, and what it tells beside the protocol.
pub trait Keeper: Debug {
    /// Verdicts since the start.
    fn verdicts(&mut self) -> Option<Vec<Count>> {
        None
    }
}

/// Nothing: the forwarder is somebody else's.
#[derive(Debug)]
pub struct Nobody;

impl Keeper for Nobody {}

/// A forwarder behind sockets, set up for one script.
#[derive(Debug)]
pub struct SocketSubject {
    control: Control,
    faces: Vec<Face>,
    /// Stretches waits and patience.
    factor: u32,
    /// Routes and strategies to take back from a forwarder that lives on.
    undo: Option<Vec<(&'static str, Vec<crate::script::Field>)>>,
    /// Dropped last: it ends the forwarder.
    keeper: Box<dyn Keeper>,
}

#[derive(Debug)]
struct Face {
    conn: Option<Conn>,
    id: u64,
    made: bool,
}

/// What cannot be had with sockets on the loopback interface; `None` when the script can be run.
#[must_use]
pub fn refuses(script: &Script, has_tcp: bool) -> Option<String> {
    if script.has_tag("virtual") {
        return Some("needs virtual time".into());
    }
    if let Some(need) = script
        .needs
        .iter()
        .find(|n| matches!(n.as_str(), "core" | "ethernet" | "ws" | "multi-access" | "ad-hoc"))
    {
        return Some(format!("needs {need}"));
    }
    script.faces.iter().find_map(|f| {
        let wrong = f.link != Link::PointToPoint
            || matches!(f.transport, Transport::Ws | Transport::Ether)
            || (f.transport == Transport::Tcp && !has_tcp)
            || f.fragment == f.local;
        wrong.then(|| format!("face {} cannot be had over loopback sockets", f.name))
    })
}

impl SocketSubject {
    /// Makes the faces of a script. `lives_on`: routes and strategies are taken back at the end.
    ///
    /// # Errors
    /// A socket or a command fails.
    pub fn new(
        reach: &Reach,
        script: &Script,
        keeper: Box<dyn Keeper>,
        factor: u32,
        lives_on: bool,
    ) -> Result<Self, String> {
        let mut subject = Self {
            control: Control::new(Conn::unix(&reach.unix)?),
            faces: Vec::new(),
            factor,
            undo: lives_on.then(Vec::new),
            keeper,
        };
        for spec in &script.faces {
            let face = subject.face(reach, spec).map_err(|e| format!("face {}: {e}", spec.name))?;
            subject.faces.push(face);
        }
        Ok(subject)
    }

    fn face(&mut self, reach: &Reach, spec: &FaceSpec) -> Result<Face, String> {
        let stream = match (spec.transport, spec.local) {
            (Transport::Tcp, _) => Some(Conn::tcp(reach.tcp.ok_or("no TCP listener")?)?),
            (Transport::Auto, true) | (Transport::Unix, _) => Some(Conn::unix(&reach.unix)?),
            _ => None,
        };
        match stream {
            Some(mut conn) => {
                let flags = u64::from(spec.local_fields);
                let fields = if flags == 0 {
                    vec![]
                } else {
                    vec![number("flags", flags), number("mask", 1)]
                };
                let mut env =
                    Env { nonce: u32::from_be_bytes(self.control.nonce()), ..Env::default() };
                let (code, text, body) =
                    control::ask(&mut conn, &mut env, "faces/update", &fields, now_ms())?;
                if code != 200 {
                    return Err(format!("faces/update was answered by {code} {text}"));
                }
                Ok(Face { conn: Some(conn), id: number_of(&body, "face")?, made: false })
            }
            None => self.udp(reach, spec),
        }
    }

    fn udp(&mut self, reach: &Reach, spec: &FaceSpec) -> Result<Face, String> {
        let conn = Conn::udp(reach.udp)?;
        let port = conn.udp_port().ok_or("no port")?;
        let mut fields = vec![text("uri", format!("udp4://127.0.0.1:{port}"))];
        if spec.reliability {
            fields.extend([number("flags", 2), number("mask", 2)]);
        }
        if spec.mtu != 8800 {
            fields.push(number("mtu", spec.mtu as u64));
        }
        let body = self.control.must("faces/create", &fields)?;
        Ok(Face { conn: Some(conn), id: number_of(&body, "face")?, made: true })
    }

    fn change(
        &mut self,
        verb: &'static str,
        fields: Vec<crate::script::Field>,
        back: Option<(&'static str, Vec<crate::script::Field>)>,
    ) -> Result<(), String> {
        self.control.must(verb, &fields)?;
        if let (Some(undo), Some(back)) = (&mut self.undo, back) {
            undo.push(back);
        }
        Ok(())
    }
}

impl Subject for SocketSubject {
    fn face_id(&self, face: usize) -> u64 {
        self.faces[face].id
    }

    fn send(&mut self, face: usize, frame: &[u8]) -> Result<(), String> {
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
        // Two round trips through the forwarder: whatever was in its sockets before the first
        // has been read when the second is answered.
        for _ in 0..2 {
            let _ = self.control.ask("cs/config", &[]);
        }
        std::thread::sleep(Duration::from_millis(2) * self.factor);
    }

    fn route(
        &mut self,
        prefix: &[Component],
        face: usize,
        cost: Option<u64>,
    ) -> Result<(), String> {
        let id = self.faces[face].id;
        let route = vec![name("name", prefix), number("face", id), number("origin", 255)];
        let Some(cost) = cost else { return self.change("rib/unregister", route, None) };
        let mut fields = route.clone();
        fields.extend([number("cost", cost), number("flags", 0)]);
        self.change("rib/register", fields, Some(("rib/unregister", route)))?;
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
        let back = ("strategy-choice/unset", vec![name("name", prefix)]);
        self.change(
            "strategy-choice/set",
            vec![name("name", prefix), name("strategy", &full)],
            Some(back),
        )
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
            return Ok(());
        }
        self.control.must("cs/config", &fields).map(|_| ())
    }

    fn close(&mut self, face: usize) -> Result<(), String> {
        let face = &mut self.faces[face];
        face.conn = None;
        if face.made {
            face.made = false;
            let id = face.id;
            self.control.must("faces/destroy", &[number("face", id)])?;
        }
        self.settle();
        Ok(())
    }

    fn verdicts(&mut self) -> Option<Vec<Count>> {
        self.keeper.verdicts()
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
        let Some(undo) = self.undo.take() else { return };
        for (verb, fields) in undo {
            let _ = self.control.ask(verb, &fields);
        }
        let made: Vec<u64> = self.faces.iter().filter(|f| f.made).map(|f| f.id).collect();
        for id in made {
            let _ = self.control.ask("faces/destroy", &[number("face", id)]);
        }
    }
}
