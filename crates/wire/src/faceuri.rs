//! FaceUri: where a face leads, as text.

mod endpoint;
#[cfg(test)]
mod tests;

pub use endpoint::{Endpoint, Family, Host};

use endpoint::is_interface;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use thiserror::Error;

/// UDP and TCP port of unicast faces.
pub const PORT_DEFAULT: u16 = 6363;
/// UDP port of multicast faces.
pub const PORT_MULTICAST: u16 = 56363;
/// Port of WebSocket faces.
pub const PORT_WEBSOCKET: u16 = 9696;
/// UDP port of QUIC faces.
pub const PORT_QUIC: u16 = 6367;

/// Why a text is not a FaceUri.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text:?} is not a face URI: {why}")]
pub struct FaceUriError {
    /// The text.
    pub text: String,
    /// What is wrong or expected.
    pub why: &'static str,
}

/// Where a face leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FaceUri {
    /// `udp4://1.2.3.4:6363`, `udp6://[fe80::1%eth0]:6363`, `udp://host`.
    Udp(Endpoint),
    /// `tcp4://1.2.3.4:6363`, `tcp6://…`, `tcp://host`.
    Tcp(Endpoint),
    /// `ws://host:9696/path`: a WebSocket server.
    WebSocket(Endpoint, String),
    /// `wsclient://1.2.3.4:5678`: a WebSocket client that connected.
    WebSocketClient(Endpoint),
    /// `quic://1.2.3.4:6367`: datagrams of QUIC, of a node or a browser.
    Quic(Endpoint),
    /// `unix:///path`: a Unix stream socket.
    Unix(String),
    /// `shm:///path`: a shared-memory ring negotiated over the Unix socket at this path.
    Shm(String),
    /// `fd://7`: an accepted Unix connection.
    Fd(u64),
    /// `ether://[08:00:27:01:01:01]`: an Ethernet address.
    Ether([u8; 6]),
    /// `dev://eth0`: an interface.
    Dev(String),
    /// `udp4+dev://eth0:6363`: a UDP socket bound to an interface.
    UdpDev(Family, String, u16),
    /// `internal://`: management.
    Internal,
    /// `null://`: nowhere.
    Null,
    /// `contentstore://`.
    ContentStore,
    /// Another scheme, and what follows `://`.
    Other(String, String),
}

fn parse_ether(text: &str) -> Option<[u8; 6]> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let mut address = [0; 6];
    let mut parts = inner.split(':');
    for octet in &mut address {
        let part = parts.next().filter(|part| part.len() == 2)?;
        *octet = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(address)
}

impl FaceUri {
    /// The URI of a UDP address.
    #[must_use]
    pub fn udp(addr: SocketAddr) -> Self {
        Self::Udp(Endpoint::of(addr))
    }

    /// The URI of a TCP address.
    #[must_use]
    pub fn tcp(addr: SocketAddr) -> Self {
        Self::Tcp(Endpoint::of(addr))
    }

    /// Reads a URI that must be canonical and written as this crate writes it.
    ///
    /// # Errors
    /// [`FaceUriError`].
    pub fn parse_canonical(text: &str) -> Result<Self, FaceUriError> {
        let uri: Self = text.parse()?;
        if uri.is_canonical() && uri.to_string() == text {
            return Ok(uri);
        }
        let why = "it is not canonical (an address of the scheme's family and a port are needed)";
        Err(FaceUriError { text: text.to_owned(), why })
    }

    /// Whether management accepts the URI: nothing is left to resolve or to fill in.
    #[must_use]
    pub fn is_canonical(&self) -> bool {
        match self {
            Self::Tcp(end) => end.is_canonical() && !end.ip().is_some_and(|ip| ip.is_multicast()),
            Self::Udp(end)
            | Self::WebSocket(end, _)
            | Self::WebSocketClient(end)
            | Self::Quic(end) => end.is_canonical(),
            Self::Other(..) => false,
            _ => true,
        }
    }

    /// The canonical form, when the host is an address: family and default port filled in.
    #[must_use]
    pub fn canonical(&self) -> Option<Self> {
        Some(match self {
            Self::Udp(end) => Self::Udp(end.canonical(PORT_DEFAULT)?),
            Self::Tcp(end) => Self::Tcp(end.canonical(PORT_DEFAULT)?),
            Self::WebSocket(end, path) => {
                Self::WebSocket(end.canonical(PORT_WEBSOCKET)?, path.clone())
            }
            Self::WebSocketClient(end) => Self::WebSocketClient(end.canonical(PORT_WEBSOCKET)?),
            Self::Quic(end) => Self::Quic(end.canonical(PORT_QUIC)?),
            Self::Other(..) => return None,
            other => other.clone(),
        })
        .filter(Self::is_canonical)
    }

    /// The canonical form after the host name was resolved to `ip`.
    #[must_use]
    pub fn resolved(&self, ip: IpAddr) -> Option<Self> {
        let at = |end: &Endpoint| {
            let resolved = Endpoint::at(ip, end.port);
            let fits = end.family == Family::Any || end.family == resolved.family;
            fits.then_some(resolved)
        };
        match self {
            Self::Udp(end) => Self::Udp(at(end)?).canonical(),
            Self::Tcp(end) => Self::Tcp(at(end)?).canonical(),
            Self::WebSocket(end, path) => Self::WebSocket(at(end)?, path.clone()).canonical(),
            Self::Quic(end) => Self::Quic(at(end)?).canonical(),
            _ => self.canonical(),
        }
    }

    /// The part before `://`.
    #[must_use]
    pub fn scheme(&self) -> &str {
        const fn by_family(family: Family, names: [&'static str; 3]) -> &'static str {
            let [any, v4, v6] = names;
            match family {
                Family::Any => any,
                Family::V4 => v4,
                Family::V6 => v6,
            }
        }
        match self {
            Self::Udp(end) => by_family(end.family, ["udp", "udp4", "udp6"]),
            Self::Tcp(end) => by_family(end.family, ["tcp", "tcp4", "tcp6"]),
            Self::WebSocket(..) => "ws",
            Self::WebSocketClient(_) => "wsclient",
            Self::Quic(_) => "quic",
            Self::Unix(_) => "unix",
            Self::Shm(_) => "shm",
            Self::Fd(_) => "fd",
            Self::Ether(_) => "ether",
            Self::Dev(_) => "dev",
            Self::UdpDev(family, ..) => by_family(*family, ["udp+dev", "udp4+dev", "udp6+dev"]),
            Self::Internal => "internal",
            Self::Null => "null",
            Self::ContentStore => "contentstore",
            Self::Other(scheme, _) => scheme,
        }
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = text.split_once("://").ok_or("scheme:// is missing")?;
        let bare = rest.strip_suffix('/').unwrap_or(rest);
        let path = || {
            let is_absolute = rest.starts_with('/') && rest.len() > 1;
            is_absolute.then(|| rest.to_owned()).ok_or("an absolute path is expected behind //")
        };
        let special = |uri| if rest.is_empty() { Ok(uri) } else { Err("nothing may follow //") };
        Ok(match scheme {
            "udp" => Self::Udp(Endpoint::parse(Family::Any, bare)?),
            "udp4" => Self::Udp(Endpoint::parse(Family::V4, bare)?),
            "udp6" => Self::Udp(Endpoint::parse(Family::V6, bare)?),
            "tcp" => Self::Tcp(Endpoint::parse(Family::Any, bare)?),
            "tcp4" => Self::Tcp(Endpoint::parse(Family::V4, bare)?),
            "tcp6" => Self::Tcp(Endpoint::parse(Family::V6, bare)?),
            "ws" => Self::parse_websocket(rest)?,
            "wsclient" => Self::WebSocketClient(Endpoint::parse(Family::Any, bare)?.typed()),
            "quic" => Self::Quic(Endpoint::parse(Family::Any, bare)?.typed()),
            "unix" => Self::Unix(path()?),
            "shm" => Self::Shm(path()?),
            "fd" => Self::Fd(rest.parse().map_err(|_| "a number is expected behind //")?),
            "ether" => {
                Self::Ether(parse_ether(rest).ok_or("[aa:bb:cc:dd:ee:ff] is expected behind //")?)
            }
            "dev" if is_interface(rest) => Self::Dev(rest.to_owned()),
            "dev" => return Err("the name of an interface is expected behind //"),
            "udp4+dev" => Self::parse_udp_dev(Family::V4, rest)?,
            "udp6+dev" => Self::parse_udp_dev(Family::V6, rest)?,
            "internal" => special(Self::Internal)?,
            "null" => special(Self::Null)?,
            "contentstore" => special(Self::ContentStore)?,
            "" => return Err("scheme:// is missing"),
            _ => Self::Other(scheme.to_owned(), rest.to_owned()),
        })
    }

    fn parse_websocket(rest: &str) -> Result<Self, &'static str> {
        let at = rest.find('/').unwrap_or(rest.len());
        let (host, path) = rest.split_at_checked(at).ok_or("a host is expected behind //")?;
        let path = if path == "/" { "" } else { path };
        Ok(Self::WebSocket(Endpoint::parse(Family::Any, host)?.typed(), path.to_owned()))
    }

    fn parse_udp_dev(family: Family, rest: &str) -> Result<Self, &'static str> {
        const WHY: &str = "interface:port is expected behind //";
        let (dev, port) = rest.rsplit_once(':').ok_or(WHY)?;
        if !is_interface(dev) {
            return Err(WHY);
        }
        Ok(Self::UdpDev(family, dev.to_owned(), port.parse().map_err(|_| WHY)?))
    }
}

impl FromStr for FaceUri {
    type Err = FaceUriError;

    fn from_str(text: &str) -> Result<Self, FaceUriError> {
        Self::parse(text).map_err(|why| FaceUriError { text: text.to_owned(), why })
    }
}

impl fmt::Display for FaceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme())?;
        match self {
            Self::Udp(end) | Self::Tcp(end) | Self::WebSocketClient(end) | Self::Quic(end) => {
                write!(f, "{end}")
            }
            Self::WebSocket(end, path) => write!(f, "{end}{path}"),
            Self::Unix(path) | Self::Shm(path) => f.write_str(path),
            Self::Fd(n) => write!(f, "{n}"),
            Self::Ether([a, b, c, d, e, g]) => {
                write!(f, "[{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}]")
            }
            Self::Dev(dev) => f.write_str(dev),
            Self::UdpDev(_, dev, port) => write!(f, "{dev}:{port}"),
            Self::Internal | Self::Null | Self::ContentStore => Ok(()),
            Self::Other(_, rest) => f.write_str(rest),
        }
    }
}
