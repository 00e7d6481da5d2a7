//! Ports of loopback for servers that are started later.

use std::io;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

/// The first port that is given.
const FIRST: u16 = 10_000;
/// Ports between the first ones of processes that were started one behind the other.
const APART: u32 = 97;
/// Where the kernel's own ports start, if it does not tell, or leaves none below them.
const OWN: u16 = 32_768;

/// So many ports of 127.0.0.1 that nobody has, neither for TCP nor for UDP.
///
/// They are below those that the kernel picks for sockets that did not ask for one: such a port
/// may be gone to any connection before the server that it is for has it. A process never gets a
/// port twice, before it has had all.
///
/// # Errors
/// [`io::ErrorKind::AddrInUse`]: there are not so many.
pub fn unused(count: usize) -> io::Result<Vec<u16>> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let own = own();
    let start = std::process::id().wrapping_mul(APART);
    let tried = (FIRST..own).map(|_| {
        let at = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        // No truncation: below the difference of two ports.
        FIRST + (at % u32::from(own - FIRST)) as u16
    });
    let ports: Vec<u16> = tried.filter(|port| is_unused(*port)).take(count).collect();
    if ports.len() < count {
        return Err(io::ErrorKind::AddrInUse.into());
    }
    Ok(ports)
}

/// The first port that the kernel picks by itself.
fn own() -> u16 {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").ok();
    let own = text.and_then(|text| text.split_whitespace().next()?.parse().ok());
    own.filter(|own| *own > FIRST).unwrap_or(OWN)
}

fn is_unused(port: u16) -> bool {
    let at = (Ipv4Addr::LOCALHOST, port);
    TcpListener::bind(at).is_ok() && UdpSocket::bind(at).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_given_once_and_none_that_somebody_has() {
        let ports = unused(50).unwrap();
        let held: Vec<_> =
            ports.iter().map(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port))).collect();
        assert!(held.iter().all(Result::is_ok));
        assert!(!is_unused(ports[0]));
        let more = unused(50).unwrap();
        assert!(more.iter().all(|port| !ports.contains(port) && (FIRST..own()).contains(port)));
        assert!(unused(usize::from(u16::MAX)).is_err());
    }
}
