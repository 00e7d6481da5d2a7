//! Blocks of addresses: strangers that are likely one.

use crate::control::target::ip_of;
use onym_face::{Face, Peer};
use std::net::IpAddr;

/// Strangers that are likely one: a network of 24 bits of IPv4, of 56 bits of IPv6, or all stations
/// of an Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Block(u128);

impl Block {
    /// Of whom there is no address: no network has this number.
    const OTHERS: Self = Self(1);

    pub(in crate::control) fn of_peer(peer: Peer) -> Self {
        match peer {
            Peer::Udp(address) => Self::of_ip(address.ip()),
            Peer::Ether(_) => Self::OTHERS,
        }
    }

    /// The block that the other end of a transport is in.
    pub(super) fn of(io: Option<&dyn Face>) -> Self {
        let ip = io.and_then(|io| ip_of(io.remote_uri()));
        ip.map_or(Self::OTHERS, Self::of_ip)
    }

    fn of_ip(ip: IpAddr) -> Self {
        Self(match ip.to_canonical() {
            // As an IPv6 address would write it, so that no two are one.
            IpAddr::V4(ip) => u128::from(ip.to_bits() >> 8) | 0xffff << 32,
            IpAddr::V6(ip) => ip.to_bits() >> 72 << 72,
        })
    }
}

/// For whom room is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Newcomer {
    /// A stranger of this block.
    Stranger(Block),
    /// An application, or a face that was asked for.
    Own,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_network_are_one_block() {
        let block = |ip: &str| Block::of_ip(ip.parse().unwrap());
        assert_eq!(block("192.0.2.1"), block("192.0.2.200"));
        assert_eq!(block("192.0.2.1"), block("::ffff:192.0.2.9"));
        assert_ne!(block("192.0.2.1"), block("192.0.3.1"));
        assert_eq!(block("2001:db8:0:1::1"), block("2001:db8:0:ff:9::2"));
        assert_ne!(block("2001:db8:0:100::1"), block("2001:db8::1"));
        assert_ne!(block("::1"), Block::OTHERS);
    }
}
