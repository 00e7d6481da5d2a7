//! Fields that services of a chain add to packets: where the packet entered the chain, and the next
//! hops of an Interest.
//!
//! The service at which a packet enters adds its *origin*; the others pass it on. So a PIT behind the
//! dispatcher tells clients apart, sends no Nack to a link with several peers, and returns no packet
//! to where it came from.

pub use crate::origin::Origin;
use onym_frame::Buf;
use onym_link::{LpIn, LpOut};
use onym_tables::FaceId;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// Origins that an element tells apart; beyond, those that have nothing pending are forgotten, and
/// then who comes next is not told apart from its link.
const CLIENTS_MAX: usize = 16_384;
/// Next hops of one Interest that are handed on; the dearest beyond are left out.
pub(crate) const HOPS_MAX: usize = onym_wire::lp::SERVICE_NEXT_HOPS_MAX;

/// What stays with a Data or Nack while stages of this service take it to who asked.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Came {
    pub(crate) origin: Option<Origin>,
    pub(crate) no_cache: bool,
}

impl Came {
    /// Takes the fields of a chain out of a packet, which the stages have no use for.
    pub(crate) fn take(lp: &mut LpIn) -> Self {
        let origin = lp.next_hop_face.take().map(Origin);
        Self { origin, no_cache: lp.no_cache }
    }

    /// Puts them on a packet that leaves.
    pub(crate) fn put(self, lp: &mut LpOut) {
        lp.incoming_face = self.origin.map(Origin::told);
        lp.no_cache = self.no_cache;
    }
}

/// A client that stands behind a link.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    /// The face of this service.
    pub(crate) link: FaceId,
    /// Who it is.
    pub(crate) origin: Origin,
}

/// Faces for those that stand behind links: so that the stages of a forwarder treat each as a face
/// of its own. Their numbers are above those of real faces.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    known: BTreeMap<(FaceId, Origin), FaceId>,
    by_face: BTreeMap<FaceId, Client>,
    next: u32,
}

impl Clients {
    /// The face of `origin` behind `link`, and whether it was made for it; the link itself at the
    /// bound.
    pub(crate) fn face(&mut self, link: FaceId, origin: Origin) -> (FaceId, bool) {
        if let Some(face) = self.known.get(&(link, origin)) {
            return (*face, false);
        }
        if self.known.len() >= CLIENTS_MAX {
            return (link, false);
        }
        self.next = self.next.wrapping_add(1);
        let face = FaceId(1 << 31 | self.next);
        self.known.insert((link, origin), face);
        self.by_face.insert(face, Client { link, origin });
        (face, true)
    }

    /// Whether there is no room for one more.
    pub(crate) fn is_full(&self) -> bool {
        self.known.len() >= CLIENTS_MAX
    }

    /// The face that was made for `origin` behind any link.
    pub(crate) fn known(&self, origin: Origin) -> Option<FaceId> {
        self.by_face.iter().find(|(_, c)| c.origin == origin).map(|(face, _)| *face)
    }

    /// Who a face was made for.
    pub(crate) fn of(&self, face: FaceId) -> Option<Client> {
        self.by_face.get(&face).copied()
    }

    /// Forgets those that `is_over` names, and returns their faces.
    pub(crate) fn forget(&mut self, is_over: impl Fn(FaceId, Client) -> bool) -> Vec<FaceId> {
        let over = self.by_face.iter().filter(|(face, client)| is_over(**face, **client));
        let over: Vec<FaceId> = over.map(|(face, _)| *face).collect();
        for face in &over {
            if let Some(client) = self.by_face.remove(face) {
                self.known.remove(&(client.link, client.origin));
            }
        }
        over
    }
}

/// The next hops of an Interest as a name router hands them on: the components of the prefix that
/// leads to them, whether an application chose them itself, and who they are, lowest cost first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NextHops {
    /// Components of the prefix; 0 where a forwarding hint led.
    pub components: u8,
    /// An application chose: no strategy is asked.
    pub chosen: bool,
    /// The next hops with their costs.
    pub hops: Vec<(Origin, u64)>,
}

impl NextHops {
    /// Sixteen octets for each behind one of components and one of flags.
    #[must_use]
    pub fn to_octets(&self) -> Buf {
        let mut octets = vec![self.components, u8::from(self.chosen)];
        for (origin, cost) in self.hops.iter().take(HOPS_MAX) {
            octets.extend_from_slice(&origin.0.get().to_be_bytes());
            octets.extend_from_slice(&cost.to_be_bytes());
        }
        Buf::copy_from(&octets)
    }

    /// `None` for what is not in that form.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let (&[components, flags], rest) = octets.split_first_chunk()?;
        let (pairs, []) = rest.as_chunks::<16>() else { return None };
        if flags > 1 || pairs.len() > HOPS_MAX {
            return None;
        }
        let number = |octets: &[u8]| octets.iter().fold(0_u64, |n, b| n << 8 | u64::from(*b));
        let hop = |pair: &[u8; 16]| {
            let origin = NonZeroU64::new(number(&pair[..8]))?;
            Some((Origin(origin), number(&pair[8..])))
        };
        let hops = pairs.iter().map(hop).collect::<Option<Vec<_>>>()?;
        Some(Self { components, chosen: flags == 1, hops })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::{Port, Side};
    use onym_tables::HashKey;
    use onym_wire::mgmt::{LinkType, Scope};

    #[test]
    fn an_origin_says_what_forwarding_must_know_and_is_no_other_face() {
        let (key, other) = (HashKey::new(1, 2), HashKey::new(3, 4));
        let mut port = Port::new(FaceId(256), "a", Side::Consumer);
        assert_eq!(port.entrance(&key).info().scope, Scope::NonLocal);
        (port.local, port.link) = (true, LinkType::AdHoc);
        let origin = port.entrance(&key);
        assert_eq!((origin.info().scope, origin.info().link), (Scope::Local, LinkType::AdHoc));
        assert_ne!(origin, port.entrance(&other));
        assert!(origin.unsolicited().is_unsolicited() && !origin.is_unsolicited());
    }

    #[test]
    fn next_hops_are_read_as_they_were_written_and_nothing_else_is() {
        let port = Port::new(FaceId(256), "a", Side::Consumer);
        let hop = (port.entrance(&HashKey::new(1, 2)), 7);
        let all = NextHops { components: 3, chosen: true, hops: vec![hop; 3] };
        let octets = all.to_octets();
        assert_eq!(NextHops::parse(&octets), Some(all));
        for wrong in [&octets[..1], &octets[..17], &[0, 2], &[0; 18]] {
            assert_eq!(NextHops::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn clients_beyond_the_bound_are_their_link() {
        let mut clients = Clients::default();
        let origin = |n: u64| Origin(NonZeroU64::new(n << 4).unwrap());
        for n in 1..=CLIENTS_MAX as u64 {
            assert!(clients.face(FaceId(256), origin(n)).1);
        }
        assert_eq!(clients.face(FaceId(256), origin(1 << 40)), (FaceId(256), false));
        assert_eq!(clients.forget(|_, c| c.origin == origin(5)).len(), 1);
        assert!(clients.face(FaceId(256), origin(1 << 40)).1);
    }
}
