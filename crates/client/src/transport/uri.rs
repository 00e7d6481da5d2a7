//! The address of a node as users write it (spec/registry.md, "Node URIs").

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Address family that a URI asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Whatever the name resolves to.
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// Where a node listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeUri {
    /// `unix:///path`: a Unix stream socket.
    Unix(PathBuf),
    /// `shm:///path`: a shared-memory ring, negotiated over the Unix socket at the path.
    Shm(PathBuf),
    /// `tcp://host[:port]`, `tcp4://`, `tcp6://`.
    Tcp(Family, String, u16),
    /// `udp://host[:port]`, `udp4://`, `udp6://`.
    Udp(Family, String, u16),
    /// `ws://host[:port][/path]`.
    WebSocket(String, u16, String),
    /// `kernel://`: the kernel stack of this network namespace.
    Kernel,
}

/// Text that is no node URI.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// No `scheme://`.
    #[error(
        "`{0}` has no scheme: use unix:///path, tcp://host, udp://host, ws://host, shm:///path or kernel://"
    )]
    NoScheme(String),
    /// A scheme that no face of the client has.
    #[error(
        "scheme `{0}` is unknown: use unix, tcp, tcp4, tcp6, udp, udp4, udp6, ws, shm or kernel"
    )]
    Scheme(String),
    /// A path that is missing or relative.
    #[error("`{0}` needs an absolute path, such as unix:///run/nfd/nfd.sock")]
    Path(String),
    /// A host that is missing or malformed.
    #[error("`{0}` has no usable host: use host, host:port or [ipv6]:port")]
    Host(String),
    /// A port that is no number from 1 to 65535.
    #[error("`{0}` has no usable port: 1 to 65535")]
    Port(String),
}

/// Port of UDP and TCP nodes.
pub const PORT: u16 = 6363;
/// Port of WebSocket nodes.
pub const WEBSOCKET_PORT: u16 = 9696;

impl FromStr for NodeUri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(UriError::NoScheme(text.to_owned()));
        };
        let socket = |family, port| authority(rest, port).map(|(h, p)| (family, h, p));
        Ok(match scheme {
            "unix" => Self::Unix(path(text, rest)?),
            "shm" => Self::Shm(path(text, rest)?),
            "tcp" | "tcp4" | "tcp6" => {
                let (family, host, port) = socket(family(scheme), PORT)?;
                Self::Tcp(family, host, port)
            }
            "udp" | "udp4" | "udp6" => {
                let (family, host, port) = socket(family(scheme), PORT)?;
                Self::Udp(family, host, port)
            }
            "ws" => {
                let (at, path) = rest.split_once('/').unwrap_or((rest, ""));
                let (host, port) = authority(at, WEBSOCKET_PORT)?;
                Self::WebSocket(host, port, format!("/{path}"))
            }
            "kernel" if rest.is_empty() => Self::Kernel,
            "kernel" => return Err(UriError::Host(text.to_owned())),
            _ => return Err(UriError::Scheme(scheme.to_owned())),
        })
    }
}

fn family(scheme: &str) -> Family {
    match scheme.as_bytes().last() {
        Some(b'4') => Family::V4,
        Some(b'6') => Family::V6,
        _ => Family::Any,
    }
}

fn path(text: &str, rest: &str) -> Result<PathBuf, UriError> {
    let path = PathBuf::from(rest);
    if path.is_absolute() { Ok(path) } else { Err(UriError::Path(text.to_owned())) }
}

/// Splits `host[:port]` or `[ipv6][:port]`.
fn authority(text: &str, port: u16) -> Result<(String, u16), UriError> {
    let text = text.trim_end_matches('/');
    let (host, rest) = match text.strip_prefix('[') {
        Some(inner) => inner.split_once(']').ok_or_else(|| UriError::Host(text.to_owned()))?,
        None => text.find(':').map_or((text, ""), |at| text.split_at(at)),
    };
    if host.is_empty() || host.contains(['/', ' ']) {
        return Err(UriError::Host(text.to_owned()));
    }
    let port = match rest.strip_prefix(':') {
        None if rest.is_empty() => port,
        Some(digits) => digits
            .parse()
            .ok()
            .filter(|p| *p != 0)
            .ok_or_else(|| UriError::Port(text.to_owned()))?,
        None => return Err(UriError::Host(text.to_owned())),
    };
    Ok((host.to_owned(), port))
}

impl fmt::Display for NodeUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = |family: &Family| match family {
            Family::Any => "",
            Family::V4 => "4",
            Family::V6 => "6",
        };
        let host = |h: &str| if h.contains(':') { format!("[{h}]") } else { h.to_owned() };
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Shm(path) => write!(f, "shm://{}", path.display()),
            Self::Tcp(family, h, port) => write!(f, "tcp{}://{}:{port}", suffix(family), host(h)),
            Self::Udp(family, h, port) => write!(f, "udp{}://{}:{port}", suffix(family), host(h)),
            Self::Kernel => f.write_str("kernel://"),
            Self::WebSocket(h, port, path) => write!(f, "ws://{}:{port}{path}", host(h)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_read_with_the_default_ports_and_written_in_full() {
        for (text, full) in [
            ("unix:///run/nfd/nfd.sock", "unix:///run/nfd/nfd.sock"),
            ("shm:///run/x", "shm:///run/x"),
            ("kernel://", "kernel://"),
            ("tcp://router.example", "tcp://router.example:6363"),
            ("tcp4://192.0.2.1:7000", "tcp4://192.0.2.1:7000"),
            ("udp6://[2001:db8::1]", "udp6://[2001:db8::1]:6363"),
            ("udp://192.0.2.1/", "udp://192.0.2.1:6363"),
            ("ws://host/ndn", "ws://host:9696/ndn"),
            ("ws://host:80", "ws://host:80/"),
        ] {
            let uri: NodeUri = text.parse().unwrap();
            assert_eq!(uri.to_string(), full);
            assert_eq!(full.parse::<NodeUri>().unwrap(), uri);
        }
    }

    #[test]
    fn wrong_uris_say_what_is_wrong() {
        let error = |text: &str| text.parse::<NodeUri>().unwrap_err();
        assert!(matches!(error("/run/nfd.sock"), UriError::NoScheme(_)));
        assert!(matches!(error("quic://x"), UriError::Scheme(_)));
        assert!(matches!(error("unix://relative"), UriError::Path(_)));
        assert!(matches!(error("tcp://"), UriError::Host(_)));
        assert!(matches!(error("tcp://[::1"), UriError::Host(_)));
        assert!(matches!(error("udp://h:0"), UriError::Port(_)));
        assert!(matches!(error("udp://h:x"), UriError::Port(_)));
    }
}
