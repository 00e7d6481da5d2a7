//! Where a face leads, and what its transport is wrapped in.

use crate::config::{Fault, Framing, StaticFace};
use onym_face::wrap::{Capture, FaultFace, Faults, Impairment, PcapFace};
use onym_face::{Face, Transport};
use onym_wire::faceuri::{FaceUri, Host};
use std::net::{IpAddr, ToSocketAddrs};
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
pub(crate) struct Shared(Arc<Mutex<Capture>>);

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Capture")
    }
}

impl Target {
    /// The target of a URI with the default options.
    pub(super) fn of(uri: FaceUri) -> Self {
        Self { uri, local: None, fault: None, capture: None, framing: Framing::Packets }
    }

    pub(super) fn transport(&self) -> Transport {
        match self.uri {
            FaceUri::Udp(_) => Transport::Udp,
            FaceUri::Ether(_) => Transport::Ether,
            FaceUri::WebSocket(..) | FaceUri::WebSocketClient(_) => Transport::WebSocket,
            FaceUri::Quic(_) => Transport::Quic,
            FaceUri::Unix(_) => Transport::Unix,
            FaceUri::Shm(_) => Transport::Shm,
            _ => Transport::Tcp,
        }
    }

    /// The target of a face of the configuration; its capture file begins anew.
    ///
    /// # Errors
    /// A sentence that names what is wrong.
    pub(super) fn of_config(face: &StaticFace) -> Result<Self, String> {
        let local = face.local.as_deref().map(str::parse::<FaceUri>).transpose();
        let capture = face.pcap.as_deref().map(|path| {
            let file = std::fs::File::create(path).map_err(|e| format!("{path}: {e}"))?;
            let out = Box::new(std::io::BufWriter::new(file));
            let capture = Capture::new(out).map_err(|e| format!("{path}: {e}"))?;
            Ok::<_, String>(Shared(Arc::new(Mutex::new(capture))))
        });
        Ok(Self {
            uri: resolve(&face.uri)?,
            local: local.map_err(|e| e.to_string())?,
            fault: face.fault.clone(),
            capture: capture.transpose()?,
            framing: face.framing,
        })
    }

    /// Wraps `io` as the target asks.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn dress(&self, io: Box<dyn Face>) -> Result<Box<dyn Face>, String> {
        let mut io = io;
        if let Some(fault) = &self.fault {
            let both = Impairment {
                loss: fault.loss,
                delay: Duration::from_secs_f64(fault.delay_ms.max(0.0) / 1000.0),
                rate_bps: (fault.rate_bytes > 0).then_some(fault.rate_bytes.saturating_mul(8)),
                ..Impairment::default()
            };
            let faults = Faults { seed: fault.seed, outgoing: both, incoming: both };
            io = Box::new(FaultFace::new(io, &faults).map_err(|e| e.to_string())?);
        }
        if let Some(Shared(capture)) = &self.capture {
            io = Box::new(PcapFace::new(io, Arc::clone(capture)));
        }
        Ok(io)
    }
}

/// The address in a URI, if it has one.
pub(super) fn ip_of(uri: &FaceUri) -> Option<IpAddr> {
    match uri {
        FaceUri::Udp(e)
        | FaceUri::Tcp(e)
        | FaceUri::WebSocket(e, _)
        | FaceUri::WebSocketClient(e)
        | FaceUri::Quic(e) => e.ip(),
        _ => None,
    }
}

/// The canonical form of `text`; host names are looked up, which may take seconds.
pub(super) fn resolve(text: &str) -> Result<FaceUri, String> {
    #[cfg(test)]
    super::work::RESOLVED.with(|count| count.set(count.get() + 1));
    let uri: FaceUri = text.parse().map_err(|e| format!("{e}"))?;
    if let Some(canonical) = uri.canonical() {
        return Ok(canonical);
    }
    let (FaceUri::Udp(end) | FaceUri::Tcp(end) | FaceUri::WebSocket(end, _) | FaceUri::Quic(end)) =
        &uri
    else {
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
