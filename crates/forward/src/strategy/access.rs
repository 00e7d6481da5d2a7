//! access: the last working next hop, and all of them when it does not answer.

use super::random::none;
use super::{
    Action, Ctx, DataIn, Measured, Parameters, Refusal, Retx, Strategy, StrategyError, Suppression,
};
use onym_tables::hash::component_count;
use onym_tables::rtt::RttEstimator;
use onym_tables::{FaceId, NameHashes};
use onym_wire::NAME_COMPONENTS_MAX;
use onym_wire::lp::NackReason;
use std::time::Duration;

/// How long what is known of a prefix is kept after its last Data.
const LIFETIME: Duration = Duration::from_secs(8);

/// A retransmission is multicast only so long after the Interest was sent last.
const SUPPRESSION: Retx = Retx { initial_us: 100_000, max_us: 100_000, multiplier: 1.0 };

/// For access routers, most of whose prefixes are served by one of few end hosts (NFD's access v1).
///
/// Where a prefix has answered lately, its Interests go to the next hop that did, and to the others
/// only when that one does not answer within its timeout; else they go to all.
#[derive(Debug)]
pub struct Access;

/// What is known of a prefix.
#[derive(Debug, Clone, Copy)]
pub struct AccessInfo {
    /// The next hop that answered last.
    pub last: FaceId,
    /// Its round-trip time.
    pub rtt: RttEstimator,
}

impl Access {
    /// An instance; there are no parameters.
    ///
    /// # Errors
    /// [`StrategyError::Parameter`] for any parameter.
    pub fn create(parameters: Parameters<'_>) -> Result<Box<dyn Strategy>, StrategyError> {
        none(parameters)?;
        Ok(Box::new(Self))
    }
}

/// Sends to each next hop that is eligible and not waiting already; whether there was one.
fn multicast(ctx: &mut Ctx<'_>, ingress: FaceId, unused: bool) -> bool {
    let mut sent = false;
    for hop in ctx.next_hops {
        let pending = ctx.entry.out_record(hop.face).is_some_and(|out| out.is_pending(ctx.now));
        if ctx.is_eligible(ingress, hop.face) && !(unused && pending) {
            ctx.push(Action::Forward(hop.face));
            sent = true;
        }
    }
    sent
}

/// What is known of the longest prefix of the Interest's name.
fn known(ctx: &Ctx<'_>) -> Option<AccessInfo> {
    let is_ours = |m: &Measured| matches!(m, Measured::Access(_));
    match ctx.measurements.longest_match(ctx.now, ctx.key, ctx.name, is_ours) {
        Some((_, Measured::Access(info))) => Some(**info),
        _ => None,
    }
}

fn after_new_interest(ctx: &mut Ctx<'_>, ingress: FaceId) {
    if let Some(info) = known(ctx)
        && ctx.eligible(ingress).any(|hop| hop.face == info.last)
    {
        ctx.push(Action::Forward(info.last));
        ctx.push(Action::SetTimer(ctx.now + info.rtt.rto()));
    } else if !multicast(ctx, ingress, false) {
        let refusal =
            if ctx.next_hops.is_empty() { Refusal::NoRoute } else { Refusal::NoEligibleNextHop };
        ctx.push(Action::Reject(refusal));
    }
}

impl Strategy for Access {
    fn after_receive_interest(&self, ctx: &mut Ctx<'_>, ingress: FaceId) {
        match SUPPRESSION.decide(ctx.now, ctx.entry) {
            Suppression::New => after_new_interest(ctx, ingress),
            Suppression::Forward => {
                multicast(ctx, ingress, false);
            }
            Suppression::Suppress => ctx.push(Action::Suppress),
        }
    }

    /// The next hop that answered last did not: the others are asked.
    fn on_timer(&self, ctx: &mut Ctx<'_>) {
        let downstream = ctx.entry.ins.iter().find(|r| r.expiry > ctx.now).map(|r| r.face);
        if let Some(ingress) = downstream {
            multicast(ctx, ingress, true);
        }
    }

    fn minds_data(&self) -> bool {
        true
    }

    fn before_satisfy(&self, ctx: &mut Ctx<'_>, data: &DataIn<'_>) {
        // Without downstreams another upstream was faster.
        if ctx.entry.ins.is_empty() {
            return;
        }
        let Some(out) = ctx.entry.out_record(data.face) else { return };
        let rtt = ctx.now.since(out.sent);
        let hashes = NameHashes::new(ctx.key, data.name, u64::MAX >> (63 - NAME_COMPONENTS_MAX));
        let Some(len) = component_count(data.name).checked_sub(1) else { return };
        let Some(prefix) = hashes.prefix(data.name, len.min(NAME_COMPONENTS_MAX)) else { return };
        let info = ctx.measurements.get_or_insert(ctx.now, &prefix, ctx.now + LIFETIME);
        match info {
            Measured::Access(info) if info.last == data.face => info.rtt.sample(rtt),
            other => {
                let mut estimator = RttEstimator::default();
                estimator.sample(rtt);
                *other = Measured::Access(Box::new(AccessInfo { last: data.face, rtt: estimator }));
            }
        }
    }

    fn after_receive_nack(&self, _ctx: &mut Ctx<'_>, _face: FaceId, _reason: NackReason) {}
}
