//! Subnets, for deciding which TCP peers are local.

use onym_wire::mgmt::Scope;
use std::net::IpAddr;

/// `address/length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subnet {
    network: u128,
    mask: u128,
    v4: bool,
}

impl Subnet {
    /// Reads `192.0.2.0/24` or `2001:db8::/32`.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let (bits, v4) = bits_of(address.parse().ok()?);
        let length: u32 = length.parse().ok()?;
        let width = if v4 { 32 } else { 128 };
        if length > width {
            return None;
        }
        let mask = if length == 0 { 0 } else { u128::MAX << (width - length) };
        Some(Self { network: bits & mask, mask, v4 })
    }

    /// Whether `address` is in it.
    #[must_use]
    #[allow(dead_code)] // Asked by the control thread.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        let (bits, v4) = bits_of(address.to_canonical());
        v4 == self.v4 && bits & self.mask == self.network
    }
}

/// Whether a face is among `peers`: `local`, `any` and subnets, as the configuration has them.
pub(crate) fn includes(peers: &[String], scope: Scope, address: Option<IpAddr>) -> bool {
    peers.iter().any(|peer| match peer.as_str() {
        "any" => true,
        "local" => scope == Scope::Local,
        subnet => {
            let net = Subnet::parse(subnet);
            net.zip(address).is_some_and(|(net, address)| net.contains(address))
        }
    })
}

fn bits_of(address: IpAddr) -> (u128, bool) {
    match address {
        IpAddr::V4(a) => (u32::from(a).into(), true),
        IpAddr::V6(a) => (a.into(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subnet_holds_its_addresses_only() {
        let net = Subnet::parse("127.0.0.0/8").unwrap();
        assert!(net.contains("127.9.9.9".parse().unwrap()));
        assert!(net.contains("::ffff:127.0.0.1".parse().unwrap()));
        assert!(!net.contains("128.0.0.1".parse().unwrap()));
        assert!(!net.contains("::1".parse().unwrap()));
        assert!(Subnet::parse("::1/128").unwrap().contains("::1".parse().unwrap()));
        assert!(Subnet::parse("0.0.0.0/0").unwrap().contains("9.9.9.9".parse().unwrap()));
        assert_eq!((Subnet::parse("1.2.3.4/33"), Subnet::parse("x/3")), (None, None));
    }
}
