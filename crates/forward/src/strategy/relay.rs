//! relay: sends to every upstream; for forwarders without a FIB.

use super::retx::RetxInfo;
use super::{Action, Ctx, Info, Refusal, Retx, Strategy, Suppression};
use onym_tables::FaceId;
use onym_wire::lp::NackReason;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The least time between retransmissions of the relay's own.
const RTO_MIN: Duration = Duration::from_millis(10);

/// What a relay does with an Interest that is pending already.
#[derive(Debug, Clone)]
pub enum Repeat {
    /// Sends it on once the interval is over, which grows.
    Suppress(Retx),
    /// The same, and sends what is not answered again by itself.
    Active {
        /// The suppression.
        retx: Retx,
        /// How often by itself.
        tries: u32,
        /// When for the first time, in microseconds; doubled each time. Kept up to date by who
        /// measures the round trip.
        rto_us: Arc<AtomicU64>,
    },
    /// Sends it on: a strategy further up decides.
    Pass,
}

/// Sends to every eligible next hop and passes the least severe Nack on once each has sent one.
/// It is no strategy that management can choose.
#[derive(Debug, Clone)]
pub struct Relay {
    /// What is done with an Interest that is pending already.
    pub repeat: Repeat,
    /// Whether a looped Interest is answered with Nack Duplicate.
    pub nacks_loops: bool,
}

impl Relay {
    fn retx(&self) -> Option<&Retx> {
        match &self.repeat {
            Repeat::Suppress(retx) | Repeat::Active { retx, .. } => Some(retx),
            Repeat::Pass => None,
        }
    }

    fn arm(&self, ctx: &mut Ctx<'_>, tried: u32) {
        let Repeat::Active { tries, rto_us, .. } = &self.repeat else { return };
        if tried < *tries {
            let rto = Duration::from_micros(rto_us.load(Ordering::Relaxed) << tried.min(16));
            ctx.push(Action::SetTimer(ctx.now + rto.max(RTO_MIN)));
        }
    }
}

impl Strategy for Relay {
    fn after_receive_interest(&self, ctx: &mut Ctx<'_>, ingress: FaceId) {
        if let Some(retx) = self.retx() {
            if retx.joins(ctx.now, ctx.entry, ingress) {
                return;
            }
            if retx.decide(ctx.now, ctx.entry) == Suppression::Suppress {
                // One of several that wait is aggregated; one that repeats itself is suppressed.
                if ctx.entry.ins.len() < 2 {
                    ctx.push(Action::Suppress);
                }
                return;
            }
        }
        let mut sent = false;
        for hop in ctx.next_hops {
            if ctx.is_eligible(ingress, hop.face) {
                ctx.push(Action::Forward(hop.face));
                sent = true;
            }
        }
        if sent {
            self.arm(ctx, 0);
        } else {
            // The entry stays: an upstream may come while it is pending.
            ctx.push(Action::Hold(Refusal::NoEligibleNextHop));
        }
    }

    fn after_receive_nack(&self, ctx: &mut Ctx<'_>, _face: FaceId, _reason: NackReason) {
        ctx.merge_nacks();
    }

    fn on_timer(&self, ctx: &mut Ctx<'_>) {
        let mut info = match &ctx.entry.info {
            Info::Retx(info) => *info,
            Info::None => RetxInfo::default(),
        };
        info.tries += 1;
        let tried = info.tries;
        ctx.entry.info = Info::Retx(info);
        for hop in ctx.next_hops {
            ctx.push(Action::Probe(hop.face));
        }
        self.arm(ctx, tried);
    }

    fn nacks_loops(&self) -> bool {
        self.nacks_loops
    }
}
