//! The addresses at which a service listens and connects: parsing, and opening their transports.

use onym_face::udp::{UdpFace, UdpListener, UdpOptions};
use onym_face::{EtherFace, EtherListener, Face, Listener, UnixListener, tcp, unix};
use onym_http::folders::Folders;
use onym_services::{FarEnd, Side};
use onym_wire::faceuri::{FaceUri, Host};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

/// Receive buffer of Ethernet sockets, in octets.
const ETHER_BUFFER: usize = 4 << 20;

/// A place to listen at: `[LABEL=]URI[,side=SIDE][,peer=PEER]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenSpec {
    /// Its name; faces are called `LABEL.NUMBER`.
    pub label: String,
    /// Where.
    pub uri: String,
    /// What lies beyond its connections.
    pub side: Side,
    /// Who connects there.
    pub far_end: FarEnd,
}

/// A face to make: `[LABEL=]URI[,side=SIDE][,peer=PEER]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FaceSpec {
    /// Its name.
    pub label: String,
    /// The far end.
    pub uri: String,
    /// What lies beyond it.
    pub side: Side,
    /// Who is there.
    pub far_end: FarEnd,
}

/// What a text of the command line says of a face or listener.
struct Parts {
    label: Option<String>,
    uri: String,
    side: Option<Side>,
    far_end: FarEnd,
}

fn split(text: &str) -> Result<Parts, String> {
    let (label, rest) = match text.split_once('=') {
        Some((label, rest)) if is_label(label) && rest.contains("://") => {
            (Some(label.to_owned()), rest)
        }
        _ => (None, text),
    };
    let is_option = |text: &str| text.starts_with("side=") || text.starts_with("peer=");
    let (mut uri, mut side, mut far_end) = (rest, None, FarEnd::Any);
    while let Some((before, option)) = uri.rsplit_once(',').filter(|(_, o)| is_option(o)) {
        match option {
            "side=consumer" => side = Some(Side::Consumer),
            "side=producer" => side = Some(Side::Producer),
            "peer=any" => far_end = FarEnd::Any,
            "peer=service" => far_end = FarEnd::Service,
            other => {
                let text = "side is consumer or producer, peer is any or service";
                return Err(format!("{other:?}: {text}"));
            }
        }
        uri = before;
    }
    if !uri.contains("://") {
        return Err(format!("{uri:?} is not a URI such as tcp4://127.0.0.1:6363"));
    }
    Ok(Parts { label, uri: uri.to_owned(), side, far_end })
}

/// Whether `text` may be a label.
#[must_use]
pub fn is_label(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    (1..=64).contains(&text.len()) && text.chars().all(fits)
}

impl std::str::FromStr for ListenSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Parts { label, uri, side, far_end } = split(text)?;
        let label = label.unwrap_or_else(|| "in".into());
        Ok(Self { label, uri, side: side.unwrap_or(Side::Consumer), far_end })
    }
}

impl std::str::FromStr for FaceSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Parts { label, uri, side, far_end } = split(text)?;
        let label = label.unwrap_or_else(|| "out".into());
        Ok(Self { label, uri, side: side.unwrap_or(Side::Producer), far_end })
    }
}

fn address(text: &str, uri: &FaceUri) -> Result<SocketAddr, String> {
    let (FaceUri::Udp(end) | FaceUri::Tcp(end)) = uri else {
        return Err(format!("{text} has no address"));
    };
    let port = end.port.unwrap_or(onym_wire::faceuri::PORT_DEFAULT);
    if let Some(ip) = end.ip() {
        return Ok(SocketAddr::new(ip, port));
    }
    let Host::Name(name) = &end.host else { return Err(format!("{text}: no such address")) };
    let found = (name.as_str(), port).to_socket_addrs();
    let mut found = found.map_err(|e| format!("{text}: looking up {name}: {e}"))?;
    found
        .find_map(|a| uri.resolved(a.ip()).map(|_| SocketAddr::new(a.ip(), port)))
        .ok_or_else(|| format!("{text}: {name} has no address of that family"))
}

/// Station (if any) and interface of `ether://[aa:bb:cc:dd:ee:ff]/eth0` or `ether://eth0`.
fn ether(text: &str) -> Option<(Option<[u8; 6]>, &str)> {
    let rest = text.strip_prefix("ether://")?;
    let Some(bracketed) = rest.strip_prefix('[') else { return Some((None, rest)) };
    let (mac, interface) = bracketed.split_once("]/")?;
    let mut octets = [0; 6];
    let mut parts = mac.split(':');
    for octet in &mut octets {
        *octet = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some((Some(octets), interface))
}

/// The path of a Unix socket.
pub(crate) fn socket(text: &str) -> Option<&Path> {
    text.strip_prefix("unix://").map(Path::new)
}

fn parse(text: &str) -> Result<FaceUri, String> {
    text.parse().map_err(|e| format!("{text:?}: {e}"))
}

/// A listener at `text`.
///
/// # Errors
/// A sentence: the address is taken, the text is wrong.
pub(crate) fn listen(text: &str) -> Result<Box<dyn Listener>, String> {
    let failed = |e: onym_face::FaceError| format!("{text}: {e}");
    if let Some((mac, name)) = ether(text) {
        if mac.is_some() {
            return Err(format!("{text}: a listener has no station; ether://interface"));
        }
        let interface = onym_sys::netdev::interface(name).map_err(|e| format!("{text}: {e}"))?;
        return Ok(Box::new(EtherListener::open(&interface, ETHER_BUFFER).map_err(failed)?));
    }
    let uri = parse(text)?;
    match &uri {
        FaceUri::Tcp(_) => {
            Ok(Box::new(tcp::TcpListener::bind(address(text, &uri)?).map_err(failed)?))
        }
        FaceUri::Udp(_) => {
            let options = UdpOptions::default();
            Ok(Box::new(UdpListener::bind(address(text, &uri)?, &options).map_err(failed)?))
        }
        FaceUri::Unix(path) => {
            // Who names a place need not be who may make folders there.
            let folder = Path::new(path).parent().filter(|folder| folder.is_dir());
            folder.ok_or_else(|| format!("{text}: there is no such folder; make it first"))?;
            Ok(Box::new(UnixListener::bind(Path::new(path)).map_err(failed)?))
        }
        _ => Err(format!("{text}: listeners are tcp4, tcp6, udp4, udp6, unix and ether")),
    }
}

/// A transport to `text`, connected or on its way to be. Host names are looked up, which may take
/// seconds: give canonical URIs to a data thread.
///
/// A Unix socket must be in one of `folders` at that moment, wherever links lead.
///
/// # Errors
/// A sentence: refused at once, or the text is wrong.
pub(crate) fn connect(text: &str, folders: &Folders) -> Result<Box<dyn Face>, String> {
    let failed = |e: onym_face::FaceError| format!("{text}: {e}");
    if let Some((mac, name)) = ether(text) {
        let mac = mac.ok_or_else(|| {
            format!("{text}: a face has a station: ether://[aa:bb:cc:dd:ee:ff]/interface")
        })?;
        let interface = onym_sys::netdev::interface(name).map_err(|e| format!("{text}: {e}"))?;
        return Ok(Box::new(EtherFace::open(&interface, mac, ETHER_BUFFER).map_err(failed)?));
    }
    let uri = parse(text)?;
    match &uri {
        FaceUri::Tcp(_) => Ok(Box::new(tcp::connect(address(text, &uri)?).map_err(failed)?)),
        FaceUri::Udp(_) => {
            let options = UdpOptions::default();
            let to = address(text, &uri)?;
            Ok(Box::new(UdpFace::connect(None, to, &options).map_err(failed)?))
        }
        FaceUri::Unix(path) => {
            let allows = |there: &Path| folders.check_found(there).map_err(|e| e.to_string());
            Ok(Box::new(unix::connect_within(Path::new(path), allows).map_err(failed)?))
        }
        _ => Err(format!("{text}: faces are tcp4, tcp6, udp4, udp6, unix and ether")),
    }
}

/// `text` with its host name looked up, so that connecting again waits for nobody.
///
/// # Errors
/// A sentence.
pub(crate) fn resolve(text: &str) -> Result<String, String> {
    if ether(text).is_some() {
        return Ok(text.to_owned());
    }
    let uri = parse(text)?;
    match &uri {
        FaceUri::Tcp(_) => Ok(FaceUri::tcp(address(text, &uri)?).to_string()),
        FaceUri::Udp(_) => Ok(FaceUri::udp(address(text, &uri)?).to_string()),
        FaceUri::Unix(_) => Ok(text.to_owned()),
        _ => Err(format!("{text}: faces are tcp4, tcp6, udp4, udp6, unix and ether")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_written_with_label_and_side() {
        let spec: ListenSpec = "producer=tcp4://127.0.0.1:0,side=producer".parse().unwrap();
        assert_eq!((spec.label.as_str(), spec.side), ("producer", Side::Producer));
        let plain: ListenSpec = "udp4://0.0.0.0:6363".parse().unwrap();
        assert_eq!((plain.label.as_str(), plain.side), ("in", Side::Consumer));
        for text in
            ["a=tcp4://x,peer=service,side=producer", "a=tcp4://x,side=producer,peer=service"]
        {
            let spec: FaceSpec = text.parse().unwrap();
            assert_eq!((spec.uri.as_str(), spec.far_end), ("tcp4://x", FarEnd::Service));
        }
        assert!("tcp4://x,peer=friend".parse::<ListenSpec>().is_err());
        assert!("tcp4://x,side=left".parse::<ListenSpec>().is_err());
        assert!("nothing".parse::<ListenSpec>().is_err());
    }

    #[test]
    fn an_ethernet_uri_has_a_station_and_an_interface() {
        let (mac, name) = ether("ether://[02:00:00:00:00:0a]/veth1").unwrap();
        assert_eq!((mac, name), (Some([2, 0, 0, 0, 0, 10]), "veth1"));
        assert_eq!(ether("ether://veth1"), Some((None, "veth1")));
        assert_eq!(ether("ether://[02:00]/veth1"), None);
    }
}
