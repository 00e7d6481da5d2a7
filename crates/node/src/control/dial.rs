//! Transports for targets, at once or when the connection is made.

use super::Io;
use super::faces::NewFace;
use super::listeners::Listeners;
use super::target::Target;
use crate::config::{Config, Framing};
use crate::mgmt::host::{FaceError, Ticket};
use crate::push::old::OldFace;
use onym_engine::AttemptId;
use onym_face::{Face, Peer};
use onym_tables::FaceId;
use onym_wire::faceuri::{Endpoint, FaceUri};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

/// Who asked for a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    /// Management, which is waiting for the answer.
    Management(Ticket),
    /// The configuration.
    Config,
}

/// What a connection that is being made is for.
#[derive(Debug)]
pub(super) enum Purpose {
    /// The transport of a permanent face that is down.
    Reopen(FaceId),
    /// A new face.
    Make {
        /// Who asked for it.
        asked: Asked,
        /// Its properties.
        new: Box<NewFace>,
    },
}

impl Purpose {
    /// Who waits for a new face.
    pub(super) fn asked(&self) -> Option<Asked> {
        match self {
            Self::Reopen(_) => None,
            Self::Make { asked, .. } => Some(*asked),
        }
    }
}

/// A transport that is there.
#[derive(Debug)]
pub(super) struct Dialed {
    pub(super) io: Box<dyn Face>,
    pub(super) target: Target,
    pub(super) purpose: Purpose,
}

/// A transport that could not be made.
#[derive(Debug)]
pub(super) struct NotDialed {
    pub(super) purpose: Purpose,
    pub(super) reason: String,
}

#[derive(Debug)]
struct Wanted {
    target: Target,
    purpose: Purpose,
}

/// What the connections that are being made are for.
#[derive(Debug, Default)]
pub(super) struct Dialer {
    wanted: HashMap<AttemptId, Wanted>,
}

impl Dialer {
    /// Makes the transport of `target`; none while its connection is being made.
    ///
    /// # Errors
    /// What management answers when it cannot even be tried.
    pub(super) fn begin(
        &mut self,
        ways: &mut Ways<'_>,
        target: Target,
        purpose: Purpose,
    ) -> Result<Option<Dialed>, FaceError> {
        let io = ways.transport_of(&target)?;
        if !io.is_connecting() {
            let io = target.dress(io).map_err(FaceError::System)?;
            return Ok(Some(Dialed { io, target, purpose }));
        }
        let patience = Duration::from_millis(ways.config.faces.connect_timeout_ms);
        let until = ways.io.clock.now() + patience;
        let id = ways.io.connect(io, until);
        let id = id.map_err(|e| FaceError::System(format!("watching a connection: {e}")))?;
        self.wanted.insert(id, Wanted { target, purpose });
        Ok(None)
    }

    /// An attempt ended; none when it is nobody's any more.
    pub(super) fn end(
        &mut self,
        id: AttemptId,
        result: Result<Box<dyn Face>, String>,
    ) -> Option<Result<Dialed, NotDialed>> {
        let Wanted { target, purpose } = self.wanted.remove(&id)?;
        Some(match result.and_then(|io| target.dress(io)) {
            Ok(io) => Ok(Dialed { io, target, purpose }),
            Err(reason) => Err(NotDialed { purpose, reason }),
        })
    }
}

/// What transports are made of.
#[derive(Debug)]
pub(super) struct Ways<'a> {
    pub(super) io: &'a mut Io,
    pub(super) listeners: &'a Listeners,
    pub(super) config: &'a Config,
}

impl Ways<'_> {
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
            FaceUri::Quic(end) => {
                let peers = self.config.faces.quic.peers.as_deref();
                Ok(Box::new(onym_face::quic::connect(address_of(end)?, peers).map_err(failed)?))
            }
            FaceUri::Ether(mac) => self.ether_to(*mac, target.local.as_ref()),
            other => Err(FaceError::Unsupported(format!("{other}: scheme not supported"))),
        }
    }

    /// From the listener at `local` when one is named. Else from our well-known port when a listener
    /// has the address that the peer will see, or, on this machine, any of its own. So the peer's
    /// answers and its own first frames are one face; where it knows us by another address, the face
    /// follows (`follow`).
    fn udp_to(
        &mut self,
        peer: SocketAddr,
        local: Option<&FaceUri>,
    ) -> Result<Box<dyn Face>, FaceError> {
        let failed = |e: onym_face::FaceError| FaceError::ConnectFailed(e.to_string());
        if let Some(FaceUri::Udp(end)) = local {
            let address = address_of(end)?;
            let ours = self.listeners.udp(|ours| ours == address);
            let Some(listener) = ours.and_then(|at| self.io.listener(at)) else {
                let text = format!("no listener at {address}: see faces.udp.listen");
                return Err(FaceError::Unsupported(text));
            };
            return listener.face_for(Peer::Udp(peer)).map_err(failed);
        }
        let source = source_towards(peer);
        let same = |a: SocketAddr| {
            let every = a.is_ipv4() == peer.is_ipv4() && a.ip().is_unspecified();
            every || Some(a.ip()) == source
        };
        // On this machine every loopback address reaches every other one.
        let near = |a: SocketAddr| {
            a.is_ipv4() == peer.is_ipv4() && a.ip().is_loopback() && peer.ip().is_loopback()
        };
        let ours = self.listeners.udp(same).or_else(|| self.listeners.udp(near));
        if let Some(listener) = ours.and_then(|at| self.io.listener(at)) {
            return listener.face_for(Peer::Udp(peer)).map_err(failed);
        }
        let options = super::open::udp_options(self.config);
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
        if let Some(listener) = self.listeners.ether(name).and_then(|at| self.io.listener(at)) {
            return listener.face_for(Peer::Ether(mac)).map_err(failed);
        }
        let interface = onym_sys::netdev::interface(name)
            .map_err(|e| FaceError::BadUri(format!("dev://{name}: {e}")))?;
        let buffer = self.config.faces.udp.receive_buffer_bytes;
        let io = onym_face::EtherFace::open(&interface, mac, buffer).map_err(failed)?;
        Ok(Box::new(io))
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
