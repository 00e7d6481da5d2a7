//! multicast: every eligible next hop.

use super::retx::unknown;
use super::{Action, Ctx, Parameters, Refusal, Retx, Strategy, StrategyError, Suppression};
use onym_tables::FaceId;
use onym_tables::fib::NextHop;
use onym_wire::lp::NackReason;

/// Sends to every eligible next hop, each with its own suppression (NFD's multicast v5). Neither
/// sends Nacks nor minds those that come.
#[derive(Debug, Default)]
pub struct Multicast {
    retx: Retx,
}

impl Multicast {
    /// An instance with `parameters`.
    ///
    /// # Errors
    /// [`StrategyError::Parameter`].
    pub fn create(parameters: Parameters<'_>) -> Result<Box<dyn Strategy>, StrategyError> {
        let retx = Retx::parse(parameters, |name, value| Err(unknown(name, value)))?;
        Ok(Box::new(Self { retx }))
    }
}

impl Strategy for Multicast {
    fn after_receive_interest(&self, ctx: &mut Ctx<'_>, ingress: FaceId) {
        let (mut sent, mut suppressed) = (false, false);
        for hop in ctx.next_hops {
            if !ctx.is_eligible(ingress, hop.face) {
                continue;
            }
            match self.retx.decide_upstream(ctx.now, ctx.entry, hop.face) {
                Suppression::Suppress => suppressed = true,
                Suppression::New | Suppression::Forward => {
                    ctx.push(Action::Forward(hop.face));
                    sent = true;
                }
            }
        }
        if suppressed && !sent {
            ctx.push(Action::Suppress);
        } else if !sent {
            let refusal = if ctx.next_hops.is_empty() {
                Refusal::NoRoute
            } else {
                Refusal::NoEligibleNextHop
            };
            // The entry stays: a next hop may come while it is pending.
            ctx.push(Action::Hold(refusal));
        }
    }

    fn after_receive_nack(&self, _ctx: &mut Ctx<'_>, _face: FaceId, _reason: NackReason) {}

    fn after_new_next_hop(&self, ctx: &mut Ctx<'_>, hop: NextHop) {
        let waits =
            ctx.entry.ins.iter().any(|r| r.expiry > ctx.now && ctx.is_eligible(r.face, hop.face));
        if waits && ctx.entry.out_record(hop.face).is_none() {
            ctx.push(Action::Forward(hop.face));
        }
    }

    fn wants_new_next_hop(&self) -> bool {
        true
    }

    fn nacks_loops(&self) -> bool {
        false
    }
}
