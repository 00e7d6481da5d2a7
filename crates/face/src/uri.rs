//! URIs of faces, in the canonical form that management shows.

use crate::FaceUri;
use std::net::SocketAddr;
use std::path::Path;

fn parse(text: &str) -> FaceUri {
    text.parse().expect("invariant: the faces write canonical URIs")
}

fn with_port(scheme: &str, address: SocketAddr) -> FaceUri {
    let version = if address.is_ipv4() { 4 } else { 6 };
    parse(&format!("{scheme}{version}://{address}"))
}

pub(crate) fn unix(path: &Path) -> FaceUri {
    parse(&format!("unix://{}", path.display()))
}

pub(crate) fn fd(number: i32) -> FaceUri {
    parse(&format!("fd://{number}"))
}

pub(crate) fn internal() -> FaceUri {
    parse("internal://")
}

pub(crate) fn udp(address: SocketAddr) -> FaceUri {
    with_port("udp", address)
}

pub(crate) fn tcp(address: SocketAddr) -> FaceUri {
    with_port("tcp", address)
}
