//! URIs of faces, in the canonical form that management shows, and the addresses they mean.

use crate::FaceUri;
use onym_sys::netdev;
use onym_wire::faceuri::{Endpoint, Family, Host};
use std::net::{SocketAddr, SocketAddrV6};
use std::path::Path;

/// The endpoint of a socket address, with the name of the interface as zone where it has one.
#[must_use]
pub fn endpoint(address: SocketAddr) -> Endpoint {
    let mut endpoint = Endpoint::of(address);
    if let (SocketAddr::V6(a), Host::V6(_, zone)) = (address, &mut endpoint.host)
        && a.scope_id() != 0
    {
        *zone = netdev::name_of(a.scope_id()).ok();
    }
    endpoint
}

/// The socket address of an endpoint, with the number of the interface that its zone names.
/// `None` when the host is a name, the port is missing, or there is no such interface.
#[must_use]
pub fn socket_addr(endpoint: &Endpoint) -> Option<SocketAddr> {
    let address = endpoint.socket_addr()?;
    match (address, &endpoint.host) {
        (SocketAddr::V6(a), Host::V6(_, Some(zone))) => {
            let index = netdev::interface(zone).ok()?.index;
            Some(SocketAddrV6::new(*a.ip(), a.port(), 0, index).into())
        }
        _ => Some(address),
    }
}

pub(crate) fn unix(path: &Path) -> FaceUri {
    FaceUri::Unix(path.display().to_string())
}

pub(crate) fn shm(path: &Path) -> FaceUri {
    FaceUri::Shm(path.display().to_string())
}

pub(crate) fn fd(number: i32) -> FaceUri {
    FaceUri::Fd(u64::try_from(number).unwrap_or(0))
}

pub(crate) fn udp(address: SocketAddr) -> FaceUri {
    FaceUri::Udp(endpoint(address))
}

pub(crate) fn tcp(address: SocketAddr) -> FaceUri {
    FaceUri::Tcp(endpoint(address))
}

/// Our end of a UDP face bound to an interface.
pub(crate) fn udp_dev(address: SocketAddr, interface: &str) -> FaceUri {
    let family = if address.is_ipv4() { Family::V4 } else { Family::V6 };
    FaceUri::UdpDev(family, interface.to_owned(), address.port())
}

pub(crate) fn dev(interface: &str) -> FaceUri {
    FaceUri::Dev(interface.to_owned())
}
