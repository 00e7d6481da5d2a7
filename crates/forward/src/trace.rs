//! Which trace requests go to management: those that end at this node, at a bounded rate.
//!
//! A request whose HopLimit this node uses up is for this node (RFC 9507); management answers it.
//! Each face may ask at a rate of its own, in a table with room for so many faces, one table for
//! local faces and one for others: whoever floods takes from itself, and strangers nothing from
//! the applications of this machine. What is refused goes the way of any Interest whose HopLimit
//! is used up.

use onym_tables::{FaceId, Tick};
use onym_wire::mgmt::Scope;
use std::time::Duration;

/// Faces of each scope that trace at the same time; further ones wait until one is idle.
const FACES_MAX: usize = 32;
/// The time that a face waits for each request, on the average.
const EACH: Duration = Duration::from_millis(50);
/// The time that a face may be ahead: 20 requests at once.
const AHEAD: Duration = Duration::from_secs(1);

/// When the requests of a face are paid for.
#[derive(Debug, Clone, Copy)]
struct Account {
    face: FaceId,
    paid: Tick,
}

/// The rates at which faces may trace.
#[derive(Debug)]
pub(crate) struct Gate {
    local: Vec<Account>,
    others: Vec<Account>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        let room = || Vec::with_capacity(FACES_MAX);
        Self { local: room(), others: room() }
    }

    /// Whether `face` may ask now; it is counted when it may.
    pub(crate) fn admits(&mut self, now: Tick, face: FaceId, scope: Scope) -> bool {
        let accounts = match scope {
            Scope::Local => &mut self.local,
            Scope::NonLocal => &mut self.others,
        };
        let known = accounts.iter().position(|a| a.face == face);
        let at = match known.or_else(|| accounts.iter().position(|a| a.paid <= now)) {
            Some(at) => at,
            None if accounts.len() < FACES_MAX => {
                accounts.push(Account { face, paid: now });
                accounts.len() - 1
            }
            None => return false,
        };
        let paid = accounts[at].paid.max(now) + EACH;
        if paid.since(now) > AHEAD {
            return false;
        }
        accounts[at] = Account { face, paid };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, FaceInfo, Forwarder, Verdict};
    use onym_frame::Buf;
    use onym_link::{LpIn, Outbox, Packet};
    use onym_wire::interest::InterestBuilder;
    use onym_wire::name::Name;

    const PEER: FaceId = FaceId(300);

    /// How an Interest for `uri` ends that comes with a HopLimit.
    fn ends(fw: &mut Forwarder, uri: &str, hop_limit: u8) -> (Verdict, Vec<FaceId>) {
        let (name, mut wire) = (uri.parse::<Name>().expect("a name"), Vec::new());
        InterestBuilder {
            nonce: Some([7; 4]),
            hop_limit: Some(hop_limit),
            ..InterestBuilder::new(name.as_ref())
        }
        .write(&mut wire);
        let packet = Packet { face: PEER, bytes: Buf::copy_from(&wire), lp: LpIn::default() };
        let mut out = Outbox::default();
        let verdict = fw.receive(Tick::from_ms(1), packet, &mut out);
        (verdict, out.items.iter().map(|item| item.face).collect())
    }

    /// Law: a trace request whose HopLimit ends here goes to management, if anybody may trace; one
    /// that goes on, and everything else, goes its way.
    #[test]
    fn what_ends_here_goes_to_management() {
        let mut fw = Forwarder::new(Config::default());
        fw.face_add(PEER, FaceInfo::point_to_point());
        let refused = Verdict::NoRoute;
        assert_eq!(ends(&mut fw, "/a/1/32=traceroute", 1).0, refused, "nobody may");
        fw.set_traces(true);
        let delivered = (Verdict::Delivered, vec![FaceId::INTERNAL]);
        assert_eq!(ends(&mut fw, "/a/2/32=traceroute", 1), delivered);
        assert_eq!(ends(&mut fw, "/a/traceroute/3", 1), delivered);
        assert_eq!(ends(&mut fw, "/a/4/32=traceroute", 2).0, refused, "it goes on");
        assert_eq!(ends(&mut fw, "/a/5/32=ping", 1).0, refused);
        assert_eq!(ends(&mut fw, "/a/6", 1).0, refused);
        assert_eq!(ends(&mut fw, "/a/7/32=traceroute", 0).0, Verdict::HopLimitZero);
        for n in 0..30 {
            ends(&mut fw, &format!("/b/{n}/32=traceroute"), 1);
        }
        assert_eq!(ends(&mut fw, "/b/x/32=traceroute", 1).0, refused, "too many at once");
        fw.set_traces(false);
        assert_eq!(ends(&mut fw, "/a/8/32=traceroute", 1).0, refused);
    }

    /// Law: a face that floods takes from itself only; the rate is kept to; strangers take nothing
    /// from local faces.
    #[test]
    fn a_flood_costs_its_own_share_only() {
        let mut gate = Gate::new();
        let others = Scope::NonLocal;
        let mut admitted = 0;
        for ms in 0..10_000 {
            admitted += u32::from(gate.admits(Tick::from_ms(ms), FaceId(300), others));
        }
        assert!((200..=220).contains(&admitted), "20 a second and 20 at once: {admitted}");
        let now = Tick::from_ms(10_000);
        assert!(gate.admits(now, FaceId(301), others), "another face");
        for face in 1000..3000 {
            while gate.admits(now, FaceId(face), others) {}
        }
        assert_eq!(gate.others.len(), FACES_MAX);
        assert!(!gate.admits(now, FaceId(5000), others), "no room for one more");
        assert!(gate.admits(now, FaceId(5000), Scope::Local), "applications have their own");
        let later = now + AHEAD;
        assert!(gate.admits(later, FaceId(5000), others), "the idle give way");
        assert_eq!(gate.others.len(), FACES_MAX);
    }
}
