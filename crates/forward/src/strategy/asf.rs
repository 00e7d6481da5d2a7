//! asf: adaptive forwarding by measured round-trip times.
//!
//! For each namespace (FIB prefix) and next hop it keeps a round-trip time and whether the hop
//! answers. An Interest goes to the best hop; now and then a copy probes another one.
//!
//! One Interest of a hop at a time is watched for its timeout. The watch is evaluated when the
//! namespace is used next, before it decides anything, so it needs no timer.

use super::best_route::earliest_used;
use super::retx::{bad, unknown};
use super::{
    Action, Ctx, DataIn, Measured, Parameters, Retx, Strategy, StrategyError, Suppression,
};
use onym_tables::fib::NextHop;
use onym_tables::rtt::RttEstimator;
use onym_tables::{FaceId, Rng, Tick};
use onym_wire::lp::NackReason;
use smallvec::SmallVec;
use std::time::Duration;

/// The first probe of a namespace comes within this time of its first use.
const FIRST_PROBE_WITHIN: Duration = Duration::from_secs(5);
/// A satisfied Interest waits so long for the answers of other upstreams, which are measured.
const LINGER: Duration = Duration::from_millis(50);
/// Most next hops of a namespace that are measured; what was forgotten counts as unmeasured.
const HOPS_MAX: usize = 64;

/// Adaptive SRTT-based forwarding (NFD's asf v5).
#[derive(Debug)]
pub struct Asf {
    retx: Retx,
    probing_interval: Duration,
    max_timeouts: u32,
    measurements_lifetime: Duration,
}

impl Default for Asf {
    fn default() -> Self {
        Self {
            retx: Retx::default(),
            probing_interval: Duration::from_secs(60),
            max_timeouts: 3,
            measurements_lifetime: Duration::from_secs(300),
        }
    }
}

/// What is known of a namespace.
#[derive(Debug, Clone, Default)]
pub struct AsfInfo {
    /// When the next probe is due; `None` before the first use.
    next_probe: Option<Tick>,
    hops: Vec<Hop>,
}

/// What is known of one next hop of a namespace.
#[derive(Debug, Clone)]
struct Hop {
    face: FaceId,
    rtt: RttEstimator,
    class: Class,
    /// Consecutive timeouts.
    timeouts: u32,
    watch: Option<Watch>,
}

/// The Interest whose answer is waited for.
#[derive(Debug, Clone, Copy)]
struct Watch {
    /// Hash of its name.
    name: u64,
    until: Tick,
}

/// Classes of hops in the order of forwarding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Working,
    Unmeasured,
    TimedOut,
}

impl AsfInfo {
    fn hop(&self, face: FaceId) -> Option<&Hop> {
        self.hops.iter().find(|hop| hop.face == face)
    }

    fn hop_mut(&mut self, face: FaceId) -> &mut Hop {
        let at = match self.hops.iter().position(|hop| hop.face == face) {
            Some(at) => at,
            None => {
                if self.hops.len() >= HOPS_MAX {
                    self.hops.remove(0);
                }
                self.hops.push(Hop {
                    face,
                    rtt: RttEstimator::default(),
                    class: Class::Unmeasured,
                    timeouts: 0,
                    watch: None,
                });
                self.hops.len() - 1
            }
        };
        &mut self.hops[at]
    }

    /// Counts the timeouts that have come since the last use.
    fn expire_watches(&mut self, now: Tick, max_timeouts: u32) {
        for hop in &mut self.hops {
            if hop.watch.is_some_and(|watch| watch.until <= now) {
                hop.watch = None;
                hop.timeouts += 1;
                if hop.timeouts >= max_timeouts {
                    hop.time_out();
                }
            }
        }
    }

    /// Position of a next hop in the order of forwarding.
    fn rank(&self, hop: NextHop) -> (Class, Duration, u64, FaceId) {
        let (class, rtt) =
            self.hop(hop.face).map_or((Class::Unmeasured, Duration::ZERO), |known| {
                let rtt = match known.class {
                    Class::Working => known.rtt.smoothed().unwrap_or_default(),
                    Class::Unmeasured | Class::TimedOut => Duration::ZERO,
                };
                (known.class, rtt)
            });
        (class, rtt, hop.cost, hop.face)
    }
}

impl Hop {
    fn time_out(&mut self) {
        self.class = Class::TimedOut;
        self.timeouts = 0;
        self.watch = None;
    }
}

/// Next hops on the stack, unless there are many.
type Hops = SmallVec<[NextHop; 8]>;

impl Asf {
    /// An instance with `parameters`: those of suppression, `probing-interval` (ms),
    /// `max-timeouts`, `measurements-lifetime` (ms).
    ///
    /// # Errors
    /// [`StrategyError::Parameter`].
    pub fn create(parameters: Parameters<'_>) -> Result<Box<dyn Strategy>, StrategyError> {
        let mut asf = Self::default();
        asf.retx = Retx::parse(parameters, |name, value| {
            let number = |least: u64, allowed: &str| {
                let number = value.parse::<u64>().ok();
                number.filter(|n| *n >= least).ok_or_else(|| bad(name, value, allowed))
            };
            match name {
                "probing-interval" => {
                    let ms = number(1000, "a number of milliseconds of at least 1000")?;
                    asf.probing_interval = Duration::from_millis(ms);
                }
                "max-timeouts" => {
                    let most = number(1, "a number of at least 1")?;
                    asf.max_timeouts = u32::try_from(most).unwrap_or(u32::MAX);
                }
                "measurements-lifetime" => {
                    let ms = number(1, "a number of milliseconds")?;
                    asf.measurements_lifetime = Duration::from_millis(ms);
                }
                _ => return Err(unknown(name, value)),
            }
            Ok(())
        })?;
        if asf.measurements_lifetime <= asf.probing_interval {
            let ms = asf.measurements_lifetime.as_millis().to_string();
            return Err(bad("measurements-lifetime", &ms, "more than probing-interval"));
        }
        Ok(Box::new(asf))
    }

    /// What is known of the namespace of this Interest, kept for its lifetime from now on.
    fn info<'a>(&self, ctx: &'a mut Ctx<'_>) -> &'a mut AsfInfo {
        let until = ctx.now + self.measurements_lifetime;
        let measured = ctx.measurements.get_or_insert(ctx.now, &ctx.fib_prefix, until);
        if !matches!(measured, Measured::Asf(_)) {
            *measured = Measured::Asf(Box::default());
        }
        match measured {
            Measured::Asf(info) => info,
            _ => unreachable!("set above"),
        }
    }

    /// Forwards to the best of `hops`, and probes another one when that is due.
    fn forward_best(&self, ctx: &mut Ctx<'_>, ingress: FaceId, hops: &Hops) -> bool {
        let now = ctx.now;
        let max_timeouts = self.max_timeouts;
        let info = self.info(ctx);
        info.expire_watches(now, max_timeouts);
        let Some(best) = hops.iter().min_by_key(|hop| info.rank(**hop)).copied() else {
            return false;
        };
        ctx.push(Action::Forward(best.face));
        self.watch(ctx, best.face);
        if ctx.next_hops.len() > 1 {
            self.probe(ctx, ingress, best.face);
        }
        true
    }

    /// Waits for the answer of `face`, unless it is waited for one already.
    fn watch(&self, ctx: &mut Ctx<'_>, face: FaceId) {
        let now = ctx.now;
        let name = ctx.key.name(ctx.name);
        let hop = self.info(ctx).hop_mut(face);
        if hop.watch.is_none() {
            hop.watch = Some(Watch { name, until: now + hop.rtt.rto() });
        }
    }

    fn probe(&self, ctx: &mut Ctx<'_>, ingress: FaceId, used: FaceId) {
        let now = ctx.now;
        // The range of the first probe, in nanoseconds.
        let first = u64::try_from(FIRST_PROBE_WITHIN.as_nanos()).unwrap_or(u64::MAX);
        let first = Duration::from_nanos(ctx.rng.below(first));
        if now < *self.info(ctx).next_probe.get_or_insert(now + first) {
            return;
        }
        let others: Hops = ctx
            .eligible(ingress)
            .filter(|hop| hop.face != used && ctx.entry.out_record(hop.face).is_none())
            .collect();
        let info = self.info(ctx).clone_ranks(&others);
        let Some(face) = choose_probe(&info, ctx.rng) else { return };
        self.info(ctx).next_probe = Some(now + self.probing_interval);
        ctx.push(Action::Probe(face));
        self.watch(ctx, face);
    }
}

impl AsfInfo {
    /// Hops in the order in which they are probed: unmeasured ones, then working, then timed out.
    fn clone_ranks(&self, hops: &Hops) -> SmallVec<[(bool, FaceId); 8]> {
        let mut ranked: SmallVec<[_; 8]> = hops.iter().map(|hop| self.rank(*hop)).collect();
        ranked.sort_unstable();
        ranked.iter().map(|(class, _, _, face)| (*class == Class::Unmeasured, *face)).collect()
    }
}

/// The first unmeasured hop; else hop number `rank` of `n` with weight `n + 1 - rank`.
fn choose_probe(ranked: &[(bool, FaceId)], rng: &mut Rng) -> Option<FaceId> {
    if let Some((_, face)) = ranked.iter().find(|(unmeasured, _)| *unmeasured) {
        return Some(*face);
    }
    let n = ranked.len() as u64;
    let mut draw = rng.below(n * (n + 1) / 2);
    for (weight, (_, face)) in (1..=n).rev().zip(ranked) {
        if draw < weight {
            return Some(*face);
        }
        draw -= weight;
    }
    None
}

impl Strategy for Asf {
    fn after_receive_interest(&self, ctx: &mut Ctx<'_>, ingress: FaceId) {
        match self.retx.decide(ctx.now, ctx.entry) {
            Suppression::Suppress => ctx.push(Action::Suppress),
            Suppression::New => {
                let hops: Hops = ctx.eligible(ingress).collect();
                if !self.forward_best(ctx, ingress, &hops) {
                    ctx.refuse_no_route(ingress);
                }
            }
            Suppression::Forward => {
                let unused: Hops = ctx.eligible_unused(ingress).collect();
                if !self.forward_best(ctx, ingress, &unused)
                    && let Some(face) = earliest_used(ctx, ingress)
                {
                    ctx.push(Action::Forward(face));
                }
            }
        }
    }

    fn minds_data(&self) -> bool {
        true
    }

    fn before_satisfy(&self, ctx: &mut Ctx<'_>, data: &DataIn<'_>) {
        let Some(out) = ctx.entry.out_record(data.face) else { return };
        let rtt = ctx.now.since(out.sent);
        let name = ctx.key.name(ctx.name);
        let hop = self.info(ctx).hop_mut(data.face);
        hop.rtt.sample(rtt);
        hop.class = Class::Working;
        hop.timeouts = 0;
        if hop.watch.is_some_and(|watch| watch.name == name) {
            hop.watch = None;
        }
        let now = ctx.now;
        let mut others = ctx.entry.outs.iter().filter(|out| out.face != data.face);
        if others.any(|out| out.is_pending(now)) {
            ctx.push(Action::Linger(LINGER));
        }
    }

    fn after_receive_nack(&self, ctx: &mut Ctx<'_>, face: FaceId, _reason: NackReason) {
        self.info(ctx).hop_mut(face).time_out();
        ctx.merge_nacks();
    }
    fn on_lost_interest(&self, ctx: &mut Ctx<'_>, face: FaceId) {
        self.info(ctx).hop_mut(face).time_out();
    }
}
