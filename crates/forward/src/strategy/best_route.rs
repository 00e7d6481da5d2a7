//! best-route: the lowest-cost next hop, another one on each retransmission.

use super::retx::unknown;
use super::{Action, Ctx, Parameters, Retx, Strategy, StrategyError, Suppression};
use onym_tables::FaceId;
use onym_wire::lp::NackReason;

/// Sends to the eligible next hop of lowest cost (NFD's best-route v5).
#[derive(Debug, Default)]
pub struct BestRoute {
    retx: Retx,
}

impl BestRoute {
    /// An instance with `parameters`.
    ///
    /// # Errors
    /// [`StrategyError::Parameter`].
    pub fn create(parameters: Parameters<'_>) -> Result<Box<dyn Strategy>, StrategyError> {
        let retx = Retx::parse(parameters, |name, value| Err(unknown(name, value)))?;
        Ok(Box::new(Self { retx }))
    }
}

impl Strategy for BestRoute {
    fn after_receive_interest(&self, ctx: &mut Ctx<'_>, ingress: FaceId) {
        match self.retx.decide(ctx.now, ctx.entry) {
            Suppression::Suppress => ctx.push(Action::Suppress),
            Suppression::New => {
                let lowest = ctx.eligible(ingress).next();
                match lowest {
                    Some(hop) => ctx.push(Action::Forward(hop.face)),
                    None => ctx.refuse_no_route(ingress),
                }
            }
            Suppression::Forward => {
                let unused = ctx.eligible_unused(ingress).next().map(|hop| hop.face);
                let chosen = unused.or_else(|| earliest_used(ctx, ingress));
                if let Some(face) = chosen {
                    ctx.push(Action::Forward(face));
                }
            }
        }
    }

    fn after_receive_nack(&self, ctx: &mut Ctx<'_>, _face: FaceId, _reason: NackReason) {
        ctx.merge_nacks();
    }
}

/// The eligible next hop that was used longest ago.
pub(crate) fn earliest_used(ctx: &Ctx<'_>, ingress: FaceId) -> Option<FaceId> {
    ctx.eligible(ingress)
        .filter_map(|hop| ctx.entry.out_record(hop.face))
        .min_by_key(|out| out.sent)
        .map(|out| out.face)
}
