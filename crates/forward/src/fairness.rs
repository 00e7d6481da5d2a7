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
//! * Upstream: when it has more pending than four times what it answers, and several downstreams are
//!   in use, those with more than they earn are refused: `congestion`.
//!
//! `Config::fairness` turns both off, and with them the weights of turns; the limits stay.
//!
//! A flow alone on the node is bound by nothing but three quarters of the PIT.

use crate::Forwarder;
use crate::faces::Face;
use onym_tables::{FaceId, Tick};
use std::time::Duration;

/// How often use is averaged, in nanoseconds: 100 ms.
const WINDOW_NS: u64 = 100_000_000;

/// Interests that a downstream may always have pending.
pub const FREE: u64 = 64;

/// Interests that an upstream may always have pending.
pub const UPSTREAM_FREE: u64 = 256;

/// A face may have pending so many times what it uses.
const SLACK: u64 = 4;

/// A downstream counts as in use when an upstream answered it in the last window, or this much is
/// pending: one notification that waits for minutes, or who asks for the node's state, contends
/// with nobody.
const IN_USE: u32 = 8;

/// An Interest is overdue after so many times what its face's answers took, on the average of the
/// slowest recent window.
const PATIENCE: u64 = 4;

/// It never is before 100 ms, and this is how long a face may wait that was never answered: 1 s, the
/// timeout that RFC 6298 starts with.
const PATIENCE_MIN: Duration = Duration::from_millis(100);
const PATIENCE_FIRST: Duration = Duration::from_secs(1);

/// Turns of a face that uses what it has pending.
pub const WEIGHT_MAX: u32 = 16;

/// What one face has pending and uses, as downstream and as upstream.
#[derive(Debug, Clone, Copy, Default)]
pub struct Load {
    /// In-records of the face.
    pub pending: u32,
    /// Out-records of the face.
    pub out_pending: u32,
    /// Time that its answered Interests waited, in this window.
    waited_ns: u64,
    out_waited_ns: u64,
    /// Average number of answered Interests, fast to grow, slow to shrink.
    used: u64,
    out_used: u64,
    /// What answers took on the average of a window, in nanoseconds, fast to grow, slow to shrink; 0
    /// before the first.
    usual_ns: u64,
    /// Interests that were satisfied until this window began.
    satisfied: u64,
}

impl Load {
    /// What the face may have pending as a downstream under contention.
    #[must_use]
    pub fn earned(&self) -> u64 {
        (SLACK * self.used).max(FREE)
    }

    /// What it can have pending as an upstream without being contended.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        (SLACK * self.out_used).max(UPSTREAM_FREE)
    }

    /// Closes a window at whose end `satisfied` Interests have been satisfied in all.
    fn roll(&mut self, elapsed_ns: u64, satisfied: u64) -> bool {
        let average =
            |waited: u64, old: u64| waited.div_ceil(elapsed_ns).max(old - old.div_ceil(4));
        let in_use = self.waited_ns > 0 || self.pending >= IN_USE;
        let answers = satisfied - std::mem::replace(&mut self.satisfied, satisfied);
        if let Some(usual) = self.waited_ns.checked_div(answers) {
            self.usual_ns = usual.max(self.usual_ns - self.usual_ns / 8);
        }
        self.used = average(self.waited_ns, self.used);
        self.out_used = average(self.out_waited_ns, self.out_used);
        (self.waited_ns, self.out_waited_ns) = (0, 0);
        in_use
    }
}

/// The current window.
#[derive(Debug, Default)]
pub(crate) struct Window {
    started: Tick,
    /// Downstreams in use.
    pub(crate) in_use: u64,
}

/// Closes the window when its time is over.
#[inline]
pub(crate) fn tick(fw: &mut Forwarder, now: Tick) {
    if now.0 >= fw.window.started.0 + WINDOW_NS {
        roll(fw, now);
    }
}

#[cold]
fn roll(fw: &mut Forwarder, now: Tick) {
    let elapsed_ns = (now.0 - fw.window.started.0).max(1);
    fw.window.in_use = fw.faces.roll(|load, satisfied| load.roll(elapsed_ns, satisfied));
    fw.window.started = now;
}

/// Whether a new pending Interest of `face` would take more than its share of a contended PIT.
#[inline]
pub(crate) fn is_over_pit_share(fw: &Forwarder, face: FaceId) -> bool {
    let limit = fw.pit.entries_max();
    fw.pit.len() >= limit - limit / 4 && exceeds_share(fw, face, limit as u64)
}

#[cold]
fn exceeds_share(fw: &Forwarder, face: FaceId, limit: u64) -> bool {
    if !fw.config.fairness {
        return false;
    }
    // One more than those in use: room for who comes next.
    let share = limit / (fw.window.in_use.max(1) + 1);
    fw.faces.get(face).is_some_and(|f| u64::from(f.load.pending) >= share)
}

/// How long an Interest of `face` may be pending before it is overdue.
pub(crate) fn patience(fw: &Forwarder, face: FaceId) -> Duration {
    match fw.faces.get(face).map_or(0, |f| f.load.usual_ns) {
        0 => PATIENCE_FIRST,
        usual => Duration::from_nanos(usual.saturating_mul(PATIENCE)).max(PATIENCE_MIN),
    }
}

/// Whether `upstream` is contended and `ingress` has more pending than it earns.
#[inline]
pub(crate) fn is_congested(fw: &Forwarder, ingress: FaceId, upstream: &Face) -> bool {
    u64::from(upstream.load.out_pending) >= UPSTREAM_FREE && is_over(fw, ingress, upstream)
}

fn is_over(fw: &Forwarder, ingress: FaceId, upstream: &Face) -> bool {
    fw.config.fairness
        && fw.window.in_use > 1
        && u64::from(upstream.load.out_pending) > upstream.load.capacity()
        && fw.faces.get(ingress).is_some_and(|f| u64::from(f.load.pending) > f.load.earned())
}

impl Load {
    /// The upstream answered one Interest after `waited_ns`.
    #[inline]
    pub(crate) fn answers(&mut self, waited_ns: u64) {
        self.out_waited_ns += waited_ns;
        self.out_pending = self.out_pending.saturating_sub(1);
    }

    /// One Interest of the downstream was answered by an upstream after `waited_ns`.
    #[inline]
    pub(crate) fn answered(&mut self, waited_ns: u64) {
        // At least a little, so that answers within the same moment count as use.
        self.waited_ns += waited_ns.max(1);
        self.ended();
    }

    /// One Interest of the downstream ended without using an upstream: unanswered, or answered by
    /// the management of this node.
    #[inline]
    pub(crate) fn ended(&mut self) {
        self.pending = self.pending.saturating_sub(1);
    }
}

impl Forwarder {
    /// How large a turn `face` should get among faces with packets waiting, from 1 to 16: smaller
    /// the more it has pending beyond what it uses. A face alone takes every turn whatever its
    /// weight.
    #[must_use]
    pub fn turn_weight(&self, face: FaceId) -> u32 {
        let Some(face) = self.faces.get(face) else { return 1 };
        let (pending, earned) = (u64::from(face.load.pending), face.load.earned());
        if pending <= earned || !self.config.fairness {
            return WEIGHT_MAX;
        }
        u32::try_from(u64::from(WEIGHT_MAX) * earned / pending).unwrap_or(WEIGHT_MAX).max(1)
    }
}
