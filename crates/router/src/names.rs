//! Neighbours that are named by their host: a thread looks the names up, again and again.

use crate::meet::lan::{Kind, Way};
use onym_route::Link;
use onym_wire::faceuri::{FaceUri, Host as UriHost};
use std::net::ToSocketAddrs as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

/// A name that was never found is looked up again after this time.
const SOON: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(100);
/// Addresses of a host, at most; further ones are not tried.
const WAYS_MAX: usize = 4;

/// A neighbour that is named by its host.
#[derive(Debug, Clone)]
pub(crate) struct Host {
    pub(crate) link: Link,
    uri: FaceUri,
    name: String,
}

/// Where a host is now.
#[derive(Debug)]
pub(crate) struct Found {
    /// Of [`Host`]s.
    pub(crate) index: usize,
    pub(crate) ways: Vec<Way>,
}

/// Neighbours that are named by their hosts, and those with an address.
pub(crate) fn split(links: Vec<Link>) -> (Vec<Host>, Vec<Link>) {
    let mut hosts = Vec::new();
    let mut rest = Vec::new();
    for link in links {
        match host(&link) {
            Some(host) => hosts.push(host),
            None => rest.push(link),
        }
    }
    (hosts, rest)
}

fn host(link: &Link) -> Option<Host> {
    let uri: FaceUri = link.uri.parse().ok()?;
    let (FaceUri::Udp(end) | FaceUri::Tcp(end)) = &uri else { return None };
    let UriHost::Name(name) = &end.host else { return None };
    let name = name.clone();
    Some(Host { link: link.clone(), uri, name })
}

/// Looks the hosts up until `is_over`, and tells what it finds. What cannot be looked up stays as it is.
pub(crate) fn follow(
    hosts: Vec<Host>,
    every: Duration,
    is_over: Arc<AtomicBool>,
) -> std::io::Result<Receiver<Found>> {
    let (found, out) = mpsc::sync_channel(hosts.len());
    let thread = std::thread::Builder::new().name("route-names".into());
    thread.spawn(move || {
        let mut known = vec![false; hosts.len()];
        while !is_over.load(Ordering::Relaxed) {
            for (index, host) in hosts.iter().enumerate() {
                let ways = match (host.name.as_str(), 0).to_socket_addrs() {
                    Ok(addresses) => ways(host, addresses.map(|address| address.ip())),
                    Err(error) => {
                        let name = &host.name;
                        tracing::warn!(target: "onym::route", "{name} cannot be looked up: {error}");
                        Vec::new()
                    }
                };
                if let Some(known) = known.get_mut(index) {
                    *known |= !ways.is_empty();
                }
                if !ways.is_empty() && found.send(Found { index, ways }).is_err() {
                    return;
                }
            }
            let wait = if known.iter().all(|known| *known) { every } else { SOON.min(every) };
            let until = Instant::now() + wait;
            while Instant::now() < until && !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(STEP);
            }
        }
    })?;
    Ok(out)
}

fn ways(host: &Host, addresses: impl Iterator<Item = std::net::IpAddr>) -> Vec<Way> {
    let way = |ip: std::net::IpAddr| {
        let kind = if ip.is_ipv6() { Kind::Udp6 } else { Kind::Udp4 };
        let uri = host.uri.resolved(ip)?.to_string();
        Some(Way { kind, uri, local: None })
    };
    let mut ways: Vec<Way> = Vec::new();
    for way in addresses.filter_map(way) {
        if ways.len() < WAYS_MAX && !ways.contains(&way) {
            ways.push(way);
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_from_addresses_and_all_families_of_a_scheme_are_tried() {
        let link = |uri: &str| Link { uri: uri.into(), mtu: None, cost: 1 };
        let uris = ["udp4://192.0.2.1:6363", "udp://b.example:7", "ether://[02:00:00:00:00:01]"];
        let (hosts, rest) = split(uris.into_iter().map(link).collect());
        assert_eq!((hosts.len(), rest.len()), (1, 2));
        let ips = ["2001:db8::1", "192.0.2.1", "192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
        let found = ways(&hosts[0], ips.into_iter().map(|ip| ip.parse().unwrap()));
        let uris: Vec<&str> = found.iter().map(|way| way.uri.as_str()).collect();
        let expected = ["udp6://[2001:db8::1]:7", "udp4://192.0.2.1:7", "udp4://192.0.2.2:7"];
        assert_eq!((&uris[..3], uris.len()), (&expected[..], WAYS_MAX));
        let four = split(vec![link("udp4://b.example")]).0;
        let found = ways(&four[0], ips.into_iter().map(|ip| ip.parse().unwrap()));
        assert!(found.iter().all(|way| way.uri.starts_with("udp4://")), "{found:?}");
    }
}
