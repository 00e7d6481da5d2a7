//! Where a packet entered a chain of services.

use onym_forward::FaceInfo;
use onym_link::LpIn;
use onym_tables::{FaceId, HashKey};
use onym_wire::mgmt::{LinkType, Scope};
use std::num::NonZeroU64;

/// Octets of the tag that a service puts in front of a token.
pub(crate) const TAG_LEN: usize = 3;

/// Where a packet entered a chain: a number that no two faces of the chain share, and what must be
/// known of the face. The lowest four bits are its scope, its link type and a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin(pub(crate) NonZeroU64);

const LOCAL: u64 = 1;
const MULTI_ACCESS: u64 = 2;
const AD_HOC: u64 = 4;
const UNSOLICITED: u64 = 8;
/// Numbers of origins have their highest bit set; those made from tags have not.
const TAGGED: u64 = 1 << 62;

impl Origin {
    /// The content store of the chain.
    pub const STORE: Self = Self(NonZeroU64::new(16 | LOCAL).expect("it is not 0"));

    /// That of a face of this service, whose numbers `key` tells apart from those of others.
    #[must_use]
    pub fn of(key: &HashKey, id: FaceId, link: LinkType, scope: Scope) -> Self {
        let link = match link {
            LinkType::PointToPoint => 0,
            LinkType::MultiAccess => MULTI_ACCESS,
            LinkType::AdHoc => AD_HOC,
        };
        let bits = link | if scope == Scope::Local { LOCAL } else { 0 };
        let number = key.words([u64::from(id.0), 0x6f72_6967_696e]) & !0xf | bits;
        Self(NonZeroU64::new(number | 1 << 63).expect("its highest bit is set"))
    }

    /// What a packet says of its own.
    #[must_use]
    pub fn of_packet(lp: &LpIn) -> Option<Self> {
        lp.next_hop_face.map(Self)
    }

    /// That of who stands behind the tag in front of a token, as the neighbour sees it; it is not
    /// told further.
    #[must_use]
    pub fn of_tag(token: &[u8]) -> Option<Self> {
        let (tag, _) = token.split_first_chunk::<TAG_LEN>()?;
        let number = tag.iter().fold(0, |n, octet| n << 8 | u64::from(*octet));
        NonZeroU64::new(TAGGED | number << 8).map(Self)
    }

    /// Whether [`Origin::of_tag`] made it.
    #[must_use]
    pub fn is_tag(self) -> bool {
        self.0.get() >> 32 == TAGGED >> 32
    }

    /// As a table on its way writes it.
    #[must_use]
    pub fn of_number(number: u64) -> Option<Self> {
        NonZeroU64::new(number).map(Self)
    }

    /// As the control interface writes it.
    #[must_use]
    pub fn to_hex(self) -> String {
        format!("{:x}", self.0)
    }

    /// As link-layer fields carry it.
    #[must_use]
    pub fn told(self) -> NonZeroU64 {
        self.0
    }

    /// What forwarding must know of the face.
    #[must_use]
    pub fn info(self) -> FaceInfo {
        let bits = self.0.get();
        let link = match bits & (MULTI_ACCESS | AD_HOC) {
            0 => LinkType::PointToPoint,
            MULTI_ACCESS => LinkType::MultiAccess,
            _ => LinkType::AdHoc,
        };
        let scope = if bits & LOCAL == 0 { Scope::NonLocal } else { Scope::Local };
        FaceInfo { scope, link, local_fields: true }
    }

    /// The same, of a Data that nobody asked for: a cache may keep it, nobody waits for it.
    #[must_use]
    pub fn unsolicited(self) -> Self {
        Self(self.0 | UNSOLICITED)
    }

    /// Whether nobody asked for this Data.
    #[must_use]
    pub fn is_unsolicited(self) -> bool {
        self.0.get() & UNSOLICITED != 0
    }
}
