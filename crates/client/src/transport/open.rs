//! Opens the face to a node.

use super::kernel::KernelFace;
use super::uri::{Family, NodeUri};
use onym_face::udp::{UdpFace, UdpOptions};
use onym_face::{Face, FaceError, shm, tcp, unix, websocket};
use onym_link::LinkConfig;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::time::Duration;

/// How long a node may take to answer whether it gives shared memory.
const RING_PATIENCE: Duration = Duration::from_secs(3);

/// Opens a face to `uri`. Resolving a host name may take as long as the system's resolver does.
///
/// # Errors
/// [`FaceError`] when the address cannot be used or nobody listens there. A connection may
/// still be under way when this returns ([`Face::is_connecting`]).
pub fn open(uri: &NodeUri) -> Result<Box<dyn Face>, FaceError> {
    Ok(match uri {
        NodeUri::Unix(path) => Box::new(unix::connect(path)?),
        NodeUri::Tcp(family, host, port) => Box::new(tcp::connect(resolve(*family, host, *port)?)?),
        NodeUri::Udp(family, host, port) => {
            let peer = resolve(*family, host, *port)?;
            Box::new(UdpFace::connect(None, peer, &UdpOptions::default())?)
        }
        NodeUri::WebSocket(host, port, path) => {
            Box::new(websocket::connect(resolve(Family::Any, host, *port)?, path)?)
        }
        NodeUri::Kernel => Box::new(KernelFace::open()?),
        NodeUri::Shm(path) => Box::new(shm::connect_within(path, 0, RING_PATIENCE)?),
    })
}

fn resolve(family: Family, host: &str, port: u16) -> Result<SocketAddr, FaceError> {
    let unusable = |why: String| FaceError::Address { what: host.to_owned(), why };
    let found = (host, port).to_socket_addrs().map_err(|e| unusable(e.to_string()))?;
    let fits = |a: &SocketAddr| match family {
        Family::Any => true,
        Family::V4 => a.is_ipv4(),
        Family::V6 => a.is_ipv6(),
    };
    found.into_iter().find(fits).ok_or_else(|| unusable("no address of that family".into()))
}

/// How the link service runs over `face`.
#[must_use]
pub fn link_config(face: &dyn Face, first_sequence: u64) -> LinkConfig {
    let config = if face.transport().is_reliable() {
        LinkConfig::stream()
    } else {
        LinkConfig::datagram(face.mtu())
    };
    LinkConfig { first_sequence, ..config }
}
