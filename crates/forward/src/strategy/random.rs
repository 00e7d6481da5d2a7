//! random: any eligible next hop.

use super::retx::unknown;
use super::{Action, Ctx, Parameters, Strategy, StrategyError};
use onym_tables::FaceId;
use onym_wire::lp::NackReason;

/// Sends each Interest, a retransmission as well, to one eligible next hop chosen at random.
#[derive(Debug)]
pub struct Random;

impl Random {
    /// An instance; there are no parameters.
    ///
    /// # Errors
    /// [`StrategyError::Parameter`] for any parameter.
    pub fn create(parameters: Parameters<'_>) -> Result<Box<dyn Strategy>, StrategyError> {
        none(parameters)?;
        Ok(Box::new(Self))
    }
}

/// Refuses every parameter.
pub(crate) fn none(parameters: Parameters<'_>) -> Result<(), StrategyError> {
    parameters.first().map_or(Ok(()), |(name, value)| Err(unknown(name, value)))
}

impl Strategy for Random {
    fn after_receive_interest(&self, ctx: &mut Ctx<'_>, ingress: FaceId) {
        let count = ctx.eligible(ingress).count();
        let chosen = usize::try_from(ctx.rng.below(count as u64)).unwrap_or(0);
        let hop = ctx.eligible(ingress).nth(chosen);
        match hop {
            Some(hop) => ctx.push(Action::Forward(hop.face)),
            None => ctx.refuse_no_route(ingress),
        }
    }

    fn after_receive_nack(&self, ctx: &mut Ctx<'_>, _face: FaceId, _reason: NackReason) {
        ctx.merge_nacks();
    }
}
