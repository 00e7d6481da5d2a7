//! Listeners of the configuration, opened before the node says that it is ready.

use crate::config::{Config, OneOrMany};
use onym_face::ether::{EtherFace, EtherListener};
use onym_face::udp::{Loopback, UdpListener, UdpMulticastFace};
use onym_face::websocket::{self, Gate};
use onym_face::{
    BridgedListener, Certificate, Face, FaceError, Listener, RingPolicy, UnixListener, quic,
    tcp::TcpListener,
};
use onym_sys::netdev::{self, Interface};
use rustix::io::Errno;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Addresses that the node listens at; ports asked for as 0 are known here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    /// Path of the Unix socket.
    pub unix: Option<PathBuf>,
    /// UDP addresses.
    pub udp: Vec<SocketAddr>,
    /// TCP addresses.
    pub tcp: Vec<SocketAddr>,
    /// WebSocket addresses.
    pub websocket: Vec<SocketAddr>,
    /// QUIC addresses.
    pub quic: Vec<SocketAddr>,
    /// Addresses of the HTTP server.
    pub metrics: Vec<SocketAddr>,
}

/// One listener.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) listener: Box<dyn Listener>,
    /// Its address when it is of UDP.
    pub(crate) udp: Option<SocketAddr>,
    /// Its interface when it is of Ethernet.
    pub(crate) ether: Option<String>,
}

/// Listeners and the faces that exist without a peer's doing.
#[derive(Debug, Default)]
pub(crate) struct Opened {
    pub(crate) listeners: Vec<Entry>,
    pub(crate) multicast: Vec<Box<dyn Face>>,
    pub(crate) bound: Bound,
    /// What could not be opened and is not needed.
    pub(crate) notes: Vec<String>,
}

impl Opened {
    fn push(&mut self, listener: Box<dyn Listener>) -> &mut Entry {
        self.listeners.push(Entry { listener, udp: None, ether: None });
        self.listeners.last_mut().expect("invariant: just pushed")
    }
}

/// Opens everything that `config` asks for.
///
/// # Errors
/// A sentence with the key, the address and what the system said.
pub(crate) fn open(config: &Config) -> Result<Opened, String> {
    let mut opened = Opened::default();
    open_unix(config, &mut opened)?;
    for path in onym_sys::handed::left() {
        opened.notes.push(format!(
            "the service manager holds {} open for this node, which listens elsewhere: who connects \
             there waits in vain; faces.unix.path must be the ListenStream of the socket unit",
            path.display()
        ));
    }
    open_udp(config, &mut opened)?;
    open_tcp(config, &mut opened)?;
    open_websocket(config, &mut opened)?;
    open_quic(config, &mut opened)?;
    open_multicast(config, &mut opened)?;
    open_ether(config, &mut opened)?;
    Ok(opened)
}

/// Places of the Unix socket of this user's node when the configuration says `auto`, best first
/// (spec/registry.md).
#[must_use]
pub fn unix_places() -> Vec<PathBuf> {
    let uid = rustix::process::geteuid();
    let mut places = Vec::new();
    if uid.is_root() {
        places.push(PathBuf::from("/run/nfd/nfd.sock"));
    } else if let Some(dir) = std::env::var_os("XDG_RUNTIME_DIR") {
        places.push(Path::new(&dir).join("onym/nfd.sock"));
    }
    places.push(PathBuf::from(format!("/tmp/onym-{}/nfd.sock", uid.as_raw())));
    places
}

/// What applications on the Unix socket may ask for.
fn rings(config: &Config) -> RingPolicy {
    let shm = &config.faces.shm;
    if shm.enabled { RingPolicy::new(shm.ring_bytes, shm.count_max) } else { RingPolicy::none() }
}

fn open_unix(config: &Config, opened: &mut Opened) -> Result<(), String> {
    let path = config.faces.unix.path.0.as_str();
    let places = match path {
        "" => return Ok(()),
        "auto" => unix_places(),
        _ => vec![PathBuf::from(path)],
    };
    let last = places.len() - 1;
    for (i, place) in places.iter().enumerate() {
        match UnixListener::bind_with(place, rings(config)) {
            Ok(listener) => {
                opened.bound.unix = Some(place.clone());
                opened.push(Box::new(listener));
                return Ok(());
            }
            Err(error) if i < last => opened.notes.push(format!(
                "{}: {error}; {} is used instead",
                place.display(),
                places[i + 1].display()
            )),
            Err(FaceError::InUse(_)) => {
                return Err(format!(
                    "faces.unix.path: another forwarder answers on {}; it is left alone. Stop it, \
                     or set another path",
                    place.display()
                ));
            }
            Err(error) => {
                let next = match code(&error) {
                    Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => {
                        ". This user may not write there: set a path in a folder of his own, or \"auto\""
                    }
                    _ => "",
                };
                return Err(format!("faces.unix.path: {}: {error}{next}", place.display()));
            }
        }
    }
    Ok(())
}

fn code(error: &FaceError) -> Option<Errno> {
    match error {
        FaceError::Io { source, .. } => Errno::from_io_error(source),
        _ => None,
    }
}

/// Whether a wildcard IPv6 address failed because this machine has no IPv6.
fn lacks_ipv6(address: SocketAddr, error: &FaceError) -> bool {
    address.is_ipv6()
        && address.ip().is_unspecified()
        && matches!(code(error), Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL))
}

/// The addresses of a `listen` key, which were checked.
pub(crate) fn addresses(list: &OneOrMany) -> impl Iterator<Item = SocketAddr> {
    list.0.iter().filter_map(|a| a.parse().ok())
}

/// What to say when an address cannot be listened at; nothing when it need not be.
pub(crate) fn refused(
    key: &str,
    address: SocketAddr,
    error: &FaceError,
    opened: &mut Opened,
) -> Result<(), String> {
    let text = format!("{key}: {address}: {error}");
    if lacks_ipv6(address, error) {
        opened.notes.push(text);
        return Ok(());
    }
    let next = match code(error) {
        Some(Errno::ACCESS | Errno::PERM) => {
            "Ports below 1024 are for root and CAP_NET_BIND_SERVICE: take a higher one"
        }
        Some(Errno::ADDRNOTAVAIL) => "This machine does not have that address: name one of its own",
        _ => "Stop the program that uses it",
    };
    Err(format!("{text}. {next}, or set {key} to another address or to []"))
}

fn open_udp(config: &Config, opened: &mut Opened) -> Result<(), String> {
    let options = udp_options(config);
    for address in addresses(&config.faces.udp.listen) {
        match UdpListener::bind(address, &options) {
            Ok(listener) => {
                let bound = listener.address();
                opened.bound.udp.push(bound);
                opened.push(Box::new(listener)).udp = Some(bound);
            }
            Err(error) => refused("faces.udp.listen", address, &error, opened)?,
        }
    }
    Ok(())
}

fn open_tcp(config: &Config, opened: &mut Opened) -> Result<(), String> {
    for address in addresses(&config.faces.tcp.listen) {
        match TcpListener::bind(address) {
            Ok(listener) => {
                opened.bound.tcp.push(listener.address());
                opened.push(Box::new(listener));
            }
            Err(error) => refused("faces.tcp.listen", address, &error, opened)?,
        }
    }
    Ok(())
}

/// Which pages may connect.
fn gate(config: &Config) -> Gate {
    let keys = &config.faces.websocket;
    Gate { origins: keys.origins.0.clone(), hosts: keys.hosts.0.clone(), local: keys.local }
}

/// Listens at each address of a `listen` key; what it found is `listening`.
fn open_bridged(
    key: &str,
    list: &OneOrMany,
    opened: &mut Opened,
    listening: fn(&mut Bound) -> &mut Vec<SocketAddr>,
    listen: impl Fn(SocketAddr) -> Result<BridgedListener, FaceError>,
) -> Result<(), String> {
    for address in addresses(list) {
        match listen(address) {
            Ok(listener) => {
                listening(&mut opened.bound).push(listener.address());
                opened.push(Box::new(listener));
            }
            Err(error) => refused(key, address, &error, opened)?,
        }
    }
    Ok(())
}

fn open_websocket(config: &Config, opened: &mut Opened) -> Result<(), String> {
    let (keys, gate) = (&config.faces.websocket, gate(config));
    open_bridged(
        "faces.websocket.listen",
        &keys.listen,
        opened,
        |b| &mut b.websocket,
        |address| websocket::listen(address, gate.clone(), None),
    )?;
    let (Some(certificate), Some(key)) = (&keys.tls_certificate, &keys.tls_key) else {
        return Ok(());
    };
    if keys.tls_listen.0.is_empty() {
        return Ok(());
    }
    let certificate = Certificate::load(certificate, key)
        .map_err(|e| format!("faces.websocket.tls_certificate, tls_key: {e}"))?;
    open_bridged(
        "faces.websocket.tls_listen",
        &keys.tls_listen,
        opened,
        |b| &mut b.websocket,
        |address| websocket::listen(address, gate.clone(), Some(Arc::clone(&certificate))),
    )
}

fn open_quic(config: &Config, opened: &mut Opened) -> Result<(), String> {
    let keys = &config.faces.quic;
    let (Some(certificate), Some(key)) = (&keys.certificate, &keys.key) else {
        return Ok(());
    };
    if keys.listen.0.is_empty() {
        return Ok(());
    }
    let certificate = Certificate::load_quic(certificate, key)
        .map_err(|e| format!("faces.quic.certificate, key: {e}"))?;
    open_bridged(
        "faces.quic.listen",
        &keys.listen,
        opened,
        |b| &mut b.quic,
        |address| quic::listen(address, gate(config), Arc::clone(&certificate)),
    )
}

fn open_multicast(config: &Config, opened: &mut Opened) -> Result<(), String> {
    let udp = &config.faces.udp;
    if udp.multicast.0.is_empty() {
        return Ok(());
    }
    let options = udp_options(config);
    let wanted = &udp.multicast_interfaces.0;
    let interfaces = netdev::interfaces().map_err(|e| format!("listing interfaces: {e}"))?;
    for interface in &interfaces {
        let named = wanted.contains(&interface.name);
        if !named && (!wanted.is_empty() || !interface.is_up || !interface.is_multicast) {
            continue;
        }
        for group in addresses(&udp.multicast) {
            match UdpMulticastFace::open(group, interface, &options, Loopback::Off) {
                Ok(face) => opened.multicast.push(Box::new(face)),
                Err(error) if named => {
                    return Err(format!("faces.udp.multicast_interfaces: {error}"));
                }
                Err(error) => opened.notes.push(format!("multicast: {error}")),
            }
        }
    }
    let missing = wanted.iter().find(|w| !interfaces.iter().any(|i| i.name == **w));
    missing.map_or(Ok(()), |name| {
        Err(format!("faces.udp.multicast_interfaces: there is no interface {name}"))
    })
}

/// `xx:xx:xx:xx:xx:xx`, which was checked.
fn mac(text: &str) -> [u8; 6] {
    let mut out = [0; 6];
    for (octet, part) in out.iter_mut().zip(text.split(':')) {
        *octet = u8::from_str_radix(part, 16).unwrap_or(0);
    }
    out
}

fn open_ether(config: &Config, opened: &mut Opened) -> Result<(), String> {
    let ether = &config.faces.ether;
    let buffer = config.faces.udp.receive_buffer_bytes;
    for name in &ether.interfaces.0 {
        let wrong = |e: &dyn std::fmt::Display| format!("faces.ether.interfaces: {name}: {e}");
        let interface: Interface = netdev::interface(name).map_err(|e| wrong(&e))?;
        let listener = EtherListener::open(&interface, buffer).map_err(|e| wrong(&e))?;
        opened.push(Box::new(listener)).ether = Some(name.clone());
        let group = EtherFace::open(&interface, mac(&ether.multicast), buffer);
        opened.multicast.push(Box::new(group.map_err(|e| wrong(&e))?));
    }
    Ok(())
}

/// How UDP sockets are opened.
pub(super) fn udp_options(config: &Config) -> onym_face::udp::UdpOptions {
    let udp = &config.faces.udp;
    onym_face::udp::UdpOptions {
        // What the transport can; each face is told what to use (`faces.udp.mtu`).
        mtu: onym_wire::PACKET_LEN_MAX,
        recv_buffer: udp.receive_buffer_bytes,
        send_buffer: udp.send_buffer_bytes,
        ..onym_face::udp::UdpOptions::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_cannot_listen_is_told_why_and_what_to_do() {
        let mut opened = Opened::default();
        let address = "192.0.2.1:63".parse().unwrap();
        for (code, says) in [
            (Errno::ACCESS, "Ports below 1024"),
            (Errno::ADDRNOTAVAIL, "does not have that address"),
            (Errno::ADDRINUSE, "Stop the program that uses it"),
        ] {
            let error = FaceError::Io { doing: "listening on UDP", source: code.into() };
            let said = refused("faces.udp.listen", address, &error, &mut opened).unwrap_err();
            assert!(said.contains(says) && said.contains("192.0.2.1:63"), "{said}");
        }
        let error = FaceError::Io { doing: "listening", source: Errno::ADDRNOTAVAIL.into() };
        refused("faces.udp.listen", "[::]:6363".parse().unwrap(), &error, &mut opened).unwrap();
        assert_eq!(opened.notes.len(), 1, "a machine without IPv6 has a node");
    }
}
