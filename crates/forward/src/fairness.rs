//! What pending Interests cost, attributed to the face that causes it; shares that bind under
//! contention only.
//!
//! The measure is Little's law: the time that answered Interests waited, per second, is the number
//! of them that were pending on average. That is what a face *uses*; what it has pending beyond is
//! not being answered. Under contention a face may have pending four times what it uses, and
//! always [`FREE`]: a flow that starts grows fourfold each window, at any round-trip time, while
//! Interests for names that do not exist never earn anything.
//!
//! * PIT: beyond three quarters of its limit, a face that holds more than its share (the limit
//!   divided by the faces in use and a newcomer) gives one of its own up for every new one, if one
//!   is overdue: pending for four times as long as its answers take. Else the new one is refused:
//!   `pit_share`. So a flood that came over the same face before, through another router, keeps
//!   nobody out, and nothing that will be answered gives way.
//! * Octets of the PIT: the same beyond three quarters of their limit, with what the long Interests of
//!   a face hold ([`LONG_LEN`] and more octets each; shorter ones are bound by their number).
//! * Turns: a face has shorter ones the more it has pending beyond what it uses, and the more steps
//!   its searches of the content store, the copies of its Interests for several upstreams and what it
//!   asks of management take (`STEPS_FREE` of a window are free). Nothing else costs more for each of
//!   its octets than receiving them does: `tests/doors/attacks.py dearest`.
//! * Upstream: when it has more pending than four times what it answers, and several downstreams are
//!   in use, those with more than they earn are refused: `congestion`.
//!
//! `Config::fairness` turns both off, and with them the weights of turns; the limits stay.
//!
//! A flow alone on the node is bound by nothing but three quarters of the PIT.

pub(crate) mod load;

pub(crate) use load::Window;
pub use load::{FREE, Load, UPSTREAM_FREE};

use crate::Forwarder;
use crate::faces::Face;
use crate::stage::Pending;
use onym_tables::{FaceId, Tick, pit};
use std::time::Duration;

/// How often use is averaged, in nanoseconds: 100 ms.
const WINDOW_NS: u64 = 100_000_000;

/// An Interest is overdue after so many times what its face's answers took, on the average of the
/// slowest recent window.
const PATIENCE: u64 = 4;

/// It never is before 100 ms, and this is how long a face may wait that was never answered: 1 s, the
/// timeout that RFC 6298 starts with.
const PATIENCE_MIN: Duration = Duration::from_millis(100);
const PATIENCE_FIRST: Duration = Duration::from_secs(1);

/// Octets from which on an Interest is charged to the face that brought it first, for as long as it
/// is pending.
pub const LONG_LEN: usize = 513;

/// Steps of searches that one window has room for before they shorten a face's turns: some 8 ns
/// each, so a twelfth of the window. Shared by the downstreams in use.
const STEPS_FREE: u64 = 1 << 20;

/// Steps that one more upstream of an Interest costs: an out-record, a frame, and a share of the
/// system call that sends it, some 400 ns.
const COPY_STEPS: u32 = 48;

/// Steps that a question or a command to the management of this node costs beyond receiving it, most
/// of it in the control thread: some 8 µs.
const MANAGEMENT_STEPS: u32 = 1024;

/// Turns of a face that uses what it has pending.
pub const WEIGHT_MAX: u32 = 16;

/// Closes the window when its time is over.
#[inline]
pub(crate) fn tick(pending: &mut Pending, now: Tick) {
    if now.0 >= pending.window.started.0 + WINDOW_NS {
        roll(pending, now);
    }
}

#[cold]
fn roll(pending: &mut Pending, now: Tick) {
    let elapsed_ns = (now.0 - pending.window.started.0).max(1);
    pending.window.in_use = pending.faces.roll(|load, satisfied| load.roll(elapsed_ns, satisfied));
    pending.window.started = now;
}

/// Whether a new pending Interest of `face` would take more than its share of a contended PIT.
#[inline]
pub(crate) fn is_over_pit_share(pending: &Pending, face: FaceId) -> bool {
    pending.pit.is_nearly_full() && exceeds_share(pending, face)
}

#[cold]
fn exceeds_share(pending: &Pending, face: FaceId) -> bool {
    let Some(face) = pending.faces.get(face).filter(|_| pending.config.fairness) else {
        return false;
    };
    let (pit, load) = (&pending.pit, &face.load);
    // One more than those in use: room for who comes next.
    let share = |limit: usize| limit as u64 / (pending.window.in_use.max(1) + 1);
    let over =
        |used: usize, limit: usize, own: u64| used >= pit::nearly(limit) && own >= share(limit);
    over(pit.len(), pit.entries_max(), u64::from(load.pending))
        || over(pit.octets(), pit.octets_max(), load.long_octets)
}

/// Charges the long Interest in `slot` to the face that brought it.
#[cold]
pub(crate) fn charge(pending: &mut Pending, slot: u32, face: FaceId) {
    let octets = pending.pit.interest(slot).len() as u64;
    pending.pit.entry_mut(slot).noted.get_or_insert_default().charged = Some(face);
    if let Some(face) = pending.faces.get_mut(face) {
        face.load.long_octets += octets;
    }
}

/// The long Interest in `slot`, charged to `face`, ends.
#[cold]
pub(crate) fn discharge(pending: &mut Pending, slot: u32, face: FaceId) {
    let octets = pending.pit.interest(slot).len() as u64;
    if let Some(face) = pending.faces.get_mut(face) {
        face.load.long_octets = face.load.long_octets.saturating_sub(octets);
    }
}

/// A search for `face` took so many steps beyond a usual one.
pub(crate) fn charge_steps(pending: &mut Pending, face: FaceId, steps: u32) {
    if steps > 0
        && let Some(face) = pending.faces.get_mut(face)
    {
        face.load.steps += u64::from(steps);
    }
}

/// An Interest of `face` was sent to so many upstreams: each but the first costs it [`COPY_STEPS`].
pub(crate) fn charge_copies(pending: &mut Pending, face: FaceId, copies: u32) {
    charge_steps(pending, face, copies.saturating_sub(1).saturating_mul(COPY_STEPS));
}

/// How long an Interest of `face` may be pending before it is overdue.
pub(crate) fn patience(pending: &Pending, face: FaceId) -> Duration {
    match pending.faces.get(face).map_or(0, |f| f.load.usual_ns) {
        0 => PATIENCE_FIRST,
        usual => Duration::from_nanos(usual.saturating_mul(PATIENCE)).max(PATIENCE_MIN),
    }
}

/// Whether `upstream` is contended and `ingress` has more pending than it earns.
#[inline]
pub(crate) fn is_congested(pending: &Pending, ingress: FaceId, upstream: &Face) -> bool {
    u64::from(upstream.load.out_pending) >= UPSTREAM_FREE && is_over(pending, ingress, upstream)
}

fn is_over(pending: &Pending, ingress: FaceId, upstream: &Face) -> bool {
    pending.config.fairness
        && pending.window.in_use > 1
        && u64::from(upstream.load.out_pending) > upstream.load.capacity()
        && pending.faces.get(ingress).is_some_and(|f| u64::from(f.load.pending) > f.load.earned())
}

impl<R, C> Forwarder<R, C> {
    /// Charges what `face` asked of management to its turns. The shell says so where it hands the
    /// Interest over, so that no other packet pays for the question.
    pub fn charge_management(&mut self, face: FaceId) {
        charge_steps(&mut self.pending, face, MANAGEMENT_STEPS);
    }

    /// How large a turn `face` should get among faces with packets waiting, from 1 to 16: smaller
    /// the more it has pending beyond what it uses, and the dearer its searches are. A face alone
    /// takes every turn whatever its weight.
    #[must_use]
    pub fn turn_weight(&self, face: FaceId) -> u32 {
        let Some(face) = self.pending.faces.get(face) else { return 1 };
        if !self.pending.config.fairness {
            return WEIGHT_MAX;
        }
        let (pending, earned) = (u64::from(face.load.pending), face.load.earned());
        let (steps, free) = (
            face.load.steps.max(face.load.steps_last),
            STEPS_FREE / (self.pending.window.in_use + 1),
        );
        weight(pending, earned).min(weight(steps, free))
    }
}

/// The weight of who takes `used` where `free` is its own.
fn weight(used: u64, free: u64) -> u32 {
    if used <= free {
        return WEIGHT_MAX;
    }
    u32::try_from(u64::from(WEIGHT_MAX) * free / used).unwrap_or(WEIGHT_MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, FaceInfo, UnsolicitedPolicy};
    use onym_frame::Buf;
    use onym_link::{LpIn, Outbox, Packet};
    use onym_tables::fib::NextHop;
    use onym_wire::data::DataBuilder;
    use onym_wire::interest::InterestBuilder;
    use onym_wire::name::Name;
    use onym_wire::signature::SignatureInfo;

    const ASKS: FaceId = FaceId(256);
    const FILLS: FaceId = FaceId(257);

    fn name(uri: &str) -> Name {
        uri.parse().expect("a name")
    }

    fn packet(face: FaceId, wire: &[u8]) -> Packet {
        Packet { face, bytes: Buf::copy_from(wire), lp: LpIn::default() }
    }

    fn steps(fw: &Forwarder, id: FaceId) -> u64 {
        fw.faces().get(id).map_or(0, |face| face.load.steps)
    }

    fn asks(fw: &mut Forwarder, now: Tick, uri: &str, nonce: u32) {
        let (name, mut wire) = (name(uri), Vec::new());
        let nonce = Some(nonce.to_be_bytes());
        InterestBuilder { nonce, ..InterestBuilder::new(name.as_ref()) }.write(&mut wire);
        fw.receive(now, packet(ASKS, &wire), &mut Outbox::default());
    }

    fn route(fw: &mut Forwarder, uri: &str, face: FaceId) {
        let (name, hop) = (name(uri), NextHop { face, cost: 0 });
        fw.fib_add(Tick::from_ms(1), name.as_ref(), hop, &mut Outbox::default()).expect("room");
    }

    #[test]
    fn copies_for_further_upstreams_are_charged_to_who_asked() {
        const FACES: u32 = 32;
        let mut fw = Forwarder::new(Config::default());
        fw.face_add(ASKS, FaceInfo::point_to_point());
        for n in 0..FACES {
            fw.face_add(FaceId(300 + n), FaceInfo::point_to_point());
            route(&mut fw, "/many", FaceId(300 + n));
        }
        route(&mut fw, "/one", FaceId(300));
        let multicast = name("/localhost/nfd/strategy/multicast");
        fw.strategy_set(name("/many").as_ref(), multicast.as_ref()).expect("known");
        let now = Tick::from_ms(5);
        asks(&mut fw, now, "/one/1", 1);
        assert_eq!(steps(&fw, ASKS), 0, "one upstream is what an Interest costs");
        asks(&mut fw, now, "/many/1", 2);
        assert_eq!(steps(&fw, ASKS), u64::from((FACES - 1) * COPY_STEPS));
        // What 32 copies cost in a window, and no more, is what shortens its turns.
        for n in 0..60 {
            assert_eq!(fw.turn_weight(ASKS), WEIGHT_MAX, "{n}");
            asks(&mut fw, now, &format!("/many/2/{n}"), 10 + n);
        }
        charge_copies(&mut fw.pending, ASKS, 1 << 16);
        assert!(fw.turn_weight(ASKS) < WEIGHT_MAX / 2, "{}", fw.turn_weight(ASKS));
    }

    #[test]
    fn who_asks_management_without_end_gets_shorter_turns() {
        let mut fw = Forwarder::new(Config::default());
        fw.face_add(ASKS, FaceInfo::point_to_point());
        fw.face_add(FILLS, FaceInfo::point_to_point());
        for _ in 0..1000 {
            fw.charge_management(ASKS);
        }
        assert_eq!(fw.turn_weight(ASKS), WEIGHT_MAX, "a thousand in a window are free");
        for _ in 0..2000 {
            fw.charge_management(ASKS);
        }
        assert!(fw.turn_weight(ASKS) < WEIGHT_MAX / 2, "{}", fw.turn_weight(ASKS));
        assert_eq!(fw.turn_weight(FILLS), WEIGHT_MAX);
    }

    #[test]
    fn who_has_the_store_searched_for_long_gets_shorter_turns_for_a_while() {
        let unsolicited = UnsolicitedPolicy::AdmitAll;
        let mut fw = Forwarder::new(Config { unsolicited, ..Config::default() });
        let mut out = Outbox::default();
        fw.face_add(ASKS, FaceInfo::point_to_point());
        fw.face_add(FILLS, FaceInfo::point_to_point());
        for n in 0..2000 {
            let (name, mut wire) = (name(&format!("/a/{n:05}")), Vec::new());
            let data = DataBuilder { freshness_ms: 1, ..DataBuilder::new(name.as_ref(), b"") };
            let sign = |_: &[&[u8]]| Ok::<_, std::convert::Infallible>([0; 32]);
            data.write(&mut wire, &SignatureInfo::default(), |_| sign(&[])).expect("signs");
            fw.receive(Tick::from_ms(1), packet(FILLS, &wire), &mut out);
        }
        let (name, mut wire) = (name("/a"), Vec::new());
        let asked = InterestBuilder::new(name.as_ref());
        InterestBuilder { can_be_prefix: true, must_be_fresh: true, ..asked }.write(&mut wire);
        let now = Tick::from_ms(5);
        fw.receive(now, packet(ASKS, &wire), &mut out);
        assert!(steps(&fw, ASKS) > 1000, "{}", steps(&fw, ASKS));
        assert_eq!(steps(&fw, FILLS), 0);
        assert_eq!((fw.turn_weight(ASKS), fw.turn_weight(FILLS)), (16, 16));
        charge_steps(&mut fw.pending, ASKS, 1 << 23);
        assert_eq!((fw.turn_weight(ASKS), fw.turn_weight(FILLS)), (1, 16));
        for window in 1..3 {
            tick(&mut fw.pending, now + Duration::from_millis(window * 110));
        }
        assert_eq!(fw.turn_weight(ASKS), 16);
    }
}
