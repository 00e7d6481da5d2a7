//! Links with several peers: which faces they are, where this node is reached on them, and what
//! addresses of others can be on them.

use onym_sys::netdev::Interface;
use onym_wire::faceuri::{Endpoint, FaceUri, Family, Host};
use onym_wire::mgmt::{ChannelStatus, FaceStatus, LinkType};
use std::net::IpAddr;

/// Links looked at, at most.
const LANS_MAX: usize = 32;

/// How a unicast face to a neighbour there is made. The first is preferred: a face of Ethernet is there
/// because somebody asked for it, and IPv6 needs no addresses to be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Ether,
    Udp6,
    Udp4,
}

/// A link with several peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lan {
    /// The multicast face.
    pub(crate) face: u64,
    pub(crate) kind: Kind,
    pub(crate) interface: Interface,
    /// Where this node is reached there; none when it does not listen there.
    pub(crate) reach: Option<FaceUri>,
}

/// The links of a forwarder on this machine.
pub(crate) fn lans(
    faces: &[FaceStatus],
    channels: &[ChannelStatus],
    interfaces: &[Interface],
) -> Vec<Lan> {
    let multi = faces.iter().filter(|face| face.link_type != LinkType::PointToPoint);
    multi.filter_map(|face| lan(face, channels, interfaces)).take(LANS_MAX).collect()
}

fn lan(face: &FaceStatus, channels: &[ChannelStatus], interfaces: &[Interface]) -> Option<Lan> {
    let named = |name: &str| interfaces.iter().find(|i| i.name == name);
    let (kind, interface) = match face.local_uri.parse().ok()? {
        FaceUri::Dev(name) => (Kind::Ether, named(&name)?),
        FaceUri::UdpDev(Family::V6, name, _) => (Kind::Udp6, named(&name)?),
        FaceUri::UdpDev(_, name, _) => (Kind::Udp4, named(&name)?),
        // Older forwarders tell the address.
        FaceUri::Udp(end) => {
            let ip = end.ip()?;
            let kind = if ip.is_ipv6() { Kind::Udp6 } else { Kind::Udp4 };
            (kind, interfaces.iter().find(|i| i.addresses.contains(&ip))?)
        }
        _ => return None,
    };
    let reach = match kind {
        Kind::Ether => interface.mac.map(FaceUri::Ether),
        Kind::Udp4 => {
            interface.addresses.iter().filter(|a| a.is_ipv4()).find_map(|a| at(*a, channels))
        }
        Kind::Udp6 => {
            interface.addresses.iter().filter(|a| is_link_local(**a)).find_map(|a| at(*a, channels))
        }
    };
    Some(Lan { face: face.face_id, kind, interface: interface.clone(), reach })
}

fn is_link_local(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}

/// The URI of `ip` with the port of a UDP listener that hears it.
fn at(ip: IpAddr, channels: &[ChannelStatus]) -> Option<FaceUri> {
    let port = channels.iter().find_map(|channel| {
        let FaceUri::Udp(end) = channel.local_uri.parse().ok()? else { return None };
        let listens = end.ip()?;
        let hears =
            listens == ip || (listens.is_unspecified() && listens.is_ipv4() == ip.is_ipv4());
        end.port.filter(|_| hears)
    })?;
    Some(FaceUri::udp((ip, port).into()))
}

/// A unicast face that could be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Way {
    pub(crate) kind: Kind,
    pub(crate) uri: String,
    pub(crate) local: Option<String>,
}

impl Lan {
    /// The way to somebody who says to be reached at `reach`: the first address that can be on this
    /// link, so that nobody is sent to other networks.
    pub(crate) fn way(&self, reach: &[FaceUri]) -> Option<Way> {
        reach.iter().find_map(|uri| self.way_to(uri))
    }

    fn way_to(&self, uri: &FaceUri) -> Option<Way> {
        let kind = self.kind;
        match (kind, uri) {
            (Kind::Ether, FaceUri::Ether(mac)) => {
                let own = self.interface.mac == Some(*mac);
                let local = Some(FaceUri::Dev(self.interface.name.clone()).to_string());
                (mac[0] & 1 == 0 && !own).then(|| Way { kind, uri: uri.to_string(), local })
            }
            (Kind::Udp4 | Kind::Udp6, FaceUri::Udp(end)) => {
                let (ip, port) = (end.ip()?, end.port.filter(|port| *port != 0)?);
                let own = self.interface.addresses.contains(&ip);
                let fits = match kind {
                    Kind::Udp6 => is_link_local(ip),
                    _ => ip.is_ipv4() && self.interface.has_on_link(ip),
                };
                if own || !fits {
                    return None;
                }
                let host = match ip {
                    // A scope is known by its own machine only: it is that of the interface here.
                    IpAddr::V6(ip) => Host::V6(ip, Some(self.interface.name.clone())),
                    IpAddr::V4(ip) => Host::V4(ip),
                };
                let family = if ip.is_ipv6() { Family::V6 } else { Family::V4 };
                let uri = FaceUri::Udp(Endpoint { family, host, port: Some(port) });
                Some(Way { kind, uri: uri.to_string(), local: None })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use onym_wire::mgmt::{Persistency, Scope};

    fn face(id: u64, local: &str) -> FaceStatus {
        FaceStatus {
            face_id: id,
            local_uri: local.to_owned(),
            link_type: LinkType::MultiAccess,
            face_scope: Scope::NonLocal,
            face_persistency: Persistency::Permanent,
            ..FaceStatus::default()
        }
    }

    pub(crate) fn interface() -> Interface {
        Interface {
            name: "eth0".into(),
            index: 2,
            mac: Some([2, 0, 0, 0, 0, 1]),
            addresses: vec!["192.0.2.1".parse().unwrap(), "fe80::1".parse().unwrap()],
            prefixes: vec![24, 64],
            ..Interface::default()
        }
    }

    fn channels() -> Vec<ChannelStatus> {
        let channel = |uri: &str| ChannelStatus { local_uri: uri.into() };
        vec![
            channel("tcp4://0.0.0.0:1"),
            channel("udp4://0.0.0.0:6363"),
            channel("udp6://[::]:6364"),
        ]
    }

    fn all() -> Vec<Lan> {
        let faces = [
            face(300, "dev://eth0"),
            face(301, "udp6+dev://eth0:56363"),
            face(302, "udp4+dev://eth0:56363"),
            face(303, "udp4://192.0.2.1:56363"),
            face(304, "udp4+dev://other:56363"),
        ];
        lans(&faces, &channels(), &[interface()])
    }

    #[test]
    fn multicast_faces_become_links_with_the_addresses_to_be_reached_at() {
        let found = all();
        let shown: Vec<_> =
            found.iter().map(|l| (l.face, l.kind, l.reach.as_ref().unwrap().to_string())).collect();
        assert_eq!(
            shown,
            [
                (300, Kind::Ether, "ether://[02:00:00:00:00:01]".to_owned()),
                (301, Kind::Udp6, "udp6://[fe80::1]:6364".to_owned()),
                (302, Kind::Udp4, "udp4://192.0.2.1:6363".to_owned()),
                (303, Kind::Udp4, "udp4://192.0.2.1:6363".to_owned()),
            ]
        );
        let none = lans(&[face(302, "udp4+dev://eth0:1")], &[], &[interface()]);
        assert_eq!(none[0].reach, None, "nothing listens");
    }

    #[test]
    fn only_addresses_on_the_link_are_taken_and_ipv6_gets_the_scope_of_here() {
        let found = all();
        let way = |lan: &Lan, uri: &str| lan.way(&[uri.parse().unwrap()]).map(|way| way.uri);
        let (ether, v6, v4) = (&found[0], &found[1], &found[2]);
        assert_eq!(way(v4, "udp4://192.0.2.9:6363").as_deref(), Some("udp4://192.0.2.9:6363"));
        assert_eq!(way(v4, "udp4://198.51.100.9:6363"), None, "elsewhere");
        assert_eq!(way(v4, "udp4://192.0.2.1:6363"), None, "ourselves");
        assert_eq!(way(v6, "udp6://[fe80::9]:7").as_deref(), Some("udp6://[fe80::9%eth0]:7"));
        assert_eq!(way(v6, "udp6://[fe80::9%wlan3]:7").as_deref(), Some("udp6://[fe80::9%eth0]:7"));
        assert_eq!(way(v6, "udp6://[2001:db8::9]:7"), None, "not of the link");
        assert_eq!(way(v6, "tcp6://[fe80::9]:7"), None);
        assert_eq!(way(ether, "ether://[03:00:00:00:00:02]"), None, "a group");
        let made = ether.way(&["ether://[02:00:00:00:00:02]".parse().unwrap()]).unwrap();
        assert_eq!(made.local.as_deref(), Some("dev://eth0"));
    }
}
