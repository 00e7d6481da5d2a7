//! Host and port of a FaceUri.

use super::PORT_MULTICAST;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Which address family a URI asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Either (`udp:`).
    Any,
    /// IPv4 (`udp4:`).
    V4,
    /// IPv6 (`udp6:`).
    V6,
}

/// The host in a URI.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address; link-local ones have the name of an interface as their zone.
    V6(Ipv6Addr, Option<String>),
    /// A name to be resolved.
    Name(String),
}

/// Host and port.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Address family asked for.
    pub family: Family,
    /// Host.
    pub host: Host,
    /// Port, when stated.
    pub port: Option<u16>,
}

impl Endpoint {
    /// The endpoint of a socket address. A zone must be added by who knows the interface's name.
    #[must_use]
    pub fn of(addr: SocketAddr) -> Self {
        Self::at(addr.ip(), Some(addr.port()))
    }

    pub(super) fn at(ip: IpAddr, port: Option<u16>) -> Self {
        match ip {
            IpAddr::V4(ip) => Self { family: Family::V4, host: Host::V4(ip), port },
            IpAddr::V6(ip) => Self { family: Family::V6, host: Host::V6(ip, None), port },
        }
    }

    /// The socket address, when host is an address and the port is known. The zone is not in it.
    #[must_use]
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        Some(SocketAddr::new(self.ip()?, self.port?))
    }

    /// The address, when host is one.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match &self.host {
            Host::V4(ip) => Some(IpAddr::V4(*ip)),
            Host::V6(ip, _) => Some(IpAddr::V6(*ip)),
            Host::Name(_) => None,
        }
    }

    pub(super) fn is_canonical(&self) -> bool {
        let family_fits = match self.host {
            Host::V4(_) => self.family == Family::V4,
            Host::V6(..) => self.family == Family::V6,
            Host::Name(_) => false,
        };
        family_fits && self.port.is_some()
    }

    pub(super) fn canonical(&self, unicast_port: u16) -> Option<Self> {
        let ip = self.ip()?;
        let family = if ip.is_ipv4() { Family::V4 } else { Family::V6 };
        if self.family != Family::Any && self.family != family {
            return None;
        }
        let default = if ip.is_multicast() { PORT_MULTICAST } else { unicast_port };
        Some(Self { family, host: self.host.clone(), port: self.port.or(Some(default)) })
    }

    pub(super) fn parse(family: Family, text: &str) -> Result<Self, &'static str> {
        const PORT: &str = "the port must be a number from 0 to 65535";
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, tail) = rest.split_once(']').ok_or("] is missing")?;
                let port = match tail.strip_prefix(':') {
                    Some(port) => Some(port),
                    None if tail.is_empty() => None,
                    None => return Err(PORT),
                };
                (parse_v6(host)?, port)
            }
            None => match text.split_once(':') {
                Some((host, port)) => (parse_host(host)?, Some(port)),
                None => (parse_host(text)?, None),
            },
        };
        let fits = match host {
            Host::V4(_) => family != Family::V6,
            Host::V6(..) => family != Family::V4,
            Host::Name(_) => true,
        };
        if !fits {
            return Err("the address belongs to the other address family");
        }
        let port = port.map(|port| port.parse().map_err(|_| PORT)).transpose()?;
        Ok(Self { family, host, port })
    }
}

fn parse_host(text: &str) -> Result<Host, &'static str> {
    if let Ok(ip) = text.parse() {
        return Ok(Host::V4(ip));
    }
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    if text.is_empty() || !text.chars().all(is_name_char) {
        return Err("a host name, an IPv4 address or an IPv6 address in [] is expected");
    }
    Ok(Host::Name(text.to_owned()))
}

fn parse_v6(text: &str) -> Result<Host, &'static str> {
    let (ip, zone) = match text.split_once('%') {
        Some((ip, zone)) => (ip, Some(zone.strip_prefix("25").unwrap_or(zone))),
        None => (text, None),
    };
    if zone.is_some_and(|zone| !is_interface(zone)) {
        return Err("expected the name of an interface after %");
    }
    let ip = ip.parse().map_err(|_| "an IPv6 address is expected in []")?;
    Ok(Host::V6(ip, zone.map(str::to_owned)))
}

pub(super) fn is_interface(text: &str) -> bool {
    !text.is_empty() && !text.contains(|c: char| "/:%[]".contains(c) || c.is_whitespace())
}

impl Endpoint {
    /// For schemes without family: the family is that of the address.
    pub(super) fn typed(mut self) -> Self {
        self.family = match self.host {
            Host::V4(_) => Family::V4,
            Host::V6(..) => Family::V6,
            Host::Name(_) => Family::Any,
        };
        self
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::V4(ip) => write!(f, "{ip}")?,
            Host::V6(ip, None) => write!(f, "[{ip}]")?,
            Host::V6(ip, Some(zone)) => write!(f, "[{ip}%{zone}]")?,
            Host::Name(name) => f.write_str(name)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}
