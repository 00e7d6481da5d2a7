//! From a face URI to a transport.

use super::record::NewFace;
use super::{Control, Purpose};
use crate::config::{Config, Fault, Framing, StaticFace};
use crate::mgmt::host::{FaceError, FaceProps};
use crate::push::old::OldFace;
use onym_face::wrap::{Capture, FaultFace, Faults, Impairment, PcapFace};
use onym_face::{Face, Peer, Transport};
use onym_frame::TxQueue;
use onym_sys::epoll::Interest;
use onym_tables::Tick;
use onym_wire::faceuri::{Endpoint, FaceUri, Host};
use onym_wire::mgmt::{FACE_CONGESTION_MARKING, FACE_RELIABILITY};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How to make the transport of a face, now or again.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The canonical URI of the other end.
    pub(crate) uri: FaceUri,
    /// The interface, for Ethernet; the listener to speak from, for UDP.
    pub(crate) local: Option<FaceUri>,
    pub(crate) fault: Option<Fault>,
    pub(crate) capture: Option<Shared>,
    pub(crate) framing: Framing,
}

/// A capture that outlives the transports of its face.
#[derive(Clone)]
pub(crate) struct Shared(pub(crate) Arc<Mutex<Capture>>);

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Capture")
    }
}

impl Target {
    /// The target of a URI without further wishes.
    pub(crate) fn of(uri: FaceUri) -> Self {
        Self { uri, local: None, fault: None, capture: None, framing: Framing::Packets }
    }

    pub(crate) fn transport(&self) -> Transport {
        match self.uri {
            FaceUri::Udp(_) => Transport::Udp,
            FaceUri::Ether(_) => Transport::Ether,
            FaceUri::WebSocket(..) | FaceUri::WebSocketClient(_) => Transport::WebSocket,
            FaceUri::Unix(_) => Transport::Unix,
            FaceUri::Shm(_) => Transport::Shm,
            _ => Transport::Tcp,
        }
    }
}

/// A connection that is being made.
#[derive(Debug)]
pub(crate) struct Connecting {
    pub(crate) io: Box<dyn Face>,
    pub(crate) target: Target,
    pub(crate) purpose: Purpose,
    /// When it is given up.
    pub(crate) until: Tick,
}

/// The address in a URI, if it has one.
pub(crate) fn ip_of(uri: &FaceUri) -> Option<IpAddr> {
    match uri {
        FaceUri::Udp(e)
        | FaceUri::Tcp(e)
        | FaceUri::WebSocket(e, _)
        | FaceUri::WebSocketClient(e) => e.ip(),
        _ => None,
    }
}

/// The canonical form of `text`; host names are looked up, which may take seconds.
pub(crate) fn resolve(text: &str) -> Result<FaceUri, String> {
    let uri: FaceUri = text.parse().map_err(|e| format!("{e}"))?;
    if let Some(canonical) = uri.canonical() {
        return Ok(canonical);
    }
    let (FaceUri::Udp(end) | FaceUri::Tcp(end) | FaceUri::WebSocket(end, _)) = &uri else {
        return Err(format!("{text} cannot be the other end of a face"));
    };
    let Host::Name(name) = &end.host else {
        return Err(format!("{text}: the address does not fit the scheme"));
    };
    let found = (name.as_str(), end.port.unwrap_or(0)).to_socket_addrs();
    let mut found = found.map_err(|e| format!("{text}: looking up {name}: {e}"))?;
    found
        .find_map(|address| uri.resolved(address.ip()))
        .ok_or_else(|| format!("{text}: {name} has no address of that family"))
}

impl Control {
    /// Starts to make the transport of `target`; what follows is said by `purpose`.
    ///
    /// # Errors
    /// What management answers when it cannot even be tried.
    pub(crate) fn connect(&mut self, target: Target, purpose: Purpose) -> Result<(), FaceError> {
        let io = self.transport_of(&target)?;
        if !io.is_connecting() {
            let io = dress(io, &target).map_err(FaceError::System)?;
            self.connected(io, target, purpose);
            return Ok(());
        }
        let until = self.clock.now() + Duration::from_millis(self.config.faces.connect_timeout_ms);
        let token = self.next_token();
        let interest = if io.room_is_writable() { Interest::ReadWrite } else { Interest::Read };
        self.epoll
            .add(io.fd(), token, interest)
            .map_err(|e| FaceError::System(format!("watching a connection: {e}")))?;
        self.connecting.insert(token, Connecting { io, target, purpose, until });
        Ok(())
    }

    fn transport_of(&mut self, target: &Target) -> Result<Box<dyn Face>, FaceError> {
        let failed = |e: onym_face::FaceError| FaceError::ConnectFailed(e.to_string());
        if target.framing == Framing::OldPush {
            return old_face(target);
        }
        match &target.uri {
            FaceUri::Udp(end) => {
                let peer = address_of(end)?;
                if peer.ip().is_multicast() {
                    let text = "a multicast group is set with faces.udp.multicast";
                    return Err(FaceError::Unsupported(text.into()));
                }
                self.udp_to(peer, target.local.as_ref())
            }
            FaceUri::Tcp(end) => {
                Ok(Box::new(onym_face::tcp::connect(address_of(end)?).map_err(failed)?))
            }
            FaceUri::Unix(path) => {
                Ok(Box::new(onym_face::unix::connect(Path::new(path)).map_err(failed)?))
            }
            FaceUri::Shm(path) => {
                let length = self.config.faces.shm.ring_bytes;
                Ok(Box::new(onym_face::shm::connect(Path::new(path), length).map_err(failed)?))
            }
            FaceUri::WebSocket(end, path) => {
                let io = onym_face::websocket::connect(address_of(end)?, path).map_err(failed)?;
                Ok(Box::new(io))
            }
            FaceUri::Ether(mac) => self.ether_to(*mac, target.local.as_ref()),
            other => Err(FaceError::Unsupported(format!("{other}: scheme not supported"))),
        }
    }

    /// From the listener at `local` when one is named. Else from our well-known port when a listener
    /// has the address that the peer will see. So the peer's answers and its own first frames are one
    /// face.
    fn udp_to(
        &mut self,
        peer: SocketAddr,
        local: Option<&FaceUri>,
    ) -> Result<Box<dyn Face>, FaceError> {
        let failed = |e: onym_face::FaceError| FaceError::ConnectFailed(e.to_string());
        if let Some(FaceUri::Udp(end)) = local {
            let address = address_of(end)?;
            let ours = self.listeners.iter_mut().find(|entry| entry.udp == Some(address));
            let Some(entry) = ours else {
                let text = format!("no listener at {address}: see faces.udp.listen");
                return Err(FaceError::Unsupported(text));
            };
            return entry.listener.face_for(Peer::Udp(peer)).map_err(failed);
        }
        let source = source_towards(peer);
        let same = |a: SocketAddr| {
            let every = a.is_ipv4() == peer.is_ipv4() && a.ip().is_unspecified();
            every || Some(a.ip()) == source
        };
        for entry in self.listeners.iter_mut() {
            if entry.udp.is_some_and(same) {
                return entry.listener.face_for(Peer::Udp(peer)).map_err(failed);
            }
        }
        let options = udp_options(&self.config);
        let io = onym_face::udp::UdpFace::connect(None, peer, &options).map_err(failed)?;
        Ok(Box::new(io))
    }

    /// By the listener of the interface when there is one, so that frames do not come twice.
    fn ether_to(
        &mut self,
        mac: [u8; 6],
        local: Option<&FaceUri>,
    ) -> Result<Box<dyn Face>, FaceError> {
        let failed = |e: onym_face::FaceError| FaceError::ConnectFailed(e.to_string());
        let Some(FaceUri::Dev(name)) = local else {
            return Err(FaceError::Unsupported("Ethernet needs the local URI dev://…".into()));
        };
        for entry in self.listeners.iter_mut() {
            if entry.ether.as_ref() == Some(name) {
                return entry.listener.face_for(Peer::Ether(mac)).map_err(failed);
            }
        }
        let interface = onym_sys::netdev::interface(name)
            .map_err(|e| FaceError::BadUri(format!("dev://{name}: {e}")))?;
        let buffer = self.config.faces.udp.receive_buffer_bytes;
        let io = onym_face::EtherFace::open(&interface, mac, buffer).map_err(failed)?;
        Ok(Box::new(io))
    }

    /// The descriptor of a connection under way is ready.
    pub(crate) fn connecting_ready(&mut self, token: u64) {
        let Some(attempt) = self.connecting.get_mut(&token) else { return };
        let result = attempt.io.flush(&mut TxQueue::new(0));
        if result.is_ok() && attempt.io.is_connecting() {
            return;
        }
        let Some(attempt) = self.connecting.remove(&token) else { return };
        let _ = self.epoll.delete(attempt.io.fd());
        let dressed =
            result.map_err(|e| e.to_string()).and_then(|_| dress(attempt.io, &attempt.target));
        match dressed {
            Ok(io) => self.connected(io, attempt.target, attempt.purpose),
            Err(reason) => self.connect_failed(attempt.purpose, &reason),
        }
    }

    /// Gives up connections that take too long.
    pub(crate) fn connect_timers(&mut self, now: Tick) {
        let late = self.connecting.iter().filter(|(_, c)| c.until <= now).map(|(t, _)| *t);
        for token in late.collect::<Vec<_>>() {
            if let Some(attempt) = self.connecting.remove(&token) {
                let _ = self.epoll.delete(attempt.io.fd());
                self.connect_failed(attempt.purpose, "connection timed out");
            }
        }
    }

    fn connected(&mut self, io: Box<dyn Face>, target: Target, purpose: Purpose) {
        match purpose {
            Purpose::Reopen(id) => self.face_reopen(id, io),
            Purpose::Make { asked, mut new } => {
                new.io = Some(io);
                new.target = Some(target);
                let result = self.face_add(*new).map_err(FaceError::System);
                self.made(asked, result);
            }
        }
    }

    fn connect_failed(&mut self, purpose: Purpose, reason: &str) {
        match purpose {
            Purpose::Reopen(id) => {
                let now = self.clock.now();
                let Some(record) = self.faces.get_mut(&id) else { return };
                record.reconnect = now + record.backoff;
                tracing::debug!(face = id.0, reason, "connecting again failed");
            }
            Purpose::Make { asked, .. } => {
                self.made(asked, Err(FaceError::ConnectFailed(reason.to_owned())));
            }
        }
    }
}

fn address_of(end: &Endpoint) -> Result<SocketAddr, FaceError> {
    let text = || FaceError::BadUri("an address and a port are needed".into());
    onym_face::uri::socket_addr(end).ok_or_else(text)
}

/// Our address on the way to `peer`, by the system's routes; nothing is sent.
fn source_towards(peer: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr =
        if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let probe = UdpSocket::bind((any, 0)).ok()?;
    probe.connect(peer).ok()?;
    Some(probe.local_addr().ok()?.ip())
}

/// How UDP sockets are opened.
pub(crate) fn udp_options(config: &Config) -> onym_face::udp::UdpOptions {
    let udp = &config.faces.udp;
    onym_face::udp::UdpOptions {
        // What the transport can; each face is told what to use (`faces.udp.mtu`).
        mtu: onym_wire::PACKET_LEN_MAX,
        recv_buffer: udp.receive_buffer_bytes,
        send_buffer: udp.send_buffer_bytes,
        ..onym_face::udp::UdpOptions::default()
    }
}

/// Wraps `io` as its target asks.
fn dress(io: Box<dyn Face>, target: &Target) -> Result<Box<dyn Face>, String> {
    let mut io = io;
    if let Some(fault) = &target.fault {
        let both = Impairment {
            loss: fault.loss,
            delay: Duration::from_secs_f64(fault.delay_ms.max(0.0) / 1000.0),
            rate_bps: (fault.rate_bytes > 0).then_some(fault.rate_bytes.saturating_mul(8)),
            ..Impairment::default()
        };
        let faults = Faults { seed: fault.seed, outgoing: both, incoming: both };
        io = Box::new(FaultFace::new(io, &faults).map_err(|e| e.to_string())?);
    }
    if let Some(Shared(capture)) = &target.capture {
        io = Box::new(PcapFace::new(io, Arc::clone(capture)));
    }
    Ok(io)
}

/// A face in the old framing.
fn old_face(target: &Target) -> Result<Box<dyn Face>, FaceError> {
    let failed = |e: std::io::Error| FaceError::ConnectFailed(e.to_string());
    match (&target.uri, &target.local) {
        (FaceUri::Udp(end), _) => {
            let peer = address_of(end)?;
            let no_way = || FaceError::ConnectFailed(format!("no way to {peer}"));
            let source = source_towards(peer).ok_or_else(no_way)?;
            Ok(Box::new(OldFace::udp(source, peer).map_err(failed)?))
        }
        (FaceUri::Ether(mac), Some(FaceUri::Dev(name))) => {
            let interface = onym_sys::netdev::interface(name)
                .map_err(|e| FaceError::BadUri(format!("dev://{name}: {e}")))?;
            Ok(Box::new(OldFace::ether(&interface, *mac).map_err(failed)?))
        }
        _ => Err(FaceError::Unsupported("the old framing needs UDP or Ethernet".into())),
    }
}

/// What the configuration says of a face made at start.
///
/// # Errors
/// A sentence that names what is wrong.
pub(crate) fn static_target(face: &StaticFace) -> Result<Target, String> {
    let local = face.local.as_deref().map(str::parse::<FaceUri>).transpose();
    let capture = face.pcap.as_deref().map(|path| {
        let file = std::fs::File::create(path).map_err(|e| format!("{path}: {e}"))?;
        let out = Box::new(std::io::BufWriter::new(file));
        let capture = Capture::new(out).map_err(|e| format!("{path}: {e}"))?;
        Ok::<_, String>(Shared(Arc::new(Mutex::new(capture))))
    });
    Ok(Target {
        uri: resolve(&face.uri)?,
        local: local.map_err(|e| e.to_string())?,
        fault: face.fault.clone(),
        capture: capture.transpose()?,
        framing: face.framing,
    })
}

/// A face of the configuration, not yet with its transport.
pub(crate) fn static_new(face: &StaticFace, target: &Target) -> NewFace {
    let mut props = FaceProps { mtu: face.mtu.map(|m| m as u64), ..FaceProps::default() };
    if face.reliability {
        props.flags |= FACE_RELIABILITY;
        props.mask |= FACE_RELIABILITY;
    }
    if let Some(marking) = face.congestion_marking {
        props.mask |= FACE_CONGESTION_MARKING;
        props.flags |= if marking { FACE_CONGESTION_MARKING } else { 0 };
    }
    let target = Some(target.clone());
    let queue_bytes_max = face.queue_bytes_max;
    NewFace { props, target, queue_bytes_max, ..NewFace::of(None, face.persistency) }
}
