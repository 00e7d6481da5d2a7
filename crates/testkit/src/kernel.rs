//! The kernel stack of this network namespace: local faces are its RAW sockets, others its UDP
//! faces to sockets on loopback, configured over netlink.

use crate::script::{CsSpec, FaceSpec, Script, StepKind, Transport};
use crate::socket::{Conn, Offers};
use crate::subject::{Bench, Count, Received, Subject};
use crate::wire::name::{Component, encode};
use onym_kernel::KernelError;
use onym_kernel::control::Control;
use onym_kernel::socket::RawSocket;
use onym_wire::mgmt::LinkType;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Where the kernel's UDP faces listen.
const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 6363);

/// Scripts whose packets are given octet for octet: no component can be put in front of their
/// names, which no other script uses.
const EXACT: [&str; 2] =
    ["interest-elements-behind-parameters-pass", "tlv-packet-of-8800-octets-passes"];

/// Runs scripts against the kernel stack.
#[derive(Debug)]
pub struct Kernel {
    /// Stretches waits and patience.
    pub factor: u32,
    script: AtomicU64,
}

impl Kernel {
    /// The stack of this network namespace.
    #[must_use]
    pub const fn new(factor: u32) -> Self {
        Self { factor, script: AtomicU64::new(0) }
    }
}

/// The strategy that a script means, if the kernel has it.
fn strategy_word(name: &str) -> Option<&str> {
    let (word, rest) = name.split_once('/').unwrap_or((name, ""));
    let known = ["best-route", "multicast", "random"].contains(&word);
    (known && !rest.contains('~')).then_some(word)
}

fn face_is_had(f: &FaceSpec) -> bool {
    let transport = matches!(f.transport, Transport::Auto | Transport::Udp | Transport::Unix);
    transport && !f.reliability && !f.by_peer && f.link == LinkType::PointToPoint
}

fn step_is_had(step: &StepKind) -> bool {
    match step {
        StepKind::Query { .. } | StepKind::Has(_) | StepKind::Lacks(_) | StepKind::Rows(_) => false,
        StepKind::Strategy { strategy, .. } => strategy_word(strategy).is_some(),
        StepKind::Cs(spec) => spec.policy.is_none() && spec.unsolicited.is_none(),
        _ => true,
    }
}

impl Bench for Kernel {
    fn name(&self) -> &str {
        "kernel"
    }

    fn refuses(&self, script: &Script) -> Option<String> {
        if script.has_tag("slow") {
            return Some("waits more than two seconds".into());
        }
        let lacks = ["mgmt", "multishard", "stream", "tokens"];
        if let Some(need) = script.needs.iter().find(|n| lacks.contains(&n.as_str())) {
            return Some(format!("the kernel has no {need}"));
        }
        if script.config.iter().any(|(key, _)| key != "shards") || !script.regions.is_empty() {
            return Some("needs a configuration of its own".into());
        }
        if script.steps.iter().any(|s| !step_is_had(&s.kind)) {
            return Some("asks for what is not in the kernel".into());
        }
        if !script.faces.iter().all(face_is_had) {
            return Some("has a face that is not in the kernel".into());
        }
        crate::socket::refuses(script, Offers::default())
    }

    fn set_up(&self, script: &Script) -> Result<Box<dyn Subject>, String> {
        let control = Control::open().map_err(said)?;
        let mut subject = KernelSubject {
            control,
            faces: Vec::new(),
            routes: Vec::new(),
            strategies: Vec::new(),
            capacity: 0,
            before: Vec::new(),
            factor: self.factor,
        };
        subject.capacity = subject.control.cs().map_err(said)?.capacity;
        for spec in &script.faces {
            let face = subject.face(spec).map_err(|e| format!("face {}: {e}", spec.name))?;
            subject.faces.push(face);
        }
        subject.before = subject.count()?;
        Ok(Box::new(subject))
    }

    fn apart(&self, script: &Script) -> Option<Component> {
        if EXACT.contains(&script.name.as_str()) {
            return None;
        }
        let n = self.script.fetch_add(1, Ordering::Relaxed);
        Some((8, format!("run-{n}").into_bytes()))
    }
}

fn said(error: KernelError) -> String {
    error.to_string()
}

#[derive(Debug)]
enum End {
    Local(RawSocket),
    Udp(Conn),
    Closed,
}

#[derive(Debug)]
struct Face {
    end: End,
    id: u32,
}

#[derive(Debug)]
struct KernelSubject {
    control: Control,
    faces: Vec<Face>,
    /// What the script changed, to be taken back.
    routes: Vec<(Vec<u8>, u32)>,
    strategies: Vec<Vec<u8>>,
    capacity: u64,
    before: Vec<Count>,
    factor: u32,
}

impl KernelSubject {
    fn face(&mut self, spec: &FaceSpec) -> Result<Face, String> {
        if spec.local {
            let socket = RawSocket::open_lp().map_err(said)?;
            // The face comes with the first packet: one that the link service takes for nothing.
            socket.send(&[100, 0]).map_err(said)?;
            let id = socket.face().map_err(said)?;
            let mtu = u16::try_from(spec.mtu).ok();
            self.control.set_face(id, mtu, Some(spec.local_fields)).map_err(said)?;
            return Ok(Face { end: End::Local(socket), id });
        }
        let conn = Conn::udp_from_new_port(LISTEN)?;
        let port = conn.udp_port().ok_or("no port")?;
        let peer = SocketAddr::new(LISTEN.ip(), port);
        let mtu = u16::try_from(spec.mtu).map_err(|_| "the MTU is too large")?;
        let id = self.control.udp_face(peer, mtu).map_err(said)?;
        if spec.local_fields {
            self.control.set_face(id, None, Some(true)).map_err(said)?;
        }
        Ok(Face { end: End::Udp(conn), id })
    }

    fn count(&mut self) -> Result<Vec<Count>, String> {
        let kinds = ["interest", "data", "nack", "frame"];
        let counters = self.control.counters().map_err(said)?;
        Ok(counters
            .into_iter()
            .filter(|c| kinds.contains(&c.kind.as_str()))
            .map(|c| Count { kind: c.kind, word: c.word, count: c.count })
            .collect())
    }

    fn undo(&mut self) {
        for (prefix, face) in std::mem::take(&mut self.routes) {
            let _ = self.control.remove_route(&prefix, face);
        }
        for prefix in std::mem::take(&mut self.strategies) {
            let _ = self.control.set_strategy(&prefix, None);
        }
        for face in std::mem::take(&mut self.faces) {
            if matches!(face.end, End::Udp(_)) {
                let _ = self.control.delete_face(face.id);
            }
        }
        let capacity = u32::try_from(self.capacity).ok();
        let _ = self.control.set_cs(capacity, Some(true), Some(true));
    }
}

impl Drop for KernelSubject {
    fn drop(&mut self) {
        self.undo();
    }
}

impl Subject for KernelSubject {
    fn face_id(&self, face: usize) -> u64 {
        self.faces[face].id.into()
    }

    fn send(&mut self, face: usize, frame: &[u8]) -> Result<(), String> {
        match &mut self.faces[face].end {
            // What is no TLV at all is refused by the call and goes nowhere.
            End::Local(socket) => match socket.send(frame) {
                Err(KernelError::Io(e)) if e.kind() == std::io::ErrorKind::InvalidInput => Ok(()),
                Err(KernelError::Io(e)) if e.raw_os_error() == Some(90) => Ok(()),
                other => other.map_err(said),
            },
            End::Udp(conn) => conn.send(frame),
            End::Closed => Err("the face is closed".into()),
        }
    }

    fn receive(&mut self, face: usize, patience: Duration) -> Result<Received, String> {
        match &mut self.faces[face].end {
            End::Local(socket) => {
                let mut room = vec![0; 9000];
                Ok(match socket.receive(&mut room, patience).map_err(said)? {
                    Some(len) => Received::Frame(room[..len].to_vec()),
                    None => Received::Nothing,
                })
            }
            End::Udp(conn) => conn.receive(patience),
            End::Closed => Ok(Received::Closed),
        }
    }

    fn wait(&mut self, time: Duration) {
        std::thread::sleep(time * self.factor);
    }

    fn settle(&mut self) {
        // Sockets are answered inside the call; datagrams take a turn of the network stack.
        std::thread::sleep(Duration::from_millis(3) * self.factor);
    }

    fn route(
        &mut self,
        prefix: &[Component],
        face: usize,
        cost: Option<u64>,
    ) -> Result<(), String> {
        let prefix = encode(prefix);
        let id = self.faces[face].id;
        let Some(cost) = cost else {
            return self.control.remove_route(&prefix, id).map_err(said);
        };
        let cost = u32::try_from(cost).unwrap_or(u32::MAX);
        self.control.add_route(&prefix, id, cost).map_err(said)?;
        self.routes.push((prefix, id));
        Ok(())
    }

    fn strategy(&mut self, prefix: &[Component], strategy: &str) -> Result<(), String> {
        let prefix = encode(prefix);
        let word = strategy_word(strategy);
        self.control.set_strategy(&prefix, word).map_err(said)?;
        self.strategies.push(prefix);
        Ok(())
    }

    fn cs(&mut self, spec: &CsSpec) -> Result<(), String> {
        let capacity = spec.capacity.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        self.control.set_cs(capacity, spec.admit, spec.serve).map_err(said)
    }

    fn close(&mut self, face: usize) -> Result<(), String> {
        let face = &mut self.faces[face];
        let end = std::mem::replace(&mut face.end, End::Closed);
        if matches!(end, End::Udp(_)) {
            self.control.delete_face(face.id).map_err(said)?;
        }
        Ok(())
    }

    fn verdicts(&mut self) -> Option<Vec<Count>> {
        let mut now = self.count().ok()?;
        for (count, before) in now.iter_mut().zip(&self.before) {
            count.count -= before.count.min(count.count);
        }
        Some(now)
    }

    fn now_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(5) * self.factor
    }

    fn counter_tries(&self) -> u32 {
        20
    }
}
