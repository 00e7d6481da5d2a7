//! Whom clients are told apart by.

use std::net::IpAddr;

/// Who takes of what all share: an address, of IPv6 without what a host chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Holder(IpAddr);

impl From<IpAddr> for Holder {
    fn from(of: IpAddr) -> Self {
        Self(match of.to_canonical() {
            IpAddr::V6(of) => IpAddr::V6((u128::from(of) >> 64 << 64).into()),
            of => of,
        })
    }
}
